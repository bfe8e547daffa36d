"""Certificates: what a surrogate and a form guarantee together, as a report."""

from dataclasses import asdict, dataclass
from typing import Any

from linearcore.analysis._counterexample import Counterexample
from linearcore.analysis._problem import Problem
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Finding:
    """One verdict and why.

    Attributes:
        verdict: "proven", "refuted", "supported" (nothing against it was found, which is no proof), or "unknown".
        reason: one sentence.
        constant: for a proven linear bound c: target regret ≤ c · surrogate regret.
        counterexample: for "refuted", what anyone can re-check with `regret_ratio`; for "supported", the worst found.
    """

    verdict: str
    reason: str
    constant: float | None = None
    counterexample: Counterexample | None = None


@dataclass(frozen=True)
class Certificate:
    """What is known of a loss; printing it gives the report.

    Attributes:
        surrogate, problem: what was certified.
        convex: whether the loss is convex in the scores.
        c1, c2: the loss is as smooth as φ.
        lipschitz, smoothness: constants of φ itself; a sum over competitors multiplies them.
        consistent: does the minimiser's argmax minimise the target cost?
        linear_bound: is target regret ≤ c · surrogate regret?
    """

    surrogate: Surrogate
    problem: Problem
    convex: bool
    consistent: Finding
    linear_bound: Finding

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
        lines = [
            f"{self.surrogate}",
            f"form {problem.form_name} on {_outputs(problem)}, cost {problem.cost_name}, {problem.family} scores",
            f"  convex            {yes[self.convex]}",
            f"  smooth            {'C2' if self.c2 else 'C1' if self.c1 else 'no'}",
            f"  Lipschitz of φ    {self.lipschitz:g}",
            f"  sup φ''           {self.smoothness:g}",
            f"  argmax-consistent {self.consistent.verdict}: {self.consistent.reason}",
            f"  linear bound      {self.linear_bound.verdict}: {self.linear_bound.reason}",
        ]
        return "\n".join(lines + _evidence(self.linear_bound))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; infinite constants are the string "inf"."""
        return {
            "surrogate": str(self.surrogate),
            "form": self.problem.form_name,
            "outputs": asdict(self.problem.space),
            "cost": self.problem.cost_name,
            "family": self.problem.family,
            "convex": self.convex,
            "c1": self.c1,
            "c2": self.c2,
            "lipschitz": _finite(self.lipschitz),
            "smoothness": _finite(self.smoothness),
            "consistent": _finding(self.consistent),
            "linear_bound": _finding(self.linear_bound),
        }


def _outputs(problem: Problem) -> str:
    space = problem.space
    return (
        f"{space.num_tags} classes" if space.length == 1 else f"sequences of {space.length} sites with {space.num_tags} tags"
    )


def _evidence(finding: Finding) -> list[str]:
    found = finding.counterexample
    if found is None:
        return []
    p = ", ".join(repr(float(share)) for share in found.probabilities)  # All digits, so that they still add up to 1.
    lines = [
        f"    p = ({p}), predicting output {found.prediction}: target regret {found.target_regret:.3g},",
        f"    surrogate regret / target regret = {found.ratio:.3g}, certified to {found.residual:.0e}",
    ]
    if finding.verdict == "refuted":
        pairs = "  ".join(
            f"{regret:.2g}: {ratio:.3g}" for regret, ratio in zip(found.regrets[::3], found.ratios[::3], strict=True)
        )
        lines.append(f"    ratio as the target regret falls: {pairs}")
    lines.append(f"    {found.searched} distributions solved, {found.unsolved} left out as unsolved")
    return lines


def _finding(finding: Finding) -> dict[str, Any]:
    found = finding.counterexample
    return {
        "verdict": finding.verdict,
        "reason": finding.reason,
        "constant": finding.constant,
        "counterexample": None
        if found is None
        else {
            "ratio": found.ratio,
            "probabilities": found.probabilities.tolist(),
            "prediction": found.prediction,
            "target_regret": found.target_regret,
            "residual": found.residual,
            "regrets": found.regrets.tolist(),
            "ratios": [_finite(ratio) for ratio in found.ratios.tolist()],
            "searched": found.searched,
            "unsolved": found.unsolved,
        },
    }


def _finite(number: float) -> float | str:
    return number if abs(number) < float("inf") else "inf"
