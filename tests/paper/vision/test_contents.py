import enum
import functools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import linearcore as lc
from linearcore.losses.baselines import BaselineLoss, EarlyLearning
from linearcore_paper.vision._contents import Teller, UnknownError
from tests.fresh_python import fresh_python


def tell(value):
    return Teller(is_strict=True)(value)


def defined(text, name="loss", **known):
    """What a cell of a notebook defines."""
    space = {"__name__": "__main__", "F": F, "nn": nn, **known}
    exec(text, space)
    return space[name]


CELL = "def loss(scores, labels):\n    return {} * F.cross_entropy(scores, labels)"


def test_code_of_ones_own_is_part_of_it():
    assert tell(defined(CELL.format(1))) == tell(defined(CELL.format(1))) != tell(defined(CELL.format(2)))
    commented = CELL.replace("\n", "\n    'What it is.'\n    # And why.\n", 1)
    assert tell(defined(CELL.format(1))) == tell(defined(commented.format(1)))
    module = "class loss(nn.Module):\n    def forward(self, scores, labels):\n        return {} * scores[:, 0]"
    assert tell(defined(module.format(1))()) == tell(defined(module.format(1))()) != tell(defined(module.format(2))())


def test_what_it_looks_up_outside_is_part_of_it():
    for name, one, other in (("k", 1, 2), ("k", torch.ones(2), torch.zeros(2)), ("k", lambda: 1, lambda: 2)):
        texts = [tell(defined(CELL.format(name), k=value)) for value in (one, one, other)]
        assert texts[0] == texts[1] != texts[2]


def test_defaults_and_attributes_are_part_of_it():
    def make(number):
        def loss(scores, labels, q=number, *, r=2 * number):
            return q * r * scores

        return loss

    assert tell(make(1)) == tell(make(1)) != tell(make(2))
    marked = make(1)
    marked.temperature = 3
    assert tell(marked) != tell(make(1))


@dataclass
class Options:
    rate: float
    weight: torch.Tensor


class Kind(enum.Enum):
    ONE = 1


def test_values_are_told_apart():
    pairs = [
        (Options(1.0, torch.ones(2)), Options(1.0, torch.zeros(2))),
        (lc.LinearCore(tau=1.0), lc.LinearCore(tau=1.00000001)),
        (np.ones(2), np.ones(2, dtype=np.float32)),
        (torch.ones(2), torch.ones(2, dtype=torch.bfloat16)),
        (torch.tensor(1.0), torch.tensor([1.0])),
        (nn.Sequential(nn.Linear(1, 1)), nn.Sequential(nn.Linear(1, 1))),
        (EarlyLearning(5, 3), EarlyLearning(6, 3)),
        (BaselineLoss("generalized_cross_entropy", q=0.5), BaselineLoss("generalized_cross_entropy", q=0.6)),
        ({"a": [1, (2,)], "b": {3}}, {"a": [1, (2,)], "b": {4}}),
        (functools.partial(F.cross_entropy, weight=torch.ones(2)), F.cross_entropy),
    ]
    for one, other in pairs:
        assert tell(one) == tell(one) != tell(other)
        assert " at 0x" not in tell(one) and "\n" not in tell(one)
    assert tell([max, torch.exp, F.gelu, np.exp, Kind.ONE, torch.nn.Module, np]) == (
        "(max, _VariableFunctionsClass.exp, gelu, exp, <Kind.ONE: 1>, Module, numpy)"
    )


def test_a_function_that_calls_itself_comes_to_an_end():
    assert tell(defined("def loss(n):\n    return loss(n - 1)")).startswith("loss#")


def test_a_borrowed_name_is_not_believed():
    @functools.wraps(F.cross_entropy)
    def loss(scores, labels):
        return scores[:, 0]

    assert tell(loss).startswith("cross_entropy#")


@pytest.mark.parametrize(
    "value",
    [object(), np.array([object()]), torch.Generator(), [object()], torch.eye(2).to_sparse()],
    ids=["object", "array", "generator", "list", "sparse"],
)
def test_what_cannot_be_told_is_refused_or_marked(value):
    with pytest.raises(UnknownError):
        tell(value)
    assert "(?)" in Teller(is_strict=False)(value)


def test_words_are_the_same_in_every_process():
    told = (
        "from linearcore_paper.vision._contents import Teller\n"
        "def loss(scores, labels):\n    return scores if labels in {'a', 'b', 'c', 'd'} else scores * 2\n"
        "print(Teller(is_strict=True)(loss))"
    )
    first, second = (fresh_python("-c", told).stdout for _ in range(2))
    assert first == second and first.startswith("loss#")
