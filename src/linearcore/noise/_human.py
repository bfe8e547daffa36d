"""CIFAR-10N and CIFAR-100N: labels of human annotators on Amazon Mechanical Turk."""

from os import PathLike

import torch
from torch import Tensor

from linearcore._arrays import Labels, as_labels
from linearcore._checks import complaint, one_of
from linearcore.noise._label_file import read_columns
from linearcore.noise._noisy_labels import NoisyLabels, describe_draw

#: Names of the CIFAR-10N label sets, and their column names in the published file.
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

    Three annotators labelled every training image. "random1" to "random3" are the labels of one annotator each. "aggre" is
    the majority vote (a random one of the three if all differ). "worst" is a wrong label if any of the three is wrong. These
    are real errors, which depend on the image in ways that no generator here reproduces. Their rate cannot be chosen.

    Args:
        path: the published `CIFAR-10_human.pt`; or .npz or .csv with the same column names; or .npy with a single set.
            Only tensors and numeric arrays of a .pt file are unpickled, so the file cannot run code.
        which: "worst", "aggre", "random1", "random2" or "random3".
        labels: (N,) clean labels in the order of *your* images; default: those in the file. Pass them, since the published
            files come in two orders: a wrong order then raises an error instead of silently spoiling the training.

    Returns:
        The labels; `rate` is the fraction of wrong labels, and `law` contains the name of the set.

    Raises:
        FileNotFoundError: if the file does not exist.
        TypeError: if labels are not integers.
        ValueError: if the file cannot be read safely, or its clean labels differ from `labels`.

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

    Reference: Wei et al., Learning with noisy labels revisited: a study using real-world human annotations (ICLR 2022).
    """
    one_of("which", which, _CIFAR10_COLUMNS)
    return _human(path, labels, _CIFAR10_COLUMNS[which], 10, {"set": "CIFAR-10N", "which": which})


def human_cifar100(path: str | PathLike[str], *, labels: Labels | None = None) -> NoisyLabels:
    """Reads the labels of CIFAR-100N: one annotator's choice among the 100 fine classes for every training image.

    Args:
        path: the published `CIFAR-100_human.pt`, or another file format as for `human_cifar10`.
        labels: (N,) clean labels in the order of your images, as for `human_cifar10`.

    Returns:
        The labels; `rate` is the fraction of wrong labels, and `law` contains the name of the set.

    Raises:
        FileNotFoundError: if the file does not exist.
        TypeError: if labels are not integers.
        ValueError: if the file cannot be read safely, or its clean labels differ from `labels`.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "labels.csv")
        ...     _ = file.write_text("clean_label,noisy_label\\n99,99\\n4,55\\n")
        ...     human_cifar100(file).transitions[4, 55]
        tensor(1)

    Cost: time and memory of reading the file.

    Reference: Wei et al., Learning with noisy labels revisited: a study using real-world human annotations (ICLR 2022).
    """
    return _human(path, labels, _CIFAR100_COLUMNS, 100, {"set": "CIFAR-100N"})


def _human(
    path: str | PathLike[str], labels: Labels | None, names: tuple[str, ...], num_classes: int, law: dict[str, object]
) -> NoisyLabels:
    columns = read_columns(path)
    # The vector of an .npy file has the empty name.
    name = next((name for name in (*names, "") if name in columns), None)
    if name is None:
        must = f"have a column `{names[0]}`"
        raise ValueError(complaint("path", must, ", ".join(map(repr, columns)) or "none", "pass the published file"))
    noisy = as_labels(columns[name], num_classes, f"path: {name}" if name else "path")
    clean = _clean(columns, labels, num_classes, len(noisy))
    rate = int((clean.cpu() != noisy).sum()) / max(1, len(noisy))
    noisy = noisy.to(clean.device)
    return describe_draw(clean, noisy, rate=rate, num_classes=num_classes, law={"generator": "human", **law})


def _clean(columns: dict[str, Tensor], labels: Labels | None, num_classes: int, count: int) -> Tensor:
    file_labels = columns.get("clean_label")
    if labels is None and file_labels is None:
        raise ValueError(complaint("labels", "be given", "None", "the file has no column `clean_label`"))
    if labels is None:
        labels = file_labels
    assert labels is not None
    clean = as_labels(labels, num_classes)
    if tuple(clean.shape) != (count,):
        must = f"have shape ({count},), one for every label in the file"
        raise ValueError(complaint("labels", must, tuple(clean.shape), "pass the labels of the whole training set"))
    if file_labels is not None and not torch.equal(clean.cpu(), file_labels.long()):
        advice = "sort images and labels as in the file: torchvision's order for .pt, TensorFlow's for `_ordered`"
        has_same_length = len(file_labels) == count
        got = f"{int((clean.cpu() != file_labels).sum())} that differ" if has_same_length else f"{len(file_labels)} there"
        raise ValueError(complaint("labels", "equal the clean labels in the file", got, advice))
    return clean
