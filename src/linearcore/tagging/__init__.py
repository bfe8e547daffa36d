"""From a treebank file to a saved tagger and back: readers, encoders, training, evaluation, saved models."""

from linearcore.runtime import StoppedError
from linearcore.tagging._corpus import Tagged, split_dev
from linearcore.tagging._settings import Training
from linearcore.tagging._tagger import Tagger
from linearcore.tagging._training import Trained, train

__all__ = ["StoppedError", "Tagged", "Tagger", "Trained", "Training", "split_dev", "train"]
