"""Judges the paper's claims and our own targets from the table of `noise`."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from linearcore_paper.experiments.noise.methods import METHODS
from linearcore_paper.experiments.noise.table import PAPER, PAPER_RATES, Column, Row, find_row
from linearcore_paper.runner import Claim, Settings, Verdict, verdict

#: Our targets: test accuracy at 40 %, and the largest allowed gap to the best loss, and to CE on clean labels.
MARK, CLOSE = 89.0, 0.5
#: Largest gap of accuracies that "track almost identically"; in the paper they differ by 0.03 to 0.07.
SAME = 0.5
#: Noise rate of the tuning runs and of most comparisons.
MIDDLE = 0.4
#: The method of our own claims.
PRESET = "robust"
_NO_PAPER = "not in the paper"
_NOT_RUN = "not run: only with --scale paper"


def judge_claims(rows: Sequence[Row], choices: Sequence[Mapping[str, Any]], settings: Settings) -> list[Claim]:
    """Returns all claims; at smoke scale none is judged."""
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
        _close_to_best(judge),
        _target(judge),
        _clean(judge),
        _detection(judge),
    ]


class _Judge:
    """Looks up values in the rows. A failed run has accuracy 0."""

    def __init__(self, rows: Sequence[Row], settings: Settings) -> None:
        self.rows, self.settings = rows, settings
        self.methods = list(dict.fromkeys(row.method for row in rows))
        self.columns = list(dict.fromkeys(row.column for row in rows))

    @property
    def noisy_rates(self) -> list[float]:
        """Rates of instance-dependent noise above 0."""
        return [column.rate for column in self.columns if column.law == "instance" and column.rate > 0]

    def has(self, *methods: str) -> bool:
        return all(method in self.methods for method in methods)

    def value(self, method: str, law: str, rate: float) -> float:
        row = find_row(self.rows, method, law, rate)
        return 0.0 if row is None or row.mean is None else row.mean

    def gap(self, method: str, other: str, rate: float) -> float:
        """Returns the difference over the seeds that both have, and therefore with the same wrong labels."""
        row, other_row = (find_row(self.rows, key, "instance", rate) for key in (method, other))
        return 0.0 if row is None or other_row is None else row.mean_with(other_row.seeds) - other_row.mean_with(row.seeds)

    def best(self, column: Column) -> str:
        return max(self.methods, key=lambda method: self.value(method, column.law, column.rate))

    def verdict(self, holds: bool, correction: str | None = None) -> Verdict:
        return verdict(holds, correction) if self.settings.is_paper else "not judged"

    def describe(self, rate: float, *methods: str) -> str:
        return ", ".join(self._each(rate, methods, "instance"))

    def describe_all(self, rate: float, law: str = "instance") -> str:
        # Semicolons, since some labels contain a comma.
        return "; ".join(self._each(rate, self.methods, law))

    def _each(self, rate: float, methods: Sequence[str], law: str) -> list[str]:
        return [f"{METHODS[key].label} {_accuracy(find_row(self.rows, key, law, rate))}" for key in methods if self.has(key)]


def _above(judge: _Judge, baseline: str, claim_text: str, note: str = "") -> Claim:
    """Compares the paper's linear core with a baseline at every rate."""
    kind = baseline.partition("-")[0]
    if not judge.has(baseline):
        return Claim(claim_text, _paper_values(kind, "lc"), _NOT_RUN, "not run")
    lost = [
        rate for rate in judge.noisy_rates if judge.value("lc", "instance", rate) <= judge.value(baseline, "instance", rate)
    ]
    text = "; ".join(f"{_percent(rate)}: {judge.describe(rate, baseline, 'lc')}" for rate in judge.noisy_rates)
    return Claim(
        claim=claim_text,
        paper=_paper_values(kind, "lc"),
        ours=text + note,
        verdict=judge.verdict(not lost),
        correction=_reason(kind, lost) if lost and judge.settings.is_paper else None,
    )


def _reason(kind: str, lost: Sequence[float]) -> str | None:
    """Returns the correction that explains why a baseline is better at some rates."""
    if kind == "gce":
        # Our GCE is tuned, including scale and weight decay.
        return "i"
    # Above one half the most likely label of an image can be wrong.
    return "h" if min(lost) > 0.5 else None


def _tuning(choices: Sequence[Mapping[str, Any]]) -> str:
    """Describes how GCE was tuned."""
    chosen = next((choice["tried"][choice["chosen"]] for choice in choices if choice["row"] == "gce-tuned"), None)
    if chosen is None:
        return ""
    return (
        f". One configuration for all rates (q = {chosen['options']['q']:g}), chosen at {_percent(MIDDLE)} on noisy "
        "held-out labels; the paper uses the best q at every rate"
    )


