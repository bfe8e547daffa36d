"""CoNLL-U: ten columns, comments, word ranges and empty nodes. universaldependencies.org/format.html"""

import re
from collections.abc import Iterable, Iterator, Sequence

from linearcore._checks import complaint
from linearcore.tagging.readers._blocks import Preamble, blocks
from linearcore.tagging.readers._cells import check_cell, replace_cells
from linearcore.tagging.readers._details import Details
from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._format import Format, ReadOptions, SentenceWriter
from linearcore.tagging.readers._sentence import Sentence, require_one_each
from linearcore.tagging.readers._tag_columns import CONLLU_NAMES, LAST_NAMES, TagColumns

_WIDTH = len(CONLLU_NAMES)
_FORM = CONLLU_NAMES.index("form")
# The ids of most sentences; comparing tuples is ten times faster than parsing numbers.
_IDS = tuple(str(number) for number in range(1, 257))
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EMPTY = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
# Comments that the format defines.
_COMMENT = re.compile(r"#\s*((sent_id|text)\s*=|(newdoc|newpar)\b)")


class CoNLLU(Format):
    """CoNLL-U, the format of Universal Dependencies."""

    name = "conllu"
    description = "CoNLL-U"
    output = "conllu"
    details = frozenset({"confidences", "margin"})
    options = frozenset({"check_ids"})
    file_names = re.compile(r".*\.conllu(\.\w+)?", re.IGNORECASE | re.DOTALL)

    def check_tag(self, tag: str, file: str) -> None:
        """Raises if `tag` is not a column of CoNLL-U."""
        columns = TagColumns.parse(tag)
        if columns.has_last or min(columns.indices) <= _FORM or max(columns.indices) >= _WIDTH:
            advice = "name a column, for example upos, xpos or upos+feats"
            raise ReaderError.at(file, None, f"the file is CoNLL-U, which has no tag column {columns}", advice)

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields the sentences of a CoNLL-U file."""
        columns = None if options.tag is None else TagColumns.parse(options.tag)
        return conllu(lines, name, columns, options.check_ids)

    def columns(self, tag: str) -> str:
        """Returns the names of the columns."""
        return str(TagColumns.parse(tag).conllu_names())

    def recognises(self, line: str) -> bool:
        """Whether the line is a comment that CoNLL-U defines, or has ten cells and an id."""
        cells = line.split("\t")
        is_word = len(cells) == _WIDTH and any(kind.fullmatch(cells[0]) for kind in (_NUMBER, _RANGE, _EMPTY))
        return is_word or _COMMENT.match(line) is not None

    def writer(self, tag: str | None) -> SentenceWriter:
        """Returns a function that writes CoNLL-U.

        In a sentence of a CoNLL-U file only the tags change. Other sentences get ids, the words and the tags; all other
        cells are _.
        """
        columns = TagColumns.parse(tag or LAST_NAMES[0])
        if columns.has_last or min(columns.indices) <= _FORM or max(columns.indices) >= _WIDTH:
            advice = "pass the output column, for example --tag upos"
            raise ValueError(complaint("tag", "name a column of CoNLL-U after the form", columns, advice))

        def write(sentence: Sentence, tags: Sequence[str], details: Details | None = None) -> str:
            rows: Sequence[int] = sentence.rows
            if sentence.format == self.name:
                lines = sentence.tagged_lines(tags, columns)
            else:
                require_one_each(sentence.words, tags)
                blank = "\t_" * (_WIDTH - 2)
                lines = [
                    replace_cells(f"{number}\t{check_cell('words', word)}{blank}", columns.split(tag), columns)
                    for number, (word, tag) in enumerate(zip(sentence.words, tags, strict=True), 1)
                ]
                rows = range(len(lines))
            if details is not None:
                if details.confidences is not None and _WIDTH - 1 in columns.indices:
                    advice = "write the tags to another column, or write JSON lines"
                    raise ValueError(complaint("tag", "not be misc, the column of the confidences", columns, advice))
                lines = details.add_to_conllu(lines, rows)
            return "\n".join(lines) + "\n\n" if lines else ""

        return write


def conllu(lines: Iterable[str], name: str, columns: TagColumns | None, check_ids: bool = True) -> Iterator[Sentence]:
    """Yields the sentences of a CoNLL-U file.

    Args:
        lines: lines of the file.
        name: file name for messages.
        columns: the tag columns; None reads no tags.
        check_ids: require consecutive ids and valid ranges. If False, every line whose id is a number is a word.

    Raises:
        ReaderError: if a line does not have ten cells, ids are not 1, 2, 3, …, a range or an empty node is not valid, or a
            form or a tag is empty.

    Example:
        >>> text = ["# text = A dog", "1\\tA\\ta\\tDET" + "\\t_" * 6, "2\\tdog\\tdog\\tNOUN" + "\\t_" * 6]
        >>> for sentence in conllu(text, "dog.conllu", TagColumns.parse("upos")):
        ...     print(sentence.words, sentence.tags, sentence.rows)
        ['A', 'dog'] ['DET', 'NOUN'] [1, 2]

    Time O(characters), memory O(longest sentence).
    """
    preamble, has_sentences = Preamble(name), False
    for first, block in blocks(lines, name):
        head = 0
        while head < len(block) and block[head].startswith("#"):
            head += 1
        if head == len(block):
            preamble.add(first, block)
            continue
        rows = list(range(head, len(block)))
        cells = [line.split("\t") for line in (block[head:] if head else block)]
        by_column = list(zip(*cells, strict=False))
        if set(map(len, cells)) != {_WIDTH} or by_column[0] != _IDS[: len(cells)]:
            rows = _word_rows(block, head, name, first, check_ids)
            by_column = list(zip(*(cells[row - head] for row in rows), strict=True))
        words = list(by_column[_FORM])
        if "" in words:
            advice = "write the word, or _ for an unknown word"
            raise ReaderError.at(name, first + rows[words.index("")], "the form is empty", advice)
        tags = None if columns is None else columns.read(by_column, name, [first + row for row in rows])
        first, block, rows = preamble.before(first, block, rows)
        has_sentences = True
        yield Sentence(words, tags, block, rows, first, CoNLLU.name)
    preamble.require_none(has_sentences)


def _word_rows(block: list[str], head: int, name: str, first: int, check_ids: bool) -> list[int]:
    """Returns the rows of words in a sentence with ranges or empty nodes, and checks every line."""
    rows: list[int] = []
    range_end, num_empty = 0, 0  # Last word of the last range; number of empty nodes since the last word.
    for row in range(head, len(block)):
        line = block[row]
        if line.startswith("#"):  # A comment inside a sentence is not standard, but harmless.
            continue
        if line.count("\t") != _WIDTH - 1:
            wrong = f"{line.count(chr(9)) + 1} cells instead of {_WIDTH}"
            raise ReaderError.at(
                name, first + row, wrong, "separate the ten columns of CoNLL-U by tabs, or pass --format columns"
            )
        identifier = line[: line.index("\t")]
        if _NUMBER.fullmatch(identifier):
            if check_ids and int(identifier) != len(rows) + 1:
                wrong = f"id {identifier} instead of {len(rows) + 1}"
                raise ReaderError.at(
                    name, first + row, wrong, "number the words 1, 2, 3, …, or disable the check (--no-check-ids)"
                )
            rows.append(row)
            num_empty = 0
        elif match := _RANGE.fullmatch(identifier):
            start, end = int(match[1]), int(match[2])
            if check_ids and (start != len(rows) + 1 or end < start or start <= range_end):
                wrong = f"range {identifier} before word {len(rows) + 1}"
                raise ReaderError.at(name, first + row, wrong, "put a range before its first word, without overlap")
            range_end = end
        elif match := _EMPTY.fullmatch(identifier):
            if check_ids and (int(match[1]) != len(rows) or int(match[2]) != num_empty + 1):
                wrong = f"empty node {identifier} instead of {len(rows)}.{num_empty + 1}"
                raise ReaderError.at(name, first + row, wrong, "number the empty nodes after word 3 as 3.1, 3.2, …")
            num_empty += 1
        else:
            advice = "write a number, a range such as 1-2, or an empty node such as 1.1"
            raise ReaderError.at(name, first + row, f"{quote(identifier)} is not an id", advice)
    if check_ids and range_end > len(rows):
        wrong = f"a range ends at word {range_end}, but the sentence has {len(rows)} words"
        raise ReaderError.at(name, first, wrong, "end the range at a word of the sentence")
    if not rows:
        raise ReaderError.at(name, first + head, "the sentence has no words", "remove it, or add the words")
    return rows
