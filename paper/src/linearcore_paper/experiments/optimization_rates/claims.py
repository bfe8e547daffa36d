"""Claims of `optimization-rates`."""

import math
from typing import Any

import numpy as np

from linearcore_paper.experiments._numbers import format_range
from linearcore_paper.runner import Claim, verdict

#: Largest difference between a measured and a theoretical exponent.
TOLERANCE = 0.1
#: A difference between losses counts from this many standard errors on.
SIGNIFICANT = 2.0
CORE = "lc-1"
#: Correction: C1 alone gives no rate.
LIPSCHITZ = "r"


def judge_claims(data: dict[str, Any]) -> list[Claim]:
    """Returns all claims."""
    rates, law_rows = data["rates"], {law: _by_loss(data, law) for law in data["laws"]}
    return [
        _rate(rates, "gradient", 1.0, "Gradient descent minimises linear-core surrogates at the rate O(1/T)"),
        _rate(rates, "nesterov", 2.0, "Nesterov's method minimises linear-core surrogates at the rate O(1/T²)"),
        _steep(data),
        _hinge(data["hinge"]),
        _regularised(rates),
        _steps(data, law_rows),
        _samples(data, law_rows),
        _bounds(data, law_rows),
    ]


def slowest(row: dict[str, Any]) -> float:
    """Returns the smaller of the exponents on both problems; None means faster than every power."""
    return min(float(value) for value in (row["ties"], row["separable"]) if value is not None)


def _by_loss(data: dict[str, Any], law: str) -> dict[str, Any]:
    return {row["loss"]: row for row in data["end_to_end"] if row["law"] == law}


def _rate(rates: list[dict[str, Any]], method: str, theory: float, claim: str) -> Claim:
    cores = [row for row in rates if row["key"] != "logistic"]
    exponents = [slowest(row[method]) for row in cores]
    share = max(row[method]["share_of_guarantee"] for row in rates)
    holds = all(abs(value - theory) <= TOLERANCE for value in exponents) and share <= 1
    fast = [row[method] for row in rates if row["key"] == "logistic"]
    return Claim(
        claim=claim,
        paper=f"O(1/T{'²' if theory == 2 else ''}), because they are C1",
        ours=f"slowest exponent {format_range(exponents, '.2f')} for {len(cores)} surrogates with finite sup φ''; the "
        f"excess is at most {share:.2f} of the guarantee. The core attains the rate: on a tie with bias t a step moves the "
        "score by ηt. The logistic loss is curved there and faster than every power of T; its slowest exponent, without "
        f"noise, is {slowest(fast[0]):.2f}",
        verdict=verdict(holds, LIPSCHITZ),
        correction=LIPSCHITZ,
    )


def _steep(data: dict[str, Any]) -> Claim:
    texts = []
    for row in data["steep"]:
        starts = ", ".join("none" if start is None else f"{start:g}" for start in row["fails_from"])
        texts.append(f"{row['label']}: from distance {starts}")
    fails = all(start is not None for row in data["steep"] for start in row["fails_from"])
    sizes = ", ".join(f"{size:g}" for size in data["step_sizes"])
    return Claim(
        claim="Every linear-core surrogate is C1 and therefore has these rates with a fixed step size",
        paper="globally C1, so O(1/T)",
        ours=f"where sup φ'' is infinite, 50 steps of size {sizes} increase the risk. {'; '.join(texts)}",
        verdict=verdict(not fails),
        correction=LIPSCHITZ,
    )


def _hinge(hinge: dict[str, Any]) -> Claim:
    return Claim(
        claim="Subgradient descent minimises the hinge at the rate O(1/√T)",
        paper="limited to O(1/√T)",
        ours=f"exponent {hinge['ties']:.2f} with steps 1/√k; with a regulariser and steps 1/(λk) {hinge['regularised']:.2f}",
        verdict=verdict(abs(hinge["ties"] - 0.5) <= TOLERANCE),
    )


