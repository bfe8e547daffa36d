"""Words and tags of the training sentences, and their numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from linearcore._checks import complaint

#: The tag of a gold label that training has never seen; it equals no prediction.
UNSEEN = -1


@dataclass(frozen=True)
class Vocabulary:
    """What the training sentences hold.

    Attributes:
        words: distinct words, most frequent first.
        counts: how often each occurs.
        tags: distinct tags, in the order of their first occurrence; a tag's number is its place here.
    """

    words: list[str]
    counts: list[int]
    tags: list[str]

    @classmethod
    def of(cls, sentences: Iterable[tuple[Sequence[str], Sequence[str]]]) -> "Vocabulary":
        """That of sentences given as (words, tags)."""
        words: Counter[str] = Counter()
        tags: dict[str, None] = {}
        for own_words, own_tags in sentences:
            words.update(own_words)
            tags.update(dict.fromkeys(own_tags))
        # Sorted by hand, so that equal counts have an order that does not hang on the order of sentences.
        ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))
        return cls([word for word, _ in ranked], [count for _, count in ranked], list(tags))

    def inflated(self, size: int, parts: int = 1) -> "Vocabulary":
        """The same with tags that never occur, until there are `size`: the paper's way to many tags.

        Args:
            size: the number of tags in the end.
            parts: how many columns a tag has, which is as many words.

        Raises:
            ValueError: if there are more than `size` already.
        """
        if size < len(self.tags):
            advice = "name the number of tags that there should be in the end"
            raise ValueError(complaint("inflate", f"be at least {len(self.tags)}, the tags in the data", size, advice))
        taken, number = set(self.tags), 0
        extra: list[str] = []
        while len(self.tags) + len(extra) < size:
            number += 1
            name = " ".join([f"never-{number:04d}"] * parts)
            if name not in taken:
                extra.append(name)
        return Vocabulary(self.words, self.counts, [*self.tags, *extra])

    @cached_property
    def word_numbers(self) -> dict[str, int]:
        """From a word to its place."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def tag_numbers(self) -> dict[str, int]:
        """From a tag to its number."""
        return {tag: number for number, tag in enumerate(self.tags)}

    def encode(self, tags: Sequence[str]) -> list[int]:
        """Tags as numbers, `UNSEEN` for those that training has not."""
        return [self.tag_numbers.get(tag, UNSEEN) for tag in tags]

    def to_json(self) -> dict[str, Any]:
        """As JSON values, which `from_json` takes."""
        return {"words": self.words, "counts": self.counts, "tags": self.tags}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Vocabulary":
        """What `to_json` gave."""
        return cls(value["words"], value["counts"], value["tags"])
