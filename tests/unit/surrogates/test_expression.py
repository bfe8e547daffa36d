"""Formulas: what they compute, and that nothing but arithmetic gets through."""

import ast
import copy
import inspect
import io
import math
import pickle
import string
import time

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linearcore import Exponential, Hinge, LinearCore, LinearCoreLoss, Logistic, SquaredHinge, Surrogate
from linearcore.surrogates import UserSurrogate, _expression, parse_expression
from linearcore.surrogates._expression import BINARY, MAX_LENGTH, UNARY

POINTS = torch.linspace(-8, 8, 161, dtype=torch.float64)
SAME = {
    "log1p(exp(-u))": Logistic(),
    "log(1 + exp(-u))": Logistic(),
    "-log(sigmoid(u))": Logistic(),
    "exp(-u)": Exponential(),
    "max(0, 1 - u)": Hinge(),
    "relu(1 - u) ** 2": SquaredHinge(),
    "where(u <= 1, 1 - u + 2 * log(2), 2 * softplus(1 - u))": LinearCore(),
    "where(u > 1, exp(1 - u), 2 - u)": LinearCore("exponential"),
}


@pytest.mark.parametrize(("text", "surrogate"), SAME.items(), ids=SAME.keys())
def test_a_formula_is_the_surrogate_that_it_describes(text: str, surrogate: Surrogate) -> None:
    found = UserSurrogate.from_expression(text)
    torch.testing.assert_close(found.value(POINTS), surrogate.value(POINTS))
    at = POINTS + 1e-3  # Beside the kinks.
    torch.testing.assert_close(found.derivative(at), surrogate.derivative(at))
    torch.testing.assert_close(found.curvature(at), surrogate.curvature(at))
    assert not found.is_proven and found.is_c1 == surrogate.is_c1 and found.is_monotone and found.vanishes
    assert found.lipschitz == pytest.approx(surrogate.lipschitz) and found.smoothness == pytest.approx(
        surrogate.smoothness, rel=0.02
    )
    assert found.core == (None if surrogate.core is None else pytest.approx(surrogate.core))
    assert len(found.lines) == len(surrogate.lines)


def test_formulas_are_copied_saved_and_compared_by_their_text() -> None:
    surrogate = UserSurrogate.from_expression("max(0, 1 - u)")
    for copied in (pickle.loads(pickle.dumps(surrogate)), copy.deepcopy(surrogate), copy.copy(surrogate)):
        assert copied == surrogate and hash(copied) == hash(surrogate) and copied.facts == surrogate.facts
        assert torch.equal(copied.value(POINTS), surrogate.value(POINTS))
    assert UserSurrogate.from_expression(" max(0, 1 - u) ") == surrogate != UserSurrogate.from_expression("exp(-u)")
    file = io.BytesIO()
    torch.save(LinearCoreLoss(surrogate=surrogate, form="pairwise"), file)
    file.seek(0)
    scores, target = POINTS[:12].reshape(3, 4), torch.tensor([0, 1, 3])
    loss = torch.load(file, weights_only=False)(scores, target)
    assert torch.equal(loss, LinearCoreLoss(surrogate=surrogate, form="pairwise")(scores, target))


def test_large_margins_do_not_overflow() -> None:
    far = torch.tensor([-1e4, 1e4], dtype=torch.float64)
    for text in ("log1p(exp(-u))", "log(exp(-u) + 1)", "where(u < 1, 2 - u, exp(1 - u))"):
        found = UserSurrogate.from_expression(text)
        assert found.value(far).isfinite().all() and found.derivative(far).isfinite().all()
    assert UserSurrogate.from_expression("log1p(exp(-u))").value(30.0) == pytest.approx(math.exp(-30), rel=1e-9)


