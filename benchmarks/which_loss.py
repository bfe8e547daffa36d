"""Which loss should one take? Fifteen data sets, nine kinds of wrong labels, ten losses, and six tries for each loss.

Small networks (one hidden layer of 128 units, or a linear layer on text) are trained on up to 4,000 rows of images, tables
and text. A cell is one data set, label noise, optimiser and loss. It trains six tries: two numbers of epochs, and three
learning rates of Adam, or three scales of the loss at one learning rate of SGD with momentum and weight decay (Adam without
weight decay is invariant to the scale). Every loss has the same six tries. For each of three seeds the try with the best
accuracy on validation labels, which are as wrong as the training labels, is reported on true test labels: accuracy, balanced
accuracy, and calibration where the loss estimates probabilities. Options of the losses are their defaults. All networks of a
cell with the same number of epochs are trained as one stack.

Seeds draw other splits of the same rows, other wrong labels and initial weights. With two classes there are fewer kinds of
noise, because pair flip and instance-dependent noise are symmetric there, and two losses fewer: the robust loss raises, and
the pairwise form is the default. SGD is run on letter, Fashion-MNIST and 20 newsgroups only.

The plan: 1,420 cells, measured at 1 to 8 seconds each on one thread, about an hour and a half in all; `--plan` measures one
cell of each data set and prints the sum. The order makes a part of the record useful: all sets without noise, with symmetric
and with pair-flip noise of 40 % first, all losses of a case together, SGD last. Every finished cell is one line of the
record. The same command continues an interrupted run; `--minutes` stops it after a time. `--summary` makes the tables and
the figure of a record, complete or not.

`--search` looks for a better default: one change at a time of τ, sharpness, base and a temperature, trained on other rows
than those of the comparison, judged by noisy validation labels only. It has a record of its own.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from _cell_record import Cell, append, finished, lines
from _default_search import CANDIDATES, SEEDS_SEARCHED, SETS_SEARCHED, search_table, show_search
from _harness import command, data_folder, parsed
from _label_sets import SETS, DataError, LabelSet, Pool, subset
from _loss_summary import show, starts, summarize
from _loss_trials import LOSSES, NOISES, TWO_CLASS_LAWS, Loss, one_cell, tries_of
from _rank_figure import save_ranks
from linearcore.runtime import environment, has_uncommitted_changes, one_thread, write_record

RESULTS = Path(__file__).parent / "results"
SGD_SETS = ("letter", "fashion", "newsgroups")
#: Kinds of noise that are run first on all sets; the rest follows in the order of `NOISES`.
FIRST = ("clean", "symmetric 40 %", "pair flip 40 %")
#: Entries of the environment that a line keeps.
KEPT = ("commit", "cpu", "python", "torch")
#: Made-up rows of `--quick`.
QUICK_ROWS, QUICK_WIDTH = 240, 6


@dataclass(frozen=True)
class Study:
    """What is compared, with the defaults of the options.

    Attributes:
        losses: losses by name.
        sets, noises, optimizers: names.
        seeds: seeds of splits, noise, initial weights and order.
        part: part of the rows of a data set.
        out: file name of the record.
    """

    losses: Mapping[str, Loss]
    sets: tuple[str, ...]
    noises: tuple[str, ...]
    optimizers: tuple[str, ...]
    seeds: tuple[int, ...]
    part: int
    out: str


COMPARISON = Study(LOSSES, tuple(SETS), tuple(NOISES), ("adam", "sgd"), (1, 2, 3), 0, "which_loss.jsonl")
SEARCH = Study(CANDIDATES, SETS_SEARCHED, FIRST, ("adam",), SEEDS_SEARCHED, 1, "which_loss_search.jsonl")


def cells(study: Study) -> list[Cell]:
    """Returns the cells in the order in which they are run."""
    ordered = [*(name for name in FIRST if name in study.noises), *(name for name in study.noises if name not in FIRST)]
    return [
        Cell(data, noise, optimizer, loss)
        for optimizer in study.optimizers
        for noise in ordered
        for data in study.sets
        for loss in study.losses
        if is_planned(data, noise, optimizer, study.losses[loss])
    ]


def is_planned(data: str, noise: str, optimizer: str, loss: Loss) -> bool:
    """Whether the cell differs from other cells, and belongs to the plan."""
    fits_classes = not SETS[data].is_binary or (loss.fits_two_classes and NOISES[noise][0] in TWO_CLASS_LAWS)
    return fits_classes and (optimizer != "sgd" or data in SGD_SETS)


@lru_cache(maxsize=16)
def rows_of(data: str, folder: Path | None, part: int, is_quick: bool) -> Pool:
    """Reads a data set once; with --quick, draws a Gaussian cluster for each class."""
    if not is_quick:
        return SETS[data].read(folder or Path(), part)
    classes = 2 if SETS[data].is_binary else 4
    stream = torch.Generator().manual_seed(part)
    labels = torch.arange(QUICK_ROWS) % classes
    centres = 2 * torch.randn(classes, QUICK_WIDTH, generator=stream)
    return subset((centres[labels] + torch.randn(QUICK_ROWS, QUICK_WIDTH, generator=stream)).numpy(), labels.numpy())


def case_of(data: str, is_quick: bool) -> LabelSet:
    """Returns the data set's plan; with --quick, two epochs."""
    case = SETS[data]
    return replace(case, hidden=min(8, case.hidden), epochs=(1, 2), batch=40) if is_quick else case


