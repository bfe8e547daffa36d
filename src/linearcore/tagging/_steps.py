"""One training step of a tagger, its optimiser and its learning rate."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from linearcore.runtime import GraphStepper
from linearcore.tagging._corpus import Batch
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._settings import Training

_MOMENTUM = 0.9
#: What the optimiser calls a group's factor of the rate.
SHARE = "share"


def make_optimizer(model: TaggingModel, settings: Training) -> torch.optim.Optimizer:
    """AdamW or SGD. On a GPU rates are tensors, so that captured steps see them change."""
    is_cuda = model.projection.weight.is_cuda
    options: dict[str, Any] = {"lr": settings.filled().rate, "weight_decay": settings.decay, "fused": True}
    groups = _groups(model, settings.chain_rate)
    if is_cuda:
        for group in groups:
            group["lr"] = torch.tensor(options["lr"] * group[SHARE], device=model.projection.weight.device)
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, momentum=_MOMENTUM, **options)
    return torch.optim.AdamW(groups, capturable=is_cuda, **options)


def _groups(model: TaggingModel, chain_rate: float | None) -> list[dict[str, Any]]:
    """All parameters, or those of the chain in a group of their own, with their shares of the rate."""
    if chain_rate is None or model.head is None:
        return [{"params": list(model.parameters()), SHARE: 1.0}]
    chain = list(model.head.parameters())
    own = {id(parameter) for parameter in chain}
    others = [parameter for parameter in model.parameters() if id(parameter) not in own]
    return [{"params": others, SHARE: 1.0}, {"params": chain, SHARE: chain_rate}]


def rate_at(step: int, steps: int, settings: Training) -> float:
    """The learning rate of a step, counted from 0: it rises over the first `warmup` of all steps, then falls to zero."""
    top = settings.filled().rate
    assert top is not None
    rising = max(1, round(settings.warmup * steps))
    if step < rising:
        return top * (step + 1) / rising
    return top * max(0.0, (steps - step) / max(1, steps - rising))


class Stepper:
    """Forward, backward, clipping and update of one batch.

    Args:
        model, optimizer: what is trained, and how.
        clip: the largest norm of a gradient.
        dtype: of autocast; None computes in float32.
        compiled: let torch.compile make the loss faster. Not the encoder, where it has little to gain from an LSTM.
        captured: replay steps as CUDA graphs, as `linearcore.runtime.GraphStepper` does; for batches of few shapes.
    """

    def __init__(
        self,
        model: TaggingModel,
        optimizer: torch.optim.Optimizer,
        clip: float,
        dtype: torch.dtype | None = None,
        *,
        compiled: bool = False,
        captured: bool = False,
    ) -> None:
        self.model, self.optimizer, self.clip, self.dtype, self.compiled = model, optimizer, clip, dtype, compiled
        self._loss: Callable[..., Tensor] = torch.compile(model.loss) if compiled else model.loss
        self._graphs = GraphStepper(
            self._backward,
            self._update,
            model.projection.weight.device,
            use_graphs=captured,
            redo_nonfinite=model.head is not None and model.head.may_underflow,
        )

    def step(self, batch: Batch, rate: float) -> Tensor:
        """Does one step and returns the mean loss of a tag, without waiting for the device."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * group[SHARE])
            else:
                group["lr"] = rate * group[SHARE]
        return self._graphs.step(mask=batch.mask, tags=batch.tags, **batch.inputs)

    def _backward(self, mask: Tensor, tags: Tensor, **inputs: Tensor) -> Tensor:
        self._clear()
        with torch.autocast(mask.device.type, self.dtype or torch.bfloat16, enabled=self.dtype is not None):
            loss = self._loss(self.model.encoder(mask, **inputs), mask, tags)
        loss.backward()
        return loss.detach()

    def _clear(self) -> None:
        if not self._graphs.uses_graphs:
            self.optimizer.zero_grad(set_to_none=True)
            return
        # All graphs share one place for gradients.
        for parameter in self.model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.optimizer.zero_grad(set_to_none=False)

    def _update(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, foreach=True)
        self.optimizer.step()
