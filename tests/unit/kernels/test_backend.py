"""Which backend "auto" is: blocked in eager mode, plain wherever something must see the operations themselves."""

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import linearcore.kernels._binary as binary_module
import linearcore.kernels._dense as dense_module
from linearcore import binary_loss, multiclass_loss
from linearcore.kernels import BACKENDS
from linearcore.kernels._backend import choose_backend, is_differentiated

SCORES = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 2, 1, 1])


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Filled with what `choose_backend` answers."""
    answers: list[str] = []

    def spy(*arguments: object) -> str:
        answers.append(choose_backend(*arguments))
        return answers[-1]

    monkeypatch.setattr(dense_module, "choose_backend", spy)
    monkeypatch.setattr(binary_module, "choose_backend", spy)
    return answers


def multi(scores: Tensor, target: Tensor = TARGET, **options: object) -> Tensor:
    return multiclass_loss(scores, target, **options)


def yes_no(scores: Tensor, **options: object) -> Tensor:
    return binary_loss(scores, torch.full_like(SCORES, 0.5), **options)


both_losses = pytest.mark.parametrize("loss", (multi, yes_no), ids=("multiclass", "binary"))


@both_losses
def test_auto_is_blocked_in_eager_mode(loss, chosen: list[str]) -> None:
    loss(SCORES.clone().requires_grad_()).backward()
    loss(SCORES)
    with torch.no_grad():
        loss(SCORES)
    assert chosen == ["blocked"] * 3


@both_losses
@pytest.mark.parametrize("backend", ("plain", "blocked"))
def test_a_named_backend_is_taken(loss, backend: str, chosen: list[str]) -> None:
    loss(SCORES, backend=backend)
    assert chosen == [backend]
    assert set(BACKENDS) == {"auto", "plain", "blocked"}


@both_losses
@pytest.mark.parametrize(
    "transform",
    (
        lambda loss: torch.func.grad(loss)(SCORES),
        lambda loss: torch.func.vmap(lambda row: loss(row.expand(4, 3)))(SCORES),
        lambda loss: torch.func.jvp(loss, (SCORES,), (SCORES,)),
        lambda loss: torch.func.hessian(loss)(SCORES),
    ),
    ids=("grad", "vmap", "jvp", "hessian"),
)
def test_auto_is_plain_under_torch_func(loss, transform, chosen: list[str]) -> None:
    transform(loss)
    assert set(chosen) == {"plain"}


@both_losses
def test_auto_is_plain_in_forward_mode(loss, chosen: list[str]) -> None:
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(loss(forward_ad.make_dual(SCORES, torch.ones_like(SCORES)))).tangent
        loss(SCORES)
    assert chosen == ["plain", "blocked"]
    assert tangent is not None


def test_auto_is_plain_while_compiling() -> None:
    """The spy would be traced away, so the question is put to `choose_backend` itself."""

    @torch.compile(backend="eager", fullgraph=True)
    def answer(scores: Tensor) -> Tensor:
        return torch.ones_like(scores) if choose_backend("auto", scores) == "plain" else torch.zeros_like(scores)

    assert (answer(SCORES) == 1).all()


@pytest.mark.parametrize("name", ("target", "weight", "class_margin"))
def test_auto_is_plain_when_something_else_is_differentiated(name: str, chosen: list[str]) -> None:
    tensors = {"target": torch.full((4, 3), 1 / 3), "weight": torch.ones(3), "class_margin": torch.zeros(3)}
    leaf = tensors[name].requires_grad_()
    multi(SCORES, **tensors).backward()
    assert leaf.grad is not None
    with forward_ad.dual_level():
        tensors[name] = forward_ad.make_dual(leaf.detach(), torch.ones_like(leaf))
        assert forward_ad.unpack_dual(multi(SCORES, **tensors)).tangent is not None
        with pytest.raises(ValueError, match="`backend` must be able to differentiate all inputs"):
            multi(SCORES, backend="blocked", **tensors)
    assert chosen == ["plain", "plain"]


@pytest.mark.parametrize("name", ("target", "pos_weight"))
def test_auto_is_plain_for_binary_targets_and_weights(name: str, chosen: list[str]) -> None:
    tensors = {"target": torch.full((4, 3), 0.5), "pos_weight": torch.ones(3)}
    leaf = tensors[name].requires_grad_()
    binary_loss(SCORES, **tensors).backward()
    assert leaf.grad is not None
    with forward_ad.dual_level():
        tensors[name] = forward_ad.make_dual(leaf.detach(), torch.ones_like(leaf))
        assert forward_ad.unpack_dual(binary_loss(SCORES, **tensors)).tangent is not None
    assert chosen == ["plain", "plain"]


def test_sample_weights_need_no_plain_backend(chosen: list[str]) -> None:
    weight = torch.ones(4, requires_grad=True)
    multi(SCORES, sample_weight=weight).backward()
    assert weight.grad is not None and chosen == ["blocked"]


def test_is_differentiated() -> None:
    assert not is_differentiated(None)
    assert not is_differentiated(torch.ones(2))
    assert is_differentiated(torch.ones(2, requires_grad=True))
    with forward_ad.dual_level():
        assert is_differentiated(forward_ad.make_dual(torch.ones(2), torch.ones(2)))
