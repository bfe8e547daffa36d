"""sklearn-crfsuite with its usual features, as a baseline for the tagger."""

from collections.abc import Sequence

from _tagger import UsageError
from linearcore.tagging import TaggedSentence

#: L1 and L2 penalties, optimiser and number of iterations of sklearn-crfsuite's tutorial.
SETTINGS = {"algorithm": "lbfgs", "c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
#: Description of `features` for the record.
FEATURES = "word, lower case, suffixes of 2 and 3, shape flags; neighbours at 1 and 2; start and end of the sentence"


def predict(labelled: Sequence[TaggedSentence], sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """Trains on the labelled sentences and returns the tags of the others."""
    try:
        import sklearn_crfsuite
    except ImportError:
        raise UsageError("the baseline crfsuite needs a package; run pip install sklearn-crfsuite") from None
    model = sklearn_crfsuite.CRF(**SETTINGS)
    model.fit([features(words) for words, _ in labelled], [list(tags) for _, tags in labelled])
    return [list(map(str, tags)) for tags in model.predict([features(words) for words in sentences])]


def features(words: Sequence[str]) -> list[dict[str, str | bool]]:
    """Returns the features of each word of a sentence."""
    return [_features(words, position) for position in range(len(words))]


def _features(words: Sequence[str], position: int) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {"word": words[position], "digit": words[position].isdigit()}
    for offset in (-2, -1, 0, 1, 2):
        neighbour = position + offset
        if not 0 <= neighbour < len(words):
            found["first" if offset < 0 else "last"] = True
            continue
        word = words[neighbour]
        found |= {f"{offset} lower": word.lower(), f"{offset} title": word.istitle(), f"{offset} upper": word.isupper()}
        if abs(offset) < 2:
            found |= {f"{offset} suffix 2": word[-2:], f"{offset} suffix 3": word[-3:]}
    return found
