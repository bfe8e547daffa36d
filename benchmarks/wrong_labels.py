"""How well do networks trained with different losses find wrong labels?

Label noise is added, networks are trained on the noisy labels, and all rows are ranked by how suspicious their label is.
The result is the area under the ROC curve (AUC): the probability that a wrong label ranks above a right one. Two kinds of
scores:

    out of fold   from a network that was not trained on the row: linearcore.cleaning.out_of_fold_scores, five folds
    in sample     from a network that was trained on all rows, after the last epoch

Measures of suspicion, from scores s, their softmax p and the given label y:

    margin          max_{v≠y} s_v − s_y
    log_odds        logsumexp_{v≠y} s_v − s_y
    self_confidence 1 − p_y: the same ranking as log_odds, up to rounding; a measure of the package cleanlab
    p_margin        max_{v≠y} p_v − p_y: cleanlab's normalised margin
    loss            the training loss of the row

The learning rate is chosen for every dataset, noise and loss from one grid, by the mean accuracy of out-of-fold scores on
the noisy labels over the seeds: at the best epoch for out-of-fold scores, at the last one for in-sample scores. The true
labels are not used for it. Each seed has its own noise, folds, initial weights and order.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from _harness import command, data_folder, parsed
from linearcore.cleaning import LOSSES, flagging_auc, flagging_precision, out_of_fold_scores, suspects
from linearcore.cleaning._folds import normalised
from linearcore.cleaning._networks import FoldNetworks, train_epochs
from linearcore.noise import NoisyLabels, draw
from linearcore.runtime import Progress, one_thread, write_record

OUT = Path(__file__).parent / "results" / "wrong_labels.json"
COMPARED = ("ce", "gce", "lc", "lc-pairwise", "lc-centered", "robust", "unhinged")
RATES = (0.001, 0.003, 0.01)
MEASURES = ("margin", "log_odds", "self_confidence", "p_margin", "loss")
HIDDEN, BATCH, LETTERS = 128, 64, 3000

Row = dict[str, Any]


class Pool(NamedTuple):
    """All rows of a dataset: features (N, D), clean labels (N,), number of classes."""

    features: Tensor
    labels: Tensor
    num_classes: int


#: Name in `linearcore.noise`, noise rate and options.
LAWS: dict[str, tuple[str, float, dict[str, Any]]] = {
    "symmetric 20 %": ("symmetric", 0.2, {}),
    "symmetric 40 %": ("symmetric", 0.4, {}),
    "instance-dependent 40 %": ("instance_dependent", 0.4, {"inputs": "normalised"}),
    "pair flip 40 %": ("pair_flip", 0.4, {}),
}


def noisy_labels(pool: Pool, law: str, seed: int) -> NoisyLabels:
    """Draws noisy labels for all rows."""
    name, rate, options = LAWS[law]
    return draw(name, pool.labels, rate, features=pool.features, num_classes=pool.num_classes, seed=seed, **options)


class UsageError(Exception):
    """An error of the user; its message is one line."""


def digits() -> Pool:
    """Loads the 1,797 digits of scikit-learn."""
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    return Pool(torch.from_numpy(features), torch.from_numpy(labels).long(), 10)


def letter(folder: Path | None, rows: int = LETTERS) -> Pool:
    """Reads the first rows of UCI letter recognition (their order is random): a letter and 16 integers each."""
    path = None if folder is None else folder / "letter.csv.xz"
    if path is None or not path.is_file():
        where = "no data folder was given" if folder is None else f"no letter.csv.xz in {folder}"
        raise UsageError(f"letter needs its file, and {where}: pass --data DIR, or use --sets digits")
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str, max_rows=rows)
    labels = torch.tensor([ord(name) - ord("A") for name in table[:, 0]])
    return Pool(torch.from_numpy(table[:, 1:].astype(np.float64)), labels, 26)


# ---- one training --------------------------------------------------------------------------------------------------------


def in_sample(pool: Pool, given: Tensor, loss: str, rate: float, epochs: int, seed: int) -> Tensor:
    """Trains one network on all rows and returns their scores."""
    generator = torch.Generator().manual_seed(seed)
    inputs = normalised(pool.features)
    network = FoldNetworks(1, (inputs.shape[1], HIDDEN, pool.num_classes), generator, LOSSES[loss].is_normed)
    rows = [torch.arange(len(inputs))]
    how: Row = {"learning_rate": rate, "epochs": epochs, "batch_size": BATCH, "generator": generator}
    with one_thread():
        for _ in train_epochs(network, inputs, given, rows, LOSSES[loss], **how):
            pass
        with torch.no_grad():
            return network.scores_of(0, inputs)


def judged(scores: Tensor, noisy: NoisyLabels, clean: Tensor, loss: str) -> Row:
    """Computes the AUC of every measure, and the precision of the margin."""
    given, wrong = noisy.labels, noisy.labels != clean
    probabilities = scores.double().softmax(1)
    suspicion = {
        "margin": suspects(scores, given).suspicion,
        "log_odds": suspects(scores, given, measure="log_odds").suspicion,
        "self_confidence": 1 - probabilities.gather(1, given.unsqueeze(1)).squeeze(1),
        "p_margin": suspects(probabilities, given).suspicion,
        "loss": LOSSES[loss](scores, given),
    }
    found = {name: round(flagging_auc(values, wrong), 5) for name, values in suspicion.items()}
    return {"auc": found, "precision": round(flagging_precision(suspicion["margin"], wrong), 5)}


def one_loss(pool: Pool, draws: dict[int, NoisyLabels], loss: str, epochs: int, advance: Callable[[], None]) -> Row:
    """Computes out-of-fold scores at every learning rate, and both kinds of scores at the learning rate chosen for them."""
    tried: dict[float, list[Row]] = {rate: [] for rate in RATES}
    for rate, rows in tried.items():
        for seed, noisy in draws.items():
            how: Row = {"epochs": epochs, "learning_rate": rate, "hidden": HIDDEN, "batch_size": BATCH, "seed": seed}
            found = out_of_fold_scores(pool.features, noisy.labels, num_classes=pool.num_classes, loss=loss, **how)
            row = {"agreement": round(max(found.agreement), 5), "epoch": found.epoch, "last": found.agreement[-1]}
            rows.append(row | judged(found.scores, noisy, pool.labels, loss))
            advance()
    rate, last = (max(tried, key=lambda rate: sum(row[when] for row in tried[rate])) for when in ("agreement", "last"))
    seen = [
        judged(in_sample(pool, noisy.labels, loss, last, epochs, seed), noisy, pool.labels, loss)
        for seed, noisy in draws.items()
    ]
    return {
        "rate": rate,
        "rate_in_sample": last,
        "agreement": [row["agreement"] for row in tried[rate]],
        "epochs": [row["epoch"] for row in tried[rate]],
        "out_of_fold": gathered(tried[rate]),
        "in_sample": gathered(seen),
        # Also at the command's default learning rate, because the command does not tune it.
        "margin_auc_by_rate": {f"{rate:g}": mean_of([row["auc"]["margin"] for row in rows]) for rate, rows in tried.items()},
    }


def gathered(rows: list[Row]) -> Row:
    """Computes means, standard deviations and lists of values over the seeds."""
    values = {name: [row["auc"][name] for row in rows] for name in MEASURES}
    values["precision"] = [row["precision"] for row in rows]
    return {
        name: {"mean": mean_of(row), "sd": round(float(np.std(row, ddof=1)), 5), "seeds": row}
        for name, row in values.items()
    }


def mean_of(values: list[float]) -> float:
    """Returns the rounded mean."""
    return round(float(np.mean(values)), 5)


# ---- the command ---------------------------------------------------------------------------------------------------------


def show(title: str, losses: dict[str, Row]) -> None:
    """Prints the table of one dataset and one noise."""
    table = Table(title=title)
    heads = {"out_of_fold": ("margin", "log_odds", "p_margin", "loss", "precision"), "in_sample": ("margin", "loss")}
    table.add_column("loss", no_wrap=True)
    for head in ("rate", "agree", *heads["out_of_fold"], *(f"seen: {name}" for name in heads["in_sample"])):
        table.add_column(head, justify="right", no_wrap=True)
    for name, row in losses.items():
        figures = [row[kind][key]["mean"] for kind, keys in heads.items() for key in keys]
        table.add_row(name, f"{row['rate']:g}", f"{mean_of(row['agreement']):.3f}", *[f"{value:.4f}" for value in figures])
    Console(width=125).print(table)


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/wrong_labels.py --data DIR                  everything, a quarter of an hour on one core\n"
        "  python benchmarks/wrong_labels.py --sets digits               without the file that letter needs\n"
        "  python benchmarks/wrong_labels.py --quick --sets digits       seconds: does it run?\n",
    )
    parser.add_argument("--data", type=Path, help="folder with letter.csv.xz (default: variable LINEARCORE_DATA)")
    parser.add_argument("--sets", default="digits,letter", help="datasets, comma-separated (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds, at least 2 (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=30, help="training epochs (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="smoke test: 2 seeds, 1 epoch, 2 kinds of noise")
    parser.add_argument(
        "--out", type=Path, default=OUT, help="JSON file to write (default: benchmarks/results/wrong_labels.json)"
    )
    return parsed(parser)


def pools(options: argparse.Namespace) -> dict[str, Pool]:
    """Loads the datasets of the options."""
    names = [name.strip() for name in options.sets.split(",")]
    for name in names:
        if name not in ("digits", "letter"):
            raise UsageError(f"--sets takes digits and letter, and {name!r} is neither")
    if options.seeds < 2 or options.epochs < 1:
        raise UsageError("--seeds must be at least 2 for a spread, and --epochs at least 1")
    folder = data_folder(options.data)
    return {name: digits() if name == "digits" else letter(folder) for name in names}


def measure(found: dict[str, Pool], seeds: range, epochs: int, laws: list[str]) -> Row:
    """Runs every dataset, noise and loss."""
    results: Row = {}
    with Progress() as progress:
        for name, pool in found.items():
            results[name] = {"rows": len(pool.labels), "num_classes": pool.num_classes, "laws": {}}
            for law in laws:
                draws = {seed: noisy_labels(pool, law, seed) for seed in seeds}
                with progress.part(f"{name}, {law}", len(COMPARED) * len(RATES) * len(seeds), "trainings") as part:
                    losses = {loss: one_loss(pool, draws, loss, epochs, part.advance) for loss in COMPARED}
                noise = [{"hash": noisy.hash[:16], "wrong": round(noisy.realised_rate, 5)} for noisy in draws.values()]
                stated = next(iter(draws.values())).law
                results[name]["laws"][law] = {"losses": losses, "noise": noise, "law": stated}
                show(f"{name}, {law}", losses)
    return results


def main() -> None:
    """Runs the benchmark, prints the tables and writes the result file."""
    options, started = arguments(), time.perf_counter()
    try:
        found = pools(options)
        options.out.parent.mkdir(parents=True, exist_ok=True)
    except (UsageError, OSError) as error:
        print(f"wrong_labels.py: {error}", file=sys.stderr)
        sys.exit(2)
    torch.set_num_threads(1)
    seeds, epochs = range(2 if options.quick else options.seeds), 1 if options.quick else options.epochs
    laws = list(LAWS)[-2:] if options.quick else list(LAWS)
    results: Row = {"sets": measure(found, seeds, epochs, laws), "seconds": round(time.perf_counter() - started, 1)}
    settings: Row = {"seeds": list(seeds), "epochs": epochs, "learning_rates": list(RATES), "hidden": HIDDEN}
    settings |= {"batch_size": BATCH, "folds": 5, "losses": list(COMPARED), "quick": options.quick}
    write_record(options.out, command=command("wrong_labels.py"), settings=settings, results=results, seed=0)
    print(f"{results['seconds']:.0f} s; wrote {options.out}")


if __name__ == "__main__":
    main()
