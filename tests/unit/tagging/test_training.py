import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
import torch

from linearcore.runtime import StoreError, is_store, read_store
from linearcore.tagging import StoppedError, Tagger, Training, train
from linearcore.tagging._heads import MANY_TAGS
from tests.fresh_python import SOURCE
from tests.tagged_text import sentences

FOLDER, KIND = "checkpoint", "training run of a tagger"
DATA, DEV = sentences(80), sentences(20, seed=1)
SHORT = Training(epochs=3, batch_tokens=64, seed=3)


@pytest.mark.parametrize("loss", ["lc", "crf", "ssvm", "ce"])
def test_every_loss_learns(loss):
    found = train(sentences(300), sentences(100, seed=1), Training(loss=loss, epochs=3, batch_tokens=128))
    # A word in -a, one of four, is a noun or a verb: without its neighbours, some 88 % would be right.
    assert found.tagger.metadata["dev_accuracy"] > 93
    assert found.history[-1]["loss"] < found.history[0]["loss"]
    assert found.resumed is None


def test_the_same_seed_gives_the_same_weights_and_leaves_torchs_own_stream_alone():
    torch.manual_seed(11)
    before = torch.get_rng_state()
    one, other = (train(DATA, DEV, SHORT).tagger for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert same(one, other)
    assert not same(one, train(DATA, DEV, Training(epochs=3, batch_tokens=64, seed=4)).tagger)


def same(one, other):
    pairs = zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True)
    return all(torch.equal(left, right) for left, right in pairs)


def test_the_best_epoch_is_kept_and_dev_decides_when_to_stop(tmp_path):
    # Dev sentences with tags that training contradicts: more training cannot help there for long.
    wrong = [(words, tags[1:] + tags[:1]) for words, tags in DEV]
    found = train(DATA, wrong, Training(epochs=30, patience=2, batch_tokens=64), out=tmp_path / "model")
    accuracies = [row["dev_accuracy"] for row in found.history]
    best = max(accuracies)
    assert len(accuracies) == accuracies.index(best) + 3 < 30
    assert found.tagger.metadata["dev_accuracy"] == best
    right = sum(sum(a == b for a, b in zip(found.tagger.tag(words), tags, strict=True)) for words, tags in wrong)
    assert 100 * right / sum(len(words) for words, _ in wrong) == pytest.approx(best)
    assert not (tmp_path / "model" / FOLDER).exists()


def test_of_equal_validations_the_later_weights_are_kept_and_patience_still_ends_training():
    # Every prediction is right, because there is one tag.
    one_tag = [(words, ["X"] * len(words)) for words, _ in DATA]
    found = train(one_tag, one_tag[:5], Training(epochs=9, patience=2, batch_tokens=256, hidden=4, dropout=0.0))
    assert [row["dev_accuracy"] for row in found.history] == [100.0] * 3
    assert found.best_epoch == 3 and not found.was_improving
    assert not train(one_tag, one_tag[:5], Training(epochs=3, batch_tokens=256, hidden=4)).was_improving
    assert train(DATA, DEV, Training(epochs=1, hidden=4)).was_improving


def test_many_validation_sentences_are_decoded_less_often(monkeypatch):
    found = train(DATA[:20], DATA, Training(epochs=10, batch_tokens=64, patience=10, hidden=8))
    assert [row["epoch"] for row in found.history] == [4, 8, 10]
    assert found.history[-1]["steps"] % 10 == 0 and found.history[-1]["steps"] >= 10
    assert found.last_epoch == 10 and found.best_epoch in (4, 8, 10)
    # Patience counts epochs, not validations.
    monkeypatch.setattr("linearcore.tagging._loop.dev_accuracy", lambda *_: 0.0)
    stopped = train(DATA[:20], DATA, Training(epochs=40, batch_tokens=64, patience=7, hidden=8))
    assert [row["epoch"] for row in stopped.history] == [4, 8, 12]


def test_the_head_for_many_tags_is_saved_with_the_model(tmp_path):
    many = [([f"word{number}"], [f"TAG{number}"]) for number in range(MANY_TAGS)]
    settings = Training(epochs=1, batch_tokens=2000, hidden=4, embedding=4)
    train(many, many[:1], settings, out=tmp_path)
    tagger = Tagger.load(tmp_path)
    head = tagger.model.head
    assert (head.rank, head.unary, head.surrogate.sharpness) == (64, 0.5, 4.0)
    assert (tagger.metadata["training"]["rank"], tagger.metadata["training"]["epochs"]) == (64, 1)
    # Tags that never occur do not count.
    padded = train(DATA, DEV, replace(settings, inflate=MANY_TAGS)).tagger
    assert padded.model.head.rank is None and len(padded.vocabulary.tags) == MANY_TAGS


RUN = """
import sys
from linearcore.tagging import Training, train
from tests.tagged_text import sentences
settings = Training(epochs=3, batch_tokens=64, seed=3, chain_lr_scale=float(sys.argv[2]) if sys.argv[2:] else None)
train(sentences(80), sentences(20, seed=1), settings, out=sys.argv[1], save_every=0.0)
"""


