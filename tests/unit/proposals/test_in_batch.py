"""The classes of the batch for sure, draws for the rest: exact over all draws, what is in the batch, shapes.

What all proposals have in common is in `test_classes.py`, where this one is in the list.
"""

import copy
import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from linearcore import multiclass_loss, sampled_multiclass_loss
from linearcore.heads import LinearCoreChain
from linearcore.optim import SparseAdamW
from linearcore.proposals import Candidates, HardNegatives, InBatch, LogUniform, Mixture, Proposal, Uniform, Unigram

NUM_CLASSES, WIDTH = 6, 3
RESTS: dict[str, Proposal] = {
    "uniform": Uniform(),
    "log uniform": LogUniform(shared=False),
    "unigram": Unigram(counts=torch.tensor([0, 9, 2, 4, 1, 0])),
    "mixture": Mixture(parts=(Uniform(), LogUniform())),
}
every_rest = pytest.mark.parametrize("rest", RESTS.values(), ids=RESTS.keys())
shared_or_not = pytest.mark.parametrize("shared", (True, False), ids=("shared", "own"))
TARGETS: dict[str, list[int]] = {
    "some twice": [4, 1, 4, 0, 1],
    "one row": [5],
    "all of one class": [2, 2, 2],
    "the first class": [0, 0],
    "every class": [3, 0, 5, 1, 4, 2],
    "more rows than classes": [3, 0, 5, 1, 4, 2, 2, 3, 5],
    "none": [],
}
every_target = pytest.mark.parametrize("target", [torch.tensor(t).long() for t in TARGETS.values()], ids=TARGETS.keys())


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=stream(seed))


