import functools
import json
from dataclasses import replace

import pytest
import torch

import linearcore as lc
from linearcore.runtime import StoreError, write_store
from linearcore_paper.vision import Recipe, Trained, train
from linearcore_paper.vision._checkpoint import differences
from tests.paper.vision.toy_images import LOSS, SHORT, same_weights, toy, without_time

DATA, TEST = toy(70), toy(41, seed=1)


def test_a_finished_run_is_not_done_again(tmp_path):
    first = train(DATA, LOSS, SHORT, test=TEST, out=tmp_path / "net", keep_scores_at=(3,))
    again = train(DATA, LOSS, SHORT, test=TEST, out=tmp_path / "net", keep_scores_at=(3,))
    assert again.was_finished and not first.was_finished
    assert same_weights(first, again) and again.history == first.history
    torch.testing.assert_close(again.scores(TEST.images), first.scores(TEST.images), rtol=1e-4, atol=1e-5)
    assert torch.equal(again.kept_scores[3], first.kept_scores[3])
    fresh = train(DATA, LOSS, SHORT, test=TEST, out=tmp_path / "net", keep_scores_at=(3,), fresh=True)
    assert not fresh.was_finished and without_time(fresh.history) == without_time(first.history)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"recipe": Recipe(**{**SHORT.to_json(), "rate": 0.1, "seed": 5})},
            "a finished run with another rate and seed; pass",
        ),
        ({"loss": lc.multiclass_loss}, "with another loss; pass fresh=True"),
        ({"data": DATA.with_labels((DATA.labels + 1) % 3)}, "with another train;"),
        ({"test": None}, "with another test;"),
    ],
)
def test_a_folder_of_another_run_is_refused(tmp_path, change, message):
    arguments = {"data": DATA, "loss": LOSS, "recipe": SHORT, "test": TEST}
    train(**arguments, out=tmp_path)
    with pytest.raises(ValueError, match=message):
        train(**arguments | change, out=tmp_path)


def test_what_is_saved_says_everything_and_names_no_place(tmp_path):
    found = train(DATA, LOSS, SHORT, test=TEST, out=tmp_path)
    told = json.loads((tmp_path / "linearcore.json").read_text())["settings"]
    assert told["recipe"] == SHORT.to_json() and told["loss"] == "cross_entropy(reduction='none')"
    assert told["key"]["train"] == DATA.digest and told["key"]["test"] == TEST.digest
    assert told["history"] == found.history and str(tmp_path) not in json.dumps(told)
    loaded = Trained.load(tmp_path)
    assert loaded.recipe == SHORT and loaded.classes == DATA.classes and loaded.failed is None


def test_other_folders_and_other_runs_are_refused(tmp_path):
    with pytest.raises(StoreError, match="must be a saved trained network"):
        Trained.load(tmp_path)
    write_store(tmp_path, "tagger", settings={}, tensors={})
    with pytest.raises(StoreError, match="got a tagger"):
        train(DATA, LOSS, SHORT, out=tmp_path)


def test_a_loss_that_is_no_number_is_an_error():
    with pytest.raises(FloatingPointError, match="loss is not finite in epoch 1; try a smaller rate"):
        train(DATA, lambda scores, labels: scores.sum(1) / 0.0, SHORT)


def test_the_librarys_own_loss_learns():
    found = train(toy(240), lc.LinearCoreLoss(), Recipe("small", width=8, epochs=4, batch=16), test=TEST)
    assert found.history[-1]["test_accuracy"] > 90


def test_a_compiled_recipe_is_another_run():
    assert differences({"settings": {"compiled": True}}, {"settings": {"compiled": False}}) == "compiled"


def smooth(amount):
    def loss(scores, labels):
        return torch.nn.functional.cross_entropy(scores, labels, label_smoothing=amount)

    return loss


class Own(torch.nn.Module):
    def __init__(self, amount):
        super().__init__()
        self._amount = amount

    def forward(self, scores, labels):
        return self._amount * LOSS(scores, labels)


@pytest.mark.parametrize(
    "make",
    [
        lambda number: torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, number])),
        lambda number: torch.nn.CrossEntropyLoss(label_smoothing=number),
        lambda number: lc.LinearCoreLoss(surrogate=lc.LinearCore(tau=1 + number)),
        smooth,
        Own,
        lambda number: lambda scores, labels: number * LOSS(scores, labels),
        lambda number: functools.partial(LOSS, weight=torch.tensor([1.0, 1.0, number])),
    ],
    ids=["weight", "smoothing", "module", "closure", "own", "lambda", "partial"],
)
def test_a_run_with_another_loss_of_the_same_name_is_not_taken_for_this_one(tmp_path, make):
    recipe = replace(SHORT, epochs=1)
    found = train(DATA, make(0.25), recipe, out=tmp_path)
    assert train(DATA, make(0.25), recipe, out=tmp_path).was_finished and found.loss == found.key["loss"]
    with pytest.raises(ValueError, match="with another loss; pass fresh=True"):
        train(DATA, make(0.5), recipe, out=tmp_path)


def test_a_loss_that_cannot_be_told_from_another_has_no_folder(tmp_path):
    thing = object()

    def loss(scores, labels):
        return LOSS(scores, labels) + (thing is None)

    with pytest.raises(
        ValueError, match=r"`loss` must tell what it is made of .*, got an object of object; use functools"
    ) as got:
        train(DATA, loss, SHORT, out=tmp_path)
    assert "\n" not in str(got.value)
    assert train(DATA, loss, replace(SHORT, epochs=1)).loss.startswith("test_a_loss")
    loss.name = "mine"
    assert train(DATA, loss, replace(SHORT, epochs=1), out=tmp_path).loss == "mine"


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path, below):
    (tmp_path / "some.csv").write_text("a,b")
    with pytest.raises(ValueError, match=r"`out` must be a folder, got the file '.*some.csv'; pass another"):
        train(DATA, LOSS, SHORT, out=tmp_path / "some.csv" / below)


def test_a_result_is_shown_in_a_line():
    found = train(DATA, LOSS, replace(SHORT, epochs=1))
    assert repr(found) == "Trained(small, 1 of 1 epochs, 3 classes, loss=cross_entropy(reduction='none'))"
    assert repr(replace(found, name="ce", failed="why")) == (
        "Trained(ce: why, 3 classes, loss=cross_entropy(reduction='none'))"
    )
