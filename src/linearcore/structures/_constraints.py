"""Hard constraints of a tag chain: which tag may follow which, which may be first, and which last."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint, shape
from linearcore.structures._chain import Chain, Sites


# Two tensors are not equal or unequal but both, entry by entry; so equality is identity.
@dataclass(frozen=True, eq=False)
class Constraints:
    """What a sequence of tags must obey. `bio`, `bioes` and `bmes` read it off the tags' names.

        y obeys  ⇔  start[y_1] and transitions[y_{j−1}, y_j] for all j > 1 and end[y_L]

    The tensors are not to be changed afterwards: what was found out about them is kept.

    Args:
        transitions: (|Y|, |Y|) booleans: the tag of the row may be followed by that of the column.
        start: (|Y|,) booleans: may be the first tag.
        end: (|Y|,) booleans: may be the last tag.

    Raises:
        TypeError: if an argument is no boolean tensor.
        ValueError: if the shapes do not fit, or if no sequence of any length obeys.

    Example:
        >>> constraints = Constraints.forbid(2, pairs=[(0, 0), (1, 1)], start=[1], end=[1])
        >>> [length for length in range(1, 8) if constraints.has_path(length)]
        [1, 3, 5, 7]

    Time O(|Y|²), once; on a device it is waited for.
    """

    transitions: Tensor
    start: Tensor
    end: Tensor

    def __post_init__(self) -> None:
        advice = "True allows; Constraints.forbid writes them from lists"
        for name in ("transitions", "start", "end"):
            mask = getattr(self, name)
            if not isinstance(mask, Tensor):
                raise TypeError(complaint(name, "be a torch tensor", type(mask).__name__, advice))
            if mask.dtype != torch.bool:
                raise TypeError(complaint(name, "be boolean", mask.dtype, advice))
        if self.transitions.dim() != 2 or self.transitions.shape[0] != self.transitions.shape[1]:
            got = tuple(self.transitions.shape)
            raise ValueError(
                complaint("transitions", "have shape (num_tags, num_tags)", got, "rows are followed by columns")
            )
        for name in ("start", "end"):
            shape(name, getattr(self, name), (self.num_tags,), "give one entry a tag, as many as `transitions` has rows")
        # Before the first step any allowed first tag is reached; the sequence without tags obeys whatever there is.
        object.__setattr__(self, "_walk", ((True,), self.start.cpu()))
        self._require_a_path()

    def _require_a_path(self) -> None:
        transitions, end = self.transitions.cpu(), self.end.cpu()
        reached = fresh = self.start.cpu()
        while bool(fresh.any()):  # Every tag is fresh once, so that all steps together read each transition once.
            fresh = transitions[fresh].any(0) & ~reached
            reached = reached | fresh
        if not bool((reached & end).any()):
            got = f"none from {int(self.start.sum())} possible first tags to {int(end.sum())} possible last ones"
            advice = "allow a first tag, a last tag, and the transitions between them"
            raise ValueError(complaint("constraints", "leave at least one path", got, advice))

    @classmethod
    def forbid(
        cls,
        num_tags: int,
        pairs: Iterable[tuple[int, int]] = (),
        start: Iterable[int] = (),
        end: Iterable[int] = (),
    ) -> "Constraints":
        """Everything is allowed but this.

        Args:
            num_tags: |Y|.
            pairs: (a, b) where b must not follow a.
            start: tags that must not be first.
            end: tags that must not be last.

        Raises:
            TypeError: if something is no integer, or no pair of them.
            ValueError: if a tag is not in [0, num_tags), or if nothing is left.

        Example:
            >>> Constraints.forbid(3, pairs=[(0, 2)], start=[2]).transitions.long()
            tensor([[1, 1, 0],
                    [1, 1, 1],
                    [1, 1, 1]])
        """
        size = _integer("num_tags", num_tags, "count the tags")
        if size < 1:
            raise ValueError(complaint("num_tags", "be at least 1", size, "count the tags"))
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
        """Whether a sequence of that many tags obeys. The one without tags does.

        Raises:
            TypeError: if `length` is no integer.
            ValueError: if it is negative.

        Time O(|Y|²) for each length beyond the longest asked before, O(1) up to it.
        """
        length = _integer("length", length, "count the tags of the sequence")
        if length < 0:
            raise ValueError(complaint("length", "be at least 0", length, "count the tags of the sequence"))
        obeys, reached = self._known()
        if length >= len(obeys):
            transitions, end = self.transitions.cpu(), self.end.cpu()
            answers = list(obeys)
            while length >= len(answers):
                answers.append(bool((reached & end).any()))
                reached = transitions[reached].any(0)
            obeys = tuple(answers)
            # Replaced as a whole: a second thread then sees the old knowledge or the new, never half of it.
            object.__setattr__(self, "_walk", (obeys, reached))
        return obeys[length]

    def _known(self) -> tuple[tuple[bool, ...], Tensor]:
        """Whether there is a path of length 0, 1, …, and the tags that may stand where the next length ends."""
        known: tuple[tuple[bool, ...], Tensor] = self.__dict__["_walk"]
        return known

    def violations(self, tags: Tensor, sites: Sites) -> Tensor:
        """(L, B) booleans: the tag here may not be the first, be the last, or follow the one before. False where masked.

        Args:
            tags: (L, B) in [0, |Y|), anything where masked.
            sites: where they sit.

        Time and memory O(L·B).
        """
        tags = tags.masked_fill(~sites.mask, 0)  # Padding is often −1 or −100, which would be looked up.
        forbidden = ~self.transitions.to(tags.device)[sites.before(tags), tags]
        wrong = sites.mask & ~sites.is_first & forbidden
        wrong = wrong | (sites.is_first & ~self.start.to(tags.device)[tags])
        return wrong | (sites.is_last & ~self.end.to(tags.device)[tags])

    def apply(self, chain: Chain) -> Chain:
        """The chain with −inf where something is forbidden. Differentiable; what is forbidden has gradient 0.

        Raises:
            ValueError: if the chain has another number of tags.

        Time and memory O(|Y|²).
        """
        if len(chain.start) != self.num_tags:
            must = f"have the chain's {len(chain.start)} tags"
            raise ValueError(complaint("constraints", must, self.num_tags, "build both from the same list of tags"))
        return chain.within(Chain(self.start, self.transitions, self.end))


def _integer(name: str, number: object, advice: str) -> int:
    """`number` as an integer, NumPy's and one-element tensors included."""
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(complaint(name, "be an integer", repr(number), advice)) from None


def _tag(name: str, tag: object, num_tags: int) -> int:
    """`tag` as an index. Negative ones do not count from the end: they are a mistake here more often than a wish."""
    index = _integer(name, tag, "tags are given by their indices")
    if not 0 <= index < num_tags:
        raise ValueError(complaint(name, f"hold tags in [0, {num_tags})", index, "tags are counted from 0"))
    return index
