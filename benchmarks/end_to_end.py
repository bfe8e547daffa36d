"""Wall time and accuracy of complete training runs, before and after a change of the library.

Every run is a Python process of its own with the library of one checkout. The checkouts run in turn, with the same settings
and seed. `linearcore tag train` reads the files, trains, tags the validation sentences after every epoch and saves the
tagger; its time includes all of this and the start of Python. A run on letters trains one network of `noisy_letters.py` with
40 % wrong labels. Token cross-entropy (ce) and CE on letters are for comparison: they do not use kernels of this library.

    git worktree add ../before 7b5b4d4                                      # the last commit without compiled kernels
    python benchmarks/end_to_end.py --data DIR --before ../before --rounds 1   # the committed results, eight minutes
    python benchmarks/end_to_end.py --data DIR --before ../before --quick   # a test, about a minute
"""

import argparse
import json
import lzma
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from _harness import command, data_folder, parsed
from linearcore.runtime import Progress, write_record

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "results" / "end_to_end_cpu.json"
#: Files, tag column, words of training text (None: all of it) and epochs of each treebank.
TREEBANKS: dict[str, tuple[str, str, int | None, int]] = {
    "EWT, upos": ("en_ewt", "upos", None, 2),
    "LASLA, upos+feats": ("la_lasla", "upos+feats", 60_000, 3),
}
HEADS = ("lc", "crf", "ce")
LETTERS = ("LC logodds", "LC pairwise", "LC robust", "CE")
SETTINGS = ("--batch-tokens", "400", "--lr", "0.003", "--precision", "fp32", "--seed", "0", "--no-check-ids")
#: One network of `noisy_letters.py`.
LETTERS_CODE = """
import json, sys
from pathlib import Path
import noisy_letters
data, loss, epochs = sys.argv[1:]
plan = noisy_letters.Plan(epochs=int(epochs))
print(json.dumps(noisy_letters.one_run(Path(data), "instance-dependent 40 %", loss, 1.0, 1, plan)))
"""
LINEARCORE = ("-c", "from linearcore.cli import main; main()")


class RunFailedError(Exception):
    """A run ended with an error; the message is the last line that it printed."""


def run(checkout: Path, words: list[str], threads: int) -> tuple[float, float, str]:
    """Runs Python with the library of a checkout; returns seconds, CPU seconds and what it printed."""
    paths = os.pathsep.join(str(checkout / folder) for folder in ("src", "benchmarks"))
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": str(threads)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RunFailedError((done.stderr.strip() or "no message").splitlines()[-1])
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def tagger_run(checkout: Path, folder: Path, tag: str, head: str, epochs: int, threads: int) -> dict[str, float]:
    """Trains a tagger on the files of `folder` and measures its accuracy on the test sentences, which is not timed."""
    with tempfile.TemporaryDirectory() as out:
        files = ["--train", str(folder / "train.conllu"), "--dev", str(folder / "dev.conllu"), "--tag", tag]
        lengths = ["--epochs", str(epochs), "--patience", str(epochs)]
        words = [*LINEARCORE, "tag", "train", *files, "--loss", head, *lengths, *SETTINGS, "--out", f"{out}/tagger"]
        seconds, cpu_seconds, _ = run(checkout, words, threads)
        evaluate = [*LINEARCORE, "tag", "eval", f"{out}/tagger", str(folder / "test.conllu"), "--no-check-ids", "--json"]
        accuracy = json.loads(run(checkout, evaluate, threads)[2])["accuracy"]
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "accuracy": accuracy}


def letters_run(checkout: Path, data: Path, loss: str, epochs: int, threads: int) -> dict[str, float]:
    """Trains one network on letters with wrong labels; the accuracy is that on true labels."""
    words = ["-c", LETTERS_CODE, str(data / "tabular"), loss, str(epochs)]
    seconds, cpu_seconds, printed = run(checkout, words, threads)
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "accuracy": json.loads(printed)["test"]}


def write_excerpt(source: Path, target: Path, words: int | None) -> None:
    """Writes the first sentences of a compressed CoNLL-U file, with `words` words in all or a few more."""
    with lzma.open(source, "rt", encoding="utf-8") as text, target.open("w", encoding="utf-8") as out:
        count = 0
        for line in text:
            out.write(line)
            count += line.partition("\t")[0].isdigit()
            if not line.strip() and words is not None and count >= words:
                return


