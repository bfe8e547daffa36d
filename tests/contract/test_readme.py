"""What the README says can be run runs."""

import doctest
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(not README.exists(), reason="there is no README.md yet")


def test_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    text = README.read_text("utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks, "the README shows no Python"
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        code, line = block.group(1), text.count("\n", 0, block.start(1))
        if ">>>" in code:
            example = doctest.DocTestParser().get_doctest(code, names, "README", str(README), line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(example, clear_globs=False).failed == 0
            names |= example.globs
        else:
            # Empty lines in front make a traceback point at the README's own lines.
            exec(compile("\n" * line + code, str(README), "exec"), names)


def test_readme_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 120


def test_links_to_files_lead_somewhere():
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", README.read_text("utf-8"))
    assert not [target for target in targets if not (README.parent / target).exists()]
