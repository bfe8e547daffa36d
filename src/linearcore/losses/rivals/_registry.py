"""The rivals by name, with what is true of each."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch import Tensor

from linearcore.losses.rivals._asymmetric import asymmetric_generalized_cross_entropy
from linearcore.losses.rivals._cross_entropy import cross_entropy
from linearcore.losses.rivals._generalized import generalized_cross_entropy
from linearcore.losses.rivals._hinges import crammer_singer, weston_watkins
from linearcore.losses.rivals._mean_absolute_error import mean_absolute_error
from linearcore.losses.rivals._normalized import active_passive_cross_entropy, normalized_cross_entropy
from linearcore.losses.rivals._reverse import reverse_cross_entropy, symmetric_cross_entropy
from linearcore.losses.rivals._unhinged import unhinged

#: What every rival takes; whatever else is in its signature is its own.
SHARED = ("scores", "target", "weight", "sample_weight", "ignore_index", "label_smoothing", "reduction", "validate")


@dataclass(frozen=True)
class Rival:
    """A loss with its facts, which hold for the default options; call it as the function.

    Attributes:
        function: the loss.
        title: what tables call it.
        is_symmetric: Σ_y ℓ(s, y) is the same for all scores s, so that uniform label noise does not move its minimiser.
        is_convex: in the scores.
        is_bounded: from below and above, so that one row can only do so much.
    """

    function: Callable[..., Tensor]
    title: str
    is_symmetric: bool
    is_convex: bool
    is_bounded: bool

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def options(self) -> Mapping[str, Any]:
        """Its own options with their defaults."""
        parameters = inspect.signature(self.function).parameters
        return {name: parameter.default for name, parameter in parameters.items() if name not in SHARED}

    def __call__(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        return self.function(scores, target, **options)


_ALL = (
    Rival(cross_entropy, "CE", is_symmetric=False, is_convex=True, is_bounded=False),
    Rival(mean_absolute_error, "MAE", is_symmetric=True, is_convex=False, is_bounded=True),
    Rival(generalized_cross_entropy, "GCE", is_symmetric=False, is_convex=False, is_bounded=True),
    Rival(asymmetric_generalized_cross_entropy, "AGCE", is_symmetric=False, is_convex=False, is_bounded=True),
    Rival(reverse_cross_entropy, "RCE", is_symmetric=True, is_convex=False, is_bounded=True),
    Rival(symmetric_cross_entropy, "SCE", is_symmetric=False, is_convex=False, is_bounded=False),
    Rival(normalized_cross_entropy, "NCE", is_symmetric=True, is_convex=False, is_bounded=True),
    Rival(active_passive_cross_entropy, "NCE+RCE", is_symmetric=True, is_convex=False, is_bounded=True),
    Rival(unhinged, "unhinged", is_symmetric=True, is_convex=True, is_bounded=False),
    Rival(weston_watkins, "Weston–Watkins", is_symmetric=False, is_convex=True, is_bounded=False),
    Rival(crammer_singer, "Crammer–Singer", is_symmetric=False, is_convex=True, is_bounded=False),
)

#: Every rival that is a function of scores and target alone, by the name of its function.
RIVALS: Mapping[str, Rival] = MappingProxyType({rival.name: rival for rival in _ALL})
