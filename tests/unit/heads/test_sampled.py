"""LinearCoreChain.sampled_loss: exact where all candidates are listed, sparse gradients, what is refused."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from linearcore import sampled_multiclass_loss
from linearcore.heads import LinearCoreChain
from linearcore.losses import Form, LogOdds, Pairwise
from linearcore.proposals import HardNegatives, InBatch, LogUniform, Proposal, Uniform
from linearcore.structures import Constraints, Hamming
from linearcore.surrogates import LinearCore, Surrogate
from tests.cases import A_FEW, allows

NUM_TAGS, WIDTH = 4, 3
#: One a chain: on to the end, cut off, with holes. The tag of −100 is a hole in the first and comes in front of the last.
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 1, 1], [1, 1, 1, 1, 0]]).bool().t()
TAGS = torch.tensor([[0, 2, -100, 3, 1], [3, 3, 0, 0, 0], [1, -7, 99, 0, 3], [-100, 2, 0, 2, 0]]).t()
FULL_TAGS = torch.tensor([[0, 2, 3, 1, 3], [3, 3, 0, 2, 0]]).t()
#: The tags above obey; under the mask there are sites at which nothing does.
CONSTRAINTS = Constraints.forbid(NUM_TAGS, pairs=[(1, 1), (2, 1), (0, 0), (3, 2)], start=[], end=[0])
WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.25], dtype=torch.float64)
OPTIONS: dict[str, dict[str, object]] = {
    "free": {},
    "constrained": {"constraints": CONSTRAINTS},
    "low rank": {"rank": 2},
    "low rank constrained": {"rank": 2, "constraints": CONSTRAINTS},
    "weighted": {"cost": Hamming(WEIGHT)},
    "unary": {"unary": 0.3},
    "unary constrained": {"unary": 0.5, "constraints": CONSTRAINTS},
    "unary low rank weighted": {"unary": 0.5, "rank": 2, "cost": Hamming(WEIGHT)},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
FORMS: dict[str, Form] = {"sum": Pairwise(normalize=False), "mean": Pairwise(), "logodds": LogOdds()}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
both_layouts = pytest.mark.parametrize("batch_first", (False, True), ids=("time first", "batch first"))
every_reduction = pytest.mark.parametrize("reduction", ("none", "sum", "mean", "token_mean"))

OTHERS = torch.tensor([[1, 2, 3], [0, 2, 3], [3, 0, 1], [2, 1, 0]])
#: Everyone, and by accident the tag itself and one twice.
ALL = HardNegatives(table=torch.cat([OTHERS, torch.arange(NUM_TAGS).unsqueeze(-1), OTHERS[:, :1]], -1), rest=LogUniform())
SHARED, OWN, LISTED = Uniform(), Uniform(shared=False), HardNegatives(table=OTHERS[:, :1], shared=False)
every_way = pytest.mark.parametrize(
    "proposal", (SHARED, OWN, LISTED, InBatch()), ids=("shared", "own", "listed", "in batch")
)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return 1.5 * torch.randn(shape, dtype=torch.float64, generator=stream(seed))


def head_of(num_tags: int = NUM_TAGS, **options: object) -> LinearCoreChain:
    head = LinearCoreChain(num_tags, **options).double()
    for place, parameter in enumerate(head.parameters()):
        parameter.data = drawn(*parameter.shape, seed=5 + place)
    return head


def leaves(head: LinearCoreChain, tags: Tensor = TAGS) -> list[Tensor]:
    """Hidden states, weight, bias, and the head's own parameters."""
    shapes = ((*tags.shape, WIDTH), (head.num_tags, WIDTH), (head.num_tags,))
    given = [drawn(*shape, seed=place).requires_grad_() for place, shape in enumerate(shapes)]
    return [*given, *head.parameters()]


def turned(head: LinearCoreChain, tensor: Tensor | None) -> Tensor | None:
    return tensor.transpose(0, 1) if head.batch_first and tensor is not None else tensor


