import json

import pytest

pytest.importorskip("transformers")
from transformers import BertConfig

from linearcore.heads import ChainCRF, ChainSSVM, LinearCoreChain
from linearcore.surrogates import LinearCore
from linearcore.tagging.hugging_face import ChainConfig

NAMES = {0: "O", 1: "B-X", 2: "I-X"}


@pytest.mark.parametrize(("loss", "kind"), [("lc", LinearCoreChain), ("crf", ChainCRF), ("ssvm", ChainSSVM)])
def test_the_head_is_what_the_options_say(loss, kind):
    head = ChainConfig(loss=loss, id2label=NAMES, rank=2, constraints="bio").head()
    assert type(head) is kind and (head.num_tags, head.rank, head.batch_first, head.strict_mask) == (3, 2, True, False)
    assert not head.constraints.transitions[0, 2] and not head.constraints.start[2]


def test_token_cross_entropy_has_no_head():
    assert ChainConfig(loss="ce").head() is None


def test_surrogate_and_form_reach_the_head():
    head = ChainConfig(
        surrogate={"base": "quartic", "tau": 0.5, "sides": 2}, form="pairwise", unary=0.25, num_labels=4
    ).head()
    assert head.surrogate == LinearCore("quartic", tau=0.5, sides=2)
    assert type(head.form).__name__ == "Pairwise"
    assert ChainConfig(sharpness=4.0, num_labels=4).head().surrogate == LinearCore(sharpness=4.0)
    assert head.unary == 0.25 and ChainConfig(num_labels=4).head().unary == 0.0


@pytest.mark.parametrize(("beam", "labels", "width"), [(None, 600, 0), (None, 601, 16), (5, 2, 5), (0, 1000, 0)])
def test_many_labels_are_decoded_with_a_beam(beam, labels, width):
    assert ChainConfig(beam=beam, num_labels=labels).beam_width == width


def test_json_out_and_in_is_the_same(tmp_path):
    config = ChainConfig(
        BertConfig(hidden_size=24, num_hidden_layers=1),
        rank=3,
        surrogate={"tau": 2.0},
        dropout=0.2,
        beam=4,
        unary=0.5,
        cost="edit",
        id2label=NAMES,
    )
    config.save_pretrained(tmp_path)
    again = ChainConfig.from_pretrained(tmp_path)
    assert isinstance(again.encoder, BertConfig) and again.encoder.hidden_size == 24
    options = ("loss", "rank", "surrogate", "form", "normalize", "constraints", "dropout", "beam", "unary", "sharpness")
    for name in (*options, "cost", "labels"):
        assert getattr(again, name) == getattr(config, name), name
    assert again.label2id == config.label2id or again.labels == ["O", "B-X", "I-X"]


@pytest.mark.parametrize("form", ["pairwise", "centered"])
@pytest.mark.parametrize("normalize", [None, False, True])
def test_mean_or_sum_is_saved_whatever_a_name_means(form, normalize, tmp_path):
    config = ChainConfig(form=form, normalize=normalize, num_labels=4)
    config.save_pretrained(tmp_path)
    is_mean = config.head().form.is_mean
    assert normalize in (None, is_mean)
    assert json.loads((tmp_path / "config.json").read_text())["normalize"] is is_mean
    assert ChainConfig.from_pretrained(tmp_path).head().form == config.head().form


@pytest.mark.parametrize("form", ["pairwise", "centered"])
def test_a_form_of_an_earlier_version_is_the_sum(form, tmp_path):
    # As saved before `normalize` was an option.
    old = {"model_type": "linearcore-chain", "loss": "lc", "form": form, "id2label": {"0": "A", "1": "B"}}
    (tmp_path / "config.json").write_text(json.dumps(old))
    assert not ChainConfig.from_pretrained(tmp_path).head().form.is_mean
    (tmp_path / "config.json").write_text(json.dumps(old | {"normalize": True}))
    assert ChainConfig.from_pretrained(tmp_path).head().form.is_mean


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, r"`loss` must be one of 'lc', 'crf', 'ssvm', 'ce', got 'hinge'"),
        ({"loss": "crf", "normalize": True}, r"`normalize` must be None with loss 'crf', got True"),
        ({"normalize": 1}, r"`normalize` must be True or False, got 1"),
        ({"loss": "ce", "rank": 3}, r"`rank` must be None with loss 'ce', got 3; omit it, or use loss 'lc' or"),
        ({"loss": "ce", "constraints": "bio"}, r"`constraints` must be None with loss 'ce'"),
        ({"loss": "ce", "beam": 3}, r"`beam` must be None with loss 'ce'"),
        ({"loss": "crf", "form": "pairwise"}, r"`form` must be None with loss 'crf', got 'pairwise'"),
        ({"loss": "ssvm", "surrogate": {}}, r"`surrogate` must be None with loss 'ssvm'"),
        ({"surrogate": {"temperature": 1}}, r"`surrogate` must be one of 'base', 'tau', 'sides', 'sharpness', got 'temp"),
        ({"constraints": "iob"}, r"`constraints` must be bio, bioes, bmes or lines of rules, got 'iob'"),
        ({"loss": "crf", "unary": 0.5}, r"`unary` must be None with loss 'crf', got 0.5; omit it, or use loss 'lc'"),
        ({"beam": -1}, r"`beam` must be a beam width, or 0 for exact search, got -1"),
        ({"surrogate": {"tau": 2.0}, "sharpness": 4.0}, r"`sharpness` must be None if `surrogate` is given, got 4.0"),
        ({"form": "pairs"}, r"`form` must be one of 'pairwise', 'centered', 'logodds', got 'pairs'"),
        ({"dropout": 1}, r"`dropout` must be a fraction in \[0, 1\), got 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ChainConfig(**options)
