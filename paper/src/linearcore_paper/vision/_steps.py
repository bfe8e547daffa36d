"""One training step, eager or as one CUDA graph, without anything from the host.

A step reads a counter on the device, takes its part of the epoch's plan, does the work and raises the counter. So a graph
can be replayed for a whole epoch, and those of several runs side by side, and the host has only to ask for it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from linearcore_paper.vision._images import Images
from linearcore_paper.vision._losses import SampleLoss
from linearcore_paper.vision._plan import steps_of
from linearcore_paper.vision._settings import Recipe
from linearcore_paper.vision._views import Normal, as_pixels, cropped

#: Eager steps before one is recorded: libraries choose their algorithms in them.
_WARM_UP = 3


class Stepper:
    """Gather, augmentation, forward, backward and update of one batch.

    Args:
        network: in training mode, on the device of `data`.
        loss: see `SampleLoss`.
        data: the training images, as `Images.to` lays them out.
        normal: mean and deviation of their channels.
        recipe: rate, momentum, decay, batch, loss scale, precision.

    Attributes:
        steps: of an epoch.
        counter: (1,) int64, steps of this epoch that are done.
        total: (1,) float32, sum of their mean losses.
    """

    def __init__(self, network: nn.Module, loss: SampleLoss, data: Images, normal: Normal, recipe: Recipe) -> None:
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

    def prepare(self) -> None:
        """What has to be done once before the first step."""

    def step(self) -> None:
        """Does the next step of the plan, or asks the device to."""
        self._one()

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

    def _one(self) -> None:
        recipe = self.recipe
        self._optimizer.zero_grad(set_to_none=True)
        part = self._plan.index_select(1, self.counter * recipe.batch + self._places)
        self._rate.copy_(self._rates.index_select(0, self.counter).squeeze(0))
        inputs = self.normal(cropped(self._pixels, *part.unbind(0)))
        with autocast(inputs.device, self.dtype):
            scores = self._forward(inputs)
        loss = self.loss(scores.float(), self._labels.index_select(0, part[0]), part[0])
        (loss * recipe.loss_scale).backward()
        self._align()
        self._optimizer.step()
        self.counter += 1
        self.total += loss.detach()

    def _align(self) -> None:
        """The stride of a side of length 1 means nothing, but fused updates compare it."""
        for parameter in self._parameters:
            if parameter.grad is not None and parameter.grad.stride() != parameter.stride():
                parameter.grad = parameter.grad.as_strided(parameter.shape, parameter.stride())


class GraphStepper(Stepper):
    """The same as one CUDA graph, replayed on a stream of its own."""

    def __init__(
        self,
        network: nn.Module,
        loss: SampleLoss,
        data: Images,
        normal: Normal,
        recipe: Recipe,
        stream: torch.cuda.Stream,
    ) -> None:
        super().__init__(network, loss, data, normal, recipe)
        self._stream = stream
        self._graph: torch.cuda.CUDAGraph | None = None

    def prepare(self) -> None:
        """Warms up, records a step, and puts everything back as it was."""
        if self._graph is not None:
            return
        with torch.cuda.stream(self._stream), _fastest_convolutions():
            saved = {name: value.clone() for name, value in self.state().items()}
            for _ in range(_WARM_UP):
                self.counter.zero_()
                self._one()
        torch.cuda.synchronize(self.counter.device)
        graph = torch.cuda.CUDAGraph()
        self.counter.zero_()
        # Each graph keeps its memory to itself, since those of several runs are at work together.
        with _fastest_convolutions(), torch.cuda.graph(graph, stream=self._stream):
            self._one()
        with torch.cuda.stream(self._stream):
            self.restore(saved)
        torch.cuda.synchronize(self.counter.device)
        self._graph = graph

    def step(self) -> None:
        """As `Stepper.step`."""
        self.prepare()
        assert self._graph is not None
        with torch.cuda.stream(self._stream):
            self._graph.replay()


def autocast(device: torch.device, dtype: torch.dtype | None) -> torch.autocast:
    """Half precision inside; None leaves it out. Without a cache, whose copies a graph would not make anew."""
    return torch.autocast(device.type, dtype or torch.bfloat16, enabled=dtype is not None, cache_enabled=False)


def autocast_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """Of a recipe's precision on a device; None is float32."""
    if precision == "auto":
        precision = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    return torch.bfloat16 if precision == "bf16" else None


@contextmanager
def _fastest_convolutions() -> Iterator[None]:
    """Lets cuDNN try its algorithms: shapes never change here."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
