"""Converts the sentences that users pass to lists of words and tags, and refuses everything else in one line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from linearcore._checks import complaint
from linearcore.tagging.readers import Sentence

_WORDS_KEY, _TAGS_KEY = "tokens", "tags"
_SPLIT = "split it into words, for example text.split()"
#: What a sentence without tags may be, for error messages.
_FORMS = f"pass a list of words, or a dict with {_WORDS_KEY!r}"
_TAGGED_FORMS = f"pass a pair (words, tags), or a dict with {_WORDS_KEY!r} and {_TAGS_KEY!r}"


def to_words(name: str, sentence: Any, where: str = "the sentence") -> list[str]:
    """Returns the words of one sentence.

    Args:
        name: the argument, for error messages.
        sentence: any iterable of strings, such as a list, a tuple, a generator or a NumPy array; a dict with "tokens"; or a
            `linearcore.tagging.readers.Sentence`. It may be empty.
        where: the sentence in error messages, for example "sentence 3".

    Raises:
        TypeError: if it is something else.

    Example:
        >>> to_words("words", (word for word in ("a", "dog")))
        ['a', 'dog']
        >>> to_words("words", {"tokens": ["a", "dog"], "id": 7})
        ['a', 'dog']
    """
    if isinstance(sentence, Sentence):
        return sentence.words
    if isinstance(sentence, Mapping):
        sentence = _entry(name, sentence, _WORDS_KEY, where, _FORMS)
    return _strings(name, sentence, "word", where, _FORMS)


def to_sentences(name: str, sentences: Any) -> Iterator[list[str]]:
    """Returns an iterator over the words of each sentence; a sentence is what `to_words` accepts.

    Raises:
        TypeError: if `sentences` is one sentence; while iterating, if a sentence or a word is not what it should be. The
            message has their indices.
    """
    numbered = enumerate(_iterable(name, sentences))
    return (to_words(name, sentence, f"sentence {index}") for index, sentence in numbered)


def to_tagged_sentences(name: str, sentences: Any) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the words and tags of each sentence.

    Args:
        name: the argument, for error messages.
        sentences: pairs (words, tags), dicts with "tokens" and "tags", or `linearcore.tagging.readers.Sentence` with tags.

    Raises:
        TypeError: if a sentence, a word or a tag is something else; the message has their indices.
        ValueError: if the numbers of words and tags of a sentence differ.

    Example:
        >>> list(to_tagged_sentences("dev", [(("a", "dog"), ("DET", "NOUN")), {"tokens": ["runs"], "tags": ["VERB"]}]))
        [(['a', 'dog'], ['DET', 'NOUN']), (['runs'], ['VERB'])]
    """
    for index, sentence in enumerate(_iterable(name, sentences)):
        where = f"sentence {index}"
        given_words, given_tags = _split(name, sentence, where)
        words = _strings(name, given_words, "word", where, _TAGGED_FORMS)
        tags = _strings(name, given_tags, "tag", where, _TAGGED_FORMS)
        if len(words) != len(tags):
            got = f"{len(words)} words and {len(tags)} tags in {where}"
            raise ValueError(complaint(name, "have a tag for each word", got, "correct this sentence"))
        yield words, tags


def training_sentences(name: str, sentences: Any) -> list[tuple[list[str], list[str]]]:
    """Returns the sentences of `to_tagged_sentences` as a list that has at least one word.

    Raises:
        TypeError, ValueError: as in `to_tagged_sentences`, and if there are no words.
    """
    pairs = list(to_tagged_sentences(name, sentences))
    if not any(words for words, _ in pairs):
        raise ValueError(complaint(name, "have words", "none", "pass tagged sentences"))
    return pairs


def _iterable(name: str, sentences: Any) -> Iterable[Any]:
    """Returns `sentences`; raises if it is a single sentence or not iterable."""
    if isinstance(sentences, str | bytes):
        raise TypeError(complaint(name, "be a list of sentences", _describe(sentences), _SPLIT))
    if isinstance(sentences, Mapping | Sentence) or not isinstance(sentences, Iterable):
        raise TypeError(complaint(name, "be a list of sentences", _describe(sentences), "put one sentence into a list"))
    return sentences


def _split(name: str, sentence: Any, where: str) -> tuple[Any, Any]:
    """Returns what the caller gave as words and as tags."""
    if isinstance(sentence, Sentence):
        if sentence.tags is None:
            raise ValueError(complaint(name, "have tags", f"none in {where}", "read the file with a tag column"))
        return sentence.words, sentence.tags
    if isinstance(sentence, Mapping):
        words, tags = (_entry(name, sentence, key, where, _TAGGED_FORMS) for key in (_WORDS_KEY, _TAGS_KEY))
        return words, tags
    is_pair = isinstance(sentence, Sequence) and not isinstance(sentence, str | bytes) and len(sentence) == 2
    # [("a", "DET"), ("dog", "NOUN")] has two items as well, but they are not words and tags.
    has_word_tag_pairs = isinstance(sentence, list) and any(isinstance(item, tuple) for item in sentence)
    if is_pair and not has_word_tag_pairs:
        return sentence[0], sentence[1]
    advice = "convert it with words, tags = zip(*sentence)" if has_word_tag_pairs else _TAGGED_FORMS
    got = "a list of (word, tag) pairs" if has_word_tag_pairs else _describe(sentence)
    raise TypeError(complaint(name, "be pairs (words, tags)", f"{got} as {where}", advice))


def _entry(name: str, sentence: Mapping[Any, Any], key: str, where: str, advice: str) -> Any:
    if key not in sentence:
        got = f"only the keys {', '.join(map(repr, sentence))}" if sentence else "an empty dict"
        raise TypeError(complaint(name, f"have the key {key!r} in a dict", f"{got} in {where}", advice))
    return sentence[key]


def _strings(name: str, items: Any, kind: str, where: str, advice: str) -> list[str]:
    """Returns words or tags as a list of strings; `kind` is "word" or "tag"."""
    if isinstance(items, str | bytes):
        remedy = _SPLIT if kind == "word" else advice
        raise TypeError(complaint(name, f"have {kind}s in a list", f"{_describe(items)} as {where}", remedy))
    # A NumPy array without dimensions is iterable by its type, but cannot be iterated.
    if not isinstance(items, Iterable) or getattr(items, "ndim", 1) == 0:
        raise TypeError(complaint(name, f"have {kind}s in a list", f"{_describe(items)} as {where}", advice))
    strings = items if isinstance(items, list) else list(items)
    if all(type(item) is str for item in strings):
        return strings
    for index, item in enumerate(strings):
        if not isinstance(item, str):
            is_nested = isinstance(item, list | tuple) and kind == "word" and advice == _FORMS
            remedy = "pass words only, and several sentences to `tag_all`" if is_nested else f"convert every {kind} to str"
            got = f"{_describe(item)} as {kind} {index} of {where}"
            raise TypeError(complaint(name, f"hold strings as {kind}s", got, remedy))
    return [str(item) for item in strings]  # Subclasses such as numpy.str_.


def _describe(item: Any) -> str:
    """Returns a short description for error messages."""
    if isinstance(item, str | bytes):
        text = repr(item)
        kind = "string" if isinstance(item, str) else "bytes"
        return f"the {kind} {text if len(text) <= 40 else text[:37] + '...'}"
    return repr(item) if item is None or isinstance(item, bool | int | float) else f"an object of type {type(item).__name__}"
