"""Search for a distribution at which a wrong prediction has little surrogate regret."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._torch import sample_gamma
from linearcore.analysis._problem import AnyForm, Problem, problem_on
from linearcore.analysis._regret import surrogate_regrets
from linearcore.analysis._solve import TOLERANCE
from linearcore.losses import check_surrogate
from linearcore.runtime import one_thread
from linearcore.structures import Cost, Sequences
from linearcore.surrogates import Surrogate

#: Target regrets of the search; each level starts from the best distributions of the previous one.
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)
#: Target regrets at which the ratio of the best distribution is reported.
SEQUENCE = tuple(0.1 * 0.5**step for step in range(17))
#: A ratio below SMALL · scale may converge to zero; `Counterexample.refutes` then checks the sequence.
SMALL = 0.05
#: Smaller ratios are rounding errors.
ROUNDING = 1e-9
#: Index of SEQUENCE by which candidates with small ratios are compared.
_COMPARED = 5
#: Fraction of the starting points that is refined at each level.
_ELITE = 0.05
#: Rounds of perturbation per level.
_ROUNDS = 4


@dataclass(frozen=True)
class Counterexample:
    """The smallest ratio of surrogate regret to target regret that a search found.

    Attributes:
        ratio: the ratio. A linear bound with constant c implies ratio ≥ 1/c.
        probabilities: (M,) the distribution.
        prediction: the suboptimal output.
        target_regret: target regret of the prediction.
        residual: largest optimality residual of the two minimisations.
        regrets, ratios: decreasing target regrets of the same distribution mixed with a one-hot one, and the ratios there.
        searched: number of distributions solved.
        unsolved: number of distributions ignored because the solver did not converge.
        scale: largest ratio that a linear core of this width allows, or 1 without a core; divided by the number of
            competitors if the loss is a mean over them.
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
        """Whether the ratio converges to zero: small at the end of the sequence, and falling like a power of the regret."""
        first, middle, last = self.ratios[-3:]
        if not max(first, middle, last) < SMALL * self.scale:
            return False
        if last <= ROUNDING:
            return True
        # d log ratio / d log regret is 1 for a square-root rate, and 0 for a linear bound, even with a narrow core.
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
    """Searches for the distribution with the smallest ratio of surrogate regret to target regret.

    Starting points are random or adversarial (ties of several outputs, corners of the simplex, independent positions). The
    best ones are perturbed at decreasing target regret, because a linear bound can only fail in the limit of zero regret.

    Args:
        surrogate, form, cost, family: as in `regret_ratio`.
        num_classes: n, for multi-class forms.
        outputs: the output space, for structured forms.
        starts: number of starting points.
        levels: decreasing target regrets at which to search.
        seed: random seed of the search.

    Example:
        >>> from linearcore import LinearCore
        >>> from linearcore.analysis import counterexample
        >>> example = counterexample(LinearCore(), "pairwise", 3, starts=50)
        >>> example.refutes, example.ratio < 0.05
        (True, True)

    Run time: about 2·starts small convex problems, solved in batches: seconds for n ≤ 6.
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
            perturbed = [item.perturb(0.5 * 0.4**round_, search.stream) for item in elite]
            pool = _sort_by_ratio(search.score(perturbed, level) + elite)
            elite = pool[: len(elite)]
    return search.report(pool[:20])


@dataclass(frozen=True)
class _Candidate:
    """A distribution, a prediction, and their regret ratio."""

    probabilities: Tensor
    prediction: int
    ratio: float = float("inf")
    residual: float = float("inf")

    def perturb(self, noise: float, stream: torch.Generator) -> "_Candidate":
        """Returns a random neighbour, by multiplicative noise."""
        factors = (noise * torch.randn(self.probabilities.shape, generator=stream, dtype=torch.float64)).exp()
        return _Candidate(_normalised(self.probabilities * factors), self.prediction)


class _Search:
    def __init__(self, surrogate: Surrogate, problem: Problem, stream: torch.Generator) -> None:
        self.surrogate, self.problem, self.stream = surrogate, problem, stream
        self.searched = self.unsolved = 0
        self.scale = min(1.0, core_constant(surrogate) or 1.0) / problem.num_averaged

    def starts(self, number: int) -> list[_Candidate]:
        """Returns random and adversarial distributions, each with a prediction.

        All forms are invariant to a permutation of the tags at each position, which maps any output to any other. So one
        prediction is enough, except for chains, whose positions share the transitions.
        """
        space = self.problem.space
        num_predictions = space.size if self.problem.family == "chain" and space.length > 1 else 1
        samplers = (self._dirichlet, self._ties, self._independent_positions)
        rows = [samplers[index % len(samplers)](0.3 * 10.0 ** ((index // len(samplers)) % 3)) for index in range(number)]
        predictions = torch.randint(num_predictions, (number,), generator=self.stream).tolist()
        return [_Candidate(row, prediction) for row, prediction in zip(rows, predictions, strict=True)]

    def score(self, candidates: list[_Candidate], regret: float) -> list[_Candidate]:
        """Returns the candidates at target regret `regret`, sorted by ratio; unsolved ones are dropped."""
        scored: list[_Candidate] = []
        for prediction in sorted({item.prediction for item in candidates}):
            group = torch.stack([item.probabilities for item in candidates if item.prediction == prediction])
            group = bring_to_regret(self.problem, group, prediction, regret)
            regrets, _, residuals = surrogate_regrets(self.surrogate, self.problem, group, prediction, strict=False)
            is_solved = residuals <= TOLERANCE
            self.searched += int(is_solved.sum())
            self.unsolved += int((~is_solved).sum())
            ratios = regrets / self.problem.target_regret(group)[:, prediction]
            scored += [
                _Candidate(group[row], prediction, float(ratios[row]), float(residuals[row]))
                for row in is_solved.nonzero().squeeze(-1).tolist()
            ]
        return _sort_by_ratio(scored)

    def report(self, best: list[_Candidate]) -> Counterexample:
        """Returns the result with its sequence; of several small ratios, the one that falls first along the sequence."""
        small = [item for item in best if item.ratio < SMALL * self.scale] or best[:1]
        small = [item for item in small if item.prediction == small[0].prediction]
        regrets, sequences = self._sequences(small)
        first = int(sequences[_COMPARED].argmin())
        item, regrets, ratios = small[first], regrets[:, first], sequences[:, first]
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
        """Returns target regrets and ratios, (len(SEQUENCE), len(items)) each; unsolved ratios are inf."""
        prediction, rows = items[0].prediction, torch.stack([item.probabilities for item in items])
        rows = torch.cat([bring_to_regret(self.problem, rows, prediction, regret) for regret in SEQUENCE])
        regrets = self.problem.target_regret(rows)[:, prediction]
        surrogate, _, residuals = surrogate_regrets(self.surrogate, self.problem, rows, prediction, strict=False)
        ratios = (surrogate / regrets).masked_fill(residuals > TOLERANCE, torch.inf)
        return regrets.reshape(len(SEQUENCE), -1), ratios.reshape(len(SEQUENCE), -1)

    def _dirichlet(self, concentration: float, size: int | None = None) -> Tensor:
        shape = torch.full((size or self.problem.space.size,), concentration, dtype=torch.float64)
        return _normalised(sample_gamma(shape, self.stream) + 1e-12)

    def _ties(self, concentration: float) -> Tensor:
        row = self._dirichlet(concentration)
        number = int(torch.randint(2, len(row) + 1, (1,), generator=self.stream))
        row[row.topk(number).indices] = row.max()
        return _normalised(row)

    def _independent_positions(self, concentration: float) -> Tensor:
        space = self.problem.space
        row = torch.ones(1, dtype=torch.float64)
        for _ in range(space.length):
            row = torch.outer(row, self._dirichlet(concentration, space.num_tags)).reshape(-1)
        return _normalised(row)


def bring_to_regret(problem: Problem, probabilities: Tensor, prediction: int, regret: float) -> Tensor:
    """Mixes each distribution (B, M) with a one-hot distribution until the target regret of `prediction` is `regret`.

    Mixing with the prediction lowers its regret to 0; mixing with the best output raises it. The regret is continuous in the
    mixture weight, which is found by bisection.
    """
    current = problem.target_regret(probabilities)
    one_hot = torch.zeros_like(probabilities)
    is_lowered = current[:, prediction] > regret
    best = torch.where(current == 0, torch.arange(current.shape[1]), current.shape[1]).amin(-1)
    # An optimal prediction is mixed with the output at which its cost is largest.
    costliest = problem.costs[prediction].argmax().expand_as(best)
    corner = torch.where(is_lowered, torch.full_like(best, prediction), torch.where(best == prediction, costliest, best))
    one_hot.scatter_(1, corner.unsqueeze(1), 1.0)
    low, high = torch.zeros_like(current[:, :1]), torch.ones_like(current[:, :1])
    for _ in range(60):
        middle = (low + high) / 2
        is_above = problem.target_regret(torch.lerp(probabilities, one_hot, middle))[:, prediction : prediction + 1] > regret
        increases = is_above == is_lowered.unsqueeze(1)
        low, high = torch.where(increases, middle, low), torch.where(increases, high, middle)
    return _normalised(torch.lerp(probabilities, one_hot, low))


def core_constant(surrogate: Surrogate, bound: float | None = None) -> float | None:
    """Returns σ·w for a core of slope −σ on [−w, w], so T(t) ≥ σ·w·t; None without a core or if w is infinite.

    With scores in [−bound, bound], w is at most `bound`.
    """
    if surrogate.core is None:
        return None
    low, high = surrogate.core
    width = min(high, -low, math.inf if bound is None else bound)
    return None if high == math.inf and bound is None else -float(surrogate.derivative(0.0)) * width


def _normalised(row: Tensor) -> Tensor:
    return row / row.sum(-1, keepdim=True)


def _sort_by_ratio(candidates: list[_Candidate]) -> list[_Candidate]:
    return sorted(candidates, key=lambda item: item.ratio)
