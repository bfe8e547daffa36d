"""Datasets of the tagging benchmark: training, validation and test sentences."""

import random
from dataclasses import dataclass, field
from pathlib import Path

from _tagger import UsageError
from linearcore.tagging import TaggedSentence, split_dev
from linearcore.tagging.readers import read_sentences
from linearcore_paper.experiments.tagging.text import every_tenth

Parts = dict[str, list[TaggedSentence]]


def _by_part(prefix: str) -> dict[str, list[str]]:
    return {part: [f"{prefix}-{part}.conllu.xz"] for part in ("train", "dev", "test")}


@dataclass(frozen=True)
class TaggingSet:
    """A dataset.

    Attributes:
        tag: the tag columns.
        files: file names of train, dev and test; the files of "all" are split with `every_tenth`.
        sentences: use only this number of training sentences, and every tenth of them as validation sentence, as
            `linearcore tag train` does without a validation file; None uses all, and the validation file.
        draw: seed of a random choice of these sentences; None takes the first ones.
        check_ids: whether the word numbers must be consecutive.
    """

    tag: str
    files: dict[str, list[str]] = field(default_factory=lambda: _by_part("en_ewt"))
    sentences: int | None = None
    draw: int | None = None
    check_ids: bool = True


SETS = {
    "ewt400": TaggingSet("upos", sentences=400),
    "ewt400_draw": TaggingSet("upos", sentences=400, draw=1),
    "ewt_upos": TaggingSet("upos"),
    "ewt": TaggingSet("xpos"),
    "ewt_feats": TaggingSet("upos+feats"),
    "turkish": TaggingSet("upos+feats", {"all": ["tr_web.conllu.xz", "tr_wiki.conllu.xz"]}),
    # LASLA has duplicate word numbers.
    "latin": TaggingSet("upos+feats", _by_part("la_lasla"), check_ids=False),
}


def read(name: str, data: Path, limit_words: int | None = None) -> Parts:
    """Reads the sentences of a dataset: train, dev and test, and as "labelled" all that a method may train on.

    Args:
        name: one of `SETS`.
        data: folder with the datasets.
        limit_words: use the first training sentences that together have at most this number of words; None uses all.
    """
    chosen = SETS[name]
    parts: Parts = {"train": [], "dev": [], "test": []}
    for part, names in chosen.files.items():
        for file in names:
            path = data / "tagging" / file
            if not path.is_file():
                raise UsageError(f"{name} needs {file}, which is not in {path.parent}; pass --data DIR")
            tagged = [(item.words, item.tags or []) for item in read_sentences(path, chosen.tag, check_ids=chosen.check_ids)]
            for own, some in (every_tenth(tagged) if part == "all" else {part: tagged}).items():
                parts[own] += some
    if limit_words is not None:
        parts["train"] = _prefix(parts["train"], limit_words)
    parts["labelled"] = parts["train"]
    if chosen.sentences is not None:
        parts["labelled"] = _some(parts["train"], chosen.sentences, chosen.draw)
        parts["train"], parts["dev"] = split_dev(parts["labelled"])
    return parts


def _prefix(sentences: list[TaggedSentence], limit_words: int) -> list[TaggedSentence]:
    """Returns the first sentences that together have at most `limit_words` words."""
    total = 0
    for number, (words, _) in enumerate(sentences):
        total += len(words)
        if total > limit_words:
            return sentences[:number]
    return sentences


def _some(sentences: list[TaggedSentence], number: int, draw: int | None) -> list[TaggedSentence]:
    """Returns the first sentences, or a random choice in the order of the file."""
    if draw is None:
        return sentences[:number]
    return [sentences[index] for index in sorted(random.Random(draw).sample(range(len(sentences)), number))]
