"""What the README and the pages in docs say can be run runs, and their links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in (README, ROOT / "CONTRIBUTING.md", ROOT / "paper" / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_python_blocks_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        code, line = block.group(1), text.count("\n", 0, block.start(1))
        if ">>>" in code:
            example = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(example, clear_globs=False).failed == 0
            names |= example.globs
        else:
            # Empty lines in front make a traceback point at the page's own lines.
            exec(compile("\n" * line + code, str(page), "exec"), names)


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
