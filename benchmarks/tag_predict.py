"""Prediction of a tagger on a CPU beside a plain loop over the same encoder: one sentence at a time, and in batches.

    python benchmarks/tag_predict.py --data DIR                 # 12, 50 and 644 tags, the committed results
    python benchmarks/tag_predict.py --quick                    # seconds, on generated sentences: does it run?

A BiLSTM tagger with default sizes and `LinearCoreChain` is trained briefly for each number of tags. All contenders compute
the same features and hidden states, in the same batches, and return names of tags:

    plain loop     the encoder, the projection, argmax, and the names of the tags; no chain, no checks
    tag            `Tagger.tag` or `Tagger.tag_all` as they are: exact search for up to 600 tags, a beam of 16 above
    exact          `Tagger.predict` with beam=0
    beam 16        `Tagger.predict` with beam=16
    confidences    `Tagger.predict` with confidences=True
    5 best         `Tagger.predict` with kbest=5

First, one sentence at a time and batches must give the same tags for all but one in a thousand words, which rounding may
change. Times are medians of interleaved rounds. The target is a ratio of at most 1.2 for `tag` with up to 50 tags.

English EWT has 17 UPOS tags, of which the rarest are one here (12 tags), 49 XPOS tags (padded to 50 with tags that never
occur) and 395 combinations of UPOS, XPOS and features (padded to 644).
"""

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from _harness import Contender, command, data_folder, interleaved_medians, parsed
from _tagger import UsageError
from linearcore.runtime import write_record
from linearcore.tagging import TaggedSentence, Tagger, Training, train
from linearcore.tagging.readers import read_sentences

RESULTS = Path(__file__).parent / "results"
#: Columns of EWT for each number of tags.
COLUMNS = {12: "upos", 50: "xpos", 644: "upos+xpos+feats"}
#: Batch size in words, and the number of sentences that are tagged one at a time.
BATCH_TOKENS, SINGLES = 4096, 50
#: Largest fraction of words whose tag may differ between batches and single sentences.
MAX_DIFFERENT = 1e-3
#: Largest ratio to the plain loop, for at most this number of tags.
TARGET_RATIO, TARGET_TAGS = 1.2, 50
PLAIN, OURS = "plain loop", "tag"

Words = list[str]


def read(data: Path | None, part: str, tags: int, limit: int) -> list[TaggedSentence]:
    """Reads sentences of EWT with at most `tags` different tags."""
    path = (data or Path()) / "tagging" / f"en_ewt-{part}.conllu.xz"
    if data is None or not path.is_file():
        raise UsageError(f"this needs {path.name}, which is not in {path.parent}; pass --data DIR, or --quick")
    sentences = [(item.words, item.tags or []) for item in read_sentences(path, COLUMNS[tags])][:limit]
    if tags != min(COLUMNS):
        return sentences
    return [(words, [tag if tag in _FREQUENT else "OTHER" for tag in own]) for words, own in sentences]


#: The eleven most frequent UPOS tags of the training sentences.
_FREQUENT = {"NOUN", "PUNCT", "VERB", "PRON", "ADP", "DET", "ADJ", "AUX", "PROPN", "ADV", "CCONJ"}


def generated(tags: int, count: int, seed: int) -> list[TaggedSentence]:
    """Generates sentences whose words determine their tags, for `--quick`."""
    chance = random.Random(seed)
    numbers = [[chance.randrange(tags) for _ in range(chance.randint(2, 30))] for _ in range(count)]
    return [([f"word{number}" for number in row], [f"T{number}" for number in row]) for row in numbers]


@torch.no_grad()
def plain_loop(tagger: Tagger, sentences: Sequence[Words], batch_tokens: int) -> list[list[str]]:
    """Tags sentences without a chain: sorted by length, in batches, with the best tag of each word."""
    encoder, projection, names = tagger.model.encoder, tagger.model.projection, tagger.vocabulary.tags
    groups: list[list[int]] = []
    for index in sorted(range(len(sentences)), key=lambda index: len(sentences[index])):
        if not groups or (len(groups[-1]) + 1) * len(sentences[index]) > batch_tokens:
            groups.append([])
        groups[-1].append(index)
    tags: list[list[str]] = [[]] * len(sentences)
    for group in groups:
        lengths = [len(sentences[index]) for index in group]
        inputs = encoder.collate([encoder.featurize(sentences[index]) for index in group], max(lengths))
        mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(-1)
        rows = projection(encoder(mask, **inputs)).argmax(-1).tolist()
        for index, row, length in zip(group, rows, lengths, strict=True):
            tags[index] = [names[tag] for tag in row[:length]]
    return tags


def contenders(tagger: Tagger, sentences: Sequence[Words], is_single: bool) -> dict[str, Contender]:
    """Makes functions that tag all sentences, each with a call of its own if `is_single`."""

    def predict(**options: Any) -> Callable[[], object]:
        def step() -> object:
            if is_single:
                return [list(tagger.predict([words], **options)) for words in sentences]
            return list(tagger.predict(sentences, batch_tokens=BATCH_TOKENS, **options))

        return step

    ways: dict[str, Callable[[], object]] = {
        PLAIN: lambda: plain_loop(tagger, sentences, BATCH_TOKENS),
        OURS: lambda: list(tagger.tag_all(sentences, BATCH_TOKENS)),
        "exact": predict(beam=0),
        "beam 16": predict(beam=16),
        "confidences": predict(confidences=True),
        "5 best": predict(kbest=5),
    }
    if is_single:
        ways[PLAIN] = lambda: [plain_loop(tagger, [words], BATCH_TOKENS) for words in sentences]
        ways[OURS] = lambda: [tagger.tag(words) for words in sentences]
    return {name: Contender(step) for name, step in ways.items()}


