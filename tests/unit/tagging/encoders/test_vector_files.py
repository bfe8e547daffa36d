import gzip
import sys

import numpy as np
import pytest
import torch

from linearcore._extras import MissingExtraError
from linearcore.tagging.encoders._vector_files import read_vectors

WORDS = ["the", "cat", "sat", "café"]
ROWS = torch.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, 1.0], [0.0, 0.0, -1.0], [4.0, 0.5, 2.0]])


def text(header=True, end=""):
    lines = [f"{word} {' '.join(map(str, row))}{end}" for word, row in zip(WORDS, ROWS.tolist(), strict=True)]
    return "\n".join([f"{len(WORDS)} 3", *lines] if header else lines).encode() + b"\n"


def binary():
    rows = zip(WORDS, ROWS.numpy(), strict=True)
    return b"4 3\n" + b"".join(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n" for word, row in rows)


FORMATS = {
    "word2vec.txt": text(),
    "word2vec.bin": binary(),
    "fasttext.vec": text(end=" "),
    "glove.txt": text(header=False),
    "word2vec.txt.gz": gzip.compress(text(), mtime=0),
    "word2vec.bin.gz": gzip.compress(binary(), mtime=0),
    "glove.gz": gzip.compress(text(header=False), mtime=0),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(name, tmp_path):
    (tmp_path / name).write_bytes(FORMATS[name])
    words, rows = read_vectors(tmp_path / name, limit=10)
    assert words == WORDS and torch.equal(rows, ROWS)
    words, rows = read_vectors(tmp_path / name, limit=2)
    assert words == WORDS[:2] and torch.equal(rows, ROWS[:2])


def test_fasttexts_binary_format(tmp_path):
    from gensim.models import FastText
    from gensim.models.fasttext import save_facebook_model

    model = FastText([WORDS] * 30, vector_size=6, min_count=1, epochs=1, bucket=50, workers=1, seed=1)
    save_facebook_model(model, str(tmp_path / "model.bin"))
    words, rows = read_vectors(tmp_path / "model.bin", limit=3)
    assert len(words) == 3 and set(words) < set(WORDS) and rows.shape == (3, 6)
    np.testing.assert_allclose(rows[0], model.wv[words[0]], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "blob", "fact"),
    [
        ("empty.txt", b"", "neither a header nor a vector"),
        ("text.txt", b"A page of text.\nNo numbers.\n", "neither a header nor a vector"),
        ("numbers.csv", b"1,2,3\n4,5,6\n", "neither a header nor a vector"),
        ("zip.zip", b"PK\x03\x04 \x80 \x00", "neither a header nor a vector"),
        ("short.txt", text()[:-20], "cannot be read"),
        ("short.bin", binary()[:-9], "cannot be read"),
        ("short.gz", gzip.compress(text(), mtime=0)[:-15], "cannot be read"),
        ("named.txt", gzip.compress(text(), mtime=0), ".gz"),
        ("named.gz", text(), ".gz"),
        ("narrow.txt", b"2 3\na 1 2 3\nb 7\n", "1 instead of 3 numbers for the word 'b'"),
        ("wide.txt", b"2 3\na 1 2 3\nb 1 2 3 4\n", "cannot be read"),
        ("letters.txt", b"2 3\na 1 2 3\nb 1 x 3\n", "cannot be read"),
        ("nan.txt", b"2 3\na 1 2 3\nb 1 nan 3\n", "not finite for the word 'b'"),
        ("zeros.txt", b"1 3\na 0 0 0\n", "no vectors"),
        ("huge.bin", b"9999999999 9999999999\nabc", "cannot be read"),
        ("fasttext.bin", b"\xba\x16O/\x0c\x00\x00\x00", "cannot be read"),
        ("latin1.txt", b"1 3\ncaf\xe9 1 2 3\n", "cannot be read"),
    ],
)
def test_other_files_are_refused_in_one_line(name, blob, fact, tmp_path):
    (tmp_path / name).write_bytes(blob)
    with pytest.raises(ValueError, match="`vectors` must be word vectors") as caught:
        read_vectors(tmp_path / name, limit=10)
    assert fact in str(caught.value) and name in str(caught.value) and "\n" not in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"`vectors` must be .*, got none.vec: no such file"):
        read_vectors(tmp_path / "none.vec", limit=10)
    with pytest.raises(ValueError, match=r"`vectors` must be .* directory"):
        read_vectors(tmp_path, limit=10)


def test_gensim_is_optional(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setattr("linearcore._extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"gensim not installed; run pip install gensim"):
        read_vectors(tmp_path / "x.vec", limit=10)