def _tracks(judge: _Judge) -> Claim:
    """Compares tuned GCE with cross-entropy."""
    claim_text = "Tuned GCE tracks cross-entropy almost identically at every rate"
    if not judge.has("gce-tuned"):
        return Claim(claim_text, _paper_values("ce", "gce"), _NOT_RUN, "not run")
    gaps = {key: [judge.gap("gce-tuned", key, rate) for rate in judge.noisy_rates] for key in ("ce", "ce-tuned")}
    holds = all(abs(gap) <= SAME for gap in gaps["ce"])
    texts = (f"{METHODS[key].label}: GCE " + ", ".join(f"{gap:+.2f}" for gap in some) for key, some in gaps.items())
    return Claim(
        claim=claim_text,
        paper=_paper_values("ce", "gce"),
        ours=f"at {_rates(judge.noisy_rates)}, against {'; against '.join(texts)}",
        verdict=judge.verdict(holds),
        correction=None if holds or not judge.settings.is_paper else "i",
    )


def _best_on_average(judge: _Judge) -> Claim:
    means = {key: statistics.mean(judge.value(key, "instance", rate) for rate in judge.noisy_rates) for key in judge.methods}
    ranked = sorted(means, key=lambda key: -means[key])
    return Claim(
        claim="The robust loss has the best mean over all noise rates (ours)",
        paper=_NO_PAPER,
        ours=f"mean over {_rates(judge.noisy_rates)}: "
        + "; ".join(f"{METHODS[key].label} {means[key]:.2f}" for key in ranked),
        verdict=judge.verdict(ranked[0] == PRESET),
    )


def _close_to_best(judge: _Judge) -> Claim:
    texts, gaps = [], []
    for column in judge.columns:
        best = judge.best(column)
        gaps.append(judge.value(best, column.law, column.rate) - judge.value(PRESET, column.law, column.rate))
        texts.append(f"{column.words}: " + ("the best" if gaps[-1] <= 0 else f"{gaps[-1]:.2f} below {METHODS[best].label}"))
    return Claim(
        claim=f"The robust loss is never more than {CLOSE:g} points below the best loss (ours)",
        paper=_NO_PAPER,
        ours="; ".join(texts),
        verdict=judge.verdict(max(gaps) <= CLOSE),
    )


def _target(judge: _Judge) -> Claim:
    return Claim(
        claim=f"The robust loss reaches {MARK:g} % test accuracy with {_percent(MIDDLE)} wrong labels (ours)",
        paper=_NO_PAPER,
        ours=judge.describe_all(MIDDLE),
        verdict=judge.verdict(judge.value(PRESET, "instance", MIDDLE) >= MARK),
    )


def _clean(judge: _Judge) -> Claim:
    """Compares with the better of the two cross-entropy rows on clean labels."""
    baseline = max(judge.value(key, "instance", 0.0) for key in ("ce", "ce-tuned") if judge.has(key))
    return Claim(
        claim=f"With clean labels the robust loss is within {CLOSE:g} points of cross-entropy (ours)",
        paper=_NO_PAPER,
        ours=judge.describe_all(0.0),
        verdict=judge.verdict(judge.value(PRESET, "instance", 0.0) >= baseline - CLOSE),
    )


def _detection(judge: _Judge) -> Claim:
    """Compares how well wrong training labels are detected."""
    areas, texts = {}, []
    for key in judge.methods:
        row = find_row(judge.rows, key, "instance", MIDDLE)
        by_margin, by_loss = (None if row is None else row.mean_of(name) for name in ("auc_margin", "auc_loss"))
        areas[key] = max(by_margin or 0.0, by_loss or 0.0)
        texts.append(f"{METHODS[key].label} {_area(by_margin)} by margin and {_area(by_loss)} by loss")
    baselines = [areas[key] for key in ("ce", "ce-tuned") if judge.has(key)]
    return Claim(
        claim="After training, the robust loss detects wrong labels better than cross-entropy (ours)",
        paper=_NO_PAPER,
        ours=f"area under the ROC curve at {_percent(MIDDLE)}: {'; '.join(texts)}",
        verdict=judge.verdict(areas[PRESET] > max(baselines)),
    )


def _paper_values(*kinds: str) -> str:
    """Formats the paper's Table 2."""
    rates = range(len(PAPER_RATES))
    return "; ".join(
        f"{_percent(PAPER_RATES[index])}: " + ", ".join(f"{kind.upper()} {PAPER[kind][index]:.2f}" for kind in kinds)
        for index in rates
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
    """Describes the figure in words."""
    judge = _Judge(rows, Settings())
    texts = [f"{column.words}: {judge.describe_all(column.rate, column.law)}." for column in judge.columns]
    return (
        "Test accuracy after the last epoch against the rate of wrong training labels, one line per method. Hollow markers "
        f"are the paper's numbers for CE, GCE and LC. {' '.join(texts)}"
    )
