"""A training step that does not synchronise with the host.

A step reads a counter on the device, selects its batch from the plan of the epoch, trains on it and increments the counter.
So one CUDA graph can be replayed for a whole epoch, also concurrently with the graphs of other runs.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from linearcore.runtime import GraphStepper, autocast_dtype
from linearcore_paper.vision._images import Images
from linearcore_paper.vision._losses import SampleLoss
from linearcore_paper.vision._plan import steps_of
from linearcore_paper.vision._settings import Recipe
from linearcore_paper.vision._views import Normal, as_pixels, crop


class Stepper:
    """Selection, augmentation, forward, backward and update of one batch.

    Args:
        network: network in training mode, on the device of `data`.
        loss: see `SampleLoss`.
        data: training images in the memory format of `Images.to`.
        normal: normalisation of the inputs.
        recipe: learning rate, momentum, weight decay, batch size, loss scale and precision.
        stream: CUDA stream on which steps are captured; the caller makes it the current one.

    Attributes:
        steps: number of steps per epoch.
        counter: (1,) int64, finished steps of this epoch.
        total: (1,) float32, sum of their mean losses.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: SampleLoss,
        data: Images,
        normal: Normal,
        recipe: Recipe,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        device = data.labels.device
        self.network, self.loss, self.normal, self.recipe = network, loss, normal, recipe
        self.steps, self.dtype = steps_of(len(data), recipe), autocast_dtype(recipe.precision, device)
        self._forward = torch.compile(network, dynamic=False) if recipe.compiled else network
        self._pixels, self._labels = as_pixels(data.images), data.labels
        self._plan = torch.zeros(4, self.steps * recipe.batch, dtype=torch.int64, device=device)
        self._lrs = torch.zeros(self.steps, device=device)
        self._batch_offsets = torch.arange(recipe.batch, device=device)
        self._pinned: tuple[Tensor, ...] = ()
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self.total = torch.zeros(1, device=device)
        self._lr = torch.zeros((), device=device)
        self._parameters = list(network.parameters())
        self._optimizer = torch.optim.SGD(
            self._parameters,
            lr=self._lr,
            momentum=recipe.momentum,
            nesterov=recipe.nesterov,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        # Zero buffers give the same first step as missing ones, and `restore` can copy saved values into them.
        self._momentum = [torch.zeros_like(parameter) for parameter in self._parameters] if recipe.momentum else []
        for parameter, momentum in zip(self._parameters, self._momentum, strict=False):
            self._optimizer.state[parameter]["momentum_buffer"] = momentum
        # One memory pool per run, because graphs of several runs are replayed concurrently.
        self._graphs = GraphStepper(self._backward, self._update, device, stream=stream)

    def load(self, plan: Tensor, rates: Tensor) -> None:
        """Loads the plan and the learning rates of an epoch; the counter is not changed."""
        if self.counter.is_cuda:
            # Copies from pinned memory are asynchronous, so the tensors must live until the copy is finished.
            self._pinned = (plan.pin_memory(), rates.pin_memory())
            plan, rates = self._pinned
        self._plan.copy_(plan, non_blocking=True)
        self._lrs.copy_(rates, non_blocking=True)

    def begin(self) -> None:
        """Resets the counter to the first step of an epoch."""
        self.counter.zero_()
        self.total.zero_()

    def step(self) -> None:
        """Runs the next step of the plan; on a GPU it is only launched."""
        self._graphs.step()

    def state(self) -> dict[str, Tensor]:
        """Returns the full training state as tensors by name, not copied."""
        return {
            **{f"network.{name}": value for name, value in self.network.state_dict().items()},
            **{f"momentum.{index}": value for index, value in enumerate(self._momentum)},
            **{f"loss.{name}": value for name, value in self.loss.state().items()},
            "counter": self.counter,
            "total": self.total,
        }

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Copies saved values into the tensors of `state`, which the graphs read."""
        with torch.no_grad():
            for name, value in self.state().items():
                value.copy_(saved[name])

    def _backward(self) -> Tensor:
        recipe = self.recipe
        self._optimizer.zero_grad(set_to_none=True)
        batch = self._plan.index_select(1, self.counter * recipe.batch + self._batch_offsets)
        self._lr.copy_(self._lrs.index_select(0, self.counter).squeeze(0))
        inputs = self.normal(crop(self._pixels, *batch.unbind(0)))
        with _fastest_convolutions(inputs.is_cuda):
            with autocast(inputs.device, self.dtype):
                scores = self._forward(inputs)
            loss = self.loss(scores.float(), self._labels.index_select(0, batch[0]), batch[0])
            (loss * recipe.loss_scale).backward()
        self.counter += 1
        self.total += loss.detach()
        return loss.detach()

    def _update(self) -> None:
        self._align()
        self._optimizer.step()

    def _align(self) -> None:
        """Gives gradients the strides of their parameters: they may differ in dimensions of size 1, and fused SGD checks."""
        for parameter in self._parameters:
            if parameter.grad is not None and parameter.grad.stride() != parameter.stride():
                parameter.grad = parameter.grad.as_strided(parameter.shape, parameter.stride())


def autocast(device: torch.device, dtype: torch.dtype | None) -> torch.autocast:
    """Returns an autocast context; None disables it. Without a cache, whose copies a graph would not update."""
    return torch.autocast(device.type, dtype or torch.bfloat16, enabled=dtype is not None, cache_enabled=False)


@contextmanager
def _fastest_convolutions(is_cuda: bool) -> Iterator[None]:
    """Lets cuDNN benchmark its algorithms, because shapes never change."""
    old_value = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = is_cuda or old_value
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = old_value
