from dataclasses import replace

import pytest
import torch

from linearcore.losses.baselines import EarlyLearning, generalized_cross_entropy
from linearcore_paper.vision import Recipe, Run, train_many
from tests.paper.vision.toy_images import CLASSES, LOSS, SHORT, same_weights, toy, without_time

DATA, TEST = toy(70), toy(41, seed=1)
WRONG = TEST.with_labels((TEST.labels + 1) % 3)


def done(run):
    while not run.is_done:
        run.epoch()
    return run


@pytest.mark.parametrize("network", ["small", "resnet18"])
def test_a_run_learns(network):
    recipe = Recipe(network, width=8, epochs=6, batch=16, lr=0.05)
    run = done(Run(toy(240), LOSS, recipe, test=TEST, validation=WRONG))
    assert run.history[-1]["test_accuracy"] > 90 and run.history[-1]["validation_accuracy"] < 10
    assert run.history[-1]["loss"] < run.history[0]["loss"]
    assert [row["epoch"] for row in run.history] == [1, 2, 3, 4, 5, 6]


def test_rows_say_what_happened():
    run = Run(DATA, LOSS, SHORT, test=TEST, watch_train=True)
    row = run.epoch()
    assert set(row) == {
        "epoch", "loss", "test_accuracy", "validation_accuracy", "train_loss", "train_accuracy", "rate", "seconds",
    }  # fmt: skip
    assert row["validation_accuracy"] is None
    scores = run.scores(TEST.images)
    assert row["test_accuracy"] == pytest.approx(100 * float((scores.argmax(1) == TEST.labels).double().mean()), abs=1e-4)
    scores = run.scores(DATA.images)
    assert row["train_accuracy"] == pytest.approx(100 * float((scores.argmax(1) == DATA.labels).double().mean()), abs=1e-4)
    assert row["train_loss"] == pytest.approx(float(LOSS(scores, DATA.labels).mean()), rel=1e-5)
    assert row["rate"] == pytest.approx(0.05 * (1 + torch.cos(torch.tensor(torch.pi * 3 / 12))) / 2)


def test_looking_changes_nothing_and_can_be_rarer():
    often = done(Run(DATA, LOSS, SHORT, test=TEST, watch_train=True, keep_scores_at=(1, 2)))
    rarely = done(Run(DATA, LOSS, SHORT, test=TEST, evaluate_every=2))
    assert same_weights(often.result(), rarely.result())
    assert [row["test_accuracy"] is None for row in rarely.history] == [True, False, False]
    assert [row["loss"] for row in often.history] == [row["loss"] for row in rarely.history]


def test_scores_are_kept_where_they_are_asked_for():
    run = Run(DATA, LOSS, SHORT, keep_scores_at=(2,))
    run.epoch()
    run.epoch()
    expected = run.scores(DATA.images)
    done(run)
    kept = run.result().kept_scores
    assert list(kept) == [2] and torch.equal(kept[2], expected)
    assert not torch.equal(run.scores(DATA.images), expected)


def seen_by(loss_scale, recipe=SHORT):
    """The samples that a loss was told of, step by step."""
    seen = []

    def loss(scores, labels, index):
        seen.append((index.tolist(), labels.tolist()))
        return loss_scale * LOSS(scores, labels)

    done(Run(DATA, loss, recipe))
    return seen[1:]  # The first call looked whether the loss fits.


def test_every_loss_sees_the_same_samples_in_the_same_order():
    one = seen_by(1.0)
    assert one == seen_by(0.1) and len(one) == 12
    assert one != seen_by(1.0, replace(SHORT, seed=4))
    assert one[:4] != one[4:8] != one[8:], "every epoch has its own order"
    assert all(DATA.labels[index].tolist() == labels for index, labels in one)


def test_networks_begin_alike_and_torchs_own_stream_is_left_alone():
    torch.manual_seed(11)
    before = torch.get_rng_state()
    runs = [Run(DATA, loss, SHORT) for loss in (LOSS, generalized_cross_entropy)]
    first = [run.scores(TEST.images) for run in runs]
    other = Run(DATA, LOSS, replace(SHORT, seed=4)).scores(TEST.images)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*first) and not torch.equal(first[0], other)


def test_early_learning_remembers_every_sample_that_was_seen():
    loss = EarlyLearning(len(DATA), 3)
    run = Run(DATA, loss, SHORT)
    run.epoch()
    seen = run._stepper.state()["loss.history"].any(1)
    assert int(seen.sum()) == 64 and not loss.history.any()
    assert len(done(run).history) == 3


def test_a_loss_that_is_no_number_ends_the_run_and_says_when():
    steps = []

    def loss(scores, labels):
        steps.append(1)
        return LOSS(scores, labels) / (0.0 if len(steps) > 6 else 1.0)

    run = Run(DATA, loss, SHORT)
    assert run.epoch() is not None and run.epoch() is None
    assert run.is_done and run.result().failed == "loss is not finite in epoch 2"
    assert len(run.history) == 1


