"""Every fast path against its reference, over dtypes, layouts, frozen inputs, labels, upstream gradients and sizes.

`test_grid` changes one thing at a time; `test_full_grid` crosses all of it and is marked `slow`.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from linearcore import ChainCRF
from linearcore.structures import Sites, path_score
from tests.cases import each
from tests.kernels.paths import DEVICE, IGNORED, PATHS, Path

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")
LABELS = ("good", "ignored", "too large", "negative")
UPSTREAM = ("unit", "random", "zero")
#: From the gradient of the losses to that of every input.
Pull = Callable[[Tensor], tuple[dict[str, Tensor]]]
SIZES = {"usual": (3, 6), "empty": (0, 6), "one row": (1, 6), "one class": (3, 1)}


class Cell(NamedTuple):
    """A place in the grid beside path, dtype and layout."""

    size: str
    labels: str
    frozen: str | None
    upstream: str


USUAL = Cell("usual", "good", None, "random")


def drawn(*shape: int, seed: int) -> Tensor:
    return 2 * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def laid_out(tensor: Tensor, layout: str) -> Tensor:
    """The same numbers with other strides; an expanded tensor repeats its first row instead."""
    if layout == "transposed" and tensor.dim() > 1:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "sliced":
        around = tensor.new_zeros(*tensor.shape[:-1], 2 * tensor.shape[-1])
        around[..., ::2] = tensor
        return around[..., ::2]
    if layout == "expanded" and tensor.dim() > 1 and tensor.shape[0]:
        return tensor[:1].expand(tensor.shape)
    return tensor


def make_labels(kind: str, shape: tuple[int, ...], classes: int) -> Tensor:
    labels = torch.arange(math.prod(shape)).reshape(shape) % classes
    if kind != "good" and labels.numel():
        labels.view(-1)[-1] = {"ignored": IGNORED, "too large": classes, "negative": -1}[kind]
    return labels


def cells(path: Path, *, full: bool) -> Iterator[Cell]:
    """All of them, or the usual one and every one that differs from it in one place."""
    labels = LABELS if path.has_labels else LABELS[:1]
    for cell in itertools.starmap(Cell, itertools.product(SIZES, labels, (None, *path.shapes(1, 1)), UPSTREAM)):
        if full or sum(mine != its for mine, its in zip(cell, USUAL, strict=True)) <= 1:
            yield cell


def tolerance(dtype: torch.dtype, expected: Tensor) -> float:
    """Rounding of the result, and float32 arithmetic before it, both relative to the largest number there is."""
    eps = 2 * torch.finfo(dtype).eps + 8 * torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    largest = expected[expected.isfinite()].abs().max().item() if expected.isfinite().any() else 0.0
    return eps * max(1.0, largest)


def agrees(found: Tensor, expected: Tensor, dtype: torch.dtype, what: str, roundings: int = 1) -> None:
    assert found.dtype == dtype, f"{what} has dtype {found.dtype}"
    allowed = roundings * tolerance(dtype, expected)
    close = torch.isclose(found.double().cpu(), expected, rtol=0.0, atol=allowed, equal_nan=True)
    assert found.shape == expected.shape and bool(close.all()), f"{what}: {found} instead of {expected}"


class Inputs(NamedTuple):
    """The same numbers twice: as a path is given them, and in float64 for its reference."""

    given: dict[str, Tensor]
    labels_given: Tensor
    exact: dict[str, Tensor]
    labels: Tensor


def make_inputs(path: Path, dtype: torch.dtype, layout: str, size: str, kind: str) -> Inputs:
    rows, classes = SIZES[size]
    shapes = path.shapes(rows, classes)
    given = {
        name: laid_out(drawn(*shape, seed=i).to(DEVICE, dtype), layout) for i, (name, shape) in enumerate(shapes.items())
    }
    labels = make_labels(kind, path.labels(rows, classes), classes)
    labels_given = laid_out(labels.to(DEVICE), layout if layout == "sliced" else "contiguous")
    return Inputs(given, labels_given, {name: tensor.double().cpu().contiguous() for name, tensor in given.items()}, labels)


def check(path: Path, dtype: torch.dtype, layout: str, *, full: bool) -> None:
    """All cells of a path; cells of one size and kind of labels share their reference, those frozen alike their losses."""
    for (size, kind), group in itertools.groupby(cells(path, full=full), lambda cell: cell[:2]):
        inputs = make_inputs(path, dtype, layout, size, kind)
        is_wrong = kind in ("too large", "negative") and inputs.labels.numel() > 0
        if is_wrong and DEVICE.type == "cpu":
            with pytest.raises(ValueError, match="must be in"):
                path.losses(inputs.given, inputs.labels_given)
            continue
        expected, pull = torch.func.vjp(functools.partial(path.losses, target=inputs.labels), inputs.exact)
        for frozen, alike in itertools.groupby(group, lambda cell: cell.frozen):
            given = {name: tensor.detach().requires_grad_(name != frozen) for name, tensor in inputs.given.items()}
            found = path.losses(given, inputs.labels_given)
            agrees(found.detach(), expected, dtype, f"losses, {size}, {kind} labels, {frozen} frozen", path.roundings)
            for cell in alike:
                check_gradients(given, found, pull, cell, is_wrong, path.roundings)


def check_gradients(given: dict[str, Tensor], found: Tensor, pull: Pull, cell: Cell, is_wrong: bool, roundings: int) -> None:
    trained = {name: tensor for name, tensor in given.items() if tensor.requires_grad}
    if not trained:
        return
    # A sum's own gradient is one number, expanded.
    make = {"unit": lambda x: x.new_ones(()).expand(x.shape), "zero": torch.zeros_like, "random": random_like}
    upstream = make[cell.upstream](found)
    (expected,) = pull(upstream.double().cpu())
    gradients = torch.autograd.grad(found, list(trained.values()), upstream, retain_graph=True)
    for (name, tensor), gradient in zip(trained.items(), gradients, strict=True):
        dense = gradient.to_dense() if gradient.is_sparse else gradient
        right = expected[name]
        if is_wrong:  # NaN where the label has a part in it; where nothing is to be differentiated 0 will do.
            free = dense.isnan().cpu() & (right == 0)
            right = torch.where(free, torch.nan, right)
            if cell.size == "one class":
                dense, right = dense.nan_to_num(nan=0.0), right.nan_to_num(nan=0.0)
        agrees(dense, right, tensor.dtype, f"gradient of {name}, {cell}", roundings)
        if cell.upstream == "zero" and not is_wrong:
            assert not dense.any(), f"gradient of {name}, {cell}: not zero"


def random_like(tensor: Tensor) -> Tensor:
    return drawn(*tensor.shape, seed=9).to(tensor)


#: All dtypes with one layout, and all layouts with one dtype; the interpreter has float32 alone.
CROSSED = {f"{layout}-{dtype}": (DTYPES[dtype], layout) for layout in LAYOUTS for dtype in DTYPES}
by_dtype_and_layout = each(
    ("dtype", "layout"), CROSSED, (name for name in CROSSED if name.startswith("contiguous") or name.endswith("-float32"))
)
by_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
by_dtype = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
by_layout = pytest.mark.parametrize("layout", LAYOUTS)


@by_path
@by_dtype_and_layout
def test_grid(path: Path, dtype: torch.dtype, layout: str) -> None:
    check(path, dtype, layout, full=False)


@pytest.mark.slow
@by_path
@by_dtype
@by_layout
def test_full_grid(path: Path, dtype: torch.dtype, layout: str) -> None:
    check(path, dtype, layout, full=True)


@by_dtype_and_layout
@pytest.mark.parametrize("decoder", ("viterbi", "beam", "kbest"))
@pytest.mark.parametrize("size", SIZES)
def test_decoders(decoder: str, dtype: torch.dtype, layout: str, size: str) -> None:
    chains, num_tags = SIZES[size]
    torch.manual_seed(0)
    head = ChainCRF(num_tags).to(DEVICE, dtype)
    given = laid_out(drawn(4, chains, num_tags, seed=1).to(DEVICE, dtype), layout)
    mask = torch.ones(4, chains, dtype=torch.bool, device=DEVICE)
    mask[2:, :1] = False
    options = {"viterbi": {}, "beam": {"width": num_tags}, "kbest": {"k": 1}}[decoder]
    tags, scores = getattr(head, decoder)(given, mask, **options)
    tags, scores = tags.reshape(4, chains).cpu(), scores.reshape(chains)
    exact, sites = given.double().cpu().contiguous(), Sites.of(mask.cpu())
    twin = ChainCRF(num_tags).double()
    twin.load_state_dict({name: tensor.double().cpu() for name, tensor in head.state_dict().items()})
    _, best = twin.viterbi(exact, mask.cpu())
    assert bool(((tags >= 0) == mask.cpu()).all())
    own = path_score(exact, twin.chain(exact), tags.clamp(min=0), sites).detach()
    # Of nearly equal sequences either may be found; its score must be the best one.
    allowed = tolerance(torch.float64 if dtype == torch.float64 else torch.float32, best)
    for values in (own, scores.double().cpu()):
        torch.testing.assert_close(values, best, rtol=0.0, atol=allowed)
