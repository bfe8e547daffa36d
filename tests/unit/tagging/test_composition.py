import itertools
import math
import random
from collections import Counter

import pytest
import torch
from torch import nn

from linearcore.heads import ChainCRF
from linearcore.tagging import StoppedError, Tagger, TaggingModel, Training, Vocabulary, train
from linearcore.tagging._composition import UNSEEN_DISCOUNT, Composition, plain_copy, tag_parts, unseen_tags
from linearcore.tagging.encoders import BiLSTM

SEEN = ["NOUN Case=Nom|Number=Sing", "NOUN Case=Acc|Number=Plur", "ADP _", "VERB Mood=Ind"]
UNSEEN = ["NOUN Case=Acc|Number=Sing", "NOUN Case=Nom|Number=Plur"]
VOCABULARY = Vocabulary([], [], SEEN).with_unseen(UNSEEN)


@pytest.mark.parametrize(
    "tag", ["NOUN", "B-PER", "NOUN NN", "NOUN Case", "NOUN Case=", "NOUN =Nom", "NOUN Case=Nom|", " Case=Nom", ""]
)
def test_other_tags_are_refused_in_one_line(tag):
    with pytest.raises(ValueError, match=r"`sentences` must have tags such as .*compose") as caught:
        tag_parts(tag)
    assert repr(tag) in str(caught.value) and "\n" not in str(caught.value)


def test_unseen_tags_are_ranked_by_their_probability():
    generator = random.Random(0)
    counts = Counter()
    for _ in range(60):
        features = [f"{name}={generator.choice('abc')}" for name in generator.choice([("F", "G", "H"), ("F", "G"), ("H",)])]
        counts[f"{generator.choice(['NOUN', 'VERB'])} {'|'.join(features)}"] += generator.randint(1, 9)
    found = unseen_tags(counts, 10**6)
    # The definition, by brute force.
    shapes, values = Counter(), {}
    for tag, count in counts.items():
        pos, *features = tag_parts(tag)
        names = tuple(feature[0] for feature in features)
        shapes[pos, names] += count
        for feature in features:
            values.setdefault((pos, feature[0]), Counter())[feature] += count
    costs = {}
    for (pos, names), count in shapes.items():
        for chosen in itertools.product(*(values[pos, name] for name in names)):
            logs = [math.log(values[pos, part[0]][part] / values[pos, part[0]].total()) for part in chosen]
            costs[f"{pos} {'|'.join(chosen)}"] = -math.log(count) - sum(logs)
    expected = [tag for tag in costs if tag not in counts]
    assert sorted(found) == sorted(expected) and len(found) > 10
    assert all(costs[one] <= costs[other] + 1e-9 for one, other in itertools.pairwise(found))
    assert unseen_tags(dict(reversed(counts.items())), 7) == found[:7]


def test_to_read_the_device_draws_no_random_numbers():
    model = TaggingModel(BiLSTM([], hidden=4), VOCABULARY.tags, composition=Composition.of(VOCABULARY)).train()
    before = torch.get_rng_state()
    assert Tagger(model, VOCABULARY, "upos+feats").device == torch.device("cpu")
    assert torch.equal(torch.get_rng_state(), before)


def test_many_possible_tags_are_not_enumerated():
    features = [f"F{number}={value}" for number in range(40) for value in "ab"]
    counts = {f"X {'|'.join(features[start::2])}": 1 for start in (0, 1)}
    assert len(set(unseen_tags(counts, 100)) - set(counts)) == 100


@pytest.mark.parametrize("rank", [None, 2])
def test_scores_are_sums_over_parts(rank):
    torch.manual_seed(0)
    composition = Composition.of(VOCABULARY)
    projection, head = nn.Linear(3, 6), ChainCRF(6, rank=rank)
    composition.apply(projection, head)
    assert isinstance(projection, nn.Linear) and projection.weight.shape == (6, 3)
    for parameter in [*projection.parameters(), *head.parameters()]:
        nn.init.normal_(parameter)
    projection.eval(), head.eval()
    parametrization = projection.parametrizations.weight
    own, parts = parametrization.original, parametrization[0].parts
    # Parts: NOUN, Case=Nom, Number=Sing, Case=Acc, Number=Plur, ADP, VERB, Mood=Ind.
    torch.testing.assert_close(projection.weight[1], parts[0] + parts[3] + parts[4] + own[1])
    torch.testing.assert_close(projection.weight[4], parts[0] + parts[3] + parts[2])
    chain = head.chain()
    torch.testing.assert_close(
        chain.start[2],
        head.parametrizations.start_transitions[0].parts[5] + head.parametrizations.start_transitions.original[2],
    )
    if rank is None:
        pairs = head.parametrizations.transitions[0].parts
        torch.testing.assert_close(chain.transitions[4, 3], pairs[[0, 3, 2]][:, [6, 7]].sum())


