"""Reads the sentences of a file in any supported format."""

import os
from collections.abc import Generator, Iterator
from contextlib import closing

from linearcore._checks import complaint, one_of
from linearcore.tagging.readers._detect import corpus_format, detect, members, refuse_markup
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._format import ReadOptions
from linearcore.tagging.readers._index import BY_NAME, FORMATS
from linearcore.tagging.readers._layout import Layout
from linearcore.tagging.readers._open import Source
from linearcore.tagging.readers._sentence import Sentence


def read_sentences(
    path: str | os.PathLike[str],
    tag: str | None = None,
    format: str = "auto",
    *,
    check_ids: bool = True,
    comments: bool | None = None,
    language: str | None = None,
    layout: Layout | None = None,
) -> Iterator[Sentence]:
    """Yields the sentences of a file; memory does not grow with the file.

    Args:
        path: a UTF-8 text, uncompressed or compressed as xz, gzip or zip (detected from the content); NLTK's zip files of
            the Penn Treebank sample and the Brown corpus; "-" for standard input.
        tag: the place of the tags; None reads no tags, for prediction. "last" is the last column of a column file, the key
            `tags` of JSON lines, and the tag of the Penn Treebank and the Brown corpus. CoNLL-U has column names, such as
            "upos" or "upos+feats" (`TagColumns.parse`), column files numbers from 1, JSON lines keys.
        format: one of `FORMATS`. "auto" detects all but "text" and "raw" from the content and the name.
        check_ids: require consecutive CoNLL-U ids and valid ranges. Use False for treebanks such as LASLA that repeat ids;
            wrong ids can also mean that lines are missing.
        comments: whether lines of a column file that start with "# " before the first word of a sentence are comments, if
            they have as many cells as a word; None refuses them. False if the file has no comments at all.
        language: language code for "raw"; None is "xx", any language.
        layout: the format that the file must have if `format` is "auto".

    Returns:
        An iterator. It opens the file at the first sentence and closes it after the last one or when it is closed.

    Raises:
        TypeError, ValueError, MissingExtraError: immediately, if an argument is not valid or spaCy is missing for "raw".
        ReaderError: during reading, if the file does not exist, is damaged, empty, binary or malformed, or has no tags.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "dogs.txt")
        ...     _ = path.write_text("A DET\\ndog NOUN\\n\\nSit VERB\\n")
        ...     print([(sentence.words, sentence.tags) for sentence in read_sentences(path, tag="last")])
        [(['A', 'dog'], ['DET', 'NOUN']), (['Sit'], ['VERB'])]

    Time O(characters), about one microsecond per word; memory O(longest sentence).
    """
    one_of("format", format, FORMATS)
    file = os.fspath(path)
    if not isinstance(file, str):
        raise TypeError(complaint("path", "be a string or a path", type(file).__name__, "decode it"))
    if tag is not None and not isinstance(tag, str):
        raise TypeError(complaint("tag", "be a string", type(tag).__name__, "name a column, for example 'upos'"))
    options = ReadOptions(tag, check_ids, comments, language)
    if format != "auto":
        BY_NAME[format].check(options, file)
    return _sentences(file, format, options, layout)


def _sentences(file: str, format: str, options: ReadOptions, layout: Layout | None) -> Iterator[Sentence]:
    has_sentence = has_tag = False
    with Source(file) as source, closing(_parse(source, format, options, layout)) as sentences:
        for sentence in sentences:
            has_sentence = True
            if not has_tag and sentence.tags is not None:
                # The tag of a word for which all columns are _ consists of _ and spaces.
                has_tag = any(tag.strip("_ ") for tag in sentence.tags)
            yield sentence
    if not has_sentence:
        raise ReaderError.at(file, None, "the file has no sentence", "pass a file that contains words")
    if options.tag is not None and not has_tag:
        wrong = f"column {options.tag} contains only _, so no word has a tag"
        raise ReaderError.at(file, None, wrong, "name a column that contains tags")


def _parse(source: Source, format: str, options: ReadOptions, layout: Layout | None) -> Generator[Sentence, None, None]:
    chosen = corpus_format(source) if format == "auto" else BY_NAME[format]
    for member in members(source, chosen):
        name = source.name(member)
        lines = refuse_markup(source.lines(member), name)
        if format == "auto":
            line = None
            if chosen is None:
                chosen, line, lines = detect(lines, name, source.file, member)
            if layout is not None:
                layout.require(chosen, line, name)
            chosen.check(options, source.file)
        assert chosen is not None  # Only an unknown format is None, and `detect` returns one.
        yield from chosen.read(lines, name, options)
