"""Trains a linear tagger in several ways against the clock: the ways, the paths a step can take, tuning, and curves.

Only training counts on the clock: drawing the order and the candidates, gradients and updates; not decoding to see how far
it is, and not compiling, which is reported beside it.
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
from linearcore_paper.experiments._plain import plain
from linearcore_paper.experiments.convergence.data import Chains, Task, wrong_share
from linearcore_paper.experiments.convergence.explicit_steps import (
    Parameters,
    Step,
    all_candidates,
    random_field,
    sampled,
    structured_svm,
)

Head = ChainSSVM | ChainCRF | LinearCoreChain
#: Draws for a step, in all methods that draw.
SAMPLES = 20
#: A path is timed by rounds of so many steps, one to warm it up and at least so many more.
ROUND, ROUNDS = 20, 3


@dataclass(frozen=True)
class Method:
    """A way to train.

    Attributes:
        label: its name in the figure.
        head: the head for a number of tags.
        explicit: its step with gradients written out, for a length of chains; None where there is none.
        draws: "nothing", "tags" (candidates that all sites share) or "sequences".
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
    "sequences": Method("Algorithm 1, mended", lambda n: LinearCoreChain(n), None, "sequences"),
    "ssvm": Method("SSVM", lambda n: ChainSSVM(n), structured_svm),
    "crf": Method("CRF", lambda n: ChainCRF(n), random_field),
}


class Path(Protocol):
    """A tagger that can make steps."""

    def step(self, inputs: Tensor, tags: Tensor) -> None:
        """One step of SGD on a batch (L, B, d), (L, B)."""

    def parameters(self) -> Parameters:
        """Where it is now."""


class HeadPath:
    """Through the library's head, autograd and torch.optim.SGD."""

    def __init__(self, method: Method, task: Task, rate: float, seed: int) -> None:
        num_tags, inputs = task.law.embeddings.shape
        self._method, device = method, task.train.tags.device
        with torch.random.fork_rng(devices=[]):  # Modules draw from torch's own stream when they are made.
            self._layer, self._head = nn.Linear(inputs, num_tags).to(device), method.head(num_tags).to(device)
        self._head.validate = False
        for parameter in self._all():
            nn.init.zeros_(parameter)
        self._optimizer = torch.optim.SGD(self._all(), lr=rate)
        self._stream = torch.Generator(device).manual_seed(seed)

    def step(self, inputs: Tensor, tags: Tensor) -> None:
        """As in `Path`."""
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
        """As in `Path`."""
        return Parameters(*(parameter.detach() for parameter in self._all()))

    def _all(self) -> list[nn.Parameter]:
        """In the order of `Parameters`."""
        layer, head = self._layer, self._head
        return [layer.weight, layer.bias, head.start_transitions, head.transitions, head.end_transitions]  # type: ignore[list-item]


class ExplicitPath:
    """Gradients written out; `step` may be compiled."""

    def __init__(self, step: Step, draws: bool, task: Task, rate: float, seed: int) -> None:
        num_tags, inputs = task.law.embeddings.shape
        device = task.train.tags.device
        self._step, self._draws, self._num_tags = step, draws, num_tags
        self._now = Parameters.zeros(num_tags, inputs, str(device))
        self._rate = torch.tensor(rate, device=device)
        self._stream = torch.Generator(device).manual_seed(seed)

    def step(self, inputs: Tensor, tags: Tensor) -> None:
        """As in `Path`."""
        candidates = None
        if self._draws:
            candidates = torch.randint(self._num_tags, (1, SAMPLES), device=tags.device, generator=self._stream)[0]
        self._step(self._now, inputs, tags, self._rate, candidates)

    def parameters(self) -> Parameters:
        """As in `Path`."""
        return self._now


#: (rate, seed) ↦ a tagger at its start.
MakePath = Callable[[float, int], Path]


@dataclass(frozen=True)
class Route:
    """The fastest path of a method at a batch size.

    Attributes:
        make: a fresh tagger on that path.
        batch: chains a step.
        name: "head", "explicit" or "compiled".
        seconds: of a step, by path.
        compiling: seconds it took to compile, next to none where the process had done so before; None where nothing was.
        why_not: why nothing was compiled, or an empty string.
    """

    make: MakePath
    batch: int
    name: str
    seconds: dict[str, float]
    compiling: float | None
    why_not: str

    @property
    def pace(self) -> float:
        """Seconds a step."""
        return self.seconds[self.name]

    def told(self) -> dict[str, Any]:
        """JSON values."""
        compiling = None if self.compiling is None else plain(self.compiling, 3)
        seconds = {name: plain(value, 4) for name, value in self.seconds.items()}
        told = {"path": self.name, "seconds_a_step": seconds, "compile_seconds": compiling}
        return told | ({"not_compiled": self.why_not} if self.why_not else {})


