"""Ranks the rows of a dataset by how likely their label is wrong.

    suspects             ranks rows by a model's scores and the given labels
    out_of_fold_scores   computes cross-validated scores of small networks from features and given labels
    find_wrong_labels    does both for a table from `read_table`, like `linearcore suspects`

If the true labels are known, `flagging_auc` and `flagging_precision` evaluate a ranking. To generate wrong labels, see
`linearcore.noise`.
"""

from linearcore.cleaning._find import Findings, Suspect, find_wrong_labels
from linearcore.cleaning._flagging import flagging_auc, flagging_precision
from linearcore.cleaning._folds import OutOfFoldScores, out_of_fold_scores
from linearcore.cleaning._losses import LOSSES, NamedLoss
from linearcore.cleaning._suspects import MEASURES, Suspects, suspects
from linearcore.cleaning._table import Table, TableError, read_table

__all__ = [
    "LOSSES",
    "MEASURES",
    "Findings",
    "NamedLoss",
    "OutOfFoldScores",
    "Suspect",
    "Suspects",
    "Table",
    "TableError",
    "find_wrong_labels",
    "flagging_auc",
    "flagging_precision",
    "out_of_fold_scores",
    "read_table",
    "suspects",
]
