"""Chain heads under torch.compile, torch.export, torch.func and in forward mode: the numbers of eager mode.

Training compiles to the traced graph (`aot_eager`), once through inductor's code generation. Decoding is exported with a
batch of any size.
"""

import shutil
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp, vmap

from linearcore.heads import ChainCRF, ChainHead, ChainSSVM, LinearCoreChain
from linearcore.structures import Constraints
from tests.cases import each

needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")

NUM_TAGS = 5
CONSTRAINTS = Constraints.forbid(NUM_TAGS, pairs=[(0, 1), (2, 2)], start=[3], end=[4])
#: With a hole and a tag of −100 in front. The tags obey.
MASK = torch.tensor([[1, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 0]]).bool()
TAGS = torch.tensor([[0, 4, -100], [2, 1, 1], [3, 0, 0], [0, 3, 0]])

Make = Callable[[], ChainHead]
LINEAR_CORE: dict[str, Make] = {
    "lc": lambda: LinearCoreChain(NUM_TAGS),
    "lc-pairwise": lambda: LinearCoreChain(NUM_TAGS, form="pairwise"),
    "lc-low-rank": lambda: LinearCoreChain(NUM_TAGS, rank=2),
    "lc-constrained": lambda: LinearCoreChain(NUM_TAGS, constraints=CONSTRAINTS),
    "lc-unary": lambda: LinearCoreChain(NUM_TAGS, unary=0.5),
    "lc-unary-low-rank": lambda: LinearCoreChain(NUM_TAGS, unary=0.25, rank=2),
}
OTHERS: dict[str, Make] = {
    "crf": lambda: ChainCRF(NUM_TAGS),
    "crf-constrained": lambda: ChainCRF(NUM_TAGS, constraints=CONSTRAINTS),
    "ssvm": lambda: ChainSSVM(NUM_TAGS),
    "ssvm-zero-one": lambda: ChainSSVM(NUM_TAGS, cost="zero-one"),
}
LC_AND_CRF = LINEAR_CORE | {name: make for name, make in OTHERS.items() if name.startswith("crf")}
lc_and_crf = pytest.mark.parametrize("make", LC_AND_CRF.values(), ids=LC_AND_CRF.keys())


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


EMISSIONS = drawn(*TAGS.shape, NUM_TAGS)


def head_of(make: Make) -> ChainHead:
    head = make().double()
    for place, parameter in enumerate(head.parameters()):
        parameter.data = drawn(*parameter.shape, seed=1 + place)
    return head


def value_and_gradients(
    call: Callable[..., Tensor], head: ChainHead, emissions: Tensor, tags: Tensor, mask: Tensor | None
) -> list[Tensor]:
    leaf = emissions.clone().requires_grad_()
    value = call(leaf, tags, mask)
    return [value.detach(), *torch.autograd.grad(value, [leaf, *head.parameters()])]


def same(found: list[Tensor], expected: list[Tensor], tolerance: float = 1e-11) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@each(
    ("make", "mask"),
    {
        f"{name}-{kind}": (LINEAR_CORE[name], mask)
        for name in LINEAR_CORE
        for kind, mask in (("mask", MASK), ("no mask", None))
    },
    ("lc-mask", "lc-no mask", "lc-pairwise-mask", "lc-constrained-mask", "lc-unary-low-rank-mask"),
)
def test_linear_core_compiles_in_one_graph(make: Make, mask: Tensor | None) -> None:
    """Though it validates: while compiling there are no numbers to look at."""
    head = head_of(make)
    assert head.validate
    tags = TAGS if mask is not None else TAGS.masked_fill(~MASK, -100)
    compiled = torch.compile(head, fullgraph=True, backend="aot_eager")
    same(value_and_gradients(compiled, head, EMISSIONS, tags, mask), value_and_gradients(head, head, EMISSIONS, tags, mask))


