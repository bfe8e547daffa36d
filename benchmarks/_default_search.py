"""Candidates for the surrogate of the default form, `which_loss.py --search`: one change at a time, on development data.

The candidates differ from today's default in the core's end τ, the sharpness of the tail, the base, or a temperature t of
the competitors, s_y − t·logsumexp_{v≠y}(s_v/t): towards 0 it is the margin to the strongest competitor. Cross-entropy is
listed for comparison. The rows are not among those of the comparison, and only validation labels are used.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from torch import Tensor

import linearcore as lc
from _loss_trials import Loss, stateless
from linearcore.losses.baselines import cross_entropy

TODAY = "default"
#: Sets with enough other rows, and seeds that the comparison does not use.
SETS_SEARCHED = ("letter", "newsgroups", "words", "w8a", "fashion", "a9a")
SEEDS_SEARCHED = (11, 12, 13)


def heated_loss(scores: Tensor, labels: Tensor, *, temperature: float, reduction: str) -> Tensor:
    """φ(s_y − t·logsumexp_{v≠y}(s_v/t)) with the default φ, by φ_{τ,β}(u) = t·φ_{τ/t,βt}(u/t)."""
    phi = lc.LinearCore(tau=1.0 / temperature, sharpness=temperature)
    found: Tensor = temperature * lc.multiclass_loss(scores / temperature, labels, surrogate=phi, reduction=reduction)
    return found


def _core(base: str = "logistic", **options: float) -> Loss:
    phi = lc.LinearCore(base, **options)
    return Loss(str(phi), stateless(lc.multiclass_loss, surrogate=phi), is_ours=True)


CANDIDATES: dict[str, Loss] = {
    TODAY: _core(),
    "cross-entropy": Loss("cross-entropy", stateless(cross_entropy)),
    **{f"τ = {tau:g}": _core(tau=tau) for tau in (0.25, 0.5, 2.0, 4.0)},
    **{f"sharpness {beta:g}": _core(sharpness=beta) for beta in (0.5, 2.0, 4.0)},
    **{f"{base} base": _core(base) for base in ("gamma", "exponential", "truncated_quadratic")},
    **{f"temperature {t:g}": Loss(f"temperature {t:g}", stateless(heated_loss, temperature=t)) for t in (0.5, 2.0, 4.0)},
}


def search_table(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each candidate: gains over the default in validation accuracy, of the best try of each seed.

    `gain` is the mean over cases (data set and noise) of which the default and the candidate are recorded; `error` is its
    standard error over cases; `better` counts cases with a gain; `clean` and `noisy` are means over parts of the cases.
    """
    accuracy: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for line in lines:
        cell, by_seed = line["cell"], line["results"]["validation"]
        accuracy[cell["loss"]][cell["data"], cell["noise"]] = statistics.mean(max(tries) for tries in by_seed)
    rows = []
    for name, by_case in accuracy.items():
        gains = {case: value - accuracy[TODAY][case] for case, value in by_case.items() if case in accuracy[TODAY]}
        if not gains:
            continue
        row: dict[str, Any] = {"candidate": name, "cases": len(gains), "gain": round(statistics.mean(gains.values()), 3)}
        if len(gains) > 1:
            row["error"] = round(statistics.stdev(gains.values()) / math.sqrt(len(gains)), 3)
        row["better"] = sum(gain > 0.005 for gain in gains.values())  # Half of the last digit of an accuracy.
        for part, is_clean in (("clean", True), ("noisy", False)):
            own = [gain for (_, noise), gain in gains.items() if (noise == "clean") is is_clean]
            row[part] = round(statistics.mean(own), 3) if own else None
        rows.append(row | {"worst": round(min(gains.values()), 3)})
    return rows


def show_search(rows: list[dict[str, Any]]) -> None:
    """Prints the table."""
    heads = ("candidate", "cases", "gain", "error", "better", "clean", "noisy", "worst")
    table = Table(*heads, title="points above the default on noisy validation labels of development rows")
    for row in rows:
        table.add_row(*("–" if row.get(key) is None else str(row[key]) for key in heads))
    Console().print(table)