def fixed(proposal: InBatch, target: Tensor, num_samples: int, seed: int = 0, num_classes: int = NUM_CLASSES) -> Candidates:
    """As a compiler or a GPU has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        return proposal.candidates(target, num_classes, num_samples, stream(seed))


def cut(proposal: InBatch, target: Tensor, num_samples: int, seed: int = 0, num_classes: int = NUM_CLASSES) -> Candidates:
    """As a CPU has them."""
    return proposal.candidates(target, num_classes, num_samples, stream(seed))


Way = Callable[..., Candidates]
both_ways = pytest.mark.parametrize("way", (cut, fixed), ids=("cut", "fixed"))


def told(proposal: InBatch, draws: tuple[int, ...]) -> InBatch:
    """The proposal, with these draws in every row."""
    proposal = copy.copy(proposal)
    object.__setattr__(proposal, "sample", lambda size, *_: torch.tensor(draws).repeat(*size[:-1], 1))
    return proposal


def totals(found: Candidates, num_classes: int = NUM_CLASSES) -> Tensor:
    """(N, n): the summed weights of each class; a function of a class sums to f·these."""
    rows = len(found.log_weight)
    weight = found.log_weight.double().exp()
    return torch.zeros(rows, num_classes).double().scatter_add_(-1, found.index.expand(rows, -1), weight)


@every_target
@every_rest
@shared_or_not
@both_ways
def test_over_all_draws_every_other_class_weighs_one(target: Tensor, rest: Proposal, shared: bool, way: Way) -> None:
    """Exactly, as far as weights in float32 go: so does the sum over them of any function."""
    proposal, num_samples = InBatch(shared=shared, rest=rest), 2
    law = rest.log_prob(torch.arange(NUM_CLASSES), NUM_CLASSES).double().exp().tolist()
    expected = torch.zeros(len(target), NUM_CLASSES).double()
    for draws in itertools.product(range(NUM_CLASSES), repeat=num_samples):
        found = totals(way(told(proposal, draws), target, num_samples))
        # What is in the batch does not wait for the draws.
        assert (found[:, target] == (target != target.unsqueeze(-1))).all()
        expected += math.prod(law[v] for v in draws) * found
    exact = (torch.arange(NUM_CLASSES) != target.unsqueeze(-1)).double()
    torch.testing.assert_close(expected, exact, rtol=1e-6, atol=1e-6)


@every_target
@shared_or_not
def test_on_a_cpu_as_many_places_as_classes_in_the_batch(target: Tensor, shared: bool) -> None:
    index, log_weight = cut(InBatch(shared=shared), target, 3)
    known = sorted(set(target.tolist()))
    rows = 1 if shared else len(target)
    assert index.shape == (rows, len(known) + 3) and log_weight.shape == (len(target), len(known) + 3)
    assert index.dtype == torch.int64 and log_weight.dtype == torch.float32 and not log_weight.requires_grad
    assert index[:, : len(known)].tolist() == rows * [known]


@every_target
@shared_or_not
@pytest.mark.parametrize("num_classes", (NUM_CLASSES, 50))
def test_elsewhere_as_many_as_rows_or_classes(target: Tensor, shared: bool, num_classes: int) -> None:
    """The classes come first and weigh what they do on a CPU; what is too many is in the batch anyway and weighs nothing."""
    proposal, size = InBatch(shared=shared), min(len(target), num_classes)
    known = len(set(target.tolist()))
    left, right = (way(proposal, target, 3, num_classes=num_classes) for way in (cut, fixed))
    assert right.index.shape == (1 if shared else len(target), size + 3)
    assert right.log_weight.shape == (len(target), size + 3)
    kept = [*range(known), *range(size, size + 3)]
    assert torch.equal(right.index[:, kept], left.index) and torch.equal(right.log_weight[:, kept], left.log_weight)
    assert (right.log_weight[:, known:size] == -math.inf).all()
    assert torch.isin(right.index[:, known:size], target).all()


@both_ways
def test_targets_of_any_integer_type(way: Way) -> None:
    target = torch.tensor([4, 1, 4, 0])
    expected = way(InBatch(), target, 5)
    for dtype in (torch.int32, torch.uint8, torch.int16):
        found = way(InBatch(), target.to(dtype), 5)
        assert torch.equal(found.index, expected.index) and torch.equal(found.log_weight, expected.log_weight)
        assert found.index.dtype == torch.int64


def test_the_draws_are_those_of_the_rest() -> None:
    """Its law and its numbers, but not whether it shares them."""
    target, rest = torch.tensor([4, 1, 4]), LogUniform(shared=False)
    found = InBatch(rest=rest).candidates(target, 1000, 8, stream())
    assert torch.equal(found.index[:, 2:], rest.sample((1, 8), 1000, target, stream()))
    own = InBatch(rest=Uniform(), shared=False).candidates(target, 1000, 8, stream())
    assert torch.equal(own.index[:, 2:], Uniform().sample((3, 8), 1000, target, stream()))


# No shape depends on what is in the batch, and nothing is read back, but on a CPU.


@shared_or_not
def test_nothing_is_read_back_from_a_device(shared: bool) -> None:
    """Tensors without numbers in them refuse to be looked at."""
    found = InBatch(shared=shared).candidates(torch.zeros(9, dtype=torch.long, device="meta"), 50, 4)
    assert found.index.shape == (1 if shared else 9, 13) and found.log_weight.shape == (9, 13)
    assert found.index.device.type == found.log_weight.device.type == "meta"


@shared_or_not
def test_compiled_whole(shared: bool) -> None:
    """With the same draws, and for batches with other classes in them without compiling anew."""
    torch.compiler.reset()
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    proposal = told(InBatch(shared=shared), (0, 3, 5, 3))
    compiled = torch.compile(lambda target: proposal.candidates(target, NUM_CLASSES, 4), fullgraph=True, backend=backend)
    for target in (torch.tensor([4, 1, 4, 0]), torch.tensor([2, 2, 2, 2]), torch.tensor([0, 1, 2, 3])):
        found, expected = compiled(target), fixed(proposal, target, 4)
        assert found.log_weight.shape == (4, 4 + 4)
        assert torch.equal(found.index, expected.index) and torch.equal(found.log_weight, expected.log_weight)
    assert len(graphs) == 1
    torch.compiler.reset()


def test_a_loss_compiled_whole() -> None:
    """Of all classes, so that the draws have no part in it."""
    torch.compiler.reset()
    hidden, weight, target = (
        drawn(7, WIDTH).requires_grad_(),
        drawn(NUM_CLASSES, WIDTH, seed=1),
        torch.arange(7) % NUM_CLASSES,
    )
    compiled = torch.compile(sampled_multiclass_loss, fullgraph=True, backend="aot_eager")
    found = compiled(hidden, weight, target, proposal=InBatch(), num_samples=3, sparse=False)
    expected = multiclass_loss(hidden @ weight.t(), target)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(loss, hidden) for loss in (found, expected)))
    torch.compiler.reset()


# In losses and heads.


class Watched(InBatch):
    """Keeps what it was asked for."""

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        found = super().candidates(target, num_classes, num_samples, generator)
        object.__setattr__(self, "found", found)
        return found


def test_rows_that_are_ignored_or_masked_put_class_0_into_the_batch() -> None:
    """One candidate more: so the docstring says. The mean over all draws is in `tests/laws/test_sampled.py`."""
    watched, weight = Watched(), drawn(50, WIDTH, seed=1)
    for rows, known in ((torch.tensor([7, -100, 7, 9]), [0, 7, 9]), (torch.tensor([7, 9, 9, 9]), [7, 9])):
        sampled_multiclass_loss(drawn(4, WIDTH), weight, rows, proposal=watched, num_samples=5)
        assert watched.found.index[0, :-5].tolist() == known
        for padding in (-100, 3):
            tags, mask = rows.masked_fill(rows == -100, padding).view(4, 1), (rows != -100).view(4, 1)
            head = LinearCoreChain(50).double()
            head.sampled_loss(drawn(4, 1, WIDTH), weight, tags, mask, proposal=watched, num_samples=5)
            assert watched.found.index[0, :-5].tolist() == known


@shared_or_not
@pytest.mark.parametrize("form", ("logodds", "pairwise"))
def test_a_batch_of_all_classes_is_the_loss_over_all(shared: bool, form: str) -> None:
    """For `logodds`, too: nothing is left to be drawn."""
    tags = torch.tensor([[0, 3], [2, 1], [1, 0], [3, 3]])
    head, weight = LinearCoreChain(4, form=form).double(), drawn(4, WIDTH, seed=1)
    hidden = drawn(4, 2, WIDTH)
    found = head.sampled_loss(
        hidden, weight, tags, proposal=InBatch(shared=shared), num_samples=2, generator=stream(), reduction="sum"
    )
    torch.testing.assert_close(found, -head(hidden @ weight.t(), tags))


@pytest.mark.parametrize("form", ("logodds", "pairwise"))
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=str)
def test_places_that_are_too_many_change_no_loss_and_move_no_row(
    form: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SparseAdamW moves what has an entry, also one of 0, on the way that it was going."""
    target, found = torch.tensor([7, 9, 9, 9, 7, 30]), []
    for is_fixed in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda is_fixed=is_fixed: is_fixed)
        hidden, weight = (drawn(size, WIDTH, seed=size).to(dtype).requires_grad_() for size in (6, 50))
        optimizer = SparseAdamW([weight], lr=0.1, weight_decay=0.0)
        for step, rows in enumerate((torch.arange(6), target)):
            optimizer.zero_grad()
            loss = sampled_multiclass_loss(
                hidden, weight, rows, proposal=InBatch(), num_samples=1, form=form, generator=stream(step)
            )
            loss.backward()
            optimizer.step()
        assert loss.dtype == dtype or dtype == torch.bfloat16
        found.append((loss.detach(), hidden.grad, weight.detach()))
    for left, right in zip(*found, strict=True):
        tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("form", ("logodds", "pairwise"))
