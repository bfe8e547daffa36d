"""Label noise: generators of wrong labels whose law is stated, and the other way round: which labels look wrong.

Every generator takes clean labels, a rate and a seed (`instance_dependent` features before them, `boundary` a posterior
beside them) and returns a `NoisyLabels`: the labels, the rate, what became what, the law, and a hash that names the draw.

| generator | which labels go wrong | what they become |
|---|---|---|
| `symmetric` | all alike | any other class, all alike |
| `pair_flip` | all alike, or those of some classes | one class, fixed for each class |
| `class_conditional` | by class | by class |
| `instance_dependent` | all alike: the rate is *not* a matter of the input | depends on the input |
| `boundary` | those near the decision boundary | the nearest other class |
| `human_cifar10`, `human_cifar100` | those that people got wrong | what people said |

`suspects` ranks given labels by how much a model's scores speak against them. Where the wrong ones are known,
`flagging_auc` and `flagging_precision` say how good a ranking is. `linearcore.cleaning` trains the model, too.
"""

from linearcore.noise._boundary import boundary
from linearcore.noise._class_conditional import class_conditional
from linearcore.noise._flagging import flagging_auc, flagging_precision
from linearcore.noise._human import human_cifar10, human_cifar100
from linearcore.noise._instance_dependent import instance_dependent
from linearcore.noise._linear_posterior import linear_posterior
from linearcore.noise._noisy_labels import NoisyLabels
from linearcore.noise._pair_flip import CIFAR10_PAIRS, pair_flip
from linearcore.noise._suspects import Suspects, suspects
from linearcore.noise._symmetric import symmetric

__all__ = [
    "CIFAR10_PAIRS",
    "NoisyLabels",
    "Suspects",
    "boundary",
    "class_conditional",
    "flagging_auc",
    "flagging_precision",
    "human_cifar10",
    "human_cifar100",
    "instance_dependent",
    "linear_posterior",
    "pair_flip",
    "suspects",
    "symmetric",
]
