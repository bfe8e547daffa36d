"""Running text, which spaCy splits into words and sentences."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from importlib.util import find_spec
from itertools import chain
from textwrap import shorten
from typing import Any, cast

from linearcore._checks import complaint
from linearcore._extras import MissingExtraError
from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES, sentence_too_long
from linearcore.tagging.readers._format import Format, ReadOptions
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._text import refuse_tags

ANY_LANGUAGE = "xx"
_CODE = re.compile("[a-z]{2,3}")
_LONG_SENTENCE = 1000

#: Returns, for each sentence of a text, the index of its first character and its words.
Splitter = Callable[[str], list[tuple[int, list[str]]]]


class Raw(Format):
    """Running text, split into words and sentences by spaCy's rules; no trained model is used or downloaded.

    Words are the tokens of `spacy.blank(language)`. A sentence ends where spaCy's `sentencizer` finds ".", "!", "?" or a
    similar character of another script as a token, followed by a word. Abbreviations that the language has no rule for end a
    sentence, too. A blank line ends a sentence; a single line end does not. Spaces are not words. Text that needs exact
    boundaries should be split beforehand, see `text`.

    A sentence is yielded when the next one has begun, or at a blank line; memory does not grow with the file.
    """

    name = "raw"
    description = "running text"
    output = "columns"
    options = frozenset({"language"})

    def check_tag(self, tag: str, file: str) -> None:
        """Raises, because text has no tags."""
        refuse_tags(tag, self.name, file)

    def check(self, options: ReadOptions, file: str) -> None:
        """Raises if spaCy is missing or does not know the language."""
        super().check(options, file)
        make_splitter(options.language)

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields the sentences of a text.

        Time O(characters), memory O(longest sentence + longest line).
        """
        return split_text(lines, name, make_splitter(options.language))


def split_text(lines: Iterable[str], name: str, split: Splitter) -> Iterator[Sentence]:
    """Yields the sentences of a text, as `split` splits its paragraphs; a paragraph ends at a blank line.

    Args:
        lines: lines of the file.
        name: file name for messages.
        split: returns the start and the words of each sentence. What follows a sentence must not change the ones before it.

    Raises:
        ReaderError: if a sentence does not end.

    Example:
        >>> split = lambda text: [(match.start(), match[0].split()) for match in re.finditer(r"[^.]+\\.?", text)]
        >>> [(sentence.line, sentence.words) for sentence in split_text(["Cats sleep.", "So do", "I"], "cats.txt", split)]
        [(1, ['Cats', 'sleep.']), (1, ['So', 'do', 'I'])]
    """
    # The beginning of a sentence that may continue in the next line, and its length when it was split the last time.
    text, split_length, first = "", 0, 1
    for number, line in enumerate(chain(lines, [""]), 1):
        addition = " ".join(line.split())
        if addition:
            text, first = (f"{text} {addition}", first) if text else (addition, number)
            # A long sentence is split again only when it has doubled, so the time is linear.
            if split_length > _LONG_SENTENCE and len(text) < 2 * split_length:
                continue
        if not text:
            continue
        sentences = split(text)
        for _, words in sentences[:-1] if addition else sentences:
            yield Sentence(words, None, [], [], first, Raw.name)
        start, words = sentences[-1]
        if len(words) > MAX_SENTENCE_LINES:
            raise sentence_too_long(name, first, "words", "end sentences by a full stop or a blank line")
        text = text[start:] if addition else ""
        split_length = len(text)


def make_splitter(language: str | None) -> Splitter:
    """Returns a function that splits a text by spaCy's rules for a language; None is any language.

    Raises:
        MissingExtraError: if spaCy, or a package that it needs for this language, is not installed.
        ValueError: if spaCy does not know the language.
    """
    if find_spec("spacy") is None:
        raise MissingExtraError("--format raw requires spaCy, which is not installed; run pip install 'spacy>=3.8'")
    import spacy

    language = ANY_LANGUAGE if language is None else language

    try:
        if not _CODE.fullmatch(language):
            raise ImportError
        spacy.util.get_lang_class(language)
    except ImportError:
        advice = f"pass a code that spaCy knows, for example en, de or {ANY_LANGUAGE} (any language)"
        raise ValueError(complaint("language", "be a language code", repr(language), advice)) from None
    try:
        pipeline = spacy.blank(language)
    except ImportError as error:
        reason = shorten(str(error), 200, placeholder=" …")
        raise MissingExtraError(f"spaCy requires another package for the language {language!r}: {reason}") from None
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 2**31
    # Without it spaCy would keep every word of the file in memory.
    memory_zone = cast(Callable[[], AbstractContextManager[Any]], pipeline.memory_zone)

    def split(text: str) -> list[tuple[int, list[str]]]:
        with memory_zone():
            return [(part.start_char, [token.text for token in part]) for part in pipeline(text).sents]

    return split
