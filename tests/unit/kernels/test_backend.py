"""Which backend "auto" is: compiled or eager in eager mode, the reference wherever something must see the operations."""

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import linearcore.kernels._binary as binary_module
import linearcore.losses._multiclass as multiclass_module
from linearcore import BinaryLinearCoreLoss, Hinge, binary_loss, multiclass_loss
from linearcore.kernels import BACKENDS, is_differentiated, resolve_backend

SCORES = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 2, 1, 1])


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Filled with what `resolve_backend` answers."""
    answers: list[str] = []

    def spy(*arguments: object, **options: object) -> str:
        answers.append(resolve_backend(*arguments, **options))
        return answers[-1]

    monkeypatch.setattr(multiclass_module, "resolve_backend", spy)
    monkeypatch.setattr(binary_module, "resolve_backend", spy)
    return answers


def multi(scores: Tensor, target: Tensor = TARGET, **options: object) -> Tensor:
    return multiclass_loss(scores, target, **options)


def yes_no(scores: Tensor, **options: object) -> Tensor:
    return binary_loss(scores, torch.full_like(SCORES, 0.5), **options)


both_losses = pytest.mark.parametrize("loss", (multi, yes_no), ids=("multiclass", "binary"))


def test_auto_is_compiled_for_rows_and_eager_for_what_is_not_compiled(chosen: list[str]) -> None:
    multi(SCORES.clone().requires_grad_(), reduction="none").sum().backward()
    multi(SCORES, reduction="none")
    multi(SCORES, label_smoothing=0.1, reduction="none")
    multi(SCORES, surrogate=Hinge())
    multi(SCORES.half(), reduction="none")  # With a reduction it takes the kernel of whole batches.
    yes_no(SCORES, reduction="none")
    assert chosen == ["compiled", "compiled", "compiled", "eager", "eager", "eager"]


@both_losses
@pytest.mark.parametrize("backend", ("reference", "eager"))
def test_a_named_backend_is_taken(loss, backend: str, chosen: list[str]) -> None:
    loss(SCORES, backend=backend)
    assert chosen == [backend]
    assert set(BACKENDS) == {"auto", "reference", "eager", "compiled", "fused"}


@pytest.mark.parametrize("options", ({"surrogate": Hinge()}, {"class_margin": torch.ones(3)}), ids=str)
def test_compiled_is_refused_where_there_is_no_kernel(options: dict[str, object]) -> None:
    assert multi(SCORES, backend="compiled") == multi(SCORES)
    with pytest.raises(ValueError, match="`backend` must have compiled kernels for this loss and these scores"):
        multi(SCORES, backend="compiled", **options)


@pytest.mark.parametrize("backend", ("compiled", "fused"))
def test_binary_losses_name_the_backends_that_they_have(backend: str) -> None:
    for call in (lambda: yes_no(SCORES, backend=backend), lambda: BinaryLinearCoreLoss(backend=backend)):
        with pytest.raises(ValueError, match="`backend` must be one of 'auto', 'reference', 'eager'") as error:
            call()
        assert "class margins" not in str(error.value)


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
def test_auto_is_the_reference_under_torch_func(loss, transform, chosen: list[str]) -> None:
    transform(loss)
    assert set(chosen) == {"reference"}


@both_losses
def test_auto_is_the_reference_in_forward_mode(loss, chosen: list[str]) -> None:
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(loss(forward_ad.make_dual(SCORES, torch.ones_like(SCORES)))).tangent
        loss(SCORES)
    assert chosen == ["reference", "eager"]
    assert tangent is not None


def test_auto_is_the_reference_while_compiling() -> None:
    """The spy would be traced away, so the question is put to `resolve_backend` itself."""

    @torch.compile(backend="eager", fullgraph=True)
    def answer(scores: Tensor) -> Tensor:
        return torch.ones_like(scores) if resolve_backend("auto", (scores,)) == "reference" else torch.zeros_like(scores)

    assert (answer(SCORES) == 1).all()


@pytest.mark.parametrize("name", ("target", "weight", "class_margin"))
def test_auto_is_the_reference_when_something_else_is_differentiated(name: str, chosen: list[str]) -> None:
    tensors = {"target": torch.full((4, 3), 1 / 3), "weight": torch.ones(3), "class_margin": torch.zeros(3)}
    leaf = tensors[name].requires_grad_()
    multi(SCORES, **tensors).backward()
    assert leaf.grad is not None
    with forward_ad.dual_level():
        tensors[name] = forward_ad.make_dual(leaf.detach(), torch.ones_like(leaf))
        assert forward_ad.unpack_dual(multi(SCORES, **tensors)).tangent is not None
        with pytest.raises(ValueError, match="`backend` must be able to differentiate all inputs"):
            multi(SCORES, backend="eager", **tensors)
    assert chosen == ["reference", "reference"]


@pytest.mark.parametrize("name", ("target", "pos_weight"))
def test_auto_is_the_reference_for_binary_targets_and_weights(name: str, chosen: list[str]) -> None:
    tensors = {"target": torch.full((4, 3), 0.5), "pos_weight": torch.ones(3)}
    leaf = tensors[name].requires_grad_()
    binary_loss(SCORES, **tensors).backward()
    assert leaf.grad is not None
    with forward_ad.dual_level():
        tensors[name] = forward_ad.make_dual(leaf.detach(), torch.ones_like(leaf))
        assert forward_ad.unpack_dual(binary_loss(SCORES, **tensors)).tangent is not None
    assert chosen == ["reference", "reference"]


def test_sample_weights_do_not_need_the_reference(chosen: list[str]) -> None:
    weight = torch.ones(4, requires_grad=True)
    multi(SCORES, sample_weight=weight).backward()
    assert weight.grad is not None and chosen == ["compiled"]


def test_is_differentiated() -> None:
    assert not is_differentiated(None)
    assert not is_differentiated(torch.ones(2))
    assert is_differentiated(torch.ones(2, requires_grad=True))
    with forward_ad.dual_level():
        assert is_differentiated(forward_ad.make_dual(torch.ones(2), torch.ones(2)))


@pytest.mark.parametrize("options", ({}, {"form": "pairwise"}, {"label_smoothing": 0.1}), ids=str)
def test_fused_is_refused_where_there_is_no_kernel(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="`backend` must have fused kernels for this loss and device, got 'fused'"):
        multi(SCORES, backend="fused", **options)