def start(out, chain_lr_scale=None):
    path = os.pathsep.join([str(SOURCE), os.getcwd()])
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, str(out), *([] if chain_lr_scale is None else [str(chain_lr_scale)])]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("chain_lr_scale", [None, pytest.param(0.5, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_to_equal_weights(chain_lr_scale, tmp_path, capsys):
    settings = replace(SHORT, chain_lr_scale=chain_lr_scale)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        whole = train(DATA, DEV, settings).tagger
        out = tmp_path / "model"
        process = start(out, chain_lr_scale)
        wait_for(out, lambda state: state["epoch"] == 1 and state["batch"] >= 2, process)
        process.kill()
        process.communicate()
        assert not (out / "linearcore.json").exists()
        state = read_store(out / FOLDER, KIND).settings["state"]
        assert (state["epoch"], state["batch"]) >= (1, 2)
        found = train(DATA, DEV, settings, out=out)
    finally:
        torch.set_num_threads(threads)
    assert found.resumed == (state["epoch"] + 1, state["batch"])
    assert (
        f"resuming in epoch {state['epoch'] + 1} after {state['batch']} batches; best validation accuracy"
        in capsys.readouterr().err
    )
    assert same(found.tagger, whole)
    assert same(Tagger.load(out), whole)
    pairs = zip(found.history, whole.metadata["history"], strict=True)
    # Losses are added up whenever someone looks, in groups that time decides.
    assert all(one["dev_accuracy"] == other["dev_accuracy"] for one, other in pairs)
    assert [row["loss"] for row in found.history] == pytest.approx(
        [row["loss"] for row in whole.metadata["history"]], rel=1e-12
    )


def wait_for(out, is_there, process):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        try:
            if is_there(json.loads((out / FOLDER / "linearcore.json").read_text())["settings"]["state"]):
                return
        except (OSError, ValueError):
            pass
        time.sleep(0.002)
    raise AssertionError("the run never came so far")


def test_an_interrupted_run_is_saved_and_goes_on(tmp_path):
    out = tmp_path / "model"

    def interrupt_once_it_runs():
        # Not before it has saved itself: until the handlers are there, the signal would end the tests.
        deadline = time.monotonic() + 120
        while not is_store(out / FOLDER) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_once_it_runs, daemon=True).start()
    with pytest.raises(StoppedError, match=r"stopped in epoch .* run the same command again to resume"):
        train(DATA, DEV, Training(epochs=500, patience=500, batch_tokens=64), out=out, save_every=0.0)
    state = read_store(out / FOLDER, KIND).settings["state"]
    assert state["epoch"] + state["batch"] > 0
    with pytest.raises(StoreError, match="contains an unfinished training run"):
        Tagger.load(out)
    with pytest.raises(ValueError, match="holds an unfinished run with another epochs, patience and seed; pass --fresh"):
        train(DATA, DEV, SHORT, out=out)
    with pytest.raises(ValueError, match="holds an unfinished run with another dev, epochs, patience and seed"):
        train(DATA, DEV[:5], SHORT, out=out)
    assert train(DATA, DEV, SHORT, out=out, fresh=True).resumed is None


def test_a_finished_tagger_is_not_trained_twice_nor_overwritten_by_accident(tmp_path):
    settings = Training(epochs=1, batch_tokens=256)
    first = train(DATA, DEV, settings, out=tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = train(DATA, DEV, settings, out=tmp_path)
    assert again.was_finished and not first.was_finished
    assert same(again.tagger, first.tagger) and again.history == first.history
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    with pytest.raises(ValueError, match=r"holds a finished tagger with another seed; pass --fresh \(fresh=True\)"):
        train(DATA, DEV, Training(epochs=1, batch_tokens=256, seed=1), out=tmp_path)
    with pytest.raises(ValueError, match="holds a finished tagger with another train"):
        train(DATA[1:], DEV, settings, out=tmp_path)
    assert not train(DATA, DEV, settings, out=tmp_path, fresh=True).was_finished


def test_nothing_to_train_on():
    with pytest.raises(ValueError, match="`sentences` must have words, got none"):
        train([], DEV)
    with pytest.raises(ValueError, match="`dev` must have words, got none"):
        train(DATA, [([], [])])
    with pytest.raises(ValueError, match="`dev` must have a tag for each word, got 2 words and 1 tags in sentence 20"):
        train(DATA, [*DEV, (["a", "b"], ["X"])])


def test_a_loss_that_runs_away_is_said():
    with pytest.raises(FloatingPointError, match="the loss is NaN in epoch"):
        train(DATA, DEV, Training(optimizer="sgd", lr=1e30, clip=1e30, epochs=4, batch_tokens=64))


def test_inflated_tags_never_come(tmp_path):
    settings = Training(epochs=3, batch_tokens=64, inflate=50)
    found = train(DATA, DEV, settings, columns="upos+feats", out=tmp_path).tagger
    assert len(found.vocabulary.tags) == 50 and found.vocabulary.tags[-1].count("never") == 2
    assert Tagger.load(tmp_path).model.projection.out_features == 50
    assert not any("never" in tag for words, _ in DEV for tag in found.tag(words))


def test_validation_tags_that_do_not_occur_in_training_are_counted(capsys):
    dev = [(words, ["NEW", *tags[1:]]) for words, tags in DEV]
    train(DATA, dev, Training(epochs=1, hidden=4))
    num_words = sum(len(words) for words, _ in dev)
    assert f"{len(dev)} of {num_words} validation words have one of 1 tags" in capsys.readouterr().err
    with pytest.raises(ValueError, match="`dev` must have tags that occur in the training sentences, got none"):
        train(DATA, [(words, ["NEW"] * len(words)) for words, _ in DEV], Training(epochs=1, hidden=4))