def find_route(method: Method, task: Task, batch: int, *, compiled: bool) -> Route:
    """Times the paths there are and takes the fastest."""
    makes: dict[str, MakePath] = {"head": lambda rate, seed: HeadPath(method, task, rate, seed)}
    compiling, why_not = None, "" if compiled else "not asked for at this scale"
    if method.explicit is not None:
        draws, step = method.draws == "tags", method.explicit(len(task.train.tags))
        makes["explicit"] = lambda rate, seed: ExplicitPath(step, draws, task, rate, seed)
        if compiled:
            quick: Step = torch.compile(step, dynamic=False)
            started = time.perf_counter()
            try:
                ExplicitPath(quick, draws, task, 0.01, 0).step(*next(batches(task.train, batch, 0)))
                compiling = time.perf_counter() - started
                makes["compiled"] = lambda rate, seed: ExplicitPath(quick, draws, task, rate, seed)
            except Exception as error:  # Whatever a compiler that is not there, or not whole, may raise.
                why_not = f"the compiler gave up: {type(error).__name__}"
    elif compiled:
        why_not = "this method has no step to compile"
    patience = 0.3 if compiled else 0.02
    seconds = {name: _pace(make(0.01, 0), task.train, batch, patience) for name, make in makes.items()}
    best = min(seconds, key=lambda name: seconds[name])
    return Route(makes[best], batch, best, seconds, compiling, why_not)


def batches(chains: Chains, batch: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Epochs without end, each in an order of its own; what does not fill a batch is left out of its epoch."""
    stream, device = torch.Generator().manual_seed(seed), chains.tags.device
    while True:
        order = torch.randperm(len(chains), generator=stream)[: len(chains) // batch * batch].to(device)
        # A batch lies together in memory: the quickest steps would spend a good part of their time looking for it.
        parts = (part[:, order].unflatten(1, (-1, batch)).transpose(0, 1) for part in (chains.inputs, chains.tags))
        yield from zip(*(part.contiguous().unbind(0) for part in parts), strict=True)


def _pace(path: Path, chains: Chains, batch: int, seconds: float) -> float:
    """Seconds a step, timed for as long; the least of the rounds, since other processes can only make a step longer."""
    device, supply = chains.tags.device, list(islice(batches(chains, batch, 0), ROUND))
    rounds: list[float] = []
    while len(rounds) < 1 + ROUNDS or sum(rounds[1:]) < seconds:
        started = _now(device)
        for inputs, tags in supply:
            path.step(inputs, tags)
        rounds.append(_now(device) - started)
    return min(rounds[1:]) / ROUND


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def train(route: Route, task: Task, rate: float, marks: Sequence[int], seed: int, on: Chains) -> dict[str, list[float]]:
    """Trains until the last of `marks` (steps, rising) and decodes the chains `on` at each of them.

    Returns:
        step, seconds of training until then, and error.
    """
    path, supply = route.make(rate, seed), batches(task.train, route.batch, seed)
    device, done, seconds = task.train.tags.device, 0, 0.0
    curve: dict[str, list[float]] = {"step": [], "seconds": [], "error": []}
    for mark in marks:
        started = _now(device)
        for _ in range(mark - done):
            path.step(*next(supply))
        seconds, done = seconds + _now(device) - started, mark
        for key, value in (("step", mark), ("seconds", plain(seconds, 5)), ("error", plain(error_of(path, on), 5))):
            curve[key].append(value)
    return curve


@torch.no_grad()
def error_of(path: Path, chains: Chains) -> float:
    """Share of wrong tags by exact decoding; 1 for a tagger that has run away to infinity."""
    now = path.parameters()
    if not all(bool(part.isfinite().all()) for part in now):
        return 1.0
    head = ChainCRF(len(now.bias), validate=False).to(now.bias.device)
    for parameter, value in zip(
        (head.start_transitions, head.transitions, head.end_transitions), (now.start, now.transitions, now.end), strict=True
    ):
        parameter.copy_(value)
    return wrong_share(head.viterbi(chains.inputs @ now.weight.t() + now.bias)[0], chains.tags)


def tune(routes: Sequence[Route], task: Task, rates: Sequence[float], seconds: float, seed: int) -> list[dict[str, Any]]:
    """Validation errors of all batch sizes and rates, each after about as many seconds of training."""
    rows = []
    for route in routes:
        count = max(1, round(seconds / route.pace))
        for rate in rates:
            error = train(route, task, rate, [count], seed, task.validation)["error"][-1]
            rows.append({"batch": route.batch, "rate": rate, "steps": count, "validation_error": error})
    return rows


def chosen(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of the least validation error; of equals the first."""
    return min(rows, key=lambda row: float(row["validation_error"]))


def marks_until(last: int, count: int) -> list[int]:
    """Numbers of steps, evenly spaced on a log scale, from 1/200 of the last up to it."""
    return sorted({max(1, round(step)) for step in np.geomspace(max(1, last / 200), last, count)})


def reached(curve: dict[str, list[float]], target: float) -> float | None:
    """Seconds until the error was first seen at `target` or below; None if it never was."""
    pairs = zip(curve["seconds"], curve["error"], strict=True)
    return next((seconds for seconds, error in pairs if error <= target), None)
