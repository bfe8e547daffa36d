"""The result of `sample_bound`: the terms of a bound with their limits, as a report."""

from dataclasses import asdict, dataclass
from typing import Any

from linearcore.analysis._problem import Problem
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Interval:
    """An estimate with its lower and upper confidence limit."""

    estimate: float
    low: float
    high: float

    def minus(self, other: "Interval") -> "Interval":
        """Returns the interval of the difference of two numbers of which the first is not smaller."""
        return Interval(
            max(self.estimate - other.estimate, 0.0), max(self.low - other.high, 0.0), max(self.high - other.low, 0.0)
        )

    def __str__(self) -> str:
        return f"{self.estimate:.4f}   between {self.low:.4f} and {self.high:.4f}"


@dataclass(frozen=True)
class SampleBound:
    """Terms of T(R₀₁(h) − R₀₁*(H) + M₀₁(H)) ≤ R_φ(h) − R_φ*(H) + M_φ(H), estimated on a sample; `print` shows a report.

    Attributes:
        surrogate, problem, bound: the loss, and the largest margin of the scores in H.
        confidence: probability with which all limits hold together.
        num_rows, num_inputs: rows of the sample, and how many of them are distinct.
        best_surrogate, best_zero_one: R_φ*(H) and R₀₁*(H). The estimate of the first is the minimum on the sample, of the
            second the held-out error of the scores with the least surrogate risk.
        surrogate_gap, zero_one_gap: M_φ(H) and M₀₁(H).
        observed_regret: error of the minimiser of the surrogate risk on the sample, minus the least error possible there.
        observed: both sides of the bound for this minimiser, with the sample as the distribution.
        guarantee: upper limit of the 0-1 regret in H of a minimiser of the surrogate risk.
        transformation: (t, T(t)) at a few t.
    """

    surrogate: Surrogate
    problem: Problem
    bound: float
    confidence: float
    num_rows: int
    num_inputs: int
    best_surrogate: Interval
    surrogate_gap: Interval
    best_zero_one: Interval
    zero_one_gap: Interval
    observed_regret: float
    observed: tuple[float, float]
    guarantee: float
    transformation: tuple[tuple[float, float], ...]

    def __str__(self) -> str:
        values = ", ".join(f"T({t:g}) = {value:.4g}" for t, value in self.transformation)
        left, right = self.observed
        return "\n".join(
            [
                f"bound on {self.num_rows} rows ({self.num_inputs} distinct), linear scores with margins of at most "
                f"{self.bound:g} on the box of the features",
                "  T(R01(h) − R01* + M01) ≤ Rφ(h) − Rφ* + Mφ   for every such h",
                f"  {values}",
                f"  limits hold together with probability {self.confidence:g} if rows are drawn independently",
                f"    Rφ*   {self.best_surrogate}",
                f"    Mφ    {self.surrogate_gap}",
                f"    R01*  {self.best_zero_one}",
                f"    M01   {self.zero_one_gap}",
                f"  on the sample, at the least Rφ:  T({self.observed_regret:.4f}) = {left:.4f} ≤ {right:.4f}",
                "  so for every such h:  R01(h) − R01* ≤ T⁻¹(Rφ(h) − Rφ* + Mφ) − M01,"
                f" at most {self.guarantee:.4f} if Rφ(h) = Rφ*",
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Returns all numbers as JSON values."""
        names = ("best_surrogate", "surrogate_gap", "best_zero_one", "zero_one_gap")
        return {
            "bound": self.bound,
            "confidence": self.confidence,
            "rows": self.num_rows,
            "distinct_rows": self.num_inputs,
            **{name: asdict(getattr(self, name)) for name in names},
            "observed": {"regret": self.observed_regret, "left": self.observed[0], "right": self.observed[1]},
            "guarantee": self.guarantee,
            "transformation": [list(pair) for pair in self.transformation],
        }
