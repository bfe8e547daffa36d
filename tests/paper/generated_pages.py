"""Functions for tests of generated pages."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def page_module(name: str, patch: pytest.MonkeyPatch) -> ModuleType:
    """Returns the module in docs that writes a page."""
    patch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module(name)


def section(page: str, title: str) -> str:
    """Returns the text under a heading."""
    assert f"## {title}\n" in page
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def words(text: str) -> str:
    """Returns the text with line breaks replaced by spaces."""
    return " ".join(text.split())
