"""From bytes to lines of text."""

from collections.abc import Callable, Iterator

from linearcore.tagging.readers._error import ReaderError

BLOCK = 1 << 18
#: Bytes. Beyond it a file is no text with a word a line, and going on would fill the memory.
LONGEST_LINE = 1 << 20

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def text_lines(read: Callable[[int], bytes], name: str) -> Iterator[str]:
    """The lines of a UTF-8 text without their ends, \\n or \\r\\n. A byte-order mark at the start is passed over.

    Args:
        read: gives at most as many bytes as asked for, and none only at the end.
        name: the file, for messages.

    Raises:
        ReaderError: if it is no UTF-8, holds a NUL byte or a carriage return inside a line, or a line beyond
            `LONGEST_LINE`.

    Example:
        >>> import io
        >>> list(text_lines(io.BytesIO(b"one\\r\\ntwo").read1, "numbers.txt"))
        ['one', 'two']

    Time O(bytes), memory O(`BLOCK` + `LONGEST_LINE`).
    """
    number, rest, is_start = 0, b"", True
    while chunk := read(BLOCK):
        # Cut behind a line, where no character is in two halves.
        cut = chunk.rfind(b"\n") + 1
        if len(rest) + (chunk.find(b"\n") if cut else len(chunk)) > LONGEST_LINE:
            raise _too_long(rest + chunk, name, number + 1)
        if not cut:
            rest += chunk
            continue
        block, rest = rest + chunk[:cut], chunk[cut:]
        lines = _decoded(block, name, number, is_start).split("\n")
        lines.pop()  # What comes after the last \n, which is nothing.
        is_start = False
        yield from lines
        number += len(lines)
    if rest:
        last = _decoded(rest, name, number, is_start)
        if last:  # Nothing but a byte-order mark is no line.
            yield last


def _decoded(block: bytes, name: str, number: int, is_start: bool) -> str:
    """The block as text whose lines end in \\n; `number` lines come before it."""

    def error(place: int, wrong: str, advice: str) -> ReaderError:
        return ReaderError.at(name, number + block.count(b"\n", 0, place) + 1, wrong, advice)

    if is_start:
        if block.startswith(_UTF16):
            raise error(0, "the text is UTF-16", "save it as UTF-8")
        block = block.removeprefix(_BOM)
    if b"\0" in block:
        raise error(block.index(b"\0"), "a NUL byte, so this is no text", "pass a text file, or one in .xz, .gz or .zip")
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        if b"\r" in block:
            advice = "let lines end in \\n or \\r\\n"
            raise error(block.index(b"\r"), "a carriage return that ends no line", advice)
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as problem:
        wrong = f"byte 0x{block[problem.start]:02x} is no UTF-8"
        raise error(problem.start, wrong, "convert the text to UTF-8, for example by iconv -t UTF-8") from None


def _too_long(beginning: bytes, name: str, line: int) -> ReaderError:
    if b"\0" in beginning:
        return ReaderError.at(name, line, "a NUL byte, so this is no text", "pass a text file, or one in .xz, .gz or .zip")
    advice = "pass a text with one word a line, its lines ending in \\n or \\r\\n"
    return ReaderError.at(name, line, f"the line has more than {LONGEST_LINE:,} bytes", advice)
