"""Decodes bytes into lines of text."""

from collections.abc import Callable, Iterator

from linearcore.tagging.readers._error import ReaderError

BLOCK = 1 << 18
#: Maximum number of bytes of a line; more means that this is not a text file, and reading on would fill the memory.
MAX_LINE_BYTES = 1 << 20

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def text_lines(read: Callable[[int], bytes], name: str) -> Iterator[str]:
    """Yields the lines of a UTF-8 text without line ends (\\n or \\r\\n). A byte-order mark at the start is skipped.

    Args:
        read: returns at most the given number of bytes, and none only at the end.
        name: file name for messages.

    Raises:
        ReaderError: if the text is not UTF-8, contains a NUL byte or a carriage return inside a line, or has a line of more
            than `MAX_LINE_BYTES`.

    Example:
        >>> import io
        >>> list(text_lines(io.BytesIO(b"one\\r\\ntwo").read1, "numbers.txt"))
        ['one', 'two']

    Time O(bytes), memory O(`BLOCK` + `MAX_LINE_BYTES`).
    """
    number, rest, is_start = 0, b"", True
    while chunk := read(BLOCK):
        # Cut after a line end, so no multi-byte character is split.
        cut = chunk.rfind(b"\n") + 1
        if len(rest) + (chunk.find(b"\n") if cut else len(chunk)) > MAX_LINE_BYTES:
            raise _too_long(rest + chunk, name, number + 1)
        if not cut:
            rest += chunk
            continue
        block, rest = rest + chunk[:cut], chunk[cut:]
        lines = _decode(block, name, number, is_start).split("\n")
        lines.pop()  # The empty string after the last \n.
        is_start = False
        yield from lines
        number += len(lines)
    if rest:
        last = _decode(rest, name, number, is_start)
        if last:  # Empty if there was only a byte-order mark.
            yield last


def _decode(block: bytes, name: str, number: int, is_start: bool) -> str:
    """Returns the block as text with line ends \\n; `number` is the number of lines before it."""

    def error(position: int, wrong: str, advice: str) -> ReaderError:
        return ReaderError.at(name, number + block.count(b"\n", 0, position) + 1, wrong, advice)

    if is_start:
        if block.startswith(_UTF16):
            raise error(0, "the text is UTF-16", "save it as UTF-8")
        block = block.removeprefix(_BOM)
    if b"\0" in block:
        raise error(
            block.index(b"\0"), "a NUL byte, so this is not text", "pass a text file, or one compressed as .xz, .gz or .zip"
        )
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        if b"\r" in block:
            advice = "end lines with \\n or \\r\\n"
            raise error(block.index(b"\r"), "a carriage return inside a line", advice)
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as problem:
        wrong = f"byte 0x{block[problem.start]:02x} is not valid UTF-8"
        raise error(problem.start, wrong, "convert the text to UTF-8, for example with iconv -t UTF-8") from None


def _too_long(beginning: bytes, name: str, line: int) -> ReaderError:
    if b"\0" in beginning:
        return ReaderError.at(
            name, line, "a NUL byte, so this is not text", "pass a text file, or one compressed as .xz, .gz or .zip"
        )
    advice = "break it into shorter lines, which end with \\n or \\r\\n"
    return ReaderError.at(name, line, f"the line has more than {MAX_LINE_BYTES:,} bytes", advice)
