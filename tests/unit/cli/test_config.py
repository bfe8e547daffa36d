"""`linearcore tag train --config FILE.toml`."""

import json

import pytest

from linearcore.cli import main
from tests.tagged_text import write_conllu


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", "train", *map(str, words)])
    return int(left.value.code or 0)


def test_all_options_can_be_in_the_file_and_the_command_line_wins(tmp_path, capsys):
    train = write_conllu(tmp_path / "train.conllu", 40)
    config = tmp_path / "settings.toml"
    config.write_text(
        f"""
        train = ["{train}", "{train}"]
        dev = "{train}"
        out = "{tmp_path / "model"}"
        tag = "upos"
        json = true
        epochs = 3
        batch-tokens = 128
        hidden = 4
        lr = 1
        dropout = 0.25
        characters = false
        loss = "crf"
        """
    )
    assert run("--config", config, "--epochs", "1", "--loss", "lc", "--lr", "0.01") == 0
    told = json.loads(capsys.readouterr().out)
    settings = told["settings"]
    assert told["sentences"] == {"train": 80, "dev": 40}
    assert (settings["epochs"], settings["loss"], settings["rate"]) == (1, "lc", 0.01)
    assert (settings["tokens"], settings["hidden"], settings["dropout"], settings["characters"]) == (128, 4, 0.25, False)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("epoch = 3", ["`epoch`", "epochs"]),
        ("batch_tokens = 3", ["`batch_tokens`", "batch-tokens"]),
        ("no-characters = true", ["`no-characters`", "characters"]),
        ("config = 'other.toml'", ["`config`"]),
        ("[training]\nepochs = 3", ["`training`"]),
        ("epochs = '3'", ["`epochs`", "an integer", "'3'"]),
        ("epochs = true", ["`epochs`", "an integer", "True"]),
        ("epochs = 3.0", ["`epochs`", "an integer", "3.0"]),
        ("lr = 'fast'", ["`lr`", "a number"]),
        ("compile = 1", ["`compile`", "true or false"]),
        ("tag = 2", ["`tag`", "a string", "2"]),
        ("train = ['a', 1]", ["`train`", "a string", "1"]),
        ("epochs = ", ["TOML"]),
        ("epochs = 0", ["`epochs`", "positive integer"]),
        ("encoder = 'transformer:x'\nhidden = 3", ["`hidden`", "transformer:x"]),
        (None, ["cannot read"]),
    ],
)
def test_what_is_wrong_takes_one_line(text, facts, tmp_path, capsys):
    config = tmp_path / "settings.toml"
    if text is not None:
        config.write_text(text)
    assert run("--config", config, "--train", "nowhere", "--out", tmp_path / "model") == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and all(fact in lines[0] for fact in facts), lines
