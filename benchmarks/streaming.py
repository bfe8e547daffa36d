"""Memory of `linearcore tag predict` on a large file, and whether it grows.

A CoNLL-U file of the given size with comments and all ten columns is generated and tagged by a small tagger in a separate
process, whose resident memory is sampled. The output is compared with the input: every line and every column except the tag
must be unchanged.

    python benchmarks/streaming.py                      # 1 GB, the committed results
    python benchmarks/streaming.py --megabytes 5
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from _harness import command, parsed
from linearcore.runtime import Progress, write_record
from linearcore.tagging import Training, train

RESULTS = Path(__file__).parent / "results"
#: Seconds between two samples of the memory.
SAMPLE_INTERVAL_S = 0.25
#: Initial fraction of the run in which memory may grow, because libraries load and buffers fill.
SETTLING = 0.1
_STEMS = [first + second for first in ("ka", "lo", "mi", "re", "su", "ta") for second in ("bel", "dor", "fin", "gat", "hol")]
_ENDINGS = {"a": "NOUN", "en": "VERB", "ig": "ADJ", "u": "ADP"}
_TAG = 3  # the column of UPOS


def words_of(chance: random.Random) -> list[tuple[str, str]]:
    """Generates a sentence: words whose endings determine their tags."""
    endings = chance.choices(list(_ENDINGS), k=chance.randint(3, 40))
    return [(chance.choice(_STEMS) + chance.choice(_STEMS) + ending, _ENDINGS[ending]) for ending in endings]


def lines_of(number: int, words: list[tuple[str, str]]) -> Iterator[str]:
    """Formats a sentence as CoNLL-U with an empty UPOS, which is to be predicted."""
    yield f"# sent_id = generated-{number}"
    yield f"# text = {' '.join(word for word, _ in words)}"
    for place, (word, _) in enumerate(words, 1):
        feats = f"Case=Nom|Number=Sing|Place={place}"
        misc = f"SpaceAfter=Yes|Ref=doc-{number // 100}.sentence-{number}.word-{place}|Gloss={word[::-1]}"
        yield "\t".join([str(place), word, word[:-1], "_", "XP", feats, str(place - 1), "dep", f"{place - 1}:dep", misc])
    yield ""


def generate(path: Path, size: int, seed: int) -> int:
    """Writes a file of at least `size` bytes and returns its number of words."""
    chance, count, written, number = random.Random(seed), 0, 0, 0
    # A thousand sentences are repeated with other numbers, because generating is slower than writing.
    stock = [words_of(chance) for _ in range(1000)]
    with path.open("w", encoding="utf-8") as stream:
        while written < size:
            words = stock[number % len(stock)]
            text = "\n".join(lines_of(number, words)) + "\n"
            stream.write(text)
            written, number, count = written + len(text), number + 1, count + len(words)
    return count


def resident(process: int) -> int | None:
    """Returns the resident memory of a process in bytes, or None if it has ended."""
    try:
        for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def tag(model: Path, source: Path, target: Path) -> tuple[list[int], float]:
    """Tags a file; returns the sampled memory sizes and the time."""
    code = "import sys; from linearcore.cli import main; main(sys.argv[1:])"
    started, sizes = time.perf_counter(), []
    with target.open("wb") as stream:
        words = [sys.executable, "-c", code, "tag", "predict", str(model), str(source)]
        process = subprocess.Popen(words, stdout=stream)
        while process.poll() is None:
            size = resident(process.pid)
            if size is not None:
                sizes.append(size)
            time.sleep(SAMPLE_INTERVAL_S)
    if process.returncode:
        raise SystemExit(f"tagging ended with exit code {process.returncode}")
    return sizes, time.perf_counter() - started


def compare(source: Path, target: Path) -> int:
    """Returns the number of tagged words; exits if anything else has changed."""
    filled = 0
    with source.open(encoding="utf-8") as before, target.open(encoding="utf-8") as after:
        for old, new in zip(before, after, strict=True):
            if old == new:
                continue
            cells, others = old.split("\t"), new.split("\t")
            if (
                others[_TAG] not in _ENDINGS.values()
                or cells[:_TAG] + cells[_TAG + 1 :] != others[:_TAG] + others[_TAG + 1 :]
            ):
                raise SystemExit(f"the output differs in more than the tag: {old!r} became {new!r}")
            filled += 1
    return filled


def measure(megabytes: int, seed: int, folder: Path) -> dict[str, Any]:
    """Trains a small tagger, generates the file, and tags it."""
    chance = random.Random(seed)
    sentences = [tuple(map(list, zip(*words_of(chance), strict=True))) for _ in range(400)]
    tagger = train(sentences[40:], sentences[:40], Training(epochs=3, hidden=64), columns="upos").tagger
    tagger.save(folder / "model")
    source, target = folder / "large.conllu", folder / "tagged.conllu"
    count = generate(source, megabytes * 10**6, seed)
    sizes, seconds = tag(folder / "model", source, target)
    if compare(source, target) != count:
        raise SystemExit("some words have no tag")
    settled = sizes[max(1, round(SETTLING * len(sizes))) :] or sizes
    middle = len(settled) // 2
    return {
        "file_mb": round(source.stat().st_size / 1e6, 1),
        "words": count,
        "seconds": round(seconds, 1),
        "words_per_second": round(count / seconds),
        "peak_mib": round(max(sizes) / 2**20, 1),
        "first_half_median_mib": round(statistics.median(settled[: middle or 1]) / 2**20, 1),
        "second_half_median_mib": round(statistics.median(settled[middle:]) / 2**20, 1),
        "resident_mib": [round(size / 2**20, 1) for size in sizes[:: max(1, len(sizes) // 40)]],
        "tag_accuracy_on_dev": tagger.metadata["dev_accuracy"],
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the file in MB (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "streaming_cpu.json")
    args = parsed(parser)
    with tempfile.TemporaryDirectory() as folder, Progress() as progress, progress.part(f"{args.megabytes} MB"):
        found = measure(args.megabytes, args.seed, Path(folder))
    settings = {"megabytes": args.megabytes, "threads": torch.get_num_threads()}
    write_record(args.out, command=command("streaming.py"), settings=settings, results=found, seed=args.seed)
    print(
        f"{found['file_mb']} MB, {found['words']:,} words in {found['seconds']} s; it held {found['peak_mib']} MiB at "
        f"most, {found['first_half_median_mib']} in the first half and {found['second_half_median_mib']} in the second"
    )


if __name__ == "__main__":
    main()
