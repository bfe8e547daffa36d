"""The search for a distribution at which a wrong answer costs little surrogate regret."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._torch import gamma_draws
from linearcore.analysis._problem import AnyForm, Problem, problem_on
from linearcore.analysis._regret import surrogate_regrets
from linearcore.analysis._solve import TOLERANCE
from linearcore.losses import check_surrogate
from linearcore.runtime import one_thread
from linearcore.structures import Cost, Sequences
from linearcore.surrogates import Surrogate

#: Target regrets that the search goes through; each level starts from the best distributions of the one before.
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)
#: Target regrets of the sequence that is reported for the best distribution found.
SEQUENCE = tuple(0.1 * 0.5**step for step in range(17))
#: A ratio below this, or this share of what a linear core could give, is taken to be on its way to zero if the sequence
#: agrees.
SMALL = 0.05
#: Ratios down here are rounding.
_ROUNDING = 1e-9
_SOON = 5
_ELITE = 0.05
_ROUNDS = 4


@dataclass(frozen=True)
class Counterexample:
    """The smallest ratio of surrogate to target regret that a search found.

    Attributes:
        ratio: that ratio. A linear bound with constant c says it is never below 1/c.
        probabilities: (M,) the distribution.
        prediction: the suboptimal output.
        target_regret: its target regret.
        residual: the certificate of the two minimisations behind the ratio.
        regrets, ratios: ratios of the same distribution brought to falling target regrets; where the bound fails, ratio
            divided by regret settles.
        searched: how many distributions were solved.
        unsolved: how many were left out because their certificate did not hold.
        scale: what a linear core of this width could give at most, and 1 without a core; for a mean over competitors divided
            by their number.
    """

    ratio: float
    probabilities: npt.NDArray[np.float64]
    prediction: int
    target_regret: float
    residual: float
    regrets: npt.NDArray[np.float64]
    ratios: npt.NDArray[np.float64]
    searched: int
    unsolved: int
    scale: float = 1.0

    @property
    def refutes(self) -> bool:
        """Whether the ratio vanishes along the sequence: small at its end, and falling there like a power of the regret."""
        first, middle, last = self.ratios[-3:]
        if not max(first, middle, last) < SMALL * self.scale:
            return False
        if last <= _ROUNDING:
            return True
        # d log ratio / d log regret: 1 for a square-root rate, 0 for a linear bound, which a small core only hides.
        return bool(np.log(first / last) / np.log(self.regrets[-3] / self.regrets[-1]) >= 0.5)


def counterexample(
    surrogate: Surrogate,
    form: AnyForm,
    num_classes: int | None = None,
    *,
    outputs: Sequences | None = None,
    cost: str | Cost = "zero-one",
    family: str = "free",
    starts: int = 2000,
    levels: tuple[float, ...] = LEVELS,
    seed: int = 0,
) -> Counterexample:
    """Searches for the distribution with the smallest ratio of surrogate to target regret.

    Starts are random and adversarial (ties of several outputs, corners of the simplex, independent sites). The best are
    perturbed at ever smaller target regret, since a bound that fails, fails in the limit.

    Args:
        surrogate, form, cost, family: as in `regret_ratio`.
        num_classes: n, for multi-class forms.
        outputs: the output space, for structured ones.
        starts: how many distributions to begin with.
        levels: falling target regrets at which to search.
        seed: of the search's own stream.

    Example:
        >>> from linearcore import LinearCore
        >>> from linearcore.analysis import counterexample
        >>> found = counterexample(LinearCore(), "pairwise", 3, starts=50)
        >>> found.refutes, found.ratio < 0.05
        (True, True)

    Cost: about 2·starts small convex problems, solved in batches: seconds for n ≤ 6.
    """
    problem = problem_on(form, num_classes, outputs, cost, family)
    check_surrogate(surrogate)
    if starts < 1:
        raise ValueError(complaint("starts", "be at least 1", starts, "for example 2000"))
    with one_thread():
        return _search(surrogate, problem, starts, levels, seed)


def _search(surrogate: Surrogate, problem: Problem, starts: int, levels: tuple[float, ...], seed: int) -> Counterexample:
    search = _Search(surrogate, problem, torch.Generator().manual_seed(seed))
    pool = search.score(search.starts(starts), levels[0])
    for level in levels:
        elite = search.score(pool[: max(20, int(_ELITE * starts))], level)
        for round_ in range(_ROUNDS):
            moved = [item.moved(0.5 * 0.4**round_, search.stream) for item in elite]
            pool = _best_first(search.score(moved, level) + elite)
            elite = pool[: len(elite)]
    return search.report(pool[:20])


@dataclass(frozen=True)
class _Candidate:
    """A distribution, a prediction, and the ratio there."""

    probabilities: Tensor
    prediction: int
    ratio: float = float("inf")
    residual: float = float("inf")

    def moved(self, noise: float, stream: torch.Generator) -> "_Candidate":
        """A neighbour: multiplicative noise keeps it a distribution."""
        factors = (noise * torch.randn(self.probabilities.shape, generator=stream, dtype=torch.float64)).exp()
        return _Candidate(_normalised(self.probabilities * factors), self.prediction)


class _Search:
    def __init__(self, surrogate: Surrogate, problem: Problem, stream: torch.Generator) -> None:
        self.surrogate, self.problem, self.stream = surrogate, problem, stream
        self.searched = self.unsolved = 0
        self.scale = min(1.0, core_constant(surrogate) or 1.0) / problem.num_averaged

    def starts(self, number: int) -> list[_Candidate]:
        """Random and adversarial distributions, each with a prediction.

        Renaming the tags of each site turns any output into any other. All forms are blind to that, except where the sites
        of a chain share their transitions, so that elsewhere one prediction stands for all.
        """
        space = self.problem.space
        predictions = space.size if self.problem.family == "chain" and space.length > 1 else 1
        kinds = (self._dirichlet, self._ties, self._independent_sites)
        rows = [kinds[index % len(kinds)](0.3 * 10.0 ** ((index // len(kinds)) % 3)) for index in range(number)]
        chosen = torch.randint(predictions, (number,), generator=self.stream).tolist()
        return [_Candidate(row, prediction) for row, prediction in zip(rows, chosen, strict=True)]

    def score(self, candidates: list[_Candidate], regret: float) -> list[_Candidate]:
        """The candidates brought to a target regret of `regret`, with their ratios, best first; unsolved ones dropped."""
        scored: list[_Candidate] = []
        for prediction in sorted({item.prediction for item in candidates}):
            group = torch.stack([item.probabilities for item in candidates if item.prediction == prediction])
            group = bring_to_regret(self.problem, group, prediction, regret)
            regrets, _, residuals = surrogate_regrets(self.surrogate, self.problem, group, prediction, strict=False)
            solved = residuals <= TOLERANCE
            self.searched += int(solved.sum())
            self.unsolved += int((~solved).sum())
            ratios = regrets / self.problem.target_regret(group)[:, prediction]
            scored += [
                _Candidate(group[row], prediction, float(ratios[row]), float(residuals[row]))
                for row in solved.nonzero().squeeze(-1).tolist()
            ]
        return _best_first(scored)

    def report(self, best: list[_Candidate]) -> Counterexample:
        """The result, with a sequence of falling regrets; of several small ratios, the one that is small soonest."""
        small = [item for item in best if item.ratio < SMALL * self.scale] or best[:1]
        small = [item for item in small if item.prediction == small[0].prediction]
        regrets, sequences = self._sequences(small)
        soonest = int(sequences[_SOON].argmin())
        item, regrets, ratios = small[soonest], regrets[:, soonest], sequences[:, soonest]
        return Counterexample(
            ratio=item.ratio,
            probabilities=item.probabilities.numpy(),
            prediction=item.prediction,
            target_regret=float(self.problem.target_regret(item.probabilities)[item.prediction]),
            residual=item.residual,
            regrets=regrets.numpy(),
            ratios=ratios.numpy(),
            searched=self.searched,
            unsolved=self.unsolved,
            scale=self.scale,
        )

    def _sequences(self, items: list[_Candidate]) -> tuple[Tensor, Tensor]:
        """Target regrets and ratios (len(SEQUENCE), len(items)) of items with one prediction; unsolved ratios are inf."""
        prediction, rows = items[0].prediction, torch.stack([item.probabilities for item in items])
        rows = torch.cat([bring_to_regret(self.problem, rows, prediction, regret) for regret in SEQUENCE])
        regrets = self.problem.target_regret(rows)[:, prediction]
        found, _, residuals = surrogate_regrets(self.surrogate, self.problem, rows, prediction, strict=False)
        ratios = (found / regrets).masked_fill(residuals > TOLERANCE, torch.inf)
        return regrets.reshape(len(SEQUENCE), -1), ratios.reshape(len(SEQUENCE), -1)

    def _dirichlet(self, concentration: float, size: int | None = None) -> Tensor:
        shape = torch.full((size or self.problem.space.size,), concentration, dtype=torch.float64)
        return _normalised(gamma_draws(shape, self.stream) + 1e-12)

    def _ties(self, concentration: float) -> Tensor:
        row = self._dirichlet(concentration)
        number = int(torch.randint(2, len(row) + 1, (1,), generator=self.stream))
        row[row.topk(number).indices] = row.max()
        return _normalised(row)

    def _independent_sites(self, concentration: float) -> Tensor:
        space = self.problem.space
        row = torch.ones(1, dtype=torch.float64)
        for _ in range(space.length):
            row = torch.outer(row, self._dirichlet(concentration, space.num_tags)).reshape(-1)
        return _normalised(row)


def bring_to_regret(problem: Problem, probabilities: Tensor, prediction: int, regret: float) -> Tensor:
    """Mixes each distribution (B, M) with a sure label until the target regret of `prediction` is `regret`.

    Mixing with the prediction itself lowers its regret to 0; mixing with the best output raises it. The regret is
    continuous along the way, so bisection finds the place.
    """
    now = problem.target_regret(probabilities)
    corner = torch.zeros_like(probabilities)
    lowers = now[:, prediction] > regret
    best = torch.where(now == 0, torch.arange(now.shape[1]), now.shape[1]).amin(-1)
    # An optimal prediction is given a rival: the output that costs it most.
    rival = problem.costs[prediction].argmax().expand_as(best)
    goal = torch.where(lowers, torch.full_like(best, prediction), torch.where(best == prediction, rival, best))
    corner.scatter_(1, goal.unsqueeze(1), 1.0)
    low, high = torch.zeros_like(now[:, :1]), torch.ones_like(now[:, :1])
    for _ in range(60):
        middle = (low + high) / 2
        above = problem.target_regret(torch.lerp(probabilities, corner, middle))[:, prediction : prediction + 1] > regret
        towards_corner = above == lowers.unsqueeze(1)
        low, high = torch.where(towards_corner, middle, low), torch.where(towards_corner, high, middle)
    return _normalised(torch.lerp(probabilities, corner, low))


def core_constant(surrogate: Surrogate) -> float | None:
    """σ·w for a core of slope −σ on [−w, w], the constant of T(t) ≥ σ·w·t; None without a core or with an endless one."""
    if surrogate.core is None or surrogate.core[1] == math.inf:
        return None
    low, high = surrogate.core
    return -float(surrogate.derivative(0.0)) * min(high, -low)


def _normalised(row: Tensor) -> Tensor:
    return row / row.sum(-1, keepdim=True)


def _best_first(candidates: list[_Candidate]) -> list[_Candidate]:
    return sorted(candidates, key=lambda item: item.ratio)
