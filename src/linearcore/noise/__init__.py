"""Label noise: generators of wrong labels whose law is stated and whose draws can be repeated and named."""

from linearcore.noise._noisy_labels import NoisyLabels
from linearcore.noise._symmetric import symmetric

__all__ = ["NoisyLabels", "symmetric"]
