"""Tables in the pages are what `docs/tables.py` makes of the records, and every record is listed."""

import importlib.util
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
