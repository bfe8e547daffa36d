"""A self-contained HTML page with the most suspicious rows."""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from linearcore._checks import complaint
from linearcore.runtime import write_atomically

if TYPE_CHECKING:
    from linearcore.cleaning._findings import Findings

#: Longest text of a cell, in characters.
_LONGEST = 600
#: Maximum number of input columns on the page; a table may have hundreds.
_MAX_COLUMNS = 12

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1b1f24 }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 0.9rem } th { text-align: left; color: #57606a; font-weight: 600 }
th, td { padding: 0.35rem 0.8rem 0.35rem 0; border-bottom: 1px solid #d8dee4; vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
td.text { min-width: 20rem; max-width: 40rem; overflow-wrap: anywhere }
.given { color: #a40e26 } .suggested { color: #116329 } .beyond td { color: #8c959f }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3 } th, td { border-color: #30363d }
th { color: #9198a1 } .given { color: #ff8182 } .suggested { color: #4ac26b } .beyond td { color: #6e7681 } }
"""


def write_page(findings: "Findings", path: Path, count: int) -> None:
    """Writes the page.

    Raises:
        OSError: if the file cannot be written.
        ValueError: if `count` is not a positive integer.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(complaint("count", "be a positive integer", repr(count), "pass 100 for example"))
    write_atomically(path, _page(findings, count))


def _page(findings: "Findings", count: int) -> str:
    name, estimate = escape(findings.table.name), findings.estimate
    share = 100 / max(1, estimate.rows)
    sentences = [
        f"{estimate.rows:,} rows, {len(findings.encoded.classes)} labels. Model: {findings.out_of_fold.model}, trained on "
        f"other rows than those it judges; it agrees with {100 * findings.agreement:.1f} % of the labels.",
        f"<b>About {_count(estimate.count, 'label is', 'labels are')} wrong ({estimate.count * share:.1f} %)</b>, "
        f"95 % interval {estimate.low:,} to {estimate.high:,}, if labels of easy rows are wrong as often as those "
        "of difficult rows. "
        f"The model prefers another label in {_count(estimate.disagreements, 'row', 'rows')}, its own errors included.",
        "A person decides: nothing was relabelled. The greater the suspicion, the more the model disagrees with the label.",
        "Rows ranked after the estimated number of wrong labels are grey.",
    ]
    if findings.repeats.groups:
        sentences.append(
            f"{findings.repeats.num_extra:,} rows repeat the features of an earlier row; "
            f"{len(findings.conflicts):,} groups of such rows have different labels."
        )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Suspicious labels of {name}</title><style>{_STYLE}</style></head><body>",
            f"<h1>Suspicious labels of {name}</h1>",
            *(f"<p>{sentence}</p>" for sentence in sentences),
            "<h2>Classes</h2>",
            _classes(findings),
            f"<h2>The {min(count, estimate.rows):,} most suspicious rows</h2>",
            *_columns_left_out(findings),
            _rows(findings, count),
            "</body></html>\n",
        ]
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _classes(findings: "Findings") -> str:
    heads = [
        ("label", ""),
        ("rows", "number"),
        ("suspicious", "number"),
        ("model disagrees", "number"),
        ("suggested most often", ""),
    ]
    rows = []
    for item in sorted(findings.by_class(), key=lambda item: -item.suspicious):
        most = "–" if item.suggested_label is None else str(item.suggested_label)
        texts = [str(item.label), f"{item.rows:,}", f"{item.suspicious:,}", f"{item.disagreements:,}", most]
        rows.append(_row("td", zip(texts, (kind for _, kind in heads), strict=True)))
    return _table(heads, rows)


def _columns_left_out(findings: "Findings") -> list[str]:
    columns = sum(column != findings.encoded.label for column in findings.table.columns)
    return [f"<p>{_MAX_COLUMNS} of {columns:,} columns are on this page.</p>"] if columns > _MAX_COLUMNS else []


def _rows(findings: "Findings", count: int) -> str:
    table, encoded = findings.table, findings.encoded
    columns = [column for column in table.columns if column != encoded.label]
    columns.sort(key=lambda column: column not in encoded.texts)
    columns = columns[:_MAX_COLUMNS]
    values = {column: table.original(column) for column in columns}
    kinds = {
        column: "text" if column in encoded.texts else "number" if column in encoded.numbers else "" for column in columns
    }
    heads = [("rank", "number"), (table.row_noun, ""), ("given", ""), ("suggested", ""), ("suspicion", "number")]
    heads += [(column, kinds[column]) for column in columns]
    rows = []
    order = findings.suspects.order[:count].tolist()
    for row, suspect in zip(order, findings.most_suspicious(count), strict=True):
        cells = [
            (f"{suspect.rank}", "number"),
            (str(suspect.row), ""),
            (str(suspect.given_label), "given"),
            (str(suspect.suggested_label), "suggested"),
            (f"{suspect.suspicion:.2f}", "number"),
        ]
        cells += [(_text(values[column][row]), kinds[column]) for column in columns]
        rows.append(_row("td", cells, "" if suspect.rank <= findings.estimate.count else "beyond"))
    return _table(heads, rows)


def _text(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _table(heads: Iterable[tuple[str, str]], rows: list[str]) -> str:
    return f'<div class="wide"><table><thead>{_row("th", heads)}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(tag: str, cells: Iterable[tuple[str, str]], kind: str = "") -> str:
    opened = f'<tr class="{kind}">' if kind else "<tr>"
    return opened + "".join(f'<{tag} class="{style}">{escape(text)}</{tag}>' for text, style in cells) + "</tr>\n"
