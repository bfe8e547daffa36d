"""Precision, recall and F1 of tags, and of entities in BIO, IOB2 and BIOES tags (with seqeval)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from linearcore._extras import require

_OUTSIDE = "O"
# The prefixes of seqeval. An entity type may contain any character.
_ENTITY_TAG = re.compile("[BIES]-.+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PrecisionRecall:
    """Precision, recall and F1 of one class, in percent.

    Attributes:
        precision: correct predictions divided by predictions.
        recall: correct predictions divided by gold occurrences.
        f1: harmonic mean of precision and recall.
        support: number of gold occurrences.
    """

    precision: float
    recall: float
    f1: float
    support: int

    @classmethod
    def of(cls, correct: int, predicted: int, gold: int) -> "PrecisionRecall":
        """Computes the scores from counts; 0/0 is 0.

        Example:
            >>> PrecisionRecall.of(correct=1, predicted=4, gold=2)
            PrecisionRecall(precision=25.0, recall=50.0, f1=33.33, support=2)
        """
        total = predicted + gold
        return cls(
            precision=100 * correct / predicted if predicted else 0.0,
            recall=100 * correct / gold if gold else 0.0,
            # 2PR/(P+R) in terms of counts, which is 0/0 only if there are no predictions and no gold occurrences.
            f1=200 * correct / total if total else 0.0,
            support=gold,
        )


class Entities:
    """Counts entities, sentence by sentence, if all gold tags are O or B-, I-, E-, S- followed by a type.

    The counts give the same scores as seqeval, but memory grows only with the number of types, because seqeval's scores
    need all tags in lists. seqeval is imported at the first sentence with an entity. A predicted tag outside the scheme
    counts as O.

    Example:
        >>> entities = Entities()
        >>> entities.add(["B-PER", "I-PER", "O"], ["B-PER", "I-PER", "B-LOC"])
        >>> entities.overall()
        PrecisionRecall(precision=50.0, recall=100.0, f1=66.67, support=1)

    Time O(words) for `add`.
    """

    def __init__(self) -> None:
        self._is_entity_data, self._has_gold = True, False
        self._in_scheme: dict[str, bool] = {}  # Cache of `is_entity_tag`.
        self._correct: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._gold: Counter[str] = Counter()

    @property
    def has_entities(self) -> bool:
        """Whether all gold tags are in the scheme and at least one is not O."""
        return self._is_entity_data and self._has_gold

    def add(self, gold: Sequence[str], predicted: Sequence[str]) -> None:
        """Adds the counts of one sentence.

        Raises:
            MissingExtraError: if the sentence has an entity and seqeval is not installed.
        """
        if not self._is_entity_data or not all(map(self._is_in_scheme, gold)):
            self._is_entity_data = False  # One tag outside the scheme: these are not entity tags.
            return
        predicted_entities = entities_of([tag if self._is_in_scheme(tag) else _OUTSIDE for tag in predicted])
        gold_entities = entities_of(gold)
        self._has_gold = self._has_gold or bool(gold_entities)
        self._gold.update(kind for kind, _, _ in gold_entities)
        self._predicted.update(kind for kind, _, _ in predicted_entities)
        self._correct.update(kind for kind, _, _ in gold_entities & predicted_entities)

    def overall(self) -> PrecisionRecall:
        """Returns the scores over all types (micro average)."""
        return PrecisionRecall.of(self._correct.total(), self._predicted.total(), self._gold.total())

    def types(self) -> dict[str, PrecisionRecall]:
        """Returns the scores of each gold or predicted type, the most frequent first, then by name."""
        ordered = sorted(self._gold.keys() | self._predicted.keys(), key=lambda kind: (-self._gold[kind], kind))
        return {kind: PrecisionRecall.of(self._correct[kind], self._predicted[kind], self._gold[kind]) for kind in ordered}

    def to_json(self) -> dict[str, Any]:
        """Returns the overall scores and the scores of each type as JSON values."""
        return asdict(self.overall()) | {"types": {kind: asdict(scores) for kind, scores in self.types().items()}}

    def _is_in_scheme(self, tag: str) -> bool:
        in_scheme = self._in_scheme.get(tag)
        if in_scheme is None:
            in_scheme = self._in_scheme[tag] = is_entity_tag(tag)
        return in_scheme


def is_entity_tag(tag: str) -> bool:
    """Whether a tag is O, or B-, I-, E- or S- followed by a type."""
    return tag == _OUTSIDE or _ENTITY_TAG.fullmatch(tag) is not None


def entities_of(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Returns type, first and last word of each entity."""
    if all(tag == _OUTSIDE for tag in tags):
        return set()
    require("seqeval", extra="tagging")
    from seqeval.metrics.sequence_labeling import get_entities

    return set(get_entities(list(tags)))
