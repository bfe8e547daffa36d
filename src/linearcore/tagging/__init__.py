"""From a treebank file to a saved tagger and back: readers, encoders, training, evaluation, saved models.

`train` and `Tagger` are what most need. Their parts are for training loops of one's own, and may change: `Vocabulary`,
`Corpus`, `Batch` and `Bucket` turn sentences into batches; `TaggingModel`, `make_optimizer`, `rate_at` and `Stepper` train
on them. `HEADS` lists the heads, `HeadSettings` and `ChainSettings` have their options.
"""

from linearcore.runtime import StoppedError
from linearcore.tagging._batches import Bucket
from linearcore.tagging._corpus import Batch, Corpus, Tagged, digest, split_dev
from linearcore.tagging._evaluation_report import evaluation_report
from linearcore.tagging._heads import HEADS, ChainSettings, Head, HeadSettings
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._settings import Training
from linearcore.tagging._steps import Stepper, make_optimizer, rate_at
from linearcore.tagging._tagger import Tagger
from linearcore.tagging._training import Trained, train
from linearcore.tagging._vocabulary import Vocabulary

__all__ = [
    "HEADS",
    "Batch",
    "Bucket",
    "ChainSettings",
    "Corpus",
    "Head",
    "HeadSettings",
    "Stepper",
    "StoppedError",
    "Tagged",
    "Tagger",
    "TaggingModel",
    "Trained",
    "Training",
    "Vocabulary",
    "digest",
    "evaluation_report",
    "make_optimizer",
    "rate_at",
    "split_dev",
    "train",
]
