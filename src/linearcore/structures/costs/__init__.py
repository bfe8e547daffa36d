"""Costs ℓ(prediction, target) of tag sequences. One file for each.

    zero-one   1[y' ≠ y]                       a sequence is right or wrong as a whole
    hamming    fraction of wrong tags          partly correct sequences cost less

To add one, subclass `Cost` in a separate file and list it here.
"""

from linearcore._checks import one_of
from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._hamming import Hamming
from linearcore.structures.costs._zero_one import ZeroOne

__all__ = ["COSTS", "Cost", "Hamming", "ZeroOne", "resolve_cost"]

#: Default instance of each cost by name.
COSTS: dict[str, Cost] = {cost.name: cost for cost in (ZeroOne(), Hamming())}


def resolve_cost(cost: str | Cost) -> Cost:
    """Returns the cost with this name, or `cost` itself.

    Raises:
        ValueError: if `cost` is neither a `Cost` nor a key of `COSTS`.

    Example:
        >>> resolve_cost("zero-one")
        ZeroOne()
    """
    if isinstance(cost, Cost):
        return cost
    one_of("cost", cost, COSTS, "choose one of these or pass a Cost, such as Hamming(weight)")
    return COSTS[cost]
