"""Detects the format of a file, and refuses files of other kinds."""

import re
from collections.abc import Iterator
from itertools import chain

from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES
from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._format import Format
from linearcore.tagging.readers._index import BY_NAME
from linearcore.tagging.readers._open import Source

_MARKUP = re.compile(r"\s*(<(!doctype|html|head|body|\?xml)\b|\{\\rtf|%PDF-)", re.IGNORECASE)
# A JSON array, or a JSON object that is written in several lines.
_OTHER_JSON = re.compile(r"\s*(\[\s*(\{.*)?|\{\s*)")
_WORD_NAMES = frozenset({"word", "words", "token", "tokens", "form"})
_TAG_NAMES = frozenset({
    "tag", "tags", "label", "labels", "pos", "upos", "xpos", "ner", "pos_tag", "pos_tags", "ner_tag", "ner_tags", "lemma",
})  # fmt: skip


def corpus_format(source: Source) -> Format | None:
    """Returns the format of a corpus if the members of an archive are its texts, else None."""
    names = [name for name in source.members if name is not None]
    for format in BY_NAME.values():
        if format.members is not None and any(format.members.pattern.fullmatch(name) for name in names):
            return format
    return None


def members(source: Source, format: Format | None) -> list[str | None]:
    """Returns the members of an archive to read in a format (None if it is not known), or [None] for a single file.

    Raises:
        ReaderError: if an archive has no member of the corpus, or several members and the format is not a corpus.
    """
    if format is not None and format.members is not None:
        found = [name for name in source.members if name is None or format.members.pattern.fullmatch(name)]
        if not found:
            wrong = f"the archive contains no {format.members.description}, which the format {format.name} requires"
            advice = "pass NLTK's zip file of the corpus, or use another format"
            raise ReaderError.at(source.file, None, wrong, advice)
        return found
    if len(source.members) > 1:
        some = ", ".join(str(name) for name in source.members[:3])
        more = ", …" if len(source.members) > 3 else ""
        wrong = f"the archive contains {len(source.members)} files ({some}{more}) and is not a known corpus"
        raise ReaderError.at(source.file, None, wrong, "unpack it and pass one of them")
    return list(source.members)


def refuse_markup(lines: Iterator[str], name: str) -> Iterator[str]:
    """Returns an iterator over all lines; raises if the text is HTML, XML, RTF or PDF."""
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if line and not line.isspace():
            if _MARKUP.match(line):
                wrong = f"the text starts with {quote(line.strip())}, so it is markup and not text"
                raise ReaderError.at(name, len(seen), wrong, "extract the text first")
            break
        if len(seen) > MAX_SENTENCE_LINES:
            break
    return chain(seen, lines)


def detect(lines: Iterator[str], name: str, *file_names: str | None) -> tuple[Format, str | None, Iterator[str]]:
    """Returns the format of a text, its first line with a word, and an iterator over all lines.

    The format is given by the name of the file or member, if it ends as in .conllu; else by the first line that a format
    recognises, up to the first word; else it is "columns". Text is never detected, because it could be columns. Lines are
    read only up to the first word, so standard input can be interactive.

    Args:
        lines: lines of the file.
        name: file name for messages.
        file_names: names of the file and of the member.

    Raises:
        ReaderError: if the first line is a header, or JSON that is not one object per line.
    """
    for format in BY_NAME.values():
        pattern = format.file_names
        if pattern is not None and any(pattern.fullmatch(file_name) for file_name in file_names if file_name is not None):
            return format, None, lines
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if not line or line.isspace():
            continue
        for format in BY_NAME.values():
            if format.recognises(line):
                return format, line, chain(seen, lines)
        if not line.startswith("#"):
            _refuse_other_tables(line, name, len(seen))
            return BY_NAME["columns"], line, chain(seen, lines)
        if len(seen) > MAX_SENTENCE_LINES:
            break
    return BY_NAME["columns"], None, chain(seen, lines)


def _refuse_other_tables(line: str, name: str, number: int) -> None:
    """Raises if the first line of a column file is the header of a table, or begins a JSON document."""
    if _OTHER_JSON.fullmatch(line):
        wrong = "this looks like JSON, but not like JSON lines"
        advice = "write one JSON object per line, or pass --format columns if it is a word"
        raise ReaderError.at(name, number, wrong, advice)
    cells = [cell.strip("\" '").lower() for cell in re.split("[,;\t ]+", line)]
    if cells[0] in _WORD_NAMES and _TAG_NAMES.intersection(cells[1:]):
        advice = "remove it, or pass --format columns if it is a word"
        raise ReaderError.at(name, number, f"{quote(line)} looks like a header", advice)
