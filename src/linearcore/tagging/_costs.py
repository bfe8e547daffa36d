"""Costs by name, and the mean cost of predicted tags, sentence by sentence."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from linearcore._checks import complaint, one_of
from linearcore.structures import COST_NAMES, Cost, resolve_cost

#: Sentences whose costs are computed at a time.
_BLOCK = 512


def cost_of_names(argument: str, cost: str | Cost, tags: Sequence[str]) -> Cost:
    """Returns the cost with this name for these tags, or `cost` itself.

    Raises:
        ValueError: if the cost is unknown, or is not defined for the tags; the message names `argument`.
    """
    if isinstance(cost, str):
        one_of(argument, cost, COST_NAMES)
    try:
        resolved = resolve_cost(cost, tags)
        resolved.check(len(tags))
    except ValueError as error:
        name = repr(cost) if isinstance(cost, str) else type(cost).__name__
        raise ValueError(complaint(argument, "fit the tags of the model", name, str(error))) from None
    return resolved


class MeanCost:
    """Mean of a cost of `linearcore.structures` over sentences.

    Args:
        cost: name of a cost.
        tags: names of the tags. Gold tags may have other names, too.

    Raises:
        ValueError: if the cost is unknown, or is not defined for the tags.

    Example:
        >>> mean = MeanCost("span-f1", ["O", "B-PER", "I-PER"])
        >>> mean.add(["B-PER", "I-PER", "O"], ["B-PER", "I-PER", "O"])
        >>> mean.add(["O", "B-PER"], ["B-PER", "B-PER"])
        >>> mean.value
        0.166667
    """

    def __init__(self, cost: str, tags: Sequence[str]) -> None:
        self.name = cost
        self._numbers = {tag: index for index, tag in enumerate(dict.fromkeys(tags))}
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._total, self._count = 0.0, 0
        cost_of_names("decode_for", cost, tags)

    def add(self, gold: Sequence[str], predicted: Sequence[str]) -> None:
        """Adds one sentence."""
        numbers = self._numbers
        rows = [torch.tensor([numbers.setdefault(tag, len(numbers)) for tag in tags]) for tags in (predicted, gold)]
        self._pairs.append((rows[0], rows[1]))
        self._count += 1
        if len(self._pairs) == _BLOCK:
            self._flush()

    @property
    def value(self) -> float:
        """The mean.

        Raises:
            ValueError: if there are no sentences, or the cost is not defined for a gold tag.
        """
        if not self._count:
            raise ValueError(complaint("sentences", "be at least one", 0, "add one first"))
        self._flush()
        return self._total / self._count

    def _flush(self) -> None:
        if not self._pairs:
            return
        cost = cost_of_names("decode_for", self.name, list(self._numbers))
        predicted, gold = (
            pad_sequence(list(rows), batch_first=True, padding_value=-1) for rows in zip(*self._pairs, strict=True)
        )
        self._total += float(cost.between(predicted, gold, gold >= 0, dtype=torch.float64).sum())
        self._pairs = []
