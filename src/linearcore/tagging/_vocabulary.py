"""Words and tags of the training sentences."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from linearcore._checks import complaint

#: Index of a gold tag that does not occur in the training data; it differs from every prediction.
UNSEEN = -1


@dataclass(frozen=True)
class Vocabulary:
    """Words and tags of the training sentences.

    Attributes:
        words: distinct words, the most frequent first.
        counts: number of occurrences of each word.
        tags: distinct tags, in the order of their first occurrence; the index of a tag is its position in this list.
        unseen: those of the tags that do not occur in the sentences, but can be predicted (`compose`).
    """

    words: list[str]
    counts: list[int]
    tags: list[str]
    unseen: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, sentences: Iterable[tuple[Sequence[str], Sequence[str]]]) -> "Vocabulary":
        """Returns the vocabulary of sentences given as (words, tags)."""
        word_counts: Counter[str] = Counter()
        all_tags: dict[str, None] = {}
        for words, tags in sentences:
            word_counts.update(words)
            all_tags.update(dict.fromkeys(tags))
        # Ties are broken by the word, so the order of words does not depend on the order of sentences.
        ranked = sorted(word_counts.items(), key=lambda item: (-item[1], item[0]))
        return cls([word for word, _ in ranked], [count for _, count in ranked], list(all_tags))

    def inflate(self, size: int, num_columns: int = 1) -> "Vocabulary":
        """Returns a copy padded to `size` tags with tags that never occur, as in the paper's experiment.

        Args:
            size: the new number of tags.
            num_columns: number of columns that form a tag, and so of space-separated parts of each new tag.

        Raises:
            ValueError: if there are more than `size` tags already.
        """
        if size < len(self.tags):
            advice = "pass the total number of tags"
            raise ValueError(
                complaint("inflate", f"be at least {len(self.tags)}, the number of tags in the data", size, advice)
            )
        existing, number = set(self.tags), 0
        extra: list[str] = []
        while len(self.tags) + len(extra) < size:
            number += 1
            name = " ".join([f"never-{number:04d}"] * num_columns)
            if name not in existing:
                extra.append(name)
        return Vocabulary(self.words, self.counts, [*self.tags, *extra])

    def extend(self, other: "Vocabulary") -> "Vocabulary":
        """Returns this vocabulary with the words and tags of another after its own, and the sums of the counts.

        Example:
            >>> Vocabulary(["a", "cat"], [3, 1], ["DET"]).extend(Vocabulary(["dog", "a"], [2, 1], ["DET", "NOUN"]))
            Vocabulary(words=['a', 'cat', 'dog'], counts=[4, 1, 2], tags=['DET', 'NOUN'], unseen=[])
        """
        counts = dict(zip(self.words, self.counts, strict=True))
        for word, count in zip(other.words, other.counts, strict=True):
            counts[word] = counts.get(word, 0) + count
        tags = dict.fromkeys([*self.tags, *other.tags])
        unseen = [tag for tag in self.unseen if tag not in other.tag_numbers]
        return Vocabulary(list(counts), list(counts.values()), list(tags), unseen)

    def with_unseen(self, tags: Sequence[str]) -> "Vocabulary":
        """Returns a copy with more tags that do not occur in the sentences."""
        return Vocabulary(self.words, self.counts, [*self.tags, *tags], [*self.unseen, *tags])

    @cached_property
    def seen_tags(self) -> frozenset[str]:
        """The tags that occur in the sentences."""
        return frozenset(self.tags).difference(self.unseen)

    @cached_property
    def word_numbers(self) -> dict[str, int]:
        """Index of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def tag_numbers(self) -> dict[str, int]:
        """Index of each tag."""
        return {tag: number for number, tag in enumerate(self.tags)}

    def encode(self, tags: Sequence[str]) -> list[int]:
        """Returns the index of each tag, `UNSEEN` for tags that do not occur in the training data."""
        return [self.tag_numbers.get(tag, UNSEEN) for tag in tags]

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values for `from_json`."""
        values: dict[str, Any] = {"words": self.words, "counts": self.counts, "tags": self.tags}
        return values | ({"unseen": self.unseen} if self.unseen else {})

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Vocabulary":
        """Returns the vocabulary from the values of `to_json`."""
        return cls(value["words"], value["counts"], value["tags"], value.get("unseen", []))
