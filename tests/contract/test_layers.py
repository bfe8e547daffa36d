"""A layer imports only what is below it."""

from pathlib import Path

from tests.fresh_python import fresh_python

CONFIG = Path(__file__).parents[2] / "pyproject.toml"


def lint_imports(config: Path):
    run = fresh_python(
        "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache", "--config", str(config)
    )
    return run.returncode, run.stdout + run.stderr


def test_layers_hold():
    code, output = lint_imports(CONFIG)
    assert code == 0, output
    assert "A layer imports only what is below it KEPT" in output


def test_a_broken_layer_would_be_seen(tmp_path):
    # `losses` uses `kernels`: with the two swapped the contract must break, or it checks nothing.
    text = CONFIG.read_text("utf-8")
    swapped = text.replace('"kernels"', '"LOSSES"').replace('"losses | noise | optim"', '"kernels"')
    swapped = swapped.replace('"LOSSES"', '"losses | noise | optim"')
    assert swapped.count('"kernels"') == swapped.count('"losses | noise | optim"') == 1 and swapped != text
    (tmp_path / "pyproject.toml").write_text(swapped, "utf-8")
    code, output = lint_imports(tmp_path / "pyproject.toml")
    assert code != 0 and "linearcore.kernels" in output
