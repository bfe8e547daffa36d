"""How well are wrong labels found, and is their number estimated, beside cleanlab and Datalab?

Labels of five datasets are made wrong in four ways at two rates, and near class boundaries at the higher rate. Models are
cross-validated on the wrong labels, with the command's default settings, and all rows are ranked by how suspicious their
label is. In four parts:

    models    rankings by the margin, from the scores of each model of `linearcore suspects`, and of logistic regression
    rankings  scores of linearcore, cleanlab and Datalab from the same probabilities, those of `--model auto`
    counts    estimated numbers of wrong labels from the same probabilities, divided by the true number
    losses    rankings by the margin, from networks trained with different losses (digits and letter, 20 % wrong)

Rankings are measured by the area under the ROC curve (AUROC), the probability that a wrong label ranks above a right one,
and by average precision (AP). Nothing is tuned here. Models, measures and the estimate were chosen on other data: letter's
later rows, newsgroups' training part, a9a's test part, w8a, breast cancer and a generated table; and on digits with other
planted errors.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import _wrong_label_peers as peers
from _harness import command, data_folder, parsed
from _work import Run, all_runs
from _wrong_label_sets import LAWS, SETS, Pool, UsageError, noisy_labels
from linearcore.cleaning import flagging_auc, model_scores, out_of_fold_scores, suspects
from linearcore.cleaning._models import calibrated
from linearcore.runtime import write_record

OUT = Path(__file__).parent / "results" / "wrong_labels.json"
RATES = (0.05, 0.2)
LOSSES = ("ce", "gce", "lc", "lc-pairwise", "lc-centered", "robust", "unhinged")
LOSS_SETS = ("digits", "letter")

Row = dict[str, Any]


def measured(suspicion: Any, wrong: Tensor) -> Row:
    """Returns AUROC and average precision."""
    from sklearn.metrics import average_precision_score

    values = torch.as_tensor(suspicion).double()
    precision = average_precision_score(wrong.numpy(), values.numpy())
    return {"auroc": round(flagging_auc(values, wrong), 5), "ap": round(float(precision), 5)}


def by_margin(scores: Tensor, given: Tensor, wrong: Tensor) -> Row:
    """Measures the ranking by the margin."""
    return measured(suspects(scores, given, probabilities=False).suspicion, wrong)


# ---- one case: a dataset, a kind of noise, a rate and a seed ----


def models(pool: Pool, given: Tensor, wrong: Tensor, seed: int) -> tuple[dict[str, Row], Tensor]:
    """Returns the measures of every model, and the scores of "auto"."""
    scores = {"logistic regression": logistic_regression(pool, given, seed)}
    is_text = not isinstance(pool.features, Tensor)
    for name in ("linear", "network", "boosting"):
        if name == "linear" or not is_text:
            found = model_scores(pool.features, given, num_classes=pool.num_classes, model=name, seed=seed)
            scores[name] = found.scores.double()
    if not is_text:
        parts = [calibrated(scores[name], given) for name in ("network", "boosting")]
        scores["ensemble"] = torch.stack(parts).mean(0)
    auto = scores["linear" if is_text else "ensemble"]
    return {name: by_margin(values, given, wrong) for name, values in scores.items()}, auto


def logistic_regression(pool: Pool, given: Tensor, seed: int) -> Tensor:
    """Returns the cross-validated log-probabilities of scikit-learn's default; features other than text are scaled."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(max_iter=300)
    features = pool.features
    if isinstance(features, Tensor):
        model, features = make_pipeline(StandardScaler(), model), features.numpy()
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    probabilities = cross_val_predict(model, features, given.numpy(), cv=folds, method="predict_proba")
    return torch.from_numpy(np.log(np.maximum(probabilities, 1e-12)))


