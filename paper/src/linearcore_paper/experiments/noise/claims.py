"""What the table of `noise` says about the paper's claims, and about our own marks."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from linearcore_paper.experiments.noise.methods import METHODS
from linearcore_paper.experiments.noise.table import PAPER, PAPER_RATES, Column, Row, at
from linearcore_paper.runner import Claim, Settings, Verdict, verdict

#: Our marks: test accuracy at 40 %, and how far our loss may lie below the best, and below CE on clean labels.
MARK, CLOSE = 89.0, 0.5
#: How close two accuracies are that "track almost identically": the paper's own differ by 0.03 to 0.07.
SAME = 0.5
#: Where most is looked at.
MIDDLE = 0.4
#: The method that claims of our own are about.
PRESET = "robust"
_NO_PAPER = "not in the paper"
_LATER = "not run: only with --scale paper"


def judge_claims(rows: Sequence[Row], choices: Sequence[Mapping[str, Any]], settings: Settings) -> list[Claim]:
    """All of them; without the paper's size none is judged."""
    judge = _Judge(rows, settings)
    return [
        _above(judge, "ce", "The linear core is more accurate than cross-entropy at every rate of wrong labels"),
        _above(
            judge,
            "gce-tuned",
            "The linear core is more accurate than tuned GCE at every rate of wrong labels",
            _tuning(choices),
        ),
        _tracks(judge),
        _best_on_average(judge),
        _never_far(judge),
        _mark(judge),
        _clean(judge),
        _finding(judge),
    ]


class _Judge:
    """The rows, and how they are read: a run that failed has an accuracy of 0."""

    def __init__(self, rows: Sequence[Row], settings: Settings) -> None:
        self.rows, self.settings = rows, settings
        self.methods = list(dict.fromkeys(row.method for row in rows))
        self.columns = list(dict.fromkeys(row.column for row in rows))

    @property
    def noisy_rates(self) -> list[float]:
        """Rates of instance-dependent noise, without 0."""
        return [column.rate for column in self.columns if column.law == "instance" and column.rate > 0]

    def has(self, *methods: str) -> bool:
        return all(method in self.methods for method in methods)

    def value(self, method: str, law: str, rate: float) -> float:
        row = at(self.rows, method, law, rate)
        return 0.0 if row is None or row.mean is None else row.mean

    def gap(self, method: str, other: str, rate: float) -> float:
        """With the seeds that both have, and so with the same wrong labels."""
        row, rival = (at(self.rows, key, "instance", rate) for key in (method, other))
        return 0.0 if row is None or rival is None else row.mean_with(rival.seeds) - rival.mean_with(row.seeds)

    def best(self, column: Column) -> str:
        return max(self.methods, key=lambda method: self.value(method, column.law, column.rate))

    def verdict(self, holds: bool, correction: str | None = None) -> Verdict:
        return verdict(holds, correction) if self.settings.is_paper else "not judged"

    def told(self, rate: float, *methods: str) -> str:
        return ", ".join(self._each(rate, methods, "instance"))

    def told_of_all(self, rate: float, law: str = "instance") -> str:
        # Some labels have a comma of their own.
        return "; ".join(self._each(rate, self.methods, law))

    def _each(self, rate: float, methods: Sequence[str], law: str) -> list[str]:
        return [f"{METHODS[key].label} {_accuracy(at(self.rows, key, law, rate))}" for key in methods if self.has(key)]


def _above(judge: _Judge, rival: str, words: str, note: str = "") -> Claim:
    """The paper's linear core against a rival, rate by rate."""
    kind = rival.partition("-")[0]
    if not judge.has(rival):
        return Claim(words, _papers(kind, "lc"), _LATER, "not run")
    lost = [
        rate for rate in judge.noisy_rates if judge.value("lc", "instance", rate) <= judge.value(rival, "instance", rate)
    ]
    told = "; ".join(f"{_percent(rate)}: {judge.told(rate, rival, 'lc')}" for rate in judge.noisy_rates)
    return Claim(
        claim=words,
        paper=_papers(kind, "lc"),
        ours=told + note,
        verdict=judge.verdict(not lost),
        correction=_reason(kind, lost) if lost and judge.settings.is_paper else None,
    )


def _reason(kind: str, lost: Sequence[float]) -> str | None:
    """The correction that has most to do with a rival that is ahead at some rates."""
    if kind == "gce":
        # It was tuned, in scale and weight decay as well.
        return "i"
    # Above one half the likeliest label of an image can be a wrong one.
    return "h" if min(lost) > 0.5 else None


def _tuning(choices: Sequence[Mapping[str, Any]]) -> str:
    """How GCE was tuned here."""
    chosen = next((choice["tried"][choice["chosen"]] for choice in choices if choice["row"] == "gce-tuned"), None)
    if chosen is None:
        return ""
    return (
        f". One configuration for all rates (q = {chosen['options']['q']:g}), chosen at {_percent(MIDDLE)} on noisy "
        "labels that were held out; the paper takes the best q at every rate"
    )


