"""A decision problem: which outputs there are, what errors cost, which scores a model can give, and the form of its loss."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.analysis._risk import LinearMargins, LogOddsMargins, MarginSystem
from linearcore.losses import FORMS, Centered, Form, LogOdds, Pairwise
from linearcore.structures import COSTS, FAMILIES, Sequences
from linearcore.surrogates import Surrogate

#: Structured forms by name: the paper's double sum, its centered counterpart, and the three forms site by site.
STRUCTURED_FORMS = ("structured-sum", "structured-centered", "local-pairwise", "local-centered", "local-logodds")


@dataclass(frozen=True)
class Problem:
    """A form on a finite output space.

    Args:
        form: a multi-class form ("pairwise", "centered", "logodds", or a `Form`), as a *sum* over competitors unless the
            `Form` says otherwise, or a structured one: "structured-sum", "structured-centered", "local-pairwise",
            "local-centered", "local-logodds".
        outputs: the output space; an integer n means n classes.
        cost: "zero-one" or "hamming".
        family: which scores the model can give: "free", "unary" or "chain".
    """

    form: str | Form
    outputs: Sequences | int
    cost: str = "zero-one"
    family: str = "free"

    def __post_init__(self) -> None:
        if not isinstance(self.outputs, Sequences):
            object.__setattr__(self, "outputs", Sequences(self.outputs))
        one_of("cost", self.cost, COSTS)
        one_of("family", self.family, FAMILIES)
        if not isinstance(self.form, str | Pairwise | Centered | LogOdds):
            advice = f"one of {', '.join((*FORMS, *STRUCTURED_FORMS))}"
            raise TypeError(complaint("form", "be a name or one of the library's forms", type(self.form).__name__, advice))
        one_of("form", self.form_name, (*FORMS, *STRUCTURED_FORMS))
        if self.space.length == 1:  # One site: being wrong there is being wrong, and any scores are sums over sites.
            object.__setattr__(self, "cost", "zero-one")
            object.__setattr__(self, "family", "free")

    @property
    def space(self) -> Sequences:
        """The output space."""
        assert isinstance(self.outputs, Sequences)
        return self.outputs

    @property
    def form_name(self) -> str:
        """The form's name."""
        return self.form if isinstance(self.form, str) else self.form.name

    @cached_property
    def costs(self) -> Tensor:
        """(M, M): ℓ(answer, truth)."""
        return self.space.cost(self.cost)

    @cached_property
    def basis(self) -> Tensor:
        """(M, D): orthonormal, spans the family's scores up to a constant, which no form sees."""
        features = self.space.features(self.family)
        features = features - features.mean(0)
        left, singular, _ = torch.linalg.svd(features, full_matrices=False)
        basis: Tensor = left[:, singular > 1e-9 * singular[0]]
        return basis

    def is_convex(self, surrogate: Surrogate) -> bool:
        """Whether the loss is convex in the scores: always, but for a rising φ of log-odds with several competitors."""
        return surrogate.is_monotone or not isinstance(self.system, LogOddsMargins) or self.system.rivals.shape[1] == 1

    def require_convex(self, surrogate: Surrogate) -> None:
        """Raises unless the loss is convex: nothing could be certified."""
        if not self.is_convex(surrogate):
            must = f"be non-increasing for form={self.form_name!r}"
            raise ValueError(complaint("surrogate", must, surrogate, "the risk would not be convex; use another form"))

    def target_regret(self, probabilities: Tensor) -> Tensor:
        """(…, M): expected cost of every answer, above the least."""
        expected = probabilities @ self.costs.T
        return expected - expected.min(-1, keepdim=True).values

    @cached_property
    def system(self) -> MarginSystem:
        """The margins of the form on this space."""
        name = self.form_name
        if name in FORMS:
            system = _MULTICLASS[name](self)
            divide = isinstance(self.form, Pairwise | Centered) and self.form.normalize
            return _scaled(system, 1 / (self.space.size - 1)) if divide else system
        return _STRUCTURED[name](self)


def problem_on(form: str | Form, num_classes: int | None, outputs: Sequences | None, cost: str, family: str) -> Problem:
    """The problem on `num_classes` classes or on `outputs`, whichever is given."""
    given = [choice for choice in (num_classes, outputs) if choice is not None]
    if len(given) != 1:
        advice = "give the number of classes, or a `Sequences` for structured forms"
        raise ValueError(complaint("num_classes", "be given, or else `outputs`", f"{num_classes} and {outputs}", advice))
    return Problem(form, given[0], cost, family)


