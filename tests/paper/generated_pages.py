"""What tests of generated pages share."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def page_module(name: str, patch: pytest.MonkeyPatch) -> ModuleType:
    """The module that writes a page, which lies beside the other scripts in docs."""
    patch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module(name)


def section(page: str, title: str) -> str:
    """What stands under a heading."""
    assert f"## {title}\n" in page
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def words(text: str) -> str:
    """Without line breaks, which are where they happen to be."""
    return " ".join(text.split())
