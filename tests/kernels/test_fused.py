"""The fused kernels equal their plain twins, in Triton's interpreter."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from linearcore.kernels._fused import fused_for
from tests.fresh_python import fresh_python

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
def test_fused_kernels_equal_their_twins() -> None:
    # In a Python of its own: Triton reads the variable once, when it is imported.
    where = str(Path(__file__).with_name("interpreted.py"))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}", where]
    run = fresh_python("-m", "pytest", *options, TRITON_INTERPRET="1", OMP_NUM_THREADS="1")
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert " passed" in run.stdout and "skipped" not in run.stdout


def test_a_cpu_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert fused_for(torch.zeros(3)) is None
