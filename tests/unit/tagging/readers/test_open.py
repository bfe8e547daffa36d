"""Files, packed or not, as lines."""

import gzip
import io
import lzma
import sys
import zipfile
from pathlib import Path

import pytest

from linearcore.tagging.readers import ReaderError
from linearcore.tagging.readers import _lines as line_reader
from linearcore.tagging.readers._lines import MAX_LINE_BYTES, text_lines
from linearcore.tagging.readers._open import Source

TEXT = "Füße\tNOUN\nsind\tAUX\n\nkalt\tADJ\n"


def pack(path: Path, kind: str, data: bytes) -> Path:
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/", b"")
            archive.writestr("folder/text.txt", data)
    else:
        path.write_bytes({"plain": bytes, "xz": lzma.compress, "gz": gzip.compress}[kind](data))
    return path


def read(path: object) -> list[str]:
    with Source(str(path)) as source:
        return [line for member in source.members for line in source.lines(member)]


@pytest.mark.parametrize("suffix", [".txt", ".xz", ".gz", ".zip", ""])
@pytest.mark.parametrize("kind", ["plain", "xz", "gz", "zip"])
def test_the_content_tells_how_it_is_packed(tmp_path, kind, suffix):
    assert read(pack(tmp_path / f"text{suffix}", kind, TEXT.encode())) == TEXT.split("\n")[:-1]


@pytest.mark.parametrize("kind", ["plain", "xz", "gz", "zip"])
def test_packed_in_several_streams_or_blocks(tmp_path, kind):
    text = "".join(f"word{number}\ttag{number % 7}\n" for number in range(60_000))
    assert read(pack(tmp_path / "text", kind, text.encode())) == text.split("\n")[:-1]


def test_line_ends_and_byte_order_mark(tmp_path):
    for number, data in enumerate([b"a b\nc d\n", b"a b\r\nc d\r\n", b"\xef\xbb\xbfa b\r\nc d", b"a b\nc d"]):
        path = tmp_path / str(number)
        path.write_bytes(data)
        assert read(path) == ["a b", "c d"]
    assert list(text_lines(io.BytesIO(b"").read1, "x")) == list(text_lines(io.BytesIO(b"\xef\xbb\xbf").read1, "x")) == []
    assert list(text_lines(io.BytesIO(b"\n\na").read1, "x")) == ["", "", "a"]


def test_only_newlines_end_lines():
    text = "a\x85b\u2028c\x0bd\x0ce\x1cf\n\u2029\n"
    assert list(text_lines(io.BytesIO(text.encode()).read1, "x")) == text.split("\n")[:-1]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_the_size_of_blocks_does_not_matter(monkeypatch, size):
    monkeypatch.setattr(line_reader, "BLOCK", size)
    data = "\ufeffFüße\r\n\r\nsind 𝄞\nkalt\r\n☃".encode()
    assert list(text_lines(io.BytesIO(data).read1, "x")) == ["Füße", "", "sind 𝄞", "kalt", "☃"]
    with pytest.raises(ReaderError, match=r"^x:3: byte 0xff is not valid UTF-8"):
        list(text_lines(io.BytesIO(b"a\nb\nc\xff\nd\n").read1, "x"))


