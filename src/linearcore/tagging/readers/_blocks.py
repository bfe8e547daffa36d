"""Splits lines at blank lines, which separate sentences in CoNLL-U and in column files."""

from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._error import ReaderError

#: Maximum number of lines of a sentence; more means that blank lines are missing, and reading on would fill the memory.
MAX_SENTENCE_LINES = 100_000


def blocks(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yields, for each run of non-blank lines, the number of its first line, counted from 1, and the lines.

    Args:
        lines: lines of the file.
        name: file name for messages.

    Raises:
        ReaderError: if a run has more than `MAX_SENTENCE_LINES` lines.

    Example:
        >>> list(blocks(["", "a", "b", " ", "", "c"], "letters"))
        [(2, ['a', 'b']), (6, ['c'])]
    """
    block: list[str] = []
    number = 0
    for number, line in enumerate(lines, 1):
        # A line of spaces is blank, too: a word never consists of spaces.
        if line and not line.isspace():
            block.append(line)
            if len(block) > MAX_SENTENCE_LINES:
                raise sentence_too_long(name, number - MAX_SENTENCE_LINES)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number - len(block) + 1, block


def sentence_too_long(
    name: str, line: int, what: str = "lines", advice: str = "put a blank line after each sentence"
) -> ReaderError:
    """Returns the error for a sentence that does not end."""
    wrong = f"the sentence that starts here has more than {MAX_SENTENCE_LINES:,} {what}"
    return ReaderError.at(name, line, wrong, advice)


class Preamble:
    """Lines before the first word of a sentence, such as comments; they are kept and written before the next sentence."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.lines: list[str] = []
        self._first_number = 0

    def add(self, first: int, block: list[str]) -> None:
        """Adds a block without words, whose first line has number `first`, and the blank line after it."""
        self._first_number = self._first_number if self.lines else first
        self.lines += [*block, ""]
        if len(self.lines) > MAX_SENTENCE_LINES:
            raise sentence_too_long(self._name, self._first_number)

    def before(self, first: int, block: list[str], rows: list[int]) -> tuple[int, list[str], list[int]]:
        """Returns first line number, lines and word rows of a sentence with the stored lines before it, and clears them."""
        if not self.lines:
            return first, block, rows
        preamble, self.lines = self.lines, []
        return self._first_number, preamble + block, [len(preamble) + row for row in rows]

    def require_none(self, has_sentences: bool) -> None:
        """Raises if lines are left at the end of a file that has sentences."""
        if self.lines and has_sentences:
            wrong = "no sentence follows these lines, so they cannot be written"
            raise ReaderError.at(self._name, self._first_number, wrong, "remove them, or add the words")
