"""The shell commands of the pages run, one block after the other, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if BLOCK.search(page.read_text("utf-8"))]


def test_the_tutorial_is_among_them() -> None:
    assert ROOT / "docs" / "tag-text.md" in PAGES


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_run(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    program = tmp_path / "bin" / "linearcore"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m linearcore "$@"\n')
    program.chmod(0o755)
    script = "set -eu -o pipefail\n" + "\n".join(BLOCK.findall(page.read_text("utf-8")))
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    # The tutorial's sentences are tagged as a reader expects.
    assert "dog\tNOUN" in done.stdout and '"id": 7' in done.stdout
