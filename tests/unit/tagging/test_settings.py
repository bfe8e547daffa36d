import json

import pytest
import torch

from linearcore.tagging import HeadSettings, Training
from linearcore.tagging._heads import MANY_TAGS


def test_defaults_suit_the_encoder():
    bilstm, transformer = (
        Training(encoder=encoder).with_defaults(200_000, 17) for encoder in ("bilstm", "transformer:some/model")
    )
    assert bilstm.lr > transformer.lr
    assert bilstm.epochs > transformer.epochs
    assert bilstm.hidden == 256 and bilstm.characters is True and transformer.hidden is None
    optional = {"beam", "inflate", "chain_lr_scale", "vectors", "max_vectors", "unseen_tags", "continue_from", "cost"}
    assert {name for name, value in vars(bilstm).items() if value is None} == optional


@pytest.mark.parametrize("encoder", ["bilstm", "transformer:some/model"])
def test_small_corpora_are_trained_for_many_steps_and_large_ones_in_larger_batches(encoder):
    sizes = [100, 1000, 10_000, 100_000, 1_000_000]
    all_settings = [Training(encoder=encoder).with_defaults(size, 17) for size in sizes]
    steps = [size / own.batch_tokens * own.epochs for size, own in zip(sizes, all_settings, strict=True)]
    assert steps == sorted(steps) and steps[2] >= 400
    assert [own.batch_tokens for own in all_settings] == sorted(own.batch_tokens for own in all_settings)
    for name in ("epochs", "patience"):
        values = [getattr(own, name) for own in all_settings]
        assert values == sorted(values, reverse=True) and values[0] > values[-1]
    assert all(own.patience <= own.epochs for own in all_settings)


def test_what_is_given_is_kept():
    given = {"lr": 0.5, "epochs": 3, "batch_tokens": 7, "patience": 9, "dropout": 0.0, "characters": False, "rank": 3}
    settings = Training(**given).with_defaults(1000, 2000)
    assert {name: getattr(settings, name) for name in given} == given
    # Of the options of the head only those that were not given have the defaults for many tags.
    assert (settings.unary, settings.sharpness) == (0.5, 4.0)
    assert settings.with_defaults(10, 10) == settings


def test_the_head_follows_the_number_of_tags():
    few, many = (Training(constraints=None).with_defaults(1000, tags) for tags in (MANY_TAGS - 1, MANY_TAGS))
    assert (few.rank, few.unary, few.sharpness) == (0, 0.0, 1.0)
    assert (many.rank, many.unary, many.sharpness) == (64, 0.5, 4.0)
    assert Training(loss="crf").with_defaults(1000, MANY_TAGS).rank is None
    assert few.make_head(5).rank is None and many.make_head(500).rank == 64
    with torch.random.fork_rng():
        plain, made = (torch.manual_seed(0) and own.make_head(5) for own in (HeadSettings(), few))
        emissions, tags = torch.randn(2, 4, 5), torch.randint(5, (2, 4))
    assert torch.equal(plain.loss(emissions, tags), made.loss(emissions, tags))


def test_json_has_no_path():
    told = Training(encoder="transformer:/somewhere/private/model/").to_json()
    assert told["encoder"] == "transformer:model"
    assert json.loads(json.dumps(told)) == told
    assert Training().to_json()["encoder"] == "bilstm"


def test_json_has_the_keys_of_earlier_versions():
    values = Training(lr=0.5, chain_lr_scale=0.1, weight_decay=0.2, batch_tokens=7).to_json()
    assert (values["rate"], values["chain_rate"], values["decay"], values["tokens"]) == (0.5, 0.1, 0.2, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "mse"}, "`loss` must be one of"),
        ({"encoder": "gru"}, "`encoder` must be bilstm or transformer:PATH, got 'gru'"),
        ({"encoder": "bilstm:"}, "`encoder` must be bilstm or transformer:PATH, got 'bilstm:'"),
        ({"encoder": "my-transformer:x"}, "`encoder` must be bilstm or transformer:PATH"),
        ({"encoder": "transformer:"}, "`encoder` must be bilstm or transformer:PATH"),
        ({"precision": "fp8"}, "`precision` must be one of 'auto', 'fp32', 'bf16', got 'fp8'"),
        ({"optimizer": "lion"}, "`optimizer` must be one of 'adam', 'sgd'"),
        ({"epochs": 0}, "`epochs` must be a positive integer, got 0"),
        ({"patience": True}, "`patience` must be a positive integer, got True"),
        ({"batch_tokens": 1.5}, "`batch_tokens` must be a positive integer"),
        ({"rank": -1}, "`rank` must be a rank, or 0 for a full matrix, got -1"),
        ({"inflate": 0}, "`inflate` must be a positive integer"),
        ({"beam": -1}, "`beam` must be a beam width, or 0 for exact search"),
        ({"lr": 0.0}, "`lr` must be a positive number"),
        ({"clip": float("nan")}, "`clip` must be a positive number"),
        ({"dropout": 1.0}, r"`dropout` must be a fraction in \[0, 1\)"),
        ({"chain_lr_scale": 0.0}, "`chain_lr_scale` must be a positive number, got 0.0"),
        ({"chain_lr_scale": 0.1, "loss": "ce"}, "`chain_lr_scale` must be None with loss 'ce', got 0.1"),
        ({"unary": 1.0}, r"`unary` must be a fraction in \[0, 1\), got 1.0"),
        ({"unary": -0.5}, r"`unary` must be a fraction in \[0, 1\), got -0.5"),
        ({"unary": float("nan")}, r"`unary` must be a fraction in \[0, 1\), got nan"),
        ({"unary": 0.5, "loss": "crf"}, "`unary` must be None with loss 'crf', got 0.5"),
        ({"sharpness": 4.0, "loss": "ce"}, "`sharpness` must be None with loss 'ce', got 4.0"),
        ({"sharpness": 0.0}, "`sharpness` must be a positive number, got 0.0"),
        ({"compiled": True, "loss": "crf"}, "`compiled` must be False with loss 'crf', got True"),
        ({"hidden": 0}, "`hidden` must be a positive integer, got 0"),
        ({"seed": 2**70}, "`seed` must be an integer in"),
        ({"seed": True}, "`seed` must be an integer in"),
        ({"characters": 1}, "`characters` must be True or False, got 1"),
        *(
            (
                {"encoder": "transformer:some/model", name: value},
                f"`{name}` must be None with encoder transformer:some/model",
            )
            for name, value in {"hidden": 64, "embedding": 8, "layers": 2, "dropout": 0.1, "characters": False}.items()
        ),
        ({"warmup": 1.0}, r"`warmup` must be a fraction in \[0, 1\)"),
        ({"weight_decay": -0.1}, "`weight_decay` must not be negative"),
    ],
)
def test_complaints(options, message):
    with pytest.raises(ValueError, match=message):
        Training(**options)


def test_losses_that_are_compiled():
    assert Training(loss="ce", compiled=True).compiled and Training(compiled=True).compiled
