"""Every benchmark runs from the command line at toy size, writes a record, and refuses bad input in one line."""

import json
from pathlib import Path

import pytest

from tests.fresh_python import fresh_python

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

#: script: the options that make it finish within seconds.
SCRIPTS = {
    "chain.py": ["--sizes", "12x5x2", "--seconds", "0.1", "--least", "2"],
    "decoding.py": ["--quick", "--sets", "generated"],
    "dense_loss.py": ["--shapes", "64x10", "--dtypes", "float32", "--seconds", "0.1", "--least", "2", "--no-compile"],
    "fenchel_young.py": ["--classes", "3", "--scales", "1", "--seconds", "0.05"],
    "sampled.py": ["--growth", "20,40", "--search", "30", "--seconds", "0.05", "--least", "2", "--no-compile"],
    "one_line.py": ["--quick", "--sets", "digits,many"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_runs_and_writes_a_record_without_machine_paths(script, tmp_path):
    out = tmp_path / "record.json"
    done = fresh_python(str(BENCHMARKS / script), *SCRIPTS[script], "--out", str(out), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert {"command", "environment", "results", "settings"} <= json.loads(text).keys()
    assert str(tmp_path) not in text and str(BENCHMARKS.parent) not in text


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_names_every_option_and_an_example(script):
    done = fresh_python(str(BENCHMARKS / script), "--help")
    assert done.returncode == 0
    assert "--out" in done.stdout and f"benchmarks/{script} --" in done.stdout


def test_one_line_says_in_one_line_what_to_do_without_the_data_folder():
    done = fresh_python(str(BENCHMARKS / "one_line.py"), "--quick", "--data", "no-such-folder")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--data" in done.stderr and "--sets digits,many" in done.stderr


def test_decoding_says_in_one_line_what_to_do_without_the_data_folder():
    done = fresh_python(str(BENCHMARKS / "decoding.py"), "--quick", "--data", "no-such-folder")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--data" in done.stderr and "--sets generated" in done.stderr


def test_one_line_trains_seeds_side_by_side_as_it_would_one_by_one():
    code = f"""
import sys; sys.path.insert(0, {str(BENCHMARKS)!r})
import one_line
plan, make = one_line.QUICK["digits"], one_line.OPTIMIZERS["sgd"].make
def accuracy(seeds):
    return one_line.train(one_line.digits(), plan, seeds, one_line.LOSSES["logodds"](), make, 0.03)[1]
together, alone = accuracy([0, 1, 2]), [accuracy([seed])[0] for seed in range(3)]
assert max(abs(a - b) for a, b in zip(together, alone)) <= 0.5, (together, alone)
assert len(set(together)) > 1, together
"""
    done = fresh_python("-c", code, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
