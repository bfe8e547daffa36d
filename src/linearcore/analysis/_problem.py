"""A decision problem: which outputs there are, what errors cost, which scores a model can give, and the form of its loss."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.forms import FORMS, Form, MarginSystem
from linearcore.structured import STRUCTURED_FORMS as OVER_OUTPUTS
from linearcore.structured import StructuredForm
from linearcore.structures import FAMILIES, Cost, Sequences, resolve_cost
from linearcore.surrogates import Surrogate

_STRUCTURED, _LOCAL = "structured-", "local-"
#: Structured forms by name: the paper's double sum, its centered counterpart, and every form site by site.
STRUCTURED_FORMS = (*(_STRUCTURED + name for name in OVER_OUTPUTS), *(_LOCAL + name for name in FORMS))


@dataclass(frozen=True)
class Local:
    """A form over the single-site changes of a sequence, summed over sites. "local-pairwise" is `Local(Pairwise())`."""

    form: Form

    def normalized(self, normalize: bool) -> "Local":
        """The mean over the changes of a site (True), or their sum."""
        return Local(self.form.normalized(normalize))


AnyForm = str | Form | Local | StructuredForm


def named_form(form: AnyForm) -> Form | Local | StructuredForm:
    """The default instance of a form that is given by name.

    Raises:
        ValueError, TypeError: if there is no such form.
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
        form: a multi-class form ("pairwise", "centered", "logodds", or a `Form`), or a structured one: "structured-sum",
            "structured-centered", "local-pairwise", "local-centered", "local-logodds", or a `Local`. A name is the default
            instance, so "pairwise" is the mean over competitors and `Pairwise(normalize=False)` the sum.
        outputs: the output space; an integer n means n classes.
        cost: "zero-one", "hamming" or a `Cost`.
        family: which scores the model can give: "free", "unary" or "chain".
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
        if self.space.length == 1:  # One site: being wrong there is being wrong, and any scores are sums over sites.
            object.__setattr__(self, "family", "free")
            if cost.is_share:
                object.__setattr__(self, "cost", "zero-one")

    @property
    def space(self) -> Sequences:
        """The output space."""
        assert isinstance(self.outputs, Sequences)
        return self.outputs

    @property
    def form_name(self) -> str:
        """The form's name if it is the default instance, and its repr if it is not."""
        if self.over_outputs is not None:
            return _STRUCTURED + self.over_outputs.name
        assert not isinstance(self.form, str | StructuredForm)
        name = _LOCAL + self.form.form.name if isinstance(self.form, Local) else self.form.name
        is_default = name in (*FORMS, *STRUCTURED_FORMS) and self.form == named_form(name)
        return name if is_default else repr(self.form)

    @property
    def is_local(self) -> bool:
        """Whether the form is over the single-site changes of an output."""
        return isinstance(self.form, Local)

    @property
    def over_classes(self) -> Form | None:
        """The form over all outputs, or None for a structured one."""
        return self.form if isinstance(self.form, Form) else None

    @property
    def own_form(self) -> Form | None:
        """The form, over all outputs or over single-site changes; None for a form over whole outputs."""
        return self.form.form if isinstance(self.form, Local) else self.over_classes

    @property
    def num_averaged(self) -> int:
        """How many competitors the loss is a mean over; 1 for a sum."""
        if self.own_form is None or not self.own_form.is_mean:
            return 1
        return (self.space.num_tags if self.is_local else self.space.size) - 1

    @property
    def over_outputs(self) -> StructuredForm | None:
        """The structured form over whole outputs, or None for another."""
        return self.form if isinstance(self.form, StructuredForm) else None

    @property
    def own_cost(self) -> Cost:
        """The cost itself."""
        return resolve_cost(self.cost)

    @property
    def cost_name(self) -> str:
        """The cost as it is printed."""
        return str(self.cost)

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
        return surrogate.is_monotone or not self.system.needs_monotone

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
        """The margins of the form on this space.

        Raises:
            ValueError: if the form does not declare its margins.
        """
        form, size = self.own_form, self.space.size
        if self.over_outputs is not None:
            return self.over_outputs.margins(self.costs, self.basis)
        assert form is not None
        if self.is_local:
            own, candidates = _changes(self.space)
        else:
            own = torch.arange(size)
            candidates = own.expand(size, size)
        system = form.margins(own, candidates, self.basis)
        if system is None:
            advice = "give it a method `margins`, or take another form"
            raise ValueError(complaint("form", "declare its margins to be analysed", repr(form.name), advice))
        return replace(system, weights=system.weights / self.num_averaged)


def problem_on(form: AnyForm, num_classes: int | None, outputs: Sequences | None, cost: str | Cost, family: str) -> Problem:
    """The problem on `num_classes` classes or on `outputs`, whichever is given."""
    given = [choice for choice in (num_classes, outputs) if choice is not None]
    if len(given) != 1:
        advice = "give the number of classes, or a `Sequences` for structured forms"
        raise ValueError(complaint("num_classes", "be given, or else `outputs`", f"{num_classes} and {outputs}", advice))
    return Problem(form, given[0], cost, family)


def _changes(space: Sequences) -> tuple[Tensor, Tensor]:
    """For every output and site: its index (G,), and those of its single-site changes (G, |Y|), itself among them."""
    return torch.arange(space.size).repeat_interleave(space.length), space.changes.reshape(-1, space.num_tags)


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
