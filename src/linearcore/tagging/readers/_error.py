"""The exception class of the readers."""


class ReaderError(ValueError):
    """A file that cannot be read. The message is `FILE:LINE: what is wrong; what to do`.

    Example:
        >>> print(ReaderError.at("dev.conllu", 7, "the form is empty", "write _ for a word without a form"))
        dev.conllu:7: the form is empty; write _ for a word without a form
    """

    @classmethod
    def at(cls, name: str, line: int | None, wrong: str, advice: str) -> "ReaderError":
        """Returns the error for a line of a file.

        Args:
            name: the file, or the member of an archive, from `Source.name`.
            line: line number from 1; None if the error concerns the whole file.
            wrong: what is wrong.
            advice: what to do.
        """
        name = "standard input" if name == "-" else name
        place = name if line is None else f"{name}:{line}"
        return cls(f"{place}: {wrong}; {advice}")


def quote(text: str, max_length: int = 40) -> str:
    """Returns `text` in quotes, shortened to `max_length` characters."""
    return repr(text if len(text) <= max_length else text[: max_length - 1] + "…")
