"""Reads the sentences of a file in any supported format."""

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
    """Yields the sentences of a file; memory does not grow with the file.

    Args:
        path: a UTF-8 text, uncompressed or compressed as xz, gzip or zip (detected from the content); NLTK's zip files of
            the Penn Treebank sample and the Brown corpus; "-" for standard input.
        tag: the tag columns, in the syntax of `TagColumns.parse`. None reads no tags, for prediction. "tag" (or "last") is
            the last column of a column file, and the tag of the Penn Treebank and the Brown corpus. For CoNLL-U name a
            column, such as "upos", "xpos" or "upos+feats".
        format: "conllu", "columns", "penn", "brown", or "auto", which detects the format from the content and the name.
        check_ids: require consecutive CoNLL-U ids and valid ranges. Use False for treebanks such as LASLA that repeat ids;
            wrong ids can also mean that lines are missing.

    Returns:
        An iterator. It opens the file at the first sentence and closes it after the last one or when it is closed.

    Raises:
        TypeError, ValueError: immediately, if `tag` or `format` is not valid.
        ReaderError: during reading, if the file does not exist, is damaged, empty, binary or malformed, or has no tags. A
            tag column that contains only _ is detected at the end of the file.

    Example:
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "dogs.txt")
        >>> _ = path.write_text("A DET\\ndog NOUN\\n\\nSit VERB\\n")
        >>> [(sentence.words, sentence.tags) for sentence in read_sentences(path, tag="last")]
        [(['A', 'dog'], ['DET', 'NOUN']), (['Sit'], ['VERB'])]
        >>> folder.cleanup()

    Time O(characters), about one microsecond per word; memory O(longest sentence).
    """
    one_of("format", format, FORMATS)
    file = os.fspath(path)
    if not isinstance(file, str):
        raise TypeError(complaint("path", "be a string or a path", type(file).__name__, "decode it"))
    columns = None if tag is None else TagColumns.parse(tag)
    if format != "auto":
        _check_columns(file, columns, format)
    return _sentences(file, columns, format, check_ids)


def _sentences(file: str, columns: TagColumns | None, format: str, check_ids: bool) -> Iterator[Sentence]:
    has_sentence = has_tag = False
    with Source(file) as source, closing(_parse(source, columns, format, check_ids)) as sentences:
        for sentence in sentences:
            has_sentence = True
            if not has_tag and columns is not None and sentence.tags is not None:
                has_tag = any(tag != columns.empty_tag for tag in sentence.tags)
            yield sentence
    if not has_sentence:
        raise ReaderError.at(file, None, "the file has no sentence", "pass a file with one word per line")
    if columns is not None and not has_tag:
        wrong = f"column {columns} contains only _, so no word has a tag"
        raise ReaderError.at(file, None, wrong, "name a column that contains tags")


def _parse(source: Source, columns: TagColumns | None, format: str, check_ids: bool) -> Generator[Sentence, None, None]:
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
    """Raises if the format does not have these columns."""
    if columns is None:
        return
    if format == "conllu" and (columns.has_last or max(columns.indices) >= len(CONLLU_NAMES)):
        advice = "name a column, for example upos, xpos or upos+feats"
        raise ReaderError.at(file, None, f"the file is CoNLL-U, which has no column {columns}", advice)
    if format == "columns" and columns.has_conllu_names:
        wrong = f"the file is a column file, which has no column names such as {columns}"
        raise ReaderError.at(file, None, wrong, "pass column numbers, counted from 1, or 'last'")
    if format in _CORPORA and (columns.has_conllu_names or columns.indices not in ((LAST,), (1,))):
        wrong = f"words in the format {format} have one tag, and there is no column {columns}"
        raise ReaderError.at(file, None, wrong, "pass 'tag'")
