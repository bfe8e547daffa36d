"""One training step, eager or as CUDA graphs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from linearcore.tagging._corpus import Batch
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._settings import Training

#: Eager steps of a shape before it is recorded: libraries choose their algorithms in them.
_WARM_UP = 3
_MOMENTUM = 0.9
#: What the optimiser calls a group's factor of the rate.
SHARE = "share"


def make_optimizer(model: TaggingModel, settings: Training) -> torch.optim.Optimizer:
    """AdamW or SGD. On a GPU rates are tensors, so that recorded steps see them change."""
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


@dataclass
class Stepper:
    """Forward, backward, clipping and update of one batch.

    Args:
        model, optimizer: what is trained, and how.
        clip: the largest norm of a gradient.
        dtype: of autocast; None computes in float32.
        compiled: let torch.compile make the loss faster. Not the encoder, where it has little to gain from an LSTM.
    """

    model: TaggingModel
    optimizer: torch.optim.Optimizer
    clip: float
    dtype: torch.dtype | None = None
    compiled: bool = False

    def __post_init__(self) -> None:
        self._loss: Callable[..., Tensor] = torch.compile(self.model.loss) if self.compiled else self.model.loss

    def step(self, batch: Batch, rate: float) -> Tensor:
        """Does it, and gives the mean loss of a tag, without waiting for the device."""
        self._set_rate(rate)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._backward(batch)
        self._update()
        return loss

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * group[SHARE])
            else:
                group["lr"] = rate * group[SHARE]

    def _backward(self, batch: Batch) -> Tensor:
        device = batch.mask.device.type
        with torch.autocast(device, self.dtype or torch.bfloat16, enabled=self.dtype is not None):
            loss = self._loss(self.model.encoder(batch.mask, **batch.inputs), batch.mask, batch.tags)
        loss.backward()
        return loss.detach()

    def _update(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, foreach=True)
        self.optimizer.step()


@dataclass
class _Recorded:
    """A shape's own tensors, and the graphs that read them."""

    batch: Batch
    loss: Tensor
    backward: torch.cuda.CUDAGraph
    update: torch.cuda.CUDAGraph


class GraphStepper(Stepper):
    """The same with CUDA graphs: a shape of batch that has been seen a few times is recorded, and then takes two launches.

    It wants batches of few shapes, so that each comes back often.
    """

    def __init__(
        self,
        model: TaggingModel,
        optimizer: torch.optim.Optimizer,
        clip: float,
        dtype: torch.dtype | None,
        compiled: bool = False,
    ) -> None:
        super().__init__(model, optimizer, clip, dtype, compiled)
        self._seen: dict[tuple[int, ...], int] = {}
        self._recorded: dict[tuple[int, ...], _Recorded] = {}
        self._stream = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()
        self._may_underflow = model.head is not None and model.head.may_underflow

    def step(self, batch: Batch, rate: float) -> Tensor:
        """As `Stepper.step`."""
        self._set_rate(rate)
        # Sub-words have a shape of their own.
        key = tuple(size for tensor in _tensors(batch) for size in tensor.shape)
        self._seen[key] = self._seen.get(key, 0) + 1
        if key not in self._recorded:
            if self._seen[key] <= _WARM_UP:
                return self._eager(batch)
            self._recorded[key] = self._record(batch)
        recorded = self._recorded[key]
        for static, new in zip(_tensors(recorded.batch), _tensors(batch), strict=True):
            static.copy_(new, non_blocking=True)
        recorded.backward.replay()
        if self._may_underflow and not math.isfinite(float(recorded.loss)):
            self._clear()
            recorded.loss.copy_(self._backward(batch))
        recorded.update.replay()
        return recorded.loss.clone()

    def _eager(self, batch: Batch) -> Tensor:
        """On the stream that records later, as CUDA wants it."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._clear()
            loss = self._backward(batch)
            self._update()
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def _clear(self) -> None:
        # Gradients stay where they are, since graphs write to that place.
        for parameter in self.model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.optimizer.zero_grad(set_to_none=False)

    def _record(self, batch: Batch) -> _Recorded:
        static = Batch(
            batch.mask.clone(), {name: tensor.clone() for name, tensor in batch.inputs.items()}, batch.tags.clone()
        )
        torch.cuda.synchronize()
        backward, update = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(backward, pool=self._pool, stream=self._stream):
            self._clear()
            loss = self._backward(static)
        with torch.cuda.graph(update, pool=self._pool, stream=self._stream):
            self._update()
        return _Recorded(static, loss, backward, update)


def _tensors(batch: Batch) -> list[Tensor]:
    return [batch.mask, batch.tags, *(batch.inputs[name] for name in sorted(batch.inputs))]
