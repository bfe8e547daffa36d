"""Readers of human labels: what they give, what they refuse, and that no file can run code."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from linearcore.noise import human_cifar10, human_cifar100

CLEAN = [0, 9, 3, 5, 5, 1]
SETS = {
    "clean_label": CLEAN,
    "worse_label": [1, 9, 5, 3, 3, 1],
    "aggre_label": [0, 9, 5, 5, 5, 1],
    "random_label1": [0, 9, 3, 5, 3, 1],
    "random_label2": [1, 9, 3, 5, 5, 1],
    "random_label3": [0, 9, 5, 3, 5, 1],
}
NAMES = {"worst": "worse_label", "aggre": "aggre_label"} | {f"random{i}": f"random_label{i}" for i in (1, 2, 3)}


def write(folder: Path, ending: str, sets: dict[str, list[int]] = SETS) -> Path:
    path = folder / f"labels{ending}"
    arrays = {name: np.array(labels) for name, labels in sets.items()}
    if ending == ".npz":
        np.savez(path, **arrays)
    elif ending == ".csv":
        rows = [",".join(map(str, row)) for row in zip(*sets.values(), strict=True)]
        path.write_text("\n".join([",".join(sets), *rows]) + "\n")
    else:
        torch.save(arrays, path)
    return path


@pytest.mark.parametrize("ending", [".pt", ".npz", ".csv"])
@pytest.mark.parametrize("which", NAMES)
def test_every_set_from_every_kind_of_file(tmp_path, ending, which):
    noisy = human_cifar10(write(tmp_path, ending), which=which, labels=CLEAN)
    assert noisy.labels.tolist() == SETS[NAMES[which]] and noisy.labels.dtype == torch.int64
    assert noisy.law == {"generator": "human", "set": "CIFAR-10N", "which": which}
    assert noisy.rate == pytest.approx(noisy.realised_rate) and noisy.rate > 0
    assert noisy.transitions.shape == (10, 10)


def test_worst_is_the_default_and_clean_labels_come_from_the_file(tmp_path):
    noisy = human_cifar10(write(tmp_path, ".pt"))
    assert noisy.labels.tolist() == SETS["worse_label"] and noisy.rate == pytest.approx(4 / 6)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("new", [True, False])
def test_arrays_of_any_integer_in_old_and_new_torch_files(tmp_path, kind, new):
    path = tmp_path / "labels.pt"
    arrays = {name: np.array(labels, dtype=kind) for name, labels in SETS.items()}
    torch.save(arrays, path, _use_new_zipfile_serialization=new)
    assert human_cifar10(path).labels.tolist() == SETS["worse_label"]


def test_arrays_under_the_name_that_numpy_1_gave_them(tmp_path):
    path = tmp_path / "labels.pt"
    torch.save({name: np.array(labels) for name, labels in SETS.items()}, path, _use_new_zipfile_serialization=False)
    content = path.read_bytes()
    assert content.count(b"cnumpy._core.multiarray\n") == 1
    path.write_bytes(content.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"))
    assert human_cifar10(path).labels.tolist() == SETS["worse_label"]


def test_tensors_and_things_that_are_no_labels(tmp_path):
    path = tmp_path / "labels.pt"
    torch.save({name: torch.tensor(labels) for name, labels in SETS.items()} | {"note": "text", "list": [1]}, path)
    assert human_cifar10(path).labels.tolist() == SETS["worse_label"]


def test_one_set_alone(tmp_path):
    np.save(tmp_path / "worst.npy", np.array(SETS["worse_label"]))
    assert human_cifar10(tmp_path / "worst.npy", labels=CLEAN).labels.tolist() == SETS["worse_label"]
    with pytest.raises(ValueError, match="`labels` must be given, got None; the file has no column `clean_label`"):
        human_cifar10(tmp_path / "worst.npy")


@pytest.mark.parametrize("name", ["noisy_label", "noise_label"])
def test_cifar_100(tmp_path, name):
    noisy = human_cifar100(write(tmp_path, ".pt", {"clean_label": [0, 99, 50], name: [0, 98, 50]}))
    assert noisy.labels.tolist() == [0, 98, 50] and noisy.transitions[99, 98] == 1
    assert noisy.law == {"generator": "human", "set": "CIFAR-100N"}


class Touches:
    """Unpickling this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (self.path,)