def _regularised(rates: list[dict[str, Any]]) -> Claim:
    ratios = {
        method: [math.log(row[method]["factor"]) / math.log(row[method]["factor_of_theory"]) for row in rates]
        for method in ("gradient", "nesterov")
    }
    core = next(row for row in rates if row["key"] == "lc-logistic-1")
    texts = [f"{core[method]['factor']:.4f} (theory {core[method]['factor_of_theory']:.4f})" for method in ratios]
    # With two equal eigenvalues momentum multiplies its factor by a slowly growing one.
    least = min(value for values in ratios.values() for value in values)
    return Claim(
        claim="With a regulariser the linear-core surrogate converges linearly",
        paper="converges linearly to high precision",
        ours=f"the distance shrinks by {texts[0]} per step, with momentum by {texts[1]}; over all surrogates the logarithm "
        f"of the factor is at least {least:.2f} times that of the theory",
        verdict=verdict(least >= 1 - TOLERANCE),
    )


def _steps(data: dict[str, Any], laws: dict[str, Any]) -> Claim:
    def count(row: dict[str, Any]) -> float:
        return row["steps"]["reached"] or math.inf

    texts = []
    for law, rows in laws.items():
        counts = ", ".join(f"{row['label']}: {row['steps']['reached'] or 'never'}" for row in rows.values())
        texts.append(f"{data['laws'][law]}, {counts}")
    wins = all(count(rows[CORE]) < min(count(rows["hinge"]), count(rows["logistic"])) for rows in laws.values())
    return Claim(
        claim="The linear core needs fewer gradient steps to a small 0-1 risk than the hinge and the logistic loss",
        paper="the best of both: fast optimisation and a linear bound",
        ours=f"steps until the 0-1 excess stays below 0.01, each loss with its best step size. {'; '.join(texts)}. With "
        "separate scores for all inputs every loss predicts the same after one step",
        verdict=verdict(wins),
    )


def _samples(data: dict[str, Any], laws: dict[str, Any]) -> Claim:
    texts, wins = [], []
    for law, rows in laws.items():
        core, logistic = (np.array(rows[loss]["samples"]["last"]) for loss in (CORE, "logistic"))
        difference = core - logistic
        error = difference.std(ddof=1) / math.sqrt(len(difference))
        change = 100 * difference.mean() / logistic.mean()
        slopes = format_range([-row["samples"]["slope"] for row in rows.values()], ".2f")
        wins.append(difference.mean() < -SIGNIFICANT * error)
        texts.append(
            f"{data['laws'][law]}: {change:+.0f} ± {100 * error / logistic.mean():.0f} % against the logistic loss, "
            f"exponents of all losses {slopes}".replace("-", "−")
        )
    size = laws[next(iter(laws))][CORE]["samples"]["samples"][-1]
    return Claim(
        claim="On hard problems the linear core reduces the 0-1 risk significantly faster than the logistic loss",
        paper="significantly faster",
        ours=f"0-1 excess of the minimiser with {size:,} samples, τ = 1. {'; '.join(texts)}",
        verdict=verdict(all(wins)),
    )


def _bounds(data: dict[str, Any], laws: dict[str, Any]) -> Claim:
    texts, wins = [], []
    for law, rows in laws.items():
        pairs = [[rows[loss][axis]["bound"][-1] for loss in (CORE, "logistic")] for axis in ("steps", "samples")]
        wins.append(pairs[1][0] < pairs[1][1])
        (core_steps, logistic_steps), (core_samples, logistic_samples) = pairs
        texts.append(
            f"{data['laws'][law]}: {core_steps:.2g} against {logistic_steps:.2g} after all steps, {core_samples:.2g} "
            f"against {logistic_samples:.2g} with all samples"
        )
    return Claim(
        claim="With the same samples the linear core has the smaller bound on the 0-1 excess",
        paper="linear instead of square root",
        ours=f"bound of the linear core, τ = 1, against that of the logistic loss. {'; '.join(texts)}. Linear scores do not "
        "attain the least risk, so neither bound tends to 0 unless the model of the logistic loss is right",
        verdict=verdict(all(wins), "v"),
        correction="v",
    )
