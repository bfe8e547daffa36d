"""How does the width of the linear core change the accuracy with label noise?

A small network with normalised scores (`linearcore.NormedScores`) is trained on 4,000 images of CIFAR-10 with 0 and 40 %
wrong labels (instance-dependent noise as in `linearcore reproduce noise`), long enough to memorise them, with the pairwise
loss and cores of several widths. Seeds, order, learning rate, weight decay and the slope of the core are equal. Scores are
multiplied by √(n − 1)/n, so that n equally frequent and perfectly separated classes have margins of 1. Without a tail the
loss is the unhinged loss. Nothing is tuned, so a row may be better with another scale or weight decay.
"""

import argparse
import math
import statistics
import sys
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from _harness import command, data_folder, parsed
from _work import all_runs, complaint_about, parser_for
from linearcore import LinearCore, multiclass_loss
from linearcore.runtime import stream_for, write_record
from linearcore_paper.experiments.noise.images import draw_labels, read_images
from linearcore_paper.vision import Images, Recipe, Run

OUT = Path(__file__).parent / "results" / "core_width.json"
LAW, RATES = "instance", (0.0, 0.4)
#: Wider than every margin.
NO_TAIL = 1000.0
#: Sharpness of the tails, so that they curve within the range of the margins.
SHARPNESS = 4.0


#: Widths of the core by row name.
ROWS = {"core up to 0.1": 0.1, "core up to 0.5": 0.5, "core up to 1": 1.0, "no tail": NO_TAIL}


class Size(NamedTuple):
    """Dataset, numbers of images, and training settings."""

    source: str
    train: int
    test: int
    recipe: Recipe


#: The weight decay is five times that of the paper, because there are fewer steps.
FULL = Size(
    "cifar10", 4000, 2500, Recipe("small", width=16, epochs=40, weight_decay=2.5e-3, loss_scale=1 / 3, precision="bf16")
)
QUICK = Size("made-up", 120, 60, Recipe("small", width=2, epochs=1, batch=24, loss_scale=1 / 3))


@lru_cache(maxsize=4)
def images_of(size: Size, data: Path | None, rate: float, seed: int) -> tuple[Images, Images, torch.Tensor, str]:
    """Returns training images with noisy labels, test images, the true training labels, and a hash of the noise."""
    sets, noisy = read_images(size.source, data), draw_labels(size.source, data, LAW, rate, seed)
    some = torch.randperm(len(sets.train), generator=stream_for("images", seed))[: size.train]
    train = Images(sets.train.images[some], noisy.labels[some], sets.train.classes)
    test = Images(sets.test.images[: size.test], sets.test.labels[: size.test], sets.test.classes)
    return train, test, sets.train.labels[some], noisy.hash[:16]


def loss_of_width(scores: torch.Tensor, labels: torch.Tensor, tau: float) -> torch.Tensor:
    """Losses (B,) of normed scores (B, C), in units in which certain answers have margins of 1."""
    classes = scores.shape[1]
    core = LinearCore(tau=tau, sharpness=SHARPNESS)
    unit = math.sqrt(classes - 1) / classes
    return multiclass_loss(unit * scores, labels, form="pairwise", normalize=True, surrogate=core, reduction="none")


def one_run(size: Size, data: Path | None, row: str, rate: float, seed: int) -> dict[str, Any]:
    """Trains once: per cent of test images that are answered rightly, and of wrong labels that were learned by heart."""
    train, test, true, draw = images_of(size, data, rate, seed)
    recipe = replace(size.recipe, network=f"{size.recipe.network}-normed", seed=seed)
    loss = partial(loss_of_width, tau=ROWS[row])
    run = Run(train, loss, recipe, test=test, evaluate_every=recipe.epochs)
    while not run.is_done:
        run.epoch()
    result = run.result()
    row_settings: dict[str, Any] = {"row": row, "rate": rate, "seed": seed, "labels": draw}
    if result.failed is not None:
        return row_settings | {"failed": result.failed}
    guess, is_wrong = result.scores(train.images).argmax(1), train.labels != true
    learned = 100 * float((guess == train.labels)[is_wrong].double().mean()) if bool(is_wrong.any()) else None
    return row_settings | {
        "test": round(result.history[-1]["test_accuracy"], 3),
        "learned": None if learned is None else round(learned, 3),
    }


def compare(size: Size, data: Path | None, args: argparse.Namespace) -> list[dict[str, Any]]:
    """All runs, in the order of the rows."""
    wanted = [(row, rate, seed) for row in ROWS for rate in RATES for seed in range(1, args.seeds + 1)]
    runs = [
        ({"row": row, "rate": rate, "seed": seed, **settings_of(size)}, one_run, (size, data, row, rate, seed))
        for row, rate, seed in wanted
    ]
    return all_runs(runs, args.workers, args.work, _line)


def settings_of(size: Size) -> dict[str, Any]:
    """What all runs have in common."""
    return {
        "images": [size.train, size.test], "law": LAW, "recipe": size.recipe.to_json(), "sharpness": SHARPNESS,
        "source": size.source,
    }  # fmt: skip


def _line(result: dict[str, Any]) -> str:
    outcome = result.get("failed") or f"{result['test']:.2f} % right"
    return f"{result['row']}, {100 * result['rate']:g} % wrong, seed {result['seed']}: {outcome}"


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the table."""
    heads = [f"right at {100 * rate:g} %" for rate in RATES]
    table = Table("loss", *heads, "wrong labels learned", title="per cent, mean over seeds")
    for row in ROWS:
        own = [run for run in rows if run["row"] == row]
        cells = [_mean([run.get("test") for run in own if run["rate"] == rate]) for rate in RATES]
        table.add_row(row, *cells, _mean([run.get("learned") for run in own if run["rate"] > 0]))
    Console().print(table)


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.mean(known):.2f}" if known and len(known) == len(values) else "failed"


def main() -> int:
    """The command."""
    args = arguments()
    data, size = data_folder(args.data), QUICK if args.quick else FULL
    complaint = complaint_about(args, lambda: read_images(size.source, data))
    if complaint is not None:
        print(f"core_width.py: {complaint}", file=sys.stderr)
        return 2
    rows = compare(size, data, args)
    show(rows)
    settings = settings_of(size) | {"seeds": args.seeds, "workers": args.workers}
    write_record(args.out, command=command("core_width.py"), settings=settings, results=rows, seed=1)
    return 0


def arguments() -> argparse.Namespace:
    """What the user asked for."""
    example = "python benchmarks/core_width.py --data DIR --workers 2 --work runs      forty minutes"
    return parsed(parser_for(__doc__, example=example, data="CIFAR-10", seeds=3, out=OUT))


if __name__ == "__main__":
    sys.exit(main())
