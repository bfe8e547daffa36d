"""Conditional risks: what a `Problem` computes is the loss, and its derivatives are those of autograd."""

import math

import pytest
import torch
from torch import Tensor

from linearcore import Centered, Form, LinearCore, Logistic, LogOdds, Pairwise, Surrogate, multiclass_loss
from linearcore.analysis import STRUCTURED_FORMS, Local, conditional_risk
from linearcore.analysis._problem import Problem, as_probabilities
from linearcore.analysis._risk import Risk
from linearcore.structures import Sequences
from tests.cases import A_FEW, FORMS, a_few_pairs
from tests.oracles import row_losses

every_structured_form = pytest.mark.parametrize("form", STRUCTURED_FORMS)
SPACES = {"pairs": Sequences(2, 2), "two sites of three": Sequences(3, 2), "three sites": Sequences(2, 3)}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(*shape, dtype=torch.float64, generator=stream(seed))


def distribution(size: int, seed: int = 1) -> Tensor:
    return torch.randn(size, dtype=torch.float64, generator=stream(seed)).softmax(-1)


@pytest.mark.parametrize("num_classes", (2, 3, 5))
@a_few_pairs
def test_multiclass_risks_are_the_loss_with_probability_targets(phi: Surrogate, form: Form, num_classes: int) -> None:
    scores, p = normal(num_classes), distribution(num_classes)
    expected = float(multiclass_loss(scores.unsqueeze(0), p.unsqueeze(0), surrogate=phi, form=form))
    assert conditional_risk(phi, form, scores, p) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", ("pairwise", "centered", "logodds"))
def test_a_name_is_the_default_instance(name: str) -> None:
    scores, p = normal(4), distribution(4)
    default = {"pairwise": Pairwise(), "centered": Centered(), "logodds": LogOdds()}[name]
    assert conditional_risk(LinearCore(), name, scores, p) == conditional_risk(LinearCore(), default, scores, p)
    assert Problem(f"local-{name}", Sequences(2, 2)) == Problem(Local(default), Sequences(2, 2))


def test_a_form_is_called_by_its_name_only_if_it_is_the_default() -> None:
    assert Problem("pairwise", 3).form_name == Problem(Pairwise(), 3).form_name == "pairwise"
    assert Problem(Pairwise(normalize=False), 3).form_name == "Pairwise(normalize=False)"
    assert Problem(Local(Centered()), Sequences(2, 2)).form_name == "local-centered"
    assert Problem(Local(Centered(False)), Sequences(2, 2)).form_name == "Local(form=Centered(normalize=False))"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("surrogate", A_FEW.values(), ids=A_FEW.keys())
def test_pairs_that_the_losses_refuse_are_analysed_too(surrogate: Surrogate, form: object) -> None:
    scores, p = normal(4), distribution(4)
    expected = float((p * row_losses(surrogate, form, scores)).sum())
    assert conditional_risk(surrogate, form, scores, p) == pytest.approx(expected, rel=1e-13)


def hamming(y: list[int], z: list[int]) -> float:
    return sum(a != b for a, b in zip(y, z, strict=True)) / len(y)


def structured_loss(phi: Surrogate, form: str, space: Sequences, cost: str, h: Tensor, truth: int) -> float:
    """ℓ(h, y) as `docs/notation.md` has it, in loops over the whole output space."""
    outputs = space.outputs.tolist()
    y = outputs[truth]

    def wrong(other: list[int]) -> float:
        return hamming(other, y) if cost == "hamming" else float(other != y)

    def value(margin: float) -> float:
        return float(phi.value(margin))

    numbers = h.tolist()
    if form == "structured-sum":
        return sum(
            (1 - wrong(outputs[a])) * sum(value(numbers[a] - numbers[b]) for b in range(len(outputs)) if b != a)
            for a in range(len(outputs))
        )
    if form == "structured-centered":
        mean = sum(numbers) / len(numbers)
        return sum(wrong(outputs[a]) * value(-(numbers[a] - mean)) for a in range(len(outputs)))
    total = 0.0
    for site in range(space.length):
        changed = [numbers[outputs.index([*y[:site], tag, *y[site + 1 :]])] for tag in range(space.num_tags)]
        rivals = [changed[tag] for tag in range(space.num_tags) if tag != y[site]]
        if form == "local-pairwise":
            total += sum(value(numbers[truth] - rival) for rival in rivals) / len(rivals)
        elif form == "local-centered":
            total += sum(value(-(rival - sum(changed) / len(changed))) for rival in rivals) / len(rivals)
        else:
            total += value(numbers[truth] - math.log(sum(math.exp(rival) for rival in rivals)))
    return total


