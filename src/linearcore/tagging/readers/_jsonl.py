"""JSON lines: one object per line with the list `tokens` and, where there are tags, a list of as many tags."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from linearcore._checks import complaint
from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES, sentence_too_long
from linearcore.tagging.readers._details import Details
from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._format import Format, ReadOptions, SentenceWriter
from linearcore.tagging.readers._sentence import Sentence, require_one_each
from linearcore.tagging.readers._tag_columns import LAST_NAMES

TOKENS = "tokens"
#: The key of the tags, unless `--tag` names another one.
TAGS = "tags"


class JSONLines(Format):
    """JSON lines, as the Hugging Face datasets library writes them: `{"tokens": ["A", "dog"], "tags": ["DET", "NOUN"]}`.

    `--tag` names the key of the tags; the default, "last", stands for `tags`. Blank lines are skipped. An object without
    words is written with an empty list of tags, and does not count in training and evaluation. All other keys are kept, in
    their order; a number such as 1e2 is written as Python writes it (100.0).
    """

    name = "jsonl"
    description = "JSON lines"
    output = "jsonl"
    details = frozenset({"confidences", "margin", "kbest"})
    file_names = re.compile(r".*\.(jsonl|ndjson)(\.\w+)?", re.IGNORECASE | re.DOTALL)

    def check_tag(self, tag: str, file: str) -> None:
        """Raises if `tag` is the key of the words."""
        tag_key(tag)

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields one sentence for each line.

        Example:
            >>> lines = ['{"id": 7, "tokens": ["A", "dog"], "tags": ["DET", "NOUN"]}']
            >>> [(sentence.words, sentence.tags) for sentence in JSONLines().read(lines, "x.jsonl", ReadOptions(tag="tags"))]
            [(['A', 'dog'], ['DET', 'NOUN'])]

        Time O(characters), memory O(longest line).
        """
        key = None if options.tag is None else tag_key(options.tag)
        for number, line in enumerate(lines, 1):
            if not line or line.isspace():
                continue
            values = _parse(line, name, number)
            words = _strings(values, TOKENS, name, number, "write the words of the sentence as a list of strings")
            if len(words) > MAX_SENTENCE_LINES:
                raise sentence_too_long(name, number, "words", "write one sentence per line")
            tags = None
            if key is not None:
                tags = _strings(values, key, name, number, "write one tag per word, or name another key with --tag")
                if len(tags) != len(words):
                    wrong = f"{len(words)} words in {TOKENS!r}, but {len(tags)} tags in {key!r}"
                    raise ReaderError.at(name, number, wrong, "write one tag per word")
                if not words:
                    continue
            yield Sentence(words, tags, [line], [], number, self.name)

    def columns(self, tag: str) -> str:
        """Returns "last", because an object has no columns."""
        return LAST_NAMES[0]

    def recognises(self, line: str) -> bool:
        """Whether the line is a JSON object or begins like one with a key."""
        line = line.strip()
        return line == "{}" or (line.startswith("{") and line[1:].lstrip().startswith('"'))

    def writer(self, tag: str | None) -> SentenceWriter:
        """Returns a function that writes an object per line; objects of JSON lines keep their other keys."""
        key = tag_key(tag or TAGS)

        def write(sentence: Sentence, tags: Sequence[str], details: Details | None = None) -> str:
            require_one_each(sentence.words, tags)
            values = json.loads(sentence.lines[0]) if sentence.format == self.name else {TOKENS: sentence.words}
            others = (details or Details()).to_json()
            if key in others:
                advice = "pass another key for the tags"
                raise ValueError(complaint("tag", f"be another key than that of the {key}", repr(key), advice))
            return dump({**values, key: list(tags), **others})

        return write


def tag_key(tag: str) -> str:
    """Returns the key of the tags for a value of `--tag`.

    Raises:
        ValueError: if it is the key of the words.
    """
    if tag == TOKENS:
        advice = "pass the key of the tags, for example tags"
        raise ValueError(complaint("tag", "be another key than that of the words", repr(tag), advice))
    return TAGS if tag == LAST_NAMES[0] else tag


def dump(values: dict[str, Any]) -> str:
    """Returns the line of an object, with its line end. Characters that UTF-8 does not have are escaped."""
    text = json.dumps(values, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(values)
    return text + "\n"


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
    """Returns the object of a line; raises if the line is not JSON that can be written again."""
    try:
        values = json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        wrong = f"this is not valid JSON ({error.msg.lower()} at character {error.colno})"
        raise ReaderError.at(name, number, wrong, "write one JSON object per line") from None
    except RecursionError:
        raise ReaderError.at(name, number, "the JSON is nested too deeply", "write a flat object") from None
    except ValueError as error:
        raise ReaderError.at(name, number, f"this JSON cannot be read ({error})", "correct the line") from None
    if isinstance(values, dict):
        return values
    kind = "a JSON array" if isinstance(values, list) else "a JSON value"
    raise ReaderError.at(name, number, f"{kind} instead of an object", 'write {"tokens": […]} on a line for each sentence')


def _strings(values: dict[str, Any], key: str, name: str, number: int, advice: str) -> list[str]:
    """Returns the list of strings of a key."""
    if key not in values:
        keys = ", ".join(map(quote, list(values)[:8])) or "none"
        raise ReaderError.at(name, number, f"the object has no key {key!r}; its keys: {keys}", advice)
    items = values[key]
    if not isinstance(items, list):
        raise ReaderError.at(name, number, f"{key!r} is not a list ({quote(json.dumps(items))})", advice)
    for item in items:
        if not isinstance(item, str):
            if key != TOKENS and isinstance(item, int):
                advice = "write the names of the tags, for example with the features of the dataset"
            raise ReaderError.at(name, number, f"{key!r} contains {quote(json.dumps(item))}, which is not a string", advice)
        if not item and key != TOKENS:
            raise ReaderError.at(name, number, f"{key!r} contains an empty tag", "write a tag, or _ for no tag")
        if not item.isascii() and any("\ud800" <= character <= "\udfff" for character in item):
            wrong = f"{key!r} contains {quote(item)}, which is not valid Unicode"
            raise ReaderError.at(name, number, wrong, "correct the escape \\ud8…")
    return items


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(quote(key) for key in keys if keys.count(key) > 1)} occurs twice")
    return values


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(number: str) -> float:
    if math.isinf(value := float(number)):
        raise ValueError(f"the number {quote(number)} is too large")
    return value
