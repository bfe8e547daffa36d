"""Forms: how scores and a label become margins, and their φ the loss of a row. One file for each.

    pairwise   Σ_{v≠y} φ(s_y − s_v)                the paper's sum loss, or its mean
    centered   Σ_{v≠y} φ(−(s_v − mean s))          the one whose linear bound holds
    logodds    φ(s_y − logsumexp_{v≠y} s_v)        the one that trains like cross-entropy

To add one, subclass `Form` in a file of its own and list it here.
"""

from linearcore._checks import complaint, one_of
from linearcore.forms._base import Form
from linearcore.forms._centered import Centered
from linearcore.forms._labels import Labels
from linearcore.forms._logodds import LogOdds
from linearcore.forms._margins import LinearMargins, LogOddsMargins, MarginSystem
from linearcore.forms._pairwise import Pairwise
from linearcore.forms._rows import Kept, reference_rows, row_losses, tensors_of

__all__ = [
    "FORMS",
    "Centered",
    "Form",
    "Kept",
    "Labels",
    "LinearMargins",
    "LogOdds",
    "LogOddsMargins",
    "MarginSystem",
    "Pairwise",
    "reference_rows",
    "resolve_form",
    "row_losses",
    "tensors_of",
]

#: Every form by its name, which stands for its default instance.
FORMS: dict[str, Form] = {form.name: form for form in (Pairwise(), Centered(), LogOdds())}


def resolve_form(form: str | Form, normalize: bool | None = None) -> Form:
    """The form that a name stands for, as a mean or a sum where `normalize` says so."""
    if isinstance(form, str):
        one_of("form", form, FORMS)
        form = FORMS[form]
    elif not isinstance(form, Form):
        raise TypeError(complaint("form", "be a name or a `Form`", type(form).__name__, "for example 'logodds'"))
    return form if normalize is None else form.normalized(normalize)
