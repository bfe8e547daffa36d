"""Features of any kind as one array, without copies, and rows that repeat."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from linearcore.tables import as_matrix, has_nan, is_sparse, repeats

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
    assert has_nan(as_matrix("x", pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})))
    assert has_nan(sp.csr_array(np.array([[0.0, np.inf]]))) and not has_nan(np.array([[1]]))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (pd.DataFrame({"a": ["x"]}), TypeError, "`features` must be columns of numbers, got column 'a'"),
        (np.array([["x"]]), TypeError, "`features` must be real numbers"),
        (np.zeros((2, 2), complex), TypeError, "`features` must be real numbers"),
        (np.zeros(2), ValueError, r"`features` must have one row per label, got shape \(2,\)"),
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
