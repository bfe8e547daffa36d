"""Hard constraints on tag sequences: allowed transitions, first tags and last tags."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint, shape
from linearcore.structures._chain import Chain, Sites


# Equality is identity, since comparing tensors gives a tensor and not a boolean.
@dataclass(frozen=True, eq=False)
class Constraints:
    """Allowed transitions, first tags and last tags. `bio`, `bioes` and `bmes` build them from tag names.

        y satisfies them  ⇔  start[y_1] and transitions[y_{j−1}, y_j] for all j > 1 and end[y_L]

    Do not modify the tensors afterwards, since results of `has_path` are cached.

    Args:
        transitions: (|Y|, |Y|) booleans; entry [i, k] is True if tag k may follow tag i.
        start: (|Y|,) booleans: the tag may be the first.
        end: (|Y|,) booleans: the tag may be the last.

    Raises:
        TypeError: if an argument is not a boolean tensor.
        ValueError: if the shapes do not fit, or if no sequence of any length satisfies the constraints.

    Example:
        >>> constraints = Constraints.forbid(2, pairs=[(0, 0), (1, 1)], start=[1], end=[1])
        >>> [length for length in range(1, 8) if constraints.has_path(length)]
        [1, 3, 5, 7]

    Time O(|Y|²) at construction, which synchronises with the GPU if the tensors are there.
    """

    transitions: Tensor
    start: Tensor
    end: Tensor

    def __post_init__(self) -> None:
        advice = "True means allowed; Constraints.forbid builds the tensors from lists"
        for name in ("transitions", "start", "end"):
            mask = getattr(self, name)
            if not isinstance(mask, Tensor):
                raise TypeError(complaint(name, "be a torch tensor", type(mask).__name__, advice))
            if mask.dtype != torch.bool:
                raise TypeError(complaint(name, "be boolean", mask.dtype, advice))
        if self.transitions.dim() != 2 or self.transitions.shape[0] != self.transitions.shape[1]:
            got = tuple(self.transitions.shape)
            raise ValueError(
                complaint("transitions", "have shape (num_tags, num_tags)", got, "entry [i, j] allows tag j after tag i")
            )
        for name in ("start", "end"):
            shape(name, getattr(self, name), (self.num_tags,), "pass one entry per tag, as many as `transitions` has rows")
        # Cache of `has_path`: the empty sequence always exists, and length 1 can end in any allowed first tag.
        object.__setattr__(self, "_path_cache", ((True,), self.start.cpu()))
        self._require_a_path()

    def _require_a_path(self) -> None:
        transitions, end = self.transitions.cpu(), self.end.cpu()
        reached = new_tags = self.start.cpu()
        while bool(new_tags.any()):  # Every tag is new once, so all steps together read each transition once.
            new_tags = transitions[new_tags].any(0) & ~reached
            reached = reached | new_tags
        if not bool((reached & end).any()):
            got = f"none from {int(self.start.sum())} allowed first tags to {int(end.sum())} allowed last tags"
            advice = "allow a first tag, a last tag, and the transitions between them"
            raise ValueError(complaint("constraints", "allow at least one sequence", got, advice))

    @classmethod
    def forbid(
        cls,
        num_tags: int,
        pairs: Iterable[tuple[int, int]] = (),
        start: Iterable[int] = (),
        end: Iterable[int] = (),
    ) -> "Constraints":
        """Creates constraints that allow everything except the listed pairs and tags.

        Args:
            num_tags: |Y|.
            pairs: forbidden transitions (a, b): b must not follow a.
            start: tags that must not be first.
            end: tags that must not be last.

        Raises:
            TypeError: if a tag is not an integer, or an item of `pairs` is not a pair.
            ValueError: if a tag is not in [0, num_tags), or if no sequence is allowed.

        Example:
            >>> Constraints.forbid(3, pairs=[(0, 2)], start=[2]).transitions.long()
            tensor([[1, 1, 0],
                    [1, 1, 1],
                    [1, 1, 1]])
        """
        size = _integer("num_tags", num_tags, "pass the number of tags")
        if size < 1:
            raise ValueError(complaint("num_tags", "be at least 1", size, "pass the number of tags"))
        transitions = torch.ones(size, size, dtype=torch.bool)
        for pair in pairs:
            try:
                before, after = pair
            except (TypeError, ValueError):
                must = "hold pairs of tags"
                raise TypeError(complaint("pairs", must, repr(pair), "write (before, after)")) from None
            transitions[_tag("pairs", before, size), _tag("pairs", after, size)] = False
        ends = torch.ones(2, size, dtype=torch.bool)
        for row, name, tags in ((0, "start", start), (1, "end", end)):
            for tag in tags:
                ends[row, _tag(name, tag, size)] = False
        return cls(transitions, ends[0], ends[1])

    @property
    def num_tags(self) -> int:
        """|Y|."""
        return len(self.transitions)

    def has_path(self, length: int) -> bool:
        """Returns whether a sequence of `length` tags satisfies the constraints. The empty sequence does.

        Raises:
            TypeError: if `length` is not an integer.
            ValueError: if `length` is negative.

        Time O(|Y|²) for each new length; results are cached.
        """
        length = _integer("length", length, "pass the number of tags of the sequence")
        if length < 0:
            raise ValueError(complaint("length", "be at least 0", length, "pass the number of tags of the sequence"))
        has_paths, reached = self._cached_paths()
        if length >= len(has_paths):
            transitions, end = self.transitions.cpu(), self.end.cpu()
            results = list(has_paths)
            while length >= len(results):
                results.append(bool((reached & end).any()))
                reached = transitions[reached].any(0)
            has_paths = tuple(results)
            # One assignment, so other threads see either the old cache or the new one.
            object.__setattr__(self, "_path_cache", (has_paths, reached))
        return has_paths[length]

    def _cached_paths(self) -> tuple[tuple[bool, ...], Tensor]:
        """Returns whether a path of length 0, 1, … exists, and the possible last tags of the next length."""
        cache: tuple[tuple[bool, ...], Tensor] = self.__dict__["_path_cache"]
        return cache

    def violations(self, tags: Tensor, sites: Sites) -> Tensor:
        """Returns booleans (L, B): the tag must not be first, last, or follow the previous tag. False where masked.

        Args:
            tags: (L, B) in [0, |Y|), arbitrary where masked.
            sites: positions of the tags and their neighbours.

        Time and memory O(L·B).
        """
        tags = tags.masked_fill(~sites.mask, 0)  # Padding is often −1 or −100, which is not a valid index.
        forbidden = ~self.transitions.to(tags.device)[sites.before(tags), tags]
        is_violated = sites.mask & ~sites.is_first & forbidden
        is_violated = is_violated | (sites.is_first & ~self.start.to(tags.device)[tags])
        return is_violated | (sites.is_last & ~self.end.to(tags.device)[tags])

    def apply(self, chain: Chain) -> Chain:
        """Returns the chain with −inf at forbidden entries. Differentiable; forbidden entries have gradient 0.

        Raises:
            ValueError: if the chain has another number of tags.

        Time and memory O(|Y|²).
        """
        if len(chain.start) != self.num_tags:
            must = f"have the chain's {len(chain.start)} tags"
            raise ValueError(complaint("constraints", must, self.num_tags, "build both from the same list of tags"))
        return chain.within(Chain(self.start, self.transitions, self.end))


def _integer(name: str, number: object, advice: str) -> int:
    """Converts `number` to int; accepts NumPy integers and one-element tensors."""
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(complaint(name, "be an integer", repr(number), advice)) from None


def _tag(name: str, tag: object, num_tags: int) -> int:
    """Converts `tag` to an index. Negative indices raise, since they are usually mistakes."""
    index = _integer(name, tag, "pass tag indices")
    if not 0 <= index < num_tags:
        raise ValueError(complaint(name, f"hold tags in [0, {num_tags})", index, "tag indices start at 0"))
    return index
