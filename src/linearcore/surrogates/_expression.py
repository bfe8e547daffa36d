"""A formula of one variable u as a function of tensors, without `eval`.

The text is parsed by Python's `ast` and translated node by node. Only numbers, the names below, arithmetic and calls of the
functions below are translated; everything else raises. Nothing of the text is ever executed.
"""

import ast
import math
import operator
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from linearcore._checks import complaint

TensorFunction = Callable[[Tensor], Tensor]

#: Longest text, and deepest nesting of a formula.
MAX_LENGTH, MAX_DEPTH = 500, 40


def _softplus(x: Tensor) -> Tensor:
    # torch's softplus is x for x > 20, which is wrong by 2e-9.
    return -functional.logsigmoid(-x)


_CONSTANTS = {"pi": math.pi, "e": math.e}
#: Functions of one number.
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "cosh": torch.cosh,
    "erf": torch.erf,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "logsigmoid": functional.logsigmoid,
    "relu": functional.relu,
    "sigmoid": torch.sigmoid,
    "softplus": _softplus,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "tanh": torch.tanh,
}
#: Functions of two numbers.
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"max": torch.maximum, "min": torch.minimum}
_OPERATORS: dict[type[ast.operator], Callable[[Tensor, Tensor], Tensor]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: torch.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Tensor, Tensor], Tensor]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def parse_expression(text: str) -> TensorFunction:
    """Returns the function of u that a formula defines, elementwise on tensors.

    Allowed are numbers, u, pi, e, + − * / **, comparisons inside `where(condition, a, b)`, max and min of two numbers, and
    the functions in `UNARY`. log1p(exp(x)), log(1 + exp(x)) and log(sigmoid(x)) are computed without overflow.

    Args:
        text: at most 500 characters.

    Raises:
        ValueError: if the text contains anything else.

    Example:
        >>> import torch
        >>> from linearcore.surrogates import parse_expression
        >>> parse_expression("max(0, 1 - u)")(torch.tensor([0.0, 3.0]))
        tensor([1., 0.])
    """
    if not isinstance(text, str) or not 0 < len(text.strip()) <= len(text) <= MAX_LENGTH:
        got = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise ValueError(complaint("phi", f"be a formula of 1 to {MAX_LENGTH} characters", got, "for example 'exp(-u)'"))
    try:
        with warnings.catch_warnings():  # The parser warns about some texts that are refused below.
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        raise ValueError(
            complaint("phi", "be a formula of u", f"{text[:60]!r} ({reason})", "see the functions in --help")
        ) from None
    return _number(tree.body, MAX_DEPTH)


def _number(node: ast.expr, depth: int) -> TensorFunction:
    """Returns the function of u that an expression stands for."""
    if depth == 0:
        raise _refusal("be nested at most 40 deep", "more")
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Name):
        return _name(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner, sign = _number(node.operand, depth - 1), -1.0 if isinstance(node.op, ast.USub) else 1.0
        return lambda u: sign * inner(u)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _apply(_OPERATORS[type(node.op)], _number(node.left, depth - 1), _number(node.right, depth - 1))
    if isinstance(node, ast.Call):
        return _call(node, depth)
    raise _refusal("consist of numbers, u, + − * / ** and listed functions", type(node).__name__)


def _constant(value: object) -> TensorFunction:
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _refusal("have finite numbers as constants", repr(value)[:40])
    return lambda u: u.new_full((), number)


def _name(name: str) -> TensorFunction:
    if name == "u":
        return lambda u: u
    if name in _CONSTANTS:
        return _constant(_CONSTANTS[name])
    raise _refusal("use the variable u only", repr(name[:40]))


def _call(node: ast.Call, depth: int) -> TensorFunction:
    name = node.func.id if isinstance(node.func, ast.Name) else type(node.func).__name__
    arguments = node.args
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in arguments):
        raise _refusal("call functions with plain arguments", f"{name[:40]} with a keyword or a star")
    if name in UNARY and len(arguments) == 1:
        stable = _stable_log(name, arguments[0], depth)
        if stable is not None:
            return stable
        function, inner = UNARY[name], _number(arguments[0], depth - 1)
        return lambda u: function(inner(u))
    if name in BINARY and len(arguments) == 2:
        return _apply(BINARY[name], _number(arguments[0], depth - 1), _number(arguments[1], depth - 1))
    if name == "where" and len(arguments) == 3:
        condition = _condition(arguments[0], depth - 1)
        first, second = (_number(argument, depth - 1) for argument in arguments[1:])
        return _choose(condition, first, second)
    functions = ", ".join((*UNARY, *(f"{two}(a, b)" for two in BINARY), "where(a < b, x, y)"))
    raise _refusal(f"call {functions}", f"{name[:40]} with {len(arguments)} arguments")


def _choose(condition: TensorFunction, first: TensorFunction, second: TensorFunction) -> TensorFunction:
    def chosen(u: Tensor) -> Tensor:
        mask = condition(u).expand_as(u)
        # The branch that is not chosen is computed at 0, because an overflow there would make the gradient NaN.
        zero = torch.zeros_like(u)
        return torch.where(mask, first(torch.where(mask, u, zero)), second(torch.where(mask, zero, u)))

    return chosen


def _condition(node: ast.expr, depth: int) -> TensorFunction:
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS):
        raise _refusal("have a comparison such as u < 1 as the first argument of where", type(node).__name__)
    return _apply(_COMPARISONS[type(node.ops[0])], _number(node.left, depth - 1), _number(node.comparators[0], depth - 1))


def _stable_log(name: str, argument: ast.expr, depth: int) -> TensorFunction | None:
    """Returns softplus(x) for log1p(exp(x)) and log(1 + exp(x)), logsigmoid(x) for log(sigmoid(x)), otherwise None."""
    if name == "log" and isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Add):
        others = [side for side in (argument.left, argument.right) if not _is_one(side)]
        name, argument = ("log1p", others[0]) if len(others) == 1 else (name, argument)
    stable = {("log1p", "exp"): "softplus", ("log", "sigmoid"): "logsigmoid"}
    if not isinstance(argument, ast.Call) or not isinstance(argument.func, ast.Name):
        return None
    function = UNARY.get(stable.get((name, argument.func.id), ""))
    if function is None or len(argument.args) != 1 or argument.keywords:
        return None
    inner = _number(argument.args[0], depth - 1)
    return lambda u: function(inner(u))


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 1


def _apply(function: Callable[[Tensor, Tensor], Tensor], left: TensorFunction, right: TensorFunction) -> TensorFunction:
    return lambda u: function(left(u), right(u))


def _refusal(must: str, got: str) -> ValueError:
    return ValueError(complaint("phi", must, got, "write a formula of u such as log1p(exp(-u))"))
