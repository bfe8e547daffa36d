"""A plugin of pytest with which the kernel tests run compiled kernels on a CPU: `pytest -p tests.ptx.plugin tests/kernels`.

A test fails at accesses outside allocations and at addresses that are not aligned. The end lists the kernels that were
launched, and races between threads, which fail the run.
"""

import os
from importlib import import_module

import pytest

from tests.ptx.launch import Emulated, emulate
from tests.ptx.machine import ORDER

#: Programs of the kernel whose programs wait for each other.
PROGRAMS = 3
launched: dict[str, Emulated] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before tests/kernels/conftest.py asks whether there are kernels."""
    global launched
    recursion = import_module("linearcore.kernels.fused._recursion")
    os.environ["TRITON_INTERPRET"] = "1"  # The kernels are imported: from now on this only chooses them on a CPU.
    patch = pytest.MonkeyPatch()
    patch.setattr(recursion, "_launches", lambda a, items, length: [(min(PROGRAMS, items), 0, length, 0)])
    launched = emulate(patch, {"_recursion": 80})


def races() -> list[str]:
    """Returns the races so far, each with its kernel."""
    return sorted({f"{name.split()[0]}, {race}" for name, kernel in launched.items() for race in kernel.races})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"emulated: {' '.join(sorted({name.split()[0] for name in launched}))}")
    for race in races():
        terminalreporter.write_line(f"race: {race}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    # With an order of warps a thread may read what another one wrote, and not use it (see `Memory`): only tests fail then.
    if races() and not ORDER and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
