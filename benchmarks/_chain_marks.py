"""Performance targets for chain.py, and whether they are met."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

OURS, CRF, TOKENS = "LC logodds", "ChainCRF", "token cross-entropy"
LOW_RANK = "LC logodds, rank 64 + unary"
PEERS = ("pytorch-crf", "broadcast CRF")
GRAPH = ", graph"


@dataclass(frozen=True)
class Mark:
    """A target for one contender at one size on one device.

    Attributes:
        device, size: device and size (|Y|, L, B).
        text: name of the measured value.
        limit: the target value, an upper bound if `at_most`, else a lower bound.
        name: the contender.
        against: contender in the denominator of the ratio, or in its numerator if not `at_most`. None: no ratio.
        baselines: contenders of which the fastest is also compared.
        modes: eager, or replayed as a CUDA graph; both sides of a ratio have the same mode.
        key, unit: key of the value in a row, and the divisor that converts it to the unit of the limit.
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
        """Returns one verdict per mode; values are None if a contender was not measured."""
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


_CPU, _FEW, _MANY = ("cpu", (1000, 100, 8)), ("cuda", (50, 128, 8)), ("cuda", (4000, 128, 8))
_BOTH = ("", GRAPH)
MARKS = (
    Mark(*_CPU, f"{OURS} ÷ {TOKENS}", 2.5, OURS, TOKENS, (TOKENS,)),
    Mark(*_CPU, f"{CRF} ÷ {TOKENS}", 8.0, CRF, TOKENS, (TOKENS,)),
    Mark(*_CPU, f"pytorch-crf ÷ {OURS}", 100.0, OURS, "pytorch-crf", PEERS, at_most=False),
    *(Mark(*_FEW, f"{name} ÷ {TOKENS}", 1.5, name, TOKENS, (TOKENS,)) for name in (OURS, "LC pairwise", "LC centered")),
    Mark(*_FEW, f"{CRF}, ms", 2.0, CRF),
    *(Mark(*_MANY, f"{name} ÷ {TOKENS}", 2.0, name, TOKENS, (TOKENS,)) for name in (OURS, LOW_RANK)),
    Mark(*_MANY, f"{OURS}, GiB", 0.5, OURS, modes=_BOTH, key="peak_mib", unit=1024.0),
    Mark(*_MANY, f"{CRF}, ms", 10.0, CRF, modes=_BOTH),
    Mark(*_MANY, f"broadcast CRF ÷ {OURS}", 150.0, OURS, "broadcast CRF", PEERS, at_most=False, modes=_BOTH),
)


def judge(cases: Iterable[Mapping[str, Any]], device: str) -> list[dict[str, object]]:
    """Returns the verdicts for the measured sizes."""
    by_size = {tuple(case["size"]): {row["name"]: row for row in case["steps"]} for case in cases}
    marks = [mark for mark in MARKS if mark.device == device and mark.size in by_size]
    return [verdict for mark in marks for verdict in mark.judge(by_size[mark.size])]


def show_marks(marks: Iterable[Mapping[str, Any]]) -> None:
    """Prints the verdicts, if any."""
    table = Table(title="targets")
    for head in ("target", "|Y|×L×B", "mode", "limit", "measured", "against the fastest baseline", "met"):
        table.add_column(head)
    for mark in marks:
        figures = ["–" if mark[key] is None else f"{mark[key]:.2f}" for key in ("measured", "against_strongest")]
        verdict = {None: "not measured", True: "yes", False: "no"}[mark["met"]]
        table.add_row(mark["mark"], "×".join(map(str, mark["size"])), mark["mode"], mark["limit"], *figures, verdict)
    if table.row_count:
        Console().print(table)
