"""Ranks the rows of a dataset by how likely their label is wrong.

    find_wrong_labels    takes a table or features with their labels, like `linearcore suspects`
    suspects             ranks rows by your own model's scores and the given labels
    model_scores         computes cross-validated scores of models for tables and text
    out_of_fold_scores   computes those of small networks

If the true labels are known, `flagging_auc` and `flagging_precision` evaluate a ranking. To generate wrong labels, see
`linearcore.noise`; to read files, `linearcore.tables`.
"""

from linearcore.cleaning._estimate import WrongLabels
from linearcore.cleaning._find import find_wrong_labels
from linearcore.cleaning._findings import ADDED_COLUMNS, ClassSummary, Findings, Suspect
from linearcore.cleaning._flagging import flagging_auc, flagging_precision
from linearcore.cleaning._folds import OutOfFoldScores, out_of_fold_scores
from linearcore.cleaning._losses import LOSSES, NamedLoss
from linearcore.cleaning._model_scores import ModelScores, model_scores
from linearcore.cleaning._models import MODELS, Model, NetworkSettings
from linearcore.cleaning._suspects import MEASURES, Suspects, suspects
from linearcore.tables import TableError, read_table

__all__ = [
    "ADDED_COLUMNS",
    "LOSSES",
    "MEASURES",
    "MODELS",
    "ClassSummary",
    "Findings",
    "Model",
    "ModelScores",
    "NamedLoss",
    "NetworkSettings",
    "OutOfFoldScores",
    "Suspect",
    "Suspects",
    "TableError",
    "WrongLabels",
    "find_wrong_labels",
    "flagging_auc",
    "flagging_precision",
    "model_scores",
    "out_of_fold_scores",
    "read_table",
    "suspects",
]
