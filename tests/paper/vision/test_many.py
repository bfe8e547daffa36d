import io
import os
import signal
import threading
from dataclasses import replace

import pytest
import torch

from linearcore.losses.baselines import EarlyLearning, generalized_cross_entropy, mean_absolute_error
from linearcore.runtime import Progress
from linearcore_paper.vision import Run, StoppedError, Trained, train_many
from tests.paper.vision.toy_images import LOSS, SHORT, same_weights, toy, without_time

DATA, TEST = toy(70), toy(41, seed=1)
FEW = toy(40, seed=2)


def runs(**more):
    """Of different lengths, sizes and losses."""
    return [
        Run(DATA, LOSS, SHORT, test=TEST, name="ce", **more),
        Run(FEW, generalized_cross_entropy, replace(SHORT, epochs=2), test=TEST, name="gce", **more),
        Run(DATA, EarlyLearning(70, 3), replace(SHORT, epochs=4), name="elr", **more),
    ]


def test_many_runs_give_the_bits_that_each_gives_alone():
    together = train_many(runs())
    alone = [train_many([run])[0] for run in runs()]
    for one, other in zip(together, alone, strict=True):
        assert same_weights(one, other)
        assert without_time(one.history) == without_time(other.history)
    assert [found.name for found in together] == ["ce", "gce", "elr"]
    assert [len(found.history) for found in together] == [3, 2, 4]


def test_a_run_that_fails_leaves_the_others_alone(tmp_path):
    def bad(scores, labels):
        return scores.sum(1) / 0.0

    stream = io.StringIO()
    with Progress(stream) as progress:
        group = [Run(DATA, bad, SHORT, loss_name="bad", name="bad", out=tmp_path / "bad"), *runs()]
        failed, *others = train_many(group, progress=progress)
    assert failed.failed == "loss is not finite in epoch 1" and failed.history == []
    assert all(same_weights(one, other) for one, other in zip(others, train_many(runs()), strict=True))
    assert "bad: failed: loss is not finite in epoch 1" in stream.getvalue()
    assert Trained.load(tmp_path / "bad").failed == failed.failed
    again = Run(DATA, bad, SHORT, loss_name="bad", name="bad", out=tmp_path / "bad")
    assert again.is_done and train_many([again])[0].was_finished


def test_each_run_is_written_as_soon_as_it_is_done(tmp_path):
    group = [
        Run(DATA, LOSS, replace(SHORT, epochs=n), loss_name="ce", out=tmp_path / str(n), keep_weights=n == 3)
        for n in (1, 2, 3)
    ]
    written = []
    finish = group[2].finish

    def look():
        written.append(sorted(path.name for path in tmp_path.iterdir() if (path / "linearcore.json").is_file()))
        return finish()

    group[2].finish = look
    train_many(group)
    assert written == [["1"], ["1", "2"], ["1", "2"]]
    assert Trained.load(tmp_path / "2").network is None
    assert same_weights(Trained.load(tmp_path / "3"), group[2].result())
    with pytest.raises(ValueError, match=r"`network` must .*, got None; train with keep_weights=True"):
        Trained.load(tmp_path / "2").scores(TEST.images)


def interrupting(place, inner=LOSS):
    """Sends SIGINT in its so-manieth step."""
    calls = []

    def loss(scores, labels):
        calls.append(1)
        if len(calls) == place + 1:  # One call looked whether the loss fits.
            os.kill(os.getpid(), signal.SIGINT)
        return inner(scores, labels)

    return loss


def group(tmp_path, place=10**9):
    def named(name):
        return {"loss_name": name, "name": name, "out": tmp_path / name}

    first = Run(DATA, interrupting(place), SHORT, test=TEST, keep_scores_at=(1,), **named("ce"))
    second = Run(FEW, EarlyLearning(40, 3), replace(SHORT, epochs=4), **named("elr"))
    third = Run(FEW, mean_absolute_error, replace(SHORT, epochs=1), **named("mae"))
    return [first, second, third]


@pytest.mark.parametrize("place, told", [(6, "epoch 2 after 2 steps"), (8, "epoch 2 after 4 steps"), (1, "epoch 1 after 1")])
def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path, place, told):
    whole = train_many(group(tmp_path / "whole"))
    with pytest.raises(StoppedError, match=f"stopped in {told}.*the same command to resume"):
        train_many(group(tmp_path / "parts", place))
    assert (tmp_path / "parts" / "ce" / "checkpoint").is_dir()
    parts = train_many(group(tmp_path / "parts"))
    for one, other in zip(whole, parts, strict=True):
        assert same_weights(one, other) and without_time(one.history) == without_time(other.history)
    assert parts[0].resumed is not None and torch.equal(parts[0].kept_scores[1], whole[0].kept_scores[1])
    assert not (tmp_path / "parts" / "ce" / "checkpoint").exists()
    assert all(run.is_done for run in group(tmp_path / "parts"))


def test_without_a_folder_an_interrupt_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        train_many([Run(DATA, interrupting(2), SHORT)])


def test_a_run_that_was_killed_goes_on_from_the_last_epoch(tmp_path):
    class KilledError(Exception):
        pass

    def killed(scores, labels):
        calls.append(1)
        if len(calls) == 11:
            raise KilledError
        return LOSS(scores, labels)

    calls = []
    whole = train_many(group(tmp_path / "whole"))[0]
    with pytest.raises(KilledError):
        run = Run(DATA, killed, SHORT, test=TEST, loss_name="ce", out=tmp_path / "ce", keep_scores_at=(1,))
        train_many([run], save_every=0.0)
    found = train_many(group(tmp_path)[:1])[0]
    assert found.resumed == (3, 0) and same_weights(found, whole)


def test_two_runs_cannot_share_a_folder(tmp_path):
    with pytest.raises(ValueError, match="`runs` must have different folders, got two equal ones"):
        train_many([Run(DATA, LOSS, SHORT, loss_name="ce", out=out) for out in (tmp_path, tmp_path / "." / "")])


def test_outside_the_main_thread_it_works_too():
    found = []
    thread = threading.Thread(target=lambda: found.extend(train_many(runs()[1:2])))
    thread.start()
    thread.join()
    assert len(found) == 1


def test_a_log_has_a_line_for_each_run_and_a_single_run_one_for_each_epoch():
    for group_of, lines in ((runs(), 3), (runs()[:1], 3)):
        stream = io.StringIO()
        with Progress(stream) as progress:
            train_many(group_of, progress=progress)
        assert len(stream.getvalue().splitlines()) == lines + 1
    assert "  ce: epoch 3 of 3  loss " in stream.getvalue() and "test " in stream.getvalue()
    assert "training: 12 steps in" in stream.getvalue()
