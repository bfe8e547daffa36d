"""Generators of synthetic label noise, and readers of human label noise.

A noise model is called a *law* in the code. It takes clean labels, a noise rate and a seed; `instance_dependent` also takes
features, and `boundary` class probabilities. It returns `NoisyLabels`: the labels, the rate, the transition counts, the law
and a hash.

| law | probability of a wrong label | distribution of the wrong label |
|---|---|---|
| `symmetric` | the same for all labels | uniform over the other classes |
| `pair_flip` | the same for all labels, or for those of some classes | one fixed class per class |
| `class_conditional` | depends on the class | depends on the class |
| `instance_dependent` | the same for all labels, independent of the input | depends on the input |
| `boundary` | higher near the decision boundary | the nearest other class |
| `human_cifar10`, `human_cifar100` | errors of human annotators | labels of human annotators |

`draw` calls a law by its name in `LAWS`, or a law of your own: a function that starts with `LabelDraw.start` and ends with
`LabelDraw.finish`. To add a law to the library, write such a function in its own file and list it below. To find wrong
labels, see `linearcore.cleaning`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from linearcore.noise._boundary import boundary
from linearcore.noise._class_conditional import class_conditional
from linearcore.noise._draw import Law, draw
from linearcore.noise._human import human_cifar10, human_cifar100
from linearcore.noise._instance_dependent import instance_dependent
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._linear_posterior import linear_posterior
from linearcore.noise._noisy_labels import NoisyLabels
from linearcore.noise._pair_flip import CIFAR10_PAIRS, pair_flip
from linearcore.noise._symmetric import symmetric

#: The laws by name.
LAWS: Mapping[str, Law] = MappingProxyType(
    {law.__name__: law for law in (boundary, class_conditional, instance_dependent, pair_flip, symmetric)}
)

__all__ = [
    "CIFAR10_PAIRS",
    "LAWS",
    "LabelDraw",
    "Law",
    "NoisyLabels",
    "boundary",
    "class_conditional",
    "draw",
    "human_cifar10",
    "human_cifar100",
    "instance_dependent",
    "linear_posterior",
    "pair_flip",
    "symmetric",
]
