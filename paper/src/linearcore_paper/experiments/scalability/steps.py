"""Training steps of chain heads on random data, and their timing.

A step is forward, backward and SGD update of a linear tagger, emissions = W x + b with 20 inputs and a dense transition
matrix, on one batch of sequences of 20 positions. Transitions are drawn from N(0, 1): with the small initial values of a new
head, a search that may skip tags would skip nearly all of them.
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
#: Minimum number of turns of each method, and target seconds and maximum steps of a turn.
MIN_TURNS, TURN_SECONDS, MAX_STEPS = 5, 0.01, 10
#: Untimed steps at the start of a fast method's turn.
WARMUP_STEPS = 2
#: So small that the parameters, and with them the difficulty of the search, do not change.
LEARNING_RATE = 1e-12

Head = ChainSSVM | ChainCRF | LinearCoreChain
Step = Callable[[], None]


@dataclass(frozen=True)
class Work:
    """A model and a batch: hidden states (L, B, d), tags (L, B), and the random generator of candidates."""

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
    """A training method: its name in the figure, its head, and the loss of a batch."""

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
    """Returns a step: forward, backward and update on one batch. All methods of a size start from the same values."""
    stream = torch.Generator().manual_seed(settings.seed)
    with torch.random.fork_rng(devices=[]):  # Constructors of modules use torch's global random state.
        layer, head = nn.Linear(INPUTS, num_tags), method.head(num_tags)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-(INPUTS**-0.5), INPUTS**-0.5, generator=stream)
        for parameter in head.parameters():
            parameter.normal_(generator=stream)
    hidden = torch.randn(LENGTH, batch, INPUTS, generator=stream)
    tags = torch.randint(num_tags, (LENGTH, batch), generator=stream)
    device = settings.device
    draws = torch.Generator(device).manual_seed(settings.seed)
    work = Work(head.to(device), layer.to(device), hidden.to(device), tags.to(device), draws)
    optimizer = torch.optim.SGD([*work.layer.parameters(), *work.head.parameters()], lr=LEARNING_RATE)

    def step() -> None:
        method.loss(work).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def gradient_step(num_tags: int, settings: Settings) -> Step:
    """Returns a step with the minimum cost of a dense |Y|×|Y| gradient: filling with zeros, and the update."""
    matrix = nn.Parameter(torch.zeros(num_tags, num_tags, device=settings.device))
    optimizer = torch.optim.SGD([matrix], lr=LEARNING_RATE)

    def step() -> None:
        matrix.grad = torch.zeros_like(matrix)
        optimizer.step()
        optimizer.zero_grad()

    return step


def interleaved(steps: Mapping[str, Step], seconds: float, device: str) -> dict[str, list[float]]:
    """Times the steps of each method. Methods alternate, so that other load on the machine affects all equally."""
    # Twice, since the first step includes warm-up.
    for _ in range(2):
        paces = {key: _clock(step, device) for key, step in steps.items()}
    times: dict[str, list[float]] = {key: [] for key in steps}
    start, turns = time.perf_counter(), 0
    while turns < MIN_TURNS or time.perf_counter() - start < seconds:
        for key, step in steps.items():
            count = min(MAX_STEPS, int(TURN_SECONDS / paces[key]))
            # In training, a step follows one of the same method; untimed steps restore the caches after another method.
            for _ in range(WARMUP_STEPS if count else 0):
                step()
            times[key] += [_clock(step, device) for _ in range(max(1, count))]
            # Use the minimum, so that one interrupted step does not make a fast method look slow.
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