def rankings_and_counts(scores: Tensor, given: Tensor, wrong: Tensor, *, with_peers: bool) -> tuple[Row, Row]:
    """Returns the measures of every ranking, and every count, from the same probabilities."""
    log_probabilities = calibrated(scores, given)
    ranked = suspects(log_probabilities, given, probabilities=False)
    log_odds = suspects(log_probabilities, given, measure="log_odds", probabilities=False)
    suspicion = {"linearcore margin": ranked.suspicion, "linearcore log_odds": log_odds.suspicion}
    estimate = ranked.estimate
    counts: Row = {
        "true": int(wrong.sum()), "linearcore": estimate.count, "low": estimate.low, "high": estimate.high,
        "disagreements": estimate.disagreements,
    }  # fmt: skip
    if with_peers:
        labels, probabilities = given.numpy(), log_probabilities.exp().numpy()
        probabilities = probabilities / probabilities.sum(1, keepdims=True)
        suspicion |= peers.rankings(labels, probabilities)
        counts |= peers.counts(labels, probabilities)
        suspicion["Datalab"], counts["Datalab"] = peers.datalab(labels, probabilities)
    return {name: measured(values, wrong) for name, values in suspicion.items()}, counts


def losses(pool: Pool, given: Tensor, wrong: Tensor, seed: int) -> dict[str, Row]:
    """Returns the measures of the network trained with every loss."""
    return {
        loss: by_margin(
            out_of_fold_scores(pool.features, given, num_classes=pool.num_classes, loss=loss, seed=seed).scores, given, wrong
        )
        for loss in LOSSES
    }


@lru_cache
def pool_of(name: str, folder: Path | None, rows: int | None) -> Pool:
    """Loads a dataset once per process; the first `rows` rows, or all."""
    pool = SETS[name](folder)
    return Pool(pool.features[:rows], pool.labels[:rows], pool.num_classes)


def case(name: str, law: str, rate: float, seed: int, folder: Path | None, rows: int | None, with_peers: bool) -> Row:
    """Runs one case."""
    pool = pool_of(name, folder, rows)
    noisy = noisy_labels(pool, law, rate, seed)
    given, wrong = noisy.labels, noisy.labels != pool.labels
    by_model, auto = models(pool, given, wrong, seed)
    by_ranking, counts = rankings_and_counts(auto, given, wrong, with_peers=with_peers)
    row: Row = {"set": name, "law": law, "rate": rate, "seed": seed, "rows": len(given), "hash": noisy.hash[:16]}
    row |= {"models": by_model, "rankings": by_ranking, "counts": counts}
    return row | ({"losses": losses(pool, given, wrong, seed)} if name in LOSS_SETS and rate == RATES[-1] else {})


def described(row: Row) -> str:
    """Returns the line that is printed when a case is finished."""
    counts = row["counts"]
    count = f"{counts['true']} wrong, estimated {counts['linearcore']} ({counts['low']} to {counts['high']})"
    return f"{row['set']}, {row['law']} {100 * row['rate']:g} %, seed {row['seed']}: {count}"


# ---- the command ----


def show(title: str, cases: list[Row], part: str) -> None:
    """Prints the means of AUROC and AP over all cases of a part."""
    table = Table(title=title)
    for head in ("", "AUROC", "AP", "cases"):
        table.add_column(head, justify="right" if head else "left")
    names = dict.fromkeys(name for row in cases for name in row.get(part, ()))
    for name in names:
        rows = [row[part][name] for row in cases if name in row.get(part, ())]
        table.add_row(name, *(f"{np.mean([row[key] for row in rows]):.4f}" for key in ("auroc", "ap")), str(len(rows)))
    Console().print(table)


