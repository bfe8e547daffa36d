"""Forms: turn the scores and the label of a row into margins, and the margins' φ into a loss. One file per form.

    pairwise   Σ_{v≠y} φ(s_y − s_v)                the paper's loss (sum, or mean over competitors)
    centered   Σ_{v≠y} φ(−(s_v − mean s))          has a linear consistency bound
    logodds    φ(s_y − logsumexp_{v≠y} s_v)        accuracy close to cross-entropy

To add a form, subclass `Form` in its own file and list it in `FORMS`.
"""

from linearcore._checks import complaint, one_of
from linearcore.forms._base import Form
from linearcore.forms._centered import Centered
from linearcore.forms._class_chunks import MaskedScoresError, class_chunk_losses
from linearcore.forms._labels import Labels
from linearcore.forms._logodds import LogOdds
from linearcore.forms._margins import LinearMargins, LogOddsMargins, MarginSystem
from linearcore.forms._pairwise import Pairwise
from linearcore.forms._projected import Gradients, Projection
from linearcore.forms._rows import (
    SavedTensors,
    can_compile_rows,
    can_fuse_rows,
    can_trace_rows,
    reference_rows,
    row_losses,
    tensor_attributes,
)

__all__ = [
    "FORMS",
    "Centered",
    "Form",
    "Gradients",
    "Labels",
    "LinearMargins",
    "LogOdds",
    "LogOddsMargins",
    "MarginSystem",
    "MaskedScoresError",
    "Pairwise",
    "Projection",
    "SavedTensors",
    "can_compile_rows",
    "can_fuse_rows",
    "can_trace_rows",
    "class_chunk_losses",
    "reference_rows",
    "resolve_form",
    "row_losses",
    "tensor_attributes",
]

#: Default instances of all forms by name.
FORMS: dict[str, Form] = {form.name: form for form in (Pairwise(), Centered(), LogOdds())}


def resolve_form(form: str | Form, normalize: bool | None = None) -> Form:
    """Returns the form with this name, as a mean (`normalize=True`) or a sum (False) over competitors."""
    if isinstance(form, str):
        one_of("form", form, FORMS)
        form = FORMS[form]
    elif not isinstance(form, Form):
        raise TypeError(complaint("form", "be a name or a `Form`", type(form).__name__, "for example 'logodds'"))
    return form if normalize is None else form.normalized(normalize)
