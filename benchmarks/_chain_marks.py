"""What chain.py's figures have to reach, and whether they do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

OURS, CRF, TOKENS = "LC logodds", "ChainCRF", "token cross-entropy"
PEERS = ("pytorch-crf", "broadcast CRF")
GRAPH = ", graph"


@dataclass(frozen=True)
class Mark:
    """A limit for one contender at one size of one device.

    Attributes:
        device, size: where it holds; the size is |Y|, L, B.
        text: what is measured.
        limit: what it must reach; `at_most` says from which side.
        name: the contender.
        against: whose time it is divided by, or divides where more is better. None: `key` itself is judged.
        baselines: all whose fastest is the strongest to compare with.
        modes: eager, or replayed as a CUDA graph. Like is compared with like.
        key, unit: which figure of the row, and how many of it make one of the limit's.
    """

    device: str
    size: tuple[int, int, int]
    text: str
    limit: float
    name: str
    against: str | None = None
    baselines: tuple[str, ...] = ()
    at_most: bool = True
    modes: tuple[str, ...] = ("",)
    key: str = "median_ms"
    unit: float = 1.0

    def judge(self, rows: Mapping[str, Mapping[str, Any]]) -> list[dict[str, object]]:
        """One verdict a mode; None where somebody was left out."""
        strongest = min(
            (row[self.key] for name, row in rows.items() if name.removesuffix(GRAPH) in self.baselines), default=None
        )
        found = []
        for mode in self.modes:
            own = rows.get(self.name + mode, {}).get(self.key)
            other = self.unit if self.against is None else rows.get(self.against + mode, {}).get(self.key)
            measured = self._ratio(own, other)
            is_met = None if measured is None else (measured <= self.limit if self.at_most else measured >= self.limit)
            found.append(
                {
                    "mark": self.text,
                    "size": list(self.size),
                    "mode": "graph" if mode else "eager",
                    "limit": f"{'at most' if self.at_most else 'at least'} {self.limit:g}",
                    "measured": measured,
                    "against_strongest": self._ratio(own, strongest),
                    "met": is_met,
                }
            )
        return found

    def _ratio(self, own: float | None, other: float | None) -> float | None:
        if own is None or other is None:
            return None
        return round(own / other if self.at_most else other / own, 4)


_CPU, _CUDA = ("cpu", (1000, 100, 8)), ("cuda", (4000, 128, 8))
_BOTH = ("", GRAPH)
MARKS = (
    Mark(*_CPU, f"{OURS} ÷ {TOKENS}", 2.5, OURS, TOKENS, (TOKENS,)),
    Mark(*_CPU, f"{CRF} ÷ {TOKENS}", 8.0, CRF, TOKENS, (TOKENS,)),
    Mark(*_CPU, f"pytorch-crf ÷ {OURS}", 100.0, OURS, "pytorch-crf", PEERS, at_most=False),
    Mark(*_CUDA, f"{OURS} ÷ {TOKENS}", 4.0, OURS, TOKENS, (TOKENS,), modes=_BOTH),
    Mark(*_CUDA, f"{OURS}, GiB", 0.5, OURS, modes=_BOTH, key="peak_mib", unit=1024.0),
    Mark(*_CUDA, f"{CRF}, ms", 15.0, CRF, modes=(GRAPH,)),
    Mark(*_CUDA, f"broadcast CRF ÷ {OURS}", 150.0, OURS, "broadcast CRF", PEERS, at_most=False, modes=_BOTH),
)


def judge(cases: Iterable[Mapping[str, Any]], device: str) -> list[dict[str, object]]:
    """The verdicts on the sizes that were run."""
    by_size = {tuple(case["size"]): {row["name"]: row for row in case["steps"]} for case in cases}
    here = [mark for mark in MARKS if mark.device == device and mark.size in by_size]
    return [verdict for mark in here for verdict in mark.judge(by_size[mark.size])]


def show_marks(marks: Iterable[Mapping[str, Any]]) -> None:
    """Prints the verdicts, if there are any."""
    table = Table(title="marks")
    for head in ("mark", "|Y|×L×B", "mode", "limit", "measured", "against the strongest", "met"):
        table.add_column(head)
    for mark in marks:
        figures = ["–" if mark[key] is None else f"{mark[key]:.2f}" for key in ("measured", "against_strongest")]
        verdict = {None: "not measured", True: "yes", False: "no"}[mark["met"]]
        table.add_row(mark["mark"], "×".join(map(str, mark["size"])), mark["mode"], mark["limit"], *figures, verdict)
    if table.row_count:
        Console().print(table)
