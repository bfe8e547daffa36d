"""CSV files: what is read, and one line with file and line number for what cannot be."""

import csv
import gzip
import lzma

import pytest

from linearcore.tables import TableError, read_table


def write(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_fields_and_lines(tmp_path):
    text = '\ufeffa, b ,c\n1,2,x\n\n"3\n4",5,"y, z"\r\n6,7, w\n'
    table = read_table(write(tmp_path, text))
    assert table.columns == ("a", "b", "c")
    assert table.rows == [["1", "2", "x"], ["3\n4", "5", "y, z"], ["6", "7", " w"]]
    assert table.lines == [2, 4, 6] and table.column("c") == ["x", "y, z", "w"]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_packed_files(tmp_path, suffix, pack):
    assert read_table(write(tmp_path, pack(b"a,b\n1,2\n"), f"t.csv{suffix}")).rows == [["1", "2"]]


def test_suffixes_in_capitals(tmp_path):
    (tmp_path / "T.CSV.GZ").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_table(tmp_path / "T.CSV.GZ").rows == [["1", "2"]]


def test_another_delimiter(tmp_path):
    table = read_table(write(tmp_path, "a;b\n1,5;2\n"), ";")
    assert table.rows == [["1,5", "2"]] and table.delimiter == ";"


def test_the_limit_of_the_csv_module_is_put_back(tmp_path):
    before = csv.field_size_limit(99_999)
    try:
        read_table(write(tmp_path, f"a,b\n{'x' * 200_000},2\n"))
        assert csv.field_size_limit() == 99_999
    finally:
        csv.field_size_limit(before)


BROKEN = {
    "empty": ("", "t.csv: the file is empty"),
    "blank": ("\n\n", "t.csv: the file is empty"),
    "header only": ("a,b\n", "t.csv: the file has a header but no rows"),
    "short row": ("a,b\n1,2\n3\n", "t.csv:3: 1 field, but the header has 2; add"),
    "long row": ('a,b\n"1\n1",2\n3,4,5\n', "t.csv:4: 3 fields, but the header has 2; put fields that contain"),
    "double name": ("a,a\n1,2\n", "t.csv:1: two columns are called 'a'; rename one of them"),
    "no name": ("\n,a\n1,2\n", "t.csv:2: column 1 has no name; name it; pandas: to_csv(…, index=False)"),
    "one column": ("a\n1\n", "t.csv:1: the header has one column, 'a'; pass a label column"),
    "semicolons": ("a;b\n1;2\n", "t.csv:1: the header has one column, 'a;b'; choose the delimiter ';'"),
    "open quotation": ('a,b\n1,2\n"3,4\n', "t.csv:3: not valid CSV"),
    "latin-1": ("a,b\n1,é\n".encode("latin-1"), "t.csv: this is not UTF-8 text"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_files(tmp_path, monkeypatch, text, message):
    write(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError) as caught:
        read_table("t.csv")
    assert str(caught.value).startswith(message) and ";" in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path):
    for path, message in (
        (tmp_path / "nowhere.csv", "there is no such file"),
        (tmp_path, "cannot read it"),
        (write(tmp_path, "no xz", "t.xz"), "cannot read it"),
        (write(tmp_path, gzip.compress(b"a,b\n1,2\n" * 99)[:-9], "t.gz"), "cannot read it"),
    ):
        with pytest.raises(TableError, match=message):
            read_table(path)
    with pytest.raises(TableError, match="'ab' is not one character"):
        read_table(tmp_path, "ab")
