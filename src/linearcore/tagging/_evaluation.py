"""Evaluation of predicted tags against gold tags."""

from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from linearcore._checks import complaint
from linearcore.tagging._costs import MeanCost
from linearcore.tagging._entities import Entities, PrecisionRecall
from linearcore.tagging._feature_scores import FeatureScores
from linearcore.tagging._scored_columns import ScoredColumns


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

    `unseen_tags` counts words whose gold tag does not occur in the training data. All scores are in percent. A score with
    denominator 0 is 0. If all gold tags are O, B-…, I-…, E-… or S-…, entity scores are computed as well, with seqeval in its
    default mode (the same as conlleval), which needs the extra "tagging". Tags of several columns, such as `upos+feats`,
    are also scored by column, and FEATS by feature; the order of features does not matter.

    Args:
        known_words: words of the training data; None counts all words as known.
        known_tags: tags of the training data, in the columns of the predictions; None counts all tags as seen.
        columns: columns of the gold tags, in the syntax of `--tag`.
        predicted_columns: columns of the predicted tags, among which are those of `columns`; None if they are the same.
        cost: name of a cost of `linearcore.structures` whose mean over sentences is computed as well, such as "edit".

    Raises:
        ValueError: if one of `columns` is not predicted, or the cost is not defined for the tags.

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

    def __init__(
        self,
        known_words: Container[str] | None = None,
        known_tags: Collection[str] | None = None,
        *,
        columns: str = "tag",
        predicted_columns: str | None = None,
        cost: str | None = None,
    ) -> None:
        tags = list(known_tags or ())
        self._columns = ScoredColumns(columns, predicted_columns, tags)
        self._known_words = known_words
        self._known_tags = None if known_tags is None else set(self._columns.from_predicted(tags))
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._known = self._known_correct = 0
        self._sentences = self._sentences_correct = 0
        self._tokens = self._correct = 0
        self._entities = Entities()
        self._mean_cost = None if cost is None else MeanCost(cost, self._columns.from_predicted(tags))

    def add(self, words: Sequence[str], gold: Sequence[str], predicted: Sequence[str]) -> None:
        """Adds one sentence.

        Raises:
            ValueError: if the numbers of words and tags differ, there are no words, or a tag does not have its columns.
            MissingExtraError: if the tags are entity tags and seqeval is not installed.
        """
        for name, tags in (("gold", gold), ("predicted", predicted)):
            if len(tags) != len(words):
                raise ValueError(
                    complaint(name, f"be as many as the {len(words)} words", len(tags), "pass one tag per word")
                )
        if not words:
            raise ValueError(complaint("words", "be at least one", 0, "omit empty sentences"))
        gold, predicted = self._columns.from_gold(gold), self._columns.from_predicted(predicted)
        self._entities.add(gold, predicted)  # First, so nothing is counted if it raises.
        is_correct = [gold_tag == tag for gold_tag, tag in zip(gold, predicted, strict=True)]
        num_correct = sum(is_correct)
        self._pairs.update(zip(gold, predicted, strict=True))
        if self._mean_cost is not None:
            self._mean_cost.add(gold, predicted)
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

    @property
    def mean_cost(self) -> MeanCost | None:
        """The mean cost, or None if no cost was chosen."""
        return self._mean_cost

    @property
    def unseen_correct(self) -> int:
        """Number of words with a tag of `unseen_tags` that was predicted, from parts that do occur in the training data."""
        return sum(self._pairs[tag, tag] for tag in self.unseen_tags)

    def columns(self) -> dict[str, CorrectCount]:
        """Returns the correct words by column, for example of `upos` and of `feats`."""
        correct = Counter[int]()
        for (gold, predicted), count in self._pairs.items():
            values = zip(self._columns.split(gold), self._columns.split(predicted), strict=True)
            correct.update({index: count for index, (value, other) in enumerate(values) if value == other})
        return {name: CorrectCount(correct[index], self._tokens) for index, name in enumerate(self._columns.names)}

    def features(self) -> dict[str, PrecisionRecall]:
        """Returns the scores of each feature in gold or predicted FEATS, the most frequent first, then by name.

        A feature of a word is correct if gold and prediction have the same value for it. Empty if no column has features.
        """
        scores = self._feature_scores()
        return {} if scores is None else scores.features()

    @property
    def universal_features(self) -> CorrectCount | None:
        """Words whose universal features are correct, CoNLL-18's UFeats; None if no column has features."""
        scores = self._feature_scores()
        return None if scores is None else CorrectCount(scores.universal_correct, self._tokens)

    def _feature_scores(self) -> FeatureScores | None:
        """Returns the counts of the first column with features; None if there is none."""
        if True not in self._columns.has_features:
            return None
        column, scores = self._columns.has_features.index(True), FeatureScores()
        for (gold, predicted), count in self._pairs.items():
            scores.add(self._columns.split(gold)[column], self._columns.split(predicted)[column], count)
        return scores

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
            "columns": {column: scores.to_json() for column, scores in self.columns().items()},
            "universal_features": None if self.universal_features is None else self.universal_features.to_json(),
            "features": {feature: asdict(scores) for feature, scores in self.features().items()},
            "tags": {tag: asdict(scores) for tag, scores in self.tags().items()},
            "confusions": [asdict(pair) for pair in self.confusions()],
            "entities": None if self.entities is None else self.entities.to_json(),
            "cost": None if self._mean_cost is None else {"name": self._mean_cost.name, "mean": self._mean_cost.value},
        }