@pytest.mark.parametrize("count, batch, steps", [(70, 16, 4), (64, 16, 4), (17, 17, 1), (5, 2, 2)])
def test_uneven_sizes_do(count, batch, steps):
    run = Run(toy(count), LOSS, replace(SHORT, batch=batch, epochs=1), test=TEST)
    assert run.steps == steps and run.epoch()["test_accuracy"] is not None


def test_images_of_one_channel_and_other_sizes_do():
    grey = toy(40, side=12)
    grey = replace(grey, images=grey.images[:, :1, :, :9].contiguous())
    assert done(Run(grey, LOSS, SHORT, test=grey)).history[-1]["test_accuracy"] >= 0


def test_a_folder_has_one_run_at_a_time(tmp_path):
    out = tmp_path / "run"
    options = {"loss_name": "ce", "out": out}
    first = Run(DATA, LOSS, SHORT, **options)
    first.epoch()
    first.save()
    for fresh in (False, True):
        with pytest.raises(ValueError, match="`out` must be used by one run at a time"):
            Run(DATA, LOSS, SHORT, fresh=fresh, **options).epoch()
    first.close()
    second = Run(DATA, LOSS, SHORT, **options)
    second.prepare()
    assert second.resumed == (2, 0)
    with pytest.raises(ValueError, match="`out` must be used by one run at a time"):
        first.epoch()
    with pytest.raises(ValueError, match="`out` must be used by one run at a time"):
        train_many([Run(DATA, LOSS, SHORT, **options)])
    done(second)
    assert not (out / ".lock").exists()
    assert Run(DATA, LOSS, SHORT, **options).is_done
    (out / "linearcore.json").write_text("{")
    with pytest.raises(ValueError, match="fresh=True"):
        Run(DATA, LOSS, SHORT, **options)
    assert done(Run(DATA, LOSS, SHORT, fresh=True, **options)).resumed is None


def test_after_the_end_nothing_more_can_be_done():
    run = Run(DATA, LOSS, SHORT)
    with pytest.raises(ValueError, match="`run` must be done, got 0 of 3 epochs"):
        run.result()
    with pytest.raises(ValueError, match="`run` must be started and not finished"):
        run.step()
    done(run)
    with pytest.raises(ValueError, match="`run` must be started and not finished"):
        run.epoch()
    assert without_time(run.history) == without_time(run.result().history)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"recipe": replace(SHORT, batch=71)}, "`data` must have at least 71 images, got 70"),
        ({"test": toy(9, side=4)}, "`test` must have the 3 classes of `data` and images of"),
        ({"validation": replace(TEST, classes=(*CLASSES, "pink"))}, "`validation` must have the 3 classes"),
        ({"evaluate_every": 0}, "`evaluate_every` must be a positive integer"),
        ({"keep_scores_at": (0,)}, "`keep_scores_at` must be epochs from 1 to 3"),
        ({"keep_scores_at": (4,)}, "`keep_scores_at` must be epochs from 1 to 3"),
        ({"out": "nowhere"}, "`loss_name` must be given with `out`, got none; name the loss with its options"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Run(DATA, LOSS, **{"recipe": SHORT} | arguments)


@pytest.mark.skipif(torch.cuda.is_available(), reason="wants a machine without a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="`device` must be one that this machine has, got 'cuda'"):
        Run(DATA, LOSS, SHORT, device="cuda")


@pytest.mark.parametrize(
    "images, error, message",
    [
        (TEST.images.float(), TypeError, "`images` must be torch.uint8, got torch.float32"),
        (TEST.images.numpy(), TypeError, "`images` must be a torch tensor, got ndarray"),
        (TEST, TypeError, "`images` must be a torch tensor, got Images; pass its `images`"),
        (TEST.images[0], ValueError, r"`images` must have shape .*, got \(3, 8, 8\); pass one image as `image\[None\]`"),
        (
            TEST.images[:, :1],
            ValueError,
            r"`images` must have shape \(N, 3, height, width\), got \(41, 1, 8, 8\); pass as many",
        ),
        (TEST.images.permute(0, 2, 3, 1), ValueError, r"got \(41, 8, 8, 3\); move the channels"),
    ],
)
def test_images_that_do_not_fit_get_no_scores(images, error, message):
    run = Run(DATA, LOSS, replace(SHORT, epochs=1))
    for looked in (run, done(Run(DATA, LOSS, replace(SHORT, epochs=1))).result()):
        with pytest.raises(error, match=message) as caught:
            looked.scores(images)
        assert "\n" not in str(caught.value)
        assert looked.scores(TEST.images[:0]).shape == (0, 3)
