"""The report of `linearcore suspects`, as text and as JSON."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linearcore.cleaning import MEASURES, Findings

if TYPE_CHECKING:
    from rich.table import Table as RichTable

#: The report warns if the model avoids less than this fraction of the errors of always predicting the majority label.
MIN_ERROR_REDUCTION = 0.1


def to_json(findings: Findings, settings: dict[str, object], top: int) -> dict[str, object]:
    """Returns the content of the report as JSON values."""
    noun = findings.table.row_noun
    name = findings.table.row_name
    groups = findings.conflicts
    network = findings.out_of_fold.network
    return {
        "rows": len(findings.table),
        "features": findings.encoded.features.shape[1],
        "missing_values": findings.encoded.num_missing,
        "classes": list(findings.encoded.classes),
        "model": findings.out_of_fold.model,
        "agreement": round(findings.agreement, 6),
        "epoch": None if network is None else network.epoch,
        "most_frequent": round(findings.majority[1], 6),
        "estimate": asdict(findings.estimate),
        "threshold": findings.suspects.threshold if findings.estimate.count else None,
        "by_class": [asdict(summary) for summary in findings.by_class()],
        "repeated_rows": findings.repeats.num_extra,
        "conflicting_groups": [[name(row) for row in group] for group in groups],
        "singleton_labels": [{"label": label, noun: row} for label, row in findings.singleton_labels],
        "settings": settings,
        "suspects": [_renamed(asdict(suspect), noun) for suspect in findings.most_suspicious(top)],
    }


def _renamed(suspect: dict[str, Any], noun: str) -> dict[str, Any]:
    return {noun if key == "row" else key: value for key, value in suspect.items()}


def print_report(findings: Findings, top: int, measure: str, out: Path | None, html: Path | None) -> None:
    """Prints the table of the most suspicious rows, with an explanation."""
    from rich.console import Console

    lines_after = [
        *([f"suspicion: {MEASURES[measure]}."] if top else []),
        *_estimate_lines(findings),
        *_warnings(findings),
        "Pass --out FILE to write all rows with their rank." if out is None else f"All rows with rank: {out}.",
        *([] if html is None else [f"Page: {html}."]),
    ]
    tables = [_suspects_table(findings, top)] if top else []
    console = Console(highlight=False)
    for part in (*_input_lines(findings), *tables, *_class_tables(findings), *lines_after):
        console.print(part, markup=False, soft_wrap=isinstance(part, str))


def _input_lines(findings: Findings) -> list[str]:
    encoded, scores = findings.encoded, findings.out_of_fold
    counts = [(encoded.numbers, "numeric"), (encoded.categories, "categorical"), (encoded.texts, "text")]
    columns = ", ".join(_format_count(len(names), f"{kind} column") for names, kind in counts if names)
    missing = f" ({_format_count(encoded.num_missing, 'missing number')})" if encoded.num_missing else ""
    network = scores.network
    epoch = "" if network is None else f"; best epoch of the network: {network.epoch} of {len(network.agreement)}"
    return [
        f"{len(findings.table):,} rows, {len(encoded.classes)} labels; features from {columns}{missing}.",
        f"Models ({scores.model}) that were not trained on a row agree with {_format_percent(findings.agreement)} of the "
        f"labels{epoch}.",
    ]


def _suspects_table(findings: Findings, top: int) -> "RichTable":
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = len(findings.table)
    table = RichTable(title=f"The {min(top, rows)} most suspicious of {rows:,} rows")
    for head in (findings.table.row_noun, "given", "suggested", "suspicion"):
        table.add_column(head, justify="left" if head in ("given", "suggested") else "right", no_wrap=head != "given")
    for suspect in findings.most_suspicious(top):
        labels = Text(str(suspect.given_label)), Text(str(suspect.suggested_label))
        table.add_row(f"{suspect.row}", *labels, f"{suspect.suspicion:.2f}")
    return table


def _class_tables(findings: Findings) -> list["RichTable"]:
    """Returns a table of the ten classes with the most suspicious rows; none if there are none."""
    from rich.table import Table as RichTable
    from rich.text import Text

    found = sorted((item for item in findings.by_class() if item.suspicious), key=lambda item: -item.suspicious)
    if not found:
        return []
    table = RichTable(title="Suspicious labels by class")
    for head in ("given", "rows", "suspicious", "most often suggested"):
        table.add_column(head, justify="right" if head in ("rows", "suspicious") else "left")
    for item in found[:10]:
        most = "–" if item.suggested_label is None else str(item.suggested_label)
        table.add_row(Text(str(item.label)), f"{item.rows:,}", f"{item.suspicious:,}", Text(most))
    return [table]


def _estimate_lines(findings: Findings) -> list[str]:
    estimate = findings.estimate
    lines = [
        f"About {estimate.count:,} {'label is' if estimate.count == 1 else 'labels are'} wrong "
        f"({_format_percent(estimate.count / estimate.rows)}; 95 % interval "
        f"{estimate.low:,} to {estimate.high:,}), if labels of easy rows are wrong as often as those of difficult rows.",
        f"The models prefer another label in {_format_count(estimate.disagreements, 'row')} "
        f"({_format_percent(estimate.disagreements / estimate.rows)}), their own errors included.",
    ]
    if estimate.count:
        lines.append(
            f"Check the first {estimate.count:,} rows (suspicion of at least {findings.suspects.threshold:.2f}), and go on "
            "while most labels are wrong."
        )
    return lines


def _warnings(findings: Findings) -> list[str]:
    lines, network = [], findings.out_of_fold.network
    if findings.out_of_fold.model == "network" and network is not None and network.epoch == len(network.agreement):
        lines.append(f"The last epoch was the best: --epochs {2 * network.epoch} may find more.")
    label, frequency = findings.majority
    if findings.agreement < frequency + MIN_ERROR_REDUCTION * (1 - frequency):
        lines.append(
            f"Warning: always predicting {str(label)!r} would agree with {_format_percent(frequency)}. "
            "The other columns predict the label too poorly for a useful ranking."
        )
    if findings.repeats.groups:
        lines.append(f"Duplicates: {_format_count(findings.repeats.num_extra, 'row')} with the features of an earlier row.")
    noun, name = findings.table.row_noun, findings.table.row_name
    if groups := findings.conflicts:
        examples = "; ".join(", ".join(str(name(row)) for row in group[:5]) for group in groups[:5])
        more = f" and {len(groups) - 5:,} more" if len(groups) > 5 else ""
        lines.append(f"Duplicates with different labels, {noun}s: {examples}{more}.")
    if singletons := findings.singleton_labels:
        names = ", ".join(f"{label!r} in {noun} {row}" for label, row in singletons[:5])
        more = f" and {len(singletons) - 5} more" if len(singletons) > 5 else ""
        lines.append(f"Labels that occur only once (possibly typos): {names}{more}.")
    return lines


def _format_percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
