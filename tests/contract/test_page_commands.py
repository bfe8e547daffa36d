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

SENTENCE = "1\tThe\t_\tDET\t_\t_\t0\t_\t_\t_\n2\tcat\t_\tNOUN\t_\tNumber=Sing\t0\t_\t_\t_\n\n"


def test_the_tutorial_is_among_them() -> None:
    assert ROOT / "docs" / "tag-text.md" in PAGES


#: Commands of these pages are run with small files of the names that the pages use.
NAMED_FILES = {
    "README.md": {name: SENTENCE * 20 for name in ("train.conllu", "dev.conllu", "test.conllu", "new.conllu")},
    "docs/find-wrong-labels.md": {
        "pets.csv": "weight,kind\n"
        + "".join(f"{number % 2 * 9 + number / 99},{'cd'[number % 2]}\n" for number in range(40)),
    },
    "docs/guarantees.md": {
        "FILE.csv": "x,COLUMN\n" + "".join(f"{number % 7},{'ab'[number % 2]}\n" for number in range(60)),
        "my_loss.py": "import torch\n\ndef phi(u):\n    return torch.where(u < 1, 2 - u, torch.exp(1 - u))\n",
    },
}
_COMMAND = re.compile(r"^(?:    )?((?:echo .*)?\blinearcore (?!demo|reproduce).*)$", re.MULTILINE)


def run(script: str, folder: Path) -> str:
    """Runs commands in a folder, with `linearcore` from this checkout, and returns what they print."""
    program = folder / "bin" / "linearcore"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m linearcore "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "src")}
    command = ["bash", "-c", f"set -eu -o pipefail\n{script}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_run(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    out = run("\n".join(BLOCK.findall(page.read_text("utf-8"))), tmp_path)
    # The tutorial's sentences are tagged as a reader expects.
    assert "dog\tNOUN" in out and '"id": 7' in out


@pytest.mark.slow
@pytest.mark.parametrize("page", NAMED_FILES)
def test_commands_run_on_files_of_these_names(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text("utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL) + re.findall(r"^    .*$", text, re.MULTILINE)
    commands = _COMMAND.findall("\n".join(blocks))
    assert commands
    for name, content in NAMED_FILES[page].items():
        (tmp_path / name).write_text(content)
    run("\n".join(commands), tmp_path)