def test_a_batch_of_nothing_loses_nothing(form: str) -> None:
    hidden, weight = drawn(0, WIDTH).requires_grad_(), drawn(50, WIDTH).requires_grad_()
    target = torch.zeros(0).long()
    loss = sampled_multiclass_loss(hidden, weight, target, proposal=InBatch(), num_samples=3, form=form, reduction="sum")
    loss.backward()
    assert loss == 0 and (weight.grad.to_dense() == 0).all()


# Messages and equality.


@pytest.mark.parametrize(("rest", "got"), (("uniform", "str"), (None, "NoneType"), (Uniform, "ABCMeta")))
def test_a_rest_of_another_type(rest: object, got: str) -> None:
    with pytest.raises(TypeError, match=rf"^`rest` must be a `Proposal`, got {got}; for example Uniform\(\)$"):
        InBatch(rest=rest)


def test_a_rest_for_another_number_of_classes() -> None:
    proposal = InBatch(rest=Unigram(counts=torch.ones(3)))
    with pytest.raises(ValueError, match=r"^`counts` must be for 4 classes, got 3; count all classes, in their order"):
        proposal.candidates(torch.zeros(2).long(), 4, 2)


def test_options_are_named() -> None:
    with pytest.raises(TypeError):
        InBatch(Uniform())


def test_equal_proposals_are_equal() -> None:
    assert (
        InBatch() == InBatch(rest=Uniform()) != InBatch(rest=LogUniform()) != HardNegatives(table=torch.zeros(1, 1).long())
    )
    assert len({InBatch(), InBatch(shared=True), InBatch(shared=False)}) == 2
