"""Accuracy if nn.CrossEntropyLoss() is replaced by LinearCoreLoss() on clean data, with everything else unchanged.

The same network (one hidden ReLU layer) is trained with every loss. Initialisation, split, order of the samples, epochs,
optimiser and schedule (cosine to zero) are identical for a seed, so differences are paired by seed.

    table 1   every loss at the learning rate that is best for cross-entropy: only the loss is changed
    table 2   every loss at its own best learning rate of the same grid

Learning rates are chosen by mean validation accuracy over the seeds; test accuracy after the last epoch is only reported.
The interval is Student's 95 % confidence interval of the mean paired difference to cross-entropy, for each comparison
separately; "level" means that it contains 0. Each seed splits the same data differently, so test sets of seeds overlap.

Adam is almost invariant to the scale of a loss, so "sum" (normalize=False) and mean hardly differ and only the mean is run;
with SGD a sum over 199 competing classes makes the step 199 times as large.

Datasets, all without label noise and with classes of equal or nearly equal size:

    digits   scikit-learn digits, 10 classes, 64 features
    letter   UCI letter recognition, 26 classes, 16 features; needs letter.csv.xz in --data or LINEARCORE_DATA
    many     generated, 200 classes in 32 dimensions: each class is two Gaussian clusters with unit covariance whose
             centres are sampled from N(0, 0.9² I). Classes overlap: the best possible accuracy is 93 %
"""

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor, nn
from torch.nn import functional as F

import linearcore as lc
from _harness import data_folder, parsed
from linearcore.runtime import Progress, write_record

Table = dict[str, Any]

OUT = Path(__file__).parent / "results" / "one_line.json"
CROSS_ENTROPY = "cross-entropy"
LOSSES: dict[str, Callable[[], nn.Module]] = {
    CROSS_ENTROPY: lambda: nn.CrossEntropyLoss(),
    "logodds": lambda: lc.LinearCoreLoss(form="logodds"),
    "pairwise": lambda: lc.LinearCoreLoss(form="pairwise"),
    "pairwise, sum": lambda: lc.LinearCoreLoss(form="pairwise", normalize=False),
    "centered": lambda: lc.LinearCoreLoss(form="centered"),
    "centered, sum": lambda: lc.LinearCoreLoss(form="centered", normalize=False),
}

Optimizer = Callable[[list[Tensor], float], torch.optim.Optimizer]


class Setup(NamedTuple):
    """An optimiser, its grid of learning rates, and its losses."""

    make: Optimizer
    rates: tuple[float, ...]
    losses: tuple[str, ...]


OPTIMIZERS = {
    "adam": Setup(
        make=lambda parameters, rate: torch.optim.Adam(parameters, rate, fused=True),
        rates=(0.003, 0.01, 0.03, 0.1),
        losses=tuple(name for name in LOSSES if not name.endswith("sum")),
    ),
    "sgd": Setup(
        make=lambda parameters, rate: torch.optim.SGD(parameters, rate, momentum=0.9, fused=True),
        rates=(0.03, 0.1, 0.3, 1.0),
        losses=tuple(LOSSES),
    ),
}


@dataclass(frozen=True)
class Plan:
    """Split and training settings of a dataset."""

    train: int
    validation: int
    test: int
    hidden: int
    batch: int
    epochs: int


PLANS = {
    "digits": Plan(train=1000, validation=300, test=497, hidden=64, batch=50, epochs=30),
    "letter": Plan(train=12000, validation=3000, test=5000, hidden=128, batch=100, epochs=20),
    "many": Plan(train=12000, validation=4000, test=8000, hidden=128, batch=200, epochs=15),
}
QUICK = {
    "digits": Plan(train=500, validation=100, test=400, hidden=16, batch=50, epochs=2),
    "letter": Plan(train=1000, validation=300, test=1000, hidden=16, batch=200, epochs=2),
    "many": Plan(train=1000, validation=300, test=1000, hidden=16, batch=200, epochs=2),
}


class Pool(NamedTuple):
    """All samples of a dataset: features (N, d), labels (N,), number of classes."""

    features: Tensor
    labels: Tensor
    num_classes: int


