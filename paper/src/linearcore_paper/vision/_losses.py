"""The interface of a loss in training, including losses that need the indices of the samples."""

import copy
import inspect
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from linearcore.runtime import complaint

#: Called with scores (B, C) float32 and labels (B,); returns the losses (B,) or their mean. A loss with an argument `index`,
#: or with `needs_index = True`, also gets the indices (B,) of the samples in the training set.
Loss: TypeAlias = Callable[..., Tensor]


class SampleLoss:
    """Wrapper of a loss that is always called with the indices of the samples.

    Args:
        loss: see `Loss`. A module is copied, so that runs do not share its state.
        device: device of the loss, if it is a module.

    Example:
        >>> import functools
        >>> loss = SampleLoss(functools.partial(nn.functional.cross_entropy, reduction="none"), "cpu")
        >>> loss(torch.zeros(3, 4), torch.tensor([0, 3, 1]), torch.tensor([7, 99, 0]))
        tensor(1.3863)
    """

    def __init__(self, loss: Loss, device: torch.device | str) -> None:
        if not callable(loss):
            advice = "for example functools.partial(multiclass_loss, reduction='none')"
            raise TypeError(complaint("loss", "be a function or a module", type(loss).__name__, advice))
        self.needs_index = needs_index(loss)
        self.function = copy.deepcopy(loss).to(device) if isinstance(loss, nn.Module) else loss

    def __call__(self, scores: Tensor, labels: Tensor, index: Tensor) -> Tensor:
        """Returns the mean loss of a batch in float32, also under autocast."""
        losses = self.function(scores, labels, index) if self.needs_index else self.function(scores, labels)
        return losses.mean()

    def train(self, mode: bool) -> None:
        """Sets the training mode of a module; in evaluation mode it does not update its state."""
        if isinstance(self.function, nn.Module):
            self.function.train(mode)

    def state(self) -> dict[str, Tensor]:
        """Returns the state of a module as tensors by name, not copied."""
        return dict(self.function.state_dict()) if isinstance(self.function, nn.Module) else {}

    def check(self, num_classes: int, count: int, device: torch.device) -> None:
        """Calls a copy of the loss once, so that an invalid loss raises before training.

        Raises:
            ValueError: if the call fails, or returns neither a scalar nor one value per sample.
        """
        function = self.function
        if isinstance(function, nn.Module):
            # A copy keeps the state unchanged. On the CPU, because an index error on a GPU ends the process.
            function, device = copy.deepcopy(function).cpu(), torch.device("cpu")
        scores, labels = torch.zeros(2, num_classes, device=device), torch.zeros(2, dtype=torch.int64, device=device)
        index = torch.tensor([0, count - 1], device=device)
        must = "accept scores (B, C) and labels (B,) and return (B,) losses"
        try:
            with torch.no_grad():
                losses = function(scores, labels, index) if self.needs_index else function(scores, labels)
        except (TypeError, IndexError, RuntimeError) as error:
            line, indices = str(error).partition("\n")[0], f" with indices 0 and {count - 1}" if self.needs_index else ""
            advice = f"it was called with 2 samples of {num_classes} classes{indices}"
            raise ValueError(complaint("loss", must, f"{type(error).__name__}: {line}", advice)) from error
        if not isinstance(losses, Tensor) or tuple(losses.shape) not in ((), (2,)):
            got = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
            raise ValueError(complaint("loss", must, got, "pass reduction='none'"))


def needs_index(loss: Loss) -> bool:
    """Whether a loss needs the indices of the samples: it has an attribute `needs_index` or an argument `index`."""
    attribute = getattr(loss, "needs_index", None)
    if attribute is not None:
        return bool(attribute)
    try:
        return "index" in inspect.signature(loss.forward if isinstance(loss, nn.Module) else loss).parameters
    except (TypeError, ValueError):  # Functions written in C may have no signature.
        return False
