"""Features of any kind as one array, without copies, and rows that repeat."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from linearcore.tables import as_matrix, is_sparse, label_values, nonfinite_entry, repeats

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 0.0, 2.0]])
KINDS = {
    "list": DENSE.tolist(),
    "array": DENSE,
    "float16": DENSE.astype(np.float16),
    "ints": DENSE.astype(int),
    "tensor": torch.tensor(DENSE),
    "bfloat16": torch.tensor(DENSE).bfloat16(),
    "trained": torch.tensor(DENSE, requires_grad=True),
    "sparse tensor": torch.tensor(DENSE).to_sparse(),
    "sparse bfloat16 tensor": torch.tensor(DENSE).bfloat16().to_sparse(),
    "no entry masked": np.ma.masked_array(DENSE, mask=False),
    "CSR": sp.csr_matrix(DENSE),
    "CSC": sp.csc_array(DENSE),
    "frame": pd.DataFrame(DENSE, index=["u", "v", "w"]),
    "several types": pd.DataFrame({"a": [1, 0, 1], "b": [False, False, False], "c": [2.0, 3.0, 2.0]}),
    "nullable": pd.DataFrame(DENSE).convert_dtypes(),
}


@pytest.mark.parametrize("data", KINDS.values(), ids=KINDS.keys())
def test_every_kind_is_the_same_matrix(data):
    matrix = as_matrix("features", data)
    assert is_sparse(matrix) == (sp.issparse(data) or (isinstance(data, torch.Tensor) and data.layout != torch.strided))
    np.testing.assert_array_equal(matrix.toarray() if is_sparse(matrix) else matrix, DENSE)
    assert repeats(matrix).groups == ((0, 2),) and repeats(matrix).group.tolist() == [0, 1, 0]


@pytest.mark.parametrize("make", [np.asarray, torch.tensor, pd.DataFrame])
def test_memory_is_shared(make):
    data = make(DENSE)
    before = np.asarray(data)
    assert np.shares_memory(as_matrix("features", data), before)


def test_images_are_flattened():
    assert as_matrix("features", torch.zeros(4, 2, 3)).shape == (4, 6)


def test_missing_values_are_seen():
    assert nonfinite_entry(as_matrix("x", pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))) == (1, 0)
    sparse = np.zeros((4, 5))
    sparse[0, 3], sparse[2, 4], sparse[3, 1] = 1.0, np.inf, np.nan
    assert nonfinite_entry(sp.csr_array(sparse)) == nonfinite_entry(sparse) == (2, 4)
    assert nonfinite_entry(np.array([[1]])) is None and nonfinite_entry(sp.csr_array(np.eye(2))) is None


@pytest.mark.parametrize(
    "labels",
    [
        ["a", np.nan, 2, ""],
        ("a", None, 2, ""),
        np.array(["a", pd.NA, 2, pd.NaT], dtype=object),
        pd.Series(["a", pd.NA, 2, ""]),
        pd.DataFrame({"label": ["a", np.nan, 2, None]}),
    ],
    ids=["list", "tuple", "array", "series", "frame"],
)
def test_missing_labels_are_no_class_and_numbers_stay_numbers(labels):
    assert label_values(labels) == ["a", None, 2, None]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (pd.DataFrame({"a": ["x"]}), TypeError, "`features` must be columns of numbers, got column 'a'"),
        (np.array([["x"]]), TypeError, "`features` must be real numbers"),
        (np.zeros((2, 2), complex), TypeError, "`features` must be real numbers"),
        (np.zeros(2), ValueError, r"`features` must have one row per label, got shape \(2,\)"),
        (np.ma.masked_array(np.eye(2), mask=np.eye(2)), ValueError, "`features` must have no masked entries"),
        ([[1, 2], [3]], TypeError, "`features` must be rows of equal length"),
    ],
)
def test_messages(data, error, message):
    with pytest.raises(error, match=message):
        as_matrix("features", data)


def test_groups_with_different_labels():
    found = repeats(np.array([[0.0], [-0.0], [1.0], [0.0], [1.0]]))
    assert found.groups == ((0, 1, 3), (2, 4)) and found.num_extra == 3
    assert found.with_different(np.array([0, 0, 1, 1, 1])) == ((0, 1, 3),)
