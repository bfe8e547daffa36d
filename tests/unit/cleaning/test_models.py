"""Every model: rows are scored by a model that did not see them, wrong labels are found, and seeds name the result."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from linearcore.cleaning import MODELS, NetworkSettings, _model_scores, _models, flagging_auc, model_scores, suspects
from linearcore.noise import symmetric

CLEAN = torch.arange(240) % 3
FEATURES = 3 * torch.eye(3, 4)[CLEAN] + torch.randn(240, 4, generator=torch.Generator().manual_seed(0))
GIVEN = symmetric(CLEAN, 0.2, num_classes=3, seed=1).labels
#: Words: of each class four, and four that all have.
COUNTS = sp.csr_matrix(
    np.random.default_rng(0).poisson(0.2 + np.concatenate([np.eye(3)[CLEAN].repeat(4, axis=1), np.ones((240, 4))], 1))
).astype(float)
QUICK = NetworkSettings(epochs=10, learning_rate=0.01)


def found(model, features=FEATURES, labels=GIVEN, **options):
    network = QUICK if model in ("network", "ensemble") else None
    return model_scores(features, labels, num_classes=3, model=model, network=network, **options)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("features", [FEATURES, COUNTS], ids=["table", "words"])
def test_every_model_finds_wrong_labels(model, features):
    result = found(model, features)
    assert result.model == model and (result.network is None) == (model in ("linear", "boosting"))
    assert flagging_auc(suspects(result.scores, GIVEN).suspicion, GIVEN != CLEAN) > 0.9
    assert result.agreement == float((result.scores.argmax(1) == GIVEN).double().mean())


def test_a_label_does_not_touch_the_scores_of_its_own_row(monkeypatch):
    changed = GIVEN.clone()
    changed[7] = (GIVEN[7] + 1) % 3
    # In the same folds, which depend on the labels otherwise.
    monkeypatch.setattr(_model_scores, "stratified_folds", lambda targets, *_: torch.arange(240) % 5)
    for model in ("linear", "boosting"):
        first, second = (found(model, labels=labels).scores for labels in (GIVEN, changed))
        same = torch.arange(240) % 5 == 7 % 5
        assert torch.equal(first[same], second[same]) and not torch.equal(first[~same], second[~same])


def test_an_ensemble_is_the_mean_of_its_calibrated_parts_in_the_same_folds():
    parts = [found(model) for model in ("network", "boosting")]
    whole = found("ensemble")
    assert all(torch.equal(part.fold, whole.fold) for part in parts)
    mean = sum(_models.calibrated(part.scores.double(), GIVEN) for part in parts) / 2
    torch.testing.assert_close(whole.scores, mean)


def test_calibration_finds_the_factor():
    stream = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(4000, 3, generator=stream, dtype=torch.float64)
    labels = torch.multinomial(scores.softmax(1), 1, generator=stream).squeeze(1)
    torch.testing.assert_close(_models.calibrated(0.1 * scores, labels), scores.log_softmax(1), rtol=0.15, atol=0.15)


def test_a_seed_names_the_result():
    for model in ("linear", "ensemble"):
        first, again, other = (found(model, seed=seed).scores for seed in (1, 1, 2))
        assert torch.equal(first, again) and not torch.equal(first, other)


def test_auto_goes_by_the_data(monkeypatch):
    assert _models.choose_model(COUNTS.tocsr(), 3) == "linear"
    assert _models.choose_model(np.zeros((100_000, 1)), 15) == "ensemble"
    assert _models.choose_model(np.zeros((100_001, 1)), 15) == "network"
    monkeypatch.setattr(_model_scores, "choose_model", lambda *_: "linear")
    assert found("auto").model == "linear"


def test_a_class_with_one_row_is_suspicious():
    labels = CLEAN.clone()
    labels[11] = 3
    for model in ("linear", "boosting"):
        scores = model_scores(FEATURES, labels, num_classes=4, model=model).scores
        ranked = suspects(scores, labels)
        assert 11 in ranked.order[:5] and ranked.suggested[11] != 3 and scores.isfinite().all()


def test_large_sparse_matrices_are_projected(monkeypatch):
    from linearcore.cleaning import _inputs

    assert _inputs.as_dense("features", COUNTS, 0).shape == (240, 16)
    monkeypatch.setattr(_inputs, "_MAX_DENSE", 1000)
    monkeypatch.setattr(_inputs, "_COMPONENTS", 5)
    assert _inputs.as_dense("features", COUNTS, 0).shape == (240, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "forest"}, "`model` must be one of 'auto', 'linear'"),
        ({"network": QUICK}, "`model` must be a model with a network, .*, got 'linear'; choose network or ensemble"),
        ({"folds": 1}, "`folds` must be an integer from 2"),
        ({"features": FEATURES * torch.nan}, "`features` must be finite"),
        ({"labels": [0, 1]}, r"`labels` must have shape \(240,\)"),
        ({"seed": -1}, "`seed` must be"),
        ({"num_classes": 2}, r"`labels` must lie in 0\.\.1"),
    ],
)
def test_messages(options, message):
    options = {"features": FEATURES, "labels": GIVEN, "num_classes": 3, "model": "linear"} | options
    with pytest.raises(ValueError, match=message):
        model_scores(options.pop("features"), options.pop("labels"), **options)


def test_without_scikit_learn_one_line_names_the_extra(monkeypatch):
    monkeypatch.setattr("linearcore._extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"^scikit-learn not installed; run pip install 'linearcore\[cleaning\]'$"):
        found("linear")