def test_standard_input_is_read_as_it_comes(monkeypatch):
    class Typed(io.BytesIO):
        asked = 0

        def read1(self, size=-1, /):
            self.asked += 1
            return self.readline()

    typed = Typed(b"a b\nc d\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(typed))
    with Source("-") as source:
        lines = source.lines()
        assert next(lines) == "a b" and typed.asked == 1
        assert list(lines) == ["c d"]
    assert not typed.closed


def test_members_are_in_order_and_without_what_systems_add(tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in ("b.txt", "dir/", "a.txt", "__MACOSX/a.txt", "dir/.DS_Store", "dir/c"):
            archive.writestr(name, name)
    with Source(str(tmp_path / "z.zip")) as source:
        assert source.members == ("a.txt", "b.txt", "dir/c")
        assert [line for member in source.members for line in source.lines(member)] == list(source.members)
        assert source.name("dir/c") == f"{tmp_path}/z.zip(dir/c)"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\nb\xc3(\n", ":2: byte 0xc3 is not valid UTF-8"),
        (b"a\nb\n\xe4", ":3: byte 0xe4 is not valid UTF-8"),
        ("a b".encode("utf-16"), ":1: the text is UTF-16; save it as UTF-8"),
        (b"a\nb\0c\n", ":2: a NUL byte, so this is not text"),
        (b"a\nb\rc\n", r":2: a carriage return inside a line"),
        (b"a b\rc d\r", r":1: a carriage return inside a line"),
        (b"a\r\r\n", r":1: a carriage return inside a line"),
        (
            b"a\n" + b"x" * (MAX_LINE_BYTES + 1) + b"\n",
            r":2: the line has more than 1,048,576 bytes; ",
        ),
        (b"a\n" + b"x" * MAX_LINE_BYTES + b"\0", ":2: a NUL byte"),
        (b"BZh91AY&SY", ": bzip2 is not supported"),
        (b"PK\x05\x06" + bytes(18), ": the archive contains no file"),
    ],
    ids=range(11),  # Some of these files are too long to be the name of a test.
)
def test_messages_about_the_text(tmp_path, data, message):
    (tmp_path / "text").write_bytes(data)
    with pytest.raises(ReaderError) as caught:
        read(tmp_path / "text")
    assert str(caught.value).startswith(f"{tmp_path}/text{message}")


def test_a_line_as_long_as_allowed(tmp_path):
    (tmp_path / "text").write_bytes(b"a\n" + b"x" * MAX_LINE_BYTES + b"\nb")
    assert list(map(len, read(tmp_path / "text"))) == [1, MAX_LINE_BYTES, 1]


@pytest.mark.parametrize("kind", ["xz", "gz", "zip"])
def test_message_for_damaged_archives(tmp_path, kind):
    data = pack(tmp_path / "text", kind, TEXT.encode() * 100).read_bytes()
    (tmp_path / "cut").write_bytes(data[:-20])
    with pytest.raises(ReaderError) as caught:
        read(tmp_path / "cut")
    name = {"xz": "xz", "gz": "gzip", "zip": "zip"}[kind]
    assert str(caught.value).startswith(f"{tmp_path}/cut: the {name} archive is damaged (")
    assert str(caught.value).endswith("); download or create it again")


def test_message_for_a_damaged_member(tmp_path):
    path = pack(tmp_path / "text", "zip", TEXT.encode() * 100)
    data = bytearray(path.read_bytes())
    data[data.index(b"text.txt") + 12] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ReaderError, match=r"text\(folder/text\.txt\): the zip archive is damaged \("):
        read(path)


def test_message_for_encrypted_archives(tmp_path):
    path = pack(tmp_path / "text", "zip", TEXT.encode())
    data = bytearray(path.read_bytes())
    for record, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # The last of each is the text.
        data[data.rindex(record) + flags] |= 1
    path.write_bytes(data)
    with pytest.raises(ReaderError, match=r"text\(folder/text\.txt\): the archive is encrypted"):
        read(path)


def test_messages_about_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReaderError, match=r"^nowhere\.txt: there is no such file; check the path$"):
        read("nowhere.txt")
    with pytest.raises(ReaderError, match=r"^\.: this is a folder; "):
        read(".")
    with pytest.raises(ReaderError, match=r"the file cannot be read \(embedded null byte\); check the path and the disk$"):
        read("a\0b")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # The tests may run as root, who may read everything.
    with pytest.raises(ReaderError, match=r"^text: permission denied; "):
        read("text")


def test_message_for_a_disk_that_fails(tmp_path, monkeypatch):
    (tmp_path / "text").write_text("a b")

    def fail(*_):
        raise OSError(5, "Input/output error")

    with Source(str(tmp_path / "text")) as source:
        monkeypatch.setattr(source, "_read", fail)
        with pytest.raises(
            ReaderError, match=r"text: the file cannot be read \(input/output error\); check the path and the disk$"
        ):
            list(source.lines())
