"""Compares losses with label noise on a small dataset with 26 classes, each tuned separately.

UCI letter recognition: 6,000 training and 2,500 validation rows with noisy labels, and 2,500 test rows with true labels. The
network has two hidden layers of 256 units with batch norm. It is trained with SGD, momentum 0.9, weight decay 5e-4 and a
cosine schedule from learning rate 0.1 over 60 epochs, long enough to memorise wrong labels. Every loss is multiplied by each
of eight scales, because a loss that is small relative to the weight decay memorises less. The scale with the best accuracy
on the noisy validation labels with seed 0 is used for the other seeds, which are reported. True labels are not used for any
choice. Some losses use normalised scores (`linearcore.NormedScores`): the unhinged loss, which has no minimum, and a second
version of CE and GCE, to separate the effect of the normalisation from that of the loss.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from _harness import command, data_folder, parsed
from _work import processes
from _wrong_label_sets import Pool, UsageError, letter
from linearcore import LinearCore, NormedScores, multiclass_loss
from linearcore.losses import robust_loss
from linearcore.losses.baselines import cross_entropy, generalized_cross_entropy, unhinged
from linearcore.noise import NoisyLabels, instance_dependent, symmetric
from linearcore.runtime import Progress, stream_for, write_record

OUT = Path(__file__).parent / "results" / "noisy_letters.json"
SCALES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
BATCH, RATE, MOMENTUM, DECAY = 128, 0.1, 0.9, 5e-4
TUNING, SEEDS = 0, (1, 2, 3)

Loss = Callable[[Tensor, Tensor], Tensor]


def _core(form: str) -> Loss:
    # A name is the mean over competing classes, so that scales are comparable between forms.
    return partial(multiclass_loss, form=form, surrogate=LinearCore())


LOSSES: dict[str, Loss] = {
    "CE": cross_entropy,
    "GCE, q = 0.7": partial(generalized_cross_entropy, q=0.7),
    "CE, normed scores": cross_entropy,
    "GCE, q = 0.7, normed scores": partial(generalized_cross_entropy, q=0.7),
    "unhinged, normed scores": unhinged,
    "LC pairwise": _core("pairwise"),
    "LC logodds": _core("logodds"),
    "LC centered": _core("centered"),
    "LC robust": robust_loss,
}
LAWS: dict[str, Callable[[Pool, int], NoisyLabels]] = {
    "0 %": lambda pool, seed: symmetric(pool.labels, 0.0, num_classes=26, seed=seed),
    "symmetric 40 %": lambda pool, seed: symmetric(pool.labels, 0.4, num_classes=26, seed=seed),
    "instance-dependent 40 %": lambda pool, seed: _by_instance(pool, 0.4, seed),
    "instance-dependent 60 %": lambda pool, seed: _by_instance(pool, 0.6, seed),
}


def _by_instance(pool: Pool, rate: float, seed: int) -> NoisyLabels:
    return instance_dependent(
        pool.features, pool.labels, rate, num_classes=26, seed=seed, inputs="raw", projections="per-class"
    )


@dataclass(frozen=True)
class Plan:
    """Sizes of the benchmark."""

    train: int = 6000
    held: int = 2500
    test: int = 2500
    hidden: int = 256
    epochs: int = 60
    scales: tuple[float, ...] = SCALES
    seeds: tuple[int, ...] = SEEDS
    is_made_up: bool = False


QUICK = Plan(train=400, held=100, test=100, hidden=16, epochs=2, scales=(10.0, 1.0), seeds=(1,), is_made_up=True)


@lru_cache(maxsize=1)
def rows_of(data: Path | None, plan: Plan) -> Pool:
    """Reads all rows, once per process; with --quick, generates a Gaussian cluster per class."""
    count = plan.train + plan.held + plan.test
    if not plan.is_made_up:
        return letter(data, count)
    stream, labels = torch.Generator().manual_seed(0), torch.arange(count) % 26
    return Pool(3 * torch.randn(26, 16, generator=stream)[labels] + torch.randn(count, 16, generator=stream), labels, 26)


def one_run(data: Path | None, law: str, loss: str, scale: float, seed: int, plan: Plan) -> dict[str, Any]:
    """Trains once; returns the accuracy on noisy validation labels and on true test labels."""
    pool = rows_of(data, plan)
    noisy = LAWS[law](pool, seed)
    inputs = ((pool.features - pool.features.mean(0)) / pool.features.std(0)).float()
    train, held, test = torch.arange(len(inputs)).split([plan.train, plan.held, plan.test])
    network = _trained(inputs[train], noisy.labels[train], loss, scale, seed, plan)
    with torch.no_grad():
        guess = network.eval()(inputs).argmax(1)
    found = {
        "held": (guess == noisy.labels)[held],
        "test": (guess == pool.labels)[test],
        "fit": (guess == noisy.labels)[train],
    }
    accuracies = {name: round(100 * float(marks.double().mean()), 3) for name, marks in found.items()}
    return {"law": law, "loss": loss, "scale": scale, "seed": seed, "labels": noisy.hash[:16], **accuracies}


def _trained(inputs: Tensor, labels: Tensor, loss: str, scale: float, seed: int, plan: Plan) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sizes = [inputs.shape[1], plan.hidden, plan.hidden]
        blocks = [
            nn.Sequential(nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()) for before, after in pairwise(sizes)
        ]
        network = nn.Sequential(*blocks, nn.Linear(plan.hidden, 26))
    if loss.endswith("normed scores"):
        network.append(NormedScores(26))
    optimizer = torch.optim.SGD(network.parameters(), RATE, momentum=MOMENTUM, weight_decay=DECAY)
    steps = plan.epochs * (len(inputs) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    stream = stream_for("order", seed)
    for step in range(steps):
        if step % (len(inputs) // BATCH) == 0:
            order = torch.randperm(len(inputs), generator=stream)
        rows = order[step % (len(inputs) // BATCH) * BATCH :][:BATCH]
        optimizer.zero_grad()
        (scale * LOSSES[loss](network(inputs[rows]), labels[rows])).backward()
        optimizer.step()
        schedule.step()
    return network


def compare(data: Path | None, plan: Plan, workers: int) -> list[dict[str, Any]]:
    """Makes a row for each noise and loss: trials, chosen scale, and results."""
    cases = [(law, loss) for law in LAWS for loss in LOSSES]
    with (
        processes(workers) as pool,
        Progress() as progress,
        progress.part("networks", len(cases) * (len(plan.scales) + len(plan.seeds))) as part,
    ):

        def done(future: Any) -> dict[str, Any]:
            found: dict[str, Any] = future.result()
            part.advance()
            return found

        tuning = [[pool.submit(one_run, data, *case, scale, TUNING, plan) for scale in plan.scales] for case in cases]
        tried = [[done(future) for future in futures] for futures in tuning]
        chosen = [max(runs, key=lambda run: run["held"])["scale"] for runs in tried]
        final = [
            [pool.submit(one_run, data, *case, scale, seed, plan) for seed in plan.seeds]
            for case, scale in zip(cases, chosen, strict=True)
        ]
        counted = [[done(future) for future in futures] for futures in final]
    return [
        {
            "law": law,
            "loss": loss,
            "scale": scale,
            "held_by_scale": [run["held"] for run in runs],
            "test": [run["test"] for run in last],
            "fit": [run["fit"] for run in last],
            "labels": [run["labels"] for run in last],
        }
        for (law, loss), scale, runs, last in zip(cases, chosen, tried, counted, strict=True)
    ]


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the table."""
    table = Table("loss", *LAWS, title="accuracy on true labels, %, at the scale that was chosen")
    for loss in LOSSES:
        own = {row["law"]: row for row in rows if row["loss"] == loss}
        table.add_row(loss, *(f"{statistics.mean(own[law]['test']):.2f} (scale {own[law]['scale']:g})" for law in LAWS))
    Console().print(table)


