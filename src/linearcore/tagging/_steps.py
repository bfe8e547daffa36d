"""Optimizer, learning-rate schedule and training step of a tagger."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from linearcore.runtime import GraphStepper
from linearcore.tagging._corpus import Batch
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._settings import Training

_MOMENTUM = 0.9
#: Key of a parameter group's learning-rate multiplier.
LR_SCALE = "lr_scale"


def make_optimizer(model: TaggingModel, settings: Training) -> torch.optim.Optimizer:
    """Returns AdamW or SGD. On a GPU learning rates are tensors, so captured CUDA graphs use their current values."""
    is_cuda = model.device.type == "cuda"
    options: dict[str, Any] = {"lr": settings.peak_lr, "weight_decay": settings.weight_decay, "fused": True}
    groups = _groups(model, settings.chain_lr_scale)
    if is_cuda:
        for group in groups:
            group["lr"] = torch.tensor(options["lr"] * group[LR_SCALE], device=model.device)
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, momentum=_MOMENTUM, **options)
    return torch.optim.AdamW(groups, capturable=is_cuda, **options)


def _groups(model: TaggingModel, chain_lr_scale: float | None) -> list[dict[str, Any]]:
    """Returns parameter groups: one for all parameters, or two if the chain has its own learning-rate multiplier."""
    if chain_lr_scale is None or model.head is None:
        return [{"params": list(model.parameters()), LR_SCALE: 1.0}]
    chain = list(model.head.parameters())
    chain_ids = {id(parameter) for parameter in chain}
    others = [parameter for parameter in model.parameters() if id(parameter) not in chain_ids]
    return [{"params": others, LR_SCALE: 1.0}, {"params": chain, LR_SCALE: chain_lr_scale}]


def lr_at(step: int, steps: int, settings: Training) -> float:
    """Returns the learning rate of a step, counted from 0: linear warm-up, then linear decay to zero."""
    warmup_steps = max(1, round(settings.warmup * steps))
    if step < warmup_steps:
        return settings.peak_lr * (step + 1) / warmup_steps
    return settings.peak_lr * max(0.0, (steps - step) / max(1, steps - warmup_steps))


class Stepper:
    """Training step: forward, backward, gradient clipping and optimizer update of one batch.

    Args:
        model: the model to train.
        optimizer: its optimizer, from `make_optimizer`.
        clip: maximum norm of the gradient.
        dtype: dtype of autocast; None computes in float32.
        compiled: use torch.compile for the loss. The encoder is not compiled, because an LSTM gains little from it.
        captured: replay steps as CUDA graphs with `linearcore.runtime.GraphStepper`; requires batches with few shapes.
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
            model.device,
            use_graphs=captured,
            redo_nonfinite=model.head is not None and model.head.may_underflow,
        )

    def step(self, batch: Batch, lr: float) -> Tensor:
        """Runs one step and returns the mean loss per tag, without synchronising with the GPU."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr * group[LR_SCALE])
            else:
                group["lr"] = lr * group[LR_SCALE]
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
        # All CUDA graphs write to the same gradient tensors.
        for parameter in self.model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.optimizer.zero_grad(set_to_none=False)

    def _update(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, foreach=True)
        self.optimizer.step()
