"""Two hundred files, each broken for sure, must end in as many clean errors that name the file."""

import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable

import pytest

from linearcore.tagging.readers import ReaderError, read_sentences

REPEATS = 8

#: What is broken: the file's name, its bytes, and the tag to ask for.
Broken = tuple[str, bytes, str | None]


def conllu_lines(stream: random.Random) -> list[str]:
    """A sound file of a few sentences; the ids of word lines are numbers."""
    lines = []
    for _ in range(stream.randint(2, 5)):
        lines.append(f"# sent_id = {stream.randrange(1000)}")
        for number in range(1, stream.randint(3, 9)):
            form = "".join(stream.choices("abcäöü☃", k=stream.randint(1, 6)))
            lines.append(f"{number}\t{form}\t{form}\t{stream.choice(['NOUN', 'VERB'])}\tN\t_\t_\t_\t_\t_")
        lines.append("")
    return lines


def column_lines(stream: random.Random) -> list[str]:
    return [" ".join(line.split("\t")[1:4]) for line in conllu_lines(stream) if not line.startswith("#")]


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def word_row(stream: random.Random, lines: list[str]) -> int:
    return stream.choice([row for row, line in enumerate(lines) if line and not line.startswith("#")])


def with_cell(stream: random.Random, column: int, value: Callable[[str], str]) -> list[str]:
    """A file in which one cell is changed."""
    lines = conllu_lines(stream)
    row = word_row(stream, lines)
    cells = lines[row].split("\t")
    cells[column] = value(cells[column])
    lines[row] = "\t".join(cells)
    return lines


def inserted(stream: random.Random, rubbish: bytes) -> bytes:
    """A file with these bytes before one of its lines' ends."""
    lines = text(conllu_lines(stream)).split(b"\n")
    row = stream.randrange(len(lines) - 1)
    return b"\n".join([*lines[:row], lines[row] + rubbish, *lines[row + 1 :]])


