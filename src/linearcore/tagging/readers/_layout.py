"""The format of the files that a tagger was trained on."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from linearcore._checks import complaint
from linearcore.tagging.readers._cells import split_cells
from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._format import Format
from linearcore.tagging.readers._index import BY_NAME
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import LAST_NAMES, TagColumns

#: Cells that stand for a missing tag.
_NO_TAG = frozenset({"_", "-", "?", "O", "X", "*"})


@dataclass(frozen=True, slots=True)
class Layout:
    """Format, place of the tags and number of columns of the files that a tagger was trained on.

    It is saved with the tagger, so files of another format are refused instead of being misread.

    Attributes:
        format: name of the format, one of `FORMATS`.
        tag: where the tags are, in the syntax of `--tag`.
        width: number of columns of column files; None if it is unknown or the format has no such number.

    Example:
        >>> sentence = Sentence(["A", "dog"], ["DET", "NOUN"], ["A\\tDET", "dog\\tNOUN"], [0, 1], line=1)
        >>> Layout.of(sentence, "last")
        Layout(format='columns', tag='last', width=2)
    """

    format: str
    tag: str
    width: int | None = None

    @classmethod
    def of(cls, sentence: Sentence, tag: str) -> "Layout":
        """Returns the layout of the file that a sentence was read from with this `tag`."""
        return cls(sentence.format, tag, _width(BY_NAME[sentence.format], sentence))

    @classmethod
    def of_columns(cls, columns: str) -> "Layout":
        """Returns the layout for taggers that were saved without one: CoNLL-U for its column names, else columns."""
        return cls("conllu" if TagColumns.parse(columns).has_conllu_names else "columns", columns)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Layout":
        """Returns the layout that `to_json` described.

        Raises:
            ValueError: if this version does not have the format.
        """
        layout = cls(**values)
        if layout.format not in BY_NAME:
            raise ValueError(
                complaint("format", f"be one of {', '.join(BY_NAME)}", repr(layout.format), "update linearcore")
            )
        return layout

    def to_json(self) -> dict[str, Any]:
        """Returns the layout as JSON values."""
        return asdict(self)

    @property
    def columns(self) -> str:
        """The tag columns in the syntax of `TagColumns`; "last" if the format has no columns."""
        return BY_NAME[self.format].columns(self.tag)

    def tag_for(self, format: str) -> str:
        """Returns the `tag` for reading files in a format: as in training, or the default for another format."""
        return self.tag if format in ("auto", self.format) else LAST_NAMES[0]

    def require(self, format: Format, line: str | None, name: str) -> None:
        """Raises if a file with this format and this first word does not have the format of training.

        Args:
            format: the detected format.
            line: the first line with a word; None if the format was detected from the name of the file.
            name: file name for messages.

        Raises:
            ReaderError: with the formats to choose from.
        """
        choices = ", ".join(f"{other.name} ({other.description})" for other in BY_NAME.values() if other.members is None)
        if format.name != self.format:
            looks = "" if format.has_width else f"; it looks like {format.name}"
            wrong = f"the tagger was trained on the format {self.format}, and this file does not have it{looks}"
            raise ReaderError.at(name, None, wrong, f"pass --format with one of {choices}")
        width = len(split_cells(line)) if format.has_width and line is not None else None
        if self.width is not None and width not in (None, 1, self.width):
            wrong = f"{width} columns, but the tagger was trained on {self.width} columns"
            advice = f"pass --format columns with --tag N if this is the file's format, else --format with one of {choices}"
            raise ReaderError.at(name, None, wrong, advice)

    def output_tag(self, sentence: Sentence, format: Format) -> str | None:
        """Returns where the tags of a file that begins with this sentence are written in a format; None for the default.

        Raises:
            ValueError: if the file has another number of columns than in training.
        """
        if format.name != self.format:
            return None
        if not format.has_width:
            return self.tag
        self.require_width(sentence)
        return None if _width(format, sentence) in (None, 1) else self.tag

    def require_width(self, sentence: Sentence) -> None:
        """Raises if a column file that begins with this sentence has neither the columns of training nor words only.

        Raises:
            ValueError: with what to pass.
        """
        width = _width(BY_NAME[self.format], sentence)
        if self.width is not None and width not in (None, 1, self.width):
            must = f"be given for a file of {width} columns, because the tagger was trained on {self.width} columns"
            raise ValueError(complaint("tag", must, "none", "pass --tag N, the column for the tags"))

    def require_tags(self, sentence: Sentence, known: Collection[str], name: str) -> None:
        """Raises if the column of the tags contains no tag in the first sentence of a column file, so it may contain words.

        Args:
            sentence: the first sentence of the file.
            known: the tags of the tagger.
            name: file name for messages.

        Raises:
            ReaderError: if no cell of the column is a known tag or means that there is no tag.
        """
        if _width(BY_NAME[sentence.format], sentence) in (None, 1):
            return
        columns = TagColumns.parse(self.tag)
        cells = [split_cells(sentence.lines[row]) for row in sentence.rows]
        if max(columns.indices) >= len(cells[0]):
            return
        tags = [columns.join([row[index] for index in columns.indices]) for row in cells]
        if not any(tag in known or tag in _NO_TAG for tag in tags):
            wrong = f"column {columns} of the first sentence contains no tag of the tagger ({quote(tags[0])})"
            advice = "pass --format text if each line is a sentence, or --format columns to replace this column"
            raise ReaderError.at(name, sentence.line, wrong, advice)


def _width(format: Format, sentence: Sentence) -> int | None:
    """Returns the number of columns of a sentence that was read in this format, if the format has such a number."""
    if not format.has_width or format.name != sentence.format:
        return None
    return len(split_cells(sentence.lines[sentence.rows[0]]))
