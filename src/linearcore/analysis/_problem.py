"""A decision problem: output space, target cost, class of score functions, and form of the loss."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from linearcore._arrays import check_num_classes
from linearcore._checks import complaint, one_of
from linearcore.forms import FORMS, Form, MarginSystem
from linearcore.structured import STRUCTURED_FORMS as OVER_OUTPUTS
from linearcore.structured import StructuredForm
from linearcore.structures import FAMILIES, Cost, Sequences, resolve_cost
from linearcore.surrogates import Surrogate

_STRUCTURED, _LOCAL = "structured-", "local-"
#: Names of structured forms: the paper's double sum, its centered counterpart, and every form applied at each position.
STRUCTURED_FORMS = (*(_STRUCTURED + name for name in OVER_OUTPUTS), *(_LOCAL + name for name in FORMS))


@dataclass(frozen=True)
class Local:
    """A form over the sequences that differ in one tag, summed over positions. "local-pairwise" is `Local(Pairwise())`."""

    form: Form

    def normalized(self, normalize: bool) -> "Local":
        """Returns the form with the mean over the competitors at a position (True), or with their sum."""
        return Local(self.form.normalized(normalize))


AnyForm = str | Form | Local | StructuredForm


def named_form(form: AnyForm) -> Form | Local | StructuredForm:
    """Returns the default instance for the name of a form, and any other form unchanged.

    Raises:
        ValueError, TypeError: if the form is unknown.
    """
    if isinstance(form, Form | Local | StructuredForm):
        return form
    names = (*FORMS, *STRUCTURED_FORMS)
    if not isinstance(form, str):
        raise TypeError(complaint("form", "be a name or a `Form`", type(form).__name__, f"one of {', '.join(names)}"))
    one_of("form", form, names)
    if form.startswith(_STRUCTURED):
        return OVER_OUTPUTS[form.removeprefix(_STRUCTURED)]
    return Local(FORMS[form.removeprefix(_LOCAL)]) if form.startswith(_LOCAL) else FORMS[form]


@dataclass(frozen=True)
class Problem:
    """A form on a finite output space.

    Args:
        form: a multi-class form ("pairwise", "centered", "logodds", or a `Form`), or a structured form: "structured-sum",
            "structured-centered", "local-pairwise", "local-centered", "local-logodds", or a `Local`. A name means the
            default instance, so "pairwise" is the mean over competitors and `Pairwise(normalize=False)` the sum.
        outputs: the output space; an integer n means n classes.
        cost: target cost, "zero-one", "hamming" or a `Cost`.
        family: class of score functions, "free" (any scores), "unary" or "chain" (sums of local scores).
    """

    form: AnyForm
    outputs: Sequences | int
    cost: str | Cost = "zero-one"
    family: str = "free"

    def __post_init__(self) -> None:
        if not isinstance(self.outputs, Sequences):
            object.__setattr__(self, "outputs", Sequences(self.outputs))
        cost = resolve_cost(self.cost)
        cost.check(self.space.num_tags)
        one_of("family", self.family, FAMILIES)
        object.__setattr__(self, "form", named_form(self.form))
        if self.space.length == 1:  # With one position all scores are unary, and Hamming cost equals zero-one cost.
            object.__setattr__(self, "family", "free")
            if cost.is_error_fraction:
                object.__setattr__(self, "cost", "zero-one")

    @property
    def space(self) -> Sequences:
        """The output space."""
        assert isinstance(self.outputs, Sequences)
        return self.outputs

    @property
    def form_name(self) -> str:
        """The name of a default instance, and the repr of any other form."""
        if self.structured_form is not None:
            return _STRUCTURED + self.structured_form.name
        assert not isinstance(self.form, str | StructuredForm)
        name = _LOCAL + self.form.form.name if isinstance(self.form, Local) else self.form.name
        is_default = name in (*FORMS, *STRUCTURED_FORMS) and self.form == named_form(name)
        return name if is_default else repr(self.form)

    @property
    def is_local(self) -> bool:
        """Whether the competitors are the outputs that differ in one position."""
        return isinstance(self.form, Local)

    @property
    def multiclass_form(self) -> Form | None:
        """The multi-class form over all outputs, or None."""
        return self.form if isinstance(self.form, Form) else None

    @property
    def margin_form(self) -> Form | None:
        """The multi-class form, over all outputs or inside a `Local`; None for a `StructuredForm`."""
        return self.form.form if isinstance(self.form, Local) else self.multiclass_form

    @property
    def is_binary(self) -> bool:
        """Whether there are two outputs and every error costs the same; then the risk is p₁ φ(m) + p₂ φ(−m) in all forms."""
        return self.space.size == 2 and self.cost_object.is_constant

    @property
    def is_separable(self) -> bool:
        """Whether each position is a multi-class problem of its own: a local form, unary scores, and a cost per position."""
        return self.is_local and self.family == "unary" and self.cost_object.is_error_fraction

    @property
    def num_averaged(self) -> int:
        """Number of competitors in the mean; 1 for a sum."""
        if self.margin_form is None or not self.margin_form.is_mean:
            return 1
        return (self.space.num_tags if self.is_local else self.space.size) - 1

    @property
    def structured_form(self) -> StructuredForm | None:
        """The structured form over whole outputs, or None."""
        return self.form if isinstance(self.form, StructuredForm) else None

    @property
    def cost_object(self) -> Cost:
        """The target cost as a `Cost`."""
        return resolve_cost(self.cost)

    @property
    def cost_name(self) -> str:
        """The name of the target cost, for reports."""
        return str(self.cost)

    @cached_property
    def costs(self) -> Tensor:
        """(M, M) target cost ℓ(prediction, label)."""
        return self.space.cost(self.cost)

    @cached_property
    def basis(self) -> Tensor:
        """(M, D) orthonormal basis of the scores of the family, up to a constant, on which no form depends."""
        features = self.space.features(self.family)
        features = features - features.mean(0)
        left, singular, _ = torch.linalg.svd(features, full_matrices=False)
        basis: Tensor = left[:, singular > 1e-9 * singular[0]]
        return basis

    def is_convex(self, surrogate: Surrogate) -> bool:
        """Whether the loss is convex in the scores. Log-odds of several competitors need a non-increasing φ."""
        return surrogate.is_monotone or not self.system.needs_monotone

    def require_convex(self, surrogate: Surrogate) -> None:
        """Raises unless the loss is convex, which certified minima require."""
        if not self.is_convex(surrogate):
            must = f"be non-increasing for form={self.form_name!r}"
            raise ValueError(complaint("surrogate", must, surrogate, "the risk would not be convex; use another form"))

    def target_regret(self, probabilities: Tensor) -> Tensor:
        """Returns the expected cost of every prediction minus the minimal expected cost, (…, M)."""
        expected = probabilities @ self.costs.T
        return expected - expected.min(-1, keepdim=True).values

    @cached_property
    def system(self) -> MarginSystem:
        """The margins of the form on this space.

        Raises:
            ValueError: if the form does not define its margins.
        """
        form, size = self.margin_form, self.space.size
        if self.structured_form is not None:
            return self.structured_form.margins(self.costs, self.basis)
        assert form is not None
        if self.is_local:
            labels, candidates = _local_candidates(self.space)
        else:
            labels = torch.arange(size)
            candidates = labels.expand(size, size)
        system = form.margins(labels, candidates, self.basis)
        if system is None:
            advice = "implement its method `margins`, or use another form"
            raise ValueError(complaint("form", "define its margins", repr(form.name), advice))
        return replace(system, weights=system.weights / self.num_averaged)


def problem_on(form: AnyForm, num_classes: int | None, outputs: Sequences | None, cost: str | Cost, family: str) -> Problem:
    """Returns the problem on `num_classes` classes or on `outputs`; exactly one of them must be given."""
    spaces = [space for space in (num_classes, outputs) if space is not None]
    if len(spaces) != 1:
        advice = "pass the number of classes, or a `Sequences` for structured forms"
        raise ValueError(complaint("num_classes", "be given, or else `outputs`", f"{num_classes} and {outputs}", advice))
    if num_classes is not None:
        check_num_classes(num_classes)
    return Problem(form, spaces[0], cost, family)


def _local_candidates(space: Sequences) -> tuple[Tensor, Tensor]:
    """Returns, for every output and position, its index (G,), and the outputs (G, |Y|) with any tag at this position."""
    return torch.arange(space.size).repeat_interleave(space.length), space.changes.reshape(-1, space.num_tags)


def as_probabilities(probabilities: object, size: int) -> Tensor:
    """Returns an array (M,) or (B, M) as a float64 tensor (B, M); raises unless rows are distributions over M outputs."""
    rows = torch.as_tensor(probabilities, dtype=torch.float64)
    rows = rows.unsqueeze(0) if rows.dim() == 1 else rows
    if rows.dim() != 2 or rows.shape[1] != size:
        must = f"have {size} entries, one for each output"
        raise ValueError(complaint("probabilities", must, tuple(rows.shape), "list them in the order of the outputs"))
    # Written as `not (… and …)`, so that NaN raises too.
    if not (bool((rows >= 0).all()) and bool(((rows.sum(-1) - 1).abs() <= 1e-9).all())):
        got = rows.sum(-1).tolist()[:3]
        raise ValueError(complaint("probabilities", "be non-negative and add up to 1", f"sums {got}", "divide by the sum"))
    return rows
