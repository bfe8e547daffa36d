"""Datasets and planted errors of `wrong_labels.py`."""

import lzma
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from linearcore.noise import NoisyLabels, draw, linear_posterior

#: Number of rows that are taken of a larger dataset.
ROWS = 2000
#: Number of singular vectors of text, from which noise depends on the input.
COMPONENTS = 50


class UsageError(Exception):
    """An error of the user; its message is one line."""


class Pool(NamedTuple):
    """All rows of a dataset: features (N, D), an array or a CSR array; clean labels (N,); number of classes."""

    features: Any
    labels: Tensor
    num_classes: int


def digits(_: Path | None) -> Pool:
    """Loads the 1,797 digits of scikit-learn."""
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    return Pool(torch.from_numpy(features), torch.from_numpy(labels).long(), 10)


def letter(folder: Path | None, rows: int = 3000) -> Pool:
    """Reads the first rows of UCI letter recognition (their order is random): a letter and 16 integers each."""
    path = file_of(folder, "letter.csv.xz")
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str, max_rows=rows)
    labels = torch.tensor([ord(name) - ord("A") for name in table[:, 0]])
    return Pool(torch.from_numpy(table[:, 1:].astype(np.float64)), labels, 26)


def libsvm(folder: Path | None, name: str) -> Pool:
    """Reads a random choice of the rows of a file in LIBSVM's format with two classes."""
    from sklearn.datasets import load_svmlight_file

    with lzma.open(file_of(folder, name)) as file:
        features, labels = load_svmlight_file(file)
    chosen = np.random.default_rng(0).permutation(len(labels))[:ROWS]
    return Pool(torch.from_numpy(features[chosen].toarray()), torch.from_numpy(labels[chosen] == labels.max()).long(), 2)


def newsgroups(folder: Path | None) -> Pool:
    """Reads a random choice of the test part of 20 newsgroups as TF-IDF features, as in `linearcore.tables`."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, names = [], []
    with tarfile.open(file_of(folder, "20news-bydate.tar.xz")) as archive:
        for member in archive:
            if member.isfile() and "bydate-test" in member.name and (file := archive.extractfile(member)) is not None:
                texts.append(file.read().decode("latin-1"))
                names.append(member.name.split("/")[-2])
    chosen = np.random.default_rng(0).permutation(len(texts))[:ROWS]
    classes = sorted(set(names))
    labels = torch.tensor([classes.index(names[row]) for row in chosen])
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=50_000)
    return Pool(words.fit_transform([texts[row] for row in chosen]), labels, len(classes))


SETS: dict[str, Callable[[Path | None], Pool]] = {
    "digits": digits,
    "letter": partial(letter, rows=ROWS),
    "newsgroups": newsgroups,
    "a9a": partial(libsvm, name="a9a.xz"),
    "mushrooms": partial(libsvm, name="mushrooms.xz"),
}


def file_of(folder: Path | None, name: str) -> Path:
    """Returns the path of a file, in the folder or its folder `tabular`; raises if it does not exist."""
    for path in () if folder is None else (folder / name, folder / "tabular" / name):
        if path.is_file():
            return path
    where = "no data folder was given" if folder is None else f"no {name} in {folder}"
    raise UsageError(f"{where}: pass --data DIR with {name}, or use --sets digits")


# ---- planted errors ----

#: Four kinds in which a wrong label does not depend on how difficult the row is, and one in which it does.
LAWS = ("symmetric", "pair flip", "class-conditional", "instance-dependent", "boundary")


def dense(pool: Pool) -> Tensor:
    """Returns the features, or the leading singular vectors of text, for noise that depends on the input."""
    if isinstance(pool.features, Tensor):
        return pool.features
    from sklearn.decomposition import TruncatedSVD

    return torch.from_numpy(TruncatedSVD(COMPONENTS, random_state=0).fit_transform(pool.features))


def noisy_labels(pool: Pool, law: str, rate: float, seed: int) -> NoisyLabels:
    """Draws noisy labels for all rows."""
    given: dict[str, Any] = {"num_classes": pool.num_classes, "seed": seed}
    if law == "class-conditional":
        return draw("class_conditional", pool.labels, transitions=transitions(pool.num_classes, rate, seed), **given)
    if law == "instance-dependent":
        return draw("instance_dependent", pool.labels, rate, features=dense(pool), inputs="normalised", **given)
    if law == "boundary":
        posterior = linear_posterior(dense(pool), pool.labels, **given)
        return draw("boundary", pool.labels, min(rate, reachable(posterior)), posterior=posterior, **given)
    return draw(law.replace(" ", "_"), pool.labels, rate, **given)


def transitions(num_classes: int, rate: float, seed: int) -> Tensor:
    """Draws a transition matrix: flip rates between 0.2 and 1.8 times `rate`, each class mostly to a few others."""
    stream = np.random.default_rng(seed)
    rates = rate * stream.uniform(0.2, 1.8, num_classes)
    matrix = stream.dirichlet(np.full(num_classes, 0.3), num_classes)
    np.fill_diagonal(matrix, 0.0)
    matrix = rates[:, None] * matrix / np.maximum(matrix.sum(1, keepdims=True), 1e-12)
    np.fill_diagonal(matrix, 1 - matrix.sum(1))
    return torch.from_numpy(matrix)


def reachable(posterior: Tensor) -> float:
    """Returns the largest rate of boundary noise, below the mean of ½ − ½ m²: a third of the rows with a margin below 1."""
    first, second = posterior.topk(2, dim=1).values.unbind(1)
    return 0.33 * float((first - second < 0.999).double().mean())
