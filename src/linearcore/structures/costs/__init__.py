"""Costs ℓ(prediction, target) of tag sequences. One file for each.

    zero-one        1[y' ≠ y]                                a sequence is right or wrong as a whole
    hamming         fraction of wrong tags                   partly correct sequences cost less
    ngram           fraction of n-grams lost                 runs of correct tags count, at their places
    clipped-ngram   fraction of n-gram counts lost           the same, at any place
    edit            edit distance over the length            shifts cost little
    token-f1        1 − F1 of the tags except those outside
    span-f1         1 − F1 of the spans in BIO, BIOES or BMES tags
    bleu            1 − sentence BLEU

What is known of each, from the facts that it declares:

                    sum over positions   sum over n-grams   0 only for the target   name alone is enough
    zero-one        no                   no                 yes                     yes
    hamming         yes                  yes                yes                     yes
    ngram           no                   yes                yes                     yes
    clipped-ngram   no                   no                 no                      yes
    edit            no                   no                 yes                     yes
    token-f1        no                   no                 if one tag is outside   needs tag names
    span-f1         no                   no                 no                      needs tag names
    bleu            no                   no                 no                      yes

`ngram_kernel` is not a cost. To add a cost, subclass `Cost` in a separate file and list it here.
"""

from collections.abc import Sequence

from linearcore._checks import complaint, one_of
from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._bleu import Bleu
from linearcore.structures.costs._clipped_ngram import ClippedNgram, ngram_kernel
from linearcore.structures.costs._edit import EditDistance
from linearcore.structures.costs._hamming import Hamming
from linearcore.structures.costs._ngram import AlignedNgram
from linearcore.structures.costs._span_f1 import SpanF1
from linearcore.structures.costs._token_f1 import TokenF1
from linearcore.structures.costs._zero_one import ZeroOne

__all__ = [
    "COSTS",
    "COST_NAMES",
    "AlignedNgram",
    "Bleu",
    "ClippedNgram",
    "Cost",
    "EditDistance",
    "Hamming",
    "SpanF1",
    "TokenF1",
    "ZeroOne",
    "ngram_kernel",
    "resolve_cost",
]

_BY_NAME: dict[str, type[Cost]] = {
    cost.name: cost for cost in (ZeroOne, Hamming, AlignedNgram, ClippedNgram, EditDistance, TokenF1, SpanF1, Bleu)
}

#: Default instance of each cost by name, of those that need no tag names.
COSTS: dict[str, Cost] = {name: cost() for name, cost in _BY_NAME.items() if not cost.needs_names}
#: Names of all costs.
COST_NAMES: tuple[str, ...] = tuple(_BY_NAME)


def resolve_cost(cost: str | Cost, names: Sequence[str] | None = None) -> Cost:
    """Returns the cost with this name, or `cost` itself.

    Args:
        cost: a cost, or one of `COST_NAMES`.
        names: tag names in the order of their indices, for costs that need them.

    Raises:
        ValueError: if `cost` is neither a `Cost` nor in `COST_NAMES`, or needs tag names, or is not defined for these.

    Example:
        >>> resolve_cost("zero-one")
        ZeroOne()
        >>> resolve_cost("token-f1", ["B", "I", "O"])
        TokenF1(outside=(2,))
    """
    if isinstance(cost, Cost):
        return cost
    one_of("cost", cost, COST_NAMES, "choose one of these or pass a Cost, such as Hamming(weight)")
    if names is not None:
        return _BY_NAME[cost].of_names(names)
    if cost not in COSTS:
        maker = f"linearcore.structures.{_BY_NAME[cost].__name__}.of_names(names)"
        raise ValueError(complaint("cost", "come with the names of the tags", repr(cost), f"pass {maker}"))
    return COSTS[cost]
