"""Judges the paper's claims and our own targets from the table of `tagging`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from linearcore_paper.experiments.tagging.methods import METHODS
from linearcore_paper.experiments.tagging.table import OURS, PAPER, Row, best_on_dev, by_method, margin, ratio
from linearcore_paper.experiments.tagging.text import SOURCES
from linearcore_paper.experiments.tagging.training import ENCODINGS, TARGET
from linearcore_paper.runner import Claim, Settings, Verdict, verdict

#: Our targets: speed-up over a broadcast CRF, and epoch time divided by that of token cross-entropy.
FASTER, EPOCH = 15.0, 1.25
#: Linear cores that use all candidates of a position.
LOCAL = ("lc", "lc-rank")
#: The correction about CRFs: most of their time depends on the implementation.
IMPLEMENTATION = "n"
_NOT_RUN = "not run: only with --scale paper"
#: Claims that are always in the report, and judged if their results exist.
_REAL_TAGS = Claim(
    claim="With thousands of real tags the linear core is more accurate than token cross-entropy",
    paper="expected for morphologically rich languages, not measured",
    ours="",
    verdict="not run",
)
_BATCHES = Claim(
    claim="A CRF requires small batches, a linear core does not",
    paper="batch 8 because of the CRF, whose graph stores 4000 × 4000 transitions for every position",
    ours="",
    verdict="not run",
    correction=IMPLEMENTATION,
)


def judge_claims(rows: Sequence[Row], memory: dict[str, Any], settings: Settings) -> list[Claim]:
    """Returns all claims; at smoke scale none is judged."""
    combinations = list(dict.fromkeys((row.source, row.encoding) for row in rows))
    claims = [_speed(rows, kind, combinations, settings) for kind in PAPER]
    claims += [_accuracy(rows, combinations, settings), _epoch(rows, combinations, settings)]
    has_latin = any(source == "latin" for source, _ in combinations)
    claims.append(_latin(by_method(rows, "latin", "bilstm-adam")) if has_latin else replace(_REAL_TAGS, ours=_NOT_RUN))
    claims.append(_memory(memory) if memory else replace(_BATCHES, ours=_NOT_RUN if not settings.is_paper else "not run"))
    return claims


def _judged(holds: bool, settings: Settings, correction: str | None = None) -> Verdict:
    return verdict(holds, correction) if settings.is_paper else "not judged"


def _speed(rows: Sequence[Row], kind: str, combinations: Sequence[tuple[str, str]], settings: Settings) -> Claim:
    """Compares the time to the target with both CRFs, for one kind of encoder."""
    cases = [(source, encoding) for source, encoding in combinations if encoding.startswith(kind) and source != "latin"]
    texts, factors, chains = [], [], []
    for source, encoding in cases:
        table = by_method(rows, source, encoding)
        best = min((key for key in OURS if table[key].seconds), key=lambda key: _mean(table[key]), default=None)
        if best is None:
            texts.append(f"{_where(source, encoding)}: no linear core reaches it with every seed")
            factors.append(0.0)
            continue
        factor = ratio(table["broadcast"], table[best])
        # There is no factor if the CRF does not reach the target or does not fit into memory.
        factors += [] if factor is None else [factor]
        others = ", ".join(f"{METHODS[key].label} {_seconds(table[key])}" for key in table if key != best)
        chain = ratio(table["crf"], table[best])
        chains += [] if chain is None else [chain]
        texts.append(
            f"{_where(source, encoding)}: {METHODS[best].label} {_seconds(table[best])}, "
            f"{_against(table['broadcast'], factor)} and {_against(table['crf'], chain)} ({others})"
        )
    paper = PAPER[kind]
    missing = "not run: the pre-trained model is not installed" if settings.is_paper else _NOT_RUN
    return Claim(
        claim=f"With 4000 tags and a {'BERT' if kind == 'bert' else 'BiLSTM'} the linear core reaches {TARGET:g} % about "
        f"{paper['ratio']:g} times as fast as a CRF",
        paper=f"{paper['crf']:g} s against {paper['lc']:g} s",
        ours=f"{_times(factors, chains)}{'; '.join(texts)}" if texts else missing,
        verdict=_judged(min(factors) >= FASTER, settings, IMPLEMENTATION)
        if factors
        else "not judged"
        if texts
        else "not run",
        correction=IMPLEMENTATION,
    )


def _times(broadcast: Sequence[float], chain: Sequence[float]) -> str:
    """Summarizes the factors of the fastest linear core of each case."""
    comparisons = [(words, factors) for words, factors in (("the broadcast CRF", broadcast), ("ChainCRF", chain)) if factors]
    texts = " and ".join(f"{_range(factors)} times as fast as {words}" for words, factors in comparisons)
    return f"the fastest linear core of each case is {texts}. " if texts else ""


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _accuracy(rows: Sequence[Row], combinations: Sequence[tuple[str, str]], settings: Settings) -> Claim:
    """Compares the final accuracy with that of a CRF."""
    texts, holds, worse = [], [], []
    for source, encoding in combinations:
        table = by_method(rows, source, encoding)
        ours = best_on_dev(table)
        if ours is None or ours.accuracy is None or table["crf"].accuracy is None:
            continue
        gap, chance = table["crf"].accuracy - ours.accuracy, margin(table["crf"], ours)
        holds.append(gap <= chance)
        worse += [] if holds[-1] else [f"{_where(source, encoding)} ({gap:.2f} ± {chance:.2f} points worse)"]
        texts.append(
            f"{_where(source, encoding)}: "
            + ", ".join(f"{METHODS[key].label} {_percent(row)}" for key, row in table.items() if key != "broadcast")
        )
    short = f"the linear core that dev chose is as accurate or more in {sum(holds)} of {len(holds)}"
    short += f", but not on {'; '.join(worse)}" if worse else ""
    return Claim(
        claim="The final accuracy of the linear core is not worse than that of a CRF",
        paper=f"both reach {TARGET:g} %; final accuracies are not given",
        ours=f"{short}. {'; '.join(texts)}",
        verdict=_judged(all(holds), settings) if holds else "not judged",
    )


def _epoch(rows: Sequence[Row], combinations: Sequence[tuple[str, str]], settings: Settings) -> Claim:
    """Compares the time per epoch with that of token cross-entropy."""
    texts: list[str] = []
    factors: dict[str, list[float]] = {key: [] for key in LOCAL}
    eager: dict[str, list[float]] = {key: [] for key in LOCAL}
    for source, encoding in combinations:
        table = by_method(rows, source, encoding)
        base, eager_base = table["ce"].step_seconds, table["ce"].plain_seconds
        step_seconds = {key: value for key in (*OURS, "crf") if (value := table[key].step_seconds) is not None}
        if base is None or eager_base is None:
            continue
        for key in LOCAL:
            # A step that does not fit into memory has infinite time.
            factors[key].append(step_seconds.get(key, float("inf")) / base)
            eager[key].append((table[key].plain_seconds or float("inf")) / eager_base)
        ratios = ", ".join(f"{METHODS[key].label} {value / base:.2f}" for key, value in step_seconds.items())
        texts.append(f"{_where(source, encoding)}: {ratios} (cross-entropy {1e3 * base:.2f} ms per step)")
    most = {key: max(values) for key, values in factors.items() if values}
    short = ", ".join(
        f"{METHODS[key].label} at most {value:.2f}, and {max(eager[key]):.2f} if neither is compiled"
        for key, value in most.items()
    )
    return Claim(
        claim=f"A linear core over all candidates of every position takes at most {EPOCH:g} times the epoch time of "
        "token cross-entropy, both losses compiled (ours)",
        paper="not timed",
        ours=f"{short}. {'; '.join(texts)}",
        # One linear core for all data sets and encoders, not the fastest one of each case.
        verdict=_judged(min(most.values()) <= EPOCH, settings) if most else "not judged",
    )


def _latin(table: dict[str, Row]) -> Claim:
    """Checks whether the gain on Latin is statistically significant."""
    ours, other = best_on_dev(table), table["ce"]
    texts = ", ".join(f"{METHODS[key].label} {_percent(row)}" for key, row in table.items() if key != "broadcast")
    gain = None
    if ours is not None and ours.accuracy is not None and other.accuracy is not None:
        gain = ours.accuracy - other.accuracy - margin(ours, other)
    return replace(
        _REAL_TAGS,
        ours=f"Latin, {other.tags:,} tags: {texts}",
        verdict="not judged" if gain is None else verdict(gain > 0),
    )


def _memory(memory: dict[str, Any]) -> Claim:
    """Compares with the better of the two CRFs."""
    known = {key: result["sequences"] for key, result in memory.items() if "sequences" in result}
    if not {"lc-rank", "broadcast", "crf"} <= known.keys():
        failed = "; ".join(
            f"{METHODS[key].label}: {result['failed']}" for key, result in memory.items() if "failed" in result
        )
        return replace(_BATCHES, ours=failed, verdict="not judged")
    # Keys of a record are sorted as strings.
    sizes = sorted(known["crf"], key=int)
    texts = [
        f"{METHODS[key].label} " + ", ".join(f"{fits[size]:,} in {size} GB" for size in sizes) for key, fits in known.items()
    ]
    ours, *crfs = (known[key]["40"] for key in ("lc-rank", "broadcast", "crf"))
    words = memory["crf"]["words"]
    return replace(
        _BATCHES,
        ours=f"largest batch of sequences of {words} words, one training step, 4000 tags: {'; '.join(texts)}",
        verdict=verdict(ours > FASTER * max(1, *crfs), IMPLEMENTATION),
    )


def _where(source: str, encoding: str) -> str:
    return f"{SOURCES[source].label.partition(',')[0]}, {ENCODINGS[encoding].label}"


def _mean(row: Row) -> float:
    seconds = row.seconds or []
    return sum(seconds) / len(seconds) if seconds else float("inf")


def _seconds(row: Row) -> str:
    if row.step_seconds is None:
        return "does not fit"
    return row.arrivals if row.seconds is None else f"{_mean(row):.3g} s"


def _against(row: Row, factor: float | None) -> str:
    label = METHODS[row.method].label
    if factor is None:
        return f"against a {label} that {'does not fit' if row.step_seconds is None else 'does not always reach it'}"
    return f"{factor:.3g} times as fast as the {label}"


def _percent(row: Row) -> str:
    if row.accuracy is None:
        return "failed"
    return f"{row.accuracy:.2f}" + ("" if row.spread is None else f" ± {row.spread:.2f}")


def alt(rows: Sequence[Row]) -> str:
    """Describes the figure in words."""
    texts = []
    for source, encoding in dict.fromkeys((row.source, row.encoding) for row in rows):
        table = by_method(rows, source, encoding)
        ends = ", ".join(f"{METHODS[key].label} {_seconds(row)}" for key, row in table.items())
        texts.append(f"{_where(source, encoding)}, seconds to {TARGET:g} %: {ends}.")
    head = "Accuracy on dev against seconds of training on a log scale, one panel for each data set and encoder."
    return " ".join([head, *texts])
