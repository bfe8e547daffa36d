"""The one error of the readers."""


class ReaderError(ValueError):
    """A file that cannot be read as asked. Its text is `FILE:LINE: what is wrong; what to do`, FILE as the user gave it.

    Example:
        >>> print(ReaderError.at("dev.conllu", 7, "the form is empty", "write _ for a word without a form"))
        dev.conllu:7: the form is empty; write _ for a word without a form
    """

    @classmethod
    def at(cls, name: str, line: int | None, wrong: str, advice: str) -> "ReaderError":
        """The error for a place in a file.

        Args:
            name: the file, or the member of an archive, as `Source.name` gives it.
            line: counted from 1; None if the file as a whole is meant.
            wrong: what is wrong.
            advice: what to do.
        """
        place = name if line is None else f"{name}:{line}"
        return cls(f"{place}: {wrong}; {advice}")


def quote(text: str, longest: int = 40) -> str:
    """`text` in quotes for a message, cut so that a line of rubbish does not fill the screen."""
    return repr(text if len(text) <= longest else text[: longest - 1] + "…")
