"""The result of `certify`: properties of a surrogate and a form, as a report."""

from dataclasses import asdict, dataclass
from typing import Any

from linearcore.analysis._counterexample import Counterexample
from linearcore.analysis._problem import Problem
from linearcore.analysis._worst_case import WorstCase
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Finding:
    """The verdict on one property, with its reason.

    Attributes:
        verdict: "proven", "refuted", "supported" (the search found no counterexample, which is not a proof) or "unknown".
        reason: explanation in one sentence.
        constant: c of a proven linear bound, target regret ≤ c · surrogate regret.
        counterexample: the counterexample if refuted, which `regret_ratio` verifies; the worst distribution if supported.
    """

    verdict: str
    reason: str
    constant: float | None = None
    counterexample: Counterexample | None = None


@dataclass(frozen=True)
class Certificate:
    """Properties of a loss; `print` shows them as a report.

    Attributes:
        surrogate, problem: the loss that was analysed.
        convex: whether the loss is convex in the scores.
        c1, c2: whether φ, and so the loss, is once or twice continuously differentiable.
        lipschitz, smoothness: Lipschitz constant and maximal curvature of φ; a sum over competitors has larger ones.
        consistent: whether the argmax of the minimising scores minimises the target cost.
        linear_bound: whether target regret ≤ c · surrogate regret for some c.
        bound: Λ, the assumed bound of the scores, or None for unbounded scores.
        worst_case: the power bound with its constant, or None if nothing is known.
    """

    surrogate: Surrogate
    problem: Problem
    convex: bool
    consistent: Finding
    linear_bound: Finding
    bound: float | None = None
    worst_case: WorstCase | None = None

    @property
    def c1(self) -> bool:
        return self.surrogate.is_c1

    @property
    def c2(self) -> bool:
        return self.surrogate.is_c2

    @property
    def lipschitz(self) -> float:
        return self.surrogate.lipschitz

    @property
    def smoothness(self) -> float:
        return self.surrogate.smoothness

    def __str__(self) -> str:
        problem = self.problem
        yes = {True: "yes", False: "no"}
        # Facts of a user's function were checked at points, which is not a proof.
        checked = "" if self.surrogate.is_proven else " (supported numerically)"
        scores = f"{problem.family} scores" + ("" if self.bound is None else f" with margins of at most {self.bound:g}")
        lines = [
            f"{self.surrogate}",
            f"form {problem.form_name} on {_describe_outputs(problem)}, cost {problem.cost_name}, {scores}",
            f"  convex            {yes[self.convex]}{checked}",
            f"  smooth            {'C2' if self.c2 else 'C1' if self.c1 else 'no'}{checked}",
            f"  Lipschitz of φ    {self.lipschitz:g}{checked}",
            f"  sup φ''           {self.smoothness:g}{checked}",
            f"  argmax-consistent {self.consistent.verdict}: {self.consistent.reason}",
            f"  linear bound      {self.linear_bound.verdict}: {self.linear_bound.reason}",
        ]
        worst_case = [] if self.worst_case is None else [f"  worst case        {self.worst_case}"]
        return "\n".join(lines + worst_case + _describe_counterexample(self.linear_bound))

    def to_json(self) -> dict[str, Any]:
        """Returns the certificate as JSON values; infinite constants become the string "inf"."""
        return {
            "surrogate": str(self.surrogate),
            "form": self.problem.form_name,
            "outputs": asdict(self.problem.space),
            "cost": self.problem.cost_name,
            "family": self.problem.family,
            "bound": self.bound,
            "facts": "proven" if self.surrogate.is_proven else "supported numerically",
            "convex": self.convex,
            "c1": self.c1,
            "c2": self.c2,
            "lipschitz": _json_number(self.lipschitz),
            "smoothness": _json_number(self.smoothness),
            "consistent": _finding_to_json(self.consistent),
            "linear_bound": _finding_to_json(self.linear_bound),
            "worst_case": None
            if self.worst_case is None
            else asdict(self.worst_case) | {"constant": _json_number(self.worst_case.constant)},
        }


def _describe_outputs(problem: Problem) -> str:
    space = problem.space
    return (
        f"{space.num_tags} classes"
        if space.length == 1
        else f"sequences of length {space.length} with {space.num_tags} tags"
    )


def _describe_counterexample(finding: Finding) -> list[str]:
    example = finding.counterexample
    if example is None:
        return []
    # All digits, so that the sum is still 1.
    p = ", ".join(repr(float(probability)) for probability in example.probabilities)
    lines = [
        f"    p = ({p}), predicting output {example.prediction}: target regret {example.target_regret:.3g},",
        f"    surrogate regret / target regret = {example.ratio:.3g}, certified to {example.residual:.0e}",
    ]
    if finding.verdict == "refuted":
        pairs = "  ".join(
            f"{regret:.2g}: {ratio:.3g}" for regret, ratio in zip(example.regrets[::3], example.ratios[::3], strict=True)
        )
        lines.append(f"    ratio at decreasing target regret: {pairs}")
    lines.append(f"    {example.searched} distributions solved, {example.unsolved} not solved and ignored")
    return lines


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    example = finding.counterexample
    return {
        "verdict": finding.verdict,
        "reason": finding.reason,
        "constant": finding.constant,
        "counterexample": None
        if example is None
        else {
            "ratio": example.ratio,
            "probabilities": example.probabilities.tolist(),
            "prediction": example.prediction,
            "target_regret": example.target_regret,
            "residual": example.residual,
            "regrets": example.regrets.tolist(),
            "ratios": [_json_number(ratio) for ratio in example.ratios.tolist()],
            "searched": example.searched,
            "unsolved": example.unsolved,
        },
    }


def _json_number(number: float) -> float | str:
    return number if abs(number) < float("inf") else "inf"
