"""Taggers with the default settings and four losses: accuracy, epochs, steps, words per second, memory.

    python benchmarks/tagging.py --data DIR --sets ewt400,ewt400_draw --losses lc,crf,ssvm,ce,crfsuite --seeds 3
    python benchmarks/tagging.py --data DIR --sets ewt_upos,ewt,ewt_feats,turkish --losses lc,crf,ssvm,ce
    python benchmarks/tagging.py --data DIR --sets latin --losses lc,crf,ssvm,ce --limit-words 200000
    python benchmarks/tagging.py --data DIR --sets latin --losses lc,crf,ssvm,ce --device cuda --epochs 4
    python benchmarks/tagging.py --data DIR --sets turkish --losses lc,lc_plain,lc_composed --limit-words 30000

lc_plain is the linear core without the defaults for many tags, lc_composed composes tags from parts. Each dataset, and each
limit of words, has its own result file. Runs that it already contains with the same settings and data are skipped, so an
interrupted benchmark resumes and loses at most one run. The epoch is chosen on the dev sentences; results are on the test
sentences. With ewt400 and ewt400_draw every tenth of 400 sentences is a dev sentence; crfsuite trains on all of them.
"""

import argparse
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import _crfsuite
from _harness import command, parsed
from _tagger import UsageError
from _tagging_sets import SETS, Parts, read
from linearcore.runtime import Progress, read_record, write_record
from linearcore.tagging import HEADS, Evaluation, Training, Vocabulary, digest, train
from linearcore.tagging.readers import Sentence

RESULTS = Path(__file__).parent / "results"
#: The name of sklearn-crfsuite in `--losses`.
CRFSUITE = "crfsuite"
#: The settings of each of our names in `--losses`.
VARIANTS: dict[str, dict[str, Any]] = {loss: {"loss": loss} for loss in HEADS} | {
    "lc_plain": {"loss": "lc", "rank": 0, "unary": 0.0, "sharpness": 1.0},
    "lc_composed": {"loss": "lc", "compose": True},
}


def one_run(name: str, parts: Parts, settings: Training, columns: str, device: str, progress: Progress) -> dict[str, Any]:
    """Trains once and tags the test sentences."""
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    found = train(parts["train"], parts["dev"], settings, columns=columns, device=device, progress=progress)
    seconds = time.perf_counter() - started
    peak = None if device == "cpu" else round(torch.cuda.max_memory_allocated() / 2**30, 3)
    started = time.perf_counter()
    test = found.tagger.evaluate(Sentence(list(words), list(tags), [], [], line=1) for words, tags in parts["test"])
    tagging = time.perf_counter() - started
    best = found.history[[row["epoch"] for row in found.history].index(found.best_epoch)]
    return {
        "loss": name,
        "seed": settings.seed,
        **_accuracies(test),
        "dev_accuracy": round(best["dev_accuracy"], 3),
        "best_epoch": found.best_epoch,
        "epochs": found.last_epoch,
        "steps": found.history[-1]["steps"],
        "epoch_dev_accuracies": {str(row["epoch"]): round(row["dev_accuracy"], 2) for row in found.history},
        "seconds": round(seconds, 1),
        "test_words_per_second": round(sum(len(words) for words, _ in parts["test"]) / tagging),
        "peak_gib": peak,
        "tags": len(found.tagger.vocabulary.tags),
        "settings": found.tagger.metadata["training"],
    }


def crfsuite_run(parts: Parts) -> dict[str, Any]:
    """Trains sklearn-crfsuite and tags the test sentences; the result does not depend on a seed."""
    started = time.perf_counter()
    predicted = _crfsuite.predict(parts["labelled"], [words for words, _ in parts["test"]])
    seconds = time.perf_counter() - started
    vocabulary = Vocabulary.of(parts["labelled"])
    test = Evaluation(vocabulary.word_numbers, vocabulary.tag_numbers)
    for (words, tags), own in zip(parts["test"], predicted, strict=True):
        test.add(words, tags, own)
    return {
        "loss": CRFSUITE,
        "seed": 0,
        **_accuracies(test),
        "epochs": None,
        "steps": None,
        "seconds": round(seconds, 1),
        "peak_gib": None,
        "tags": len(vocabulary.tags),
        "settings": _crfsuite.SETTINGS | {"features": _crfsuite.FEATURES},
    }


def _accuracies(test: Evaluation) -> dict[str, float]:
    report = test.to_json()
    return {
        "test_accuracy": round(report["accuracy"], 3),
        "test_known": round(report["known"]["accuracy"], 3),
        "test_unknown": round(report["unknown"]["accuracy"], 3),
        "test_words_with_unseen_tag": sum(test.unseen_tags.values()),
        "test_unseen_tag_correct": test.unseen_correct,
    }


def speed(parts: Parts, settings: Training, columns: str, device: str, progress: Progress) -> float:
    """Measures training words per second in the third epoch over a tenth of the sentences, with all tags.

    In the first two epochs algorithms are selected and graphs captured. The time includes making batches.
    """
    tags = {tag for _, own in parts["train"] for tag in own}
    num_words = sum(len(words) for words, _ in parts["train"])
    short = replace(settings.with_defaults(num_words, len(tags)), epochs=3, patience=3, inflate=len(tags))
    found = train(parts["train"][::10], parts["dev"][:20], short, columns=columns, device=device, progress=progress)
    return float(found.history[-1]["words_per_second"])


