"""Training steps of chain heads on random data, and a clock for them.

A step is forward, backward and SGD's update of a linear tagger, emissions = W x + b with 20 inputs and a dense matrix of
transitions, on one batch of chains of 20 positions. Transitions are drawn from N(0, 1): with those of a fresh head, which
are next to nothing, a search that may skip tags would skip nearly all of them.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from linearcore.heads import ChainCRF, ChainSSVM, LinearCoreChain
from linearcore.kernels import dense_search
from linearcore.proposals import Uniform
from linearcore_paper.runner import Settings

LENGTH, INPUTS, SAMPLES = 20, 20, 20
#: Turns that each method has at the least; a turn is a few steps of a quick method and one of a slow one.
LEAST_TURNS, TURN_SECONDS, MOST_STEPS = 5, 0.01, 10
#: Steps before those that count, in a quick method's turn.
SETTLING_STEPS = 2
#: So small that a step costs the same, and what is searched stays as hard as it was.
LEARNING_RATE = 1e-12

Head = ChainSSVM | ChainCRF | LinearCoreChain
Step = Callable[[], None]


@dataclass(frozen=True)
class Work:
    """A model and a batch: hidden states (L, B, d), tags (L, B), and where candidates are drawn from."""

    head: Head
    layer: nn.Linear
    hidden: Tensor
    tags: Tensor
    stream: torch.Generator


def _all_tags(work: Work) -> Tensor:
    loss: Tensor = -work.head(work.layer(work.hidden), work.tags)
    return loss


def _searched_densely(work: Work) -> Tensor:
    with dense_search():
        return _all_tags(work)


def _sampled(work: Work, *, sparse: bool) -> Tensor:
    assert isinstance(work.head, LinearCoreChain)
    return work.head.sampled_loss(
        work.hidden, work.layer, work.tags, proposal=Uniform(), num_samples=SAMPLES, reduction="sum", sparse=sparse,
        generator=work.stream,
    )  # fmt: skip


@dataclass(frozen=True)
class Method:
    """A way to train: its name in the figure, its head, and the loss of a batch."""

    label: str
    head: type[Head]
    loss: Callable[[Work], Tensor]


METHODS = {
    "ssvm": Method("SSVM", ChainSSVM, _all_tags),
    "ssvm-dense": Method("SSVM, dense search", ChainSSVM, _searched_densely),
    "crf": Method("CRF", ChainCRF, _all_tags),
    "all": Method("LC all tags", LinearCoreChain, _all_tags),
    "sampled-dense": Method("LC sampled, dense grad.", LinearCoreChain, partial(_sampled, sparse=False)),
    "sampled": Method("LC sampled", LinearCoreChain, partial(_sampled, sparse=True)),
}


def training_step(method: Method, num_tags: int, batch: int, settings: Settings) -> Step:
    """Forward, backward and update on one batch; all methods of a size start from the same numbers."""
    stream = torch.Generator().manual_seed(settings.seed)
    with torch.random.fork_rng(devices=[]):  # Modules draw from torch's own stream when they are made.
        layer, head = nn.Linear(INPUTS, num_tags), method.head(num_tags)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-(INPUTS**-0.5), INPUTS**-0.5, generator=stream)
        for parameter in head.parameters():
            parameter.normal_(generator=stream)
    hidden = torch.randn(LENGTH, batch, INPUTS, generator=stream)
    tags = torch.randint(num_tags, (LENGTH, batch), generator=stream)
    where = settings.device
    draws = torch.Generator(where).manual_seed(settings.seed)
    work = Work(head.to(where), layer.to(where), hidden.to(where), tags.to(where), draws)
    optimizer = torch.optim.SGD([*work.layer.parameters(), *work.head.parameters()], lr=LEARNING_RATE)

    def step() -> None:
        method.loss(work).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def gradient_step(num_tags: int, settings: Settings) -> Step:
    """What every dense gradient of a |Y|×|Y| matrix costs, whatever is in it: zeros to start from, and the update."""
    matrix = nn.Parameter(torch.zeros(num_tags, num_tags, device=settings.device))
    optimizer = torch.optim.SGD([matrix], lr=LEARNING_RATE)

    def step() -> None:
        matrix.grad = torch.zeros_like(matrix)
        optimizer.step()
        optimizer.zero_grad()

    return step


def interleaved(steps: Mapping[str, Step], seconds: float, device: str) -> dict[str, list[float]]:
    """Seconds of the steps of each method, which take turns so that a busy moment of the machine meets all alike."""
    # Twice, since the first step finds everything cold.
    for _ in range(2):
        paces = {key: _clock(step, device) for key, step in steps.items()}
    times: dict[str, list[float]] = {key: [] for key in steps}
    start, turns = time.perf_counter(), 0
    while turns < LEAST_TURNS or time.perf_counter() - start < seconds:
        for key, step in steps.items():
            count = min(MOST_STEPS, int(TURN_SECONDS / paces[key]))
            # In training a step follows itself; one that follows another method's finds the caches full of that.
            for _ in range(SETTLING_STEPS if count else 0):
                step()
            times[key] += [_clock(step, device) for _ in range(max(1, count))]
            # One interrupted step must not make a quick method count as slow.
            paces[key] = min(paces[key], *times[key])
        turns += 1
    return times


def _clock(step: Step, device: str) -> float:
    _wait(device)
    start = time.perf_counter()
    step()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
