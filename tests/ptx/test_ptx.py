"""Compiled kernels on a CPU: the emulator finds faults, and the kernel tests pass with what Triton compiles for a GPU."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.fresh_python import SOURCE, fresh_python
from tests.kernels.paths import DEVICE
from tests.ptx.launch import Emulated, emulate
from tests.ptx.memory import FaultError

pytestmark = [
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing"),
    pytest.mark.skipif(DEVICE.type == "cuda" or torch.cuda.is_available(), reason="a GPU runs the kernels itself"),
]
ROOT = Path(__file__).parents[2]
#: Tests that launch every kernel: one of each kind, as each launch takes a compilation and a second.
CHOSEN = (
    "(test_grid and contiguous-float32) or underflow or full_precision_at_every_batch_size or test_log_odds_of_rows"
    " or test_half_precision or test_long_rows or test_exact_decoding or test_upstream_gradients or repeat"
    " or multiplied_by_a_number or no_number"
)
FILES = ("kernels/test_grid.py", "kernels/test_fused.py", "kernels/test_fused_dense.py", "unit/optim/test_sparse_adamw.py")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Emulated]:
    """The kernels that this test launches, emulated."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    return emulate(monkeypatch, {})


def turned_round(number: int, *, has_barrier: bool) -> Tensor:
    from tests.ptx.kernels import reverse_kernel

    rows = torch.arange(2 * number, dtype=torch.float32).view(2, number)
    reverse_kernel[(1,)](rows[0], rows[1], number, HAS_BARRIER=has_barrier, BLOCK=256)
    return rows[1]


@pytest.mark.parametrize("has_barrier", (False, True))
def test_a_missing_barrier_is_a_race(has_barrier: bool, launched: dict[str, Emulated]) -> None:
    found = turned_round(256, has_barrier=has_barrier)
    assert found.tolist() == list(range(255, -1, -1))
    (kernel,) = launched.values()
    races = {race.rpartition(": ")[2] for race in kernel.races}
    assert races == (set() if has_barrier else {"reads what another thread wrote"})


def test_an_access_outside_an_allocation_is_a_fault(launched: dict[str, Emulated]) -> None:
    with pytest.raises(FaultError, match="byte 800 of 800"):
        turned_round(100, has_barrier=True)
    assert launched


@pytest.mark.usefixtures("launched")
def test_a_cached_launch_of_another_kernel_is_a_fault() -> None:
    """Triton compiles a kernel of its own for numbers that are divisible by 16."""
    from linearcore.kernels.fused._launch import Launch
    from tests.ptx.kernels import reverse_kernel

    rows, kind = torch.zeros(2, 256), object()
    for number in (256, 16):
        Launch(reverse_kernel, 1, (number, True, 256), kind)(-1, *rows)
    with pytest.raises(FaultError, match="Triton would compile another kernel"):
        Launch(reverse_kernel, 1, (100, True, 256), kind)(-1, *rows)


@pytest.mark.slow
def test_every_kernel_passes_its_tests_compiled(tmp_path: Path) -> None:
    from tests.kernels.test_compiles import launched as in_sources

    files = [str(ROOT / "tests" / file) for file in FILES]
    options = ["-q", "-p", "tests.ptx.plugin", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}", "-k", CHOSEN]
    paths = os.pathsep.join((str(ROOT), SOURCE))
    environment = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "TRITON_CACHE_DIR": str(tmp_path)}
    run = fresh_python("-m", "pytest", *options, *files, **environment)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    emulated = re.search("^emulated: (.*)$", run.stdout, re.MULTILINE)
    assert emulated is not None and set(emulated[1].split()) >= in_sources(), "these kernels need a test that is chosen"
