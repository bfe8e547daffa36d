import hashlib
import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from linearcore_paper.vision import DownloadError, _cifar10, cifar10
from linearcore_paper.vision._cifar10 import read_cifar10
from linearcore_paper.vision._download import download

STEMS = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
COUNT = 4


def parts():
    chance = np.random.default_rng(0)
    return {
        stem: (chance.integers(0, 256, (COUNT, 3, 32, 32), np.uint8), chance.integers(0, 10, COUNT, np.uint8))
        for stem in STEMS
    }


PARTS = parts()


def write_sheets(folder):
    folder.mkdir(parents=True)
    for stem, (images, labels) in PARTS.items():
        rows = [np.concatenate([images[2 * row + column].transpose(1, 2, 0) for column in range(2)], 1) for row in range(2)]
        Image.fromarray(np.concatenate(rows)).save(folder / f"{stem}.webp", lossless=True)
        (folder / f"{stem}.labels.u8").write_bytes(labels.tobytes())


def write_binary(folder):
    folder.mkdir(parents=True)
    for stem, (images, labels) in PARTS.items():
        (folder / f"{stem}.bin").write_bytes(np.concatenate([labels[:, None], images.reshape(COUNT, -1)], 1).tobytes())


def write_pickles(folder, old=True):
    folder.mkdir(parents=True)
    for stem, (images, labels) in PARTS.items():
        content = {b"data": images.reshape(COUNT, -1), b"labels": labels.tolist(), b"filenames": [b"a.png"] * COUNT}
        blob = pickle.dumps(content, protocol=2)
        # The published files were written when numpy had its parts elsewhere.
        (folder / stem).write_bytes(blob.replace(b"numpy._core.multiarray", b"numpy.core.multiarray") if old else blob)


LAYOUTS = [
    (write_sheets, ""),
    (write_sheets, "cifar10"),
    (write_binary, "cifar-10-batches-bin"),
    (write_binary, "cifar10/cifar-10-batches-bin"),
    (write_pickles, "cifar-10-batches-py"),
    (write_pickles, ""),
]


@pytest.mark.parametrize("write, place", LAYOUTS)
def test_every_layout_gives_the_same(tmp_path, write, place):
    write(tmp_path / "data" / place)
    found = read_cifar10(tmp_path / "data", COUNT)
    train = np.concatenate([PARTS[stem][0] for stem in STEMS[:5]])
    assert torch.equal(found.train.images, torch.from_numpy(train))
    assert found.train.labels.tolist() == [int(label) for stem in STEMS[:5] for label in PARTS[stem][1]]
    assert torch.equal(found.test.images, torch.from_numpy(PARTS["test_batch"][0]))
    assert found.test.labels.tolist() == PARTS["test_batch"][1].tolist()
    assert found.train.classes[3] == "cat" and found.train.num_classes == 10


def test_pickles_of_todays_numpy_are_read_too(tmp_path):
    write_pickles(tmp_path / "new", old=False)
    write_pickles(tmp_path / "old")
    assert read_cifar10(tmp_path / "new", COUNT).train.digest == read_cifar10(tmp_path / "old", COUNT).train.digest


class Evil:
    def __reduce__(self):
        return os.system, ("touch evil",)