def treebank(data: Path, name: str, folder: Path, words: int | None) -> None:
    """Writes train.conllu, dev.conllu and test.conllu; with a limit of words, the others have a tenth as many."""
    folder.mkdir()
    for part in ("train", "dev", "test"):
        limit = words if part == "train" or words is None else words // 10
        write_excerpt(data / "tagging" / f"{name}-{part}.conllu.xz", folder / f"{part}.conllu", limit)


def cases(data: Path, folder: Path, args: argparse.Namespace) -> Iterator[tuple[str, str, Any]]:
    """Yields the dataset, the loss, and a function from a checkout to a measured run."""
    for name, (files, tag, words, epochs) in TREEBANKS.items():
        own, number = folder / files, 1 if args.quick else epochs
        treebank(data, files, own, 3000 if args.quick else words)
        for head in HEADS[:1] if args.quick else HEADS:
            yield (
                name,
                head,
                lambda checkout, own=own, tag=tag, head=head, number=number: tagger_run(
                    checkout, own, tag, head, number, args.threads
                ),
            )
    for loss in LETTERS[:1] if args.quick else LETTERS:
        yield (
            "letters",
            loss,
            lambda checkout, loss=loss: letters_run(checkout, data, loss, 1 if args.quick else 60, args.threads),
        )


def measured(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Returns the medians of repeated runs. The seed is the same, so accuracies differ by rounding in threads at most."""
    digits = {"seconds": 2, "cpu_seconds": 2, "accuracy": 3}
    return {key: round(statistics.median(run[key] for run in runs), number) for key, number in digits.items()}


def compare(data: Path, checkouts: dict[str, Path], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs all cases with both checkouts in turn."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, Progress() as progress:
        all_cases = list(cases(data, Path(folder), args))
        with progress.part("runs", len(all_cases) * args.rounds * len(checkouts)) as part:
            for dataset, loss, one_run in all_cases:
                runs: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
                for _, (name, checkout) in product(range(args.rounds), checkouts.items()):
                    runs[name].append(one_run(checkout))
                    part.advance()
                row: dict[str, Any] = {name: measured(own) for name, own in runs.items()}
                ratio = round(row["before"]["seconds"] / row["after"]["seconds"], 2)
                rows.append({"dataset": dataset, "loss": loss, **row, "ratio": ratio})
                progress.print(f"{dataset}, {loss}: {row['before']['seconds']} s, {row['after']['seconds']} s")
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the table."""
    table = Table("data", "loss", "before, s", "after, s", "ratio", "accuracy, %", title="training before and after")
    for row in rows:
        before, after = row["before"], row["after"]
        accuracy = f"{before['accuracy']}, {after['accuracy']}"
        table.add_row(row["dataset"], row["loss"], *map(str, (before["seconds"], after["seconds"], row["ratio"], accuracy)))
    Console().print(table)


def commit_of(checkout: Path) -> str:
    """Returns the commit of a checkout; raises if it has none or has changes."""
    git = ["git", "-C", str(checkout)]
    found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changes = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=False)
    if found.returncode or changes.stdout.strip() or not (checkout / "src" / "linearcore").is_dir():
        raise RunFailedError(
            "--before takes a checkout of linearcore without changes, for example `git worktree add ../before 7b5b4d4`"
        )
    return found.stdout.strip()


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with tagging/ and tabular/; default: LINEARCORE_DATA")
    parser.add_argument("--before", type=Path, required=True, help="checkout of the earlier commit")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each checkout (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of a run (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one loss, 3,000 words and one epoch")
    parser.add_argument("--out", type=Path, default=OUT, help="result file (default: benchmarks/results)")
    args = parsed(parser)
    data = data_folder(args.data)
    try:
        if data is None or not (data / "tagging").is_dir():
            raise RunFailedError("--data takes the folder that contains tagging/ and tabular/")
        settings = {"before": commit_of(args.before), "quick": args.quick, "rounds": args.rounds, "threads": args.threads}
        rows = compare(data, {"before": args.before.resolve(), "after": ROOT}, args)
    except RunFailedError as error:
        print(f"end_to_end.py: {error}", file=sys.stderr)
        return 2
    show(rows)
    settings |= {"options": list(SETTINGS), "treebanks": {name: list(case) for name, case in TREEBANKS.items()}}
    write_record(args.out, command=command("end_to_end.py"), settings=settings, results=rows, seed=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
