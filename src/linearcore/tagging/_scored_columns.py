"""The tag columns that an evaluation compares."""

from collections.abc import Collection, Sequence

from linearcore._checks import complaint
from linearcore.tagging._feature_scores import are_features, sort_features
from linearcore.tagging.readers import TagColumns

_FEATS = "feats"


class ScoredColumns:
    """The columns of the gold tags, and where a predicted tag has them.

    A tagger of `upos+feats` can be evaluated on `upos`, on `feats`, or on both. Columns are compared by name. If one side
    has numbers or "last" instead of names, because column files have no names, both sides must have equally many columns,
    which are compared in order; columns with equal numbers are compared with each other.

    A column holds features if its name is `feats`, or if all its values in `predicted_tags` are features or _. Features are
    sorted, so their order in the file does not matter.

    Args:
        columns: columns of the gold tags, in the syntax of `--tag`.
        predicted_columns: columns of the predicted tags; None if they are the same.
        predicted_tags: the tags that can be predicted.

    Raises:
        ValueError: if a column is unknown or is not predicted.

    Example:
        >>> scored = ScoredColumns("upos", "upos+feats")
        >>> scored.from_predicted(["NOUN Case=Nom|Number=Sing"])
        ['NOUN']
        >>> ScoredColumns("feats").from_gold(["Number=Sing|Case=Nom"])
        ['Case=Nom|Number=Sing']
    """

    def __init__(
        self, columns: str = "tag", predicted_columns: str | None = None, predicted_tags: Collection[str] = ()
    ) -> None:
        self._gold = TagColumns.parse(columns)
        self._predicted = self._gold if predicted_columns is None else TagColumns.parse(predicted_columns)
        self._positions = _positions(self._gold, self._predicted)
        self.names = self._gold.names
        values = [self._predicted.split(tag) for tag in predicted_tags]
        self.has_features = tuple(
            _FEATS in (name, self._predicted.names[position]) or are_features({row[position] for row in values})
            for name, position in zip(self.names, self._positions, strict=True)
        )
        self._from_gold: dict[str, str] = {}
        self._from_predicted: dict[str, str] = {}

    def from_gold(self, tags: Sequence[str]) -> list[str]:
        """Returns gold tags with sorted features."""
        for tag in set(tags) - self._from_gold.keys():
            self._from_gold[tag] = self._joined(self._gold.split(tag))
        return [self._from_gold[tag] for tag in tags]

    def from_predicted(self, tags: Sequence[str]) -> list[str]:
        """Returns the compared columns of predicted tags, with sorted features."""
        for tag in set(tags) - self._from_predicted.keys():
            values = self._predicted.split(tag)
            self._from_predicted[tag] = self._joined([values[position] for position in self._positions])
        return [self._from_predicted[tag] for tag in tags]

    def split(self, tag: str) -> list[str]:
        """Returns the value of each compared column."""
        return self._gold.split(tag)

    def _joined(self, values: list[str]) -> str:
        return self._gold.join(
            [sort_features(value) if is_list else value for value, is_list in zip(values, self.has_features, strict=True)]
        )


def _positions(gold: TagColumns, predicted: TagColumns) -> tuple[int, ...]:
    """Returns the index in a predicted tag of each gold column."""
    if set(gold.indices) <= set(predicted.indices):
        return tuple(map(predicted.indices.index, gold.indices))
    have_names = gold.has_conllu_names and predicted.has_conllu_names
    if not have_names and len(gold.indices) == len(predicted.indices):
        return tuple(range(len(gold.indices)))
    advice = "pass columns that the tagger predicts, or train another tagger"
    raise ValueError(complaint("tag", f"consist of columns that the tagger predicts ({predicted})", str(gold), advice))
