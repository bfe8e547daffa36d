"""Labels, scores and probabilities as users have them: pandas with any index, NumPy, SciPy and torch."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from linearcore.cleaning import flagging_auc, flagging_precision, out_of_fold_scores, suspects

STREAM = np.random.default_rng(0)
SCORES = STREAM.normal(size=(30, 3))
LABELS = STREAM.integers(3, size=30)
INDEX = pd.Index([f"row {number}" for number in STREAM.permutation(30)], name="id")
NAMES = np.array(["cat", "dog", "owl"])
EXPECTED = suspects(torch.tensor(SCORES), torch.tensor(LABELS))

KINDS = {
    "numpy": (SCORES, LABELS),
    "lists": (SCORES.tolist(), LABELS.tolist()),
    "frame": (pd.DataFrame(SCORES, INDEX), pd.Series(LABELS, INDEX)),
    "frame and array": (pd.DataFrame(SCORES, INDEX), LABELS),
    "array and series": (SCORES, pd.Series(LABELS, INDEX, dtype="Int64")),
    "frame with names": (pd.DataFrame(SCORES, INDEX, NAMES), pd.Series(NAMES[LABELS], INDEX)),
    "categories": (pd.DataFrame(SCORES, INDEX, NAMES), pd.Series(pd.Categorical(NAMES[LABELS]), INDEX)),
    "sparse": (sp.csr_matrix(SCORES), LABELS),
    "tensor and series": (torch.tensor(SCORES), pd.Series(LABELS, INDEX)),
}


@pytest.mark.parametrize(("scores", "labels"), KINDS.values(), ids=KINDS.keys())
@pytest.mark.filterwarnings("error")
def test_every_kind_is_ranked_alike(scores, labels):
    found = suspects(scores, labels)
    assert torch.equal(found.order, EXPECTED.order) and torch.equal(found.suspicion, EXPECTED.suspicion)
    assert torch.equal(found.suggested, EXPECTED.suggested)
    assert (found.index is None) == (not any(isinstance(part, pd.DataFrame | pd.Series) for part in (scores, labels)))


def test_a_frame_comes_back_with_the_users_index_and_names():
    scores, labels = KINDS["frame with names"]
    frame = suspects(scores, labels).to_frame()
    assert frame.index.name == "id" and list(frame.index) == [INDEX[row] for row in EXPECTED.order.tolist()]
    assert frame.given_label.equals(labels.loc[frame.index].rename("given_label"))
    assert frame.suggested_label.tolist() == scores.loc[frame.index].idxmax(axis=1).tolist()
    assert frame.suspicion.is_monotonic_decreasing
    assert int(frame.is_suspicious.sum()) == EXPECTED.estimate.count == int(EXPECTED.flag().sum())
    assert suspects(SCORES, LABELS).to_frame().index.tolist() == EXPECTED.order.tolist()


def test_names_of_classes_for_arrays():
    found = suspects(SCORES, NAMES[LABELS], classes=NAMES)
    assert torch.equal(found.order, EXPECTED.order) and found.names(found.given) == NAMES[LABELS].tolist()


def test_probabilities_are_ranked_by_their_logarithms():
    log_probabilities = torch.tensor(SCORES).log_softmax(1)
    expected = suspects(log_probabilities, LABELS)
    for dtype in (torch.float32, torch.float64):
        torch.testing.assert_close(
            suspects(log_probabilities.exp().to(dtype), LABELS).margin, expected.margin, rtol=1e-3, atol=1e-5
        )
    as_scores = suspects(log_probabilities.exp(), LABELS, probabilities=False)
    assert float(as_scores.margin.abs().max()) <= 1
    certain = suspects(np.array([[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.0, 0.5, 0.5]]), [1, 2, 2])
    assert certain.margin.isfinite().all() and certain.order.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="`scores` must be nonnegative, with sum 1 in every row"):
        suspects(SCORES, LABELS, probabilities=True)


FRAME, SERIES = KINDS["frame with names"]
BAD = {
    "shuffled": ((FRAME, SERIES.sort_index()), {}, ValueError, "got the same index in another order; pass labels.loc"),
    "other index": ((FRAME, pd.Series(SERIES.to_numpy())), {}, ValueError, "`labels` must have the index of `scores`"),
    "unknown": (
        (FRAME, SERIES.replace("owl", "elk")),
        {},
        ValueError,
        "among the classes, got 'elk' in row",
    ),
    "numbers": ((FRAME, LABELS), {}, ValueError, "`labels` must be among the classes, got"),
    "names": ((SCORES, NAMES[LABELS]), {}, TypeError, "`labels` must be integers, got .*`classes`"),
    "few classes": ((SCORES, NAMES[LABELS]), {"classes": NAMES[:2]}, ValueError, "`classes` must be 3 different names"),
    "text": ((FRAME.astype(str), SERIES), {}, TypeError, "`scores` must be columns of numbers"),
    "missing": ((SCORES, pd.Series(LABELS).where(LABELS > 0)), {}, TypeError, "`labels` must be integers"),
}


@pytest.mark.parametrize(("arguments", "options", "error", "message"), BAD.values(), ids=BAD.keys())
def test_messages(arguments, options, error, message):
    with pytest.raises(error, match=message):
        suspects(*arguments, **options)


def test_nothing_is_changed_or_shared_with_the_input():
    scores = SCORES.copy()
    found = suspects(scores, LABELS)
    found.suspicion.zero_()
    assert np.array_equal(scores, SCORES)


def test_other_functions_take_pandas_and_sparse_matrices():
    wrong = pd.Series(LABELS == 0, INDEX)
    assert flagging_auc(pd.Series(SCORES[:, 0], INDEX), wrong) == flagging_auc(SCORES[:, 0], wrong.to_numpy())
    assert flagging_precision(pd.Series(SCORES[:, 0], INDEX), wrong) >= 0
    options = {"num_classes": 3, "epochs": 1, "hidden": 4}
    expected = out_of_fold_scores(SCORES, LABELS, **options).scores
    for features in (pd.DataFrame(SCORES, INDEX), sp.csc_matrix(SCORES), torch.tensor(SCORES)):
        assert torch.equal(out_of_fold_scores(features, pd.Series(LABELS, INDEX), **options).scores, expected)
