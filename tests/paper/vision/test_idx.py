import gzip
import struct

import numpy as np
import pytest
import torch

from linearcore_paper.vision import fashion_mnist, mnist

IMAGES = {"train": np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8), "t10k": np.zeros((2, 28, 28), np.uint8)}
LABELS = {"train": np.array([9, 0, 3, 3, 1], np.uint8), "t10k": np.array([1, 2], np.uint8)}


def idx(array):
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder, packed):
    folder.mkdir(parents=True)
    for half in ("train", "t10k"):
        for name, array in ((f"{half}-images-idx3-ubyte", IMAGES[half]), (f"{half}-labels-idx1-ubyte", LABELS[half])):
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (folder / name).write_bytes(idx(array))


@pytest.mark.parametrize("read, place", [(fashion_mnist, ""), (fashion_mnist, "FashionMNIST/raw"), (mnist, "MNIST/raw")])
@pytest.mark.parametrize("packed", [False, True])
def test_images_and_labels_are_read(tmp_path, read, place, packed):
    write(tmp_path / "data" / place, packed)
    found = read(tmp_path / "data")
    assert torch.equal(found.train.images, torch.from_numpy(IMAGES["train"])[:, None])
    assert found.train.labels.tolist() == [9, 0, 3, 3, 1] and found.test.labels.tolist() == [1, 2]
    assert found.train.classes[9] == ("Ankle boot" if read is fashion_mnist else "9")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("train-images-idx3-ubyte", idx(IMAGES["train"])[:-1], "must hold 3920 bytes after its header, got 3919"),
        (
            "train-images-idx3-ubyte",
            idx(LABELS["train"]),
            "must be an IDX file of bytes with 3 dimensions, got .*00 00 08 01",
        ),
        ("train-images-idx3-ubyte", b"", "got the header of length 0"),
        ("t10k-labels-idx1-ubyte", idx(LABELS["train"]), "`t10k-labels-idx1-ubyte` must hold a label below 10"),
        ("t10k-labels-idx1-ubyte", idx(np.array([1, 10], np.uint8)), "got 2 for 2 images, the largest 10"),
        ("t10k-labels-idx1-ubyte", None, "`folder` must hold t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz"),
        ("t10k-labels-idx1-ubyte.gz", b"no gzip", "`t10k-labels-idx1-ubyte.gz` must be compressed by gzip"),
    ],
)
def test_damaged_files_are_named_in_one_line(tmp_path, name, content, message):
    write(tmp_path / "data", packed=False)
    (tmp_path / "data" / name.removesuffix(".gz")).unlink()
    if content is not None:
        (tmp_path / "data" / name).write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        fashion_mnist(tmp_path / "data")
    assert "\n" not in str(caught.value)
