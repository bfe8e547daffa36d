"""Which columns of a file make up the tag."""

from collections.abc import Sequence
from dataclasses import dataclass

from linearcore._checks import complaint
from linearcore.tagging.readers._error import ReaderError, quote

#: The columns of CoNLL-U in their order.
CONLLU_NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
#: Words for the last column of a column file, which is where the tag of most of them stands.
LAST_NAMES = ("last", "tag")
LAST = -1


@dataclass(frozen=True, slots=True)
class TagColumns:
    """The columns that hold the tag, one or several; the values of several are joined by one space.

    Attributes:
        names: as the user wrote them, in lower case.
        indices: counted from 0; `LAST` is the last one, wherever that is.

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
        """Reads `upos`, `upos+feats`, `4`, `2+3`, `last`.

        Args:
            text: names of CoNLL-U columns in any case, numbers counted from 1, or "last" (also "tag"), with + between them.

        Raises:
            TypeError: if it is no string.
            ValueError: if a name is unknown or comes twice.
        """
        if not isinstance(text, str):
            raise TypeError(complaint("tag", "be a string", type(text).__name__, "name a column, for example 'upos'"))
        names = tuple(name.strip().lower() for name in text.split("+"))
        indices = tuple(_index(name, text) for name in names)
        if len(set(indices)) != len(indices):
            raise ValueError(complaint("tag", "name each column once", repr(text), "leave out the second one"))
        return cls(names, indices)

    def __str__(self) -> str:
        return "+".join(self.names)

    @property
    def has_conllu_names(self) -> bool:
        """Whether a column goes by its name in CoNLL-U."""
        return any(name in CONLLU_NAMES for name in self.names)

    @property
    def has_last(self) -> bool:
        """Whether one of them is the last column."""
        return LAST in self.indices

    @property
    def empty_tag(self) -> str:
        """The tag of a word that has none in any of the columns."""
        return self.join(["_"] * len(self.indices))

    def join(self, values: Sequence[str]) -> str:
        """One tag from the values of the columns."""
        return " ".join(values)

    def split(self, tag: str) -> list[str]:
        """The values of the columns from one tag, the inverse of `join`.

        Raises:
            ValueError: if the tag has not as many parts as there are columns.
        """
        if len(self.indices) == 1:
            return [tag]
        values = tag.split(" ")
        if len(values) != len(self.indices):
            must = f"have a part for each of the {len(self.indices)} columns {self}"
            raise ValueError(complaint("tags", must, quote(tag), "write with the columns that the tags were read from"))
        return values

    def read(self, cells: Sequence[tuple[str, ...]], name: str, numbers: Sequence[int]) -> list[str]:
        """The tags of a sentence.

        Args:
            cells: the columns of the sentence's words.
            name: the file, for messages.
            numbers: the line of each word in it.

        Raises:
            ReaderError: if a cell is empty, or holds the space that parts a combination.

        Time and memory O(words).
        """
        values = [cells[index] for index in self.indices]
        for column, found in zip(self.names, values, strict=True):
            if "" in found:
                wrong = f"the cell of column {column} is empty"
                raise ReaderError.at(name, numbers[found.index("")], wrong, "write a tag, or _ for none")
            # All cells at once: a loop over them would take longer than everything else that is done to a sentence.
            if len(values) > 1 and " " in "".join(found):
                row = next(row for row, value in enumerate(found) if " " in value)
                wrong = f"column {column} holds {quote(found[row])}, and {self} joins its columns by a space"
                raise ReaderError.at(name, numbers[row], wrong, "replace the space in the file, or take the column alone")
        return list(values[0]) if len(values) == 1 else list(map(" ".join, zip(*values, strict=True)))


def _index(name: str, text: str) -> int:
    if name in LAST_NAMES:
        return LAST
    if name in CONLLU_NAMES:
        return CONLLU_NAMES.index(name)
    # Not `isdigit` alone, which also takes superscripts; and no sign, no leading zero, no astronomic number.
    if name.isascii() and name.isdigit() and not name.startswith("0") and len(name) < 10:
        return int(name) - 1
    known = f"{', '.join(CONLLU_NAMES)} (CoNLL-U), a number from 1 or 'last' (column files)"
    raise ValueError(complaint("tag", f"be made of {known}", repr(text), "join several by +, as in upos+feats"))
