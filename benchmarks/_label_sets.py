"""The data sets of `which_loss.py`: images, tables and text, each with at most 8,000 rows as a dense matrix.

Files are searched in the folder of `--data` and in its folders: the LIBSVM files a9a.xz, w8a.xz and mushrooms.xz,
letter.csv.xz, 20news-bydate.tar.xz, brown.zip, en_ewt-train.conllu.xz, la_lasla-train.conllu.xz, the folder cifar10, and
the folders fashion-mnist (Debian's package dataset-fashion-mnist) and mnist with the idx files.
"""

import gzip
import lzma
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor
from torch.nn import functional as F

#: Largest number of rows, and of columns of text.
ROWS, COLUMNS = 8000, 1500
#: Rows for training, for validation with noisy labels, and for tests, as parts of all rows.
PARTS = (0.5, 0.125, 0.375)


class Pool(NamedTuple):
    """All rows of a data set: features (N, D), labels (N,), number of classes."""

    features: Tensor
    labels: Tensor
    num_classes: int


@dataclass(frozen=True)
class LabelSet:
    """How a data set is read and trained.

    Attributes:
        read: function from the data folder and a part to the rows. Part 0 are at most `ROWS` rows; part 1 are as many other
            rows of a large data set, for development.
        title: name in tables.
        kind: "image", "table" or "text".
        is_binary: whether there are two classes.
        hidden: units of the hidden layer; 0 trains a linear layer.
        epochs: the two numbers of epochs of the tries.
        batch: rows per step.
    """

    read: Callable[[Path, int], Pool]
    title: str
    kind: str
    is_binary: bool = False
    hidden: int = 128
    epochs: tuple[int, int] = (6, 30)
    batch: int = 100


class DataError(Exception):
    """A missing file; the message is one line."""


def located(folder: Path, name: str) -> Path:
    """Returns the path of a file in the folder or in one of its folders."""
    found = next((path for path in (folder / name, *sorted(folder.glob(f"*/{name}"))) if path.exists()), None)
    if found is None:
        raise DataError(f"no {name} in the folder of --data; pass another folder, or leave the set out with --sets")
    return found


def subset(features: Any, labels: Any, *, part: int = 0, scaling: str = "none") -> Pool:
    """Draws a part of at most `ROWS` rows, always the same, and numbers the classes from 0.

    Args:
        features: (N, D) matrix, sparse or dense.
        labels: (N,) labels of any type.
        part: 0, or 1 for rows that are not in part 0.
        scaling: "none"; or divides centred features by the standard deviation of each, "columns", or of all, "image".
    """
    labels = np.unique(np.asarray(labels), return_inverse=True)[1]
    rows = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))[part * ROWS :][:ROWS]
    if part and len(rows) < ROWS:
        raise DataError(f"a data set of {len(labels)} rows has no other {ROWS}; leave it out with --sets")
    chosen = features[rows.numpy()]
    matrix = torch.from_numpy(np.asarray(chosen.todense() if hasattr(chosen, "todense") else chosen, dtype=np.float32))
    if scaling != "none":
        matrix = matrix - matrix.mean(0)
        matrix = matrix / (matrix.std(0) if scaling == "columns" else matrix.std())
    targets = torch.from_numpy(labels)[rows]
    return Pool(matrix.contiguous(), targets, int(targets.max()) + 1)


# ---- images --------------------------------------------------------------------------------------------------------------


def idx_images(name: str) -> Callable[[Path, int], Pool]:
    """Makes a reader of images of 28 × 28 in idx files, reduced to 14 × 14."""

    def content(folder: Path, part: str) -> bytes:
        names = [f"train-{part}{dot}{kind}-ubyte{end}" for kind in ("idx1", "idx3") for dot in "-." for end in ("", ".gz")]
        path = next((folder / name for name in names if (folder / name).is_file()), None)
        if path is None:
            raise DataError(f"no idx file with the training {part} in {folder.name}")
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()

    def read(folder: Path, part: int = 0) -> Pool:
        folder = located(folder, name)
        pixels = np.frombuffer(content(folder, "images"), np.uint8, offset=16).reshape(-1, 28, 28)
        labels = np.frombuffer(content(folder, "labels"), np.uint8, offset=8)
        small = F.avg_pool2d(torch.from_numpy(pixels[:20000].astype(np.float32)), 2).flatten(1)
        return subset(small.numpy(), labels[:20000], part=part, scaling="image")

    return read


def cifar10(folder: Path, part: int = 0) -> Pool:
    """Reads CIFAR-10 images, reduced to 8 × 8 pixels with three colours."""
    from linearcore_paper import vision

    images = vision.cifar10(located(folder, "cifar10")).train
    small = F.avg_pool2d(images.images[:20000].float(), 4).flatten(1)
    return subset(small.numpy(), images.labels[:20000].numpy(), part=part, scaling="image")


def digits(folder: Path, part: int = 0) -> Pool:
    """Loads the digits of scikit-learn."""
    return subset(*load_digits(return_X_y=True), part=part, scaling="image")


# ---- tables --------------------------------------------------------------------------------------------------------------


def letter(folder: Path, part: int = 0) -> Pool:
    """Reads UCI letter recognition: a letter and 16 integers per row."""
    table = np.loadtxt(located(folder, "letter.csv.xz"), delimiter=",", skiprows=1, dtype=str)
    return subset(table[:, 1:].astype(np.float32), table[:, 0], part=part, scaling="columns")


