"""Ranks the labels of a table by suspicion."""

import csv
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from linearcore._checks import complaint, one_of
from linearcore.cleaning._encoding import EncodedTable, encode
from linearcore.cleaning._folds import OutOfFoldScores, out_of_fold_scores
from linearcore.cleaning._losses import RowLoss
from linearcore.cleaning._suspects import MEASURES, Suspects, suspects
from linearcore.cleaning._table import OPENERS, Table, TableError
from linearcore.runtime import Progress

#: Columns that `Findings.write` adds.
ADDED_COLUMNS = ("suspicion_rank", "suspicion", "suggested_label")


@dataclass(frozen=True)
class Suspect:
    """A row with a possibly wrong label.

    Attributes:
        rank: 1 for the most suspicious row.
        line: line number in the file, from 1.
        given_label: the label in the file.
        suggested_label: the label that the networks prefer; equal to `given_label` if they agree with it.
        suspicion: value of the chosen measure.
    """

    rank: int
    line: int
    given_label: str
    suggested_label: str
    suspicion: float


@dataclass(frozen=True, eq=False)
class Findings:
    """The result of `find_wrong_labels`.

    Attributes:
        table: the input table.
        encoded: its features and labels as numbers.
        out_of_fold: cross-validated scores of the networks.
        suspects: the ranking.
    """

    table: Table
    encoded: EncodedTable
    out_of_fold: OutOfFoldScores
    suspects: Suspects

    @property
    def num_disagreements(self) -> int:
        """Number of rows for which the networks prefer another label. Not all are wrong, because networks err too."""
        return int((self.suspects.margin > 0).sum())

    @property
    def agreement(self) -> float:
        """Out-of-fold accuracy of the networks against the given labels, at the best epoch."""
        return max(self.out_of_fold.agreement)

    @property
    def majority(self) -> tuple[str, float]:
        """The most frequent label and its frequency, which is the accuracy of always predicting it."""
        count = self.encoded.labels.bincount()
        return self.encoded.classes[int(count.argmax())], int(count.max()) / len(self.encoded.labels)

    @property
    def singleton_labels(self) -> list[tuple[str, int]]:
        """Labels that occur once, with their line. They are often typos; the network that scores the row never saw them."""
        names = [self.encoded.classes[label] for label in self.encoded.labels.tolist()]
        count = Counter(names)
        return [(name, line) for name, line in zip(names, self.table.lines, strict=True) if count[name] == 1]

    def most_suspicious(self, count: int | None = None) -> list[Suspect]:
        """Returns the `count` most suspicious rows, or all rows, sorted by suspicion.

        Raises:
            ValueError: if `count` is not a non-negative integer.
        """
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise ValueError(complaint("count", "be an integer of at least 0", repr(count), "pass 20, or None for all rows"))
        return [self._suspect(rank, row) for rank, row in enumerate(self.suspects.order[:count].tolist(), 1)]

    def write(self, path: str | Path) -> None:
        """Writes the table in its original order, with the added columns suspicion_rank, suspicion and suggested_label.

        The suggested label equals the given label if the networks agree with it. The file is compressed if its name ends in
        .gz, .xz or .bz2. It is written atomically.

        Raises:
            OSError: if the file cannot be written.
        """
        path = Path(path)
        suspect_of_row = {row: self._suspect(rank, row) for rank, row in enumerate(self.suspects.order.tolist(), 1)}
        label_column = self.table.columns.index(self.encoded.label)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with OPENERS.get(path.suffix, open)(temporary, "wt", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, delimiter=self.table.delimiter, lineterminator="\n")
                writer.writerow([*self.table.columns, *ADDED_COLUMNS])
                for index, row in enumerate(self.table.rows):
                    suspect = suspect_of_row[index]
                    # Keeps the original whitespace, so that scripts can compare the two label columns.
                    is_same = suspect.suggested_label == suspect.given_label
                    label = row[label_column] if is_same else suspect.suggested_label
                    writer.writerow([*row, suspect.rank, f"{suspect.suspicion:.6g}", label])
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _suspect(self, rank: int, row: int) -> Suspect:
        classes, ranking = self.encoded.classes, self.suspects
        given = classes[int(self.encoded.labels[row])]
        suggested = classes[int(ranking.suggested[row])] if ranking.margin[row] > 0 else given
        return Suspect(rank, self.table.lines[row], given, suggested, float(ranking.suspicion[row]))


def find_wrong_labels(
    table: Table,
    label: str,
    *,
    measure: str = "margin",
    loss: str | RowLoss = "gce",
    folds: int = 5,
    epochs: int = 30,
    learning_rate: float = 0.003,
    seed: int = 0,
    ignore: tuple[str, ...] = (),
    categorical: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Findings:
    """Ranks the rows of a table by how strongly cross-validated small networks disagree with their label.

    Args:
        table: from `read_table`.
        label: name of the label column.
        measure: "margin" or "log_odds", as in `suspects`.
        loss, folds, epochs, learning_rate, seed, progress: as in `out_of_fold_scores`.
        ignore: columns to drop.
        categorical: columns to treat as categorical, even if they contain numbers.

    Raises:
        TableError: if the table cannot be used; the message contains the file name and, if possible, the line number.
        TypeError: if `table` is not a `Table`.
        ValueError: if an option is out of range.

    Example:
        >>> table = Table("heights.csv", ("cm", "who"), [[str(k), "adult" if k > 130 else "child"] for k in range(90, 180)],
        ...               list(range(2, 92)), ",")
        >>> table.rows[5][1] = "adult"
        >>> find_wrong_labels(table, "who").most_suspicious(1)
        [Suspect(rank=1, line=7, given_label='adult', suggested_label='child', suspicion=...)]

    Cost: that of `out_of_fold_scores`.
    """
    if not isinstance(table, Table):
        raise TypeError(complaint("table", "be a Table", type(table).__name__, "pass read_table(path)"))
    one_of("measure", measure, MEASURES)
    _check_no_added_columns(table)
    encoded = encode(table, label, ignore=ignore, categorical=categorical)
    out_of_fold = out_of_fold_scores(
        encoded.features,
        encoded.labels,
        num_classes=len(encoded.classes),
        loss=loss,
        folds=folds,
        epochs=epochs,
        learning_rate=learning_rate,
        seed=seed,
        progress=progress,
    )
    return Findings(table, encoded, out_of_fold, suspects(out_of_fold.scores, encoded.labels, measure=measure))


def _check_no_added_columns(table: Table) -> None:
    """Raises if the table already has an output column.

    A column of suggested labels, used as a feature, would reveal the label.
    """
    existing = [name for name in ADDED_COLUMNS if name in table.columns]
    if existing:
        wrong = f"the table already has the output column {existing[0]!r}"
        raise TableError.at(table.name, None, wrong, "pass the original file, or rename the column")
