"""Finding wrong labels in a table of one's own: from a CSV file, or from features and labels, to a ranking.

`out_of_fold_scores` trains small networks and scores every row by one that did not see it; `linearcore.noise.suspects` turns
scores into a ranking. `read_table` and `find_wrong_labels` do all of it for a CSV file, as `linearcore suspects` does.
"""

from linearcore.cleaning._find import Findings, Suspect, check_out, find_wrong_labels
from linearcore.cleaning._folds import OutOfFold, out_of_fold_scores
from linearcore.cleaning._losses import LOSSES
from linearcore.cleaning._table import Table, TableError, read_table

__all__ = [
    "LOSSES",
    "Findings",
    "OutOfFold",
    "Suspect",
    "Table",
    "TableError",
    "check_out",
    "find_wrong_labels",
    "out_of_fold_scores",
    "read_table",
]
