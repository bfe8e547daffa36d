"""Tells what format a file is in."""

import re
from collections.abc import Iterator
from itertools import chain

from linearcore.tagging.readers._blocks import LONGEST_SENTENCE
from linearcore.tagging.readers._brown import BROWN_MEMBER
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._open import Source
from linearcore.tagging.readers._penn import PENN_MEMBER
from linearcore.tagging.readers._tag_columns import CONLLU_NAMES

_CONLLU_FILE = re.compile(r".*\.conllu(\.\w+)?", re.IGNORECASE | re.DOTALL)
# Comments that the format itself knows.
_CONLLU_COMMENT = re.compile(r"#\s*(sent_id|text|newdoc|newpar)\b")
_CONLLU_ID = re.compile(r"[0-9]+([-.][0-9]+)?")


def corpus_format(source: Source) -> str | None:
    """`penn` or `brown` if the members of an archive are those of the corpus, else None."""
    names = [name for name in source.members if name is not None]
    for format, pattern in (("penn", PENN_MEMBER), ("brown", BROWN_MEMBER)):
        if any(pattern.fullmatch(name) for name in names):
            return format
    return None


def corpus_members(source: Source, format: str) -> list[str | None]:
    """What is to be read of a file in the format `penn` or `brown`: of an archive the corpus's texts, else the file.

    Raises:
        ReaderError: if an archive has none.
    """
    pattern, what = (PENN_MEMBER, ".mrg files") if format == "penn" else (BROWN_MEMBER, "texts ca01 to cr09")
    members = [name for name in source.members if name is None or pattern.fullmatch(name)]
    if not members:
        advice = "pass NLTK's zip of the corpus, or another format"
        raise ReaderError.at(source.file, None, f"the archive holds none of the {what} of the format {format}", advice)
    return members


def only_member(source: Source) -> str | None:
    """The one text of a file that is no corpus.

    Raises:
        ReaderError: if an archive has several.
    """
    if len(source.members) > 1:
        some = ", ".join(str(name) for name in source.members[:3])
        more = ", …" if len(source.members) > 3 else ""
        wrong = f"the archive holds {len(source.members)} files ({some}{more}) and is no corpus that is known"
        raise ReaderError.at(source.file, None, wrong, "unpack it and pass one of them")
    return source.members[0]


def text_format(lines: Iterator[str], *names: str | None) -> tuple[str, Iterator[str]]:
    """`conllu` or `columns`, and the lines again.

    By a name that ends in .conllu, the file's or the member's; else by what is inside: a comment of CoNLL-U, or ten cells
    that begin with an id. No more than the lines up to the first word is read ahead, so that standard input may be typed.
    """
    if any(_CONLLU_FILE.fullmatch(name) for name in names if name is not None):
        return "conllu", lines
    ahead: list[str] = []
    format = "columns"
    for line in lines:
        ahead.append(line)
        if _CONLLU_COMMENT.match(line):
            format = "conllu"
            break
        is_word = bool(line.strip()) and not line.startswith("#")
        if is_word or len(ahead) > LONGEST_SENTENCE:
            cells = line.split("\t")
            format = "conllu" if len(cells) == len(CONLLU_NAMES) and _CONLLU_ID.fullmatch(cells[0]) else "columns"
            break
    return format, chain(ahead, lines)
