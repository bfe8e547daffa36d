"""Where the kernel tests run, and what they are held to.

They run three ways: on a CPU (the eager paths), on a CPU in Triton's interpreter (`TRITON_INTERPRET=1`), and
compiled on a GPU (`LINEARCORE_TEST_DEVICE=cuda`, which `make test-gpu` sets).
"""

import os
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor

from linearcore.kernels import fused_kernels_for
from linearcore.runtime import write_record
from tests.kernels.paths import DEVICE

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# Versions of torch before 2.13 may refuse all products in deterministic mode without it. Read at the first product.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
if DEVICE.type == "cuda" and not torch.cuda.is_available():
    pytest.exit("make test-gpu needs a CUDA device, and torch sees none", 2)
#: Without fused kernels for the device there is nothing for these tests to look at.
collect_ignore = [] if fused_kernels_for(torch.zeros(1, device=DEVICE)) else ["test_fused.py", "test_fused_dense.py"]


@pytest.fixture(autouse=True)
def buffers_start_as_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel does not write is NaN (or −1 in integers), instead of whatever the memory held before."""

    def spoiled(make):
        def made(*args: object, **kwargs: object) -> Tensor:
            tensor = make(*args, **kwargs)
            return tensor.fill_(torch.nan if tensor.is_floating_point() else -1) if tensor.dtype != torch.bool else tensor

        return made

    for owner, name in ((torch, "empty"), (torch, "empty_like"), (Tensor, "new_empty")):
        monkeypatch.setattr(owner, name, spoiled(getattr(owner, name)))


@pytest.fixture(autouse=True)
def fewer_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter runs programs one after another, so that cutting sums into many parts only takes time there."""
    if IS_INTERPRETED:
        monkeypatch.setattr("linearcore.kernels.fused._recursion.PARTS", 2)
        monkeypatch.setattr("linearcore.kernels.fused._max_product.MAX_PARTS", 2)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes what came out to the file that LINEARCORE_TEST_RECORD names."""
    where = os.environ.get("LINEARCORE_TEST_RECORD")
    if where and not hasattr(session.config, "workerinput"):  # With pytest-xdist the workers end their own sessions.
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        outcomes = {name: len(reporter.stats.get(name, [])) for name in ("passed", "failed", "error", "skipped")}
        passed = Counter(report.nodeid.partition("[")[0].rpartition("/")[2] for report in reporter.stats.get("passed", []))
        results = {"outcomes": outcomes, "passed": dict(passed)}
        settings = {"device": DEVICE.type, "interpreted": IS_INTERPRETED}
        write_record(Path(where), command="make test-gpu", settings=settings, results=results, seed=None)
