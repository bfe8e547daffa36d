"""Constraints from tag names: BIO, BIOES and BMES."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.structures._constraints import Constraints


def bio(names: Sequence[str]) -> Constraints:
    """Returns the constraints of BIO tags (IOB2): B starts a segment, I continues it, O is outside.

    I-X must follow B-X or I-X, and is never first. An I-X without a B-X in `names` raises, since it could never be used.
    Convert IOB1 tags, where B is rare, to IOB2 first.

    Args:
        names: (|Y|) tag names in the order of their indices: "O", or a prefix, a hyphen and a type, which may contain
            hyphens. A prefix alone is a tag without a type.

    Raises:
        TypeError: if a name is not a string, or `names` is not a sequence.
        ValueError: if a name is not in the scheme, is repeated, or can occur in no sequence.

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
    """Returns the constraints of BIOES tags: B starts a segment, I continues it, E ends it, S is a single tag, O is outside.

    I-X and E-X must follow B-X or I-X, and only they may follow. The first tag is O, B or S; the last tag is O, E or S.

    Args:
        names: (|Y|) tag names in the order of their indices, as for `bio`. O is optional.

    Raises:
        TypeError: if a name is not a string, or `names` is not a sequence.
        ValueError: if a name is not in the scheme, is repeated, or can occur in no sequence.

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
    """Returns the constraints of BMES tags, common in word segmentation: `bioes` with M instead of I.

    Args:
        names: (|Y|) tag names in the order of their indices, as for `bio`. O is optional.

    Raises:
        TypeError: if a name is not a string, or `names` is not a sequence.
        ValueError: if a name is not in the scheme, is repeated, or can occur in no sequence.

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
    """Tagging scheme for segments: each tag is a prefix for the position in the segment, plus the type of the segment.

    Attributes:
        name: name of the scheme.
        prefixes: all prefixes except O.
        inner: prefixes that continue the segment of the previous tag.
        open: prefixes after which the segment may continue.
        is_closed: whether a segment must continue after an open prefix.
    """

    name: str
    prefixes: str
    inner: str
    open: str
    is_closed: bool

    def read(self, names: Sequence[str]) -> Constraints:
        """Returns the constraints of tags with these names."""
        if isinstance(names, str | Mapping):
            advice = "list the names in the order of their indices, for example [id2label[i] for i in range(n)]"
            raise TypeError(complaint("names", "be a sequence of names", type(names).__name__, advice))
        parts = [self._split(name) for name in names]
        name, count = Counter(names).most_common(1)[0] if parts else ("", 0)
        if count != 1:
            got = f"{name!r} {count} times" if parts else "none"
            raise ValueError(complaint("names", "be distinct and not empty", got, "list every tag once"))
        kinds = {kind: index for index, kind in enumerate(dict.fromkeys(kind for _, kind in parts))}
        kind = torch.tensor([kinds[kind] for _, kind in parts])
        is_inner = torch.tensor([prefix in self.inner for prefix, _ in parts])
        is_open = torch.tensor([prefix in self.open for prefix, _ in parts])
        may_end = ~is_open if self.is_closed else torch.ones_like(is_open)
        continues = is_open.unsqueeze(1) & (kind.unsqueeze(1) == kind)
        self._check_usable(names, is_inner, is_open, continues)
        return Constraints(torch.where(is_inner, continues, may_end.unsqueeze(1)), ~is_inner, may_end)

    def _check_usable(self, names: Sequence[str], is_inner: Tensor, is_open: Tensor, continues: Tensor) -> None:
        """Raises if a tag can occur in no sequence, for example because the names follow another scheme."""
        is_reachable, can_finish = ~is_inner, ~is_open if self.is_closed else torch.ones_like(is_open)
        for _ in names:  # The longest path through a segment visits each tag once.
            is_reachable = is_reachable | (is_inner & (continues & is_reachable.unsqueeze(1)).any(0))
            can_finish = can_finish | (continues & (is_inner & can_finish)).any(1)
        is_usable = (is_reachable & can_finish).tolist()
        unusable = [name for name, usable in zip(names, is_usable, strict=True) if not usable]
        if unusable:
            advice = "no sequence can contain it; check the scheme of the names (convert IOB1 to IOB2 first)"
            raise ValueError(complaint("names", f"be usable in {self.name}", repr(unusable[0]), advice))

    def _split(self, name: str) -> tuple[str, str]:
        """Returns prefix and type; the type of a name without a hyphen is ""."""
        if not isinstance(name, str):
            raise TypeError(complaint("names", "hold strings", type(name).__name__, 'pass names such as "O" and "B-PER"'))
        prefix, hyphen, kind = name.partition("-")
        is_known = len(prefix) == 1 and prefix in self.prefixes and bool(kind) == bool(hyphen)
        if name != "O" and not is_known:
            known = f"'O' and {', '.join(map(repr, self.prefixes))} with or without a type, as in 'B-PER'"
            advice = f"allowed are {known}; rename the tag, or use Constraints.forbid"
            raise ValueError(complaint("names", f"hold tags of {self.name}", repr(name), advice))
        return prefix, kind


_BIO = _Scheme("BIO", prefixes="BI", inner="I", open="BI", is_closed=False)
_BIOES = _Scheme("BIOES", prefixes="BIES", inner="IE", open="BI", is_closed=True)
_BMES = _Scheme("BMES", prefixes="BMES", inner="ME", open="BM", is_closed=True)
