"""What a training loop asks of a loss, and how it calls those that want to know which samples they see."""

import copy
import inspect
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from linearcore.runtime import complaint

#: Called with scores (B, C) float32 and labels (B,), gives the losses (B,) or their mean. One with an argument `index`, or
#: with `needs_index = True`, is called with the places (B,) of the samples in the training set as well.
Loss: TypeAlias = Callable[..., Tensor]


class SampleLoss:
    """A loss as a run calls it: always with the places of the samples, and with a state of its own.

    Args:
        loss: see `Loss`. A module is copied, so that runs never share what it remembers.
        device: where it is moved to, if it is a module.

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
        """The mean loss of a batch, float32 whatever autocast is on."""
        losses = self.function(scores, labels, index) if self.needs_index else self.function(scores, labels)
        return losses.mean()

    def train(self, mode: bool) -> None:
        """Lets a module remember, or only look."""
        if isinstance(self.function, nn.Module):
            self.function.train(mode)

    def state(self) -> dict[str, Tensor]:
        """What it remembers: live tensors, by name."""
        return dict(self.function.state_dict()) if isinstance(self.function, nn.Module) else {}

    def check(self, num_classes: int, count: int, device: torch.device) -> None:
        """Calls it once without effect, so that a loss that does not fit is refused before the work begins.

        Raises:
            ValueError: if it cannot be called, or gives neither one number nor one a sample; or its own, as it is.
        """
        function = self.function
        if isinstance(function, nn.Module):
            # A copy forgets what it saw; and on a GPU a wrong index would end the whole process.
            function, device = copy.deepcopy(function).cpu(), torch.device("cpu")
        scores, labels = torch.zeros(2, num_classes, device=device), torch.zeros(2, dtype=torch.int64, device=device)
        index = torch.tensor([0, count - 1], device=device)
        must = "take scores (B, C) and labels (B,) and give (B,) losses"
        try:
            with torch.no_grad():
                losses = function(scores, labels, index) if self.needs_index else function(scores, labels)
        except (TypeError, IndexError, RuntimeError) as error:
            told, places = str(error).partition("\n")[0], f" at the places 0 and {count - 1}" if self.needs_index else ""
            advice = f"it was tried on 2 samples of {num_classes} classes{places}"
            raise ValueError(complaint("loss", must, f"{type(error).__name__}: {told}", advice)) from error
        if not isinstance(losses, Tensor) or tuple(losses.shape) not in ((), (2,)):
            got = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
            raise ValueError(complaint("loss", must, got, "pass reduction='none'"))


def needs_index(loss: Loss) -> bool:
    """Whether a loss is to be told which samples it sees: it says so by `needs_index`, or it has an argument `index`."""
    told = getattr(loss, "needs_index", None)
    if told is not None:
        return bool(told)
    try:
        return "index" in inspect.signature(loss.forward if isinstance(loss, nn.Module) else loss).parameters
    except (TypeError, ValueError):  # Functions written in C may have no signature.
        return False
