"""Argument checks, random numbers and result that all label-noise laws share."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._arrays import Labels, as_labels, check_num_classes
from linearcore._checks import complaint
from linearcore._streams import check_seed
from linearcore.noise._noisy_labels import NoisyLabels, describe_draw
from linearcore.noise._stream import seeded, uniform


@dataclass(frozen=True, eq=False)
class LabelDraw:
    """Clean labels and the random numbers from which a law makes noisy labels.

    A law flips a label if `chance` is below its flip probability, and chooses the wrong label by `which`. Then, with the
    same seed, a label that is wrong at one rate is wrong at every higher rate, with the same wrong label.

    Attributes:
        labels: clean labels, int64, with the shape and device that the user passed.
        num_classes: n.
        stream: random generator for further numbers, always on the CPU.
        clean: (N,) clean labels, flattened, on the CPU.
        chance, which: (N,) uniform float64 numbers in [0, 1).

    Example:
        >>> draw = LabelDraw.start([1, 2, 3] * 1000, num_classes=4, seed=0)
        >>> noisy = torch.where(draw.chance < 0.5, 0, draw.clean)
        >>> draw.finish(noisy, rate=0.5, law={"generator": "to_class_zero"}).transitions[:, 0]
        tensor([  0, 514, 498, 460])
    """

    labels: Tensor
    num_classes: int
    stream: torch.Generator
    clean: Tensor
    chance: Tensor
    which: Tensor

    @classmethod
    def start(cls, labels: Labels, *, num_classes: int, seed: int, rate: float = 0.0) -> "LabelDraw":
        """Checks the arguments that all laws share, and samples `chance` and `which` before all other random numbers.

        Raises:
            TypeError: if `labels` are not integers.
            ValueError: if a label, `num_classes`, `seed` or `rate` is out of range.
        """
        check_num_classes(num_classes)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise ValueError(complaint("rate", "be a probability", repr(rate), "pass a number in [0, 1], 0.2 for 20 %"))
        check_seed(seed)
        checked_labels = as_labels(labels, num_classes)
        clean, stream = checked_labels.cpu().flatten(), seeded(seed)
        # Both are sampled for every label, so that they do not depend on the rate.
        chance, which = uniform(stream, 2, len(clean))
        return cls(checked_labels, num_classes, stream, clean, chance, which)

    def finish(self, noisy: Tensor, *, rate: float, law: Mapping[str, object]) -> NoisyLabels:
        """Returns the result for noisy labels.

        Args:
            noisy: (N,) noisy labels, in the order of `clean`.
            rate: the requested rate, or the expected fraction of wrong labels.
            law: `generator`, the name of the law, and its options, as JSON values.
        """
        noisy = noisy.reshape(self.labels.shape).to(self.labels.device)
        return describe_draw(self.labels, noisy, rate=float(rate), num_classes=self.num_classes, law=law)
