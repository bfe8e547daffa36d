"""One training step that needs nothing from the host.

A step reads a counter on the device, takes its part of the epoch's plan, does the work and raises the counter. So a graph
can be replayed for a whole epoch, and those of several runs side by side, and the host only has to launch it.
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
from linearcore_paper.vision._views import Normal, as_pixels, cropped


class Stepper:
    """Gather, augmentation, forward, backward and update of one batch.

    Args:
        network: in training mode, on the device of `data`.
        loss: see `SampleLoss`.
        data: the training images, as `Images.to` lays them out.
        normal: mean and deviation of their channels.
        recipe: rate, momentum, decay, batch, loss scale, precision.
        stream: of a CUDA device, where steps are captured; the caller makes it the current one.

    Attributes:
        steps: of an epoch.
        counter: (1,) int64, steps of this epoch that are done.
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
        self._rates = torch.zeros(self.steps, device=device)
        self._places = torch.arange(recipe.batch, device=device)
        self._staged: tuple[Tensor, ...] = ()
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self.total = torch.zeros(1, device=device)
        self._rate = torch.zeros((), device=device)
        self._parameters = list(network.parameters())
        self._optimizer = torch.optim.SGD(
            self._parameters,
            lr=self._rate,
            momentum=recipe.momentum,
            nesterov=recipe.nesterov,
            weight_decay=recipe.decay,
            fused=True,
        )
        # From zero the first step is the same as from none at all, and a saved run finds a place for what it has.
        self._momentum = [torch.zeros_like(parameter) for parameter in self._parameters] if recipe.momentum else []
        for parameter, momentum in zip(self._parameters, self._momentum, strict=False):
            self._optimizer.state[parameter]["momentum_buffer"] = momentum
        # One for each run, whose memory is its own: the graphs of several runs are replayed together.
        self._graphs = GraphStepper(self._backward, self._update, device, stream=stream)

    def load(self, plan: Tensor, rates: Tensor) -> None:
        """Takes an epoch's plan and rates; the counter stays."""
        if self.counter.is_cuda:
            # From pinned memory the copy waits for nothing; it has to stay until the copy is done.
            self._staged = (plan.pin_memory(), rates.pin_memory())
            plan, rates = self._staged
        self._plan.copy_(plan, non_blocking=True)
        self._rates.copy_(rates, non_blocking=True)

    def begin(self) -> None:
        """Back to the first step of an epoch."""
        self.counter.zero_()
        self.total.zero_()

    def step(self) -> None:
        """Does the next step of the plan, or asks the device to."""
        self._graphs.step()

    def state(self) -> dict[str, Tensor]:
        """Everything that decides how the run goes on: live tensors, by name."""
        return {
            **{f"network.{name}": value for name, value in self.network.state_dict().items()},
            **{f"momentum.{place}": value for place, value in enumerate(self._momentum)},
            **{f"loss.{name}": value for name, value in self.loss.state().items()},
            "counter": self.counter,
            "total": self.total,
        }

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Puts values back into the tensors of `state`, where graphs look for them."""
        with torch.no_grad():
            for name, value in self.state().items():
                value.copy_(saved[name])

    def _backward(self) -> Tensor:
        recipe = self.recipe
        self._optimizer.zero_grad(set_to_none=True)
        part = self._plan.index_select(1, self.counter * recipe.batch + self._places)
        self._rate.copy_(self._rates.index_select(0, self.counter).squeeze(0))
        inputs = self.normal(cropped(self._pixels, *part.unbind(0)))
        with _fastest_convolutions(inputs.is_cuda):
            with autocast(inputs.device, self.dtype):
                scores = self._forward(inputs)
            loss = self.loss(scores.float(), self._labels.index_select(0, part[0]), part[0])
            (loss * recipe.loss_scale).backward()
        self.counter += 1
        self.total += loss.detach()
        return loss.detach()

    def _update(self) -> None:
        self._align()
        self._optimizer.step()

    def _align(self) -> None:
        """The stride of a side of length 1 means nothing, but fused updates compare it."""
        for parameter in self._parameters:
            if parameter.grad is not None and parameter.grad.stride() != parameter.stride():
                parameter.grad = parameter.grad.as_strided(parameter.shape, parameter.stride())


def autocast(device: torch.device, dtype: torch.dtype | None) -> torch.autocast:
    """Half precision inside; None leaves it out. Without a cache, whose copies a graph would not make anew."""
    return torch.autocast(device.type, dtype or torch.bfloat16, enabled=dtype is not None, cache_enabled=False)


@contextmanager
def _fastest_convolutions(is_cuda: bool) -> Iterator[None]:
    """Lets cuDNN try its algorithms: shapes never change here."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = is_cuda or before
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
