"""Feature strings of `ngram`: for each word of the Turkish treebank its part of speech and its features, in their order."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.structures import Cost, EditDistance
from linearcore.tagging.readers import Sentence, read_sentences
from linearcore_paper.experiments.ngram.chunks import PARTS, Sentences, Task, feature_tables

FILES = ("tr_web.conllu.xz", "tr_wiki.conllu.xz")
#: Symbols of a string: the empty one, which fills up short strings and is no part of them, and one that training has not.
EMPTY, UNSEEN = "–", "?"
#: Dev and test words at most, drawn with a fixed seed.
SCORED_WORDS = {"dev": 1000, "test": 2000}

#: The words of a sentence with their strings, "NOUN|PersonNumber=A3sg|Case=Loc".
Words = list[tuple[str, str]]


@dataclass(frozen=True)
class StringEdit(Cost):
    """Edit distance of two strings of symbols, divided by the length of the longer one. Symbol 0 is empty and not counted.

    Example:
        >>> StringEdit().between(torch.tensor([1, 5, 2, 3]), torch.tensor([1, 2, 3, 0])).item()  # One symbol too many.
        0.25
    """

    name: ClassVar[str] = "string-edit"

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Returns ℓ(prediction, target) (…), as `Cost.between` does."""
        ours, gold = (tags != 0 if mask is None else (tags != 0) & mask for tags in (prediction, target))
        return EditDistance().between(prediction, target, gold, prediction_mask=ours, dtype=dtype)


@lru_cache(maxsize=1)
def treebank_hash(folder: Path) -> str:
    """Returns the SHA-256 of the Turkish treebank."""
    return sha256(b"".join((folder / "tagging" / name).read_bytes() for name in FILES)).hexdigest()


@lru_cache(maxsize=1)
def treebank_task(folder: Path) -> Task:
    """Reads the Turkish treebank. Sentences whose number ends in 9 are dev, in 0 test, all others train."""
    paths = [folder / "tagging" / name for name in FILES]
    return string_task([[_words(sentence) for sentence in read_sentences(path, tag="upos+feats")] for path in paths])


def _words(sentence: Sentence) -> Words:
    strings = [tag.replace(" ", "|").removesuffix("|_") for tag in sentence.tags or []]
    return list(zip(sentence.words, strings, strict=True))


def string_task(files: Iterable[Sequence[Words]]) -> Task:
    """Returns words in context with their strings, as sequences of symbols that all have the length of the longest one."""
    words: dict[str, list[tuple[tuple[str, ...], list[str]]]] = {part: [] for part in PARTS}
    for sentences in files:
        for number, sentence in enumerate(sentences, 1):
            words[{9: "dev", 0: "test"}.get(number % 10, "train")] += zip(
                _features([word for word, _ in sentence]), [string.split("|") for _, string in sentence], strict=True
            )
    tables = feature_tables([features for features, _ in words["train"]])
    names = (EMPTY, UNSEEN, *dict.fromkeys(symbol for _, string in words["train"] for symbol in string))
    index, length = {name: i for i, name in enumerate(names)}, max(len(string) for _, string in words["train"])
    parts: dict[str, Sentences] = {}
    for part, pairs in words.items():
        kept = random.Random(0).sample(pairs, min(SCORED_WORDS.get(part, len(pairs)), len(pairs)))
        inputs = [[table.get(feature, 1) for table, feature in zip(tables, row, strict=True)] for row, _ in kept]
        tags = [[index.get(symbol, 1) for symbol in string[:length]] + [0] * (length - len(string)) for _, string in kept]
        parts[part] = Sentences(torch.tensor(inputs).unsqueeze(1), torch.tensor(tags))
    return Task(names, parts, tuple(len(table) + 2 for table in tables), length)


def _features(sentence: list[str]) -> list[tuple[str, ...]]:
    """Returns for each word itself, its last letters and its first letter's case, and the ends of its neighbours."""
    lower = ["", *(word.lower() for word in sentence), ""]
    return [
        (word, word[-1:], word[-2:], word[-3:], word[-5:], str(original[:1].isupper()), before[-3:], after[-3:])
        for original, before, word, after in zip(sentence, lower, lower[1:], lower[2:], strict=False)
    ]


def generated_strings(seed: int, sentences: int) -> Task:
    """Generates sentences of five words: a stem and some endings in order, of which each is a letter and a symbol."""
    draw = random.Random(seed)

    def word() -> tuple[str, str]:
        kind = draw.choice(("NOUN", "VERB"))
        endings = [letter for letter in ("lkdm" if kind == "NOUN" else "tskn") if draw.random() < 0.5]
        stem = "".join(draw.choice("aeiou") for _ in range(2)) + ("r" if kind == "NOUN" else "z")
        return stem + "".join(endings), "|".join([kind, *(f"Ending={letter}" for letter in endings)])

    return string_task([[[word() for _ in range(5)] for _ in range(sentences)]])