def line_of(cell: Cell, study: Study, args: argparse.Namespace) -> dict[str, Any]:
    """Trains a cell; returns its line of the record."""
    pool = rows_of(cell.data, data_folder(args.data), study.part, args.quick)
    case, loss = case_of(cell.data, args.quick), study.losses[cell.loss]
    start = time.process_time()
    results = one_cell(pool, case, cell.noise, loss, cell.optimizer, study.seeds, has_test=study.part == 0)
    where = environment()
    return {
        "cell": cell._asdict(),
        "settings": settings_of(cell, study, args.quick),
        "results": results,
        "seconds": round(time.process_time() - start, 2),
        "command": command("which_loss.py"),
        "environment": {key: where[key] for key in KEPT},
    }


def settings_of(cell: Cell, study: Study, is_quick: bool) -> dict[str, Any]:
    """Returns what determines a cell beside its name, as JSON values. A line with other settings is not continued."""
    case = case_of(cell.data, is_quick)
    tries = [list(one) for one in tries_of(case, cell.optimizer)]
    return {"batch": case.batch, "hidden": case.hidden, "tries": tries, "seeds": list(study.seeds), "quick": is_quick}


def run(study: Study, args: argparse.Namespace) -> None:
    """Trains the cells that the record does not have."""
    done = finished(args.out, lambda cell: settings_of(cell, study, args.quick))
    wanted = cells(study)
    missing = [cell for cell in wanted if cell not in done]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are in the record", file=sys.stderr, flush=True)
    start = time.monotonic()
    with one_thread():
        for count, cell in enumerate(missing, 1):
            if args.minutes is not None and time.monotonic() - start > 60 * args.minutes:
                print(f"stopped after {args.minutes:g} minutes; the same command continues", file=sys.stderr)
                return
            line = line_of(cell, study, args)
            append(args.out, line)
            results = line["results"]
            measure = "test" if "test" in results else "validation"
            values = [tries[place] for tries, place in zip(results[measure], results["chosen"], strict=True)]
            report = f"{', '.join(cell)}: {measure} {sum(values) / len(values):.2f} %, {line['seconds']:.1f} s"
            print(f"{count}/{len(missing)} {report}", file=sys.stderr, flush=True)


