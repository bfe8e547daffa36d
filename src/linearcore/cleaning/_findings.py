"""The result of `find_wrong_labels`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.cleaning._estimate import WrongLabels
from linearcore.cleaning._model_scores import ModelScores
from linearcore.cleaning._page import write_page
from linearcore.cleaning._suspects import Suspects
from linearcore.tables import EncodedTable, Repeats, Table

if TYPE_CHECKING:
    import pandas as pd

#: Columns that `Findings.write` adds, and what they hold.
ADDED_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "suspicion_rank": "1 for the most suspicious row",
        "suspicion": "value of the measure",
        "suggested_label": "the label that the model prefers, often the given one",
        "is_suspicious": "whether the row is among the estimated number of wrong labels",
    }
)


@dataclass(frozen=True)
class Suspect:
    """A row with a possibly wrong label.

    Attributes:
        rank: 1 for the most suspicious row.
        row: line of a CSV file, from 1; index label of a DataFrame; row number, from 0, of anything else.
        given_label: the given label.
        suggested_label: the label that the model prefers; equal to `given_label` if it agrees.
        suspicion: value of the chosen measure.
    """

    rank: int
    row: Any
    given_label: Any
    suggested_label: Any
    suspicion: float


@dataclass(frozen=True)
class ClassSummary:
    """The labels of one class.

    Attributes:
        label: the class.
        rows: number of rows with this label.
        suspicious: number of these among the estimated number of wrong labels.
        disagreements: number of these for which the model prefers another label.
        suggested_label: the label that is suggested most often for the suspicious ones; None if there are none.
    """

    label: Any
    rows: int
    suspicious: int
    disagreements: int
    suggested_label: Any


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The result of `find_wrong_labels`.

    Attributes:
        table: the input.
        encoded: its features and labels as numbers.
        out_of_fold: cross-validated scores of the model.
        suspects: the ranking.
        repeats: groups of rows with the same features.
    """

    table: Table
    encoded: EncodedTable
    out_of_fold: ModelScores
    suspects: Suspects
    repeats: Repeats

    def __repr__(self) -> str:
        estimate = self.estimate
        return (
            f"<Findings of {estimate.rows:,} rows: about {estimate.count:,} wrong labels (95 % interval {estimate.low:,} to "
            f"{estimate.high:,}), model {self.out_of_fold.model!r}; see most_suspicious(), to_frame() and write()>"
        )

    @property
    def estimate(self) -> WrongLabels:
        """The estimated number of wrong labels, with an interval."""
        return self.suspects.estimate

    @property
    def agreement(self) -> float:
        """Out-of-fold accuracy of the model against the given labels."""
        return self.out_of_fold.agreement

    @property
    def majority(self) -> tuple[Any, float]:
        """The most frequent label and its frequency, which is the accuracy of always predicting it."""
        count = np.bincount(self.encoded.labels)
        return self.encoded.classes[int(count.argmax())], int(count.max()) / len(self.encoded.labels)

    @property
    def singleton_labels(self) -> list[tuple[Any, Any]]:
        """Labels that occur once, with their row. They are often typos; the model that scores the row never saw them."""
        count = np.bincount(self.encoded.labels)
        rows = [row for row, label in enumerate(self.encoded.labels.tolist()) if count[label] == 1]
        return [(self.encoded.classes[self.encoded.labels[row]], self.table.row_name(row)) for row in rows]

    @property
    def conflicts(self) -> tuple[tuple[int, ...], ...]:
        """Groups of rows, counted from 0, with the same features and different labels."""
        return self.repeats.with_different(self.encoded.labels)

    def by_class(self) -> list[ClassSummary]:
        """Returns a summary of each class, in the order of the classes."""
        given, suggested = self.encoded.labels, self.suspects.suggested.numpy()
        is_suspicious = self.suspects.flag().numpy()
        summaries = []
        for label, name in enumerate(self.encoded.classes):
            is_given = given == label
            counts = Counter(suggested[is_given & is_suspicious & (suggested != label)].tolist())
            most = self.encoded.classes[counts.most_common(1)[0][0]] if counts else None
            disagreements = int((is_given & (suggested != label)).sum())
            summaries.append(
                ClassSummary(name, int(is_given.sum()), int((is_given & is_suspicious).sum()), disagreements, most)
            )
        return summaries

    def most_suspicious(self, count: int | None = None) -> list[Suspect]:
        """Returns the `count` most suspicious rows, or all rows, sorted by suspicion.

        Raises:
            ValueError: if `count` is not a non-negative integer.
        """
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise ValueError(complaint("count", "be an integer of at least 0", repr(count), "pass 20, or None for all rows"))
        return [self._suspect(rank, row) for rank, row in enumerate(self.suspects.order[:count].tolist(), 1)]

    def to_frame(self) -> "pd.DataFrame":
        """Returns a DataFrame with the index of the input, in its order, with given_label and the columns of `write`.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        require("pandas", extra="tables")
        import pandas as pd

        given = [self.encoded.classes[label] for label in self.encoded.labels.tolist()]
        return pd.DataFrame({"given_label": given, **self._added()}, index=getattr(self.table, "index", None))

    def write(self, path: str | Path) -> None:
        """Writes the table in its original order, with the columns of `ADDED_COLUMNS`.

        The file is Parquet if its name ends in .parquet, and CSV otherwise, compressed if it ends in .gz, .xz or .bz2. It is
        written atomically.

        Raises:
            MissingExtraError: for Parquet, if pyarrow is not installed.
            OSError: if the file cannot be written.
        """
        added = self._added()
        if self.encoded.label in self.table.columns:
            # Keeps the original whitespace, so that scripts can compare the two label columns.
            original = self.table.original(self.encoded.label)
            same = (self.suspects.suggested == self.suspects.given).tolist()
            rows = zip(same, original, added["suggested_label"], strict=True)
            added["suggested_label"] = [before if is_same else label for is_same, before, label in rows]
        added["suspicion"] = [float(f"{value:.6g}") for value in added["suspicion"]]
        self.table.write(Path(path), added)

    def write_page(self, path: str | Path, count: int = 100) -> None:
        """Writes a self-contained HTML page with the summary and the `count` most suspicious rows.

        Raises:
            OSError: if the file cannot be written.
        """
        write_page(self, Path(path), count)

    def _added(self) -> dict[str, list[Any]]:
        rank = np.empty(len(self.table), dtype=np.int64)
        rank[self.suspects.order.numpy()] = np.arange(1, len(self.table) + 1)
        names = (rank.tolist(), self.suspects.suspicion.tolist(), self.suspects.names(self.suspects.suggested))
        return dict(zip(ADDED_COLUMNS, (*names, self.suspects.flag().tolist()), strict=True))

    def _suspect(self, rank: int, row: int) -> Suspect:
        classes, ranking = self.encoded.classes, self.suspects
        given, suggested = classes[int(ranking.given[row])], classes[int(ranking.suggested[row])]
        return Suspect(rank, self.table.row_name(row), given, suggested, float(ranking.suspicion[row]))