def main() -> int:
    """Runs the benchmark."""
    args = arguments()
    data = data_folder(args.data)
    plan = QUICK if args.quick else Plan()
    if args.workers < 1:
        print(f"noisy_letters.py: --workers takes a positive number, got {args.workers}", file=sys.stderr)
        return 2
    try:
        rows_of(data, plan)
    except UsageError as error:
        print(
            f"noisy_letters.py: {str(error).partition(', or leave')[0]}, or look at toy size with --quick", file=sys.stderr
        )
        return 2
    rows = compare(data, plan, args.workers)
    show(rows)
    settings = {
        "batch": BATCH, "decay": DECAY, "epochs": plan.epochs, "hidden": plan.hidden, "momentum": MOMENTUM, "rate": RATE,
        "rows": [plan.train, plan.held, plan.test], "scales": list(plan.scales), "seeds": list(plan.seeds), "tuning": TUNING,
        "workers": args.workers,
    }  # fmt: skip
    write_record(args.out, command=command("noisy_letters.py"), settings=settings, results=rows, seed=TUNING)
    return 0


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  python benchmarks/noisy_letters.py --data DIR --workers 2      half an hour",
    )
    parser.add_argument("--data", type=Path, help="folder with letter.csv.xz")
    parser.add_argument("--workers", type=int, default=1, help="number of processes (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="toy size; takes seconds")
    parser.add_argument("--out", type=Path, default=OUT, help="result file (default: benchmarks/results)")
    return parsed(parser)


if __name__ == "__main__":
    sys.exit(main())
