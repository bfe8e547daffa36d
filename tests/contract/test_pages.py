"""What the README and the pages in docs say can be run runs, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.page_blocks import BLOCK, PAGES, ROOT, run_blocks

README = ROOT / "README.md"


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_python_blocks_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


def test_every_file_on_the_way_through_is_there():
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## The way through")[2].partition("\n## ")[0]
    rooms = (ROOT / "src" / "linearcore", ROOT / "paper" / "src" / "linearcore_paper")
    files = re.findall(r"`([\w/]+\.py)`", section)
    assert len(files) > 40
    assert not [file for file in files if not any((room / file).is_file() for room in rooms)]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]


def test_readme_is_short_and_shows_python() -> None:
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 100
    assert BLOCK.search(text)
