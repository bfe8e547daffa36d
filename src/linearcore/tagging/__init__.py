"""Sequence tagging: read treebank files, train, evaluate and save taggers.

Most users need only `train` and `Tagger`. The other classes are for custom training loops and may change: `Vocabulary`,
`Corpus`, `Batch` and `Bucket` turn sentences into batches; `TaggingModel`, `make_optimizer`, `lr_at` and `Stepper` train
on them. `HEADS` lists the heads; `HeadSettings` and `ChainSettings` hold their options. `ExportedTagger` runs what
`Tagger.export` writes.
"""

from linearcore.runtime import StoppedError
from linearcore.tagging._batches import Bucket
from linearcore.tagging._corpus import Batch, Corpus, TaggedSentence, digest, split_dev
from linearcore.tagging._evaluation import Evaluation
from linearcore.tagging._evaluation_report import comparison_table, evaluation_report
from linearcore.tagging._heads import HEADS, ChainSettings, Head, HeadSettings
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._prediction import Prediction, ScoredTags
from linearcore.tagging._settings import Training
from linearcore.tagging._steps import Stepper, lr_at, make_optimizer
from linearcore.tagging._tagger import Tagger
from linearcore.tagging._training import TrainingResult, train
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.export import ExportedTagger

__all__ = [
    "HEADS",
    "Batch",
    "Bucket",
    "ChainSettings",
    "Corpus",
    "Evaluation",
    "ExportedTagger",
    "Head",
    "HeadSettings",
    "Prediction",
    "ScoredTags",
    "Stepper",
    "StoppedError",
    "TaggedSentence",
    "Tagger",
    "TaggingModel",
    "Training",
    "TrainingResult",
    "Vocabulary",
    "comparison_table",
    "digest",
    "evaluation_report",
    "lr_at",
    "make_optimizer",
    "split_dev",
    "train",
]
