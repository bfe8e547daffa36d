"""Runs of lines between blank lines, which is what sentences are in CoNLL-U and in column files."""

from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._error import ReaderError

#: Lines. Beyond it the blank lines between sentences are missing, and going on would fill the memory.
LONGEST_SENTENCE = 100_000


def blocks(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the first line, counted from 1, and the lines of each run without a blank one.

    Args:
        lines: of the file.
        name: the file, for messages.

    Raises:
        ReaderError: if a run has more than `LONGEST_SENTENCE` lines.

    Example:
        >>> list(blocks(["", "a", "b", " ", "", "c"], "letters"))
        [(2, ['a', 'b']), (6, ['c'])]
    """
    block: list[str] = []
    number = 0
    for number, line in enumerate(lines, 1):
        # Spaces alone are blank: editors leave them, and no word is made of them.
        if line and not line.isspace():
            block.append(line)
            if len(block) > LONGEST_SENTENCE:
                raise sentence_too_long(name, number - LONGEST_SENTENCE)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number - len(block) + 1, block


def sentence_too_long(
    name: str, line: int, what: str = "lines", advice: str = "put a blank line after each sentence"
) -> ReaderError:
    """The error for a sentence that never ends."""
    wrong = f"the sentence that begins here has more than {LONGEST_SENTENCE:,} {what}"
    return ReaderError.at(name, line, wrong, advice)


class Preamble:
    """Lines that belong to no sentence yet; they go before the next one, so that nothing is lost when it is written back."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.lines: list[str] = []
        self._first = 0

    def add(self, first: int, block: list[str]) -> None:
        """Keeps a block without words, whose first line has this number, and the blank line after it."""
        self._first = self._first if self.lines else first
        self.lines += [*block, ""]
        if len(self.lines) > LONGEST_SENTENCE:
            raise sentence_too_long(self._name, self._first)

    def before(self, first: int, block: list[str], rows: list[int]) -> tuple[int, list[str], list[int]]:
        """First line, lines and rows of a sentence with the kept lines before it; nothing is kept any more."""
        if not self.lines:
            return first, block, rows
        kept, self.lines = self.lines, []
        return self._first, kept + block, [len(kept) + row for row in rows]

    def require_none(self, has_sentences: bool) -> None:
        """Raises if lines are left at the end of a file. One without sentences is another matter."""
        if self.lines and has_sentences:
            wrong = "no sentence follows these lines, so they could not be written back"
            raise ReaderError.at(self._name, self._first, wrong, "remove them, or add the words")
