"""What the generated pages share: where the records lie, Markdown tables, and which command made the figures."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left and the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def source(record: dict) -> str:
    """Which command made the figures, and on what."""
    where = record["environment"]
    return f"`{record['command']}`, torch {where['torch']}, {where['cpu']}."


def figure(value: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else f"{value:{form}}"
