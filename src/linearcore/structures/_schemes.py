"""Constraints read off the names of tags: BIO, BIOES and BMES."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.structures._constraints import Constraints


def bio(names: Sequence[str]) -> Constraints:
    """The constraints of BIO tags (IOB2): B opens a segment, I goes on with it, O is outside.

    I-X follows only B-X or I-X, and is never first. An I-X whose B-X is not among the names could never be used and is
    refused: tags in the older IOB1, where B is rare, want to be rewritten first.

    Args:
        names: (|Y|) the tags in the order of their indices: "O", or a prefix, a hyphen and a type, which may hold hyphens
            itself. A prefix alone is a tag without a type.

    Raises:
        TypeError: if a name is no string, or the names are no sequence.
        ValueError: if a name is outside the scheme, comes twice, or can be in no sequence.

    Example:
        >>> bio(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]).transitions.long()
        tensor([[1, 1, 0, 1, 0],
                [1, 1, 1, 1, 0],
                [1, 1, 1, 1, 0],
                [1, 1, 0, 1, 1],
                [1, 1, 0, 1, 1]])

    Time and memory O(|Y|²).
    """
    return _BIO.read(names)


def bioes(names: Sequence[str]) -> Constraints:
    """The constraints of BIOES tags: B opens a segment, I goes on with it, E closes it, S is one on its own, O is outside.

    I-X and E-X follow only B-X or I-X, which only they may follow; the first tag is O, B or S, the last one O, E or S.

    Args:
        names: (|Y|) the tags in the order of their indices, as for `bio`. O may be missing.

    Raises:
        TypeError: if a name is no string, or the names are no sequence.
        ValueError: if a name is outside the scheme, comes twice, or can be in no sequence.

    Example:
        >>> constraints = bioes(["O", "B-PER", "I-PER", "E-PER", "S-PER"])
        >>> constraints.transitions.long()
        tensor([[1, 1, 0, 0, 1],
                [0, 0, 1, 1, 0],
                [0, 0, 1, 1, 0],
                [1, 1, 0, 0, 1],
                [1, 1, 0, 0, 1]])
        >>> constraints.start.tolist(), constraints.end.tolist()
        ([True, True, False, False, True], [True, False, False, True, True])

    Time and memory O(|Y|²).
    """
    return _BIOES.read(names)


def bmes(names: Sequence[str]) -> Constraints:
    """The constraints of BMES tags: `bioes` with M in the place of I, the usual tags of word segmentation.

    Args:
        names: (|Y|) the tags in the order of their indices, as for `bio`. O may be missing.

    Raises:
        TypeError: if a name is no string, or the names are no sequence.
        ValueError: if a name is outside the scheme, comes twice, or can be in no sequence.

    Example:
        >>> bmes(["B", "M", "E", "S"]).transitions.long()
        tensor([[0, 1, 1, 0],
                [0, 1, 1, 0],
                [1, 0, 0, 1],
                [1, 0, 0, 1]])

    Time and memory O(|Y|²).
    """
    return _BMES.read(names)


@dataclass(frozen=True)
class _Scheme:
    """A way to write segments as tags: a prefix that says where in its segment a tag stands, and the segment's type.

    Attributes:
        name: what people call it.
        prefixes: all of them; besides them there is O.
        inner: prefixes that go on with the segment of the tag before.
        open: prefixes after which the segment may go on.
        is_closed: whether it then must.
    """

    name: str
    prefixes: str
    inner: str
    open: str
    is_closed: bool

    def read(self, names: Sequence[str]) -> Constraints:
        """The constraints of tags with these names."""
        if isinstance(names, str | Mapping):
            advice = "list the names in the order of their indices, for example [id2label[i] for i in range(n)]"
            raise TypeError(complaint("names", "be a sequence of names", type(names).__name__, advice))
        parts = [self._split(name) for name in names]
        name, times = Counter(names).most_common(1)[0] if parts else ("", 0)
        if times != 1:
            got = f"{name!r} {times} times" if parts else "none"
            raise ValueError(complaint("names", "be different names, at least one", got, "name every tag once"))
        kinds = {kind: index for index, kind in enumerate(dict.fromkeys(kind for _, kind in parts))}
        kind = torch.tensor([kinds[kind] for _, kind in parts])
        inner = torch.tensor([prefix in self.inner for prefix, _ in parts])
        is_open = torch.tensor([prefix in self.open for prefix, _ in parts])
        free = ~is_open if self.is_closed else torch.ones_like(is_open)
        goes_on = is_open.unsqueeze(1) & (kind.unsqueeze(1) == kind)
        self._require_use(names, inner, is_open, goes_on)
        return Constraints(torch.where(inner, goes_on, free.unsqueeze(1)), ~inner, free)

    def _require_use(self, names: Sequence[str], inner: Tensor, is_open: Tensor, goes_on: Tensor) -> None:
        """Raises if a tag can be in no sequence: the sign of names in another scheme."""
        begins, ends = ~inner, ~is_open if self.is_closed else torch.ones_like(is_open)
        for _ in names:  # As far as a segment can reach: through each of its tags once.
            begins = begins | (inner & (goes_on & begins.unsqueeze(1)).any(0))
            ends = ends | (goes_on & (inner & ends)).any(1)
        dead = [name for name, used in zip(names, (begins & ends).tolist(), strict=True) if not used]
        if dead:
            advice = "no sequence can hold it; are the names in another scheme (IOB1 wants to be rewritten first)?"
            raise ValueError(complaint("names", f"be usable in {self.name}", repr(dead[0]), advice))

    def _split(self, name: str) -> tuple[str, str]:
        """Prefix and type; a name without a hyphen has the type ""."""
        if not isinstance(name, str):
            raise TypeError(complaint("names", "hold strings", type(name).__name__, 'pass names such as "O" and "B-PER"'))
        prefix, hyphen, kind = name.partition("-")
        is_known = len(prefix) == 1 and prefix in self.prefixes and bool(kind) == bool(hyphen)
        if name != "O" and not is_known:
            known = f"'O' and {', '.join(map(repr, self.prefixes))} with or without a type, as in 'B-PER'"
            advice = f"it knows {known}; rename the tag, or write the rules with Constraints.forbid"
            raise ValueError(complaint("names", f"hold tags of {self.name}", repr(name), advice))
        return prefix, kind


_BIO = _Scheme("BIO", prefixes="BI", inner="I", open="BI", is_closed=False)
_BIOES = _Scheme("BIOES", prefixes="BIES", inner="IE", open="BI", is_closed=True)
_BMES = _Scheme("BMES", prefixes="BMES", inner="ME", open="BM", is_closed=True)
