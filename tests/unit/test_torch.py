"""What torch does not promise is used where it is there, and done without where it is not."""

import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from linearcore import LinearCoreChain, multiclass_loss
from linearcore._torch import can_read, is_compiler_error, is_transformed, sample_gamma


def test_transforms_are_noticed() -> None:
    seen = []
    torch.func.vmap(lambda x: seen.append(is_transformed()) or x)(torch.zeros(2))
    assert seen == [True] and not is_transformed()


def test_a_torch_that_cannot_tell_goes_through_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, target = torch.randn(4, 5, requires_grad=True), torch.tensor([0, 1, -100, 4])
    emissions, tags = torch.randn(3, 2, 5, requires_grad=True), torch.tensor([[0, 1], [2, 3], [4, -100]])
    head = LinearCoreChain(5)

    def losses() -> torch.Tensor:
        return multiclass_loss(scores, target) - head(emissions, tags)

    before = losses()
    monkeypatch.delattr(torch._C, "_are_functorch_transforms_active")
    assert is_transformed() and can_read(scores)
    torch.testing.assert_close(losses(), before)
    monkeypatch.undo()


@pytest.mark.parametrize("is_there", (True, False))
def test_sample_gamma(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_there:
        monkeypatch.delattr(torch, "_standard_gamma")
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again = (sample_gamma(torch.full((4000,), 2.5), torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, again) and torch.equal(before, torch.get_rng_state())
    assert float(first.mean()) == pytest.approx(2.5, abs=0.1) and float(first.var()) == pytest.approx(2.5, abs=0.25)


def test_errors_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._dynamo.exc", raising=False)
    assert not is_compiler_error(RuntimeError())
    monkeypatch.undo()
    from torch._dynamo.exc import Unsupported

    assert not is_compiler_error(RuntimeError()) and is_compiler_error(Unsupported("a reason"))


@pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
def test_fake_tensors_and_traces_are_not_read(form: str) -> None:
    scores, target = torch.randn(4, 5), torch.tensor([0, 1, 2, 4])
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(scores), mode.from_tensor(target)
        assert not can_read(fake[0]) and multiclass_loss(*fake, form=form).shape == ()
        head, tags = LinearCoreChain(5, form=form), torch.zeros(4, 1, dtype=torch.long)
        assert head.loss(fake[0].unsqueeze(1), tags).shape == ()
    graph = make_fx(lambda s, t: multiclass_loss(s, t, form=form))(scores, target)
    torch.testing.assert_close(graph(scores, target), multiclass_loss(scores, target, form=form))


def test_a_torch_that_cannot_tell_still_validates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_are_functorch_transforms_active")
    with pytest.raises(ValueError, match="`tags` must be in"):
        LinearCoreChain(3)(torch.zeros(2, 1, 3), torch.tensor([[0], [3]]))
    with pytest.raises(ValueError, match="`emissions` must contain neither NaN"):
        LinearCoreChain(3).decode(torch.full((2, 1, 3), torch.nan))
