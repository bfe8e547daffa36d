"""Runs code in a new Python process without imported modules."""

import os
import subprocess
import sys
from pathlib import Path

import linearcore
import linearcore_paper

SOURCE = os.pathsep.join(str(Path(package.__file__).parents[1]) for package in (linearcore, linearcore_paper))


def fresh_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `python *arguments` with linearcore and linearcore_paper importable and returns the completed process."""
    env = os.environ | {"PYTHONPATH": SOURCE} | environment
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=900)
