import json
from dataclasses import replace

import pytest
import torch

import linearcore as lc
from linearcore.runtime import StoreError, differences, write_store
from linearcore_paper.vision import Recipe, Trained, train
from tests.paper.vision.toy_images import LOSS, SHORT, same_weights, toy, without_time

DATA, TEST = toy(70), toy(41, seed=1)


def test_a_finished_run_is_not_done_again(tmp_path):
    first = train(DATA, LOSS, SHORT, test=TEST, loss_name="ce", out=tmp_path / "net", keep_scores_at=(3,))
    again = train(DATA, LOSS, SHORT, test=TEST, loss_name="ce", out=tmp_path / "net", keep_scores_at=(3,))
    assert again.was_finished and not first.was_finished
    assert same_weights(first, again) and again.history == first.history
    torch.testing.assert_close(again.scores(TEST.images), first.scores(TEST.images), rtol=1e-4, atol=1e-5)
    assert torch.equal(again.kept_scores[3], first.kept_scores[3])
    fresh = train(DATA, LOSS, SHORT, test=TEST, loss_name="ce", out=tmp_path / "net", keep_scores_at=(3,), fresh=True)
    assert not fresh.was_finished and without_time(fresh.history) == without_time(first.history)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"recipe": Recipe.from_json({**SHORT.to_json(), "rate": 0.1, "seed": 5})},
            "a finished run with another rate and seed; pass",
        ),
        ({"loss_name": "gce"}, "with another loss; pass fresh=True to start again, .* or the `loss_name` of that run"),
        ({"data": DATA.with_labels((DATA.labels + 1) % 3)}, "with another train;"),
        ({"test": None}, "with another test;"),
    ],
)
def test_a_folder_of_another_run_is_refused(tmp_path, change, message):
    arguments = {"data": DATA, "loss": LOSS, "recipe": SHORT, "test": TEST, "loss_name": "ce"}
    train(**arguments, out=tmp_path)
    with pytest.raises(ValueError, match=message):
        train(**arguments | change, out=tmp_path)


def test_what_is_saved_says_everything_and_names_no_place(tmp_path):
    found = train(DATA, LOSS, SHORT, test=TEST, loss_name="ce(smooth)", out=tmp_path)
    told = json.loads((tmp_path / "linearcore.json").read_text())["settings"]
    assert told["recipe"] == SHORT.to_json() and told["loss"] == told["key"]["loss"] == "ce(smooth)"
    assert told["key"]["train"] == DATA.digest and told["key"]["test"] == TEST.digest
    assert told["history"] == found.history and str(tmp_path) not in json.dumps(told)
    loaded = Trained.load(tmp_path)
    assert loaded.recipe == SHORT and loaded.classes == DATA.classes and loaded.failed is None


def test_other_folders_and_other_runs_are_refused(tmp_path):
    with pytest.raises(StoreError, match="must be a saved trained network"):
        Trained.load(tmp_path)
    write_store(tmp_path, "tagger", settings={}, tensors={})
    with pytest.raises(StoreError, match="got a tagger"):
        train(DATA, LOSS, SHORT, loss_name="ce", out=tmp_path)


def test_a_loss_that_is_no_number_is_an_error():
    with pytest.raises(FloatingPointError, match="loss is not finite in epoch 1; try a smaller `lr`"):
        train(DATA, lambda scores, labels: scores.sum(1) / 0.0, SHORT)


def test_the_librarys_own_loss_learns():
    found = train(toy(240), lc.LinearCoreLoss(), Recipe("small", width=8, epochs=4, batch=16), test=TEST)
    assert found.history[-1]["test_accuracy"] > 90


def test_a_compiled_recipe_is_another_run():
    assert differences({"settings": {"compiled": True}}, {"settings": {"compiled": False}}) == "compiled"


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path, below):
    (tmp_path / "some.csv").write_text("a,b")
    with pytest.raises(ValueError, match=r"`out` must be a folder, got the file '.*some.csv'; pass another"):
        train(DATA, LOSS, SHORT, loss_name="ce", out=tmp_path / "some.csv" / below)


def test_a_result_is_shown_in_a_line():
    found = train(DATA, LOSS, replace(SHORT, epochs=1))
    assert repr(found) == "Trained(small, 1 of 1 epochs, 3 classes)"
    assert repr(replace(found, loss="ce", name="first", failed="why")) == "Trained(first: why, 3 classes, loss=ce)"
