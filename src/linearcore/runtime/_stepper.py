"""How training steps run: as CUDA graphs on a GPU, in half precision, on one core."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

import torch
from torch import Tensor

#: Eager steps of a shape before it is captured: libraries choose their algorithms in them.
WARM_UP = 3


@dataclass
class _Captured:
    """The graphs of one shape, and the tensors that they read and write."""

    inputs: dict[str, Tensor]
    loss: Tensor
    backward: torch.cuda.CUDAGraph
    update: torch.cuda.CUDAGraph | None

    def copy_in(self, inputs: dict[str, Tensor]) -> None:
        for name, tensor in inputs.items():
            self.inputs[name].copy_(tensor, non_blocking=True)


class GraphStepper:
    """Repeats a training step. On a GPU, each shape of inputs is captured as a CUDA graph after a few eager steps.

    Tensors that live on from one step to the next (parameters, momentum, counters) must stay where they are. Random numbers
    have to come from torch's own generator of the device; they go on from one replay to the next. A step that waits for the
    device, for example to read a number, cannot be captured: a warning names the line, and all steps are eager from then on.
    Inputs should have few shapes, so that each comes back often.

    Args:
        backward: called with the inputs of `step`; clears gradients, computes new ones, and returns the detached loss.
        update: uses the gradients.
        device: where everything lies.
        captured: use CUDA graphs; None does so if `device` is a CUDA device.
        stream: to warm up and capture on; None makes one. Graphs are replayed on the current stream.
        redo_nonfinite: if the loss of a graph is not finite, call `backward` again outside of it before the update. For
            losses that fall back to another method after a look at their numbers. Every step waits for the device then, and
            `backward` must write gradients to the place where they were (`zero_grad(set_to_none=False)`).

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = torch.optim.SGD([weight], lr=0.1)
        >>> def backward(inputs):
        ...     optimizer.zero_grad()
        ...     loss = (weight * inputs).sum()
        ...     loss.backward()
        ...     return loss.detach()
        >>> stepper = GraphStepper(backward, optimizer.step, "cpu")
        >>> [float(stepper.step(inputs=torch.ones(2))) for _ in range(2)]
        [2.0, 1.8]
    """

    def __init__(
        self,
        backward: Callable[..., Tensor],
        update: Callable[[], object],
        device: torch.device | str,
        *,
        captured: bool | None = None,
        stream: torch.cuda.Stream | None = None,
        redo_nonfinite: bool = False,
    ) -> None:
        self._backward, self._update, self._redo = backward, update, redo_nonfinite
        self._device = torch.device(device)
        self.is_captured = self._device.type == "cuda" if captured is None else captured
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._graphs: dict[tuple[object, ...], _Captured] = {}
        if self.is_captured:
            self._stream = torch.cuda.Stream(self._device) if stream is None else stream
            self._pool = torch.cuda.graph_pool_handle()

    def step(self, **inputs: Tensor) -> Tensor:
        """Does one step and returns its loss, without waiting for the device."""
        if not self.is_captured:
            return self._plain(inputs)
        key = tuple((name, tensor.shape, tensor.dtype) for name, tensor in inputs.items())
        self._seen[key] += 1
        if self._seen[key] <= WARM_UP:
            # A look at the loss is expected where it may be computed again, and libraries may wait in their first steps.
            return self._warm_up(inputs, is_watched=self._seen[key] == WARM_UP and not self._redo)
        if key not in self._graphs:
            self._graphs[key] = self._capture(inputs)
        return self._replay(self._graphs[key], inputs)

    def _plain(self, inputs: dict[str, Tensor]) -> Tensor:
        loss = self._backward(**inputs)
        self._update()
        return loss

    def _warm_up(self, inputs: dict[str, Tensor], is_watched: bool) -> Tensor:
        """A step on the stream that captures later, as CUDA requires."""
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with _waiting_lines(is_watched) as lines, torch.cuda.stream(self._stream):
            loss = self._plain(inputs)
        current.wait_stream(self._stream)
        if lines:
            self.is_captured = False
            why = f"{lines[0]} waits for the device; keep numbers in tensors there, without `float`, `item` or `bool`"
            warnings.warn(f"steps are slower without CUDA graphs, since {why}", stacklevel=3)
        return loss

    def _capture(self, inputs: dict[str, Tensor]) -> _Captured:
        static = {name: tensor.clone() for name, tensor in inputs.items()}
        backward, update = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph() if self._redo else None
        with torch.cuda.device(self._device):
            with torch.cuda.graph(backward, pool=self._pool, stream=self._stream):
                loss = self._plain(static) if update is None else self._backward(**static)
            if update is not None:
                with torch.cuda.graph(update, pool=self._pool, stream=self._stream):
                    self._update()
        return _Captured(static, loss, backward, update)

    def _replay(self, graph: _Captured, inputs: dict[str, Tensor]) -> Tensor:
        graph.copy_in(inputs)
        graph.backward.replay()
        if graph.update is not None:
            if not math.isfinite(float(graph.loss)):
                graph.loss.copy_(self._backward(**inputs))
            graph.update.replay()
        # The next replay of any shape may overwrite it.
        return graph.loss.clone()


@contextmanager
def _waiting_lines(is_watched: bool) -> Iterator[list[str]]:
    """Collects the lines of Python that wait for the device inside, each as FILE:NUMBER, if they are watched."""
    lines: list[str] = []
    if not is_watched:
        yield lines
        return
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lines
        finally:
            torch.cuda.set_sync_debug_mode(before)
    for one in caught:
        if "synchronizing CUDA operation" in str(one.message):
            lines.append(f"{PurePath(one.filename).name}:{one.lineno}")
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def autocast_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """The dtype of autocast for "fp32", "bf16", or "auto", which is bf16 on a GPU that has it; None is no autocast."""
    if precision == "auto":
        precision = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    return torch.bfloat16 if precision == "bf16" else None


@contextmanager
def one_thread() -> Iterator[None]:
    """Computes on one core inside. Small tensors lose more by threads that wait for each other than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