def breast_cancer(folder: Path, part: int = 0) -> Pool:
    """Loads the breast cancer table of scikit-learn."""
    return subset(*load_breast_cancer(return_X_y=True), part=part, scaling="columns")


def libsvm(name: str) -> Callable[[Path, int], Pool]:
    """Makes a reader of a LIBSVM file whose features are 0 or 1."""

    def read(folder: Path, part: int = 0) -> Pool:
        with lzma.open(located(folder, name)) as file:
            return subset(*load_svmlight_file(file), part=part)

    return read


# ---- text ----------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def newsgroups(folder: Path, part: int = 0) -> Pool:
    """Reads 20 newsgroups: TF-IDF of the messages without their headers."""
    texts, labels = [], []
    with tarfile.open(located(folder, "20news-bydate.tar.xz")) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                texts.append(file.read().decode("latin-1").partition("\n\n")[2])
                labels.append(member.name.split("/")[1])
    return tf_idf(texts, labels, part)


@lru_cache(maxsize=1)
def brown(folder: Path, part: int = 0) -> Pool:
    """Reads the Brown corpus: TF-IDF of pieces of 100 words, labelled with one of 15 genres."""
    texts, labels = [], []
    with zipfile.ZipFile(located(folder, "brown.zip")) as archive:
        for line in archive.read("brown/cats.txt").decode().splitlines():
            name, genre = line.split()
            words = [pair.rpartition("/")[0] for pair in archive.read(f"brown/{name}").decode().split()]
            pieces = [" ".join(words[first : first + 100]) for first in range(0, len(words) - 99, 100)]
            texts += pieces
            labels += [genre] * len(pieces)
    return tf_idf(texts, labels, part)


def tf_idf(texts: list[str], labels: list[str], part: int) -> Pool:
    """Returns the TF-IDF of the most frequent words of a part of the texts."""
    rows = np.random.default_rng(0).permutation(len(texts))[part * ROWS :][:ROWS]
    words = TfidfVectorizer(max_features=COLUMNS, sublinear_tf=True, stop_words="english")
    return subset(words.fit_transform([texts[row] for row in rows]), [labels[row] for row in rows])


def tagged_words(name: str, columns: tuple[int, ...], most: int) -> Callable[[Path, int], Pool]:
    """Makes a reader of words in context, labelled with their tag, one of the `most` frequent tags.

    Features are 0 or 1: the word, its endings and the words beside it.
    """

    def read(folder: Path, part: int = 0) -> Pool:
        rows, labels = [], []
        for words, tags in sentences(located(folder, name), columns):
            around = ["^", *words, "$"]
            for place, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
                endings = [f"ending {word[-length:]}" for length in (1, 2, 3)]
                shape = "upper" if word[0].isupper() else "digit" if word[0].isdigit() else "lower"
                beside = [f"before {around[place - 1]}", f"after {around[place + 1]}"]
                rows.append(dict.fromkeys([f"word {word.lower()}", *endings, shape, *beside], 1.0))
                labels.append(tag)
            if len(labels) > 40000:
                break
        frequent = {tag for tag, _ in Counter(labels).most_common(most)}
        kept = [row for row, tag in enumerate(labels) if tag in frequent]
        features = DictVectorizer(dtype=np.float32).fit_transform([rows[row] for row in kept])
        order = np.argsort(-np.asarray(features.sum(0)).ravel(), kind="stable")[:COLUMNS]
        return subset(features[:, order], [labels[row] for row in kept], part=part)

    return read


def sentences(path: Path, columns: tuple[int, ...]) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the words and the tags of each sentence of a CoNLL-U file; a tag joins the given columns."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            lines = [line.split("\t") for line in block.splitlines() if re.match(r"\d+\t", line)]
            if lines:
                yield [line[1] for line in lines], ["|".join(line[column] for column in columns) for line in lines]


SETS: dict[str, LabelSet] = {
    "digits": LabelSet(digits, "digits", "image", epochs=(15, 75), batch=50),
    "letter": LabelSet(letter, "letter", "table"),
    "fashion": LabelSet(idx_images("fashion-mnist"), "Fashion-MNIST", "image"),
    "newsgroups": LabelSet(newsgroups, "20 newsgroups, linear", "text", hidden=0, epochs=(4, 16)),
    "newsgroups-mlp": LabelSet(newsgroups, "20 newsgroups, MLP", "text", hidden=64, epochs=(4, 16)),
    "brown": LabelSet(brown, "Brown genres, linear", "text", hidden=0, epochs=(4, 16)),
    "brown-mlp": LabelSet(brown, "Brown genres, MLP", "text", hidden=64, epochs=(4, 16)),
    "words": LabelSet(tagged_words("en_ewt-train.conllu.xz", (4,), 40), "English tags", "text", hidden=64, epochs=(4, 16)),
    "latin": LabelSet(
        tagged_words("la_lasla-train.conllu.xz", (3, 5), 150), "Latin tags", "text", hidden=64, epochs=(4, 16)
    ),
    "mnist": LabelSet(idx_images("mnist"), "MNIST", "image"),
    "cifar10": LabelSet(cifar10, "CIFAR-10, 8 × 8", "image"),
    "a9a": LabelSet(libsvm("a9a.xz"), "a9a", "table", is_binary=True),
    "w8a": LabelSet(libsvm("w8a.xz"), "w8a", "table", is_binary=True),
    "mushrooms": LabelSet(libsvm("mushrooms.xz"), "mushrooms", "table", is_binary=True),
    "breast-cancer": LabelSet(breast_cancer, "breast cancer", "table", is_binary=True, epochs=(20, 100), batch=25),
}
