"""Runs that were saved when a loss was named by its code; their names go on to be names."""

import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from linearcore.runtime import StoreError, read_store
from linearcore_paper.vision import Images, Recipe, Trained, train

SAVED = Path(__file__).parents[2] / "saved"
IMAGES = (torch.arange(24 * 8 * 8) % 251).reshape(24, 1, 8, 8).to(torch.uint8)
DATA = Images(IMAGES, torch.arange(24) % 2, ("even", "odd"))
RECIPE = Recipe("small", width=1, epochs=2, batch=8, seed=3, precision="fp32")
LOSS, NAME = partial(F.cross_entropy, label_smoothing=0.1), "cross_entropy(label_smoothing=0.1)"


@pytest.fixture
def saved(tmp_path, monkeypatch):
    shutil.copytree(SAVED, tmp_path, dirs_exist_ok=True)
    # An unfinished run goes on with the torch that began it, only.
    written_by = read_store(tmp_path / "image-run", "trained network").written_by
    monkeypatch.setattr(torch, "__version__", written_by["torch"])
    return tmp_path


def test_a_finished_run_is_read_and_found_by_its_name(saved):
    found = train(DATA, LOSS, RECIPE, loss_name=NAME, out=saved / "image-run")
    assert found.was_finished and found.loss == NAME and len(found.history) == 2
    again = train(DATA, LOSS, RECIPE)
    torch.testing.assert_close(found.scores(IMAGES), again.scores(IMAGES))


def test_an_unfinished_run_goes_on(saved):
    with pytest.raises(StoreError, match="contains an unfinished training run"):
        Trained.load(saved / "image-run-unfinished")
    found = train(DATA, LOSS, RECIPE, loss_name=NAME, out=saved / "image-run-unfinished")
    assert found.resumed == (2, 0)
    whole = Trained.load(saved / "image-run")
    torch.testing.assert_close(found.scores(IMAGES), whole.scores(IMAGES))


@pytest.mark.parametrize("folder, what", [("image-run", "a finished run"), ("image-run-unfinished", "an unfinished run")])
def test_another_name_is_refused_in_one_line(saved, folder, what):
    advice = "pass fresh=True to start again, another `out`, or the `loss_name` of that run"
    with pytest.raises(ValueError, match=f"holds {what} with another loss; {advice}") as caught:
        train(DATA, LOSS, RECIPE, loss_name="ce", out=saved / folder)
    assert "\n" not in str(caught.value)
    fresh = train(DATA, LOSS, RECIPE, loss_name="ce", out=saved / folder, fresh=True)
    assert fresh.resumed is None and Trained.load(saved / folder).loss == "ce"
