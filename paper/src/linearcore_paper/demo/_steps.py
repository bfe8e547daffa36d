"""Times one training step of four losses for sequence tagging, against the number of tags.

A step computes emissions from hidden states with a linear layer, the loss, and the gradients of the hidden states and of all
parameters. The encoder and the optimiser are not part of it. Steps run on one core. CPU time is measured, because wall time
depends on the other programs that run on the machine.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import linearcore as lc
from linearcore.runtime import Progress, one_thread

BATCH, LENGTH, HIDDEN = 8, 25, 256
#: CPU seconds that a loss runs before the next one's turn; a longer step is a turn of its own.
TURN = 0.05
LEAST_ROUNDS = 3

#: Computes a loss and its gradients.
Step = Callable[[], tuple[Tensor, tuple[Tensor, ...]]]
#: For each loss and number of tags: lower quartile, median and upper quartile in milliseconds.
StepTimes = dict[str, list[tuple[float, float, float]]]


def time_steps(sizes: Sequence[int], seconds: float, progress: Progress) -> StepTimes:
    """Runs all losses at all sizes in turn, for about `seconds` and at least three rounds after one that warms up."""
    times: dict[tuple[str, int], list[float]] = {}
    with one_thread(), progress.part("training steps", unit="rounds") as rounds:
        steps = {(name, size): step for size in sizes for name, step in steps_with(size).items()}
        start = time.perf_counter()
        while rounds.done < LEAST_ROUNDS + 1 or time.perf_counter() - start < seconds:
            for key, step in steps.items():
                times.setdefault(key, []).append(_turn(step))
            rounds.advance()
    found: StepTimes = {}
    for (name, _), values in times.items():
        low, median, high = statistics.quantiles(values[1:], n=4)
        found.setdefault(name, []).append((low, median, high))
    return found


def steps_with(num_tags: int) -> dict[str, Step]:
    """One step of each loss, all on the same hidden states, tags and initial parameters."""
    import torchcrf

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hidden = torch.randn(BATCH, LENGTH, HIDDEN, requires_grad=True)
        projection = nn.Linear(HIDDEN, num_tags)
        tags = torch.randint(num_tags, (BATCH, LENGTH))
        kinds = {"pytorch-crf": torchcrf.CRF, "ChainCRF": lc.ChainCRF, "LinearCoreChain": lc.LinearCoreChain}
        heads: dict[str, nn.Module] = {}
        for name, kind in kinds.items():
            torch.manual_seed(1)
            heads[name] = kind(num_tags, batch_first=True)
    # pytorch-crf makes a mask of bytes if it gets none, and PyTorch warns about it.
    mask = torch.ones_like(tags, dtype=torch.bool)

    def step(head: nn.Module | None) -> tuple[Tensor, tuple[Tensor, ...]]:
        emissions = projection(hidden)
        if head is None:
            loss = F.cross_entropy(emissions.flatten(0, 1), tags.flatten())
        else:
            loss = -head(emissions, tags, mask, reduction="token_mean")
        inputs = (hidden, *projection.parameters(), *(() if head is None else head.parameters()))
        return loss.detach(), torch.autograd.grad(loss, inputs)

    steps: dict[str, Step] = {name: partial(step, head) for name, head in heads.items()}
    return steps | {"token cross-entropy": partial(step, None)}


def _turn(step: Step) -> float:
    """Mean CPU time of a step over one turn, in milliseconds."""
    count, spent, start = 0, 0.0, time.process_time()
    while spent < TURN:
        step()
        count, spent = count + 1, time.process_time() - start
    return 1000 * spent / count
