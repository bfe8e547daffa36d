"""Surrogates: their functions on a fixed grid, and the facts that they declare."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from linearcore.surrogates import (
    BASES,
    ConvolutionalFenchelYoung,
    Exponential,
    Hinge,
    LinearCore,
    Logistic,
    QuarticBase,
    SmoothedHinge,
    SquaredHinge,
    Surrogate,
)
from tests.cases import ALGEBRAIC
from tests.snapshot.inputs import DTYPES
from tests.snapshot.record import Entry, Results

#: The settings of τ and sharpness; the last is that of the other families.
SETTINGS = ((1.0, 1.0), (0.625, 1.0), (1.0, 2.5), (0.625, 2.5))

CLASSICAL: dict[str, Surrogate] = {
    "Hinge": Hinge(),
    "SquaredHinge": SquaredHinge(),
    "SmoothedHinge": SmoothedHinge(),
    "SmoothedHinge(1.5)": SmoothedHinge(1.5),
    "Logistic": Logistic(),
    "Exponential": Exponential(),
    "ConvolutionalFenchelYoung": ConvolutionalFenchelYoung(),
}

#: One of each kind, for the families that combine surrogates with something else.
SURROGATES: dict[str, Surrogate] = {
    "LinearCore": LinearCore(),
    **{
        f"LinearCore({base.name}{', sides=2' if sides == 2 else ''})": LinearCore(base, *SETTINGS[-1][:1], sides, 2.5)
        for base in (*BASES.values(), ALGEBRAIC)
        for sides in (1, 2)
    },
    **CLASSICAL,
}

FUNCTIONS = ("value", "derivative", "curvature", "posterior")
FACTS = ("lipschitz", "smoothness", "is_convex", "is_c1", "is_c2", "is_monotone", "vanishes", "bounds_zero_one")


def surrogates() -> Iterator[Entry]:
    """Value, derivative, curvature and posterior; the first two derivatives by autograd; facts."""
    every: dict[str, Surrogate] = {
        f"LinearCore({base.name}, tau={tau}, sides={sides}, sharpness={sharpness})": LinearCore(base, tau, sides, sharpness)
        for base in (*BASES.values(), ALGEBRAIC)
        for sides in (1, 2)
        for tau, sharpness in SETTINGS
    }
    every["LinearCore(quartic(a=0.5, constant=2))"] = LinearCore(QuarticBase(a=0.5, constant=2.0))
    for name, surrogate in {**every, **CLASSICAL}.items():
        yield Entry(f"surrogates/{name}/facts", lambda surrogate=surrogate: _facts(surrogate))
        for part, margins in _margins(surrogate).items():
            for dtype_name, dtype in DTYPES.items():
                entry = f"surrogates/{name}/{part}/{dtype_name}"
                points = torch.tensor(margins, dtype=dtype)
                yield Entry(entry, lambda phi=surrogate, u=points: {f: getattr(phi, f)(u) for f in FUNCTIONS})
                as_array = points.numpy()
                yield Entry(entry, lambda phi=surrogate, u=as_array: {f: getattr(phi, f)(u) for f in FUNCTIONS}, "NumPy")
                if part == "grid" and not (name.startswith("LinearCore") and "sharpness=1.0" in name):
                    yield Entry(entry, lambda phi=surrogate, u=points: _by_autograd(phi, u))


def _margins(surrogate: Surrogate) -> dict[str, list[float]]:
    """Margins of like size together, since a tolerance is relative to the largest number of an array."""
    grid = [0.375 * place for place in range(-9, 10)]
    return {
        "grid": sorted({*grid, *surrogate.knots, *(-knot for knot in surrogate.knots)}),
        "right": [5.0, 10.0, 25.0],
        "left": [-5.0, -10.0, -25.0],
        "huge": [-1e30, 1e4, 1e30],
        "infinite": [-math.inf, math.inf],
    }


def _facts(surrogate: Surrogate) -> Results:
    facts: dict[str, object] = {fact: getattr(surrogate, fact) for fact in FACTS}
    facts["knots"] = torch.tensor(surrogate.knots, dtype=torch.float64)
    facts["core"] = torch.tensor(surrogate.core or (), dtype=torch.float64)
    return facts


def _by_autograd(surrogate: Surrogate, margins: Tensor) -> Results:
    u = margins.clone().requires_grad_()
    (first,) = torch.autograd.grad(surrogate.value(u).sum(), u, create_graph=True)
    second = torch.zeros_like(u)
    if first.requires_grad:
        (second,) = torch.autograd.grad(first.sum(), u)
    return {"gradient of value": first, "second derivative of value": second}