class UsageError(Exception):
    """An error of the user; its message is one line."""


# ---- data ----------------------------------------------------------------------------------------------------------------


def digits() -> Pool:
    """Loads the digits of scikit-learn, scaled to [−1, 1]."""
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    return Pool(torch.from_numpy(features).float() / 8 - 1, torch.from_numpy(labels).long(), 10)


def letter(folder: Path | None) -> Pool:
    """Reads UCI letter recognition: a letter and 16 integers from 0 to 15 per row, scaled to about unit variance."""
    path = None if folder is None else folder / "letter.csv.xz"
    if path is None or not path.is_file():
        where = "no data folder was given" if folder is None else f"no letter.csv.xz in {folder}"
        raise UsageError(f"letter needs its file, and {where}: pass --data DIR, or use --sets digits,many")
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str)
    labels = torch.tensor([ord(name) - ord("A") for name in table[:, 0]])
    return Pool(torch.from_numpy(table[:, 1:].astype(np.float32)) / 4 - 2, labels, 26)


def many(size: int, num_classes: int = 200, dimensions: int = 32, clusters: int = 2, spread: float = 0.9) -> Pool:
    """Generates the dataset `many`, always with the same seed."""
    generator = torch.Generator().manual_seed(20240)
    centres = torch.randn(num_classes, clusters, dimensions, generator=generator) * spread
    labels = torch.arange(size) % num_classes
    cluster = torch.randint(clusters, (size,), generator=generator)
    features = centres[labels, cluster] + torch.randn(size, dimensions, generator=generator)
    return Pool(features / math.sqrt(1 + spread**2), labels, num_classes)


def load(name: str, plan: Plan, folder: Path | None) -> Pool:
    """Loads the samples of a dataset, as many as its plan needs."""
    if name == "digits":
        return digits()
    return letter(folder) if name == "letter" else many(plan.train + plan.validation + plan.test)


# ---- training ------------------------------------------------------------------------------------------------------------
# All seeds are trained at once: every tensor has a leading dimension of seeds, which are independent.


def initial_network(sizes: Sequence[int], seeds: Sequence[int]) -> list[Tensor]:
    """Initialises all seeds as nn.Linear does: [weight (S, in, out), bias (S, 1, out), …]."""
    layers: list[list[Tensor]] = []
    for seed in seeds:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            linear = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
        layers.append([tensor for layer in linear for tensor in (layer.weight.detach().T, layer.bias.detach()[None])])
    return [torch.stack(same).requires_grad_() for same in zip(*layers, strict=True)]


def network(parameters: list[Tensor], features: Tensor) -> Tensor:
    """Computes scores (S, B, C) of features (S, B, d)."""
    weight, bias, last_weight, last_bias = parameters
    hidden = F.relu(torch.baddbmm(bias, features, weight))
    return torch.baddbmm(last_bias, hidden, last_weight)


def split(pool: Pool, plan: Plan, seeds: Sequence[int]) -> tuple[Tensor, ...]:
    """Draws the indices (S, ·) of the training, validation and test sets of every seed."""
    orders = [torch.randperm(len(pool.labels), generator=torch.Generator().manual_seed(1000 + seed)) for seed in seeds]
    sizes = [plan.train, plan.validation, plan.test]
    return torch.stack(orders)[:, : sum(sizes)].split(sizes, dim=1)


