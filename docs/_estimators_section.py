"""The part of docs/sampling.md on bias, variance and time of sampled gradients."""

import math
from typing import Any

from _tables import RESULTS, figure, source, table

from linearcore.runtime import read_record

#: A ratio beyond this is only said to be.
MOST = 1e6
FORMS = {"logodds": "log-odds", "pairwise": "pairwise"}

Row = dict[str, Any]


def estimators_section() -> list[str]:
    """Text and tables; nothing where there is no record."""
    path = RESULTS / "estimators_cpu.json"
    if not path.is_file():
        return []
    record = read_record(path)
    points, settings = record["results"]["points"], record["settings"]
    errors = ", ".join(f"{point['point']} ({point['steps']:,} steps, {point['error']:g} % wrong)" for point in points)
    where = (
        f"{settings['chains']} generated chains with {settings['tags']} tags, {settings['runs']} gradients of each. "
        f"The three numbers of a cell belong to three points of training: {errors}. {source(record)}"
    )
    rows = _by_estimator(points)
    parts = [_TEXT, where]
    for form, name in FORMS.items():
        local = [row for row in rows if row["objective"] == form]
        parts += [f"### Single-site changes, {name}", *_local(local, points, record["results"]["all_candidates_ms"][form])]
    whole = [row for row in rows if not row["local"]]
    return [*parts, "### Whole sequences", _WHOLE, *_whole(whole, rows, points)]


def _by_estimator(points: list[Row]) -> list[Row]:
    """Rows with a list, one entry a point, for all that depends on the point."""
    found = []
    for each in zip(*(point["estimators"] for point in points), strict=True):
        row = {key: each[0][key] for key in ("estimator", "objective", "samples", "local", "ms")}
        keys = ("bias", "resolution", "variance", "absolute", "variance_ms", "cosine", "size")
        found.append(row | {key: [at.get(key) for at in each] for key in keys})
    return found


def _name(row: Row) -> str:
    return f"{row['estimator']}, K = {row['samples']}"


def _bias(row: Row) -> str:
    """What is below the noise of its own measurement is only bounded."""
    cells = []
    for bias, resolution in zip(row["bias"], row["resolution"], strict=True):
        cells.append("–" if bias is None else f"< {resolution:.2g}" if bias < resolution else f"{bias:.2g}")
    return " / ".join(cells)


def _cells(row: Row) -> list[str]:
    variance, effective = (" / ".join(figure(value, ".2g") for value in row[key]) for key in ("variance", "variance_ms"))
    return [_name(row), _bias(row), variance, f"{row['ms']:.2f}", effective]


_COLUMNS = ["bias", "variance", "ms", "variance × ms"]


def _local(rows: list[Row], points: list[Row], all_ms: float) -> list[str]:
    told = [f"All candidates: no bias, no variance, {all_ms:.2f} ms."]
    for index, point in enumerate(points):
        known = [row for row in rows if row["variance_ms"][index] is not None]
        if not known:
            continue
        least = min(known, key=lambda row: row["variance_ms"][index])
        straight = min(known, key=lambda row: max(row["bias"][index], row["resolution"][index]))
        told.append(
            f"{point['point'].capitalize()}: least variance × ms *{_name(least)}* ({least['variance_ms'][index]:.2g}), "
            f"least bias that can be vouched for *{_name(straight)}* "
            f"({max(straight['bias'][index], straight['resolution'][index]):.2g})."
        )
    return ["\n".join(f"- {line}" for line in [*told, _ranking(rows)]), table(["draws", *_COLUMNS], [*map(_cells, rows)])]


def _ranking(rows: list[Row]) -> str:
    """Everyone's variance × ms over the least of its objective at the same point and K, as a geometric mean."""
    logs: dict[str, list[float]] = {}
    for row in rows:
        rivals = [other for other in rows if (other["objective"], other["samples"]) == (row["objective"], row["samples"])]
        for index, value in enumerate(row["variance_ms"]):
            least = min((other["variance_ms"][index] for other in rivals if other["variance_ms"][index]), default=None)
            # Without variance there is nothing to be a multiple of.
            if value and least and all(other["variance_ms"][index] for other in rivals):
                logs.setdefault(row["estimator"], []).append(math.log(value / least))
    means = sorted((math.exp(sum(values) / len(values)), name) for name, values in logs.items())
    told = ", ".join(f"*{name}* {mean:.2f}" for mean, name in means)
    return f"Variance × ms over the least of the same objective, point and K, geometric means, the best first: {told}."


def _whole(rows: list[Row], everything: list[Row], points: list[Row]) -> list[str]:
    told = []
    for name in ("α = 1", "running α"):
        pairs = [(row, _plain(rows, row)) for row in rows if row["estimator"].endswith(name)]
        for row, plain in pairs:
            ratios = [
                _times(with_it * row["ms"], without * plain["ms"])
                for with_it, without in zip(row["absolute"], plain["absolute"], strict=True)
            ]
            told.append(f"Control variate, {name}, K = {row['samples']}: variance × ms × {' / '.join(ratios)}.")
    what = {"cosine": ("Cosine of the exact gradient to", ".2f"), "size": ("Its length beside", ".2g")}
    for key, (text, form) in what.items():
        of = {row["objective"]: " / ".join(figure(value, form) for value in row[key]) for row in rows}
        each = "; ".join(f"{name} {values}" for name, values in of.items())
        told.append(f"{text} that of log-odds over all candidates: {each}.")
    told.append(_beside_local(rows, everything, points))
    told.append(_ranking(rows))
    head = ["whole sequences", *_COLUMNS]
    return ["\n".join(f"- {line}" for line in told), table(head, [*map(_cells, rows)])]


def _times(value: float, other: float) -> str:
    """A ratio; where the divisor has all but vanished, how large it is says nothing."""
    return "–" if not other else f"{value / other:.2g}" if value <= MOST * other else f"> {MOST:,.0f}"


def _plain(rows: list[Row], row: Row) -> Row:
    """The same estimate without the control variate."""
    return next(
        other for other in rows if other["estimator"] == "truth against uniform" and other["samples"] == row["samples"]
    )


def _beside_local(rows: list[Row], everything: list[Row], points: list[Row]) -> str:
    """The least variance × ms of both kinds at the last point."""
    local = [row["variance_ms"][-1] for row in everything if row["objective"] == "logodds"]
    whole = [row["variance_ms"][-1] for row in rows]
    best = [min((value for value in values if value is not None), default=None) for values in (local, whole)]
    return (
        f"{points[-1]['point'].capitalize()}, the least variance × ms, each relative to its own gradient, is "
        f"{figure(best[1], '.2g')} for whole sequences and {figure(best[0], '.2g')} for single-site log-odds."
    )


_TEXT = """## Bias, variance and time of a gradient

For an estimator g of a gradient g*: bias is ‖E g − g*‖ / ‖g*‖, told from 0 only above twice the noise of its own
measurement ("<" otherwise); variance is E ‖g − E g‖² / ‖g*‖²; ms is the median time of a gradient on one thread, draws
included. Of two unbiased estimators the one with less variance × ms is the better: in the same time it can be averaged
to less noise. A dash is a gradient that was lost in the noise of its long average."""

_WHOLE = """The paper's losses, and the truth against uniform sequences, for which there is a control variate. Their
exact gradients have no closed form on a chain; long averages stand for them. "raw" and "normalised" pairs differ by a
factor where all chains have one length, so that they are the same here but for rounding, and raw weights are beyond
float32 already. Variances are relative to each objective's own gradient; whether that gradient is worth following, its
cosine and its length say; a length near 0 means that the draws have nothing left to teach."""
