"""The ways to train that `proposals.py` compares, and where each gets its candidates from."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from linearcore.proposals import HardNegatives, InBatch, Mixture, Proposal, Uniform, Unigram, hard_negatives

#: Competitors in a list of `HardNegatives`, and the steps after which the lists are made anew.
LISTED, REFRESH = 16, 200

TOKEN, ALL, CRF, STRUCTURED, SAMPLED = "token", "all", "crf", "structured", "sampled"


@dataclass(frozen=True)
class Method:
    """A way to train.

    Attributes:
        loss: "token", "all", "crf", "structured" or "sampled".
        form: of the linear-core loss.
        draws: a name in `PROPOSALS`, for "sampled".
        samples: K, for "sampled" and "structured".
        shared: one set of draws for all sites of a batch.
    """

    loss: str
    form: str = "logodds"
    draws: str = ""
    samples: int = 0
    shared: bool = True

    @property
    def name(self) -> str:
        """What the tables call it."""
        if self.loss == SAMPLED:
            form = "" if self.form == "logodds" else f"{self.form}, "
            return f"{form}{self.draws}, K = {self.samples}" + ("" if self.shared else ", own draws")
        if self.loss == STRUCTURED:
            return f"whole sequences (Algorithm 1 mended), K = {self.samples}"
        return {TOKEN: "token cross-entropy", ALL: f"LC {self.form}, all candidates", CRF: "ChainCRF"}[self.loss]

    @property
    def is_sparse(self) -> bool:
        """Whether projection and chain get sparse gradients."""
        return self.loss == SAMPLED


#: (counts of the tags, weight of the projection, shared) ↦ a proposal.
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
    """The proposal of a method while it trains: made once, or anew every `REFRESH` steps where it follows the weights."""

    def __init__(self, method: Method, counts: Tensor, weight: Tensor) -> None:
        self._make = lambda: PROPOSALS[method.draws](counts, weight, method.shared)
        self._now = self._make()
        self._steps = 0

    def proposal(self) -> Proposal:
        """For the next step."""
        if isinstance(self._now, HardNegatives) and self._steps and self._steps % REFRESH == 0:
            self._now = self._make()
        self._steps += 1
        return self._now


def methods(sizes: tuple[int, ...], *, with_chains: bool) -> list[Method]:
    """All of them for numbers of draws `sizes`; the CRF and whole sequences on generated chains only.

    Draws of a site's own and `pairwise` are tried with a middling number of draws: what they cost and bring shows there.
    """
    middle = sizes[len(sizes) // 2]
    found = [Method(TOKEN), Method(ALL), Method(ALL, "pairwise")]
    if with_chains:
        found += [Method(CRF), Method(STRUCTURED, samples=middle)]
    found += [Method(SAMPLED, draws=draws, samples=size) for draws in PROPOSALS for size in sizes]
    found += [Method(SAMPLED, draws=draws, samples=middle, shared=False) for draws in (UNIFORM, FLATTENED)]
    found += [Method(SAMPLED, "pairwise", draws, middle) for draws in (UNIFORM, HARD_UNIFORM, IN_BATCH)]
    return found