def train(
    pool: Pool, plan: Plan, seeds: Sequence[int], criterion: nn.Module, optimizer: Optimizer, rate: float
) -> tuple[list[float], list[float]]:
    """Trains all seeds; returns validation and test accuracy in per cent after the last epoch."""
    training, validation, test = split(pool, plan, seeds)
    parameters = initial_network([pool.features.shape[1], plan.hidden, pool.num_classes], seeds)
    steps_an_epoch = plan.train // plan.batch
    stepper = optimizer(parameters, rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(stepper, plan.epochs * steps_an_epoch)
    shufflers = [torch.Generator().manual_seed(2000 + seed) for seed in seeds]
    for _ in range(plan.epochs):
        order = torch.stack([torch.randperm(plan.train, generator=shuffler) for shuffler in shufflers])
        for rows in training.gather(1, order)[:, : steps_an_epoch * plan.batch].split(plan.batch, dim=1):
            scores = network(parameters, pool.features[rows])
            # Times the number of seeds, so that each seed gets the gradient of its own mean.
            loss = criterion(scores.flatten(0, 1), pool.labels[rows].flatten()) * len(seeds)
            stepper.zero_grad()
            loss.backward()
            stepper.step()
            schedule.step()
    return accuracy(parameters, pool, validation), accuracy(parameters, pool, test)


@torch.no_grad()
def accuracy(parameters: list[Tensor], pool: Pool, rows: Tensor) -> list[float]:
    """Computes the accuracy in per cent of every seed; non-finite scores count as errors."""
    right = torch.zeros(len(rows))
    for part in rows.split(1000, dim=1):
        scores = network(parameters, pool.features[part])
        hits = (scores.argmax(-1) == pool.labels[part]) & scores.isfinite().all(-1)
        right += hits.sum(1)
    return (100 * right / rows.shape[1]).tolist()


def run(pool: Pool, plan: Plan, seeds: Sequence[int], optimizer: str, progress: Progress, title: str) -> Table:
    """Computes accuracies by loss and learning rate: {loss: {rate: {"validation": […], "test": […]}}}."""
    make, rates, losses = OPTIMIZERS[optimizer]
    results: Table = {}
    with progress.part(title, total=len(losses) * len(rates)) as part:
        for name in losses:
            results[name] = {}
            for rate in rates:
                part.describe(f"{title}, {name}, rate {rate:g}")
                validation, test = train(pool, plan, seeds, LOSSES[name](), make, rate)
                results[name][f"{rate:g}"] = {"validation": rounded(validation), "test": rounded(test)}
                part.advance()
        part.describe(title)
    return results


def rounded(values: list[float]) -> list[float]:
    """Rounds to two decimals, which is less than one test sample."""
    return [round(value, 2) for value in values]


# ---- the comparison ------------------------------------------------------------------------------------------------------


def best_rate(by_rate: Table) -> str:
    """Returns the learning rate with the best mean validation accuracy, the smaller one in a tie."""
    return max(by_rate, key=lambda rate: (sum(by_rate[rate]["validation"]), -float(rate)))


def compare(ours: list[float], theirs: list[float]) -> Table:
    """Computes mean and standard deviation of `ours`, and its paired difference to `theirs` with a 95 % interval."""
    difference = np.subtract(ours, theirs)
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference))
    mean, half = float(difference.mean()), float(stdtrit(len(difference) - 1, 0.975)) * error
    verdict = "better" if mean - half > 0 else "worse" if mean + half < 0 else "level"
    row = {"mean": float(np.mean(ours)), "sd": float(np.std(ours, ddof=1)), "difference": mean, "error": error}
    row |= {"low": mean - half, "high": mean + half}
    return {key: round(value, 3) for key, value in row.items()} | {"verdict": verdict}


def table(results: Table, own_rate: bool) -> list[Table]:
    """Makes a row per loss, at the best learning rate of cross-entropy or at its own."""
    reference = best_rate(results[CROSS_ENTROPY])
    base = results[CROSS_ENTROPY][reference]["test"]
    rates = [float(rate) for rate in results[CROSS_ENTROPY]]
    rows = []
    for name, by_rate in results.items():
        rate = best_rate(by_rate) if own_rate else reference
        row = {"loss": name, "rate": float(rate), "at_edge": float(rate) in (min(rates), max(rates))}
        rows.append(row | compare(by_rate[rate]["test"], base))
    return rows


