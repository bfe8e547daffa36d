"""Finding wrong labels: from scores, from features, or from a table, to a ranking of the rows.

    suspects             scores of a model and given labels ↦ a ranking
    out_of_fold_scores   features and given labels ↦ scores for every row by a small network that did not see it
    find_wrong_labels    a table from `read_table` ↦ all of it, as `linearcore suspects` does

Where it is known which labels are wrong, `flagging_auc` and `flagging_precision` say how good a ranking is. To make labels
wrong on purpose, see `linearcore.noise`.
"""

from linearcore.cleaning._find import Findings, Suspect, find_wrong_labels
from linearcore.cleaning._flagging import flagging_auc, flagging_precision
from linearcore.cleaning._folds import OutOfFold, out_of_fold_scores
from linearcore.cleaning._losses import LOSSES, NamedLoss
from linearcore.cleaning._suspects import MEASURES, Suspects, suspects
from linearcore.cleaning._table import Table, TableError, read_table

__all__ = [
    "LOSSES",
    "MEASURES",
    "Findings",
    "NamedLoss",
    "OutOfFold",
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
