"""From a path to sentences."""

import os
from collections.abc import Generator, Iterator
from contextlib import closing

from linearcore._checks import complaint, one_of
from linearcore.tagging.readers._brown import brown
from linearcore.tagging.readers._columns import columns_file
from linearcore.tagging.readers._conllu import conllu
from linearcore.tagging.readers._detect import corpus_format, corpus_members, only_member, text_format
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._open import Source
from linearcore.tagging.readers._penn import penn
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import CONLLU_NAMES, LAST, TagColumns

FORMATS = ("auto", "conllu", "columns", "penn", "brown")
_CORPORA = {"penn": penn, "brown": brown}


def read_sentences(
    path: str | os.PathLike[str], tag: str | None = None, format: str = "auto", *, check_ids: bool = True
) -> Iterator[Sentence]:
    """The sentences of a file, one after the other, in memory that does not grow with the file.

    Args:
        path: a text in UTF-8, plain or packed as xz, gzip or zip (told by its content); NLTK's zips of the Penn Treebank
            sample and the Brown corpus; "-" for standard input.
        tag: what the tag is, as in `TagColumns.parse`. None asks for no tags, which is for prediction. "tag" (or "last")
            is the last column of a column file and the tag of the Penn Treebank and of the Brown corpus; CoNLL-U has
            several kinds, so one must be named, such as "upos", "xpos" or "upos+feats".
        format: "conllu", "columns", "penn", "brown", or "auto", which tells by the content and the name.
        check_ids: False reads CoNLL-U whose ids do not count up, or whose ranges do not fit, as they are in LASLA. A
            tagger needs neither; wrong ids may be a sign of lost lines, though.

    Returns:
        An iterator, which opens the file with the first sentence and closes it after the last, or when it is closed.

    Raises:
        TypeError, ValueError: at once, if `tag` or `format` is none of these.
        ReaderError: while it is read, if there is no such file, it is damaged, empty, binary or malformed, or the tag is
            not there: a column that is _ throughout holds none, which is only known at the end.

    Example:
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "dogs.txt")
        >>> _ = path.write_text("A DET\\ndog NOUN\\n\\nSit VERB\\n")
        >>> [(sentence.words, sentence.tags) for sentence in read_sentences(path, tag="last")]
        [(['A', 'dog'], ['DET', 'NOUN']), (['Sit'], ['VERB'])]
        >>> folder.cleanup()

    Time O(characters), about a microsecond a word; memory O(longest sentence).
    """
    one_of("format", format, FORMATS)
    file = os.fspath(path)
    if not isinstance(file, str):
        raise TypeError(complaint("path", "be a string or a path of strings", type(file).__name__, "decode it"))
    columns = None if tag is None else TagColumns.parse(tag)
    if format != "auto":
        _check_columns(file, columns, format)
    return _sentences(file, columns, format, check_ids)


def _sentences(file: str, columns: TagColumns | None, format: str, check_ids: bool) -> Iterator[Sentence]:
    has_sentence = has_tag = False
    with Source(file) as source, closing(_parsed(source, columns, format, check_ids)) as sentences:
        for sentence in sentences:
            has_sentence = True
            if not has_tag and columns is not None and sentence.tags is not None:
                has_tag = any(tag != columns.empty_tag for tag in sentence.tags)
            yield sentence
    if not has_sentence:
        raise ReaderError.at(file, None, "there is no sentence in it", "pass a file with a word a line")
    if columns is not None and not has_tag:
        wrong = f"column {columns} is _ throughout, so no word has a tag"
        raise ReaderError.at(file, None, wrong, "name a column that is filled")


def _parsed(source: Source, columns: TagColumns | None, format: str, check_ids: bool) -> Generator[Sentence, None, None]:
    if format == "auto":
        format = corpus_format(source) or "auto"
    if format in _CORPORA:
        _check_columns(source.file, columns, format)
        for member in corpus_members(source, format):
            yield from _CORPORA[format](source.lines(member), source.name(member), columns is not None)
        return
    member = only_member(source)
    name, lines = source.name(member), source.lines(member)
    if format == "auto":
        format, lines = text_format(lines, source.file, member)
        _check_columns(source.file, columns, format)
    if format == "conllu":
        yield from conllu(lines, name, columns, check_ids)
    else:
        yield from columns_file(lines, name, columns)


def _check_columns(file: str, columns: TagColumns | None, format: str) -> None:
    """Raises if columns of another format are asked for."""
    if columns is None:
        return
    if format == "conllu" and (columns.has_last or max(columns.indices) >= len(CONLLU_NAMES)):
        advice = "name one, for example upos, xpos or upos+feats"
        raise ReaderError.at(file, None, f"this is CoNLL-U, which has no column {columns}", advice)
    if format == "columns" and columns.has_conllu_names:
        wrong = f"this is a column file, whose columns have no names such as {columns}"
        raise ReaderError.at(file, None, wrong, "give their numbers, counted from 1, or 'last'")
    if format in _CORPORA and (columns.has_conllu_names or columns.indices not in ((LAST,), (1,))):
        wrong = f"a word of the format {format} has one tag and no column {columns}"
        raise ReaderError.at(file, None, wrong, "ask for 'tag'")
