"""Detects the format of a file."""

import re
from collections.abc import Iterator
from itertools import chain

from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES
from linearcore.tagging.readers._brown import BROWN_MEMBER
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._open import Source
from linearcore.tagging.readers._penn import PENN_MEMBER
from linearcore.tagging.readers._tag_columns import CONLLU_NAMES

_CONLLU_FILE = re.compile(r".*\.conllu(\.\w+)?", re.IGNORECASE | re.DOTALL)
# Comments that the format defines.
_CONLLU_COMMENT = re.compile(r"#\s*(sent_id|text|newdoc|newpar)\b")
_CONLLU_ID = re.compile(r"[0-9]+([-.][0-9]+)?")


def corpus_format(source: Source) -> str | None:
    """Returns "penn" or "brown" if the members of an archive are those of the corpus, else None."""
    names = [name for name in source.members if name is not None]
    for format, pattern in (("penn", PENN_MEMBER), ("brown", BROWN_MEMBER)):
        if any(pattern.fullmatch(name) for name in names):
            return format
    return None


def corpus_members(source: Source, format: str) -> list[str | None]:
    """Returns the members of an archive that are texts of the corpus, or [None] for a single file.

    Raises:
        ReaderError: if an archive has no such members.
    """
    pattern, what = (PENN_MEMBER, ".mrg files") if format == "penn" else (BROWN_MEMBER, "texts ca01 to cr09")
    members = [name for name in source.members if name is None or pattern.fullmatch(name)]
    if not members:
        advice = "pass NLTK's zip file of the corpus, or use another format"
        raise ReaderError.at(
            source.file, None, f"the archive contains no {what}, which the format {format} requires", advice
        )
    return members


def only_member(source: Source) -> str | None:
    """Returns the single member of an archive, or None for a file that is not an archive.

    Raises:
        ReaderError: if an archive has several members.
    """
    if len(source.members) > 1:
        some = ", ".join(str(name) for name in source.members[:3])
        more = ", …" if len(source.members) > 3 else ""
        wrong = f"the archive contains {len(source.members)} files ({some}{more}) and is not a known corpus"
        raise ReaderError.at(source.file, None, wrong, "unpack it and pass one of them")
    return source.members[0]


def text_format(lines: Iterator[str], *names: str | None) -> tuple[str, Iterator[str]]:
    """Returns "conllu" or "columns", and an iterator over all lines.

    The format is CoNLL-U if the name of the file or member ends in .conllu, or if the text starts with a CoNLL-U comment or
    a line of ten cells with an id. Lines are read only up to the first word, so standard input can be interactive.
    """
    if any(_CONLLU_FILE.fullmatch(name) for name in names if name is not None):
        return "conllu", lines
    first_lines: list[str] = []
    format = "columns"
    for line in lines:
        first_lines.append(line)
        if _CONLLU_COMMENT.match(line):
            format = "conllu"
            break
        is_word = bool(line.strip()) and not line.startswith("#")
        if is_word or len(first_lines) > MAX_SENTENCE_LINES:
            cells = line.split("\t")
            format = "conllu" if len(cells) == len(CONLLU_NAMES) and _CONLLU_ID.fullmatch(cells[0]) else "columns"
            break
    return format, chain(first_lines, lines)