def summary(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Computes mean and standard deviation over seeds for each loss."""
    found = {}
    for loss in dict.fromkeys(run["loss"] for run in runs):
        own = [run for run in runs if run["loss"] == loss]
        scores = [run["test_accuracy"] for run in own]
        found[loss] = {
            "seeds": len(own),
            "test_accuracy": round(statistics.mean(scores), 3),
            "spread": round(statistics.stdev(scores), 3) if len(scores) > 1 else None,
            "unknown": round(statistics.mean(run["test_unknown"] for run in own), 3),
            "epochs": None if loss == CRFSUITE else round(statistics.mean(run["epochs"] for run in own), 1),
            "steps": None if loss == CRFSUITE else round(statistics.mean(run["steps"] for run in own)),
            "seconds": round(statistics.mean(run["seconds"] for run in own), 1),
            "peak_gib": own[0]["peak_gib"],
        }
    return found


def measure(name: str, args: argparse.Namespace, progress: Progress) -> None:
    """Runs one dataset; writes the result file after each run."""
    parts, columns = read(name, args.data, args.limit_words), SETS[name].tag
    base = Training(epochs=args.epochs, batch_tokens=args.tokens)
    settings = _settings(name, parts, base, args)
    path = args.out / (f"tagging_{name}.json" if args.limit_words is None else f"tagging_{name}_{args.limit_words}.json")
    runs, speeds = _earlier(path, settings)
    for seed in range(args.seeds):
        for loss in args.losses:
            if any(run["loss"] == loss and run["seed"] == seed for run in runs) or (loss == CRFSUITE and seed > 0):
                continue
            with progress.part(f"{name}, {loss}, seed {seed}"):
                if loss == CRFSUITE:
                    runs.append(crfsuite_run(parts))
                else:
                    own = replace(base, seed=seed, **VARIANTS[loss])
                    runs.append(one_run(loss, parts, own, columns, args.device, progress))
            _write(path, settings, runs, speeds)
    for loss in args.losses if args.speed else ():
        if loss not in speeds and loss != CRFSUITE:
            with progress.part(f"{name}, {loss}, words per second"):
                speeds[loss] = round(speed(parts, replace(base, **VARIANTS[loss]), columns, args.device, progress))
            _write(path, settings, runs, speeds)
    for loss, row in summary(runs).items():
        spread = "" if row["spread"] is None else f" ± {row['spread']:.2f}"
        print(
            f"{name} {loss}: {row['test_accuracy']:.2f}{spread} % of the test words, {row['unknown']:.2f} % of the unknown "
            f"words, {row['seconds']:.0f} s" + (f", {speeds[loss]:,} words/s" if loss in speeds else "")
        )


def _settings(name: str, parts: Parts, base: Training, args: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings that all runs share; the others, which depend on the loss, are in each run."""
    num_words = sum(len(words) for words, _ in parts["train"])
    num_tags = len({tag for _, tags in parts["train"] for tag in tags})
    shared = base.with_defaults(num_words, num_tags).to_json()
    for key in ("loss", "seed", "compose", *HEADS["lc"].defaults(num_tags)):
        del shared[key]
    return shared | {
        "set": name,
        "device": args.device,
        "threads": torch.get_num_threads(),
        "tag": SETS[name].tag,
        "limit_words": args.limit_words,
        "words": {part: sum(len(words) for words, _ in sentences) for part, sentences in parts.items()},
        "data": {part: digest(sentences) for part, sentences in parts.items()},
    }


def _write(path: Path, settings: dict[str, Any], runs: list[dict[str, Any]], speeds: dict[str, int]) -> None:
    results = {"runs": runs, "summary": summary(runs), "training_words_per_second": speeds}
    write_record(path, command=command("tagging.py"), settings=settings, results=results, seed=0)


def _earlier(path: Path, settings: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Reads the runs and speeds that were measured with these settings and this version of torch."""
    if not path.is_file():
        return [], {}
    record = read_record(path)
    if record["settings"] != settings or record["environment"]["torch"] != torch.__version__:
        return [], {}
    found = record["results"]
    return list(found["runs"]), dict(found.get("training_words_per_second", {}))


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("LINEARCORE_DATA"), help="folder with the datasets")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["ewt"], help=", ".join(SETS))
    parser.add_argument(
        "--losses", type=lambda text: text.split(","), default=["lc", "ce"], help=", ".join((*VARIANTS, CRFSUITE))
    )
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=None, help="maximum number of epochs (default: the library's)")
    parser.add_argument("--tokens", type=int, default=None, help="words per batch (default: the library's)")
    parser.add_argument("--limit-words", type=int, default=None, help="use only the first training sentences")
    parser.add_argument("--speed", action="store_true", help="also measure training words per second, on a quiet machine")
    parser.add_argument("--device", default="cpu", help="torch device (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the result files")
    args = parsed(parser)
    try:
        if args.data is None:
            raise UsageError("the sentences are not part of the project; pass --data DIR")
        unknown = [name for name in args.sets if name not in SETS]
        if unknown:
            raise UsageError(f"unknown set {', '.join(unknown)}; known: {', '.join(SETS)}")
        unknown = [loss for loss in args.losses if loss not in (*VARIANTS, CRFSUITE)]
        if unknown:
            raise UsageError(f"unknown loss {', '.join(unknown)}; known: {', '.join((*VARIANTS, CRFSUITE))}")
        args.data = Path(args.data)
        with Progress() as progress:
            for name in args.sets:
                measure(name, args, progress)
    except UsageError as error:
        print(f"tagging.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
