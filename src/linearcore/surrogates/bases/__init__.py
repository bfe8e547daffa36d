"""Bases: the functions Φ that define the tails of `LinearCore`, one file per base."""

from linearcore._checks import complaint, one_of
from linearcore.surrogates.bases._base import Base, Half
from linearcore.surrogates.bases._exponential import ExponentialBase
from linearcore.surrogates.bases._gamma import GammaBase
from linearcore.surrogates.bases._logistic import LogisticBase
from linearcore.surrogates.bases._quartic import QuarticBase
from linearcore.surrogates.bases._truncated_quadratic import TruncatedQuadraticBase
from linearcore.surrogates.bases._user import UserBase

#: Bases that `LinearCore` accepts by name.
BASES: dict[str, Base] = {
    base.name: base for base in (LogisticBase(), ExponentialBase(), QuarticBase(), TruncatedQuadraticBase(), GammaBase())
}


def resolve_base(base: str | Base) -> Base:
    """Returns the base with this name; a `Base` is returned unchanged."""
    if isinstance(base, Base):
        return base
    if not isinstance(base, str):
        raise TypeError(
            complaint(
                "base", "be a name or a `Base`", type(base).__name__, "wrap a callable in linearcore.surrogates.UserBase"
            )
        )
    one_of("base", base, BASES, "or pass a `Base`, for example a `UserBase`")
    return BASES[base]


__all__ = [
    "BASES",
    "Base",
    "ExponentialBase",
    "GammaBase",
    "Half",
    "LogisticBase",
    "QuarticBase",
    "TruncatedQuadraticBase",
    "UserBase",
    "resolve_base",
]
