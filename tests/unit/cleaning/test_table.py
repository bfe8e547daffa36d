"""CSV files: what is read, and one line with file and line number for what cannot be."""

import csv
import gzip
import lzma

import pytest

from linearcore.cleaning import TableError, read_table
from linearcore.cleaning._encoding import encode


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
    "semicolons": ("a;b\n1;2\n", "t.csv:1: the header has one column, 'a;b'; pass --delimiter ';'"),
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


def table_of(folder, *lines):
    return read_table(write(folder, "\n".join(lines) + "\n"))


def test_numbers_and_categories(tmp_path):
    table = table_of(tmp_path, "x,colour,y,id", "1,red,b,n1", "-2e1,blue,a,n2", " 3 ,red,b,n3", "4,red,a,n4")
    found = encode(table, "y", ignore=["id"])
    assert found.features.tolist() == [[1, 0, 1], [-20, 1, 0], [3, 0, 1], [4, 0, 1]]
    assert found.labels.tolist() == [1, 0, 1, 0] and found.classes == ("a", "b")
    assert (found.numbers, found.categories) == (("x",), ("colour",))


def test_labels_that_are_numbers_are_in_their_order_and_others_in_the_alphabet(tmp_path):
    rows = ["1,10", "1,9", "1,10", "1,9"]
    assert encode(table_of(tmp_path, "x,y", *rows), "y").classes == ("9", "10")
    assert encode(table_of(tmp_path, "x,y", *rows, "1,b", "1,b"), "y").classes == ("10", "9", "b")


def test_numbers_can_be_categories(tmp_path):
    table = table_of(tmp_path, "x,y", "1,a", "2,b", "3+,a", "1,b")
    assert encode(table, "y", categorical=["x"]).features.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_commas_among_words_and_on_request_are_categories(tmp_path):
    table = table_of(tmp_path, "x,z,y", '"1,2",low,a', '"3,4","1,2",b', '"1,2","1,2",a', '"3,4",low,b')
    assert encode(table, "y", categorical=["x"]).categories == ("x", "z")


MANY = [f"w{number},{'ab'[number % 2]}" for number in range(51)]
UNUSABLE = {
    "no label": (["x,y", "1,a", "2,b"], {"label": "z"}, "t.csv: there is no column 'z'; there are x, y"),
    "another case": (
        ["x,Kind", "1,a", "2,b"],
        {"label": "kind"},
        "no column 'kind'; there are x, Kind; did you mean 'Kind'?",
    ),
    "capitals": (["x,kind", "1,a", "2,b"], {"label": "KIND"}, "did you mean 'kind'?"),
    "no label among many": (
        [",".join(f"c{number}" for number in range(12)), ",".join("1" * 12)],
        {"label": "z"},
        "there are c0, c1, c2, c3, c4, …, c7, c8, c9, c10, c11",
    ),
    "no ignored": (["x,y", "1,a", "2,b"], {"ignore": ["z"]}, "there is no column 'z'"),
    "no category": (["x,y", "1,a", "2,b"], {"categorical": ["z"]}, "there is no column 'z'"),
    "missing": (["x,y", "1,a", ",b", "3,a", "4,b"], {}, "t.csv:3: column 'x' is empty; fill it in"),
    "missing label": (["x,y", "1,a", "2, ", "3,a"], {}, "t.csv:3: column 'y' is empty"),
    "NA": (["x,y", "1,a", "2,b", "NA,a", "1,b"], {}, "t.csv:4: column 'x' has 'NA' instead of a number"),
    "nan": (["x,y", "1,a", "2,b", "nan,a", "1,b"], {}, "t.csv:4: column 'x' has 'nan' instead of a number"),
    "inf": (["x,y", "inf,a", "2,b", "1,a", "1,b"], {}, "t.csv:2: column 'x' has 'inf' instead of a number"),
    "mixed": (
        ["x,y", "1,a", "2,b", "3+,a", "1,b"],
        {},
        "t.csv:4: column 'x' has numbers, but here '3+'; write",
    ),
    "decimal commas": (
        ["x,y", '"5,1",a', '"-4,9",b', '"+3,2",a', '"1,0",b'],
        {},
        "t.csv:2: column 'x' has '5,1', a number with a decimal comma; write 5.1, or name the column in --categorical",
    ),
    "decimal commas among numbers": (
        ["x,y", "5,a", "NA,b", '"-3,25",a', "1,b"],
        {},
        "t.csv:4: column 'x' has '-3,25', a number with a decimal comma; write -3.25",
    ),
    "many words": (
        ["x,y", *MANY],
        {},
        "t.csv: column 'x' has 51 different words, too many for a category",
    ),
    "one class": (["x,y", "1,a", "2,a"], {}, "t.csv: all labels in column 'y' are 'a'"),
    "measurement": (["x,y", "1,a", "2,b", "3,c"], {}, "t.csv: column 'y' has 3 different labels in 3 rows"),
    "no feature": (["x,y", "1,a", "2,b", "1,a", "2,b"], {"ignore": ["x"]}, "t.csv: no column is left to learn from"),
}


@pytest.mark.parametrize(("lines", "options", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_tables_that_cannot_be_used(tmp_path, monkeypatch, lines, options, message):
    table_of(tmp_path, *lines)
    monkeypatch.chdir(tmp_path)
    options = {"label": "y"} | options
    with pytest.raises(TableError) as caught:
        encode(read_table("t.csv"), options.pop("label"), **options)
    assert message in str(caught.value)


def test_fifty_words_are_categories_and_more_on_request(tmp_path):
    assert encode(table_of(tmp_path, "x,y", *MANY[:50]), "y").features.shape == (50, 50)
    assert encode(table_of(tmp_path, "x,y", *MANY), "y", categorical=["x"]).features.shape == (51, 51)
