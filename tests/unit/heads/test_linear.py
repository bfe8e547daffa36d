"""`linear_loss` of every head: the loss of projection(hidden), in chunks."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from linearcore.heads import ChainCRF, ChainSSVM, LinearCoreChain
from linearcore.heads._chain import ChainHead
from linearcore.structures import Constraints, Hamming
from linearcore.surrogates import Logistic
from tests.cases import A_FEW

NUM_TAGS, WIDTH, LENGTH, CHAINS = 300, 4, 5, 4
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 1, 1], [1, 1, 1, 1, 0]]).bool().t()
TAGS = torch.tensor([[0, 2, -100, 299, 1], [3, 3, 0, 0, 0], [1, -7, 999, 0, 3], [-100, 2, 0, 256, 0]]).t()
HEADS: dict[str, tuple[type[ChainHead], dict[str, object]]] = {
    "full": (LinearCoreChain, {}),
    "pairwise": (LinearCoreChain, {"form": "pairwise"}),
    "unary": (LinearCoreChain, {"unary": 0.3}),
    "constrained": (LinearCoreChain, {"rank": 2, "constraints": Constraints.forbid(NUM_TAGS, pairs=[(1, 1)])}),
    "low rank": (LinearCoreChain, {"rank": 2}),
    "low rank, pairwise": (LinearCoreChain, {"rank": 2, "form": "pairwise"}),
    "low rank, centered": (LinearCoreChain, {"rank": 2, "form": "centered", "normalize": False}),
    "low rank, unary, weighted": (
        LinearCoreChain, {"rank": 2, "unary": 0.5, "cost": Hamming(torch.linspace(0, 2, NUM_TAGS, dtype=torch.float64))},
    ),
    "crf": (ChainCRF, {}),
    "crf, low rank": (ChainCRF, {"rank": 2}),
    "ssvm": (ChainSSVM, {}),
}  # fmt: skip
every_head = pytest.mark.parametrize(("make", "options"), HEADS.values(), ids=HEADS.keys())


def head_of(make: type[ChainHead], **options: object) -> ChainHead:
    torch.manual_seed(0)
    return make(NUM_TAGS, strict_mask=False, **options).double()


def hidden_of(*, batch_first: bool = False) -> Tensor:
    hidden = torch.randn(LENGTH, CHAINS, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return (hidden.transpose(0, 1).contiguous() if batch_first else hidden).requires_grad_()


def with_gradients(head: ChainHead, layer: nn.Linear, hidden: Tensor, loss: Tensor) -> list[Tensor]:
    upstream = torch.arange(1.0, 1.0 + max(1, loss.numel())).reshape(loss.shape).to(loss.dtype)
    parts = [hidden, *layer.parameters(), *head.parameters()]
    return [loss.detach(), *torch.autograd.grad(loss, parts, upstream, materialize_grads=True)]


def close(found: list[Tensor], expected: list[Tensor], tolerance: float = 1e-10) -> None:
    for mine, right in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, right, rtol=tolerance, atol=tolerance)


@every_head
@pytest.mark.parametrize(
    ("reduction", "batch_first", "chunk_bytes"),
    (("none", False, 1), ("token_mean", True, 1), ("sum", False, 1), ("mean", False, None)),
)
def test_equals_the_loss_of_all_emissions(
    make: type[ChainHead], options: dict[str, object], reduction: str, batch_first: bool, chunk_bytes: int | None
) -> None:
    head, layer = head_of(make, batch_first=batch_first, **options), nn.Linear(WIDTH, NUM_TAGS).double()
    tags, mask = (part.t() if batch_first else part for part in (TAGS, MASK))
    hidden = hidden_of(batch_first=batch_first)
    expected = with_gradients(head, layer, hidden, head.loss(layer(hidden), tags, mask, reduction))
    loss = head.linear_loss(hidden, layer, tags, mask, reduction=reduction, chunk_bytes=chunk_bytes)
    close(with_gradients(head, layer, hidden, loss), expected)
    assert all(part.abs().sum() > 0 for part in expected[1:3])


@every_head
def test_without_mask_and_bias(make: type[ChainHead], options: dict[str, object]) -> None:
    head, layer = head_of(make, **options), nn.Linear(WIDTH, NUM_TAGS, bias=False).double()
    hidden, tags = hidden_of(), TAGS.clamp(0, NUM_TAGS - 1)
    expected = with_gradients(head, layer, hidden, head.loss(layer(hidden), tags))
    for projection in (layer, layer.weight, (layer.weight, None)):
        close(with_gradients(head, layer, hidden, head.linear_loss(hidden, projection, tags, chunk_bytes=1)), expected)


@every_head
def test_padding_may_be_nan(make: type[ChainHead], options: dict[str, object]) -> None:
    head, layer = head_of(make, **options), nn.Linear(WIDTH, NUM_TAGS).double()
    hidden = hidden_of().detach()
    expected = head.loss(layer(hidden), TAGS, MASK)
    found = head.linear_loss(hidden.masked_fill(~MASK.unsqueeze(-1), torch.nan), layer, TAGS, MASK, chunk_bytes=1)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("rank", (None, 2))
def test_autocast(rank: int | None) -> None:
    head, layer = head_of(LinearCoreChain, rank=rank).float(), nn.Linear(WIDTH, NUM_TAGS)
    hidden = hidden_of().detach().float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        expected, found = head.loss(layer(hidden), TAGS, MASK), head.linear_loss(hidden, layer, TAGS, MASK, chunk_bytes=1)
    assert found.dtype == expected.dtype == torch.float32
    close(with_gradients(head, layer, hidden, found), with_gradients(head, layer, hidden, expected), 2e-2)


def test_second_derivatives() -> None:
    head, layer = head_of(LinearCoreChain, rank=2, surrogate=Logistic()), nn.Linear(WIDTH, NUM_TAGS).double()
    hidden, results = hidden_of(), []
    for loss in (head.loss(layer(hidden), TAGS, MASK), head.linear_loss(hidden, layer, TAGS, MASK, chunk_bytes=1)):
        (gradient,) = torch.autograd.grad(loss, hidden, create_graph=True)
        results.append(list(torch.autograd.grad(gradient.square().sum(), [hidden, layer.weight, head.transitions_to])))
    close(results[1], results[0])


@pytest.mark.parametrize("phi", A_FEW.values(), ids=A_FEW.keys())
def test_surrogates(phi: object) -> None:
    head, layer = head_of(LinearCoreChain, rank=2, form="pairwise", surrogate=phi), nn.Linear(WIDTH, NUM_TAGS).double()
    hidden = hidden_of()
    expected = with_gradients(head, layer, hidden, head.loss(layer(hidden), TAGS, MASK))
    close(with_gradients(head, layer, hidden, head.linear_loss(hidden, layer, TAGS, MASK, chunk_bytes=1)), expected)


def test_what_does_not_fit_is_refused() -> None:
    head, hidden = head_of(LinearCoreChain), hidden_of()
    layer = nn.Linear(WIDTH, NUM_TAGS).double()
    with pytest.raises(ValueError, match="`projection` must map 4 features to 300 tags"):
        head.linear_loss(hidden, nn.Linear(WIDTH, 7).double(), TAGS, MASK)
    with pytest.raises(ValueError, match="invalid reduction"):
        head.linear_loss(hidden, layer, TAGS, MASK, reduction="all")
    with pytest.raises(ValueError, match="hidden must have dimension of 3"):
        head.linear_loss(hidden[0], layer, TAGS, MASK)
    with pytest.raises(ValueError, match=r"`tags` must be in \[0, 300\)"):
        head.linear_loss(hidden, layer, TAGS.clamp(min=0), MASK | True)


def test_gradients_are_refused_if_the_parameters_were_exchanged() -> None:
    """The head reads its own parameters; under functional_call they are the original ones again in the backward pass."""
    head, layer = LinearCoreChain(5), nn.Linear(4, 5)
    hidden, tags = torch.randn(6, 8, 4), torch.randint(5, (6, 8))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = head

        def forward(self, reduction: str) -> Tensor:
            return self.head.linear_loss(hidden, layer, tags, reduction=reduction, chunk_bytes=1)

    others = {f"head.{name}": torch.randn_like(value).requires_grad_() for name, value in head.named_parameters()}
    functional_call(Model(), others, ("token_mean",)).backward()  # Computed in the forward pass.
    assert all(value.grad.abs().max() > 0 for value in others.values())
    losses = functional_call(Model(), others, ("none",))
    with pytest.raises(RuntimeError, match="other parameters than in the forward pass"):
        losses.sum().backward()


@pytest.mark.parametrize("chunk_bytes", (-1, 0, 0.5, "1", True))
@pytest.mark.parametrize("rank", (None, 2))
def test_a_chunk_has_a_size(rank: int | None, chunk_bytes: object) -> None:
    with pytest.raises(ValueError, match="`chunk_bytes` must be a positive integer"):
        LinearCoreChain(5, rank=rank).linear_loss(
            torch.randn(6, 8, 4), nn.Linear(4, 5), torch.randint(5, (6, 8)), chunk_bytes=chunk_bytes
        )
