import json

import pytest

from linearcore.tagging import Training


def test_defaults_suit_the_encoder():
    bilstm, transformer = Training().with_defaults(), Training(encoder="transformer:some/model").with_defaults()
    assert bilstm.lr > transformer.lr
    assert bilstm.epochs > transformer.epochs
    assert Training(lr=0.5, epochs=3, batch_tokens=7).with_defaults() == Training(lr=0.5, epochs=3, batch_tokens=7)


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
        ({"rank": -1}, "`rank` must be a positive integer"),
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
        ({"warmup": 1.0}, r"`warmup` must be a fraction in \[0, 1\)"),
        ({"weight_decay": -0.1}, "`weight_decay` must not be negative"),
    ],
)
def test_complaints(options, message):
    with pytest.raises(ValueError, match=message):
        Training(**options)


def test_losses_that_are_compiled():
    assert Training(loss="ce", compiled=True).compiled and Training(compiled=True).compiled
