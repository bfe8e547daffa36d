import json
import shutil
from pathlib import Path

import pytest

from linearcore.runtime import StoreError
from linearcore.tagging import StoppedError, Tagger, Training, train
from linearcore.tagging.readers import Layout
from tests.tagged_text import sentences

SAVED = Path(__file__).parents[2] / "saved" / "tagger"
DATA, DEV = sentences(40), sentences(10, seed=1)
SHORT = Training(epochs=2, batch_tokens=64, embedding=4, hidden=4)


def test_a_tagger_of_an_earlier_version_is_read():
    tagger = Tagger.load(SAVED)
    assert "unary" not in json.loads((SAVED / "linearcore.json").read_text())["settings"]["model"]
    assert "layout" not in json.loads((SAVED / "linearcore.json").read_text())["settings"]
    assert tagger.layout == Layout("conllu", "upos")
    assert tagger.columns == "upos" and tagger.metadata == {"note": "saved by an earlier version"}
    assert tagger.tag(["a", "dog", "sees"]) == ["DET", "NOUN", "VERB"]
    assert (tagger.model.head.unary, tagger.model.head.rank, tagger.model.head.form.name) == (0.0, 1, "logodds")


def test_a_tagger_of_an_earlier_version_is_not_overwritten_by_accident(tmp_path):
    shutil.copytree(SAVED, tmp_path, dirs_exist_ok=True)
    with pytest.raises(
        ValueError, match=r"holds a finished tagger with another .*; pass --fresh \(fresh=True\) to start"
    ) as got:
        train(DATA, DEV, SHORT, out=tmp_path)
    assert "\n" not in str(got.value)
    assert not train(DATA, DEV, SHORT, out=tmp_path, fresh=True).was_finished
    assert Tagger.load(tmp_path).columns == "tag"


@pytest.fixture
def unfinished(tmp_path, monkeypatch):
    """A run that stopped in its first epoch."""

    def stop(*_):
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr("linearcore.tagging._loop.TrainingLoop._end_epoch", lambda run, rate: run._save() or stop())
        with pytest.raises(StoppedError):
            train(DATA, DEV, SHORT, out=tmp_path)
    return tmp_path


def changed(unfinished, change):
    """Writes the checkpoint of a run anew, with another state or other tensors."""
    from linearcore.runtime import read_store, write_store

    kind = "training run of a tagger"
    stored = read_store(unfinished / "checkpoint", kind)
    change(stored)
    write_store(unfinished / "checkpoint", kind, settings=stored.settings, tensors=stored.tensors)


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda stored: stored.settings["state"].update(mood=1), "TypeError: .*mood"),
        (lambda stored: stored.settings.pop("state"), "KeyError: 'state'"),
        (lambda stored: stored.tensors.pop("model.projection.bias"), "RuntimeError: .*projection.bias"),
        (lambda stored: stored.tensors.pop("random.cpu"), "KeyError: 'random'"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_in_one_line(unfinished, change, reason):
    changed(unfinished, change)
    message = rf"must be a training run of a tagger of this version, got one of linearcore .* \({reason}.*\); pass --fresh"
    with pytest.raises(StoreError, match=message) as caught:
        train(DATA, DEV, SHORT, out=unfinished)
    assert "\n" not in str(caught.value)
    assert train(DATA, DEV, SHORT, out=unfinished, fresh=True).resumed is None


def test_a_damaged_checkpoint_names_the_way_out(unfinished):
    next((unfinished / "checkpoint").glob("*.safetensors")).write_bytes(b"")
    with pytest.raises(StoreError, match=r"is damaged: .* does not match its SHA-256; pass --fresh \(fresh=True\)"):
        train(DATA, DEV, SHORT, out=unfinished)
    manifest = unfinished / "checkpoint" / "linearcore.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 0'))
    with pytest.raises(StoreError, match=r"of format 1, got 0, written by linearcore .*; pass --fresh \(fresh=True\)"):
        train(DATA, DEV, SHORT, out=unfinished)
