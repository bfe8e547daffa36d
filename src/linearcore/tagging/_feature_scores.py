"""Morphological features of a FEATS column, such as Case=Nom|Number=Sing, and their scores."""

import re
from collections import Counter
from collections.abc import Collection

from linearcore.tagging._entities import PrecisionRecall

#: The features that CoNLL-18's evaluation compares in its score UFeats.
UNIVERSAL_FEATURES = frozenset(
    (
        *("PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case", "Definite"),
        *("Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person", "Polite"),
    )
)
_NO_FEATURES = "_"
_FEATURE_LIST = re.compile(r"[^=|]+=[^=|]+(\|[^=|]+=[^=|]+)*")


def parse_features(value: str) -> dict[str, str]:
    """Returns the values of the features by name; _ has none.

    Example:
        >>> parse_features("Case=Nom|Number=Sing")
        {'Case': 'Nom', 'Number': 'Sing'}
        >>> parse_features("_")
        {}
    """
    parts = [] if value == _NO_FEATURES else value.split("|")
    return {name: setting for name, _, setting in (part.partition("=") for part in parts)}


def sort_features(value: str) -> str:
    """Returns the features in the order of CoNLL-U: by name, case ignored.

    Example:
        >>> sort_features("Number=Sing|Case=Nom")
        'Case=Nom|Number=Sing'
    """
    return "|".join(sorted(value.split("|"), key=str.lower)) if "|" in value else value


def are_features(values: Collection[str]) -> bool:
    """Whether every value is _ or a list of Name=Value, and at least one is such a list.

    Example:
        >>> are_features(["_", "Case=Nom|Number=Sing"]), are_features(["_", "NN"])
        (True, False)
    """
    lists = [value for value in values if value != _NO_FEATURES]
    return bool(lists) and all(_FEATURE_LIST.fullmatch(value) for value in lists)


class FeatureScores:
    """Counts features over pairs of a gold and a predicted FEATS value.

    A feature of a word is correct if gold and prediction have the same value for it. The order of features does not matter.

    Example:
        >>> scores = FeatureScores()
        >>> scores.add("Case=Nom|Number=Sing", "Number=Sing", count=2)
        >>> scores.features()
        {'Case': PrecisionRecall(precision=0.0, recall=0.0, f1=0.0, support=2), \
'Number': PrecisionRecall(precision=100.0, recall=100.0, f1=100.0, support=2)}
    """

    def __init__(self) -> None:
        self._correct: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._gold: Counter[str] = Counter()
        #: Number of words whose universal features are all correct.
        self.universal_correct = 0

    def add(self, gold: str, predicted: str, count: int = 1) -> None:
        """Adds `count` words with these FEATS values."""
        gold_features, predicted_features = parse_features(gold), parse_features(predicted)
        wrong = {name for name, _ in gold_features.items() ^ predicted_features.items()}
        for name in gold_features:
            self._gold[name] += count
            if name not in wrong:
                self._correct[name] += count
        for name in predicted_features:
            self._predicted[name] += count
        if wrong.isdisjoint(UNIVERSAL_FEATURES):
            self.universal_correct += count

    def features(self) -> dict[str, PrecisionRecall]:
        """Returns the scores of each gold or predicted feature, the most frequent first, then by name."""
        ordered = sorted(self._gold.keys() | self._predicted.keys(), key=lambda name: (-self._gold[name], name))
        return {name: PrecisionRecall.of(self._correct[name], self._predicted[name], self._gold[name]) for name in ordered}
