"""Precision, recall and F1, and entities in BIO, IOB2 and BIOES tags, found by seqeval."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from linearcore._extras import require

_OUTSIDE = "O"
# The prefixes that seqeval knows. A type may hold anything.
_ENTITY_TAG = re.compile("[BIES]-.+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rates:
    """How well one kind of thing is found, in percent.

    Attributes:
        precision: of what was predicted, how much is right.
        recall: of what is there, how much was found.
        f1: their harmonic mean.
        support: how much is there.
    """

    precision: float
    recall: float
    f1: float
    support: int

    @classmethod
    def of(cls, both: int, predicted: int, gold: int) -> "Rates":
        """From counts: right predictions, predictions, and what is there. 0/0 is 0.

        Example:
            >>> Rates.of(both=1, predicted=4, gold=2)
            Rates(precision=25.0, recall=50.0, f1=33.33, support=2)
        """
        total = predicted + gold
        return cls(
            precision=100 * both / predicted if predicted else 0.0,
            recall=100 * both / gold if gold else 0.0,
            # 2PR/(P+R) with the counts put in: no rounding, and 0/0 only where there is nothing at all.
            f1=200 * both / total if total else 0.0,
            support=gold,
        )


class Entities:
    """Counts entities sentence by sentence, as long as all gold tags are O or B-, I-, E-, S- with a type.

    seqeval's scores want all tags of a file in lists; its function that finds the entities of one sentence does not, and
    counting what it finds gives the same numbers in memory that grows with the types only. seqeval is imported with the
    first sentence that has an entity. A predicted tag of another kind counts as O.

    Example:
        >>> entities = Entities()
        >>> entities.add(["B-PER", "I-PER", "O"], ["B-PER", "I-PER", "B-LOC"])
        >>> entities.overall()
        Rates(precision=50.0, recall=100.0, f1=66.67, support=1)

    Time O(words) for `add`.
    """

    def __init__(self) -> None:
        self._is_possible, self._has_gold = True, False
        self._tags: dict[str, bool] = {}  # What was found out about each tag.
        self._both: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._gold: Counter[str] = Counter()

    @property
    def is_used(self) -> bool:
        """Whether the gold tags are of entities: all in the scheme, and not only O."""
        return self._is_possible and self._has_gold

    def add(self, gold: Sequence[str], predicted: Sequence[str]) -> None:
        """Counts a sentence.

        Raises:
            MissingExtraError: if it has an entity and seqeval is not installed.
        """
        if not self._is_possible or not all(map(self._is_in_scheme, gold)):
            self._is_possible = False  # For good: one tag of another kind says that hyphens mean something else here.
            return
        guesses = [tag if self._is_in_scheme(tag) else _OUTSIDE for tag in predicted]
        found, there = _entities(guesses), _entities(gold)
        self._has_gold = self._has_gold or bool(there)
        self._gold.update(kind for kind, _, _ in there)
        self._predicted.update(kind for kind, _, _ in found)
        self._both.update(kind for kind, _, _ in there & found)

    def overall(self) -> Rates:
        """All types together (micro average)."""
        return Rates.of(self._both.total(), self._predicted.total(), self._gold.total())

    def types(self) -> dict[str, Rates]:
        """Each type, gold or predicted, the most frequent first, then by name."""
        ordered = sorted(self._gold.keys() | self._predicted.keys(), key=lambda kind: (-self._gold[kind], kind))
        return {kind: Rates.of(self._both[kind], self._predicted[kind], self._gold[kind]) for kind in ordered}

    def to_json(self) -> dict[str, Any]:
        """The rates of all and of each type."""
        return asdict(self.overall()) | {"types": {kind: asdict(rates) for kind, rates in self.types().items()}}

    def _is_in_scheme(self, tag: str) -> bool:
        known = self._tags.get(tag)
        if known is None:
            known = self._tags[tag] = tag == _OUTSIDE or _ENTITY_TAG.fullmatch(tag) is not None
        return known


def _entities(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Type, first and last word of each entity."""
    if all(tag == _OUTSIDE for tag in tags):
        return set()
    require("seqeval", extra="tagging")
    from seqeval.metrics.sequence_labeling import get_entities

    return set(get_entities(list(tags)))
