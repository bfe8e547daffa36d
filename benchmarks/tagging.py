"""Taggers trained with four losses and equal settings: accuracy, epochs, words per second, memory.

    python benchmarks/tagging.py --data DIR --sets ewt                        # English, 49 tags, two CPU cores
    python benchmarks/tagging.py --data DIR --sets turkish --losses lc,ce --seeds 3
    python benchmarks/tagging.py --data DIR --sets latin --losses lc,crf,ssvm,ce --device cuda --epochs 4

Each dataset has its own result file. Runs that it already contains with the same settings and data are skipped, so an
interrupted benchmark resumes. The epoch is chosen on the dev sentences; results are on the test sentences.
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

from _harness import command, parsed
from _tagger import UsageError
from linearcore.runtime import Progress, read_record, write_record
from linearcore.tagging import TaggedSentence, Training, digest, train
from linearcore.tagging.readers import Sentence, read_sentences
from linearcore_paper.experiments.tagging.text import every_tenth

RESULTS = Path(__file__).parent / "results"
#: Tag and files of each dataset.
SETS = {
    "ewt": ("xpos", {part: [f"en_ewt-{part}.conllu.xz"] for part in ("train", "dev", "test")}),
    "turkish": ("upos+feats", {"all": ["tr_web.conllu.xz", "tr_wiki.conllu.xz"]}),
    "latin": ("upos+feats", {part: [f"la_lasla-{part}.conllu.xz"] for part in ("train", "dev", "test")}),
}
Parts = dict[str, list[TaggedSentence]]


def read(name: str, data: Path) -> Parts:
    """Reads the sentences of a dataset: train, dev and test."""
    tag, files = SETS[name]
    found: Parts = {"train": [], "dev": [], "test": []}
    for part, names in files.items():
        for file in names:
            path = data / "tagging" / file
            if not path.is_file():
                raise UsageError(f"{name} needs {file}, which is not in {path.parent}; pass --data DIR")
            # LASLA has duplicate word numbers.
            sentences = read_sentences(path, tag, check_ids=name != "latin")
            tagged = [(sentence.words, sentence.tags or []) for sentence in sentences]
            if part == "all":
                for own, some in every_tenth(tagged).items():
                    found[own] += some
            else:
                found[part] += tagged
    return found


def one_run(parts: Parts, settings: Training, columns: str, device: str, progress: Progress) -> dict[str, Any]:
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
    report, history = test.to_json(), found.history
    best = max(history, key=lambda row: float(row["dev_accuracy"]))
    return {
        "loss": settings.loss,
        "seed": settings.seed,
        "test_accuracy": round(report["accuracy"], 3),
        "test_known": round(report["known"]["accuracy"], 3),
        "test_unknown": round(report["unknown"]["accuracy"], 3),
        "dev_accuracy": round(best["dev_accuracy"], 3),
        "best_epoch": best["epoch"],
        "epochs": len(history),
        "epoch_dev_accuracies": [round(row["dev_accuracy"], 2) for row in history],
        "seconds": round(seconds, 1),
        "test_words_per_second": round(report["tokens"] / tagging),
        "peak_gib": peak,
        "tags": len(found.tagger.vocabulary.tags),
    }


def speed(parts: Parts, settings: Training, columns: str, device: str, progress: Progress) -> float:
    """Measures training words per second in the third epoch over a tenth of the sentences, with all tags.

    In the first two epochs algorithms are selected and graphs captured. The time includes making batches.
    """
    tags = {tag for _, own in parts["train"] for tag in own}
    short = replace(settings, epochs=3, patience=3, inflate=len(tags))
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
            "epochs": round(statistics.mean(run["epochs"] for run in own), 1),
            "seconds": round(statistics.mean(run["seconds"] for run in own), 1),
            "peak_gib": own[0]["peak_gib"],
        }
    return found


def measure(name: str, args: argparse.Namespace, progress: Progress) -> None:
    """Runs one dataset; writes the result file after each run."""
    parts, columns = read(name, args.data), SETS[name][0]
    base = Training(epochs=args.epochs, batch_tokens=args.tokens).with_defaults()
    settings = base.to_json() | {"set": name, "device": args.device, "tag": columns}
    del settings["loss"], settings["seed"]
    settings["data"] = {part: digest(sentences) for part, sentences in parts.items()}
    path = args.out / f"tagging_{name}.json"
    runs, speeds = _earlier(path, settings)
    for seed in range(args.seeds):
        for loss in args.losses:
            if any(run["loss"] == loss and run["seed"] == seed for run in runs):
                continue
            with progress.part(f"{name}, {loss}, seed {seed}"):
                runs.append(one_run(parts, replace(base, loss=loss, seed=seed), columns, args.device, progress))
            _write(path, settings, runs, speeds)
    for loss in args.losses:
        if loss not in speeds:
            with progress.part(f"{name}, {loss}, words per second"):
                speeds[loss] = round(speed(parts, replace(base, loss=loss), columns, args.device, progress))
            _write(path, settings, runs, speeds)
    for loss, row in summary(runs).items():
        spread = "" if row["spread"] is None else f" ± {row['spread']:.2f}"
        print(
            f"{name} {loss}: {row['test_accuracy']:.2f}{spread} % of the test words, {speeds.get(loss, 0):,} words/s, "
            f"{row['seconds']:.0f} s"
        )


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
    parser.add_argument("--losses", type=lambda text: text.split(","), default=["lc", "ce"], help="lc, crf, ssvm, ce")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=None, help="maximum number of epochs (default: the library's)")
    parser.add_argument("--tokens", type=int, default=None, help="words per batch (default: the library's)")
    parser.add_argument("--device", default="cpu", help="torch device (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the result files")
    args = parsed(parser)
    try:
        if args.data is None:
            raise UsageError("the sentences are not part of the project; pass --data DIR")
        unknown = [name for name in args.sets if name not in SETS]
        if unknown:
            raise UsageError(f"unknown set {', '.join(unknown)}; known: {', '.join(SETS)}")
        args.data = Path(args.data)
        with Progress() as progress:
            for name in args.sets:
                measure(name, args, progress)
    except UsageError as error:
        print(f"tagging.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
