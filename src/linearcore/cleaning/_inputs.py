"""Labels and scores as users have them: pandas, NumPy, SciPy or torch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from linearcore._arrays import as_labels
from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.tables import Matrix, as_matrix, as_values, is_sparse, nonfinite_entry, row_index

#: The logarithm of smaller probabilities is that of this one. All of them rank alike, below every larger probability.
_MIN_PROBABILITY = 1e-12
#: Rounding error of the sum of a row of probabilities in single precision, with many classes.
_SUM_ERROR = 1e-3

#: A sparse matrix with at most so many entries (128 MiB of float64), zeros included, is made dense as it is.
_MAX_DENSE = 2**24
#: Number of singular vectors to which a larger one is reduced.
_COMPONENTS = 128


def as_tensor(name: str, data: object) -> Tensor:
    """Returns numbers as a tensor, which shares the memory of tensors and writable arrays."""
    if isinstance(data, Tensor):
        return data
    array = as_values(name, data)
    # torch has no read-only tensors, and pandas hands out read-only arrays.
    return torch.as_tensor(array if array.flags.writeable else array.copy())


def as_dense(name: str, features: object, seed: int) -> Matrix:
    """Returns features (N, D) as an array, for models that take no sparse matrices.

    Large sparse matrices, such as TF-IDF features, are projected on their 128 leading singular vectors.
    """
    matrix = as_matrix(name, features)
    if not is_sparse(matrix):
        return matrix
    if matrix.shape[0] * matrix.shape[1] <= _MAX_DENSE:
        return matrix.toarray()
    require("sklearn", extra="cleaning")
    from sklearn.decomposition import TruncatedSVD

    return TruncatedSVD(min(_COMPONENTS, *(size - 1 for size in matrix.shape)), random_state=seed).fit_transform(matrix)


def check_features(name: str, matrix: Matrix) -> None:
    """Raises unless features (N, D) have a column and are finite."""
    if not matrix.shape[1]:
        raise ValueError(complaint(name, "have at least one column", f"shape {tuple(matrix.shape)}", "pass features"))
    place = nonfinite_entry(matrix)
    if place is not None:
        got = f"{matrix[place]} in row {place[0]}, column {place[1]}"
        raise ValueError(
            complaint(name, "be finite", got, "fill or drop it; columns of a DataFrame may have missing values")
        )


def shared_index(first: object, second: object, first_name: str, second_name: str) -> Any:
    """Returns the index of the pandas objects among the two, or None.

    Raises:
        ValueError: if both have an index, and these differ: pandas would align by index, and arrays go by position.
    """
    index, other = row_index(first), row_index(second)
    if index is None or other is None:
        return other if index is None else index
    if len(index) == len(other) and not index.equals(other):
        is_shuffled = index.sort_values().equals(other.sort_values()) if index.is_unique and other.is_unique else False
        got = "the same index in another order" if is_shuffled else "another index"
        advice = f"pass {second_name}.loc[{first_name}.index], or arrays"
        raise ValueError(complaint(second_name, f"have the index of `{first_name}`", got, advice))
    return index


def given_labels(labels: object, num_classes: int, classes: Sequence[Any] | None) -> Tensor:
    """Returns class indices (N,) on the CPU, or on the device of a tensor.

    Raises:
        TypeError: if there are no `classes`, and the labels are not integers.
        ValueError: if a label is out of range, or not among `classes`.
    """
    if classes is None:
        if isinstance(labels, Tensor):
            return as_labels(labels, num_classes)
        values = as_values("labels", labels)
        if values.dtype.kind not in "iu" and values.size:
            advice = "pass class indices, or the names of the columns of the scores as `classes`"
            raise TypeError(complaint("labels", "be integers", values.dtype, advice))
        return as_labels(as_tensor("labels", values), num_classes)
    if len(classes) != num_classes or len(set(classes)) != num_classes:
        got = f"{len(classes)} names, {len(set(classes))} of them different"
        raise ValueError(
            complaint("classes", f"be {num_classes} different names", got, "pass one name per column of scores")
        )
    position = {name: number for number, name in enumerate(classes)}
    names = as_values("labels", labels).tolist()
    try:
        return torch.tensor([position[name] for name in names], dtype=torch.int64)
    except (KeyError, TypeError):
        row, name = next((row, name) for row, name in enumerate(names) if name not in position)
        advice = f"the classes are {', '.join(map(str, classes[:8]))}{', …' if num_classes > 8 else ''}"
        raise ValueError(complaint("labels", "be among the classes", f"{name!r} in row {row}", advice)) from None


def log_probabilities(scores: Tensor, are_probabilities: bool | None) -> Tensor:
    """Returns the logarithms of probabilities, and other scores unchanged.

    Raises:
        ValueError: if `are_probabilities` is True, and a score is negative or a row does not have sum 1.
    """
    if are_probabilities is False or not len(scores):
        return scores
    values = scores.double()
    is_valid = bool((values >= 0).all()) and bool(((values.sum(1) - 1).abs() <= _SUM_ERROR).all())
    if is_valid:
        return values.clamp(min=_MIN_PROBABILITY).log()
    if are_probabilities:
        advice = "pass probabilities=False for logits"
        raise ValueError(complaint("scores", "be nonnegative, with sum 1 in every row", "others", advice))
    return scores