def show_counts(title: str, cases: list[Row]) -> None:
    """Prints how far the counts are from the truth, and how often the interval contains it."""
    table = Table(title=title)
    for head in ("", "mean of estimate / truth", "mean error, points"):
        table.add_column(head, justify="right" if head else "left")
    for name in cases[0]["counts"]:
        if name not in ("true", "low", "high"):
            ratios = [row["counts"][name] / row["counts"]["true"] for row in cases]
            errors = [abs(ratio - 1) * row["counts"]["true"] / row["rows"] for ratio, row in zip(ratios, cases, strict=True)]
            table.add_row(name, f"{np.mean(ratios):.2f}", f"{100 * np.mean(errors):.2f}")
    Console().print(table)
    inside = sum(row["counts"]["low"] <= row["counts"]["true"] <= row["counts"]["high"] for row in cases)
    print(f"the interval contains the truth in {inside} of {len(cases)} cases")


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/wrong_labels.py --data DIR                  everything; needs pip install cleanlab[datalab]\n"
        "  python benchmarks/wrong_labels.py --sets digits               without the files that the others need\n"
        "  python benchmarks/wrong_labels.py --quick --sets digits       seconds: does it run?\n",
    )
    parser.add_argument("--data", type=Path, help="folder with the files (default: variable LINEARCORE_DATA)")
    parser.add_argument("--sets", default=",".join(SETS), help="datasets, comma-separated (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes with one thread each (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="folder for finished cases; an interrupted command resumes from it")
    parser.add_argument("--no-peers", action="store_true", help="without cleanlab and Datalab")
    parser.add_argument("--quick", action="store_true", help="smoke test: one seed, 2 kinds of noise, 200 rows")
    parser.add_argument(
        "--out", type=Path, default=OUT, help="JSON file to write (default: benchmarks/results/wrong_labels.json)"
    )
    return parsed(parser)


def check(options: argparse.Namespace) -> list[str]:
    """Returns the names of the datasets; raises if an option is wrong, or a file or package is missing."""
    names = [name.strip() for name in options.sets.split(",")]
    for name in names:
        if name not in SETS:
            raise UsageError(f"--sets takes {', '.join(SETS)}, and {name!r} is none of them")
    if min(options.seeds, options.workers) < 1:
        raise UsageError("--seeds and --workers must be at least 1")
    for name in names:
        pool_of(name, data_folder(options.data), None)
    if not options.quick and not options.no_peers and (gone := peers.missing()):
        raise UsageError(f"{', '.join(gone)} not installed; run pip install 'cleanlab[datalab]', or pass --no-peers")
    return names


def plan(names: Iterable[str], laws: Iterable[str], seeds: range) -> list[tuple[str, str, float, int]]:
    """Returns dataset, kind of noise, rate and seed of all cases."""
    every = itertools.product(names, laws, RATES, seeds)
    return [row for row in every if row[1] != "boundary" or row[2] == RATES[-1]]


def main() -> None:
    """Runs the benchmark, prints the tables and writes the result file."""
    options, started = arguments(), time.perf_counter()
    try:
        names = check(options)
        options.out.parent.mkdir(parents=True, exist_ok=True)
    except (UsageError, OSError) as error:
        print(f"wrong_labels.py: {error}", file=sys.stderr)
        sys.exit(2)
    seeds, laws = range(1 if options.quick else options.seeds), LAWS[:2] if options.quick else LAWS
    with_peers, rows = not options.no_peers and not peers.missing(), 200 if options.quick else None
    more = (data_folder(options.data), rows, with_peers)
    versions = peers.versions() if with_peers else {}
    runs: list[Run] = [
        ({"case": list(row), "rows": rows, "versions": versions}, case, (*row, *more)) for row in plan(names, laws, seeds)
    ]
    cases = all_runs(runs, options.workers, options.work, described)
    easy, hard = ([row for row in cases if (row["law"] == "boundary") == is_hard] for is_hard in (False, True))
    for part_name in ("models", "rankings", "losses"):
        show(f"{part_name}, four kinds of noise", easy, part_name)
    show_counts("counts, four kinds of noise", easy)
    if hard:
        show("rankings, boundary noise", hard, "rankings")
        show_counts("counts, boundary noise", hard)
    settings: Row = {"seeds": list(seeds), "rates": list(RATES), "laws": list(laws), "folds": 5, "quick": options.quick}
    settings |= {"versions": versions}
    sets = {name: {"rows": row["rows"]} for row in cases for name in [row["set"]]}
    results: Row = {"sets": sets, "cases": cases, "seconds": round(time.perf_counter() - started, 1)}
    write_record(options.out, command=command("wrong_labels.py"), settings=settings, results=results, seed=0)
    print(f"{results['seconds']:.0f} s; wrote {options.out}")


if __name__ == "__main__":
    main()
