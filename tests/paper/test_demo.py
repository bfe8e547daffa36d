"""`linearcore demo` at toy size, through the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from linearcore.cli import main
from linearcore.runtime import Progress, read_record
from linearcore_paper.demo._compare import Comparison, compare
from linearcore_paper.demo._figure import far_behind, save_figure
from linearcore_paper.demo._run import BEHIND, LOSSES, DemoResult, DemoSettings, run
from linearcore_paper.demo._table import legend, reading
from tests.fresh_python import fresh_python

DOCS = Path(__file__).parents[2] / "docs"
TOY = ["demo", "--seeds", "2", "--epochs", "1", "--rates", "0,0.4"]


def call(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code


def test_demo_prints_a_table_and_saves_picture_and_record(tmp_path, capsys):
    assert call([*TOY, "--out", str(tmp_path / "new" / "folder")]) == 0
    out, err = capsys.readouterr()
    for word in (
        *LOSSES,
        "0 % wrong",
        "40 % wrong",
        "±",
        "chosen for each loss and rate",
        "Measured, whoever wins",
        "demo.png",
    ):
        assert word in out, word
    assert "LC centered: 6 steps in" in err and "\x1b" not in err
    folder = tmp_path / "new" / "folder"
    assert {path.name for path in folder.iterdir()} == {"demo.png", "demo.svg", "demo.json"}
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG") and "<svg" in (folder / "demo.svg").read_text("utf-8")
    record = read_record(folder / "demo.json")
    assert record["settings"]["rates"] == [0.0, 0.4] and record["seed"] == 0
    assert set(record["results"]["losses"]) == set(LOSSES)
    assert np.shape(record["results"]["losses"]["hinge"]["accuracy"]) == (2, 2)


def test_json_is_the_record_and_nothing_else(tmp_path, capsys):
    assert call([*TOY, "--json", "--seeds", "1", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == read_record(tmp_path / "demo.json")


def test_same_seed_same_numbers_and_global_stream_untouched():
    settings = DemoSettings(seeds=2, rates=(0.2,), epochs=1, learning_rates=(0.01,), hidden=8)
    before = torch.get_rng_state(), torch.get_num_threads()
    first, second = run(settings, Progress()), run(settings, Progress())
    for name in LOSSES:
        assert np.array_equal(first.accuracy[name], second.accuracy[name])
    assert first.hashes == second.hashes
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == torch.get_num_threads()


def test_seeds_are_independent_of_how_many_there_are():
    # Networks train side by side; none may see another's gradient.
    settings = {"rates": (0.4,), "epochs": 2, "learning_rates": (0.01,), "hidden": 8}
    both = run(DemoSettings(seeds=2, **settings), Progress())
    alone = run(DemoSettings(seeds=1, seed=1, **settings), Progress())
    for name in LOSSES:
        # Gradients that a norm takes away are rounding, which Adam makes as large as the others.
        close = 0.05 if name in BEHIND else 0.005
        assert both.accuracy[name][0, 1] == pytest.approx(alone.accuracy[name][0, 0], abs=close)


def test_networks_learn():
    result = run(DemoSettings(seeds=1, rates=(0.0,), epochs=6, learning_rates=(0.01,), hidden=32), Progress())
    accuracy = {name: value.item() for name, value in result.accuracy.items()}
    assert min(accuracy.values()) > 0.8, accuracy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rates", "0,oops"], "`--rates` must be numbers with commas, got '0,oops'; pass 0,0.2,0.4 for example"),
        (["--rates", "0,1.5"], "`rates` must be at least 0 and below 0.9, got 1.5; pass 0,0.2,0.4 for example"),
        (["--rates", "nan"], "`rates` must be at least 0 and below 0.9, got nan"),
        (["--rates", "0.2,0.2"], "`rates` must be distinct"),
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

    monkeypatch.setattr("linearcore_paper.demo._run.noisy_digits", fail)
    with pytest.raises(ValueError, match="a bug"):
        main([*TOY, "--out", str(tmp_path)])


def test_interrupt_is_one_line(monkeypatch, tmp_path, capsys):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("linearcore_paper.demo._run.noisy_digits", interrupt)
    assert call([*TOY, "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "linearcore: interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "word"), [(["--version"], "linearcore "), ([], "demo"), (["demo", "--help"], "--seeds 10")]
)
def test_help_and_version(arguments, word, capsys):
    assert call(arguments) == 0
    assert word in capsys.readouterr().out


def test_command_runs_as_a_program():
    run = fresh_python("-c", "from linearcore.cli import main; main()", "nope")
    assert (
        run.returncode == 2 and run.stderr.startswith("linearcore: No such command 'nope'") and run.stderr.count("\n") == 1
    )


def result_with(accuracy: dict[str, list[float]]) -> DemoResult:
    seeds = len(next(iter(accuracy.values())))
    arrays = {name: np.array([values]) for name, values in accuracy.items()}
    return DemoResult(DemoSettings(seeds=seeds, rates=(0.2,)), arrays, dict.fromkeys(arrays, (0.01,)), ())


def test_reading_names_the_winner_whoever_it_is_and_who_is_close():
    text = reading(result_with({"ours": [0.5, 0.51, 0.52], "theirs": [0.8, 0.81, 0.83], "close": [0.81, 0.79, 0.82]}))
    expected = "the best mean belongs at 20 % wrong labels to theirs (81.3 ± 1.5; within noise of it close)."
    assert text == f"Measured, whoever wins: {expected}"


def test_one_seed_shows_no_spread_and_no_tie():
    result = result_with({"ours": [0.5], "theirs": [0.8]})
    assert "±" not in reading(result) and "no spread" in legend(result)


def test_a_loss_far_behind_is_told_and_not_drawn(tmp_path):
    result = result_with({"ours": [0.9, 0.92], "close": [0.78, 0.8], "lost": [0.3, 0.5]})
    assert far_behind(result) == {"lost"}
    _, svg = save_figure(result, tmp_path)
    text = svg.read_text("utf-8")
    assert "lost: 40, not drawn" in text and "<!-- ours -->" in text and "<!-- close -->" in text
    assert "<!-- 40 -->" not in text, "the axis ends above it"


def test_the_baselines_are_what_their_names_say():
    scores, target = torch.randn(6, 10, generator=torch.Generator().manual_seed(0)), torch.arange(6)
    own = scores.softmax(1).gather(1, target[:, None]).squeeze(1)
    torch.testing.assert_close(LOSSES["GCE"](scores, target), (1 - own**0.7) / 0.7)
    centred = scores - scores.mean(1, keepdim=True)
    pull = centred.gather(1, target[:, None]).squeeze(1)
    torch.testing.assert_close(LOSSES["unhinged, normed"](scores, target), 1 - 10 / 9 * pull)
    robust, at_zero = LOSSES["LC robust"](scores, target), LOSSES["LC robust"](0 * scores, target)
    torch.testing.assert_close(robust, at_zero - 10 / 9 * pull / centred.norm(dim=1))
    normed = 0.5 * scores / scores.abs().max()  # In the core, where a unit of √9/10 and the mean over nine come to 1/3.
    balanced, at_zero = LOSSES["LC balanced"](normed, target), LOSSES["LC balanced"](0 * scores, target)
    torch.testing.assert_close(balanced, at_zero - (0.5 * pull / scores.abs().max()) / 3)
    assert set(BEHIND) < set(LOSSES)


def test_the_record_in_docs_is_of_these_losses_and_settings_and_the_page_shows_its_numbers():
    record = read_record(DOCS / "results" / "demo" / "demo.json")
    losses = record["results"]["losses"]
    assert set(losses) == set(LOSSES)
    assert tuple(record["settings"]["learning_rates"]) == DemoSettings().learning_rates
    _, found, rest = (DOCS / "robust-loss.md").read_text("utf-8").partition("## Beside the other robust losses")
    assert found
    lines = rest.partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]
    assert len(rows) == 6
    for name, *cells in rows:
        pairs = zip(losses[name]["mean"], losses[name]["sd"], strict=True)
        assert cells == [f"{100 * mean:.1f} ± {100 * sd:.1f}" for mean, sd in pairs], name


def test_comparison_is_paired():
    # The seeds differ by much, the methods by little but always the same way: pairing must see it.
    seeds = np.array([0.70, 0.80, 0.90, 0.95])
    assert compare(np.stack([seeds, seeds - 0.01 - 0.001 * np.arange(4)])) == Comparison(0, ())
    assert compare(np.stack([seeds, seeds])) == Comparison(0, (1,))
    assert compare(np.stack([seeds, seeds + np.array([0.05, -0.05, 0.04, -0.05])])) == Comparison(0, (1,))
