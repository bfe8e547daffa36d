"""LinearCoreChain against loops over whole sequences that differ from the truth at one site, and against the lab."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from linearcore.analysis import Local, conditional_risk
from linearcore.heads import LinearCoreChain
from linearcore.losses import Centered, Form, LogOdds, Pairwise, multiclass_loss
from linearcore.structures import Constraints, Hamming, Sequences
from linearcore.surrogates import Exponential, Hinge, LinearCore, Logistic, Surrogate
from tests.cases import A_FEW, FORMS, a_few_pairs, allows

every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
both_layouts = pytest.mark.parametrize("batch_first", (False, True), ids=("time first", "batch first"))

NUM_TAGS = 4
#: One a chain: on to the end, cut off, with holes. The tag of −100 is a hole in the first and comes in front of the last.
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 1, 1], [1, 1, 1, 1, 0]]).bool().t()
TAGS = torch.tensor([[0, 2, -100, 3, 1], [3, 3, 0, 0, 0], [1, -7, 99, 0, 3], [-100, 2, 0, 2, 0]]).t()
#: The tags above obey.
CONSTRAINTS = Constraints.forbid(NUM_TAGS, pairs=[(1, 1), (2, 1), (0, 0), (3, 2)], start=[], end=[0])
WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.25], dtype=torch.float64)
OPTIONS: dict[str, dict[str, object]] = {
    "free": {},
    "constrained": {"constraints": CONSTRAINTS},
    "low rank": {"rank": 2},
    "low rank constrained": {"rank": 2, "constraints": CONSTRAINTS},
    "weighted": {"cost": Hamming(WEIGHT)},
    "unary": {"unary": 0.3},
    "unary constrained": {"unary": 0.8, "constraints": CONSTRAINTS},
    "unary low rank weighted": {"unary": 0.5, "rank": 2, "cost": Hamming(WEIGHT)},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())


def drawn(*shape: int, seed: int = 0, scale: float = 1.5) -> Tensor:
    return scale * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def head_of(**options: object) -> LinearCoreChain:
    """A head in float64 whose scores are as large as the emissions."""
    head = LinearCoreChain(NUM_TAGS, **options).double()
    for place, parameter in enumerate(head.parameters()):
        parameter.data = drawn(*parameter.shape, seed=1 + place)
    return head


def matrix_of(head: LinearCoreChain) -> Tensor:
    return head.transitions if head.rank is None else head.transitions_from @ head.transitions_to.t()


def score(head: LinearCoreChain, matrix: Tensor, emissions: Tensor, places: list[int], tags: list[int]) -> Tensor:
    """h of one whole sequence, its tags sitting at `places` of `emissions` (L, |Y|)."""
    total = head.start_transitions[tags[0]] + head.end_transitions[tags[-1]]
    total = total + sum(emissions[place, tag] for place, tag in zip(places, tags, strict=True))
    return total + sum(matrix[pair] for pair in pairwise(tags))


def obeys(constraints: Constraints | None, tags: list[int]) -> bool:
    if constraints is None:
        return True
    steps = all(bool(constraints.transitions[pair]) for pair in pairwise(tags))
    return steps and bool(constraints.start[tags[0]]) and bool(constraints.end[tags[-1]])


def site_loss(surrogate: Surrogate, form: Form, scores: dict[int, Tensor], own: int) -> Tensor:
    """The form over the candidates of one site: the scores of the whole sequences, by the tag that they have there."""
    rivals = [value for tag, value in scores.items() if tag != own]
    if isinstance(form, LogOdds):
        return surrogate.value(scores[own] - torch.stack(rivals).logsumexp(0))
    assert isinstance(form, Pairwise | Centered)
    reference = scores[own] if isinstance(form, Pairwise) else sum(scores.values()) / len(scores)
    total = sum(surrogate.value(reference - rival) for rival in rivals)
    return total / len(rivals) if form.normalize else total


def loss_of_one(head: LinearCoreChain, emissions: Tensor, tags: list[int], mask: list[bool]) -> Tensor:
    """What one chain loses: emissions (L, |Y|), and lists that may have holes and tags of −100."""
    places = [place for place, tag in enumerate(tags) if mask[place] and tag != -100]
    truth, matrix, total = [tags[place] for place in places], matrix_of(head), emissions.new_zeros(())
    for site, own in enumerate(truth):
        scores = {}
        for tag in range(head.num_tags):
            changed = [*truth[:site], tag, *truth[site + 1 :]]
            if obeys(head.constraints, changed):
                scores[tag] = score(head, matrix, emissions, places, changed)
        weight = head.cost.weight[own] if isinstance(head.cost, Hamming) and head.cost.weight is not None else 1.0
        local = site_loss(head.surrogate, head.form, scores, own)
        alone = site_loss(head.surrogate, head.form, dict(enumerate(emissions[places[site]])), own)
        total = total + weight * ((1 - head.unary) * local + head.unary * alone)
    return total


def same_as_the_loop(head: LinearCoreChain) -> None:
    """Losses and all gradients, for the batch of this file."""
    emissions = drawn(*TAGS.shape, NUM_TAGS)
    leaves = []
    results = []
    for way in ("loop", "head"):
        leaf = emissions.clone().requires_grad_()
        leaves = [leaf, *head.parameters()]
        if way == "loop":
            rows = zip(leaf.unbind(1), TAGS.t().tolist(), MASK.t().tolist(), strict=True)
            losses = torch.stack([loss_of_one(head, *row) for row in rows])
        elif head.batch_first:
            losses = -head(leaf.transpose(0, 1), TAGS.t(), MASK.t(), reduction="none")
        else:
            losses = -head(leaf, TAGS, MASK, reduction="none")
        upstream = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
        results.append([losses.detach(), *torch.autograd.grad(losses, leaves, upstream)])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert results[0][0].abs().min() > 0 and results[0][1].abs().sum() > 0


@a_few_pairs
def test_equals_the_loop_over_single_changes(phi: Surrogate, form: Form) -> None:
    same_as_the_loop(head_of(surrogate=phi, form=form))


@every_form
@every_option
@both_layouts
def test_equals_the_loop_with_every_option(form: Form, options: dict[str, object], batch_first: bool) -> None:
    same_as_the_loop(head_of(form=form, surrogate=LinearCore("gamma", 0.3), batch_first=batch_first, **options))


@pytest.mark.parametrize("phi", A_FEW.values(), ids=A_FEW.keys())
@every_form
def test_a_forbidden_candidate_is_no_candidate(phi: Surrogate, form: Form) -> None:
    if allows(form, phi):
        same_as_the_loop(head_of(surrogate=phi, form=form, constraints=CONSTRAINTS))


@every_form
@pytest.mark.parametrize("phi", (LinearCore(), Hinge(), Logistic(), Exponential()), ids=str)
def test_a_site_without_another_candidate_loses_nothing(form: Form, phi: Surrogate) -> None:
    """Only 0 → 1 → 0 is allowed; the emissions speak against it, and nobody is asked."""
    constraints = Constraints.forbid(2, pairs=[(0, 0), (1, 1)], start=[1], end=[1])
    head = LinearCoreChain(2, form=form, surrogate=phi, constraints=constraints)
    emissions = torch.tensor([[[0.0, 9.0]], [[9.0, 0.0]], [[0.0, 9.0]]], requires_grad=True)
    loss = -head(emissions, torch.tensor([[0], [1], [0]]))
    loss.backward()
    assert loss == 0
    for leaf in (emissions, *head.parameters()):
        assert (leaf.grad == 0).all()


@every_form
def test_one_tag_loses_nothing(form: Form) -> None:
    head = LinearCoreChain(1, form=form)
    emissions = torch.randn(3, 2, 1, requires_grad=True)
    loss = -head(emissions, torch.zeros(3, 2).long())
    loss.backward()
    assert loss == 0 and (emissions.grad == 0).all()


@every_form
@pytest.mark.parametrize("length", (1, 2, 3))
def test_equals_the_lab(form: Form, length: int) -> None:
    """The conditional risk of a point mass on the truth, with scores of the chain family by the features of the lab."""
    space, head = Sequences(3, length), LinearCoreChain(3, surrogate=LinearCore("gamma"), form=form).double()
    emissions, transitions = drawn(length, 1, 3), drawn(3, 3, seed=1)
    head.start_transitions.data.zero_()
    head.end_transitions.data.zero_()
    head.transitions.data = transitions
    theta = torch.cat([emissions.reshape(-1), transitions.reshape(-1)])[: space.features("chain").shape[1]]
    scores = space.features("chain") @ theta
    for index, tags in enumerate(space.outputs):
        truth = torch.eye(space.size, dtype=torch.float64)[index]
        expected = conditional_risk(head.surrogate, Local(form), scores, truth, outputs=space)
        found = -head(emissions, tags.unsqueeze(-1)).item()
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("form", (Pairwise, Centered))
def test_a_name_is_the_default_instance(form: type[Pairwise] | type[Centered]) -> None:
    assert LinearCoreChain(3, form=form.name).form == form()
    assert LinearCoreChain(3, form=form.name, normalize=True).form == form(normalize=True)
    assert LinearCoreChain(3, form=form()).form == form(normalize=True)
    assert LinearCoreChain(3, form=form(), normalize=False).form == form(normalize=False)
    assert LinearCoreChain(3).form == LinearCoreChain(3, form="logodds", normalize=False).form == LogOdds()


def test_low_rank_equals_the_dense_head_with_the_product() -> None:
    low = head_of(rank=2, form="pairwise")
    dense = head_of(form="pairwise")
    dense.load_state_dict({"start_transitions": low.start_transitions, "end_transitions": low.end_transitions,
                           "transitions": matrix_of(low)})  # fmt: skip
    emissions = drawn(*TAGS.shape, NUM_TAGS)
    expected, found = (head(emissions, TAGS, MASK, reduction="none") for head in (dense, low))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(low.viterbi(emissions, MASK), dense.viterbi(emissions, MASK), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert [parameter.numel() for parameter in low.parameters()] == [4, 4, 8, 8]


def test_the_product_of_the_factors_starts_as_large_as_a_matrix() -> None:
    torch.manual_seed(0)
    for rank in (4, 64):
        head = LinearCoreChain(300, rank=rank)
        assert matrix_of(head).std().item() == pytest.approx(math.sqrt(0.01 / 3), rel=0.1)


def test_equal_weights_and_the_two_names_are_one_cost() -> None:
    emissions = drawn(*TAGS.shape, NUM_TAGS)
    plain, zero_one, ones, twos = (
        head_of(cost=cost)(emissions, TAGS, MASK)
        for cost in ("hamming", "zero-one", Hamming(torch.ones(NUM_TAGS)), Hamming(2 * torch.ones(NUM_TAGS)))
    )
    assert torch.equal(plain, zero_one) and torch.equal(plain, ones)
    torch.testing.assert_close(twos, 2 * plain)


LONG = 160
HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
every_half = pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
HALF_HEADS: dict[str, dict[str, object]] = {
    "logodds": {},
    "pairwise": {"form": "pairwise"},
    "centered": {"form": "centered"},
    "low rank": {"rank": 3},
    "unary": {"unary": 0.5},
}
every_half_head = pytest.mark.parametrize("options", HALF_HEADS.values(), ids=HALF_HEADS.keys())


def value_and_gradients(head: LinearCoreChain, emissions: Tensor, tags: Tensor) -> list[Tensor]:
    leaf = emissions.detach().requires_grad_()
    loss = -head(leaf, tags)
    return [loss.detach(), *torch.autograd.grad(loss, [leaf, *head.parameters()])]


def within(found: Tensor, exact: Tensor, error: float) -> None:
    """No further from the exact numbers than this share of the largest of them."""
    assert (found.double() - exact).abs().max() <= error * exact.abs().max()


@every_half
@every_half_head
def test_half_precision_emissions_are_computed_in_float32(half: torch.dtype, options: dict[str, object]) -> None:
    exact_head = head_of(**options)
    head = head_of(**options).float()
    exact_head.load_state_dict(head.state_dict())
    emissions = drawn(LONG, 2, NUM_TAGS).to(half)
    tags = torch.randint(NUM_TAGS, (LONG, 2), generator=torch.Generator().manual_seed(0))
    loss, by_emissions, *others = value_and_gradients(head, emissions, tags)
    exact, exact_by_emissions, *exact_others = value_and_gradients(exact_head, emissions.double(), tags)
    assert loss.dtype == torch.float32 and by_emissions.dtype == half
    # Ten times float32's rounding; one sum in bfloat16 would be off by thousands of that.
    within(loss, exact, 1e-6)
    within(by_emissions, exact_by_emissions, torch.finfo(half).eps)
    for found, expected in zip(others, exact_others, strict=True):
        assert found.dtype == torch.float32
        within(found, expected, 1e-5)


@every_half
@every_half_head
def test_a_head_in_half_precision_rounds_once(half: torch.dtype, options: dict[str, object]) -> None:
    head = head_of(**options).to(half)
    exact_head = head_of(**options)
    exact_head.load_state_dict(head.state_dict())
    emissions = drawn(LONG, 2, NUM_TAGS).to(half)
    tags = torch.randint(NUM_TAGS, (LONG, 2), generator=torch.Generator().manual_seed(0))
    found = value_and_gradients(head, emissions, tags)
    for ours, exact in zip(found, value_and_gradients(exact_head, emissions.double(), tags), strict=True):
        assert ours.dtype == half
        within(ours, exact, torch.finfo(half).eps)


def without_and_with_autocast(head: LinearCoreChain, emissions: Tensor) -> list[dict[str, Tensor]]:
    results = []
    for is_on in (False, True):
        leaf = emissions.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_on):
            loss, (tags, best), sure = -head(leaf, TAGS, MASK), head.viterbi(leaf), head.confidence(leaf, MASK, TAGS)
        # Outside, as torch asks for: inside, autograd's own products would be done in bfloat16.
        names, parameters = zip(*head.named_parameters(), strict=True)
        gradients = dict(zip(("emissions", *names), torch.autograd.grad(loss, [leaf, *parameters]), strict=True))
        results.append({"loss": loss.detach(), "tags": tags, "best": best, "sure": sure, **gradients})
    assert {name: part.dtype for name, part in results[0].items()} == {n: part.dtype for n, part in results[1].items()}
    return results


@every_half_head
@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float32, torch.float64), ids=str)
def test_autocast_changes_nothing_but_products_of_factors(options: dict[str, object], dtype: torch.dtype) -> None:
    """And these in training only, and no float64."""
    off, on = without_and_with_autocast(head_of(**options).float(), drawn(*TAGS.shape, NUM_TAGS).to(dtype))
    rounds = "rank" in options and dtype != torch.float64
    for name in ("tags", "best", "sure") if rounds else off:
        assert torch.equal(on[name], off[name]), name


@pytest.mark.parametrize("options", ({"rank": 3}, {"rank": 3, "unary": 0.5}), ids=("low rank", "unary"))
def test_autocast_rounds_the_products_of_factors(options: dict[str, object]) -> None:
    off, on = without_and_with_autocast(head_of(**options).float(), drawn(*TAGS.shape, NUM_TAGS).float())
    assert not torch.equal(on["loss"], off["loss"])
    for name, exact in off.items():
        within(on[name], exact.double(), 0.0 if name in ("tags", "best", "sure") else 8 * torch.finfo(torch.bfloat16).eps)


def test_autocast_has_second_derivatives() -> None:
    head, leaf = head_of(rank=3, unary=0.5).float(), drawn(*TAGS.shape, NUM_TAGS).float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = head(leaf, TAGS, MASK)
    (slope,) = torch.autograd.grad(loss, leaf, create_graph=True)
    assert all(part.isfinite().all() for part in torch.autograd.grad((slope**2).sum(), [leaf, *head.parameters()]))


@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
@pytest.mark.parametrize("options", ({}, {"constraints": CONSTRAINTS}, {"rank": 2}), ids=("free", "constrained", "low rank"))
def test_confidence_is_the_posterior_of_the_margin(form: str, options: dict[str, object]) -> None:
    """Of the log-odds, or of the lead over the best of the other candidates, each the score of a whole sequence."""
    head = head_of(form=form, **options)
    emissions = drawn(*TAGS.shape, NUM_TAGS)
    found, matrix = head.confidence(emissions, MASK, tags=TAGS), matrix_of(head)
    for column in range(TAGS.shape[1]):
        places = [place for place in range(len(TAGS)) if MASK[place, column] and TAGS[place, column] != -100]
        truth = TAGS[places, column].tolist()
        for site, place in enumerate(places):
            changes = [[*truth[:site], tag, *truth[site + 1 :]] for tag in range(NUM_TAGS) if tag != truth[site]]
            changes = [changed for changed in changes if obeys(head.constraints, changed)]
            rivals = torch.stack([score(head, matrix, emissions[:, column], places, changed) for changed in changes])
            against = rivals.logsumexp(0) if form == "logodds" else rivals.max()
            margin = score(head, matrix, emissions[:, column], places, truth) - against
            torch.testing.assert_close(found[place, column], head.surrogate.posterior(margin), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
def test_confidence_is_one_half_in_the_core(form: str) -> None:
    """A lead within ±τ of the core of [−τ, τ] is no opinion; beyond it, it is one."""
    head = LinearCoreChain(2, form=form, surrogate=LinearCore(tau=1.0, sides=2) if form == "pairwise" else LinearCore())
    for parameter in head.parameters():
        parameter.data.zero_()
    emissions = torch.tensor([[[0.75, 0.0]], [[0.0, 0.5]], [[0.0, 0.0]], [[9.0, 0.0]]])
    found = head.confidence(emissions).squeeze(-1)
    assert found[:3].tolist() == [0.5] * 3
    assert 0.5 < found[3] <= 1
    assert head.confidence(emissions, tags=torch.ones(4, 1).long())[3] < 0.5 or head.surrogate.core[0] == -math.inf


def test_confidence_of_the_only_candidate_is_the_largest_there_is() -> None:
    assert LinearCoreChain(1).confidence(torch.zeros(2, 1, 1)).tolist() == [[1.0], [1.0]]


def test_repr_says_what_is_not_usual() -> None:
    head = LinearCoreChain(4, True, rank=2, constraints=CONSTRAINTS, form="pairwise", surrogate=Hinge())
    chain, loss = "num_tags=4, rank=2, batch_first=True, constrained", "surrogate=Hinge(), form=Pairwise(normalize=True)"
    assert repr(head) == f"LinearCoreChain({chain}, {loss})"
    assert repr(LinearCoreChain(4, unary=0.25)).endswith("form=LogOdds(), unary=0.25)")


@every_form
def test_emissions_alone_do_not_see_the_chain(form: Form) -> None:
    """Nearly all of the loss on them: it is the multi-class loss, and transitions have hardly any gradient."""
    head, tags = head_of(form=form, unary=1 - 1e-9), torch.tensor([[0, 3], [2, 1], [1, 1]])
    emissions = drawn(3, 2, NUM_TAGS)
    loss = -head(emissions, tags)
    rows, labels = emissions.flatten(0, 1), tags.flatten()
    expected = multiclass_loss(rows, labels, surrogate=head.surrogate, form=form, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    assert torch.autograd.grad(loss, head.transitions)[0].abs().max() < 1e-7


def test_constraints_forbid_nothing_to_emissions_alone() -> None:
    """Only 0 → 1 → 0 is allowed: beside the neighbours there is no choice, and the emissions still learn."""
    constraints = Constraints.forbid(2, pairs=[(0, 0), (1, 1)], start=[1], end=[1])
    head = LinearCoreChain(2, constraints=constraints, unary=0.5)
    emissions, tags = drawn(3, 1, 2).float(), torch.tensor([[0], [1], [0]])
    torch.testing.assert_close(-head(emissions, tags), 0.5 * multiclass_loss(emissions[:, 0], tags[:, 0], reduction="sum"))


@pytest.mark.parametrize("rank", (None, 2))
def test_two_infinite_losses_are_infinite(rank: int | None) -> None:
    head = LinearCoreChain(2, surrogate=Exponential(), unary=0.5, rank=rank)
    assert head(torch.tensor([[[-1e4, 1e4]]]), torch.tensor([[0]])) == -math.inf
