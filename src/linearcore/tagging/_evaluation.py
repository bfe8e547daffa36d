"""How good predicted tags are."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from linearcore._checks import complaint
from linearcore.tagging._entities import Entities, Rates


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many are right."""

    correct: int
    count: int

    @property
    def accuracy(self) -> float | None:
        """In percent; None if there are none."""
        return 100 * self.correct / self.count if self.count else None

    def to_json(self) -> dict[str, int | float | None]:
        """Count and accuracy."""
        return {"count": self.count, "accuracy": self.accuracy}


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a tag was taken for another."""

    gold: str
    predicted: str
    count: int


class Evaluation:
    """Compares predicted with gold tags, sentence by sentence; what it keeps grows with the distinct tags only.

    A word is right if its tag is the gold one, so a gold tag that training never saw is always wrong; `unseen_tags` says
    how many. All rates are in percent. A rate whose denominator is 0 is 0.

    Entities are looked at if all gold tags so far are O, B-…, I-…, E-… or S-…, by seqeval (its default mode, which is
    conlleval's), and are counted sentence by sentence too. They need the extra "tagging".

    Args:
        known_words: words of the training data; None counts all as known.
        known_tags: tags of the training data; None counts all as seen.

    Example:
        >>> evaluation = Evaluation(known_words={"a", "dog"}, known_tags={"DET", "NOUN", "VERB"})
        >>> evaluation.add(["a", "dog", "yelps"], ["DET", "NOUN", "VERB"], ["DET", "NOUN", "NOUN"])
        >>> evaluation.add(["a", "cat"], ["DET", "X"], ["DET", "NOUN"])
        >>> evaluation.accuracy
        60.0
        >>> evaluation.known, evaluation.unknown, evaluation.sentences
        (Share(correct=3, count=3), Share(correct=0, count=2), Share(correct=0, count=2))
        >>> evaluation.unseen_tags, evaluation.tags()["NOUN"]
        ({'X': 1}, Rates(precision=33.33, recall=100.0, f1=50.0, support=1))
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
        """Counts one sentence.

        Raises:
            ValueError: if there are not as many tags as words, or no words.
            MissingExtraError: if the tags are of entities and seqeval is not installed.
        """
        for name, tags in (("gold", gold), ("predicted", predicted)):
            if len(tags) != len(words):
                raise ValueError(complaint(name, f"be as many as the {len(words)} words", len(tags), "give one tag a word"))
        if not words:
            raise ValueError(complaint("words", "be at least one", 0, "leave out empty sentences"))
        self._entities.add(gold, predicted)  # First: where it raises, nothing is counted yet.
        right = [truth == guess for truth, guess in zip(gold, predicted, strict=True)]
        correct = sum(right)
        self._pairs.update(zip(gold, predicted, strict=True))
        self._tokens += len(words)
        self._correct += correct
        self._sentences += 1
        self._sentences_correct += correct == len(words)
        known = self._known_words
        hits = right if known is None else [hit for word, hit in zip(words, right, strict=True) if word in known]
        self._known += len(hits)
        self._known_correct += sum(hits)

    @property
    def accuracy(self) -> float:
        """Share of words with the right tag, in percent.

        Raises:
            ValueError: if there are none.
        """
        accuracy = self.words.accuracy
        if accuracy is None:
            raise ValueError(complaint("evaluation", "have seen a sentence", "none", "add one first"))
        return accuracy

    @property
    def words(self) -> Share:
        """All words."""
        return Share(self._correct, self._tokens)

    @property
    def known(self) -> Share:
        """Words that training saw."""
        return Share(self._known_correct, self._known)

    @property
    def unknown(self) -> Share:
        """Words that training did not see."""
        return Share(self._correct - self._known_correct, self._tokens - self._known)

    @property
    def sentences(self) -> Share:
        """Sentences; one is right if all its words are."""
        return Share(self._sentences_correct, self._sentences)

    @property
    def unseen_tags(self) -> dict[str, int]:
        """Gold tags that training did not see and how often they come, the most frequent first."""
        if self._known_tags is None:
            return {}
        return {tag: rates.support for tag, rates in self.tags().items() if rates.support and tag not in self._known_tags}

    @property
    def entities(self) -> Entities | None:
        """The entities, or None if the gold tags are of another kind."""
        return self._entities if self._entities.is_used else None

    def tags(self) -> dict[str, Rates]:
        """Precision, recall, F1 and support of each tag, gold or predicted; the most frequent first, then by name."""
        gold, predicted, both = Counter[str](), Counter[str](), Counter[str]()
        for (truth, guess), count in self._pairs.items():
            gold[truth] += count
            predicted[guess] += count
            if truth == guess:
                both[truth] += count
        ordered = sorted(gold.keys() | predicted.keys(), key=lambda tag: (-gold[tag], tag))
        return {tag: Rates.of(both[tag], predicted[tag], gold[tag]) for tag in ordered}

    def confusions(self, most: int | None = None) -> list[Confusion]:
        """The pairs that are confused most often, the worst first, then by name; None gives all."""
        wrong = [Confusion(gold, guess, count) for (gold, guess), count in self._pairs.items() if gold != guess]
        return sorted(wrong, key=lambda pair: (-pair.count, pair.gold, pair.predicted))[:most]

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; rates in percent, None where there is nothing to count.

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
            "tags": {tag: asdict(rates) for tag, rates in self.tags().items()},
            "confusions": [asdict(pair) for pair in self.confusions()],
            "entities": None if self.entities is None else self.entities.to_json(),
        }
