"""F1 of spans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._packing import packed
from linearcore.structures.costs._token_f1 import OUTSIDE, f1_cost

#: What the prefixes mean: B and S start a span, I and E continue it, E and S end it. M is I in BMES.
_PREFIXES = {"B": "B", "I": "I", "M": "I", "E": "E", "S": "S"}


@dataclass(frozen=True)
class SpanF1(Cost):
    """1 − F1 of the spans in BIO, BIOES or BMES tags: entities, chunks, words. It is the F1 of seqeval and conlleval.

        ℓ = 1 − 2 |correct spans| / (|predicted spans| + |true spans|)

    A span is correct if type, first and last tag are. As in seqeval's default mode, tags that break the scheme are read
    leniently: a span also starts at an I or E that cannot continue a span. The F1 is over all types of one sequence together
    (micro average). If neither sequence has a span the cost is 0, where seqeval's F1 is 0.

    Args:
        names: (|Y|) tag names in the order of their indices: "O", or B, I, M, E or S, then a hyphen and a type.

    Raises:
        TypeError: if a name is not a string, or `names` is not a sequence.
        ValueError: if a name is not in the scheme, or all are "O".

    Example:
        >>> cost = SpanF1(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
        >>> target, prediction = torch.tensor([1, 2, 0, 3]), torch.tensor([1, 2, 0, 0])
        >>> cost.between(prediction, target, dtype=torch.float64).item()
        0.333333

    Time O(L) for each pair.
    """

    names: Sequence[str]
    name: ClassVar[str] = "span-f1"
    needs_names: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.names, str | Mapping):
            advice = "list the names in the order of their indices"
            raise TypeError(complaint("names", "be a sequence of names", type(self.names).__name__, advice))
        parts = [_split(name) for name in self.names]
        if all(prefix == OUTSIDE for prefix, _ in parts):
            advice = "pass the names of tags such as 'O', 'B-PER' and 'I-PER'"
            raise ValueError(complaint("names", "hold tags of spans", "none", advice))
        object.__setattr__(self, "names", tuple(self.names))
        kinds = {kind: index for index, kind in enumerate(dict.fromkeys(kind for _, kind in parts))}
        # Padding is one more tag, which is outside: index −1.
        prefixes = [prefix for prefix, _ in parts] + [OUTSIDE]
        kind = torch.tensor([kinds[kind] for _, kind in parts] + [-1])
        starts, continues = (torch.tensor([prefix in group for prefix in prefixes]) for group in (("B", "S"), ("I", "E")))
        is_open = torch.tensor([prefix in ("B", "I") for prefix in prefixes])
        # [before, tag]: a span starts at the tag.
        begins = starts | (continues & (~is_open.unsqueeze(1) | (kind.unsqueeze(1) != kind)))
        object.__setattr__(self, "_tables", (begins, starts | continues, kind, len(kinds)))

    @classmethod
    def of_names(cls, names: Sequence[str]) -> "SpanF1":
        """Returns `SpanF1(names)`."""
        return cls(names)

    @property
    def num_tags(self) -> int:
        return len(self.names)

    def check(self, num_tags: int) -> None:
        if len(self.names) != num_tags:
            raise ValueError(complaint("names", f"have one name for each of {num_tags} tags", len(self.names), "list all"))

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        predicted, gold = (self._spans(packed(tags, mask)[0]) for tags in (prediction, target))
        num_correct = ((predicted == gold) & (gold >= 0)).sum(-1)
        return f1_cost(num_correct, (predicted >= 0).sum(-1), (gold >= 0).sum(-1), dtype)

    def _spans(self, tags: Tensor) -> Tensor:
        """Returns for each position (…, L) the type and first position of the span that ends there, as one number, or −1."""
        begins, is_inside, kind, num_kinds = self._tables  # type: ignore[attr-defined]
        begins, is_inside, kind = (table.to(tags.device) for table in (begins, is_inside, kind))
        if tags.shape[-1] == 0:
            return tags
        outside = torch.full_like(tags[..., :1], -1)
        begin = begins[torch.cat([outside, tags[..., :-1]], -1), tags]
        inside = is_inside[tags]
        next_tag_continues = torch.cat([(inside & ~begin)[..., 1:], torch.zeros_like(begin[..., :1])], -1)
        place = torch.arange(tags.shape[-1], device=tags.device)
        first = torch.where(begin, place, 0).cummax(-1).values
        return torch.where(inside & ~next_tag_continues, first * num_kinds + kind[tags], -1)


def _split(name: str) -> tuple[str, str]:
    """Returns prefix and type of a tag; a tag without a type has type "_", as in seqeval."""
    if not isinstance(name, str):
        raise TypeError(complaint("names", "hold strings", type(name).__name__, 'pass names such as "O" and "B-PER"'))
    if name == OUTSIDE:
        return OUTSIDE, "_"
    prefix, hyphen, kind = name.partition("-")
    if prefix not in _PREFIXES or bool(kind) != bool(hyphen):
        advice = "span F1 needs 'O' and tags such as 'B-PER', 'I-PER', 'E-PER', 'S-PER'; use another cost for other tags"
        raise ValueError(complaint("names", "hold tags of spans", repr(name), advice))
    return _PREFIXES[prefix], kind or "_"