def test_no_file_runs_code(tmp_path):
    touched = tmp_path / "touched"
    torch.save({"clean_label": np.arange(3), "worse_label": Touches(touched)}, tmp_path / "bad.pt")
    np.save(tmp_path / "bad.npy", np.array({"clean_label": Touches(touched)}), allow_pickle=True)
    np.savez(tmp_path / "bad.npz", worse_label=np.array([Touches(touched)]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"`path` must contain labels only, got 'bad.pt', which contains other objects"):
        human_cifar10(tmp_path / "bad.pt")
    for name in ("bad.npy", "bad.npz"):
        with pytest.raises(ValueError, match=r"`path` must contain numbers only, .*numpy\.savez"):
            human_cifar10(tmp_path / name)
    assert not touched.exists()


def test_allowing_arrays_is_for_one_call_only(tmp_path):
    path = write(tmp_path, ".pt")
    human_cifar10(path)
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        torch.load(path, weights_only=True)


@pytest.mark.parametrize("ending", [".pt", ".npz", ".npy"])
def test_damaged_files_say_so(tmp_path, ending):
    path = tmp_path / f"labels{ending}"
    for content in (b"", b"not a file of labels", b"PK\x03\x04" + bytes(50)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"`path` must contain .* is damaged"):
            human_cifar10(path)


@pytest.mark.parametrize(
    ("sets", "labels", "message"),
    [
        (SETS, CLEAN[:5], r"`labels` must have shape \(6,\), one for every label in the file, got \(5,\)"),
        (SETS, CLEAN[::-1], "`labels` must equal the clean labels in the file, got 6 that differ"),
        (SETS | {"worse_label": [0, 9, 3, 5, 5, 10]}, None, r"worse_label` must lie in 0\.\.9, got .*\[5\] = 10 \(1 of 6"),
        ({"clean_label": CLEAN}, None, "`path` must have a column `worse_label`, got 'clean_label'; pass the published"),
        (SETS | {"clean_label": [0, 1]}, CLEAN, "`labels` must equal the clean labels in the file, got 2 there"),
        (SETS | {"worse_label": [[0], [1]]}, CLEAN, r"`path` must contain vectors, got shape \(2, 1\) for 'worse_label'"),
    ],
)
def test_messages(tmp_path, sets, labels, message):
    with pytest.raises(ValueError, match=message):
        human_cifar10(write(tmp_path, ".pt", sets), labels=labels)


def test_messages_on_paths_and_options(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`path` must be an existing file, got '.*missing\.pt'"):
        human_cifar10(tmp_path / "missing.pt")
    with pytest.raises(ValueError, match=r"`path` must be one of '\.pt', '\.npz', '\.npy', '\.csv', got '\.pkl'"):
        human_cifar10(tmp_path / "labels.pkl")
    with pytest.raises(ValueError, match=r"`which` must be one of 'worst', 'aggre', .* got 'best'"):
        human_cifar10(write(tmp_path, ".pt"), which="best")
    torch.save(torch.arange(3), tmp_path / "list.pt")
    with pytest.raises(ValueError, match="`path` must contain a dict of label vectors, got Tensor"):
        human_cifar10(tmp_path / "list.pt")
    (tmp_path / "text.csv").write_text("clean_label,worse_label\n1,dog\n")
    with pytest.raises(ValueError, match="`path` must contain integers in column 'worse_label', got"):
        human_cifar10(tmp_path / "text.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match="`path` must have a column `worse_label`, got none"):
        human_cifar10(tmp_path / "empty.csv")