def _scaled(system: MarginSystem, factor: float) -> MarginSystem:
    return replace(system, weights=system.weights * factor)


def _difference_rows(size: int, left: Tensor, right: Tensor) -> Tensor:
    """(K, M): e_left − e_right."""
    eye = torch.eye(size, dtype=torch.float64)
    return eye[left] - eye[right]


def _ordered_pairs(size: int) -> tuple[Tensor, Tensor]:
    left, right = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    different = left != right
    return left[different], right[different]


def _pairwise(problem: Problem) -> MarginSystem:
    size = problem.space.size
    own, rival = _ordered_pairs(size)
    weights = torch.eye(size, dtype=torch.float64)[own]
    return LinearMargins(weights, problem.basis, _difference_rows(size, own, rival))


def _centered(problem: Problem) -> MarginSystem:
    size = problem.space.size
    eye = torch.eye(size, dtype=torch.float64)
    return LinearMargins(1 - eye, problem.basis, 1 / size - eye)


def _logodds(problem: Problem) -> MarginSystem:
    size = problem.space.size
    _, rival = _ordered_pairs(size)
    weights = torch.eye(size, dtype=torch.float64)
    return LogOddsMargins(weights, problem.basis, torch.arange(size), rival.reshape(size, size - 1))


def _structured_sum(problem: Problem) -> MarginSystem:
    # Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))
    size = problem.space.size
    outer, inner = _ordered_pairs(size)
    return LinearMargins((1 - problem.costs)[outer], problem.basis, _difference_rows(size, outer, inner))


def _structured_centered(problem: Problem) -> MarginSystem:
    # Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))
    size = problem.space.size
    return LinearMargins(problem.costs, problem.basis, 1 / size - torch.eye(size, dtype=torch.float64))


def _local_changes(space: Sequences) -> tuple[Tensor, Tensor, Tensor]:
    """For every output and site: its index (G,), those of its changes (G, |Y|), and which of them is none (G, |Y|)."""
    changes = space.changes.reshape(-1, space.num_tags)
    own = torch.arange(space.size).repeat_interleave(space.length)
    return own, changes, changes == own.unsqueeze(-1)


def _local_pairwise(problem: Problem) -> MarginSystem:
    size = problem.space.size
    own, changes, same = _local_changes(problem.space)
    left, right = own.unsqueeze(-1).expand_as(changes)[~same], changes[~same]
    return LinearMargins(torch.eye(size, dtype=torch.float64)[left], problem.basis, _difference_rows(size, left, right))


def _local_centered(problem: Problem) -> MarginSystem:
    eye = torch.eye(problem.space.size, dtype=torch.float64)
    own, changes, same = _local_changes(problem.space)
    rows = eye[changes].mean(1, keepdim=True) - eye[changes]
    weights = eye[own].unsqueeze(1).expand_as(rows)
    return LinearMargins(weights[~same], problem.basis, rows[~same])


def _local_logodds(problem: Problem) -> MarginSystem:
    own, changes, same = _local_changes(problem.space)
    rivals = changes[~same].reshape(own.shape[0], problem.space.num_tags - 1)
    return LogOddsMargins(torch.eye(problem.space.size, dtype=torch.float64)[own], problem.basis, own, rivals)


_MULTICLASS = {Pairwise.name: _pairwise, Centered.name: _centered, LogOdds.name: _logodds}
_STRUCTURED = {
    "structured-sum": _structured_sum,
    "structured-centered": _structured_centered,
    "local-pairwise": _local_pairwise,
    "local-centered": _local_centered,
    "local-logodds": _local_logodds,
}


def as_probabilities(probabilities: object, size: int) -> Tensor:
    """(B, M) float64 from anything array-like, (M,) or (B, M); raises unless rows are distributions over M outputs."""
    rows = torch.as_tensor(probabilities, dtype=torch.float64)
    rows = rows.unsqueeze(0) if rows.dim() == 1 else rows
    if rows.dim() != 2 or rows.shape[1] != size:
        must = f"have {size} entries, one for each output"
        raise ValueError(complaint("probabilities", must, tuple(rows.shape), "list them in the order of the outputs"))
    # Asked for what must hold, and not for what must not, so that NaN is refused too.
    if not (bool((rows >= 0).all()) and bool(((rows.sum(-1) - 1).abs() <= 1e-9).all())):
        got = rows.sum(-1).tolist()[:3]
        raise ValueError(complaint("probabilities", "be non-negative and add up to 1", f"sums {got}", "divide by the sum"))
    return rows
