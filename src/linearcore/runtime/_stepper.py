"""Training steps as CUDA graphs, the dtype of autocast, and single-threaded execution."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

import torch
from torch import Tensor

#: Number of eager steps per input shape before capture; libraries select their algorithms during these steps.
WARM_UP = 3


@dataclass
class _StepGraph:
    """The CUDA graphs of one input shape, and the tensors that they read and write."""

    inputs: dict[str, Tensor]
    loss: Tensor
    backward: torch.cuda.CUDAGraph
    update: torch.cuda.CUDAGraph | None

    def copy_in(self, inputs: dict[str, Tensor]) -> None:
        for name, tensor in inputs.items():
            self.inputs[name].copy_(tensor, non_blocking=True)


class GraphStepper:
    """Runs training steps. On a GPU, each input shape is captured as a CUDA graph after a few eager steps.

    Tensors that persist between steps (parameters, momentum, counters) must keep their storage. Random numbers must come
    from torch's default generator of the device; each replay draws new ones. A step that synchronises with the GPU, for
    example to read a number, cannot be captured: a warning names the line, and all later steps are eager. Use few input
    shapes, so that each graph is replayed often.

    Args:
        backward: called with the inputs of `step`; clears gradients, computes new ones, and returns the detached loss.
        update: applies the gradients, for example `optimizer.step`.
        device: device of all tensors.
        use_graphs: use CUDA graphs; None does so if `device` is a CUDA device.
        stream: stream for warm-up and capture; None makes one. Graphs are replayed on the current stream.
        redo_nonfinite: if the loss of a graph is not finite, call `backward` again without the graph before the update. Use
            it for losses with a fallback for non-finite values. Every step then synchronises with the GPU, and
            `backward` must keep the gradient tensors (`zero_grad(set_to_none=False)`).

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
        use_graphs: bool | None = None,
        stream: torch.cuda.Stream | None = None,
        redo_nonfinite: bool = False,
    ) -> None:
        self._backward, self._update, self._redo = backward, update, redo_nonfinite
        self._device = torch.device(device)
        self.uses_graphs = self._device.type == "cuda" if use_graphs is None else use_graphs
        self._step_counts: Counter[tuple[object, ...]] = Counter()
        self._graphs: dict[tuple[object, ...], _StepGraph] = {}
        if self.uses_graphs:
            self._stream = torch.cuda.Stream(self._device) if stream is None else stream
            self._pool = torch.cuda.graph_pool_handle()

    def step(self, **inputs: Tensor) -> Tensor:
        """Runs one step and returns its loss without synchronising with the GPU."""
        if not self.uses_graphs:
            return self._eager_step(inputs)
        key = tuple((name, tensor.shape, tensor.dtype) for name, tensor in inputs.items())
        self._step_counts[key] += 1
        if self._step_counts[key] <= WARM_UP:
            # `redo_nonfinite` synchronises anyway, and libraries may synchronise in the first steps.
            return self._warm_up(inputs, check_sync=self._step_counts[key] == WARM_UP and not self._redo)
        if key not in self._graphs:
            self._graphs[key] = self._capture(inputs)
        return self._replay(self._graphs[key], inputs)

    def _eager_step(self, inputs: dict[str, Tensor]) -> Tensor:
        loss = self._backward(**inputs)
        self._update()
        return loss

    def _warm_up(self, inputs: dict[str, Tensor], check_sync: bool) -> Tensor:
        """Runs one eager step on the stream of the later capture, as CUDA requires."""
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with _synchronizing_lines(check_sync) as lines, torch.cuda.stream(self._stream):
            loss = self._eager_step(inputs)
        current.wait_stream(self._stream)
        if lines:
            self.uses_graphs = False
            reason = f"{lines[0]} synchronises with the GPU; use tensors there, without `float`, `item` or `bool`"
            warnings.warn(f"steps are slower without CUDA graphs, because {reason}", stacklevel=3)
        return loss

    def _capture(self, inputs: dict[str, Tensor]) -> _StepGraph:
        static = {name: tensor.clone() for name, tensor in inputs.items()}
        backward, update = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph() if self._redo else None
        with torch.cuda.device(self._device):
            with torch.cuda.graph(backward, pool=self._pool, stream=self._stream):
                loss = self._eager_step(static) if update is None else self._backward(**static)
            if update is not None:
                with torch.cuda.graph(update, pool=self._pool, stream=self._stream):
                    self._update()
        return _StepGraph(static, loss, backward, update)

    def _replay(self, graph: _StepGraph, inputs: dict[str, Tensor]) -> Tensor:
        graph.copy_in(inputs)
        graph.backward.replay()
        if graph.update is not None:
            if not math.isfinite(float(graph.loss)):
                graph.loss.copy_(self._backward(**inputs))
            graph.update.replay()
        # All graphs share a memory pool: the next replay may overwrite the loss.
        return graph.loss.clone()


@contextmanager
def _synchronizing_lines(check_sync: bool) -> Iterator[list[str]]:
    """Collects the Python lines inside the context that synchronise with the GPU, as FILE:NUMBER, if `check_sync`."""
    lines: list[str] = []
    if not check_sync:
        yield lines
        return
    old_mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lines
        finally:
            torch.cuda.set_sync_debug_mode(old_mode)
    for warning in messages:
        if "synchronizing CUDA operation" in str(warning.message):
            lines.append(f"{PurePath(warning.filename).name}:{warning.lineno}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def autocast_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """Returns the autocast dtype for "fp32", "bf16" or "auto" (bf16 on GPUs that support it); None means no autocast."""
    if precision == "auto":
        precision = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    return torch.bfloat16 if precision == "bf16" else None


@contextmanager
def one_thread() -> Iterator[None]:
    """Sets torch to one thread inside the context. With small tensors, several threads are slower."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
