"""Runs code in a Python of its own, where nothing has been imported yet."""

import os
import subprocess
import sys
from pathlib import Path

import linearcore
import linearcore_paper

SOURCE = os.pathsep.join(str(Path(room.__file__).parents[1]) for room in (linearcore, linearcore_paper))


def fresh_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `python *arguments` with linearcore and linearcore_paper importable and returns what it said."""
    env = os.environ | {"PYTHONPATH": SOURCE} | environment
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=900)