def dense(
    head: LinearCoreChain, given: list[Tensor], tags: Tensor = TAGS, mask: Tensor | None = MASK, **options: object
) -> Tensor:
    emissions = given[0] @ given[1].t() + given[2]
    return -head(turned(head, emissions), turned(head, tags), turned(head, mask), **options)


def sampled(
    head: LinearCoreChain, given: list[Tensor], tags: Tensor = TAGS, mask: Tensor | None = MASK, **options: object
) -> Tensor:
    options = {"proposal": SHARED, "num_samples": 3, "generator": stream(9), "reduction": "sum", "sparse": True} | options
    states, tags_given, mask_given = (turned(head, part) for part in (given[0], tags, mask))
    return head.sampled_loss(states, (given[1], given[2]), tags_given, mask_given, **options)


def close(found: list[Tensor], expected: list[Tensor], tolerance: float = 1e-10) -> None:
    for ours, right in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, right, rtol=tolerance, atol=tolerance)


def same_as_the_dense_head(head: LinearCoreChain, tags: Tensor = TAGS, mask: Tensor | None = MASK) -> None:
    """Losses and all gradients, with lists of all candidates and whatever is drawn besides."""
    upstream = torch.tensor([1.0, -2.0, 0.5, 3.0]).double()[: tags.shape[1]]
    results = []
    for way in ("dense", "sampled"):
        given = leaves(head, tags)
        if way == "dense":
            losses = dense(head, given, tags, mask, reduction="none")
        else:
            losses = sampled(head, given, tags, mask, reduction="none", proposal=ALL, sparse=False)
        results.append([losses.detach(), *torch.autograd.grad(losses, given, upstream)])
    close(results[1], results[0])
    assert all(part.abs().sum() > 0 for part in results[0])


@every_form
@every_option
@both_layouts
def test_lists_of_all_candidates_make_it_exact(form: Form, options: dict[str, object], batch_first: bool) -> None:
    same_as_the_dense_head(head_of(form=form, surrogate=LinearCore("gamma", 0.3), batch_first=batch_first, **options))


@pytest.mark.parametrize("phi", A_FEW.values(), ids=A_FEW.keys())
@every_form
@pytest.mark.parametrize("constraints", (None, CONSTRAINTS), ids=("free", "constrained"))
def test_lists_make_every_surrogate_exact(phi: Surrogate, form: Form, constraints: Constraints | None) -> None:
    """A forbidden candidate is no candidate, whatever φ is far out; and what is under the mask has no part in it."""
    if allows(form, phi):
        same_as_the_dense_head(head_of(surrogate=phi, form=form, constraints=constraints))


@every_form
@pytest.mark.parametrize("rank", (None, 2))
def test_without_a_mask(form: Form, rank: int | None) -> None:
    same_as_the_dense_head(head_of(form=form, rank=rank), FULL_TAGS, None)


@every_reduction
@both_layouts
def test_reductions_are_those_of_the_head(reduction: str, batch_first: bool) -> None:
    head = head_of(batch_first=batch_first)
    given = leaves(head)
    found = sampled(head, given, proposal=ALL, reduction=reduction)
    torch.testing.assert_close(found, dense(head, given, reduction=reduction))


@every_way
@every_form
def test_junk_under_the_mask_stays_there(proposal: Proposal, form: Form) -> None:
    """Hidden states that are no numbers, tags that are none: neither losses nor gradients see them."""
    head, results = head_of(form=form), []
    off = ~MASK | (TAGS == -100)
    for junk in (0.0, math.nan, math.inf):
        given = leaves(head)
        given[0].data[off] = junk
        loss = sampled(head, given, proposal=proposal, sparse=False)
        results.append([loss.detach(), *torch.autograd.grad(loss, given)])
    close(results[1], results[0])
    close(results[2], results[0])
    assert (results[0][1][off] == 0).all()


