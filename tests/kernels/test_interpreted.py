"""The kernel tests once more, in a Python whose Triton interprets: there the fused kernels run on a CPU."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from linearcore.kernels import fused_kernels_for
from tests.fresh_python import fresh_python

ROOT = Path(__file__).parents[2]
#: The grid goes through these alone: the others have no fused kernel.
FUSED = "logodds or pairwise or centered or robust or sampled or chain or crf or decoders"


def interpreted(*options: str) -> None:
    # In a Python of its own: Triton reads the variable once, when it is imported.
    always = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}"]
    run = fresh_python("-m", "pytest", *always, *options, TRITON_INTERPRET="1", OMP_NUM_THREADS="1")
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert " passed" in run.stdout and "skipped" not in run.stdout


needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")


@needs_triton
def test_fused_kernels() -> None:
    interpreted(*(str(Path(__file__).with_name(name)) for name in ("test_fused.py", "test_fused_dense.py")))


@needs_triton
def test_fused_kernels_over_the_grid_in_float32() -> None:
    interpreted(str(Path(__file__).with_name("test_grid.py")), "-k", f"({FUSED}) and float32 and sliced and not bias")


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("layout", ("contiguous", "transposed", "sliced", "expanded"))
@pytest.mark.parametrize("dtype", ("-float32", "-bfloat16", "-float16"))
def test_fused_kernels_over_all_dtypes_and_layouts(dtype: str, layout: str) -> None:
    """One thing at a time: the full cross takes an hour in the interpreter, and is run on a GPU."""
    where = str(Path(__file__).with_name("test_grid.py"))
    interpreted(where, "-m", "slow or not slow", "-k", f"({FUSED}) and not full_grid and {dtype} and {layout}")


def test_a_cpu_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert fused_kernels_for(torch.zeros(3)) is None
