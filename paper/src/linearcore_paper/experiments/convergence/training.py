"""Timed training of a linear tagger: methods, implementations of a step ("paths"), tuning and error curves.

Measured time includes sampling the order and the candidates, gradients and updates. It excludes decoding for evaluation, and
compiling, which is reported separately.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from linearcore.heads import ChainCRF, ChainSSVM, LinearCoreChain
from linearcore.proposals import Uniform
from linearcore.surrogates import LinearCore
from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.convergence.data import Chains, Task, hamming_error
from linearcore_paper.experiments.convergence.explicit_steps import (
    Parameters,
    Step,
    all_candidates,
    random_field,
    sampled,
    structured_svm,
)

Head = ChainSSVM | ChainCRF | LinearCoreChain
#: Samples per step, in all methods that sample.
SAMPLES = 20
#: A path is timed in rounds of `ROUND_STEPS` steps: one for warm-up and at least `MIN_ROUNDS` more.
ROUND_STEPS, MIN_ROUNDS = 20, 3


@dataclass(frozen=True)
class Method:
    """A training method.

    Attributes:
        label: name in the figure.
        head: maps a number of tags to a head.
        explicit: maps a sequence length to a step with explicit gradients; None if there is none.
        draws: what is sampled: "nothing", "tags" (candidates shared by all positions) or "sequences".
    """

    label: str
    head: Callable[[int], Head]
    explicit: Callable[[int], Step] | None = None
    draws: str = "nothing"


METHODS: dict[str, Method] = {
    "logodds": Method(
        "LC log-odds, all tags", lambda n: LinearCoreChain(n), lambda length: all_candidates(LinearCore(), "logodds")
    ),
    "pairwise": Method(
        "LC sum, all tags",
        lambda n: LinearCoreChain(n, form="pairwise", normalize=False),
        lambda length: all_candidates(LinearCore(), "pairwise"),
    ),
    "sampled-logodds": Method(
        "LC log-odds, 20 sampled", lambda n: LinearCoreChain(n), lambda length: sampled(LinearCore(), "logodds"), "tags"
    ),
    "sampled-pairwise": Method(
        "LC sum, 20 sampled",
        lambda n: LinearCoreChain(n, form="pairwise", normalize=False),
        lambda length: sampled(LinearCore(), "pairwise"),
        "tags",
    ),
    "sequences": Method("Algorithm 1, corrected", lambda n: LinearCoreChain(n), None, "sequences"),
    "ssvm": Method("SSVM", lambda n: ChainSSVM(n), structured_svm),
    "crf": Method("CRF", lambda n: ChainCRF(n), random_field),
}


class Path(Protocol):
    """A tagger with a training step."""

    def step(self, inputs: Tensor, tags: Tensor) -> None:
        """Performs one SGD step on a batch (L, B, d), (L, B)."""

    def parameters(self) -> Parameters:
        """Returns the current parameters."""


class HeadPath:
    """A tagger that uses the library's head, autograd and torch.optim.SGD."""

    def __init__(self, method: Method, task: Task, rate: float, seed: int) -> None:
        num_tags, inputs = task.model.embeddings.shape
        self._method, device = method, task.train.tags.device
        with torch.random.fork_rng(devices=[]):  # Constructors of modules use torch's global random state.
            self._layer, self._head = nn.Linear(inputs, num_tags).to(device), method.head(num_tags).to(device)
        self._head.validate = False
        for parameter in self._all():
            nn.init.zeros_(parameter)
        self._optimizer = torch.optim.SGD(self._all(), lr=rate)
        self._stream = torch.Generator(device).manual_seed(seed)

    def step(self, inputs: Tensor, tags: Tensor) -> None:
        """See `Path`."""
        self._loss(inputs, tags).backward()
        self._optimizer.step()
        self._optimizer.zero_grad()

    def _loss(self, inputs: Tensor, tags: Tensor) -> Tensor:
        head, draw = self._head, {"num_samples": SAMPLES, "generator": self._stream, "reduction": "mean"}
        if self._method.draws == "nothing":
            loss: Tensor = -head(self._layer(inputs), tags, reduction="mean")
            return loss
        assert isinstance(head, LinearCoreChain)
        if self._method.draws == "tags":
            return head.sampled_loss(inputs, self._layer, tags, proposal=Uniform(), sparse=True, **draw)  # type: ignore[arg-type]
        return head.structured(self._layer(inputs), tags, form="sum", **draw)  # type: ignore[arg-type]

    def parameters(self) -> Parameters:
        """See `Path`."""
        return Parameters(*(parameter.detach() for parameter in self._all()))

    def _all(self) -> list[nn.Parameter]:
        """Returns the parameters in the order of `Parameters`."""
        layer, head = self._layer, self._head
        return [layer.weight, layer.bias, head.start_transitions, head.transitions, head.end_transitions]  # type: ignore[list-item]


