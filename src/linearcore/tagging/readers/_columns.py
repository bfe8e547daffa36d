"""Column files: one word per line, columns separated by tabs or spaces, a blank line after each sentence."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from linearcore._checks import complaint
from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES, Preamble, blocks, sentence_too_long
from linearcore.tagging.readers._cells import check_cell, replace_cells
from linearcore.tagging.readers._details import Details
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._format import Format, ReadOptions, SentenceWriter
from linearcore.tagging.readers._sentence import Sentence, require_one_each
from linearcore.tagging.readers._table import Table
from linearcore.tagging.readers._tag_columns import LAST_NAMES, TagColumns

_DOCSTART = "-DOCSTART-"


class Columns(Format):
    """Column files, such as CoNLL-2000, CoNLL-2003 and MultiCoNER. The first column holds the words."""

    name = "columns"
    description = "one word per line"
    output = "columns"
    details = frozenset({"confidences"})
    options = frozenset({"comments"})
    has_width = True

    def check_tag(self, tag: str, file: str) -> None:
        """Raises if `tag` has names of CoNLL-U columns."""
        if (columns := TagColumns.parse(tag)).has_conllu_names:
            wrong = f"the file is a column file, which has no column names such as {columns}"
            raise ReaderError.at(file, None, wrong, "pass column numbers, counted from 1, or 'last'")

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields the sentences of a column file."""
        columns = None if options.tag is None else TagColumns.parse(options.tag)
        return columns_file(lines, name, columns, options.comments)

    def writer(self, tag: str | None) -> SentenceWriter:
        """Returns a function that writes one word per line.

        In a sentence of a column file only the tags change: other columns, spaces and comments stay. Other sentences are
        written as `word<TAB>tag`.
        """
        columns = TagColumns.parse(tag or LAST_NAMES[0])
        if columns.has_conllu_names or 0 in columns.indices:
            must, advice = (
                "be column numbers from 2, or 'last', for a column file",
                "pass the output column, for example --tag 2",
            )
            raise ValueError(complaint("tag", must, columns, advice))

        def write(sentence: Sentence, tags: Sequence[str], details: Details | None = None) -> str:
            rows: Sequence[int] = sentence.rows
            if sentence.format == self.name:
                lines = sentence.tagged_lines(tags, columns)
            else:
                require_one_each(sentence.words, tags)
                # A word may contain spaces, which would be read as columns. The tab tells that it is one cell.
                lines = [
                    replace_cells(f"{check_cell('words', word)}\t_", columns.split(tag), columns)
                    for word, tag in zip(sentence.words, tags, strict=True)
                ]
                rows = range(len(lines))
            if details is not None:
                lines = details.add_to_columns(lines, rows)
            return "\n".join(lines) + "\n\n" if lines else ""

        return write


def columns_file(
    lines: Iterable[str], name: str, columns: TagColumns | None, comments: bool | None = None
) -> Iterator[Sentence]:
    """Yields the sentences of a column file. The first column holds the words.

    The first line that does not start with # determines the number of columns and whether tabs or spaces separate them.
    Lines that start with -DOCSTART- are not words; they are kept before the next sentence. A line that starts with # before
    the first word of a sentence is a comment if its number of cells is not the number of columns; comments are kept. If it
    starts with "# " and has this number of cells, `comments` must say what it is. All other lines are words.

    Args:
        lines: lines of the file.
        name: file name for messages.
        columns: the tag columns; None reads no tags, and then one column is enough.
        comments: whether a line that may be a comment or a word is a comment; None refuses such lines. If False, the file
            has no comments at all.

    Raises:
        ReaderError: if a line has another number of columns or another separator than the first line, a tag column is
            missing, a word or a tag is empty, or a line may be a comment or a word and `comments` is None.

    Example:
        >>> lines = ["# id 1", "A DET", "dog NOUN", "", "Sit VERB"]
        >>> for sentence in columns_file(lines, "dogs.txt", TagColumns.parse("last")):
        ...     print(sentence.line, sentence.words, sentence.tags)
        1 ['A', 'dog'] ['DET', 'NOUN']
        5 ['Sit'] ['VERB']

    Time O(characters), memory O(longest sentence).
    """
    stream = blocks(lines, name)
    table, held = _first_table(stream, name, comments)
    if table is None:
        return
    table.require(columns)
    preamble = Preamble(name)
    for first, block in chain(held, stream):
        rows = _word_rows(block, first, table, comments)
        if not rows:
            preamble.add(first, block)
            continue
        words, tags = table.read([block[row] for row in rows], columns, [first + row for row in rows])
        first, block, rows = preamble.before(first, block, rows)
        yield Sentence(words, tags, block, rows, first)
    preamble.require_none(has_sentences=True)


def _first_table(
    stream: Iterator[tuple[int, list[str]]], name: str, comments: bool | None
) -> tuple[Table | None, list[tuple[int, list[str]]]]:
    """Returns the table of the first line that is a word for sure, and all blocks up to the one that contains it."""
    held: list[tuple[int, list[str]]] = []
    not_words = (_DOCSTART,) if comments is False else (_DOCSTART, "#")
    num_lines = 0
    for first, block in stream:
        held.append((first, block))
        for row, line in enumerate(block):
            if not line.startswith(not_words):
                return Table(name, line, first + row), held
        num_lines += len(block)
        if num_lines > MAX_SENTENCE_LINES:
            raise sentence_too_long(name, held[0][0])
    return None, held


def _word_rows(block: list[str], first: int, table: Table, comments: bool | None) -> list[int]:
    """Returns the indices of the lines that are words."""
    start = 0
    while start < len(block) and (
        block[start].startswith(_DOCSTART)
        or (
            block[start].startswith("#")
            and comments is not False
            and table.is_comment(block[start], first + start, comments)
        )
    ):
        start += 1
    return [row for row in range(start, len(block)) if not block[row].startswith(_DOCSTART)]
