"""Tables in the pages, and the results in the README, are those of the records; every record is listed."""

import importlib.util
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
assert _spec is not None and _spec.loader is not None
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_records(page: Path) -> None:
    text = page.read_text("utf-8")
    assert tables.filled(text) == text, "run `python docs/tables.py`"


def test_every_table_is_on_one_page() -> None:
    used = [block[1] for page in tables.PAGES for block in tables.BLOCK.findall(page.read_text("utf-8"))]
    assert sorted(used) == sorted(tables.TABLES)


def test_every_record_is_listed() -> None:
    page = (ROOT / "docs" / "measured.md").read_text("utf-8")
    names = [path.name for path in (ROOT / "benchmarks" / "results").iterdir()]
    assert not [name for name in names if f"benchmarks/results/{name})" not in page]


def test_results_in_the_readme_are_those_of_the_records() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = [re.sub("`.*?`", "", line) for line in readme.splitlines() if line.startswith("| **")]
    speed, tags, labels = (re.findall(r"\d+\.\d+|(?<![\d,])\d+(?= times)", row.partition("](")[0]) for row in rows)

    case = next(case for case in tables.read("chain_cpu")[0]["results"]["cases"] if case["size"][0] == 1000)
    ms = {step["name"]: step["median_ms"] for step in case["steps"]}
    ours = ms["LC logodds"]
    assert speed == [
        f"{ms['pytorch-crf'] / ours:.0f}",
        f"{ms['ChainCRF'] / ours:.1f}",
        f"{ours / ms['token cross-entropy']:.1f}",
    ]

    found = tables.read("tagging")[0]["results"]["data"]["rows"]
    latin = {row["method"]: row["test"] for row in found if row["source"] == "latin"}
    assert tags == [f"{statistics.mean(latin[method]):.2f}" for method in ("lc-rank", "crf", "ce")]

    found = tables.read("noise")[0]["results"]["data"]["rows"]
    noise = {row["row"]: row["mean"] for row in found if (row["law"], row["rate"]) == ("instance", 0.4)}
    assert labels == [f"{noise[method]:.2f}" for method in ("robust", "ce", "ce-tuned", "unhinged-tuned")]


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (None, ".2f", "–"),
        (-0.5, "+.1f", "−0.5"),
        ("uniform", "", "uniform"),
        ([4096, 10], "shape", "4096×10"),
        ([1.0], ".2f", "1.00"),
        ([-1.0, -3.0], ".2f", "−2.00 ± 1.41"),
    ],
)
def test_cells(value: object, form: str, text: str) -> None:
    assert tables.cell(value, form) == text
