"""`linearcore demo` at toy size, through the command line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from linearcore.cli import main
from linearcore.runtime import Progress, read_record
from linearcore_paper.demo._compare import Comparison, compare
from linearcore_paper.demo._figure import COLOURS, accuracy_title, draw, step_title
from linearcore_paper.demo._run import LOSSES, DemoResult, DemoSettings, run
from linearcore_paper.demo._steps import BATCH, LENGTH, steps_with
from linearcore_paper.demo._table import accuracy_legend
from tests.fresh_python import fresh_python

DOCS = Path(__file__).parents[2] / "docs"
HEADS = ("pytorch-crf", "ChainCRF", "LinearCoreChain", "token cross-entropy")
FAST = {"epochs": 1, "learning_rates": (0.01,), "hidden": 8, "tags": (3,), "seconds": 0.01}
TOY = ["demo", "--seeds", "2", "--epochs", "1", "--noise-rates", "0,0.4", "--tags", "3,5", "--seconds", "0.01"]


def call(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code


def test_demo_prints_tables_and_saves_picture_and_record(tmp_path, capsys):
    assert call([*TOY, "--out", str(tmp_path / "new" / "folder")]) == 0
    out, err = capsys.readouterr()
    for word in (*LOSSES, *HEADS, "0 % wrong", "40 % wrong", "3 tags", "5 tags", "±", "demo.png"):
        assert word in out, word
    assert max(map(len, out.partition("* best")[0].splitlines()[-7:])) <= 80, "the accuracy table fits a terminal"
    assert "RobustLinearCoreLoss: 6 epochs in" in err and "rounds in" in err and "\x1b" not in err
    folder = tmp_path / "new" / "folder"
    assert {path.name for path in folder.iterdir()} == {"demo.png", "demo.svg", "demo.json"}
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG") and "<svg" in (folder / "demo.svg").read_text("utf-8")
    record = read_record(folder / "demo.json")
    assert record["settings"]["noise_rates"] == [0.0, 0.4] and record["settings"]["tags"] == [3, 5] and record["seed"] == 0
    assert set(record["results"]["losses"]) == set(LOSSES)
    assert np.shape(record["results"]["losses"]["GCE"]["accuracy"]) == (2, 2)
    assert set(record["results"]["step_quartiles_ms"]) == set(HEADS)
    for rows in record["results"]["step_quartiles_ms"].values():
        assert len(rows) == 2 and all(0 < low <= median <= high for low, median, high in rows)


def test_json_is_the_record_and_nothing_else(tmp_path, capsys):
    less = ["--seeds", "1", "--noise-rates", "0", "--tags", "3"]
    assert call([*TOY, *less, "--json", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == read_record(tmp_path / "demo.json")


#: Two seeds; two epochs, since networks train side by side and may see another's gradient only after the first step.
TWO_SEEDS = DemoSettings(seeds=2, noise_rates=(0.4,), **(FAST | {"epochs": 2}))


@pytest.fixture(scope="module")
def two_seeds() -> DemoResult:
    return run(TWO_SEEDS, Progress())


def test_same_seed_same_accuracy_and_global_stream_untouched(two_seeds):
    before = torch.get_rng_state(), torch.get_num_threads()
    again = run(TWO_SEEDS, Progress())
    for name in LOSSES:
        assert np.array_equal(two_seeds.accuracy[name], again.accuracy[name])
    assert two_seeds.hashes == again.hashes
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == torch.get_num_threads()


def test_seeds_are_independent_of_how_many_there_are(two_seeds):
    alone = run(replace(TWO_SEEDS, seeds=1, seed=1), Progress())
    for name in LOSSES:
        assert two_seeds.accuracy[name][0, 1] == pytest.approx(alone.accuracy[name][0, 0], abs=0.005)


def test_networks_learn():
    result = run(DemoSettings(seeds=1, noise_rates=(0.0,), **(FAST | {"epochs": 6, "hidden": 32})), Progress())
    accuracy = {name: value.item() for name, value in result.accuracy.items()}
    assert min(accuracy.values()) > 0.8, accuracy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--noise-rates", "0,oops"],
            "`--noise-rates` must be numbers separated by commas, got '0,oops'; pass 0,0.2,0.4 for example",
        ),
        (
            ["--noise-rates", "0,1.5"],
            "`noise_rates` must be at least 0 and below 0.9, each given once, got 0,1.5; pass 0,0.2,0.4",
        ),
        (["--noise-rates", "nan"], "`noise_rates` must be at least 0 and below 0.9, each given once, got nan"),
        (["--noise-rates", "0.2,0.2"], "each given once, got 0.2,0.2"),
        (["--tags", "10,2.5"], "`--tags` must be integers separated by commas, got '10,2.5'; pass 10,100,1000 for example"),
        (["--tags", "1,10"], "`tags` must be between 2 and 2000, each given once, got 1,10; pass 10,100,1000 for example"),
        (["--tags", "10,4000"], "`tags` must be between 2 and 2000"),
        (["--seconds", "0"], "`seconds` must be a positive number, got 0.0; pass 30, for example"),
        (["--seeds", "0"], "`seeds` must be at least 1, got 0"),
        (["--epochs", "0"], "`epochs` must be at least 1, got 0"),
        (["--seed", "-1"], "`seed` must be a non-negative integer"),
        (["--seeds", "many"], "'--seeds'"),
        (["--nope"], "--nope"),
        (["--out", "FILE"], "; pass a writable folder to --out"),
        (["--out", "FILE/below"], "; pass a writable folder to --out"),
    ],
)
def test_errors_are_one_line(arguments, message, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    arguments = [word.replace("FILE", str(tmp_path / "file")) for word in arguments]
    assert call(["demo", "--out", str(tmp_path / "out"), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("linearcore: ") and err.count("\n") == 1
    assert message in err


def test_fault_of_ours_keeps_its_traceback(monkeypatch, tmp_path):
    def fail(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("linearcore_paper.demo._run.time_steps", fail)
    with pytest.raises(ValueError, match="a bug"):
        main([*TOY, "--out", str(tmp_path)])


def test_interrupt_is_one_line(monkeypatch, tmp_path, capsys):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("linearcore_paper.demo._run.time_steps", interrupt)
    assert call([*TOY, "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "linearcore: interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "word"), [(["--version"], "linearcore "), ([], "demo"), (["demo", "--help"], "--seeds 10")]
)
def test_help_and_version(arguments, word, capsys):
    assert call(arguments) == 0
    assert word in capsys.readouterr().out


@pytest.mark.slow  # tests/unit/cli/test_app.py has a fresh Python.
def test_command_runs_as_a_program():
    run = fresh_python("-c", "from linearcore.cli import main; main()", "nope")
    assert (
        run.returncode == 2 and run.stderr.startswith("linearcore: No such command 'nope'") and run.stderr.count("\n") == 1
    )


def result_with(accuracy: dict[str, list[float]], **steps: float) -> DemoResult:
    """Accuracies at 20 % for each seed, and median step times at 1,000 tags."""
    seeds = len(next(iter(accuracy.values())))
    arrays = {name: np.array([values]) for name, values in accuracy.items()}
    times = {name.replace("_", "-"): [(median, median, median)] for name, median in steps.items()}
    settings = DemoSettings(seeds=seeds, noise_rates=(0.2,), tags=(1000,))
    return DemoResult(settings, arrays, dict.fromkeys(arrays, (0.01,)), (), times)


def test_titles_name_the_best_whichever_it_is():
    result = result_with(
        {"ours": [0.5, 0.51, 0.52], "theirs": [0.8, 0.81, 0.83], "close": [0.81, 0.79, 0.82]},
        pytorch_crf=2.0,
        LinearCoreChain=8.0,
    )
    assert accuracy_title(result).endswith("20 % wrong labels:\ntheirs and close")
    assert "4 times slower" in step_title(result)
    result = result_with({"one": [0.5], "other": [0.8]}, pytorch_crf=24.0, LinearCoreChain=8.0)
    assert accuracy_title(result).endswith("\nother") and "3 times faster" in step_title(result)
    assert "no standard deviation" in accuracy_legend(result)


def test_picture_has_at_most_five_lines_a_panel_each_with_its_label():
    accuracy, steps = {name: np.array([[0.9], [0.8]]) for name in LOSSES}, {name: [(1.0, 2.0, 3.0)] * 2 for name in HEADS}
    settings = DemoSettings(seeds=1, noise_rates=(0.0, 0.4), tags=(3, 5))
    result = DemoResult(settings, accuracy, dict.fromkeys(LOSSES, (0.01, 0.01)), (), steps)
    for axes, names in zip(draw(result).axes, (HEADS, LOSSES), strict=True):
        assert len(names) <= 5
        curves = [line for line in axes.lines if line.get_marker() == "o"]
        assert [line.get_color() for line in curves] == [COLOURS[name] for name in names]
        assert {text.get_text() for text in axes.texts} == set(names)


def test_the_losses_are_what_their_names_say():
    scores, target = torch.randn(6, 10, generator=torch.Generator().manual_seed(0)), torch.arange(6)
    own = scores.softmax(1).gather(1, target[:, None]).squeeze(1)
    torch.testing.assert_close(LOSSES["GCE"](scores, target), (1 - own**0.7) / 0.7)
    centred = scores - scores.mean(1, keepdim=True)
    pull = centred.gather(1, target[:, None]).squeeze(1)
    robust, at_zero = LOSSES["RobustLinearCoreLoss"](scores, target), LOSSES["RobustLinearCoreLoss"](0 * scores, target)
    torch.testing.assert_close(robust, at_zero - 10 / 9 * pull / centred.norm(dim=1))


def test_all_steps_have_the_same_data_and_the_two_crfs_the_same_loss_and_gradients():
    steps = {name: step() for name, step in steps_with(7).items()}
    assert tuple(steps) == HEADS
    (loss, gradients), (expected, expected_gradients) = steps["ChainCRF"], steps["pytorch-crf"]
    torch.testing.assert_close(loss, expected)
    for one, other in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)
    _, (hidden, weight, bias) = steps["token cross-entropy"]
    assert hidden.shape[:2] == (BATCH, LENGTH) and weight.shape == (7, hidden.shape[2])
    assert abs(float(bias.sum())) < 1e-5, "softmax − one-hot adds up to 0"
    assert len(steps["LinearCoreChain"][1]) == len(gradients)


def test_the_record_in_docs_has_these_losses_and_settings():
    record = read_record(DOCS / "results" / "demo" / "demo.json")
    losses, settings = record["results"]["losses"], DemoSettings()
    assert set(losses) == set(LOSSES) and set(record["results"]["step_quartiles_ms"]) == set(HEADS)
    for name in ("learning_rates", "noise_rates", "tags", "seeds", "seconds"):
        default = getattr(settings, name)
        assert record["settings"][name] == (list(default) if isinstance(default, tuple) else default)


def test_comparison_is_paired():
    # The seeds differ by much, the methods by little but always the same way: pairing must see it.
    seeds = np.array([0.70, 0.80, 0.90, 0.95])
    assert compare(np.stack([seeds, seeds - 0.01 - 0.001 * np.arange(4)])) == Comparison(0, ())
    assert compare(np.stack([seeds, seeds])) == Comparison(0, (1,))
    assert compare(np.stack([seeds, seeds + np.array([0.05, -0.05, 0.04, -0.05])])) == Comparison(0, (1,))
