"""Costs: what it costs to answer one sequence of tags where another is true. One file for each.

    zero-one   1[y' ≠ y]                       a sequence is right as a whole or not at all
    hamming    the share of wrong sites        a nearly right answer is worth much

To add one, subclass `Cost` in a file of its own and list it here.
"""

from linearcore._checks import one_of
from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._hamming import Hamming
from linearcore.structures.costs._zero_one import ZeroOne

__all__ = ["COSTS", "Cost", "Hamming", "ZeroOne", "resolve_cost"]

#: Every cost by its name, which stands for its default instance.
COSTS: dict[str, Cost] = {cost.name: cost for cost in (ZeroOne(), Hamming())}


def resolve_cost(cost: str | Cost) -> Cost:
    """The cost that a name stands for, or `cost` itself.

    Raises:
        ValueError: if it is neither a cost nor one of `COSTS`.

    Example:
        >>> resolve_cost("zero-one")
        ZeroOne()
    """
    if isinstance(cost, Cost):
        return cost
    one_of("cost", cost, COSTS, "choose one of these or pass a Cost, such as Hamming(weight)")
    return COSTS[cost]
