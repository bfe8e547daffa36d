"""The sampled multi-class loss: exact where all competitors are listed, sparse gradients, dtypes, what is refused."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from linearcore import Hinge, LinearCore, multiclass_loss, sampled_multiclass_loss
from linearcore.losses import Form, LogOdds, Pairwise, class_scores, sampled_multiclass_estimate
from linearcore.proposals import HardNegatives, InBatch, LogUniform, Proposal, Uniform, hard_negatives
from linearcore.surrogates import Surrogate
from tests.cases import A_FEW, allows, cross

NUM_CLASSES, WIDTH = 6, 3
TARGET = torch.tensor([0, 5, -100, 2, 2])
OTHERS = torch.stack([torch.cat([torch.arange(v), torch.arange(v + 1, NUM_CLASSES)]) for v in range(NUM_CLASSES)])
#: Everyone, and by accident the class itself and one twice.
ALL = HardNegatives(table=torch.cat([OTHERS, torch.arange(NUM_CLASSES).unsqueeze(-1), OTHERS[:, :1]], -1), rest=LogUniform())
FORMS: dict[str, Form] = {"sum": Pairwise(normalize=False), "mean": Pairwise(), "logodds": LogOdds()}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
every_reduction = pytest.mark.parametrize("reduction", ("none", "sum", "mean"))
SHARED, OWN, LISTED = Uniform(), Uniform(shared=False), HardNegatives(table=OTHERS[:, :2])
every_way = pytest.mark.parametrize(
    "proposal", (SHARED, OWN, LISTED, InBatch()), ids=("shared", "own", "listed", "in batch")
)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=stream(seed))


def leaves(num_rows: int = len(TARGET), num_classes: int = NUM_CLASSES) -> list[Tensor]:
    """Hidden states, weight and bias."""
    shapes = ((num_rows, WIDTH), (num_classes, WIDTH), (num_classes,))
    return [drawn(*shape, seed=place).requires_grad_() for place, shape in enumerate(shapes)]


def sampled(given: list[Tensor], target: Tensor = TARGET, **options: object) -> Tensor:
    hidden, weight, bias = given
    options = {"proposal": SHARED, "num_samples": 4, "generator": stream(9)} | options
    return sampled_multiclass_loss(hidden, weight, target, linear_bias=bias, **options)


def close(found: list[Tensor], expected: list[Tensor], tolerance: float = 1e-10) -> None:
    for ours, right in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, right, rtol=tolerance, atol=tolerance)


@cross(phi=A_FEW, form=FORMS, reduction=("none", "sum", "mean"), weighs=(False, True))
def test_lists_of_all_others_make_it_exact(form: Form, reduction: str, phi: Surrogate, weighs: bool) -> None:
    """The loss and its gradients, whatever is drawn besides."""
    if not allows(form, phi):
        return
    sample_weight = torch.tensor([0.5, 2.0, 7.0, 0.0, 1.5]).double() if weighs else None
    options = {"surrogate": phi, "form": form, "reduction": reduction, "sample_weight": sample_weight}
    results = []
    for way in ("dense", "sampled"):
        hidden, weight, bias = given = leaves()
        if way == "dense":
            loss = multiclass_loss(hidden @ weight.t() + bias, TARGET, **options)
        else:
            loss = sampled(given, proposal=ALL, num_samples=3, sparse=False, **options)
        upstream = drawn(len(TARGET), seed=7) if reduction == "none" else torch.tensor(1.0).double()
        results.append([loss.detach(), *torch.autograd.grad(loss, given, upstream)])
    close(results[1], results[0])
    assert results[0][1].abs().sum() > 0 and (results[1][1][2] == 0).all()


def test_without_bias() -> None:
    hidden, weight, _ = leaves()
    found = sampled_multiclass_loss(hidden, weight, TARGET, proposal=ALL, num_samples=1)
    torch.testing.assert_close(found, multiclass_loss(hidden @ weight.t(), TARGET))


def test_log_odds_and_a_mean_over_rows_are_the_defaults() -> None:
    options = {"form": "logodds", "surrogate": LinearCore(), "reduction": "mean", "sparse": False, "ignore_index": -100}
    assert torch.equal(sampled(leaves()), sampled(leaves(), **options))
    given = leaves()
    sampled(given).backward()
    assert not any(leaf.grad.is_sparse for leaf in given)
    given = leaves()
    sampled(given, sparse=True).backward()
    assert given[1].grad.is_sparse and given[2].grad.is_sparse and not given[0].grad.is_sparse


def test_pairwise_is_a_mean_unless_told() -> None:
    mean, total = (sampled(leaves(), form="pairwise", **more) for more in ({}, {"normalize": False}))
    torch.testing.assert_close(total, (NUM_CLASSES - 1) * mean)


@every_form
def test_another_class_to_ignore(form: Form) -> None:
    found = sampled(leaves(), TARGET.masked_fill(TARGET == -100, 2), form=form, ignore_index=2, reduction="none")
    assert (found[2:] == 0).all() and (found[:2] > 0).all()


def test_an_ignored_row_takes_no_part() -> None:
    rows = torch.tensor([0, 1, 3, 4])
    given = leaves()
    for proposal in (SHARED, ALL):
        without = sampled([given[0][rows], *given[1:]], TARGET[rows], proposal=proposal)
        torch.testing.assert_close(sampled(given, proposal=proposal), without)


@pytest.mark.parametrize("dtype", (torch.int32, torch.int16, torch.uint8), ids=str)
def test_targets_of_any_integer_type(dtype: torch.dtype) -> None:
    target = TARGET.masked_fill(TARGET == -100, 1)
    assert torch.equal(sampled(leaves(), target.to(dtype)), sampled(leaves(), target))


def test_a_class_of_an_unsigned_type_is_not_ignored() -> None:
    """156 is −100 in eight bits."""
    given, target = leaves(2, 200), torch.tensor([156, 3])
    for dtype in (torch.int64, torch.uint8):
        assert (sampled(given, target.to(dtype), reduction="none") > 0).all()


# Draws.


@every_way
def test_the_same_seed_gives_the_same_loss_and_leaves_the_global_stream_alone(proposal: Proposal) -> None:
    before = torch.get_rng_state()
    first, second, other = (sampled(leaves(), proposal=proposal, generator=stream(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, second) and not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@every_form
def test_shared_and_own_draws_are_one_loss_where_they_fall_alike(form: Form) -> None:
    """One row draws the same either way; so the two ways of taking products are compared."""
    for row in range(len(TARGET)):
        hidden, weight, bias = leaves()
        ways = [
            sampled([hidden[row : row + 1], weight, bias], TARGET[row : row + 1], form=form, proposal=way, reduction="sum")
            for way in (SHARED, OWN)
        ]
        torch.testing.assert_close(*ways)


@pytest.mark.parametrize("shape", ((1, 4), (5, 4)), ids=("shared", "own"))
@pytest.mark.parametrize("has_bias", (True, False))
def test_scores_of_some_classes(shape: tuple[int, int], has_bias: bool) -> None:
    hidden, weight, bias = leaves()
    own, others = TARGET.clamp(min=0), torch.randint(NUM_CLASSES, shape, generator=stream())
    scores = hidden @ weight.t() + (bias if has_bias else 0)
    for sparse in (True, False):
        found = class_scores(hidden, weight, bias if has_bias else None, own, others, sparse=sparse)
        close(list(found), [scores.gather(1, own[:, None])[:, 0], scores.gather(1, others.expand(5, -1))])


# Estimates.


@every_form
@every_way
@every_reduction
def test_an_estimate_has_the_loss_and_its_gradients(form: Form, proposal: Proposal, reduction: str) -> None:
    results = []
    for function in (sampled_multiclass_loss, sampled_multiclass_estimate):
        hidden, weight, bias = given = leaves()
        options = {"proposal": proposal, "num_samples": 4, "generator": stream(9), "reduction": reduction, "form": form}
        found = function(hidden, weight, TARGET, linear_bias=bias, **options)
        loss = found if isinstance(found, Tensor) else found.loss
        results.append([loss.detach(), *torch.autograd.grad(loss.sum(), given)])
    close(results[1], results[0])
    assert found.variance.shape == loss.shape and not found.variance.requires_grad
    assert found.effective_sample_size.shape == TARGET.shape


def test_effective_sample_sizes() -> None:
    """Equal weights count as many as there are; a target that is drawn does not count."""
    proposal, target = Uniform(), torch.tensor([0, 5])
    object.__setattr__(proposal, "sample", lambda *_: torch.tensor([[0, 1, 1, 2]]))
    hidden, weight, _ = leaves(2)
    size = sampled_multiclass_estimate(hidden, weight, target, proposal=proposal, num_samples=4).effective_sample_size
    torch.testing.assert_close(size, torch.tensor([3.0, 4.0]))
    uneven = LogUniform()
    object.__setattr__(uneven, "sample", lambda *_: torch.tensor([[1, 4, 4, 4]]))
    size = sampled_multiclass_estimate(hidden, weight, target, proposal=uneven, num_samples=4).effective_sample_size
    assert (size < 4).all() and (size > 1).all()


def test_one_sample_has_no_variance_to_report() -> None:
    hidden, weight, _ = leaves()
    assert sampled_multiclass_estimate(hidden, weight, TARGET, proposal=SHARED, num_samples=1).variance.isnan()


# Backends.


@every_form
@pytest.mark.parametrize("name", ("reference", "compiled"))
def test_backends_agree(form: Form, name: str) -> None:
    """In float64 the C kernels are the definition up to rounding, double backward included."""
    results = []
    for backend in ("eager", name):
        given = leaves()
        loss = sampled(given, form=form, backend=backend, surrogate=LinearCore("gamma", 0.3))
        first = torch.autograd.grad(loss, given, create_graph=True)
        second = torch.autograd.grad(sum(part.square().sum() for part in first), given)
        results.append([loss, *first, *second])
    close(results[1], results[0])


def test_compiled_kernels_are_refused_where_they_do_not_work() -> None:
    given = leaves()
    for options in ({"proposal": OWN}, {"surrogate": Hinge(), "form": "pairwise"}):
        with pytest.raises(ValueError, match=r"^`backend` must have compiled kernels"):
            sampled(given, backend="compiled", **options)
    with pytest.raises(ValueError, match=r"^`backend` must be one of"):
        sampled(given, backend="fastest")


class Careless(Uniform):
    """Returns a class that does not exist."""

    def sample(self, size, num_classes, like, generator):  # type: ignore[no-untyped-def]
        return torch.full(size, num_classes)


def test_a_proposal_that_leaves_the_classes_is_noticed() -> None:
    with pytest.raises(IndexError):
        sampled(leaves(), proposal=Careless())


class EverySecond(Uniform):
    """Returns classes with a gap between them, as a view. What is in the gap is a class, too."""

    def sample(self, size, num_classes, like, generator):  # type: ignore[no-untyped-def]
        return torch.randint(num_classes, (size[0], 2 * size[1]), generator=generator)[:, ::2]


@every_form
def test_candidates_may_be_a_view(form: Form) -> None:
    results = []
    for backend in ("compiled", "reference"):
        given = leaves()
        loss = sampled(given, form=form, proposal=EverySecond(), backend=backend)
        results.append([loss.detach(), *torch.autograd.grad(loss, given)])
    close(results[0], results[1])


@every_form
def test_inputs_of_the_kernels_with_any_strides(form: Form) -> None:
    """Hidden states by columns, with gaps, or one row for all; rows of the weight with gaps."""
    hidden, weight, bias = (leaf.detach() for leaf in leaves())
    gaps = torch.cat([weight, weight], -1)[:, :WIDTH]
    for view in (hidden.t().contiguous().t(), torch.stack([hidden, -hidden], -1)[..., 0], hidden[:1].expand(5, WIDTH)):
        results = []
        for given in ((view, gaps, bias), (view.contiguous(), weight, bias)):
            inputs = [tensor.detach().requires_grad_() for tensor in given]
            loss = sampled(inputs, form=form, backend="compiled")
            results.append([loss.detach(), *torch.autograd.grad(loss, inputs)])
        close(results[0], results[1], 1e-14)


# Sparse gradients.


@every_form
@every_way
def test_sparse_gradients_are_the_dense_ones(form: Form, proposal: Proposal) -> None:
    results = []
    for sparse in (False, True):
        given = leaves()
        sampled(given, form=form, proposal=proposal, sparse=sparse).backward()
        assert [leaf.grad.is_sparse for leaf in given] == [False, sparse, sparse]
        results.append([leaf.grad.to_dense() for leaf in given])
    close(results[1], results[0], 1e-12)
    # Four draws of six classes and five targets: something came twice.
    assert given[1].grad._nnz() > given[1].grad.coalesce()._nnz()


@pytest.mark.parametrize(("proposal", "entries"), ((SHARED, 5 + 4), (OWN, 5 + 5 * 4)), ids=("shared", "own"))
def test_as_many_entries_whatever_the_number_of_classes(proposal: Proposal, entries: int) -> None:
    for num_classes in (6, 10_000):
        given = leaves(num_classes=num_classes)
        sampled(given, proposal=proposal, sparse=True).backward()
        assert given[1].grad._nnz() == given[2].grad._nnz() == entries
        assert given[1].grad._values().shape == (entries, WIDTH)


OPTIMIZERS: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
    "SGD": lambda given: torch.optim.SGD(given, lr=0.1),
    "SparseAdam": lambda given: torch.optim.SparseAdam(given, lr=0.1),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
@every_way
def test_optimizers_take_a_step(make: Callable[[list[Tensor]], torch.optim.Optimizer], proposal: Proposal) -> None:
    """Those of the rows that were looked up move, the others stay."""
    given = leaves(num_classes=50)
    proposal = HardNegatives(table=hard_negatives(given[1], 2)) if isinstance(proposal, HardNegatives) else proposal
    before = [leaf.detach().clone() for leaf in given[1:]]
    optimizer = make(given[1:])
    sampled(given, proposal=proposal, form="pairwise", sparse=True).backward()
    dense = [leaf.grad.to_dense() for leaf in given[1:]]
    optimizer.step()
    for leaf, old, gradient in zip(given[1:], before, dense, strict=True):
        moved = old - leaf.detach()
        assert ((moved != 0) == (gradient != 0)).all() and 0 < (gradient != 0).sum() < gradient.numel()
        assert (moved * gradient).sum() > 0
        if isinstance(optimizer, torch.optim.SGD):
            torch.testing.assert_close(moved, 0.1 * gradient)


def test_training_with_few_of_many_classes_learns() -> None:
    given, target = leaves(40, 300), torch.arange(40)
    optimizer, generator = torch.optim.SparseAdam(given[1:], lr=0.05), stream()
    exact = [multiclass_loss(given[0] @ given[1].t() + given[2], target).item()]
    for _ in range(60):
        optimizer.zero_grad()
        sampled(given, target, num_samples=20, generator=generator, sparse=True).backward()
        optimizer.step()
    exact.append(multiclass_loss(given[0] @ given[1].t() + given[2], target).item())
    assert exact[1] < 0.5 * exact[0]


# Precisions, and nothing to sum over.


@every_way
@every_form
@pytest.mark.parametrize("half", (torch.bfloat16, torch.float16), ids=str)
def test_half_precision_goes_in_and_comes_out(proposal: Proposal, form: Form, half: torch.dtype) -> None:
    """Margins, sums and logarithms are in float32; the one rounding to half precision is of scores and of the result."""
    given = [leaf.detach().to(half).requires_grad_() for leaf in leaves()]
    found = sampled(given, form=form, proposal=proposal, reduction="none")
    assert found.dtype == half
    exact = sampled([leaf.detach().double() for leaf in given], form=form, proposal=proposal, reduction="none")
    size = max(1.0, exact.max().item())
    assert (found.double() - exact).abs().max().item() <= 4 * torch.finfo(half).eps * size
    found.sum().backward()
    assert all(leaf.grad.dtype == half for leaf in given)


def test_sums_of_half_precision_do_not_stop_growing() -> None:
    """A thousand competitors, each lost to by 1 + τ: bfloat16 would stop adding at 256."""
    given = [torch.zeros(1, 1), torch.zeros(1001, 1), torch.tensor([0.0] + [1.0] * 1000)]
    table = torch.arange(1001).repeat(1001, 1)
    options = {"form": "pairwise", "normalize": False, "proposal": HardNegatives(table=table), "num_samples": 1}
    found = sampled([leaf.bfloat16() for leaf in given], torch.zeros(1).long(), **options)
    assert found.item() == pytest.approx(1000 * LinearCore().value(-1.0), rel=0.004)


def test_the_weight_may_have_another_precision() -> None:
    given = leaves()
    exact = sampled(given, proposal=ALL)
    found = sampled([given[0], given[1].float(), given[2].float()], proposal=ALL)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("proposal", (SHARED, OWN, LISTED), ids=("shared", "own", "listed"))
@every_form
def test_no_rows(proposal: Proposal, form: Form) -> None:
    """A sum of 0 and a mean that is none, as torch has them, and gradients of 0."""
    given = leaves(0)
    for reduction in ("sum", "none", "mean"):
        loss = sampled(given, TARGET[:0], proposal=proposal, form=form, reduction=reduction)
        assert loss.shape == ((0,) if reduction == "none" else ())
        assert reduction == "none" or (loss.isnan() if reduction == "mean" else loss == 0)
    sampled(given, TARGET[:0], proposal=proposal, form=form, reduction="sum").backward()
    assert all((leaf.grad.to_dense() == 0).all() for leaf in given)


@every_way
@every_form
def test_nothing_but_ignored_rows(proposal: Proposal, form: Form) -> None:
    given, target = leaves(), torch.full((5,), -100)
    assert sampled(given, target, proposal=proposal, form=form).isnan()
    loss = sampled(given, target, proposal=proposal, form=form, reduction="sum")
    loss.backward()
    assert loss == 0 and all((leaf.grad.to_dense() == 0).all() for leaf in given)


@every_form
@pytest.mark.parametrize("shared", (True, False), ids=("shared", "own"))
def test_one_class_loses_nothing(form: Form, shared: bool) -> None:
    given = leaves(3, 1)
    loss = sampled(given, torch.zeros(3).long(), proposal=Uniform(shared=shared), form=form)
    loss.backward()
    assert loss == 0 and all((leaf.grad.to_dense() == 0).all() for leaf in given)


@pytest.mark.parametrize("phi", A_FEW.values(), ids=A_FEW.keys())
def test_a_class_whose_bias_is_minus_infinity_is_not_there(phi: Surrogate) -> None:
    results = []
    for way in ("dense", "sampled"):
        given = leaves()
        given[2].data[4] = -math.inf
        options = {"surrogate": phi, "form": Pairwise(normalize=False), "reduction": "sum"}
        if way == "dense":
            loss = multiclass_loss(given[0] @ given[1].t() + given[2], TARGET, **options)
        else:
            loss = sampled(given, proposal=ALL, sparse=False, **options)
        results.append([loss.detach(), *torch.autograd.grad(loss, given)])
    close(results[1], results[0])


# Messages.


def call(**changes: object) -> Callable[[], Tensor]:
    given: dict[str, object] = {
        "hidden": torch.zeros(5, WIDTH), "linear_weight": torch.zeros(NUM_CLASSES, WIDTH), "target": TARGET,
        "proposal": SHARED, "num_samples": 4,
    }  # fmt: skip
    return lambda: sampled_multiclass_loss(**(given | changes))


MESSAGES: dict[str, tuple[Callable[[], Tensor], type[Exception], str]] = {
    "hidden a list": (call(hidden=[[0.0]]), TypeError, r"^`hidden` must be a torch tensor, got list; "),
    "hidden integer": (call(hidden=torch.zeros(5, 3).long()), TypeError, r"^`hidden` must be floating point, got torch.int"),
    "hidden flat": (call(hidden=torch.zeros(3)), ValueError, r"^`hidden` must have shape \(N, d\), got \(3,\); flatten"),
    "hidden deep": (call(hidden=torch.zeros(2, 5, 3)), ValueError, r"^`hidden` must have shape \(N, d\), got \(2, 5, 3\)"),
    "weight a layer": (
        call(linear_weight=torch.nn.Linear(3, 6)),
        TypeError,
        r"^`linear_weight` must be a torch tensor, got",
    ),
    "weight a list": (call(linear_weight=[[0.0]]), TypeError, r"^`linear_weight` must be a torch tensor, got list; "),
    "weight transposed": (
        call(linear_weight=torch.zeros(WIDTH, NUM_CLASSES)),
        ValueError,
        r"^`linear_weight` must have shape \(3, 3\), got \(3, 6\); rows are classes, as in nn.Linear",
    ),
    "weight a number": (call(linear_weight=torch.tensor(1.0)), ValueError, r"^`linear_weight` must have shape .*, got \(\)"),
    "bias too long": (
        call(linear_bias=torch.zeros(7)),
        ValueError,
        r"^`linear_bias` must have shape \(6,\), got \(7,\); ",
    ),
    "bias a list": (call(linear_bias=[0.0] * 6), TypeError, r"^`linear_bias` must be a torch tensor, got list"),
    "target a list": (call(target=[0]), TypeError, r"^`target` must be a torch tensor, got list"),
    "target too short": (
        call(target=TARGET[:3]),
        ValueError,
        r"^`target` must have shape \(5,\), got \(3,\); ",
    ),
    "target of floats": (
        call(target=TARGET.float()),
        TypeError,
        r"^`target` must be integer class indices, got torch.float",
    ),
    "target of booleans": (call(target=TARGET > 0), TypeError, r"^`target` must be integer class indices, got torch.bool"),
    "target of probabilities": (
        call(target=torch.ones(5, 6)),
        ValueError,
        r"^`target` must have shape \(5,\), got \(5, 6\)",
    ),
    "sample_weight": (call(sample_weight=torch.ones(4)), ValueError, r"^`sample_weight` must have shape \(5,\), got \(4,\)"),
    "proposal a name": (
        call(proposal="uniform"),
        TypeError,
        r"^`proposal` must be a `Proposal`, got str; .*linearcore.proposals.Uniform\(\)",
    ),
    "proposal a class": (call(proposal=Uniform), TypeError, r"^`proposal` must be a `Proposal`, got ABCMeta"),
    "no samples": (call(num_samples=0), ValueError, r"^`num_samples` must be a positive integer, got 0; for example 64$"),
    "yes samples": (call(num_samples=True), ValueError, r"^`num_samples` must be a positive integer, got True"),
    "half a sample": (call(num_samples=2.5), ValueError, r"^`num_samples` must be a positive integer, got 2.5"),
    "centered": (call(form="centered"), ValueError, r"^`form` must not need all classes when it is sampled"),
    "form": (call(form="pairs"), ValueError, r"^`form` must be one of 'pairwise', 'centered', 'logodds', got 'pairs'"),
    "normalize": (call(normalize=True), ValueError, r"^`normalize` must be None or False for form='logodds', got True"),
    "surrogate": (call(surrogate="hinge"), TypeError, r"^`surrogate` must be a `Surrogate`, got str"),
    "surrogate rises": (call(surrogate=LinearCore("quartic")), ValueError, r"^`surrogate` must be non-increasing for form="),
    "reduction": (
        call(reduction="average"),
        ValueError,
        r"^`reduction` must be one of 'mean', 'sum', 'none', got 'average'",
    ),
    "table of others": (
        call(proposal=HardNegatives(table=OTHERS[:4])),
        ValueError,
        r"^`table` must be for 6 classes, got 4; list",
    ),
}


@pytest.mark.parametrize(("act", "error", "words"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(act: Callable[[], Tensor], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        act()
