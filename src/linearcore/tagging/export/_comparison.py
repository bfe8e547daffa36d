"""Compares an exported tagger with the tagger that it was made from: tags and time."""

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linearcore.tagging.export._exported import ExportedTagger

if TYPE_CHECKING:
    from linearcore.tagging._tagger import Tagger

#: Lengths of the sentences whose tags are compared.
_LENGTHS = (1, 2, 7, 20, 33)
_TIMED_LENGTH, _REPETITIONS = 20, 20
_UNKNOWN_WORD = "Unseen-3a"


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`.

    Attributes:
        words: number of compared words.
        differing: number of words with another tag.
        seconds, tagger_seconds: median time for one sentence of the exported tagger and of `Tagger.tag`, decoding included.
        timed_words: number of words of this sentence.
    """

    words: int
    differing: int
    seconds: float
    tagger_seconds: float
    timed_words: int = _TIMED_LENGTH


def compare(tagger: "Tagger", exported: ExportedTagger) -> Comparison:
    """Tags sentences of random words of the vocabulary, and an unknown one, with both taggers."""
    generator = random.Random(0)
    choices = [*tagger.vocabulary.words[:1000], _UNKNOWN_WORD]
    sentences = [[generator.choice(choices) for _ in range(length)] for length in _LENGTHS]
    pairs = zip(tagger.tag_all(sentences), exported.tag_all(sentences), strict=True)
    differing = sum(a != b for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True))
    words = next(sentence for sentence in sentences if len(sentence) == _TIMED_LENGTH)
    return Comparison(
        sum(_LENGTHS), differing, _median_time(lambda: exported.tag(words)), _median_time(lambda: tagger.tag(words))
    )


def _median_time(call: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
