"""CIFAR-10N and CIFAR-100N: what people on Amazon Mechanical Turk said that the training images show."""

from os import PathLike

import torch
from torch import Tensor

from linearcore._arrays import Labels, as_labels
from linearcore._checks import complaint, one_of
from linearcore.noise._label_file import read_columns
from linearcore.noise._noisy_labels import NoisyLabels, describe_draw

#: Our names for CIFAR-10N's sets and what the published file calls them.
_CIFAR10_COLUMNS = {
    "worst": ("worse_label", "worst_label"),
    "aggre": ("aggre_label",),
    "random1": ("random_label1",),
    "random2": ("random_label2",),
    "random3": ("random_label3",),
}
_CIFAR100_COLUMNS = ("noisy_label", "noise_label")


def human_cifar10(path: str | PathLike[str], *, which: str = "worst", labels: Labels | None = None) -> NoisyLabels:
    """Reads one of the label sets of CIFAR-10N.

    Three people labelled every training image. "random1" to "random3" are one person's label each, "aggre" the majority's
    (at random where all three differ), and "worst" a wrong one of the three wherever there is one. Real mistakes: they
    depend on the image in a way that no generator here imitates, and their rate is what it is.

    Args:
        path: `CIFAR-10_human.pt` as published; or .npz, .csv with columns of the same names; or .npy with one set alone.
            Nothing is unpickled freely: of a .pt file only tensors and plain arrays are read.
        which: "worst", "aggre", "random1", "random2" or "random3".
        labels: (N,) clean labels in the order of *your* images. Without them the file's own are taken. Pass them: the
            published files come in two orders, and labels in the wrong one are refused here and ruin a training elsewhere.

    Returns:
        The labels; `rate` is the share that is wrong, and `law` names the set.

    Raises:
        FileNotFoundError: if there is no such file.
        TypeError: if labels are no integers.
        ValueError: if the file cannot be read safely, or does not fit the clean labels.

    Example:
        >>> import tempfile, pathlib
        >>> text = "clean_label,worse_label\\n0,0\\n1,7\\n9,9\\n3,5\\n"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "labels.csv")
        ...     _ = file.write_text(text)
        ...     noisy = human_cifar10(file, labels=[0, 1, 9, 3])
        >>> noisy.labels, noisy.rate, noisy.law["set"]
        (tensor([0, 7, 9, 5]), 0.5, 'CIFAR-10N')

    Cost: time and memory of reading the file.

    Wei et al., Learning with noisy labels revisited: a study using real-world human annotations (ICLR 2022).
    """
    one_of("which", which, _CIFAR10_COLUMNS)
    return _human(path, labels, _CIFAR10_COLUMNS[which], 10, {"set": "CIFAR-10N", "which": which})


def human_cifar100(path: str | PathLike[str], *, labels: Labels | None = None) -> NoisyLabels:
    """Reads the labels of CIFAR-100N: one person's choice among the 100 fine classes for every training image.

    Args:
        path: `CIFAR-100_human.pt` as published, or another kind of file as for `human_cifar10`.
        labels: (N,) clean labels in the order of your images, as for `human_cifar10`.

    Returns:
        The labels; `rate` is the share that is wrong, and `law` names the set.

    Raises:
        FileNotFoundError: if there is no such file.
        TypeError: if labels are no integers.
        ValueError: if the file cannot be read safely, or does not fit the clean labels.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "labels.csv")
        ...     _ = file.write_text("clean_label,noisy_label\\n99,99\\n4,55\\n")
        ...     human_cifar100(file).transitions[4, 55]
        tensor(1)

    Cost: time and memory of reading the file.

    Wei et al., Learning with noisy labels revisited: a study using real-world human annotations (ICLR 2022).
    """
    return _human(path, labels, _CIFAR100_COLUMNS, 100, {"set": "CIFAR-100N"})


def _human(
    path: str | PathLike[str], labels: Labels | None, names: tuple[str, ...], num_classes: int, law: dict[str, object]
) -> NoisyLabels:
    columns = read_columns(path)
    # A file with one set and no names is that set.
    name = next((name for name in (*names, "") if name in columns), None)
    if name is None:
        must = f"have a column `{names[0]}`"
        raise ValueError(complaint("path", must, ", ".join(map(repr, columns)) or "none", "pass the published file"))
    noisy = as_labels(columns[name], num_classes, f"path: {name}" if name else "path")
    clean = _clean(columns, labels, num_classes, len(noisy))
    wrong = int((clean.cpu() != noisy).sum()) / max(1, len(noisy))
    noisy = noisy.to(clean.device)
    return describe_draw(clean, noisy, rate=wrong, num_classes=num_classes, law={"generator": "human", **law})


def _clean(columns: dict[str, Tensor], labels: Labels | None, num_classes: int, count: int) -> Tensor:
    known = columns.get("clean_label")
    if labels is None and known is None:
        raise ValueError(complaint("labels", "be given", "None", "the file has no column `clean_label`"))
    if labels is None:
        labels = known
    assert labels is not None
    clean = as_labels(labels, num_classes)
    if tuple(clean.shape) != (count,):
        must = f"have shape ({count},), one for every label in the file"
        raise ValueError(complaint("labels", must, tuple(clean.shape), "pass the whole training set's"))
    if known is not None and not torch.equal(clean.cpu(), known.long()):
        advice = "bring images and labels into the file's order: torchvision's for .pt, TensorFlow's for `_ordered`"
        different = f"{int((clean.cpu() != known).sum())} that differ" if len(known) == count else f"{len(known)} there"
        raise ValueError(complaint("labels", "be the file's clean labels", different, advice))
    return clean
