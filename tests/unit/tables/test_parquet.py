"""Parquet files and DataFrames: types, missing values, and what is written beside them."""

import builtins

import numpy as np
import pandas as pd
import pytest

from linearcore._extras import MissingExtraError
from linearcore.tables import ColumnKinds, FrameTable, TableError, encode, read_table, repeats

FRAME = pd.DataFrame(
    {
        "age": pd.array([30, None, 50, 40], dtype="Int64"),
        "height": [1.5, 1.6, np.nan, 1.5],
        "smokes": [True, False, True, True],
        "town": pd.Categorical(["Ulm", None, "Bonn", "Ulm"]),
        "kind": ["a", "b", "a", "b"],
    },
    index=["p", "q", "r", "s"],
)


@pytest.fixture(params=["frame", "parquet"])
def table(request, tmp_path):
    if request.param == "frame":
        return FrameTable(FRAME)
    FRAME.to_parquet(tmp_path / "t.parquet")
    return read_table(tmp_path / "t.parquet")


def test_columns_have_their_types(table):
    assert table.columns == ("age", "height", "smokes", "town", "kind")  # The index is no feature.
    np.testing.assert_array_equal(table.values("age"), [30, np.nan, 50, 40])
    np.testing.assert_array_equal(table.values("smokes"), [1, 0, 1, 1])
    assert table.values("town") == ["Ulm", None, "Bonn", "Ulm"]
    found = encode(table, "kind")
    assert (found.numbers, found.categories) == (("age", "height", "smokes"), ("town",)) and found.num_missing == 2
    assert found.features.shape == (4, 8) and np.isfinite(found.features).all()
    assert repeats(table, ["smokes", "town"]).groups == ((0, 3),)


def test_labels_keep_their_type(table):
    assert encode(table, "smokes").classes == (False, True)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_what_is_written_has_all_rows_the_index_and_the_new_columns(table, tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    table.write(path, {"rank": [4, 2, 1, 3]})
    found = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path)
    assert found["rank"].tolist() == [4, 2, 1, 3] and found["town"].isna().tolist() == [False, True, False, False]
    names = found.index if suffix == ".parquet" else found.iloc[:, -2 if "__index_level_0__" in found else 0]
    assert list(names) == list(FRAME.index)
    assert sorted(file.name for file in tmp_path.iterdir() if file.name != "t.parquet") == [path.name]


def test_a_frame_is_not_changed_and_labels_may_stand_apart():
    before = FRAME.copy()
    labels = pd.Series([1, 0, 1, 0], index=FRAME.index, name="kind")
    table = FrameTable(FRAME, labels)
    assert table.label_column == "given kind" and encode(table, "given kind").classes == (0, 1)
    assert table.row_name(2) == "r"
    pd.testing.assert_frame_equal(FRAME, before)
    with pytest.raises(TableError, match="its column 'kind' has the labels, which would be a feature"):
        FrameTable(FRAME, FRAME.kind)
    with pytest.raises(TableError, match="its column 'kind' has the labels, which would be a feature"):
        FrameTable(FRAME, FRAME.kind.rename("another name"))
    assert FrameTable(FRAME, FRAME.kind.rename("truth"), ignore=["kind"]).label_column == "truth"
    with pytest.raises(ValueError, match=r"`labels` must have the index of the features, got another index"):
        FrameTable(FRAME, labels.sort_index(ascending=False))


def test_categorical_numbers_are_categories(tmp_path):
    codes = pd.Categorical([1234567, 1234568, 1234567, None])
    frame = pd.DataFrame({"code": codes, "number": [1234567, 1234568, 1234569, 1], "y": list("abab")})
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (FrameTable(frame), read_table(tmp_path / "t.parquet")):
        encoded = encode(table, "y")
        assert (encoded.categories, encoded.numbers) == (("code",), ("number",))
        assert encode(table, "y", ColumnKinds(ignore=["code"], categorical=["number"])).features.shape == (4, 4)
        assert encode(table, "y", ColumnKinds(ignore=["number"])).features.shape == (4, 3)


def test_lists_are_neither_features_nor_labels_and_may_be_unused(tmp_path):
    frame = pd.DataFrame({"x": range(4), "tags": [[1], [2], [1], [2]], "y": list("abab")})
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (FrameTable(frame), read_table(tmp_path / "t.parquet")):
        with pytest.raises(TableError, match=r"column 'tags' has .*ignore=\['tags'\]"):
            encode(table, "y")
        with pytest.raises(TableError, match=r"0: column 'tags' has \[1\]"):
            encode(table, "tags")
        assert encode(table, "y", ColumnKinds(ignore=["tags"])).features.shape == (4, 1)
    mixed = FrameTable(pd.DataFrame({"x": range(4), "y": [1, "a", 1, "a"]}))
    (tmp_path / "out.parquet").write_text("kept")
    with pytest.raises(TableError, match=r"cannot be written as Parquet: .*write a \.csv file"):
        mixed.write(tmp_path / "out.parquet", {"rank": range(4)})
    assert (tmp_path / "out.parquet").read_text() == "kept"


def test_unusable_columns_and_files(tmp_path, monkeypatch):
    dates = pd.DataFrame({"when": pd.to_datetime(["2020-01-01"] * 4), "x": range(4), "y": list("abab")})
    with pytest.raises(TableError, match="column 'when' has dates"):
        encode(FrameTable(dates), "y")
    dates.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"column 'when' has type timestamp"):
        encode(read_table(tmp_path / "t.parquet"), "y")
    infinite = pd.DataFrame({"x": [1.0, np.inf, 2, 3], "y": list("abab")}, index=list("pqrs"))
    with pytest.raises(TableError, match=r"the DataFrame, index 'q': column 'x' has .*inf"):
        encode(FrameTable(infinite), "y")
    with pytest.raises(TableError, match="two columns are called 'x'"):
        FrameTable(pd.DataFrame([[1, 2]], columns=["x", "x"]))
    with pytest.raises(TableError, match="it has no rows"):
        FrameTable(FRAME.head(0))
    with pytest.raises(TableError, match="there is no such file"):
        read_table(tmp_path / "nowhere.parquet")
    (tmp_path / "bad.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"cannot read it: .*; pass a Parquet file"):
        read_table(tmp_path / "bad.parquet")


def test_without_pyarrow_one_line_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("linearcore._extras.find_spec", lambda name: None if name == "pyarrow" else builtins)
    with pytest.raises(MissingExtraError, match=r"pip install 'linearcore\[tables\]'"):
        read_table(tmp_path / "t.parquet")