@needs_compiler
@each("options", {"full matrix": {}, "low rank": {"rank": 2, "unary": 0.5}}, ("low rank",))
def test_linear_core_through_inductor(options: dict[str, object]) -> None:
    """A network and its head in one graph, float32 as in training, inside autocast."""
    torch.manual_seed(0)
    network, head = nn.Linear(6, NUM_TAGS), LinearCoreChain(NUM_TAGS, batch_first=True, **options)

    def step(inputs: Tensor, tags: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return -head(network(inputs), tags, reduction="token_mean")

    inputs, tags = drawn(3, 4, 6).float(), TAGS.masked_fill(~MASK, -100).t()
    eager, compiled = step(inputs, tags), torch.compile(step, fullgraph=True)(inputs, tags)
    parameters = [network.weight, *head.parameters()]
    torch.testing.assert_close(compiled, eager, rtol=2e-2, atol=2e-2)
    for found, expected in zip(*(torch.autograd.grad(loss, parameters) for loss in (compiled, eager)), strict=True):
        torch.testing.assert_close(found, expected, rtol=5e-2, atol=2e-2)


@each("make", OTHERS, ("crf-constrained", "ssvm"))
def test_the_other_heads_compile_in_parts(make: Make) -> None:
    head = head_of(make)
    compiled = torch.compile(head, backend="aot_eager")
    same(value_and_gradients(compiled, head, EMISSIONS, TAGS, MASK), value_and_gradients(head, head, EMISSIONS, TAGS, MASK))


class Decoder(nn.Module):
    """A module whose `forward` decodes, as torch.export wants it."""

    def __init__(self, head: ChainHead, name: str, options: dict[str, int]) -> None:
        super().__init__()
        self.head, self.name, self.options = head, name, options

    def forward(self, emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = getattr(self.head, self.name)(emissions, mask=mask, **self.options)
        return found


@each(
    ("name", "options", "batch_first"),
    {
        f"{name}-{'batch' if batch_first else 'time'} first": (name, options, batch_first)
        for name, options in (("viterbi", {}), ("kbest", {"k": 3}), ("beam", {"width": 4}))
        for batch_first in (False, True)
    },
    ("viterbi-batch first", "kbest-time first", "beam-time first"),
)
def test_decoding_is_exported_for_any_batch_size(name: str, options: dict[str, int], batch_first: bool) -> None:
    head = ChainCRF(NUM_TAGS, batch_first, constraints=CONSTRAINTS)
    decoder, axis = Decoder(head, name, options), 0 if batch_first else 1

    def given(batch: int) -> tuple[Tensor, Tensor]:
        emissions, mask = drawn(4, batch, NUM_TAGS, seed=batch).float(), drawn(4, batch, seed=batch) > -0.5
        mask[0] = True
        return (emissions.transpose(0, 1).contiguous(), mask.t().contiguous()) if batch_first else (emissions, mask)

    size = torch.export.Dim("batch", min=1)
    program = torch.export.export(decoder, given(2), dynamic_shapes=({axis: size}, {axis: size})).module()
    for batch in (1, 2, 5):
        same(list(program(*given(batch))), list(decoder(*given(batch))), 1e-6)


@lc_and_crf
def test_vmap_gives_each_chain_its_gradient(make: Make) -> None:
    head = head_of(make)
    parameters = {name: parameter.detach() for name, parameter in head.named_parameters()}

    def loss(parameters: dict[str, Tensor], emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        given = (part.unsqueeze(1) for part in (emissions, tags, mask))
        return -functional_call(head, parameters, tuple(given))

    batch = EMISSIONS, TAGS, MASK
    values = vmap(loss, in_dims=(None, 1, 1, 1))(parameters, *batch)
    gradients = vmap(grad(loss), in_dims=(None, 1, 1, 1))(parameters, *batch)
    by_emissions = vmap(grad(loss, argnums=1), in_dims=(None, 1, 1, 1), out_dims=1)(parameters, *batch)
    for row in range(TAGS.shape[1]):
        value, emissions, *others = value_and_gradients(
            lambda *given: -head(*given), head, *(part[:, [row]] for part in batch)
        )
        torch.testing.assert_close(values[row], value, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(by_emissions[:, [row]], emissions, rtol=1e-11, atol=1e-11)
        for gradient, expected in zip(gradients.values(), others, strict=True):
            torch.testing.assert_close(gradient[row], expected, rtol=1e-11, atol=1e-11)


@lc_and_crf
def test_jvp_is_the_gradient_along_a_direction(make: Make) -> None:
    """By emissions and parameters, together and each alone; with torch.func and with dual numbers."""
    head = head_of(make)
    inputs = {"emissions": EMISSIONS} | {name: parameter.detach() for name, parameter in head.named_parameters()}
    directions = {name: drawn(*tensor.shape, seed=99) for name, tensor in inputs.items()}
    gradients = value_and_gradients(head, head, EMISSIONS, TAGS, MASK)[1:]
    along = {name: (part * directions[name]).sum() for name, part in zip(inputs, gradients, strict=True)}

    def value(given: dict[str, Tensor]) -> Tensor:
        everything = inputs | given
        emissions = everything.pop("emissions")
        return functional_call(head, everything, (emissions, TAGS, MASK))

    for names in (list(inputs), *([name] for name in inputs)):
        chosen, tangents = ({name: part[name] for name in names} for part in (inputs, directions))
        expected = torch.stack([along[name] for name in names]).sum()
        torch.testing.assert_close(jvp(value, (chosen,), (tangents,))[1], expected, rtol=1e-10, atol=1e-11)
        with forward_ad.dual_level():
            duals = {name: forward_ad.make_dual(chosen[name], tangents[name]) for name in names}
            torch.testing.assert_close(forward_ad.unpack_dual(value(duals)).tangent, expected, rtol=1e-10, atol=1e-11)


class Marginals(nn.Module):
    """A module whose `forward` gives posteriors, as torch.export wants it."""

    def __init__(self, head: ChainCRF) -> None:
        super().__init__()
        self.head = head

    def forward(self, emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tags, _ = self.head.viterbi(emissions, mask)
        return self.head.marginals(emissions, mask), self.head.confidence(emissions, mask), self.head(emissions, tags, mask)


@each("batch_first", {"time first": False, "batch first": True}, ("batch first",))
def test_marginals_and_confidence_are_exported(batch_first: bool) -> None:
    module = Marginals(ChainCRF(4, batch_first=batch_first))
    mask = torch.tensor([[True, True, False], [True, False, True]])
    mask = mask if batch_first else mask.t()
    given = torch.randn(*mask.shape, 4), mask
    program = torch.export.export(module, given).module()
    for ours, eager in zip(program(*given), module(*given), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-6)


def test_marginals_under_vmap() -> None:
    head, emissions = ChainCRF(4), torch.randn(2, 3, 2, 4)
    found = vmap(head.marginals)(emissions)
    torch.testing.assert_close(found, torch.stack([head.marginals(one) for one in emissions]), rtol=1e-5, atol=1e-6)
