"""Label noise: wrong labels by a stated law.

Every law takes clean labels, a rate and a seed (`instance_dependent` features before them, `boundary` a posterior beside
them) and returns `NoisyLabels`: the labels, the rate, the transition counts, the law, and a hash that names the draw.

| law | which labels go wrong | what they become |
|---|---|---|
| `symmetric` | each with the same probability | any other class, uniformly |
| `pair_flip` | each with the same probability, or those of some classes | one class, fixed for each class |
| `class_conditional` | by class | by class |
| `instance_dependent` | each with the same probability, whatever the input | depends on the input |
| `boundary` | those near the decision boundary | the nearest other class |
| `human_cifar10`, `human_cifar100` | those that people got wrong | what people said |

`draw` calls any law by its name in `LAWS`, or a law of your own: a function that begins with `LabelDraw.start` and ends with
`LabelDraw.finish`. A new law of the library is such a function in its own file, imported and listed below. To find wrong
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