@every_way
def test_masked_sites_may_disobey(proposal: Proposal) -> None:
    """Where nothing is allowed after the tag of padding, there is no NaN in any gradient."""
    for phi in A_FEW.values():
        head = head_of(constraints=CONSTRAINTS, form="pairwise", surrogate=phi)
        given = leaves(head)
        loss = sampled(head, given, proposal=proposal, num_samples=40, sparse=False)
        assert loss.isfinite() and all(part.isfinite().all() for part in torch.autograd.grad(loss, given))


@pytest.mark.parametrize("form", (Pairwise(normalize=False), LogOdds()), ids=("sum", "logodds"))
@every_way
@pytest.mark.parametrize("cost", ("hamming", Hamming(WEIGHT)), ids=("plain", "weighted"))
def test_without_transitions_it_is_the_multi_class_loss(form: Form, proposal: Proposal, cost: str | Hamming) -> None:
    """Sites are rows, and with the same seed their draws are the same."""
    head = head_of(form=form, cost=cost)
    for parameter in head.parameters():
        parameter.data.zero_()
    given = leaves(head, FULL_TAGS)
    weight = None if isinstance(cost, str) else WEIGHT[FULL_TAGS.reshape(-1)]
    found = sampled(head, given, FULL_TAGS, None, proposal=proposal)
    rows = given[0].reshape(-1, WIDTH)
    expected = sampled_multiclass_loss(
        rows, given[1], FULL_TAGS.reshape(-1), linear_bias=given[2], form=form, proposal=proposal, num_samples=3,
        reduction="sum", generator=stream(9), sample_weight=weight,
    )  # fmt: skip
    torch.testing.assert_close(found, expected)


def test_low_rank_is_the_dense_head_with_the_product() -> None:
    low, full = head_of(rank=2, form="pairwise"), head_of(form="pairwise")
    full.load_state_dict({
        "start_transitions": low.start_transitions, "end_transitions": low.end_transitions,
        "transitions": low.transitions_from @ low.transitions_to.t(),
    })  # fmt: skip
    for proposal in (SHARED, OWN, LISTED):
        found, expected = (sampled(head, leaves(head), proposal=proposal) for head in (low, full))
        torch.testing.assert_close(found, expected)


class EverySecond(Uniform):
    """Returns tags with a gap between them, as a view. What is in the gap is a tag, too."""

    def sample(self, size, num_classes, like, generator):  # type: ignore[no-untyped-def]
        return torch.randint(num_classes, (size[0], 2 * size[1]), generator=generator)[:, ::2]


