"""The columns of a file that form the tag."""

from collections.abc import Sequence
from dataclasses import dataclass

from linearcore._checks import complaint
from linearcore.tagging.readers._error import ReaderError, quote

#: The columns of CoNLL-U, in order.
CONLLU_NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
#: Names of the last column of a column file, which usually holds the tag.
LAST_NAMES = ("last", "tag")
LAST = -1


@dataclass(frozen=True, slots=True)
class TagColumns:
    """One or more columns that form the tag; the values of several columns are joined by a space.

    Attributes:
        names: column names as the user wrote them, in lower case.
        indices: column indices from 0; `LAST` is the last column.

    Example:
        >>> columns = TagColumns.parse("UPOS+Feats")
        >>> columns.names, columns.indices
        (('upos', 'feats'), (3, 5))
        >>> columns.join(["NOUN", "Case=Nom|Number=Sing"])
        'NOUN Case=Nom|Number=Sing'
        >>> TagColumns.parse("last").indices
        (-1,)
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "TagColumns":
        """Parses a string such as `upos`, `upos+feats`, `4`, `2+3` or `last`.

        Args:
            text: names of CoNLL-U columns (case is ignored), numbers from 1, or "last" (also "tag"), joined by +.

        Raises:
            TypeError: if `text` is not a string.
            ValueError: if a name is unknown or occurs twice.
        """
        if not isinstance(text, str):
            raise TypeError(complaint("tag", "be a string", type(text).__name__, "name a column, for example 'upos'"))
        names = tuple(name.strip().lower() for name in text.split("+"))
        indices = tuple(_index(name, text) for name in names)
        if len(set(indices)) != len(indices):
            raise ValueError(complaint("tag", "name each column once", repr(text), "remove the second one"))
        return cls(names, indices)

    def __str__(self) -> str:
        return "+".join(self.names)

    @property
    def has_conllu_names(self) -> bool:
        """Whether a column is given by its CoNLL-U name."""
        return any(name in CONLLU_NAMES for name in self.names)

    @property
    def has_last(self) -> bool:
        """Whether one of the columns is the last column."""
        return LAST in self.indices

    def require_one_tag(self, format: str, file: str) -> None:
        """Raises unless this is the one tag of a word in a corpus without columns: "tag", "last" or 2."""
        if self.has_conllu_names or self.indices not in ((LAST,), (1,)):
            wrong = f"words in the format {format} have one tag, and there is no column {self}"
            raise ReaderError.at(file, None, wrong, "pass 'tag'")

    def conllu_names(self) -> "TagColumns":
        """Returns the same columns of a CoNLL-U file, each by its name.

        Example:
            >>> str(TagColumns.parse("4+feats").conllu_names())
            'upos+feats'
        """
        return TagColumns(tuple(CONLLU_NAMES[index] for index in self.indices), self.indices)

    def join(self, values: Sequence[str]) -> str:
        """Returns the tag for the values of the columns."""
        return " ".join(values)

    def split(self, tag: str) -> list[str]:
        """Returns the values of the columns for a tag; the inverse of `join`.

        Raises:
            ValueError: if the tag does not have one part per column.
        """
        if len(self.indices) == 1:
            return [tag]
        values = tag.split(" ")
        if len(values) != len(self.indices):
            must = f"have one part for each of the {len(self.indices)} columns {self}"
            raise ValueError(complaint("tags", must, quote(tag), "use the columns of the training data"))
        return values

    def positions(self, tag: str) -> tuple[int, ...] | None:
        """Returns where a tag of these columns has the columns that `tag` names; None if it names no CoNLL-U columns.

        Raises:
            ValueError: if one of them is not among these columns.

        Example:
            >>> TagColumns.parse("upos+feats").positions("feats+upos")
            (1, 0)
        """
        if len(self.indices) == 1 or not set(tag.lower().split("+")) <= set(CONLLU_NAMES):
            return None
        indices = TagColumns.parse(tag).indices
        if not set(indices) <= set(self.indices):
            advice = "pass some of these columns, or omit it"
            raise ValueError(complaint("tag", f"consist of columns that the tagger predicts ({self})", tag, advice))
        return tuple(map(self.indices.index, indices))

    def read(self, cells: Sequence[tuple[str, ...]], name: str, numbers: Sequence[int]) -> list[str]:
        """Returns the tags of a sentence.

        Args:
            cells: the columns of the sentence, one cell per word.
            name: file name for messages.
            numbers: line number of each word.

        Raises:
            ReaderError: if a cell is empty, or contains a space although several columns are joined by spaces.

        Time and memory O(words).
        """
        values = [cells[index] for index in self.indices]
        for column, column_cells in zip(self.names, values, strict=True):
            if "" in column_cells:
                wrong = f"the cell of column {column} is empty"
                raise ReaderError.at(name, numbers[column_cells.index("")], wrong, "write a tag, or _ for no tag")
            # One check of the joined cells, because a loop over them would dominate the reading time.
            if len(values) > 1 and " " in "".join(column_cells):
                row = next(row for row, value in enumerate(column_cells) if " " in value)
                wrong = f"column {column} contains {quote(column_cells[row])}, but {self} joins its columns by a space"
                raise ReaderError.at(name, numbers[row], wrong, "replace the space in the file, or use only this column")
        return list(values[0]) if len(values) == 1 else list(map(" ".join, zip(*values, strict=True)))


def _index(name: str, text: str) -> int:
    if name in LAST_NAMES:
        return LAST
    if name in CONLLU_NAMES:
        return CONLLU_NAMES.index(name)
    # `isdigit` alone also accepts superscripts; signs, leading zeros and numbers of ten or more digits are not accepted.
    if name.isascii() and name.isdigit() and not name.startswith("0") and len(name) < 10:
        return int(name) - 1
    known = f"{', '.join(CONLLU_NAMES)} (CoNLL-U), a number from 1 or 'last' (column files)"
    raise ValueError(complaint("tag", f"consist of {known}", repr(text), "join several columns by +, as in upos+feats"))