class ExplicitPath:
    """A tagger with explicit gradients; `step` may be compiled."""

    def __init__(self, step: Step, draws: bool, task: Task, rate: float, seed: int) -> None:
        num_tags, inputs = task.model.embeddings.shape
        device = task.train.tags.device
        self._step, self._draws, self._num_tags = step, draws, num_tags
        self._now = Parameters.zeros(num_tags, inputs, str(device))
        self._rate = torch.tensor(rate, device=device)
        self._stream = torch.Generator(device).manual_seed(seed)

    def step(self, inputs: Tensor, tags: Tensor) -> None:
        """See `Path`."""
        candidates = None
        if self._draws:
            candidates = torch.randint(self._num_tags, (1, SAMPLES), device=tags.device, generator=self._stream)[0]
        self._step(self._now, inputs, tags, self._rate, candidates)

    def parameters(self) -> Parameters:
        """See `Path`."""
        return self._now


#: Maps (learning rate, seed) to a tagger before training.
MakePath = Callable[[float, int], Path]


@dataclass(frozen=True)
class Route:
    """The fastest path of a method at a batch size.

    Attributes:
        make: makes a new tagger on that path.
        batch: sequences per step.
        name: "head", "explicit" or "compiled".
        seconds: seconds per step, by path.
        compiling: seconds to compile, nearly 0 if compiled before in this process; None if nothing was compiled.
        why_not: reason why nothing was compiled, or an empty string.
    """

    make: MakePath
    batch: int
    name: str
    seconds: dict[str, float]
    compiling: float | None
    why_not: str

    @property
    def pace(self) -> float:
        """Seconds per step."""
        return self.seconds[self.name]

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values."""
        compiling = None if self.compiling is None else round_values(self.compiling, 3)
        seconds = {name: round_values(value, 4) for name, value in self.seconds.items()}
        values = {"path": self.name, "seconds_a_step": seconds, "compile_seconds": compiling}
        return values | ({"not_compiled": self.why_not} if self.why_not else {})


def find_route(method: Method, task: Task, batch: int, *, compiled: bool) -> Route:
    """Times all paths of a method and returns the fastest."""
    makes: dict[str, MakePath] = {"head": lambda rate, seed: HeadPath(method, task, rate, seed)}
    compiling, why_not = None, "" if compiled else "not compiled at this scale"
    if method.explicit is not None:
        draws, step = method.draws == "tags", method.explicit(len(task.train.tags))
        makes["explicit"] = lambda rate, seed: ExplicitPath(step, draws, task, rate, seed)
        if compiled:
            compiled_step: Step = torch.compile(step, dynamic=False)
            started = time.perf_counter()
            try:
                ExplicitPath(compiled_step, draws, task, 0.01, 0).step(*next(batches(task.train, batch, 0)))
                compiling = time.perf_counter() - started
                makes["compiled"] = lambda rate, seed: ExplicitPath(compiled_step, draws, task, rate, seed)
            except Exception as error:  # A missing or broken compiler can raise any exception.
                why_not = f"the compiler failed: {type(error).__name__}"
    elif compiled:
        why_not = "this method has no step to compile"
    timing_seconds = 0.3 if compiled else 0.02
    seconds = {name: _pace(make(0.01, 0), task.train, batch, timing_seconds) for name, make in makes.items()}
    best = min(seconds, key=lambda name: seconds[name])
    return Route(makes[best], batch, best, seconds, compiling, why_not)


def batches(chains: Chains, batch: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields batches of endless epochs, each in a new random order; an incomplete last batch is dropped."""
    stream, device = torch.Generator().manual_seed(seed), chains.tags.device
    while True:
        order = torch.randperm(len(chains), generator=stream)[: len(chains) // batch * batch].to(device)
        # Batches are contiguous in memory: for the fastest steps, gathering them would take much of the time.
        parts = (part[:, order].unflatten(1, (-1, batch)).transpose(0, 1) for part in (chains.inputs, chains.tags))
        yield from zip(*(part.contiguous().unbind(0) for part in parts), strict=True)


def _pace(path: Path, chains: Chains, batch: int, seconds: float) -> float:
    """Returns seconds per step: the minimum over rounds, since other processes can only slow a step down."""
    device, supply = chains.tags.device, list(islice(batches(chains, batch, 0), ROUND_STEPS))
    rounds: list[float] = []
    while len(rounds) < 1 + MIN_ROUNDS or sum(rounds[1:]) < seconds:
        started = _now(device)
        for inputs, tags in supply:
            path.step(inputs, tags)
        rounds.append(_now(device) - started)
    return min(rounds[1:]) / ROUND_STEPS


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def train(route: Route, task: Task, rate: float, marks: Sequence[int], seed: int, on: Chains) -> dict[str, list[float]]:
    """Trains until the last of `marks` (increasing numbers of steps) and decodes the sequences `on` at each of them.

    Returns:
        Lists of steps, seconds of training and errors.
    """
    path, supply = route.make(rate, seed), batches(task.train, route.batch, seed)
    device, done, seconds = task.train.tags.device, 0, 0.0
    curve: dict[str, list[float]] = {"step": [], "seconds": [], "error": []}
    for mark in marks:
        started = _now(device)
        for _ in range(mark - done):
            path.step(*next(supply))
        seconds, done = seconds + _now(device) - started, mark
        for key, value in (
            ("step", mark),
            ("seconds", round_values(seconds, 5)),
            ("error", round_values(error_of(path, on), 5)),
        ):
            curve[key].append(value)
    return curve


@torch.no_grad()
def error_of(path: Path, chains: Chains) -> float:
    """Returns the fraction of wrong tags of exact decoding; 1 if a parameter is not finite."""
    now = path.parameters()
    if not all(bool(part.isfinite().all()) for part in now):
        return 1.0
    head = ChainCRF(len(now.bias), validate=False).to(now.bias.device)
    for parameter, value in zip(
        (head.start_transitions, head.transitions, head.end_transitions), (now.start, now.transitions, now.end), strict=True
    ):
        parameter.copy_(value)
    return hamming_error(head.viterbi(chains.inputs @ now.weight.t() + now.bias)[0], chains.tags)


def tune(routes: Sequence[Route], task: Task, rates: Sequence[float], seconds: float, seed: int) -> list[dict[str, Any]]:
    """Returns validation errors of all batch sizes and learning rates, each after about `seconds` of training."""
    rows = []
    for route in routes:
        count = max(1, round(seconds / route.pace))
        for rate in rates:
            error = train(route, task, rate, [count], seed, task.validation)["error"][-1]
            rows.append({"batch": route.batch, "rate": rate, "steps": count, "validation_error": error})
    return rows


def chosen(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the row with the lowest validation error; the first one on ties."""
    return min(rows, key=lambda row: float(row["validation_error"]))


def marks_until(last: int, count: int) -> list[int]:
    """Returns numbers of steps, evenly spaced on a log scale, from 1/200 of the last one to the last one."""
    return sorted({max(1, round(step)) for step in np.geomspace(max(1, last / 200), last, count)})


def reached(curve: dict[str, list[float]], target: float) -> float | None:
    """Returns the seconds until the error was first at most `target`; None if it never was."""
    pairs = zip(curve["seconds"], curve["error"], strict=True)
    return next((seconds for seconds, error in pairs if error <= target), None)