def show(title: str, tables: dict[str, list[Table]]) -> None:
    """Prints a table."""
    print(f"\n{title}\n")
    columns = ["set", "loss", "rate", "test %", "sd", "to CE", "error", "95 % interval", "verdict"]
    widths = [12, 13, 6, 7, 5, 7, 6, 18, 7]
    lines = [columns]
    for name, rows in tables.items():
        for row in rows:
            line = [
                name,
                row["loss"],
                f"{row['rate']:g}{'*' if row['at_edge'] else ' '}",
                f"{row['mean']:.2f}",
                f"{row['sd']:.2f}",
            ]
            if row["loss"] != CROSS_ENTROPY:
                interval = f"[{row['low']:+.2f}, {row['high']:+.2f}]"
                line += [f"{row['difference']:+.2f}", f"{row['error']:.2f}", interval, row["verdict"]]
            lines.append(line)
        lines.append([])
    for line in lines:
        left = (0, 1, 8)
        cells = [
            f"{text:<{width}}" if i in left else f"{text:>{width}}"
            for i, (text, width) in enumerate(zip(line, widths, strict=False))
        ]
        print("  ".join(cells).rstrip())


# ---- the command ---------------------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/one_line.py --data DIR                      everything, a quarter of an hour on one core\n"
        "  python benchmarks/one_line.py --sets digits,many              without the file that letter needs\n"
        "  python benchmarks/one_line.py --quick --sets digits,many      seconds: does it run?\n",
    )
    parser.add_argument("--data", type=Path, help="folder with letter.csv.xz (default: variable LINEARCORE_DATA)")
    parser.add_argument("--sets", default="digits,letter,many", help="datasets, comma-separated (default: %(default)s)")
    parser.add_argument("--optimizers", default="adam,sgd", help="optimisers, comma-separated (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, at least 2 (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="smoke test: 2 seeds, tiny networks, 2 epochs")
    parser.add_argument(
        "--out", type=Path, default=OUT, help="JSON file to write (default: benchmarks/results/one_line.json)"
    )
    return parsed(parser)


def chosen(option: str, text: str, known: Sequence[str]) -> list[str]:
    """Parses a comma-separated list of names."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"{option} takes {', '.join(known)}, and {name!r} is none of them")
    return names


def measure(options: argparse.Namespace) -> Table:
    """Runs the selected datasets and optimisers; returns the settings and the results."""
    sets = chosen("--sets", options.sets, list(PLANS))
    optimizers = chosen("--optimizers", options.optimizers, list(OPTIMIZERS))
    if options.seeds < 2:
        raise UsageError(f"--seeds must be at least 2 for an interval, and is {options.seeds}")
    seeds = list(range(2 if options.quick else options.seeds))
    plans = {name: (QUICK if options.quick else PLANS)[name] for name in sets}
    folder = data_folder(options.data)
    pools = {name: load(name, plan, folder) for name, plan in plans.items()}
    accuracies = {}
    with Progress() as progress:
        for optimizer in optimizers:
            for name in sets:
                title = f"{name}, {optimizer}"
                accuracies[title] = run(pools[name], plans[name], seeds, optimizer, progress, title)
    settings = {
        "plans": {name: asdict(plan) for name, plan in plans.items()},
        "seeds": seeds,
        "rates": {name: list(OPTIMIZERS[name].rates) for name in optimizers},
        "quick": options.quick,
        "surrogate": str(lc.LinearCore()),
    }
    same = {title: table(results, own_rate=False) for title, results in accuracies.items()}
    own = {title: table(results, own_rate=True) for title, results in accuracies.items()}
    return {"settings": settings, "results": {"same_rate": same, "own_rate": own, "accuracies": accuracies}}


def main() -> None:
    """Runs the benchmark, prints both tables and writes the result file."""
    options, started = arguments(), time.perf_counter()
    try:
        measured = measure(options)
        options.out.parent.mkdir(parents=True, exist_ok=True)
    except (UsageError, OSError) as error:
        print(f"one_line.py: {error}", file=sys.stderr)
        sys.exit(2)
    results = measured["results"]
    show("1. Cross-entropy's learning rate for all: one line changed (* rate at the edge of the grid)", results["same_rate"])
    show("2. Every loss at its own best learning rate of the grid", results["own_rate"])
    results["seconds"] = round(time.perf_counter() - started, 1)
    command = f"python benchmarks/one_line.py --sets {options.sets} --optimizers {options.optimizers}"
    command += " --quick" if options.quick else f" --seeds {options.seeds}"
    write_record(options.out, command=command, settings=measured["settings"], results=results, seed=0)
    print(f"{results['seconds']:.0f} s; wrote {options.out}")


if __name__ == "__main__":
    main()