def zipped(data: bytes, *names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return stream.getvalue()


def flipped(stream: random.Random, data: bytes, start: int, end: int) -> bytes:
    changed = bytearray(data)
    changed[stream.randrange(start, end)] ^= stream.randint(1, 255)
    return bytes(changed)


def cut(stream: random.Random, data: bytes, least: int) -> bytes:
    return data[: stream.randrange(least, len(data))]


def flipped_zip(stream: random.Random) -> Broken:
    data = zipped(text(conllu_lines(stream)), "x.conllu")
    return "x.zip", flipped(stream, data, 30 + len("x.conllu"), data.index(b"PK\x01\x02")), "upos"


def swapped_ids(stream: random.Random) -> Broken:
    lines = conllu_lines(stream)
    row = next(row for row, line in enumerate(lines) if line.startswith("1\t"))
    lines[row], lines[row + 1] = lines[row + 1], lines[row]
    return "x.conllu", text(lines), "upos"


def lost_line(stream: random.Random) -> Broken:
    lines = conllu_lines(stream)
    row = stream.choice([row for row, line in enumerate(lines) if line.startswith("1\t")])
    return "x.conllu", text(lines[:row] + lines[row + 1 :]), None


def bad_range(stream: random.Random) -> Broken:
    lines = conllu_lines(stream)
    row = stream.choice([row for row, line in enumerate(lines) if line.startswith("1\t")])
    span = stream.choice(["1-0", "2-3", "0-1", "1-99", "3-1", "1-2-3", "1–2"])
    return "x.conllu", text([*lines[:row], f"{span}\tx" + "\t_" * 8, *lines[row:]]), "upos"


def ragged_columns(stream: random.Random) -> Broken:
    lines = column_lines(stream)
    row = word_row(stream, lines)
    lines[row] = stream.choice([lines[row].rsplit(" ", 1)[0], lines[row] + " more", lines[row].replace(" ", "\t")])
    return "x.txt", text(lines), "2"


def line_ends(stream: random.Random) -> Broken:
    data = text(conllu_lines(stream))
    return "x.conllu", stream.choice([data.replace(b"\n", b"\r"), data.replace(b"\n", b"\r", 3), b"\r" + data]), "upos"


def unbalanced(stream: random.Random) -> Broken:
    trees = "".join(f"( (S (NP (NN a{number})) (VP (VB b))) )\n" for number in range(5))
    place = stream.choice([place for place, character in enumerate(trees) if character in "()"])
    return "x.zip", zipped((trees[:place] + trees[place + 1 :]).encode(), "combined/wsj_0001.mrg"), "tag"


BROKEN: dict[str, Callable[[random.Random], Broken]] = {
    "xz cut": lambda s: ("x.conllu.xz", cut(s, lzma.compress(text(conllu_lines(s))), 6), "upos"),
    "gzip cut": lambda s: ("x.conllu.gz", cut(s, gzip.compress(text(conllu_lines(s))), 2), "upos"),
    "zip cut": lambda s: ("x.conllu.zip", cut(s, zipped(text(conllu_lines(s)), "x.conllu"), 4), "upos"),
    "xz flipped": lambda s: ("x.xz", flipped(s, data := lzma.compress(text(conllu_lines(s))), 6, len(data)), "upos"),
    "gzip flipped": lambda s: ("x.gz", flipped(s, data := gzip.compress(text(conllu_lines(s))), 10, len(data)), "upos"),
    "zip flipped": flipped_zip,
    "zip of several": lambda s: ("x.zip", zipped(text(conllu_lines(s)), "a.conllu", "b.conllu"), "upos"),
    "random bytes": lambda s: (
        s.choice(["x", "x.xz", "x.conllu", "x.zip"]),
        b"\xff" + s.randbytes(s.randint(1, 5000)),
        None,
    ),
    "no UTF-8": lambda s: (
        "x.conllu",
        inserted(s, s.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"])),
        "upos",
    ),
    "UTF-16": lambda s: ("x.conllu", text(conllu_lines(s)).decode().encode(s.choice(["utf-16", "utf-16-le"])), "upos"),
    "NUL": lambda s: (s.choice(["x.conllu", "x.txt"]), inserted(s, b"\0"), None),
    "number of cells": lambda s: (
        "x.conllu",
        text(with_cell(s, s.randrange(1, 10), lambda c: s.choice(["x\ty", "x\n" + c]))),
        None,
    ),
    "huge line": lambda s: ("x.conllu", inserted(s, s.choice([b"x", b"\t", "☃".encode()]) * ((1 << 20) + 1)), None),
    "ids swapped": swapped_ids,
    "line lost": lost_line,
    "id that is none": lambda s: (
        "x",
        text(with_cell(s, 0, lambda _: s.choice(["", "0", "x", "-1", "1.", "1e3", "²"]))),
        None,
    ),
    "range": bad_range,
    "form empty": lambda s: ("x.conllu", text(with_cell(s, 1, lambda _: "")), None),
    "tag empty": lambda s: ("x.conllu", text(with_cell(s, 3, lambda _: "")), s.choice(["upos", "xpos+upos", "upos+feats"])),
    "tag not there": lambda s: ("x.conllu", text(conllu_lines(s)), s.choice(["feats", "misc", "feats+misc", "last", "11"])),
    "ragged columns": ragged_columns,
    "column not there": lambda s: ("x.txt", text(column_lines(s)), s.choice(["4", "9+2", "1", "upos", "last+3"])),
    "no sentence": lambda s: ("x", s.choice([b"", b"\n" * 9, b"\xef\xbb\xbf", b"# text = a\n" * 5, b" \r\n \r\n"]), "upos"),
    "line ends": line_ends,
    "brackets": unbalanced,
}
assert len(BROKEN) * REPEATS == 200


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_refused_cleanly(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    for seed in range(REPEATS):
        name, data, tag = BROKEN[kind](random.Random(f"{kind} {seed}"))
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ReaderError) as caught:
            list(read_sentences(name, tag))
        message = str(caught.value)
        assert message.startswith(name) and message[len(name)] in ":(", message
        assert "; " in message and "\n" not in message and len(message) < 300, message


def test_the_files_are_sound_before_they_are_broken(tmp_path):
    for seed in range(REPEATS):
        stream = random.Random(seed)
        for name, lines, tag in (("x.conllu", conllu_lines(stream), "upos"), ("x.txt", column_lines(stream), "2")):
            for data in (text(lines), lzma.compress(text(lines)), gzip.compress(text(lines)), zipped(text(lines), name)):
                (tmp_path / name).write_bytes(data)
                assert len(list(read_sentences(tmp_path / name, tag))) >= 2


@pytest.mark.parametrize("seed", range(5))
def test_any_change_of_an_archive_is_read_or_refused(tmp_path, seed):
    # A change may go unnoticed (a date, a comment); what must not happen is another kind of error.
    stream = random.Random(seed)
    data = text(conllu_lines(stream))
    path = tmp_path / "x.conllu"
    for packed in (zipped(data, "x.conllu", "__MACOSX/x"), lzma.compress(data), gzip.compress(data)):
        for _ in range(100):
            changed = flipped(stream, packed, 0, len(packed))
            path.write_bytes(flipped(stream, changed, 0, len(packed)))
            try:
                list(read_sentences(path, "upos"))
            except ReaderError as error:
                assert str(error).startswith(str(path))