def test_a_pickle_that_would_run_something_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pickles(tmp_path / "data")
    for bad in (Evil(), {b"data": np.zeros((2, 3072), np.uint8), b"labels": [Evil(), 1]}):
        (tmp_path / "data" / "data_batch_3").write_bytes(pickle.dumps(bad))
        with pytest.raises(ValueError, match=r"`data_batch_3` must hold arrays only, got .*system; fetch"):
            read_cifar10(tmp_path / "data", COUNT)
    (tmp_path / "data" / "data_batch_3").write_bytes(b"c_codecs\nencode\n(Vabc\nVrot13\ntR.")
    with pytest.raises(ValueError, match="hold arrays only, got the codec 'rot13'"):
        read_cifar10(tmp_path / "data", COUNT)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    "write, name, content, message",
    [
        (write_sheets, "data_batch_2.webp", b"RIFF", "`data_batch_2.webp` must be an image, got a damaged file"),
        (write_sheets, "data_batch_2.labels.u8", bytes(9), "`data_batch_2.webp` must be a square of tiles .* 64 × 64 for 9"),
        (write_sheets, "data_batch_2.labels.u8", bytes(5), "one for each label, got 64 × 64 for 5 labels"),
        (
            write_sheets,
            "data_batch_2.labels.u8",
            bytes([0, 0, 10, 0]),
            "`data_batch_2.webp` must hold labels below 10, got 10",
        ),
        (write_sheets, "data_batch_2.labels.u8", None, "`folder` must hold data_batch_2.labels.u8, got none"),
        (write_sheets, "test_batch.webp", None, "`folder` must hold test_batch.webp, got none"),
        (write_binary, "data_batch_5.bin", bytes(3073 * 4 - 1), "`data_batch_5.bin` must consist of records of 3073 bytes"),
        (write_binary, "data_batch_5.bin", b"", "`data_batch_5.bin` must consist of records of 3073 bytes, got 0 bytes"),
        (write_binary, "data_batch_5.bin", bytes(3073 * 3), "`data_batch_5.bin` must hold 4 images, got 3"),
        (write_binary, "test_batch.bin", None, "`folder` must hold test_batch.bin, got none"),
        (write_pickles, "data_batch_1", b"\x80\x02}q", "`data_batch_1` must be a part of CIFAR-10, got a damaged file"),
        (write_pickles, "data_batch_1", pickle.dumps([1]), "`data_batch_1` must be a part of CIFAR-10"),
        (write_pickles, "data_batch_1", pickle.dumps({"data": b"", "labels": [1]}), "must hold 3072 bytes for each label"),
        (write_pickles, "test_batch", None, "`folder` must hold test_batch, got none"),
    ],
)
def test_damaged_files_are_named_in_one_line(tmp_path, write, name, content, message):
    write(tmp_path / "data")
    (tmp_path / "data" / name).unlink()
    if content is not None:
        (tmp_path / "data" / name).write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        read_cifar10(tmp_path / "data", COUNT)
    assert "\n" not in str(caught.value)


def test_the_public_function_wants_all_images_and_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`folder` must hold CIFAR-10, got .* without it; pass download=True"):
        cifar10(tmp_path)
    write_binary(tmp_path / "data")
    with pytest.raises(ValueError, match=r"`data_batch_1.bin` must hold 10000 images, got 4"):
        cifar10(tmp_path / "data")


def archive(path, extra=()):
    with tarfile.open(path, "w:gz") as opened:
        for name, content in [*extra, *((f"somewhere/{stem}.bin", bytes([1]) * 3073 * COUNT) for stem in STEMS)]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return path.as_uri(), hashlib.md5(path.read_bytes()).hexdigest()


def test_a_download_is_checked_and_unpacked_and_nothing_else_is_written(tmp_path, monkeypatch):
    url, md5 = archive(tmp_path / "cifar.tar.gz", extra=[("../escaped", b"x"), ("readme.html", b"x")])
    monkeypatch.setattr(_cifar10, "_URL", url)
    monkeypatch.setattr(_cifar10, "_MD5", md5)
    monkeypatch.setattr(_cifar10, "_IMAGES_PER_FILE", COUNT)
    found = cifar10(tmp_path / "data", download=True)
    assert len(found.train) == 5 * COUNT and int(found.train.labels.max()) == 1
    assert not (tmp_path / "escaped").exists()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["cifar-10-batches-bin"]
    assert {path.name for path in (tmp_path / "data" / "cifar-10-batches-bin").iterdir()} == {
        f"{stem}.bin" for stem in STEMS
    }
    (tmp_path / "cifar.tar.gz").unlink()
    assert cifar10(tmp_path / "data", download=True).train.digest == found.train.digest


def test_a_wrong_or_missing_archive_leaves_nothing_behind(tmp_path):
    url, md5 = archive(tmp_path / "cifar.tar.gz")
    cases = [
        (url, "0" * 32, STEMS, f"must have the MD5 {'0' * 32}, got {md5}"),
        (url, md5, ["another"], "must hold another, got an archive without"),
        ((tmp_path / "nothing").as_uri(), md5, [], "could not be fetched .*; download the files"),
        ("http://localhost:9/nothing", md5, [], "could not be fetched"),
    ]
    (tmp_path / "plain").write_bytes(b"no archive")
    cases.append(((tmp_path / "plain").as_uri(), hashlib.md5(b"no archive").hexdigest(), [], "the archive is damaged"))
    for where, digest, names, message in cases:
        with pytest.raises(DownloadError, match=message) as caught:
            download(where, digest, tmp_path / "data" / "there", names)
        assert "\n" not in str(caught.value)
        assert not list((tmp_path / "data").iterdir())


@pytest.mark.skipif("LINEARCORE_DATA" not in os.environ, reason="wants the real files")
def test_the_real_thing():
    found = cifar10(Path(os.environ["LINEARCORE_DATA"]))
    assert (len(found.train), len(found.test)) == (50_000, 10_000)
    assert torch.bincount(found.train.labels).tolist() == [5_000] * 10
    # What everyone normalises by.
    mean = found.train.images.float().mean((0, 2, 3)) / 255
    assert mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)
