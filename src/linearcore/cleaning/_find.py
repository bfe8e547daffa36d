"""From a table to its most suspicious labels."""

import csv
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from linearcore._checks import complaint, one_of
from linearcore.cleaning._encoding import Encoded, encode
from linearcore.cleaning._folds import OutOfFold, out_of_fold_scores
from linearcore.cleaning._losses import RowLoss
from linearcore.cleaning._suspects import MEASURES, Suspects, suspects
from linearcore.cleaning._table import OPENERS, Table, TableError
from linearcore.runtime import Progress

#: The columns that `Findings.write` adds.
ADDED = ("suspicion_rank", "suspicion", "suggested_label")


@dataclass(frozen=True)
class Suspect:
    """One row whose label should be looked at.

    Attributes:
        rank: from 1, the most suspicious.
        line: of the file, from 1.
        given: the label as it stands there.
        suggested: the one that the networks prefer; the given one where they agree with it.
        suspicion: by the chosen measure.
    """

    rank: int
    line: int
    given: str
    suggested: str
    suspicion: float


@dataclass(frozen=True, eq=False)
class Findings:
    """What was found in a table.

    Attributes:
        table: as it was read.
        encoded: as numbers.
        out_of_fold: scores by networks that did not see the row.
        suspects: the ranking.
    """

    table: Table
    encoded: Encoded
    out_of_fold: OutOfFold
    suspects: Suspects

    @property
    def prefer_another(self) -> int:
        """For how many rows the networks prefer another label. More than are wrong, since networks err, too."""
        return int((self.suspects.margin > 0).sum())

    @property
    def agreement(self) -> float:
        """The share of given labels that the networks would have given."""
        return max(self.out_of_fold.agreement)

    @property
    def majority(self) -> tuple[str, float]:
        """The most frequent label and its share: what one would agree with by always saying the same."""
        count = self.encoded.labels.bincount()
        return self.encoded.classes[int(count.argmax())], int(count.max()) / len(self.encoded.labels)

    @property
    def lonely(self) -> list[tuple[str, int]]:
        """Labels that only one row has, with its line: often misspelt, and unknown to the network that scores the row."""
        given = [self.encoded.classes[label] for label in self.encoded.labels.tolist()]
        count = Counter(given)
        return [(name, line) for name, line in zip(given, self.table.lines, strict=True) if count[name] == 1]

    def worst(self, count: int | None = None) -> list[Suspect]:
        """The `count` most suspicious rows, or all, the most suspicious first.

        Raises:
            ValueError: if `count` is no integer of at least 0.
        """
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise ValueError(complaint("count", "be an integer of at least 0", repr(count), "pass 20, or None for all rows"))
        return [self._suspect(rank, row) for rank, row in enumerate(self.suspects.order[:count].tolist(), 1)]

    def write(self, path: str | Path) -> None:
        """Writes the table as it was, every row in its place, with `suspicion_rank`, `suspicion` and `suggested_label`.

        The suggested label is the given one where the networks agree with it. The file is packed if its name ends in .gz,
        .xz or .bz2. It is complete or not there at all.

        Raises:
            OSError: if it cannot be written.
        """
        path = Path(path)
        found = {row: self._suspect(rank, row) for rank, row in enumerate(self.suspects.order.tolist(), 1)}
        place = self.table.columns.index(self.encoded.label)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with OPENERS.get(path.suffix, open)(temporary, "wt", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, delimiter=self.table.delimiter, lineterminator="\n")
                writer.writerow([*self.table.columns, *ADDED])
                for number, row in enumerate(self.table.rows):
                    one = found[number]
                    # The given label as it stands there, with its spaces: a program will compare the two.
                    suggested = row[place] if one.suggested == one.given else one.suggested
                    writer.writerow([*row, one.rank, f"{one.suspicion:.6g}", suggested])
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _suspect(self, rank: int, row: int) -> Suspect:
        names, found = self.encoded.classes, self.suspects
        given, other = names[int(self.encoded.labels[row])], names[int(found.suggested[row])]
        suggested = other if found.margin[row] > 0 else given
        return Suspect(rank, self.table.lines[row], given, suggested, float(found.suspicion[row]))


def find_wrong_labels(
    table: Table,
    label: str,
    *,
    by: str = "margin",
    loss: str | RowLoss = "gce",
    folds: int = 5,
    epochs: int = 30,
    learning_rate: float = 0.003,
    seed: int = 0,
    ignore: tuple[str, ...] = (),
    categorical: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Findings:
    """Trains small networks on a table, fold by fold, and ranks its rows by how strongly they disagree with the label.

    Args:
        table: from `read_table`.
        label: the column with the labels.
        by: "margin" or "log_odds", as in `suspects`.
        loss, folds, epochs, learning_rate, seed, progress: as in `out_of_fold_scores`.
        ignore: columns to leave out.
        categorical: columns whose values are categories even if they look like numbers.

    Raises:
        TableError: if the table cannot be used; the text has the file and, where there is one, the line.
        TypeError: if `table` is none, but a path for example.
        ValueError: if an option is out of range.

    Example:
        >>> table = Table("heights.csv", ("cm", "who"), [[str(k), "adult" if k > 130 else "child"] for k in range(90, 180)],
        ...               list(range(2, 92)), ",")
        >>> table.rows[5][1] = "adult"
        >>> find_wrong_labels(table, "who").worst(1)
        [Suspect(rank=1, line=7, given='adult', suggested='child', suspicion=...)]

    Cost: as `out_of_fold_scores`.
    """
    if not isinstance(table, Table):
        raise TypeError(complaint("table", "be a Table", type(table).__name__, "pass read_table(path)"))
    one_of("by", by, MEASURES)
    _refuse_own_columns(table)
    encoded = encode(table, label, ignore=ignore, categorical=categorical)
    found = out_of_fold_scores(
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
    return Findings(table, encoded, found, suspects(found.scores, encoded.labels, by=by))


def _refuse_own_columns(table: Table) -> None:
    """Refuses a table with a column of our own: a suggested label as a feature would reveal the label."""
    taken = [name for name in ADDED if name in table.columns]
    if taken:
        wrong = f"there is a column {taken[0]!r}, which this command adds"
        raise TableError.at(table.name, None, wrong, "pass the file as it was before, or rename the column")
