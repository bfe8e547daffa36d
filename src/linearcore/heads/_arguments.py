"""Checks of arguments that several methods of the chain heads share."""

from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import ParamSpec, TypeVar

from linearcore._checks import complaint

REDUCTIONS = ("none", "sum", "mean", "token_mean")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def number_by_name(name: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Decorator: a call without the argument `name` but with a positional integer, as in earlier versions, raises."""

    def decorate(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(method)
        def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            if name not in kwargs:
                for number in args:
                    if isinstance(number, int):
                        advice = f"write `{name}={number}`; the second argument is `mask`"
                        raise TypeError(complaint(name, "be passed by name", f"{number} by position", advice))
            return method(*args, **kwargs)

        return checked

    return decorate


def check_reduction(reduction: str) -> None:
    """Raises ValueError if `reduction` is not one of `REDUCTIONS`."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"invalid reduction: {reduction}; choose one of {', '.join(REDUCTIONS)}")


def check_positive_int(name: str, number: int, advice: str) -> int:
    """Returns `number`; raises ValueError unless it is a positive integer."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        got = repr(number) if isinstance(number, int | float) else type(number).__name__
        raise ValueError(complaint(name, "be a positive integer", got, advice))
    return number


def check_unary(unary: float) -> float:
    """Returns `unary` as a float; raises ValueError unless it is in [0, 1)."""
    if isinstance(unary, Real) and not isinstance(unary, bool) and 0 <= unary < 1:
        return float(unary)
    advice = "pass the weight of the loss on the emissions alone, for example 0.5"
    raise ValueError(complaint("unary", "be a number in [0, 1)", repr(unary), advice))