def plan(study: Study, args: argparse.Namespace) -> None:
    """Measures one cell of each data set and optimiser, and prints the seconds of all."""
    wanted = cells(study)
    seconds: dict[tuple[str, str], float] = {}
    with one_thread():
        for cell in wanted:
            key = cell.data, cell.optimizer
            if key not in seconds:
                seconds[key] = line_of(cell, study, args)["seconds"]
                count = sum((other.data, other.optimizer) == key for other in wanted)
                print(f"{cell.data}, {cell.optimizer}: {count} cells of {seconds[key]:.1f} s", flush=True)
    total = sum(seconds[cell.data, cell.optimizer] for cell in wanted)
    print(f"{len(wanted)} cells, about {total / 3600:.1f} hours on one thread; some losses take half as long again")


def summary(study: Study, args: argparse.Namespace) -> None:
    """Prints the tables of a record, and writes them beside it and the figure into `--figure`.

    Raises:
        DataError: if the record is empty.
    """
    found = list(lines(args.out))
    if not found:
        raise DataError(f"{args.out.name} has no cells; run the benchmark first")
    results: Any
    if study.part:
        results = search_table(found)
        show_search(results)
    else:
        results = summarize(found) | {"starts": starts(found)}
        show(results)
    settings = {
        "cells": [len(found), len(cells(study))],
        "commits": sorted({line["environment"]["commit"] for line in found}),
        "runs_with_uncommitted_changes": sum(has_uncommitted_changes(line["environment"]) for line in found),
        "seeds": list(study.seeds),
    }
    path = args.out.with_suffix(".json")
    write_record(path, command=found[0]["command"], settings=settings, results=results, seed=study.seeds[0])
    if args.figure is not None:
        save_ranks(results, args.figure)


# ---- the command ---------------------------------------------------------------------------------------------------------


def arguments() -> tuple[Study, argparse.Namespace]:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python benchmarks/which_loss.py --data DIR                 an hour and a half on one thread; continues a record\n"
        "  python benchmarks/which_loss.py --data DIR --sets letter --losses ce,lc --out letter.jsonl\n"
        "  python benchmarks/which_loss.py --summary --figure docs/results\n"
        "  python benchmarks/which_loss.py --data DIR --search        a quarter of an hour\n",
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets (default: variable LINEARCORE_DATA)")
    for name in ("sets", "noises", "optimizers", "losses"):
        parser.add_argument(
            f"--{name}", help=f"comma-separated (default: {', '.join(getattr(COMPARISON, name))})".replace("%", "%%")
        )
    parser.add_argument("--search", action="store_true", help="search for a better default on development data")
    parser.add_argument("--minutes", type=float, help="start no cell after this time")
    parser.add_argument("--plan", action="store_true", help="measure one cell of each set, print the total, write nothing")
    parser.add_argument("--summary", action="store_true", help="print the tables of the record, and write them as JSON")
    parser.add_argument("--figure", type=Path, help="folder for the figure of --summary")
    parser.add_argument("--quick", action="store_true", help="small made-up data; takes seconds")
    parser.add_argument("--out", type=Path, help="record, JSON lines (default: in benchmarks/results)")
    args = parsed(parser)
    study = SEARCH if args.search else COMPARISON
    args.out = args.out or RESULTS / study.out
    return study, args


def chosen(study: Study, args: argparse.Namespace) -> Study:
    """Returns the study with the sets, noises, optimisers and losses of the options.

    Raises:
        DataError: if one of them does not exist.
    """
    known = {"sets": SETS, "noises": NOISES, "optimizers": COMPARISON.optimizers, "losses": study.losses}
    for option, names in known.items():
        if (text := getattr(args, option)) is not None:
            found = tuple(name.strip() for name in text.split(","))
            if unknown := [name for name in found if name not in names]:
                raise DataError(f"--{option} takes {', '.join(names)}, and {unknown[0]!r} is none of them")
            study = replace(study, **{option: {name: study.losses[name] for name in found} if option == "losses" else found})
    return study


def main() -> int:
    """Runs the benchmark."""
    study, args = arguments()
    try:
        study = chosen(study, args)
        if args.summary:
            summary(study, args)
            return 0
        for data in study.sets:  # Missing files are reported before the first cell.
            rows_of(data, data_folder(args.data), study.part, args.quick)
        (plan if args.plan else run)(study, args)
    except (DataError, OSError) as error:
        print(f"which_loss.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
