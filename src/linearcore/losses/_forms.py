"""Forms: how scores and a label become margins."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from linearcore._checks import complaint, one_of
from linearcore.kernels import CenteredKernel, FormKernel, LogOddsKernel, PairwiseKernel
from linearcore.surrogates import Surrogate


class Form(ABC):
    """A way to make margins from scores (N, C) and a label.

    `check` refuses surrogates for which the form loses what it promises. `kernel` does not ask: it is how the
    analysis of refused pairs reaches them.
    """

    name: ClassVar[str]

    @abstractmethod
    def check(self, surrogate: Surrogate) -> None:
        """Raises ValueError if the form and `surrogate` do not go together."""

    @abstractmethod
    def kernel(self, surrogate: Surrogate) -> FormKernel:
        """The computation of this form with `surrogate`."""


@dataclass(frozen=True)
class Pairwise(Form):
    """Σ_{v≠y} φ(s_y − s_v), the paper's sum loss, or its mean over the n − 1 competitors.

    Convex, as smooth as φ, and argmax-consistent for differentiable non-increasing φ. The paper's linear bound fails for
    three classes and more (`docs/reading-the-paper-with-care.md`, a).

    Reference: Eq. (3) of the paper.
    """

    normalize: bool = True
    name: ClassVar[str] = "pairwise"

    def check(self, surrogate: Surrogate) -> None:
        pass

    def kernel(self, surrogate: Surrogate) -> FormKernel:
        return PairwiseKernel(surrogate, self.normalize)


@dataclass(frozen=True)
class Centered(Form):
    """Σ_{v≠y} φ(−(s_v − s̄)) with s̄ the mean score, or its mean over the n − 1 competitors.

    The linear bound holds for one-sided linear-core φ: 0-1 regret ≤ surrogate regret / τ for the sum, times n − 1 for the
    mean. Hard to train with many classes.
    """

    normalize: bool = True
    name: ClassVar[str] = "centered"

    def check(self, surrogate: Surrogate) -> None:
        if surrogate.core is not None and surrogate.core[0] > -math.inf:
            must = 'be one-sided for form="centered"'
            advice = "a tail steeper than the core breaks the linear bound, this form's purpose; use sides=1 or another form"
            raise ValueError(complaint("surrogate", must, surrogate, advice))

    def kernel(self, surrogate: Surrogate) -> FormKernel:
        return CenteredKernel(surrogate, self.normalize)


@dataclass(frozen=True)
class LogOdds(Form):
    """φ(s_y − logsumexp_{v≠y} s_v): one margin a sample, the log-odds of its label. With `Logistic` it is cross-entropy.

    Convex, argmax-consistent, and the form that trains as well as cross-entropy (measured with 10, 26 and 200 classes).
    Square-root rate for three classes and more.
    """

    name: ClassVar[str] = "logodds"

    def check(self, surrogate: Surrogate) -> None:
        if not surrogate.is_monotone:
            must = 'be non-increasing for form="logodds"'
            advice = "the loss would not be convex in the scores; use a monotone base such as 'gamma', or another form"
            raise ValueError(complaint("surrogate", must, surrogate, advice))

    def kernel(self, surrogate: Surrogate) -> FormKernel:
        return LogOddsKernel(surrogate)


#: The forms that losses know by name.
FORMS: dict[str, Form] = {form.name: form for form in (Pairwise(), Centered(), LogOdds())}


def resolve_form(form: str | Form, normalize: bool | None = None) -> Form:
    """The form that a name stands for, with `normalize` put in where it is given."""
    if isinstance(form, str):
        one_of("form", form, FORMS)
        form = FORMS[form]
    elif not isinstance(form, Form):
        raise TypeError(complaint("form", "be a name or a `Form`", type(form).__name__, "for example 'logodds'"))
    if normalize is None:
        return form
    if isinstance(form, Pairwise | Centered):
        return replace(form, normalize=normalize)
    if normalize:
        must = f"be None or False for form={form.name!r}"
        raise ValueError(complaint("normalize", must, normalize, "it has one margin a sample and nothing to average"))
    return form
