"""`surfaces`: the three-class loss as a function of the two margins of the true class."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from linearcore.losses import Centered, Form, LogOdds, Pairwise, multiclass_loss
from linearcore.surrogates import LinearCore, Surrogate
from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.surfaces.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

#: The paper's two surfaces, which are two-sided, and our two other forms with their one-sided default.
SURFACES: dict[str, tuple[str, Form, Surrogate]] = {
    "pairwise-logistic": ("pairwise, logistic, two-sided", Pairwise(normalize=False), LinearCore(sides=2)),
    "pairwise-exponential": (
        "pairwise, exponential, two-sided",
        Pairwise(normalize=False),
        LinearCore("exponential", sides=2),
    ),
    "centered-logistic": ("centered, logistic, one-sided", Centered(normalize=False), LinearCore()),
    "logodds-logistic": ("logodds, logistic, one-sided", LogOdds(), LinearCore()),
}
REACH = 4.0


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns one part for each surface."""
    points = 49 if settings.is_paper else 41
    return {key: partial(_surface, form, phi, points) for key, (_, form, phi) in SURFACES.items()}


def _surface(form: Form, phi: Surrogate, points: int) -> dict[str, Any]:
    axis = torch.linspace(-REACH, REACH, points, dtype=torch.float64)
    margins = torch.cartesian_prod(axis, axis)

    def loss(margin: Tensor) -> Tensor:
        label = torch.zeros(margin.shape[:-1], dtype=torch.long)
        return multiclass_loss(_scores(margin), label, surrogate=phi, form=form, reduction="none", backend="reference")

    hessian = _hessians(loss, margins)
    beyond = _beyond_core(form, phi, margins)
    # The boundary of the core is a knot and is excluded: the second derivative jumps there.
    inside = (margins.abs() < 1 - 1e-9).all(-1) if beyond is None else beyond < -1e-9
    return {
        "axis": round_values(axis),
        "value": round_values(loss(margins).reshape(points, points), 5),
        "beyond_core": None if beyond is None else round_values(beyond.reshape(points, points), 4),
        "least_eigenvalue": round_values(torch.linalg.eigvalsh(hessian).min(), 3),
        "curvature_in_core": round_values(hessian[inside].abs().max(), 3),
    }


def _beyond_core(form: Form, phi: Surrogate, margins: Tensor) -> Tensor | None:
    """Returns the largest distance of the form's margins beyond the ends of the core; negative inside the core.

    Returns None if the form is affine nowhere because its margins are not linear in the scores.
    """
    label, basis = torch.arange(3), torch.eye(3, dtype=torch.float64)
    system = form.margins(label[:1], label.unsqueeze(0), basis)
    if system is None or system.needs_monotone or phi.core is None:
        return None
    values = system.margins(_scores(margins))
    return torch.maximum(values - phi.core[1], phi.core[0] - values).amax(-1)


def _scores(margins: Tensor) -> Tensor:
    """Returns scores (…, 3) with these margins. Class 0 is the true class: m_1 = s_0 − s_1, m_2 = s_0 − s_2."""
    return torch.cat([torch.zeros_like(margins[..., :1]), -margins], -1)


def _hessians(loss: Any, margins: Tensor) -> Tensor:
    """Returns Hessians (N, 2, 2) from two autograd passes. The loss of each row depends on the margins of that row only."""
    margins = margins.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(margins).sum(), margins, create_graph=True)
    rows = [torch.autograd.grad(gradient[:, k].sum(), margins, retain_graph=True)[0] for k in range(2)]
    return torch.stack(rows, 1)


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Checks that the losses are affine in the core and convex everywhere."""
    paper = [results[key] for key in SURFACES if key.startswith("pairwise")]
    plateau = max(surface["curvature_in_core"] for surface in paper)
    lowest = min(surface["least_eigenvalue"] for surface in results.values())
    centered, logodds = (results[f"{form}-logistic"]["curvature_in_core"] for form in ("centered", "logodds"))
    claims = [
        Claim(
            claim="The three-class surfaces are affine where both margins lie in the core",
            paper="linear plateau in the central region",
            ours=f"largest Hessian entry in the core: {plateau:g} for the paper's two and {centered:g} for `centered`; "
            f"`logodds` has no affine region ({logodds:.2f}), since its margin is not linear in the scores",
            verdict=verdict(max(plateau, centered) <= 1e-9),
        ),
        Claim(
            claim="The multi-class losses are convex in the scores",
            paper="convex",
            ours=f"smallest eigenvalue of the Hessian over all four surfaces: {lowest:.1g}",
            verdict=verdict(lowest >= -1e-9),
        ),
    ]
    surfaces = [{"key": key, "label": label, **results[key]} for key, (label, _, _) in SURFACES.items()]
    return Outcome(claims, {"surfaces": surfaces, "reach": REACH}, _alt(surfaces))


def _alt(surfaces: list[dict[str, Any]]) -> str:
    corners = ", ".join(f"{surface['value'][0][0]:.1f} for {surface['label']}" for surface in surfaces)
    return (
        "Four contour maps of the loss over the two margins, each from −4 to 4. All fall towards the upper right, where "
        f"both margins are large. At the lower left corner the loss is {corners}. An outline marks where a surface is "
        "exactly affine: the square from −1 to 1 for the two pairwise losses, a wedge open to the lower left for "
        "centered, nothing for logodds."
    )


EXPERIMENT = Experiment(
    name="surfaces",
    title="Three-class loss surfaces",
    question="What does the sum loss look like as a function of the scores of three classes?",
    shows="three-class loss over the two margins of the true class: affine in the core, convex everywhere",
    paper="Figure 3, section 4.1",
    needs="nothing",
    cost={"smoke": "1 s", "paper": "2 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
