"""What the generated pages share: where the records lie, Markdown tables, and which command made the figures."""

import textwrap
from pathlib import Path

from linearcore.runtime import has_uncommitted_changes

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
EXPERIMENTS = ROOT / "paper" / "src" / "linearcore_paper" / "experiments"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left and the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def source(record: dict) -> str:
    """Which command made the figures, and on what."""
    where = record["environment"]
    # What the environment names is there, and was not always used.
    machine = where["device"] if str(record["settings"].get("device", "cpu")).startswith("cuda") else where["cpu"]
    return f"`{record['command']}`, torch {where['torch']}, {machine}.{mark(record)}"


def mark(record: dict) -> str:
    """A sentence about records of code that was not committed; nothing where all was."""
    runs = record["settings"].get("runs_with_uncommitted_changes")
    if runs:
        return f" {runs} of the runs were made with uncommitted changes."
    return " Made with uncommitted changes." if has_uncommitted_changes(record["environment"]) else ""


def figure(value: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else f"{value:{form}}"


def wrapped(text: str, width: int = 125, **options: str) -> str:
    """A paragraph in lines as long as ours; a number and its % stay together."""
    kept = " ".join(text.split()).replace(" %", "\u00a0%")
    lines = textwrap.fill(kept, width, break_long_words=False, break_on_hyphens=False, **options)
    return lines.replace("\u00a0", " ")
