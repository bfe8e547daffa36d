"""The base class of file formats: how sentences of a file are read, and how they are written with tags.

A new format is one file with a subclass of `Format`, and one line in `_index.py`. The command line, the detection of formats
and the saved taggers read what the class declares, so no other code depends on its name.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

from linearcore.tagging.readers._details import Details
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._sentence import Sentence


class SentenceWriter(Protocol):
    """Returns the text of a sentence with one predicted tag per word, including its line ends."""

    def __call__(self, sentence: Sentence, tags: Sequence[str], details: Details | None = None, /) -> str:
        """`details` are written in addition, as far as the format has a place for them."""
        ...


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of `read_sentences`; a format declares which of them it uses, besides `tag`.

    Attributes:
        tag: where the tags are; None reads no tags.
        check_ids: require consecutive CoNLL-U ids.
        comments: whether a line of a column file that starts with `# ` before the first word of a sentence is a comment;
            None refuses lines that may be a comment or a word.
        language: language code of running text; None is "xx", which stands for any language.
    """

    tag: str | None = None
    check_ids: bool = True
    comments: bool | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class CorpusMembers:
    """The files of a zip archive that are texts of a corpus.

    Attributes:
        pattern: matches their names.
        description: what they are, for messages.
    """

    pattern: re.Pattern[str]
    description: str


class Format(ABC):
    """A file format.

    Attributes:
        name: name in `--format`.
        description: what such a file contains, in a few words, for messages.
        output: the format in which its sentences are written by default; a format that can be written names itself.
        options: the fields of `ReadOptions` that it uses, besides `tag`.
        details: the fields of `Details` that can be written besides the tags.
        has_width: whether files may have any number of columns.
        file_names: matches names of files that must have this format, if there is such a convention.
        members: for a corpus that is a zip archive, which of its files are read.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    output: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    details: ClassVar[frozenset[str]] = frozenset()
    has_width: ClassVar[bool] = False
    file_names: ClassVar[re.Pattern[str] | None] = None
    members: ClassVar[CorpusMembers | None] = None

    @abstractmethod
    def check_tag(self, tag: str, file: str) -> None:
        """Raises if files of this format have no tags there.

        Raises:
            ReaderError, ValueError: with what to pass instead.
        """

    @abstractmethod
    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields the sentences of a text; `name` is its file name for messages.

        Raises:
            ReaderError: with file and line, if the text is malformed.
        """

    def columns(self, tag: str) -> str:
        """Returns the tag columns in the syntax of `TagColumns`, by their names if the format has names for all columns."""
        return tag

    def recognises(self, line: str) -> bool:
        """Whether a file that begins with this line, or with comments and this line, has this format."""
        return False

    def writer(self, tag: str | None) -> SentenceWriter:
        """Returns a function that writes sentences of any format in this format, with the tags at `tag`.

        Args:
            tag: as for reading; None is the default place.

        Raises:
            ValueError: if the format has no such place, or needs a name and `tag` is None.
        """
        raise NotImplementedError(f"the format {self.name} cannot be written")

    def check(self, options: ReadOptions, file: str) -> None:
        """Raises if the format has no such tags or does not use one of the options."""
        for field in fields(options):
            value = getattr(options, field.name)
            if field.name != "tag" and field.name not in self.options and value != field.default:
                flag = field.name.replace("_", "-")
                option = f"--no-{flag}" if value is False else f"--{flag}"
                wrong = f"{option} ({field.name}={value!r}) has no meaning for the format {self.name}"
                raise ReaderError.at(file, None, wrong, "omit it")
        if options.tag is not None:
            self.check_tag(options.tag, file)
