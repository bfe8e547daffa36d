"""Evaluation of predicted tags against gold tags."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from linearcore._checks import complaint
from linearcore.tagging._entities import Entities, PrecisionRecall


@dataclass(frozen=True, slots=True)
class CorrectCount:
    """Number of correct items and number of items."""

    correct: int
    count: int

    @property
    def accuracy(self) -> float | None:
        """Accuracy in percent; None if there are no items."""
        return 100 * self.correct / self.count if self.count else None

    def to_json(self) -> dict[str, int | float | None]:
        """Returns count and accuracy as JSON values."""
        return {"count": self.count, "accuracy": self.accuracy}


@dataclass(frozen=True, slots=True)
class Confusion:
    """Number of words with tag `gold` for which `predicted` was predicted."""

    gold: str
    predicted: str
    count: int


class Evaluation:
    """Compares predicted with gold tags, sentence by sentence; memory grows only with the number of distinct tags.

    A gold tag that does not occur in the training data always counts as an error; `unseen_tags` counts such words. All
    scores are in percent. A score with denominator 0 is 0. If all gold tags are O, B-…, I-…, E-… or S-…, entity scores are
    computed as well, with seqeval in its default mode (the same as conlleval), which needs the extra "tagging".

    Args:
        known_words: words of the training data; None counts all words as known.
        known_tags: tags of the training data; None counts all tags as seen.

    Example:
        >>> evaluation = Evaluation(known_words={"a", "dog"}, known_tags={"DET", "NOUN", "VERB"})
        >>> evaluation.add(["a", "dog", "yelps"], ["DET", "NOUN", "VERB"], ["DET", "NOUN", "NOUN"])
        >>> evaluation.add(["a", "cat"], ["DET", "X"], ["DET", "NOUN"])
        >>> evaluation.accuracy
        60.0
        >>> evaluation.known, evaluation.unknown
        (CorrectCount(correct=3, count=3), CorrectCount(correct=0, count=2))
        >>> evaluation.unseen_tags, evaluation.tags()["NOUN"]
        ({'X': 1}, PrecisionRecall(precision=33.33, recall=100.0, f1=50.0, support=1))
        >>> evaluation.confusions(1)
        [Confusion(gold='VERB', predicted='NOUN', count=1)]

    Time O(words) for `add`; memory O(distinct pairs of gold and predicted tag).
    """

    def __init__(self, known_words: Container[str] | None = None, known_tags: Container[str] | None = None) -> None:
        self._known_words, self._known_tags = known_words, known_tags
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._known = self._known_correct = 0
        self._sentences = self._sentences_correct = 0
        self._tokens = self._correct = 0
        self._entities = Entities()

    def add(self, words: Sequence[str], gold: Sequence[str], predicted: Sequence[str]) -> None:
        """Adds one sentence.

        Raises:
            ValueError: if the numbers of words and tags differ, or there are no words.
            MissingExtraError: if the tags are entity tags and seqeval is not installed.
        """
        for name, tags in (("gold", gold), ("predicted", predicted)):
            if len(tags) != len(words):
                raise ValueError(
                    complaint(name, f"be as many as the {len(words)} words", len(tags), "pass one tag per word")
                )
        if not words:
            raise ValueError(complaint("words", "be at least one", 0, "omit empty sentences"))
        self._entities.add(gold, predicted)  # First, so nothing is counted if it raises.
        is_correct = [gold_tag == tag for gold_tag, tag in zip(gold, predicted, strict=True)]
        num_correct = sum(is_correct)
        self._pairs.update(zip(gold, predicted, strict=True))
        self._tokens += len(words)
        self._correct += num_correct
        self._sentences += 1
        self._sentences_correct += num_correct == len(words)
        known = self._known_words
        if known is not None:
            is_correct = [correct for word, correct in zip(words, is_correct, strict=True) if word in known]
        self._known += len(is_correct)
        self._known_correct += sum(is_correct)

    @property
    def accuracy(self) -> float:
        """Accuracy over all words, in percent.

        Raises:
            ValueError: if there are no words.
        """
        accuracy = self.words.accuracy
        if accuracy is None:
            raise ValueError(complaint("evaluation", "have a sentence", "none", "add one first"))
        return accuracy

    @property
    def words(self) -> CorrectCount:
        """All words."""
        return CorrectCount(self._correct, self._tokens)

    @property
    def known(self) -> CorrectCount:
        """Words that occur in the training data."""
        return CorrectCount(self._known_correct, self._known)

    @property
    def unknown(self) -> CorrectCount:
        """Words that do not occur in the training data."""
        return CorrectCount(self._correct - self._known_correct, self._tokens - self._known)

    @property
    def sentences(self) -> CorrectCount:
        """Sentences; a sentence is correct if all its tags are."""
        return CorrectCount(self._sentences_correct, self._sentences)

    @property
    def unseen_tags(self) -> dict[str, int]:
        """Gold tags that do not occur in the training data and their counts, the most frequent first."""
        if self._known_tags is None:
            return {}
        return {tag: scores.support for tag, scores in self.tags().items() if scores.support and tag not in self._known_tags}

    @property
    def entities(self) -> Entities | None:
        """The entity counts, or None if the gold tags are not entity tags."""
        return self._entities if self._entities.has_entities else None

    def tags(self) -> dict[str, PrecisionRecall]:
        """Returns the scores of each gold or predicted tag, the most frequent first, then by name."""
        gold, predicted, correct = Counter[str](), Counter[str](), Counter[str]()
        for (gold_tag, predicted_tag), count in self._pairs.items():
            gold[gold_tag] += count
            predicted[predicted_tag] += count
            if gold_tag == predicted_tag:
                correct[gold_tag] += count
        ordered = sorted(gold.keys() | predicted.keys(), key=lambda tag: (-gold[tag], tag))
        return {tag: PrecisionRecall.of(correct[tag], predicted[tag], gold[tag]) for tag in ordered}

    def confusions(self, limit: int | None = None) -> list[Confusion]:
        """Returns the `limit` most frequent confusions, the most frequent first, then by name; None returns all."""
        confusions = [Confusion(gold, tag, count) for (gold, tag), count in self._pairs.items() if gold != tag]
        return sorted(confusions, key=lambda pair: (-pair.count, pair.gold, pair.predicted))[:limit]

    def to_json(self) -> dict[str, Any]:
        """Returns the evaluation as JSON values; accuracies in percent, None if there is nothing to count.

        Raises:
            ValueError: if there are no words.
        """
        return {
            "accuracy": self.accuracy,
            "tokens": self._tokens,
            "sentences": self.sentences.to_json(),
            "known": self.known.to_json(),
            "unknown": self.unknown.to_json(),
            "unseen_tags": self.unseen_tags,
            "tags": {tag: asdict(scores) for tag, scores in self.tags().items()},
            "confusions": [asdict(pair) for pair in self.confusions()],
            "entities": None if self.entities is None else self.entities.to_json(),
        }
