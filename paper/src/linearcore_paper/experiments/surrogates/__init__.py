"""`surrogates`: the curves of all surrogates, and Table 1 with a numerical check of every declared property.

`checked_facts` estimates the properties numerically, without using the declared values, and compares both.
"""

from functools import partial
from typing import Any

from linearcore.surrogates import BASES, CLASSICAL, LinearCore, SmoothedHinge, Surrogate
from linearcore_paper.experiments._numbers import format_range
from linearcore_paper.experiments.surrogates.checked_facts import agrees, facts, kind_of
from linearcore_paper.experiments.surrogates.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

#: Surrogates in the paper's Table 1.
_IN_PAPER = ("hinge", "squared-hinge", "logistic", "exponential")
_STANDARD: dict[str, tuple[str, Surrogate]] = {name: (name.replace("-", " "), phi) for name, phi in CLASSICAL.items()}
PAPER_ROWS = {name: _STANDARD.pop(name) for name in _IN_PAPER}
CORES: dict[str, tuple[str, Surrogate]] = {
    f"lc-{base}-{sides}": (
        f"LC {base.replace('_', ' ')}, {'one' if sides == 1 else 'two'}-sided",
        LinearCore(base, sides=sides),
    )
    for sides in (1, 2)
    for base in BASES
}
OUR_ROWS = _STANDARD | {"smoothed-hinge-1": ("smoothed hinge, γ = 1", SmoothedHinge(1.0))}
ROWS = PAPER_ROWS | CORES | OUR_ROWS


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns one part for each surrogate."""
    finest = 1e-5 if settings.is_paper else 1e-4
    return {key: partial(facts, phi, finest) for key, (_, phi) in ROWS.items()}


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Builds Table 1 with declared and measured properties and judges its claims."""
    table = [
        {
            "key": key,
            "label": label,
            "declared": results[key]["declared"],
            "found": results[key]["found"],
            "agrees": agrees(results[key]),
            "kind": kind_of(results[key]["found"]["slope"]),
        }
        for key, (label, _) in ROWS.items()
    ]
    by_key = {row["key"]: row for row in table}
    curves = [
        {"key": key, "label": label, "panel": "standard" if key in PAPER_ROWS or key in OUR_ROWS else f"sides-{key[-1]}"}
        | {name: results[key][name] for name in ("margin", "value")}
        for key, (label, _) in ROWS.items()
    ]
    claims = [*_table_claims(by_key), _c2_claim(by_key, results), _smoothing_claim(by_key)]
    return Outcome(claims, {"table": table, "curves": curves}, _alt(by_key))


def _table_claims(rows: dict[str, Any]) -> list[Claim]:
    smooth = ["logistic", "exponential"]
    paper_rows = {
        "The hinge": ("convex, not differentiable, linear bound", ["hinge"], {"kink"}, "linear"),
        "The squared hinge": ("convex, C1, square-root bound", ["squared-hinge"], {"C1"}, "square root"),
        "Logistic and exponential losses": ("convex, C∞, square-root bound", smooth, {"C∞"}, "square root"),
        "Linear-core surrogates (two classes)": ("convex, C1 or C2, linear bound", list(CORES), {"C1", "C2"}, "linear"),
    }
    claims = []
    for subject, (paper, keys, classes, kind) in paper_rows.items():
        chosen = [rows[key] for key in keys]
        holds = all(row["agrees"] and row["declared"]["class"] in classes and row["kind"] == kind for row in chosen)
        smoothness = sorted({row["declared"]["class"].replace("kink", "a kink") for row in chosen})
        slopes, bounds = (format_range([row["found"][fact] for row in chosen], ".3f") for fact in ("slope", "bound"))
        convex = "convex" if all(row["found"]["convex"] for row in chosen) else "not convex"
        ours = f"{convex}, {' or '.join(smoothness)}, rate slope {slopes}, smallest T(t)/t {bounds}"
        claims.append(Claim(f"{subject}, Table 1", paper, ours, verdict(holds)))
    return claims


def _c2_claim(rows: dict[str, Any], results: dict[str, Any]) -> Claim:
    flat = [key for key in CORES if rows[key]["declared"]["class"] == "C2"]
    bases = sorted({key.split("-")[1] for key in flat})
    quartic = results["lc-quartic-1"]
    return Claim(
        claim="Bases with Φ''(0) = 0 give C2 surrogates, for example the quartic",
        paper="C2",
        ours=f"numerically C2: {' and '.join(bases)}, one- and two-sided; but the quartic increases again beyond margin "
        f"{quartic['lowest_at']:.2f}, gamma does not",
        verdict=verdict(all(rows[key]["found"]["class"] == "C2" for key in flat), "e"),
        correction="e",
    )


def _smoothing_claim(rows: dict[str, Any]) -> Claim:
    narrow, wide = rows["smoothed-hinge"], rows["smoothed-hinge-1"]
    narrow_text = f"width 0.5: slope {narrow['found']['slope']:.3f}, T(t) ≥ {narrow['found']['bound']:.3f} t"
    return Claim(
        claim="Smoothing the hinge with a quadratic piece loses the linear rate",
        paper="linear rate lost in general",
        ours=f"{narrow_text}; lost only when the piece reaches margin 0 (width 1: slope {wide['found']['slope']:.3f})",
        verdict=verdict(narrow["kind"] != "linear"),
        correction="j",
    )


def _alt(rows: dict[str, Any]) -> str:
    agreeing = sum(row["agrees"] for row in rows.values())
    return (
        "Three panels of loss against margin. Top, standard surrogates: hinge and smoothed hinge linear around zero, "
        "squared hinge, logistic and exponential curved there. Middle, one-sided linear-core surrogates of five bases: "
        "parallel lines up to margin 1, then a tail; the tail of the quartic increases again. Bottom, two-sided: the same "
        f"between −1 and 1, bending upwards below −1. Table 1: {agreeing} of {len(rows)} rows confirmed numerically."
    )


EXPERIMENT = Experiment(
    name="surrogates",
    title="Surrogate losses and their properties",
    question="What do the losses look like, and which of them are convex, smooth and linearly consistent?",
    shows="the curves of all surrogates, and Table 1 computed from declared properties and checked numerically",
    paper="Figure 1 and Table 1",
    needs="nothing",
    cost={"smoke": "2 s", "paper": "3 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
