"""The training methods that `proposals.py` compares, and their proposals."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from linearcore.proposals import HardNegatives, InBatch, Mixture, Proposal, Uniform, Unigram, hard_negatives

#: Length of the lists of hard competitors, and the number of steps between their updates.
LISTED, REFRESH = 16, 200

TOKEN, ALL, CRF, STRUCTURED, SAMPLED = "token", "all", "crf", "structured", "sampled"


@dataclass(frozen=True)
class Method:
    """A training method.

    Attributes:
        loss: "token", "all", "crf", "structured" or "sampled".
        form: form of the linear-core loss.
        draws: a name in `PROPOSALS`, for "sampled".
        samples: number of samples K, for "sampled" and "structured".
        shared: share the samples between all positions of a batch.
    """

    loss: str
    form: str = "logodds"
    draws: str = ""
    samples: int = 0
    shared: bool = True

    @property
    def name(self) -> str:
        """Returns the name in the tables."""
        if self.loss == SAMPLED:
            form = "" if self.form == "logodds" else f"{self.form}, "
            return f"{form}{self.draws}, K = {self.samples}" + ("" if self.shared else ", own draws")
        if self.loss == STRUCTURED:
            return f"whole sequences (Algorithm 1 mended), K = {self.samples}"
        return {TOKEN: "token cross-entropy", ALL: f"LC {self.form}, all candidates", CRF: "ChainCRF"}[self.loss]

    @property
    def is_sparse(self) -> bool:
        """Whether gradients of projection and chain are sparse."""
        return self.loss == SAMPLED


#: Functions from (counts of the tags, weight of the projection, shared) to a proposal.
Maker = Callable[[Tensor, Tensor, bool], Proposal]

UNIFORM, UNIGRAM, FLATTENED, MIXTURE = "uniform", "unigram", "unigram^0.75", "uniform + unigram"
HARD_UNIFORM, HARD_UNIGRAM, IN_BATCH = "hard 16 + uniform", "hard 16 + unigram^0.75", "in batch + uniform"


def _hard(rest: Maker) -> Maker:
    return lambda counts, weight, shared: HardNegatives(
        table=hard_negatives(weight.detach(), LISTED), rest=rest(counts, weight, shared), shared=shared
    )


PROPOSALS: dict[str, Maker] = {
    UNIFORM: lambda counts, weight, shared: Uniform(shared=shared),
    UNIGRAM: lambda counts, weight, shared: Unigram(counts=counts, power=1.0, shared=shared),
    FLATTENED: lambda counts, weight, shared: Unigram(counts=counts, power=0.75, shared=shared),
    MIXTURE: lambda counts, weight, shared: Mixture(parts=(Uniform(), Unigram(counts=counts, power=1.0)), shared=shared),
    IN_BATCH: lambda counts, weight, shared: InBatch(shared=shared),
}
PROPOSALS[HARD_UNIFORM] = _hard(PROPOSALS[UNIFORM])
PROPOSALS[HARD_UNIGRAM] = _hard(PROPOSALS[FLATTENED])


class Draws:
    """The proposal of a method: constant, or updated every `REFRESH` steps if it depends on the weights."""

    def __init__(self, method: Method, counts: Tensor, weight: Tensor) -> None:
        self._make = lambda: PROPOSALS[method.draws](counts, weight, method.shared)
        self._now = self._make()
        self._steps = 0

    def proposal(self) -> Proposal:
        """Returns the proposal for the next step."""
        if isinstance(self._now, HardNegatives) and self._steps and self._steps % REFRESH == 0:
            self._now = self._make()
        self._steps += 1
        return self._now


def methods(sizes: tuple[int, ...], *, with_chains: bool) -> list[Method]:
    """Returns all methods for the numbers of samples `sizes`; CRF and whole sequences only for generated sequences.

    Separate samples per position, and `pairwise`, are only measured with a medium number of samples.
    """
    middle = sizes[len(sizes) // 2]
    found = [Method(TOKEN), Method(ALL), Method(ALL, "pairwise")]
    if with_chains:
        found += [Method(CRF), Method(STRUCTURED, samples=middle)]
    found += [Method(SAMPLED, draws=draws, samples=size) for draws in PROPOSALS for size in sizes]
    found += [Method(SAMPLED, draws=draws, samples=middle, shared=False) for draws in (UNIFORM, FLATTENED)]
    found += [Method(SAMPLED, "pairwise", draws, middle) for draws in (UNIFORM, HARD_UNIFORM, IN_BATCH)]
    return found
