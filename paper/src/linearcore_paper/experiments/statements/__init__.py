"""`statements`: the paper's definitions, and those of its numbered statements that no other experiment is about.

`definitions` types them as printed and compares them with the library; `bounds` checks statements on random problems. The
bounds for more than two classes are in `counterexample`, the variance bound in `variance`.
"""

from functools import partial
from typing import Any

from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.statements import bounds, definitions
from linearcore_paper.experiments.statements.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

#: Differences of float64 sums, and of minima on a grid.
EXACT, GRID = 1e-9, 1e-6

#: Statements that say that two numbers are equal: place in the paper, claim, what the difference is taken over, tolerance.
EQUALITIES: dict[str, tuple[str, str, str, float]] = {
    "eq-1": ("Eq. (1)", "The two-sided linear-core surrogate", "the library at 251 margins, two bases", EXACT),
    "eq-2": ("Eq. (2)", "The one-sided linear-core surrogate", "the library at 251 margins, two bases", EXACT),
    "thm-3.2": ("Theorem 3.2", "T(t) is the least regret of a wrong prediction", "a search over 240,001 scores", GRID),
    "eq-3": ("Eq. (3)", "The sum loss", "the library's loss, 100 random score vectors, 2 to 6 classes", EXACT),
    "structured": ("Section 5", "The structured sum loss", "the library's loss, 8 outputs with Hamming cost", EXACT),
    "examples": ("Appendix D", "The two closed forms for three classes", "the library's loss at 338 points", EXACT),
    "conditional": ("Appendix F", "The conditional error of the sum loss", "the library, 2 to 6 classes", EXACT),
    "lemma-H.1": ("Lemma H.1", "The least 0-1 error and the 0-1 regret", "all answers, 400 random distributions", EXACT),
    "lemma-H.2": ("Lemma H.2", "The infimum over [−1, 1]", "a grid of 2,001 points, 200 random weights", EXACT),
    "lemma-I.1": ("Lemma I.1", "The least expected cost and its regret", "random scores, 9 outputs, Hamming cost", EXACT),
}
BOUNDS = {1: ("Lemma 3.5", "Corollary 3.6"), 2: ("Lemma 3.3", "Theorem 3.4")}
SIDED = {1: "one-sided", 2: "two-sided"}


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns one part for each statement."""
    seed, problems = settings.seed, 100_000 if settings.is_paper else 10_000
    differences: dict[str, PartFunction] = {
        "eq-1": definitions.two_sided_difference,
        "eq-2": definitions.one_sided_difference,
        "thm-3.2": bounds.transform_error,
        "eq-3": partial(definitions.sum_difference, seed),
        "structured": partial(definitions.structured_difference, seed),
        "examples": definitions.closed_forms_difference,
        "conditional": partial(definitions.conditional_difference, seed),
        "lemma-H.1": partial(bounds.zero_one_difference, seed),
        "lemma-H.2": partial(bounds.restricted_difference, seed),
        "lemma-I.1": partial(bounds.structured_difference, seed),
        "eq-4": definitions.family_difference,
        "rescaling": definitions.rescaling_error,
        "gap": definitions.gap_difference,
    }
    for sides in SIDED:
        differences[f"ratio-{sides}"] = partial(bounds.least_ratio, sides)
        differences[f"problems-{sides}"] = partial(bounds.binary_problems, sides, problems, seed)
    return differences


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Judges every statement, in the order of the paper."""
    equalities = {key: _equality(results, key) for key in EQUALITIES}
    claims = [_gap(results["gap"]), *(equalities.pop(key) for key in ("eq-1", "eq-2", "thm-3.2"))]
    for sides in (2, 1):
        claims += [_ratio(sides, *results[f"ratio-{sides}"]), _problems(sides, results[f"problems-{sides}"])]
    claims += [equalities.pop(key) for key in ("eq-3", "structured")]
    claims += [_family(results["eq-4"], results["rescaling"]), *equalities.values()]
    problems = [results[f"problems-{sides}"] | {"sides": sides} for sides in SIDED]
    return Outcome(claims, {"problems": problems}, _alt(problems))


def _equality(results: dict[str, Any], key: str) -> Claim:
    place, claim, over, tolerance = EQUALITIES[key]
    difference = results[key]
    ours = f"largest difference {round_values(difference, 2):g} to {over}"
    return Claim(f"{place}: {claim}", "as printed", ours, verdict(difference <= tolerance))


def _gap(result: list[float]) -> Claim:
    gap, difference = result
    return Claim(
        "Section 2: The minimizability gap of a restricted hypothesis set",
        "the best error in the set minus the mean of the best errors at single inputs",
        f"h(x) = wx on three inputs: {gap:.4f}, the same on a grid of w up to {round_values(difference, 2):g}",
        verdict(difference <= GRID and gap > 0),
    )


def _family(difference: float, error: float) -> Claim:
    return Claim(
        "Eq. (4): The family in τ",
        "stated to be an affine rescaling of Eq. (1)",
        f"largest difference {round_values(difference, 2):g} to the library for five values of τ; but no rescaling: with "
        f"τ = 0.5 the rescaled surrogate differs by up to {error:.2f} on [−6, 6]",
        verdict(difference <= EXACT and error > EXACT, "f"),
        "f",
    )


def _ratio(sides: int, least: float, at_zero: float) -> Claim:
    return Claim(
        f"{BOUNDS[sides][0]}: T(t) ≥ t and T(0) = 0, {SIDED[sides]}",
        "T(t) ≥ t, T(0) = 0",
        f"least T(t)/t {least:.5f} over five bases and t from 1e-4 to 1; |T(0)| = {at_zero:g}",
        verdict(least >= 1 - EXACT and at_zero <= EXACT),
    )


def _problems(sides: int, result: dict[str, Any]) -> Claim:
    return Claim(
        f"{BOUNDS[sides][1]}: The 0-1 regret is at most the surrogate regret, two classes, {SIDED[sides]}",
        "for every complete hypothesis set",
        f"{result['violations']} violations in {result['problems']:,} random problems; least ratio "
        f"{result['least_ratio']:g}",
        verdict(result["violations"] == 0),
    )


def _alt(problems: list[dict[str, Any]]) -> str:
    least = " and ".join(f"{row['least_ratio']:.3f} {SIDED[row['sides']]}" for row in problems)
    return (
        "0-1 regret against surrogate regret of random scores in random problems with two classes, on log axes. All points "
        f"lie below the line on which both are equal. The least ratio of surrogate to 0-1 regret is {least}."
    )


EXPERIMENT = Experiment(
    name="statements",
    title="Definitions and statements",
    question="Are the paper's definitions implemented as printed, and do its lemmas hold on random problems?",
    shows="the paper's definitions against the library, and its lemmas and binary bounds on random problems",
    paper="Equations (1) to (4), sections 2 to 5, appendices D, F, H and I",
    needs="nothing",
    cost={"smoke": "2 s", "paper": "5 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