def _tracks(judge: _Judge) -> Claim:
    """Whether tuned GCE is but cross-entropy."""
    words = "Tuned GCE tracks cross-entropy almost identically at every rate"
    if not judge.has("gce-tuned"):
        return Claim(words, _papers("ce", "gce"), _LATER, "not run")
    gaps = {key: [judge.gap("gce-tuned", key, rate) for rate in judge.noisy_rates] for key in ("ce", "ce-tuned")}
    holds = all(abs(gap) <= SAME for gap in gaps["ce"])
    told = (f"{METHODS[key].label}: GCE " + ", ".join(f"{gap:+.2f}" for gap in some) for key, some in gaps.items())
    return Claim(
        claim=words,
        paper=_papers("ce", "gce"),
        ours=f"at {_rates(judge.noisy_rates)}, against {'; against '.join(told)}",
        verdict=judge.verdict(holds),
        correction=None if holds or not judge.settings.is_paper else "i",
    )


def _best_on_average(judge: _Judge) -> Claim:
    means = {key: statistics.mean(judge.value(key, "instance", rate) for rate in judge.noisy_rates) for key in judge.methods}
    ranked = sorted(means, key=lambda key: -means[key])
    return Claim(
        claim="The robust loss has the best mean over the rates of wrong labels (ours)",
        paper=_NO_PAPER,
        ours=f"mean over {_rates(judge.noisy_rates)}: "
        + "; ".join(f"{METHODS[key].label} {means[key]:.2f}" for key in ranked),
        verdict=judge.verdict(ranked[0] == PRESET),
    )


def _never_far(judge: _Judge) -> Claim:
    told, gaps = [], []
    for column in judge.columns:
        best = judge.best(column)
        gaps.append(judge.value(best, column.law, column.rate) - judge.value(PRESET, column.law, column.rate))
        told.append(
            f"{column.words}: " + ("it is the best" if gaps[-1] <= 0 else f"{gaps[-1]:.2f} below {METHODS[best].label}")
        )
    return Claim(
        claim=f"The robust loss is nowhere more than {CLOSE:g} points below the best (ours)",
        paper=_NO_PAPER,
        ours="; ".join(told),
        verdict=judge.verdict(max(gaps) <= CLOSE),
    )


def _mark(judge: _Judge) -> Claim:
    return Claim(
        claim=f"The robust loss reaches {MARK:g} % with {_percent(MIDDLE)} of wrong labels (ours)",
        paper=_NO_PAPER,
        ours=judge.told_of_all(MIDDLE),
        verdict=judge.verdict(judge.value(PRESET, "instance", MIDDLE) >= MARK),
    )


def _clean(judge: _Judge) -> Claim:
    """On clean labels the better of both cross-entropies counts."""
    rival = max(judge.value(key, "instance", 0.0) for key in ("ce", "ce-tuned") if judge.has(key))
    return Claim(
        claim=f"With clean labels the robust loss is within {CLOSE:g} points of cross-entropy (ours)",
        paper=_NO_PAPER,
        ours=judge.told_of_all(0.0),
        verdict=judge.verdict(judge.value(PRESET, "instance", 0.0) >= rival - CLOSE),
    )


def _finding(judge: _Judge) -> Claim:
    """Wrong labels among those that the network was trained on."""
    areas, told = {}, []
    for key in judge.methods:
        row = at(judge.rows, key, "instance", MIDDLE)
        by_margin, by_loss = (None if row is None else row.mean_of(name) for name in ("auc_margin", "auc_loss"))
        areas[key] = max(by_margin or 0.0, by_loss or 0.0)
        told.append(f"{METHODS[key].label} {_area(by_margin)} by margin and {_area(by_loss)} by loss")
    rivals = [areas[key] for key in ("ce", "ce-tuned") if judge.has(key)]
    return Claim(
        claim="After training, the robust loss tells wrong labels from right ones better than cross-entropy (ours)",
        paper=_NO_PAPER,
        ours=f"area under the curve at {_percent(MIDDLE)}: {'; '.join(told)}",
        verdict=judge.verdict(areas[PRESET] > max(rivals)),
    )


def _papers(*kinds: str) -> str:
    """The paper's Table 2."""
    rates = range(len(PAPER_RATES))
    return "; ".join(
        f"{_percent(PAPER_RATES[place])}: " + ", ".join(f"{kind.upper()} {PAPER[kind][place]:.2f}" for kind in kinds)
        for place in rates
    )


def _rates(rates: Sequence[float]) -> str:
    return ", ".join(_percent(rate) for rate in rates)


def _percent(rate: float) -> str:
    return f"{100 * rate:g} %"


def _accuracy(row: Row | None) -> str:
    if row is None or row.mean is None:
        return "failed" if row is not None else "not run"
    return f"{row.mean:.2f}" + ("" if row.spread is None else f" ± {row.spread:.2f}")


def _area(value: float | None) -> str:
    return "failed" if value is None else f"{value:.3f}"


def alt(rows: Sequence[Row]) -> str:
    """The figure in words."""
    judge = _Judge(rows, Settings())
    told = [f"{column.words}: {judge.told_of_all(column.rate, column.law)}." for column in judge.columns]
    return (
        "Test accuracy after the last epoch against the rate of wrong training labels, a line for each method, with the "
        f"paper's numbers for CE, GCE and LC as hollow marks. {' '.join(told)}"
    )
