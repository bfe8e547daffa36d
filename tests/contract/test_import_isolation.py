"""`import linearcore` is cheap, quiet and leaves no trace."""

import pytest

from tests.fresh_python import fresh_python

OPTIONAL = (
    "triton", "sklearn", "matplotlib", "transformers", "scipy", "typer", "rich",
    "pandas", "pyarrow", "safetensors", "jinja2", "conllu", "seqeval", "PIL",
)  # fmt: skip

# torch itself may import some of these where they are installed; that is not ours to answer for.
LISTS_NEW_MODULES = """
import sys, torch
before = set(sys.modules)
import {module}
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""

COMPARES_STATE = """
import random, numpy, torch
torch.manual_seed(3); numpy.random.seed(3); random.seed(3)
def state():
    return (torch.get_rng_state().tolist(), str(numpy.random.get_state()), random.getstate(), torch.get_num_threads(),
            torch.get_default_dtype(), torch.is_grad_enabled(), torch.cuda.is_initialized())
before = state()
import linearcore, linearcore.noise
assert state() == before
"""


@pytest.mark.parametrize(
    "module",
    [
        *("linearcore", "linearcore.noise", "linearcore.structures", "linearcore.analysis"),
        *("linearcore.cleaning", "linearcore.tagging", "linearcore_paper.vision"),
    ],
)
def test_nothing_optional_is_imported(module):
    run = fresh_python("-c", LISTS_NEW_MODULES.format(module=module))
    assert run.returncode == 0, run.stderr
    new = run.stdout.split()
    assert "linearcore" in new
    assert not set(new) & set(OPTIONAL)


def test_command_line_does_not_import_an_extra():
    run = fresh_python("-c", LISTS_NEW_MODULES.format(module="linearcore.cli"))
    assert run.returncode == 0, run.stderr
    assert not set(run.stdout.split()) & (set(OPTIONAL) - {"typer", "rich"})


def test_random_streams_and_settings_are_left_alone():
    run = fresh_python("-c", COMPARES_STATE)
    assert run.returncode == 0, run.stderr


def test_import_prints_and_warns_nothing():
    run = fresh_python("-W", "error", "-c", "import torch, linearcore")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