@every_space
@every_structured_form
@pytest.mark.parametrize("cost", ("zero-one", "hamming"))
@pytest.mark.parametrize("surrogate", (LinearCore(), LinearCore("exponential", 0.5, 2)), ids=("one side", "two sides"))
def test_structured_risks_are_double_loops(surrogate: Surrogate, cost: str, form: str, space: Sequences) -> None:
    scores, p = normal(space.size), distribution(space.size)
    expected = sum(
        float(p[truth]) * structured_loss(surrogate, form, space, cost, scores, truth) for truth in range(space.size)
    )
    got = conditional_risk(surrogate, form, scores, p, outputs=space, cost=cost)
    assert got == pytest.approx(expected, rel=1e-12)


PROBLEMS = {
    **{name: Problem(form, 4) for name, form in FORMS.items()},
    **{f"{form}, {family}": Problem(form, Sequences(2, 3), "hamming", family)
       for form in STRUCTURED_FORMS for family in ("free", "unary", "chain")},
}  # fmt: skip


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())
@pytest.mark.parametrize("surrogate", (Logistic(), LinearCore("gamma", 0.3, 2)), ids=("logistic", "gamma"))
def test_gradient_and_hessian_are_those_of_autograd(surrogate: Surrogate, problem: Problem) -> None:
    p = torch.stack([distribution(problem.space.size, seed) for seed in (1, 2, 3)])
    theta = normal(3, problem.basis.shape[1], seed=4)
    risk = Risk(surrogate, problem.system, p)
    value, gradient, hessian = risk.expand(theta)
    torch.testing.assert_close(value, risk.value(theta), rtol=1e-14, atol=0)
    for row in range(3):
        alone = Risk(surrogate, problem.system, p[row : row + 1])

        def of(point: Tensor, alone: Risk = alone) -> Tensor:
            return alone.value(point.unsqueeze(0))[0]

        torch.testing.assert_close(gradient[row], torch.func.grad(of)(theta[row]), rtol=1e-11, atol=1e-12)
        torch.testing.assert_close(hessian[row], torch.func.hessian(of)(theta[row]), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_basis_is_orthonormal_and_holds_the_family_without_its_constant(problem: Problem) -> None:
    basis, features = problem.basis, problem.space.features(problem.family)
    torch.testing.assert_close(basis.T @ basis, torch.eye(basis.shape[1], dtype=torch.float64), rtol=0, atol=1e-13)
    centred = features - features.mean(0)
    torch.testing.assert_close(basis @ (basis.T @ centred), centred, rtol=0, atol=1e-13)
    assert basis.sum(0).abs().max() < 1e-13


def test_target_regret_is_expected_cost_above_the_least() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    torch.testing.assert_close(Problem("pairwise", 3).target_regret(p), torch.tensor([[0.0, 0.2, 0.3]]).double())
    # P(site 1 = 0) = .7, P(site 2 = 0) = .4: expected Hamming cost of (a, b) is the mean of the two errors.
    p = torch.tensor([[0.3, 0.4, 0.1, 0.2]], dtype=torch.float64)
    expected = torch.tensor([[0.45, 0.35, 0.65, 0.55]]).double() - 0.35
    torch.testing.assert_close(Problem("structured-sum", Sequences(2, 2), "hamming").target_regret(p), expected)


MESSAGES = {
    "form": (lambda: Problem("softmax", 3), "`form` must be one of 'pairwise', 'centered', 'logodds', 'structured-sum'"),
    "cost": (lambda: Problem("pairwise", 3, "f2"), "`cost` must be one of 'zero-one', 'hamming', "),
    "family": (lambda: Problem("pairwise", 3, family="tree"), "`family` must be one of 'free', 'unary', 'chain', got"),
    "size": (lambda: as_probabilities([0.5, 0.5], 3), "`probabilities` must have 3 entries, one for each"),
    "sum": (lambda: as_probabilities([0.5, 0.4], 2), "`probabilities` must be non-negative and add up to 1"),
    "sign": (lambda: as_probabilities([1.5, -0.5], 2), "`probabilities` must be non-negative and add up to 1"),
    "NaN": (lambda: as_probabilities([float("nan"), 1.0], 2), "`probabilities` must be non-negative and add up to 1"),
    "batch": (lambda: conditional_risk(Logistic(), "pairwise", [0.0, 0.0], [[0.5, 0.5]]), "`probabilities` must have shape"),
    "scores": (lambda: conditional_risk(Logistic(), "pairwise", [0.0], [0.5, 0.5]), "`scores` must have shape (2,)"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(call, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