def check_equal(tagger: Tagger, sentences: Sequence[Words]) -> float:
    """Returns the fraction of words whose tag depends on the batch; exits if it is too large."""
    pairs = zip(tagger.tag_all(sentences, BATCH_TOKENS), (tagger.tag(words) for words in sentences), strict=True)
    differ = [one != other for batch, single in pairs for one, other in zip(batch, single, strict=True)]
    fraction = sum(differ) / max(1, len(differ))
    if fraction > MAX_DIFFERENT:
        raise UsageError(f"{fraction:.2%} of the tags differ between batches and single sentences; find out why")
    return fraction


def measure(tags: int, args: argparse.Namespace) -> dict[str, Any]:
    """Trains a tagger with this number of tags and measures all contenders."""
    if args.quick:
        parts = [generated(tags, count, seed) for seed, count in enumerate((200, 20, 60))]
    else:
        limits = {"train": args.sentences, "dev": 200, "test": args.test_sentences}
        parts = [read(args.data, part, tags, limit) for part, limit in limits.items()]
    settings = Training(epochs=args.epochs, inflate=tags, **({"hidden": 8, "embedding": 8} if args.quick else {}))
    tagger = train(parts[0], parts[1], settings, columns=COLUMNS[tags]).tagger
    sentences = [list(words) for words, _ in parts[2]]
    result: dict[str, Any] = {"tags": tags, "different": check_equal(tagger, sentences)}
    for name, own in (("one sentence", sentences[:SINGLES]), ("batches", sentences)):
        words = sum(map(len, own))
        times = interleaved_medians(
            contenders(tagger, own, name == "one sentence"), "cpu", seconds=args.seconds, least=args.least
        )
        result[name] = [
            {
                "method": method,
                "ms_per_sentence": round(milliseconds / len(own), 4),
                "words_per_second": round(words / milliseconds * 1e3),
                "times_plain": round(milliseconds / times[PLAIN], 3),
            }
            for method, milliseconds in times.items()
        ]
    return result


def show(result: dict[str, Any]) -> None:
    """Prints the tables of one number of tags."""
    for name in ("one sentence", "batches"):
        table = Table(title=f"{result['tags']} tags, {name}")
        table.add_column("method")
        for head in ("ms/sentence", "words/s", "× plain loop"):
            table.add_column(head, justify="right")
        for row in result[name]:
            table.add_row(
                row["method"],
                f"{row['ms_per_sentence']:.3f}",
                f"{row['words_per_second']:,}",
                f"{row['times_plain']:.2f}",
            )
        Console(width=None if sys.stdout.isatty() else 100).print(table)
        ratio = next(row["times_plain"] for row in result[name] if row["method"] == OURS)
        if result["tags"] <= TARGET_TAGS:
            print(f"{ratio:.2f} times the plain loop ({'at most' if ratio <= TARGET_RATIO else 'above'} {TARGET_RATIO}).")


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with tagging/ in it (default: variable LINEARCORE_DATA)")
    parser.add_argument("--tags", default=",".join(map(str, COLUMNS)), help="numbers of tags (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=4000, help="training sentences (default: %(default)s)")
    parser.add_argument("--test-sentences", type=int, default=1000, help="tagged sentences (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=3, help="training epochs (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds per table (default: %(default)s)")
    parser.add_argument("--least", type=int, default=7, help="rounds per table, at least (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="toy sizes on generated sentences")
    parser.add_argument("--out", type=Path, help="JSON (default: benchmarks/results/tag_predict_cpu.json)")
    args = parsed(parser)
    args.data, args.out = data_folder(args.data), args.out or RESULTS / "tag_predict_cpu.json"
    if args.quick:
        args.epochs, args.seconds, args.least = 1, 0.05, 1
    return args


def main() -> None:
    """Runs the benchmark, prints the tables and writes the result file."""
    args = arguments()
    results = []
    try:
        sizes = [int(size) if size.strip().isdigit() else 0 for size in args.tags.split(",")]
        if not set(sizes) <= set(COLUMNS):
            raise UsageError(f"--tags takes {', '.join(map(str, COLUMNS))}, got {args.tags!r}; separate them by commas")
        for size in sizes:
            results.append(measure(size, args))
            show(results[-1])
    except UsageError as error:
        print(f"tag_predict.py: {error}", file=sys.stderr)
        sys.exit(2)
    kept = ("tags", "sentences", "test_sentences", "epochs", "seconds", "least", "quick")
    settings = {name: getattr(args, name) for name in kept} | {"threads": torch.get_num_threads()}
    write_record(args.out, command=command("tag_predict.py"), settings=settings, results={"sizes": results}, seed=0)
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
