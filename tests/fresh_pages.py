"""Runs the Python blocks of the README and of each page in docs in an environment with only what the page says to install.

    python -m tests.fresh_pages [PAGE …]

Each page gets its own virtual environment with torch, this checkout and the arguments of every `pip install` on the page. It
takes a minute or two and 1 GB of disk a page, one page at a time, so no test does it. `constraints.txt` applies.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.page_blocks import BLOCK, PAGES, ROOT

#: A command in a block, or between backticks in a sentence.
_INSTALL = re.compile(r"(?:^    |`)pip install ([^`#\n]+)", re.MULTILINE)
#: The README's alternatives; its blocks need the first.
_ALTERNATIVES = {"README.md"}
_RUN = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
from tests.page_blocks import run_blocks
run_blocks(Path(sys.argv[2]))
"""


def requirements(page: str) -> list[str]:
    """Returns the arguments of `pip install` for a page, with this checkout among them."""
    commands = _INSTALL.findall(PAGES[page].read_text("utf-8"))
    words = [word for command in commands[: 1 if page in _ALTERNATIVES else None] for word in shlex.split(command)]
    return [word for word in dict.fromkeys(["-e", ".", *words]) if word != "-e"]


def runs(page: str) -> bool:
    """Returns whether all blocks of a page run in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        # Not editable: the environment must not find files that are not installed.
        names = [str(ROOT / word) if word.startswith(".") or word == "paper" else word for word in requirements(page)]
        names = [name.replace(f"{ROOT}/.[", f"{ROOT}[") for name in names]
        subprocess.run([python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "torch", *names], check=True)
        Path(folder, "page").mkdir()
        command = [python, "-c", _RUN, ROOT, PAGES[page]]
        return subprocess.run(command, cwd=Path(folder, "page"), check=False).returncode == 0


if __name__ == "__main__":
    failed = []
    for page in sys.argv[1:] or [name for name, path in PAGES.items() if BLOCK.search(path.read_text("utf-8"))]:
        print(f"{page}: pip install {' '.join(requirements(page))}", flush=True)
        if not runs(page):
            failed.append(page)
    print("failed:" if failed else "all pages run", *failed)
    sys.exit(bool(failed))
