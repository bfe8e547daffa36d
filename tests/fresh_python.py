"""Runs code in a Python of its own, where nothing has been imported yet."""

import os
import subprocess
import sys
from pathlib import Path

import linearcore

SOURCE = Path(linearcore.__file__).parents[1]


def fresh_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `python *arguments` with linearcore importable, installed or not, and returns what it said."""
    env = os.environ | {"PYTHONPATH": str(SOURCE)} | environment
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=900)