@pytest.mark.parametrize("form", ("logodds", "pairwise"))
@pytest.mark.parametrize("unary", (0.0, 0.3))
@pytest.mark.parametrize(("tags", "mask"), ((TAGS, MASK), (FULL_TAGS, None)), ids=("masked", "full"))
@pytest.mark.parametrize("proposal", (SHARED, EverySecond()), ids=("shared", "view"))
def test_kernels_compute_the_reference(
    form: str, unary: float, tags: Tensor, mask: Tensor | None, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, upstream = head_of(rank=3, form=form, unary=unary), drawn(tags.shape[1], seed=3)
    results = []
    for _ in range(2):
        given = leaves(head, tags)
        losses = sampled(head, given, tags, mask, proposal=proposal, reduction="none", sparse=False)
        results.append([losses.detach(), *torch.autograd.grad(losses, given, upstream)])
        monkeypatch.setattr("linearcore.heads._sampled.SiteLoss._kernels", lambda *_: None)
    close(results[0], results[1])


@pytest.mark.parametrize("form", ("logodds", "pairwise"))
def test_one_tag_loses_nothing(form: str) -> None:
    head = head_of(1, form=form)
    given = leaves(head, FULL_TAGS)
    loss = sampled(head, given, 0 * FULL_TAGS, None)
    loss.backward()
    assert loss == 0 and all((leaf.grad.to_dense() == 0).all() for leaf in given)


def test_the_projection_in_three_ways() -> None:
    head, layer = head_of(), nn.Linear(WIDTH, NUM_TAGS).double()
    bare = nn.Linear(WIDTH, NUM_TAGS, bias=False).double()
    hidden = drawn(*FULL_TAGS.shape, WIDTH)

    def loss(projection: object) -> Tensor:
        return head.sampled_loss(hidden, projection, FULL_TAGS, proposal=ALL, num_samples=1, reduction="sum", sparse=True)

    assert torch.equal(loss(layer), loss((layer.weight, layer.bias)))
    assert torch.equal(loss(bare), loss(bare.weight)) and torch.equal(loss(bare), loss((bare.weight, None)))
    torch.testing.assert_close(loss(layer), -head(layer(hidden), FULL_TAGS))
    torch.testing.assert_close(loss(bare), -head(bare(hidden), FULL_TAGS))


@pytest.mark.parametrize("proposal", (SHARED, OWN, LISTED), ids=("shared", "own", "listed"))
def test_the_same_seed_gives_the_same_loss_and_leaves_the_global_stream_alone(proposal: Proposal) -> None:
    head, before = head_of(), torch.get_rng_state()
    given = leaves(head)
    first, second, other = (
        sampled(head, given, proposal=proposal, num_samples=7, generator=stream(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, second) and not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


# Sparse gradients.


@every_way
@every_option
def test_sparse_gradients_are_the_dense_ones(proposal: Proposal, options: dict[str, object]) -> None:
    head, results = head_of(form="pairwise", **options), []
    for sparse in (False, True):
        given = leaves(head)
        loss = sampled(head, given, proposal=proposal, sparse=sparse)
        found = torch.autograd.grad(loss, given)
        assert [part.is_sparse for part in found] == [False] + [sparse] * (len(found) - 1)
        results.append([part.to_dense() for part in found])
    close(results[1], results[0], 1e-12)


@pytest.mark.parametrize("rank", (None, 2))
@pytest.mark.parametrize("proposal", (SHARED, OWN), ids=("shared", "own"))
def test_as_many_entries_whatever_the_number_of_tags(rank: int | None, proposal: Proposal) -> None:
    seen = []
    for num_tags in (4, 1500):
        head = head_of(num_tags, rank=rank)
        given = leaves(head)
        sampled(head, given, proposal=proposal).backward()
        seen.append([leaf.grad._nnz() for leaf in given[1:]])
    sites, draws = TAGS.numel(), 3 if proposal.shared else 3 * TAGS.numel()
    assert seen[0] == seen[1] and max(seen[0]) <= 2 * sites * (1 + 3) and seen[0][0] == sites + draws
    if rank is None:
        assert head.transitions.grad.sparse_dim() == 2 and head.start_transitions.grad.sparse_dim() == 1


OPTIMIZERS: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
    "SGD": lambda given: torch.optim.SGD(given, lr=0.1),
    "SparseAdam": lambda given: torch.optim.SparseAdam(given, lr=0.1),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
@every_option
@every_way
def test_optimizers_take_a_step(
    make: Callable[[list[Tensor]], torch.optim.Optimizer], options: dict[str, object], proposal: Proposal
) -> None:
    """All that has a gradient moves against it, and nothing else."""
    head = head_of(form="pairwise", **options)
    given = leaves(head)
    before = [leaf.detach().clone() for leaf in given[1:]]
    optimizer = make(given[1:])
    sampled(head, given, proposal=proposal).backward()
    gradients = [leaf.grad.to_dense() for leaf in given[1:]]
    optimizer.step()
    for leaf, old, gradient in zip(given[1:], before, gradients, strict=True):
        moved = old - leaf.detach()
        assert (moved[gradient == 0].abs() < 1e-12).all() and (moved * gradient).sum() > 0
        if isinstance(optimizer, torch.optim.SGD):
            torch.testing.assert_close(moved, 0.1 * gradient)


def test_training_with_few_of_many_tags_learns() -> None:
    head, tags = head_of(300), torch.randint(300, (12, 3), generator=stream())
    given = leaves(head, tags)
    optimizer, generator = torch.optim.SparseAdam(given[1:], lr=0.05), stream(1)
    exact = [dense(head, given, tags, None).item()]
    for _ in range(40):
        optimizer.zero_grad()
        sampled(head, given, tags, None, num_samples=20, generator=generator).backward()
        optimizer.step()
    assert dense(head, given, tags, None).item() < 0.5 * exact[0]


# Precisions, and nothing to sum over.


@every_way
@pytest.mark.parametrize("rank", (None, 2))
@pytest.mark.parametrize("form", ("logodds", "pairwise"))
def test_half_precision_hidden_states_are_computed_in_float32(proposal: Proposal, rank: int | None, form: str) -> None:
    head = head_of(rank=rank, form=form).float()
    given = [leaf.detach().float() for leaf in leaves(head)]
    given[0] = given[0].bfloat16().requires_grad_()
    found = sampled(head, given, proposal=proposal)
    exact = sampled(head.double(), [leaf.detach().double() for leaf in given], proposal=proposal)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=2e-6, atol=0)
    found.backward()
    assert given[0].grad.dtype == torch.bfloat16


@every_way
@pytest.mark.parametrize("rank", (None, 2))
@pytest.mark.parametrize("form", ("logodds", "pairwise"))
def test_a_head_in_half_precision_rounds_once(proposal: Proposal, rank: int | None, form: str) -> None:
    head = head_of(rank=rank, form=form).bfloat16()
    given = [leaf.detach().bfloat16() for leaf in leaves(head)]
    found = sampled(head, given, proposal=proposal)
    exact = sampled(head.double(), [leaf.double() for leaf in given], proposal=proposal)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, rtol=torch.finfo(torch.bfloat16).eps, atol=0)


@every_way
@pytest.mark.parametrize("rank", (None, 2))
@pytest.mark.parametrize("size", ((0, 2), (3, 0), (0, 0)), ids=str)
def test_nothing_to_sum_over(proposal: Proposal, rank: int | None, size: tuple[int, int]) -> None:
    head, tags = head_of(rank=rank), torch.zeros(size).long()
    given = leaves(head, tags)
    loss = sampled(head, given, tags, None, proposal=proposal)
    loss.backward()
    assert loss == 0 and all((leaf.grad.to_dense() == 0).all() for leaf in given)
    assert sampled(head, given, tags, None, proposal=proposal, reduction="none").shape == (size[1],)


@every_way
def test_nothing_but_ignored_tags(proposal: Proposal) -> None:
    """A sum of 0, a mean over tags that is none, as in the head itself."""
    head, tags = head_of(), torch.full_like(FULL_TAGS, -100)
    given = leaves(head, tags)
    loss = sampled(head, given, tags, None, proposal=proposal)
    loss.backward()
    assert loss == 0 and all((leaf.grad.to_dense() == 0).all() for leaf in given)
    assert sampled(head, given, tags, None, proposal=proposal, reduction="token_mean").isnan()
    assert dense(head, given, tags, None, reduction="token_mean").isnan()


# Messages.


def call(head: LinearCoreChain | None = None, **changes: object) -> Callable[[], Tensor]:
    given: dict[str, object] = {
        "hidden": torch.zeros(5, 2, WIDTH), "projection": torch.zeros(NUM_TAGS, WIDTH), "tags": FULL_TAGS,
        "proposal": SHARED, "num_samples": 4,
    }  # fmt: skip
    head = LinearCoreChain(NUM_TAGS) if head is None else head
    return lambda: head.sampled_loss(**(given | changes))


SMALL, PAIR = torch.zeros(NUM_TAGS, WIDTH), (torch.zeros(NUM_TAGS, WIDTH), torch.zeros(NUM_TAGS + 1))
MESSAGES: dict[str, tuple[Callable[[], Tensor], type[Exception], str]] = {
    "hidden a list": (call(hidden=[[[0.0]]]), TypeError, r"^`hidden` must be a torch tensor, got list"),
    "hidden integer": (
        call(hidden=torch.zeros(5, 2, 3).long()),
        TypeError,
        r"^`hidden` must be floating point, got torch.i",
    ),
    "hidden flat": (call(hidden=torch.zeros(5, 3)), ValueError, r"^`?hidden`? must have dimension of 3, got 2; "),
    "hidden of others": (
        call(hidden=torch.zeros(2, 5, 3)),
        ValueError,
        r"hidden.* must match, got \(2, 5\) and \(5, 2\); ",
    ),
    "projection a list": (
        call(projection=[SMALL, None]),
        TypeError,
        r"^`projection` must be an nn.Linear or its weight and bias, got list; ",
    ),
    "projection of three": (
        call(projection=(SMALL, None, 1)),
        TypeError,
        r"^`projection` must be an nn.Linear .* got tuple",
    ),
    "projection without weight": (call(projection=(None, SMALL)), TypeError, r"^`projection` must be .*, got tuple"),
    "bias a list": (call(projection=(SMALL, [0.0] * 4)), TypeError, r"^`projection` must be an nn.Linear or .*, got tuple"),
    "projection a module": (call(projection=nn.ReLU()), TypeError, r"^`projection` must be an nn.Linear .*, got ReLU"),
    "projection transposed": (
        call(projection=torch.zeros(WIDTH, NUM_TAGS)),
        ValueError,
        r"^`projection` must map 3 features to 4 tags, got a weight of \(3, 4\); ",
    ),
    "projection to more": (
        call(projection=nn.Linear(3, 5)),
        ValueError,
        r"^`projection` must map 3 features to 4 tags, got",
    ),
    "bias too long": (call(projection=PAIR), ValueError, r"^`projection` must .*bias.*, got .*\(5,\)"),
    "proposal a name": (
        call(proposal="uniform"),
        TypeError,
        r"^`proposal` must be a `Proposal`, got str; ",
    ),
    "no samples": (call(num_samples=0), ValueError, r"^`num_samples` must be a positive integer, got 0; "),
    "yes samples": (call(num_samples=True), ValueError, r"^`num_samples` must be a positive integer, got True"),
    "half a sample": (call(num_samples=2.5), ValueError, r"^`num_samples` must be a positive integer, got 2.5"),
    "reduction": (
        call(reduction="average"),
        ValueError,
        r"^invalid reduction: average; choose one of none, sum, mean, token",
    ),
    "centered": (
        call(LinearCoreChain(NUM_TAGS, form="centered")),
        ValueError,
        r"^`form` must not need all classes when it is sampled, got 'centered'; .*'pairwise'",
    ),
    "table of others": (
        call(proposal=HardNegatives(table=OTHERS[:3])),
        ValueError,
        r"^`table` must be for 4 classes, got 3; ",
    ),
    "tags out of range": (
        call(tags=FULL_TAGS + 1),
        ValueError,
        r"^`tags` must be in \[0, 4\) or -100, got tags from 1 to 4",
    ),
    "tags of floats": (call(tags=FULL_TAGS.float()), TypeError, r"^`tags` must be integers, got torch.float32"),
    "tags that disobey": (
        call(LinearCoreChain(NUM_TAGS, constraints=CONSTRAINTS), tags=0 * FULL_TAGS),
        ValueError,
        r"^`tags` must satisfy `constraints`",
    ),
}


@pytest.mark.parametrize(("act", "error", "words"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(act: Callable[[], Tensor], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        act()