def test_own_rows_are_dropped_in_training_without_bias():
    torch.manual_seed(0)
    projection = nn.Linear(3, 6)
    Composition.of(VOCABULARY).apply(projection, None)
    own = projection.parametrizations.weight.original
    nn.init.normal_(own)
    expected = projection.eval().weight.detach()
    projection.train()
    draws = torch.stack([projection.weight.detach() for _ in range(4000)])
    torch.testing.assert_close(draws.mean(0), expected, atol=0.1, rtol=0.0)
    assert not torch.equal(draws[0], draws[1]) or not torch.equal(draws[1], draws[2])
    assert torch.equal(draws[:, 4:], draws[:1, 4:].expand(4000, 2, 3))
    # The scores of tags that do not occur are lower in training.
    bias = projection.bias.detach()
    torch.testing.assert_close((projection.eval().bias.detach() - bias)[4:], torch.full((2,), UNSEEN_DISCOUNT))


@pytest.mark.parametrize("loss", ["lc", "ce"])
def test_a_plain_copy_has_the_same_scores(loss):
    model = TaggingModel(BiLSTM(["a"], hidden=3), 6, loss, composition=Composition.of(VOCABULARY)).eval()
    projection = plain_copy(model.projection)
    assert type(projection) is nn.Linear and set(projection.state_dict()) == {"weight", "bias"}
    assert torch.equal(projection.weight, model.projection.weight) and torch.equal(projection.bias, model.projection.bias)
    if model.head is not None:
        head = plain_copy(model.head)
        assert set(head.state_dict()) == {"start_transitions", "end_transitions", "transitions"}
        assert all(torch.equal(one, other) for one, other in zip(head.chain(), model.head.chain(), strict=True))
    assert type(plain_copy(nn.Linear(2, 3))) is nn.Linear


def test_numbers_of_parts_stay_when_tags_are_added():
    small, large = (
        Composition.of(VOCABULARY),
        Composition.of(VOCABULARY.with_unseen(["ADP Case=Gen", "NOUN Case=Gen|Number=Sing"])),
    )
    assert torch.equal(large.incidence[:6, :8], small.incidence) and not large.incidence[:6, 8:].any()


#: Combinations that never occur in the training sentences.
MISSING = {("n", "u", "s"), ("v", "w", "t"), ("a", "x", "s"), ("n", "y", "t"), ("v", "z", "s")}


def word(pos, case, number, middle="b"):
    """A word that spells its part of speech, case and number, and its tag."""
    return pos * 3 + middle + number + case, f"{pos.upper()} Case={case.upper()}|Number={number.upper()}"


def tagged(count, seed):
    """Sentences of six words without the missing combinations."""
    generator, made = random.Random(seed), []
    combinations = sorted(set(itertools.product("nva", "uvwxyz", "st")) - MISSING)
    for _ in range(count):
        pairs = [word(*generator.choice(combinations), generator.choice("bcdfg")) for _ in range(6)]
        made.append(([word for word, _ in pairs], [tag for _, tag in pairs]))
    return made


@pytest.mark.parametrize("loss", ["lc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ce", "crf", "ssvm"))])
def test_tags_that_were_never_seen_are_predicted(loss, tmp_path):
    data, dev = tagged(300, 0), tagged(40, 1)
    settings = Training(loss=loss, compose=True, epochs=6, batch_tokens=128, embedding=8, hidden=32, seed=1)
    found = train(data, dev, settings, columns="upos+feats", out=tmp_path).tagger
    assert found.metadata["dev_accuracy"] > 90
    pairs = [[word(*combination, middle) for combination in sorted(MISSING)] for middle in "bcdfg"]
    test = [([word for word, _ in row], [tag for _, tag in row]) for row in pairs]
    tags = test[0][1]
    assert set(found.vocabulary.unseen) == set(tags)
    # They are counted as tags that are not in the training data, and some as correct: none could be without `compose`.
    loaded, evaluation = Tagger.load(tmp_path), found.evaluation()
    for words, gold in test:
        predicted = loaded.tag(words)
        assert predicted == found.tag(words)
        evaluation.add(words, gold, predicted)
    assert evaluation.unseen_tags == dict.fromkeys(tags, 5)
    assert evaluation.words.correct == evaluation.unseen_correct >= 5


def test_number_of_unseen_tags():
    data = tagged(40, 0)
    seen = len({tag for _, tags in data for tag in tags})
    for unseen, expected in ((None, min(seen, 36 - seen)), (1, 1)):
        settings = Training(compose=True, unseen_tags=unseen, epochs=1, hidden=4)
        found = train(data, data, settings, columns="upos+feats").tagger.vocabulary
        assert (len(found.unseen), len(found.tags)) == (expected, seen + expected)


def test_tags_without_features_cannot_be_composed():
    with pytest.raises(ValueError, match=r"`sentences` must have tags such as .*, got 'NOUN'"):
        train([(["a"], ["NOUN"])], [(["a"], ["NOUN"])], Training(compose=True), columns="upos")


def test_an_interrupted_run_goes_on_to_equal_weights(tmp_path, monkeypatch):
    data, settings = tagged(30, 0), Training(compose=True, epochs=2, batch_tokens=64, hidden=8)
    whole = train(data, data, settings, columns="upos+feats").tagger

    def stop(run, *_):
        run._save()
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr("linearcore.tagging._loop.TrainingLoop._end_epoch", stop)
        with pytest.raises(StoppedError):
            train(data, data, settings, columns="upos+feats", out=tmp_path)
    found = train(data, data, settings, columns="upos+feats", out=tmp_path)
    assert found.resumed is not None
    pairs = zip(found.tagger.model.state_dict().values(), whole.model.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