REFUSED = {
    "attribute": "u.__class__",
    "method": "u.exp()",
    "import": "__import__('os').system('true')",
    "builtin": "open('x')",
    "subscript": "u[0]",
    "lambda": "(lambda: u)()",
    "comprehension": "[u for u in (1, 2)]",
    "generator": "max(u for u in (1, 2))",
    "walrus": "(u := 1)",
    "string": "'u'",
    "f-string": "f'{u}'",
    "boolean": "True",
    "none": "None",
    "complex": "1j * u",
    "infinite": "1e999",
    "large integer": "9" * 400,
    "keyword": "exp(u, out=u)",
    "star": "exp(*u)",
    "double star": "exp(**u)",
    "dunder": "__builtins__",
    "function as a value": "exp",
    "condition outside where": "u < 1",
    "chained comparison": "where(0 < u < 1, u, u)",
    "boolean operator": "where(u and u, u, u)",
    "conditional": "u if u else 1",
    "integer division": "u // 2",
    "matrix product": "u @ u",
    "bits": "u | 1",
    "statement": "import os",
    "assignment": "u = 1",
    "two lines": "u\nu",
    "arguments": "max(u, 1, 2)",
    "null": "u\0",
    "deep": "-" * 60 + "u",
    "parentheses": "(" * 240 + "u" + ")" * 240,
    "long": "u" + "+u" * MAX_LENGTH,
    "empty": "   ",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`phi` must"):
        parse_expression(text)


WORDS = st.sampled_from(
    [
        *(
            *UNARY,
            *BINARY,
            "where",
            "u",
            "pi",
            "e",
            "x",
            "__import__",
            "eval",
            "__class__",
            "lambda",
            "for",
            "if",
            "1",
            "2.5",
        ),
        *("1e999", "9" * 60, "'a'", "True", "None", "...", "0x10", "1j", "**", "//", "==", ":=", "not", "in", "is"),
        *"()[]{}.,:+-*/%&|^!<@~'\" \n\t\\#",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.text(string.printable, max_size=600),
    st.lists(WORDS, max_size=80).map("".join),
    st.lists(WORDS, max_size=40).map(" ".join),
)


def branches(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Formulas, most of them allowed, with powers of powers and a few that are not."""
    two = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**", "%", "//", "@"]), inner)
    return st.one_of(
        two.map(lambda parts: f"({parts[0]}){parts[1]}({parts[2]})"),
        st.tuples(st.sampled_from([*UNARY, "eval", "u.exp"]), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(st.sampled_from([*BINARY, "pow"]), inner, inner).map(lambda parts: f"{parts[0]}({parts[1]},{parts[2]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"where({parts[0]}<{parts[1]},{parts[2]},{parts[0]})"),
        inner.map(lambda part: f"-{part}"),
        inner.map(lambda part: f"({part})[0]"),
        inner.map(lambda part: f"({part}).real"),
        inner.map(lambda part: f"[{part} for u in ({part},)]"),
    )


FORMULAS = st.recursive(st.sampled_from(["u", "1", "0", "2.5", "1e300", "999999999", "pi", "e"]), branches, max_leaves=12)
ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.BinOp, ast.Call, ast.Compare, ast.USub, ast.UAdd),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)


def check_one(text: str) -> None:
    """Either one line of refusal, or a formula of allowed parts only, which computes a tensor quickly."""
    started = time.perf_counter()
    try:
        function = parse_expression(text)
    except ValueError as error:
        assert "`phi` must" in str(error) and len(str(error)) < 500
        return
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        assert isinstance(node, ALLOWED)
        if isinstance(node, ast.Name):
            assert node.id in {*UNARY, *BINARY, "where", "u", "pi", "e"}
    result = function(POINTS)
    assert isinstance(result, torch.Tensor) and result.dtype == torch.float64 and result.numel() in (1, len(POINTS))
    assert time.perf_counter() - started < 5


@settings(max_examples=400)
@example("9**9**9**9**9")
@example("2.0**99999999999*u")
@example("exp(" * 39 + "u" + ")" * 39)
@example("(" * 150 + "u" + ")" * 150)
@example("log(1+exp(*u))")
@example("log(True+exp(u))")
@given(st.one_of(TEXTS, FORMULAS))
def test_no_text_gets_out_of_arithmetic(text: str) -> None:
    check_one(text)


@pytest.mark.slow
@settings(max_examples=20_000)
@given(st.one_of(TEXTS, FORMULAS))
def test_twenty_thousand_texts_do_not_either(text: str) -> None:
    check_one(text)


def test_the_parser_has_no_door_to_pythons_own() -> None:
    names = {node.id for node in ast.walk(ast.parse(inspect.getsource(_expression))) if isinstance(node, ast.Name)}
    assert not names & {"eval", "exec", "compile", "globals", "locals", "vars", "__import__", "setattr", "__builtins__"}


NOT_A_SURROGATE = {
    "not convex": ("1 / (1 + exp(u))", "be convex"),
    "rises at 0": ("exp(u)", "have φ'(0) < 0"),
    "constant": ("3", "have φ'(0) < 0"),
    "kink at 0": ("max(0, -u)", "be differentiable at 0"),
    "negative": ("-u", "be non-negative"),
    "undefined": ("log(u)", "be finite"),
    "jump": ("where(u < 1, 2 - u, 0)", "be convex"),
}


@pytest.mark.parametrize(("text", "message"), NOT_A_SURROGATE.values(), ids=NOT_A_SURROGATE.keys())
def test_functions_that_are_no_surrogate(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="`phi` must") as error:
        UserSurrogate.from_expression(text)
    assert message in str(error.value)


def test_a_function_must_be_elementwise() -> None:
    with pytest.raises(TypeError, match="`function` must return a tensor of the shape of its input"):
        UserSurrogate(lambda u: torch.exp(-u).sum())
    with pytest.raises(TypeError, match="`function` must map tensors to tensors"):
        UserSurrogate(lambda u: u.no_such_method())


def test_a_function_that_overflows_where_it_should_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`phi` must be finite, got a violation at u = -1000"):
        UserSurrogate(lambda u: torch.log1p(torch.exp(-u)))
    assert UserSurrogate(lambda u: torch.nn.functional.softplus(-u)).lipschitz == pytest.approx(1.0)
    assert UserSurrogate(lambda u: torch.exp(-u)).lipschitz == math.inf
