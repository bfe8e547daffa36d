"""Tables of the record of `which_loss.py`: ranks, differences to cross-entropy, calibration, settings to start with."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from _label_sets import SETS
from _loss_trials import LOSSES, NOISES
from _rank_tests import rank_methods

Row = dict[str, Any]
#: Losses of the comparison by number of classes: "many" is three or more.
GROUPS = {"many": list(LOSSES), "two": [name for name, loss in LOSSES.items() if loss.fits_two_classes]}
MEASURES = ("balanced", "ece", "nll")
BASELINE = "ce"


def summarize(lines: Iterable[Row]) -> Row:
    """Returns all tables of complete cases: those in which every loss is recorded."""
    cases = complete_cases(lines)
    found: Row = {"cases": cases, "groups": []}
    for optimizer in ("adam", "sgd"):
        for group in GROUPS:
            for noise in NOISES:
                own = [
                    case for case in cases if (case["optimizer"], case["group"], case["noise"]) == (optimizer, group, noise)
                ]
                if own:
                    found["groups"].append({"optimizer": optimizer, "group": group, "noise": noise, **compared(own, group)})
    return found


def complete_cases(lines: Iterable[Row]) -> list[Row]:
    """Returns a row for each data set, noise and optimiser, with the measures of all its losses in per cent."""
    by_case: dict[tuple[str, str, str], dict[str, Row]] = defaultdict(dict)
    for line in lines:
        cell = line["cell"]
        by_case[cell["optimizer"], cell["noise"], cell["data"]][cell["loss"]] = line["results"]
    cases = []
    for (optimizer, noise, data), results in by_case.items():
        group = "two" if SETS[data].is_binary else "many"
        if all(loss in results for loss in GROUPS[group]):
            losses = {loss: measures(results[loss]) for loss in GROUPS[group]}
            cases.append({"optimizer": optimizer, "noise": noise, "data": data, "group": group, "losses": losses})
    order = list(NOISES)
    return sorted(cases, key=lambda case: (case["optimizer"], order.index(case["noise"]), list(SETS).index(case["data"])))


def measures(results: Row) -> Row:
    """Returns means over the seeds of the chosen tries, the accuracy with its standard deviation."""
    tests = [by_try[place] for by_try, place in zip(results["test"], results["chosen"], strict=True)]
    found = {"test": round(statistics.mean(tests), 3), "sd": round(statistics.stdev(tests), 3)}
    for name in MEASURES:
        if name in results:
            factor = 1 if name == "nll" else 100
            found[name] = round(factor * statistics.mean(results[name]), 4)
    return found


def compared(cases: list[Row], group: str) -> Row:
    """Compares the losses over data sets: ranks by accuracy and by balanced accuracy, and means."""
    losses = GROUPS[group]
    found: Row = {"sets": [case["data"] for case in cases], "losses": {loss: {} for loss in losses}}
    for measure, prefix in (("test", ""), ("balanced", "balanced_")):
        ranks = rank_methods([[case["losses"][loss][measure] for loss in losses] for case in cases])
        found[f"{prefix}p_value"] = None if ranks.p_value is None else float(f"{ranks.p_value:.3g}")
        found["critical_difference"] = round(ranks.critical_difference, 3)
        for loss, average in zip(losses, ranks.average, strict=True):
            gains = [case["losses"][loss][measure] - case["losses"][BASELINE][measure] for case in cases]
            row = {"rank": average, "gain": statistics.mean(gains), "least_gain": min(gains), "greatest_gain": max(gains)}
            row["better"] = sum(gain > 0 for gain in gains)
            found["losses"][loss] |= {f"{prefix}{key}": round(value, 3) for key, value in row.items()}
    for loss in losses:
        for measure in ("ece", "nll"):
            if measure in cases[0]["losses"][loss]:
                values = [case["losses"][loss][measure] for case in cases]
                found["losses"][loss][measure] = round(statistics.mean(values), 4)
    return found


def starts(lines: Iterable[Row]) -> list[Row]:
    """Returns, for each optimiser, network and loss, the learning rate × scale with the smallest loss of accuracy.

    `regret` is the accuracy on noisy validation labels that is lost if only this one is tried, with the better number of
    epochs, against all six tries: the mean over cells and seeds, for each of the three values.
    """
    lost: dict[tuple[str, str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    short: dict[tuple[str, str, str, str], list[bool]] = defaultdict(list)
    for line in lines:
        cell, tries = line["cell"], line["settings"]["tries"]
        network = "hidden layer" if line["settings"]["hidden"] else "linear"
        labels = "clean" if cell["noise"] == "clean" else "noisy"
        key = (cell["optimizer"], network, cell["loss"], labels)
        for by_try, place in zip(line["results"]["validation"], line["results"]["chosen"], strict=True):
            best: dict[str, float] = {}
            for (lr, scale, _), accuracy in zip(tries, by_try, strict=True):
                best[f"{lr * scale:g}"] = max(best.get(f"{lr * scale:g}", 0.0), accuracy)
            for step, accuracy in best.items():
                lost[key][step].append(max(by_try) - accuracy)
            short[key].append(tries[place][2] == min(one[2] for one in tries))
    rows = []
    for key, by_step in lost.items():
        regret = {step: round(statistics.mean(values), 3) for step, values in by_step.items()}
        row = dict(zip(("optimizer", "network", "loss", "labels"), key, strict=True))
        rows.append(row | {"step": min(regret, key=lambda step: regret[step]), "regret": regret})
        rows[-1]["short"] = round(statistics.mean(short[key]), 3)
    return sorted(rows, key=lambda row: (row["optimizer"], row["network"], row["labels"], list(LOSSES).index(row["loss"])))


def show(summary: Row) -> None:
    """Prints average ranks and mean differences to cross-entropy, a table for each optimiser and number of classes."""
    console = Console(width=180)
    for optimizer, group in dict.fromkeys((one["optimizer"], one["group"]) for one in summary["groups"]):
        own = [one for one in summary["groups"] if (one["optimizer"], one["group"]) == (optimizer, group)]
        heads = [f"{one['noise']}, {len(one['sets'])} sets" for one in own]
        table = Table(
            "loss", *heads, title=f"{optimizer}, {group} classes: average rank, points above cross-entropy, balanced"
        )
        for loss in GROUPS[group]:
            rows = [one["losses"][loss] for one in own]
            table.add_row(loss, *(f"{row['rank']:.1f}  {row['gain']:+.1f}  {row['balanced_gain']:+.1f}" for row in rows))
        table.add_row("critical difference", *(f"{one['critical_difference']:.1f}" for one in own))
        console.print(table)
    for row in summary["starts"]:
        names = ", ".join(str(row[key]) for key in ("optimizer", "network", "labels", "loss"))
        console.print(f"start {names}: {row['step']} {row['regret']}, few epochs {row['short']:.2f}")
