"""`find_wrong_labels`: every kind of input, the estimate, classes, duplicates, and what is written."""

import bz2
import gzip
import lzma
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from linearcore.cleaning import ADDED_COLUMNS, find_wrong_labels, read_table
from linearcore.tables import CsvTable

#: Rows whose label is wrong, counted from 0.
WRONG = (3, 40, 77, 100)


@pytest.fixture(scope="module")
def table():
    stream = torch.Generator().manual_seed(0)
    rows = []
    for number in range(120):
        kind = number % 4 % 3
        numbers = (torch.randn(2, generator=stream) + kind).tolist()
        rows.append([*map(str, numbers), "abc"[kind]])
    return CsvTable("t.csv", ("x", "y", "label"), rows, list(range(2, 122)), ",")


@pytest.fixture(scope="module")
def points():
    """Two clusters far apart, and labels "u" and "v", of which four are wrong."""
    kind = np.arange(120) % 2
    features = np.random.default_rng(0).normal(size=(120, 2)) + 6 * kind[:, None]
    kind[list(WRONG)] = 1 - kind[list(WRONG)]
    return features, np.array(["u", "v"])[kind]


@pytest.fixture(scope="module")
def found(table):
    return find_wrong_labels(table, "label", model="linear")


def test_the_most_frequent_label_and_its_share(found):
    assert found.majority == ("a", 0.5)


def test_the_worst_come_in_order_and_none_is_left_out(found, table):
    worst = found.most_suspicious()
    assert [one.rank for one in worst] == list(range(1, 121))
    assert sorted(one.row for one in worst) == table.lines
    assert all(one.given_label == table.rows[one.row - 2][2] for one in worst)


@pytest.mark.parametrize("measure", ["margin", "log_odds"])
def test_the_given_label_is_suggested_where_the_model_agrees(table, measure):
    found = find_wrong_labels(table, "label", measure=measure, loss="ce", epochs=5, model="network")
    best = found.out_of_fold.scores.argmax(1)
    suggested = {one.row: one.suggested_label for one in found.most_suspicious()}
    assert [suggested[line] for line in table.lines] == [found.encoded.classes[place] for place in best.tolist()]
    different = sum(one.suggested_label != one.given_label for one in found.most_suspicious())
    assert 0 < different == found.estimate.disagreements == round(120 * (1 - found.agreement)) < 120
    assert torch.equal(found.suspects.suggested, best)


KINDS = {
    "array": lambda features, labels: (features, labels),
    "tensor and list": lambda features, labels: (torch.tensor(features), labels.tolist()),
    "sparse": lambda features, labels: (sp.csr_matrix(features), labels),
    "frame and array": lambda features, labels: (pd.DataFrame(features), labels),
    "frame and series": lambda features, labels: (
        pd.DataFrame(features, index=[f"r{row}" for row in range(120)]),
        pd.Series(labels, index=[f"r{row}" for row in range(120)]),
    ),
    "frame": lambda features, labels: (pd.DataFrame(features, index=np.arange(120)[::-1]).assign(kind=labels), "kind"),
    "array and series": lambda features, labels: (features, pd.Series(labels, index=np.arange(120) + 1000)),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_input_finds_the_same_rows(points, make, tmp_path):
    data, label = make(*points)
    found = find_wrong_labels(data, label, model="linear")
    assert set(found.suspects.order[:4].tolist()) == set(WRONG) == set(found.suspects.flag(count=4).nonzero()[:, 0].tolist())
    index = next((part.index for part in (data, label) if isinstance(part, pd.DataFrame | pd.Series)), None)
    names = {one.row for one in found.most_suspicious(4)}
    assert names == ({*WRONG} if index is None else {index[row] for row in WRONG})
    assert {type(name) for name in names} <= {int, str}
    frame = found.to_frame()
    assert frame.index.equals(pd.RangeIndex(120) if index is None else index)
    assert list(frame.columns) == ["given_label", *ADDED_COLUMNS] and frame.given_label.tolist() == points[1].tolist()
    assert set(np.flatnonzero(frame.suspicion_rank <= 4)) == set(WRONG)
    found.write(tmp_path / "ranked.csv")
    written = pd.read_csv(tmp_path / "ranked.csv")
    assert written.suspicion_rank.tolist() == frame.suspicion_rank.tolist()
    assert written.iloc[:, 0].tolist() == frame.index.tolist()


def test_labels_of_another_order_are_refused(points):
    features, labels = pd.DataFrame(points[0]), pd.Series(points[1])
    with pytest.raises(ValueError, match=r"`labels` must have the index of the features"):
        find_wrong_labels(features, labels.sort_values())


def test_the_estimate_marks_the_wrong_rows_and_classes_add_up(points):
    found = find_wrong_labels(*points, model="linear")
    estimate = found.estimate
    assert estimate.low <= estimate.count <= estimate.high and estimate.disagreements == 4 and estimate.rows == 120
    marked = found.suspects.flag().nonzero()[:, 0].tolist()
    assert set(marked) <= set(WRONG) and len(marked) == estimate.count > 0
    assert float(found.suspects.suspicion[marked].min()) == found.suspects.threshold
    classes = found.by_class()
    assert [item.label for item in classes] == ["u", "v"] and sum(item.rows for item in classes) == 120
    assert sum(item.suspicious for item in classes) == estimate.count
    assert sum(item.disagreements for item in classes) == 4
    assert all(item.suggested_label in {"u", "v"} - {item.label} for item in classes if item.suspicious)


def test_repeated_rows_are_in_one_fold_and_conflicts_are_named(points):
    features, labels = np.concatenate([points[0], points[0][:30]]), np.concatenate([points[1], points[1][:30]])
    labels[120 + 9] = "uv"[labels[9] == "u"]
    found = find_wrong_labels(features, labels, model="linear")
    fold = found.out_of_fold.fold
    assert torch.equal(fold[120:], fold[:30]) and sorted(set(fold.tolist())) == [0, 1, 2, 3, 4]
    assert found.repeats.num_extra == 30 and found.conflicts == ((9, 129),)


def test_units_of_features_do_not_matter(points):
    features, labels = points
    units = np.array([1e-6, 1e5])
    for model in ("linear", "boosting"):
        found, scaled = (find_wrong_labels(values, labels, model=model) for values in (features, features * units))
        torch.testing.assert_close(found.out_of_fold.scores, scaled.out_of_fold.scores, rtol=1e-3, atol=1e-3)


def test_one_name_stands_for_a_list_and_a_frame_of_one_column_for_labels(points):
    frame = pd.DataFrame(points[0], columns=["first", "f"]).assign(code=points[1])
    found = find_wrong_labels(frame, pd.DataFrame({"kind": points[1]}), ignore="code", model="linear")
    assert found.encoded.numbers == ("first", "f") and found.encoded.label == "kind"
    pairs = frame.drop(columns="code").set_index(pd.MultiIndex.from_arrays([np.arange(120), ["x"] * 120]))
    worst = find_wrong_labels(pairs, points[1], model="linear").most_suspicious(4)
    assert {repr(one.row) for one in worst} == {repr((row, "x")) for row in WRONG}
    with pytest.raises(ValueError, match=r"`label` must be 120 labels, or the name of a column, got shape \(120, 2\)"):
        find_wrong_labels(pairs, points[0], model="linear")


def test_a_table_of_few_categories_is_no_table_of_duplicates():
    colours = pd.DataFrame({"colour": ["red", "blue"] * 30, "kind": ["a", "b"] * 30})
    colours.loc[7, "kind"] = "a"
    found = find_wrong_labels(colours, "kind", model="linear")
    assert found.most_suspicious(1)[0].row == 7 and found.repeats.num_extra == 58 and len(found.conflicts) == 1


@pytest.mark.parametrize(("suffix", "opened"), [(".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open), ("", open)])
def test_a_file_is_packed_as_its_name_says(found, tmp_path, suffix, opened):
    path = tmp_path / f"ranked.csv{suffix}"
    found.write(path)
    with opened(path, "rt") as stream:
        assert stream.readline() == f"x,y,label,{','.join(ADDED_COLUMNS)}\n"
    assert len(read_table(path)) == 120


def test_spaces_around_a_label_are_no_other_label(table, tmp_path):
    spaced = replace(table, rows=[[*row[:2], f" {row[2]}"] for row in table.rows])
    found = find_wrong_labels(spaced, "label", model="linear")
    found.write(tmp_path / "ranked.csv")
    different = sum(row[2] != row[5] for row in read_table(tmp_path / "ranked.csv").rows)
    assert 0 < different == found.estimate.disagreements < 120


class Cells(HTMLParser):
    """The texts of all cells of a page, and its tags."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.cells += [""] if tag in ("td", "th") else []

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


def test_the_page_has_the_rows_and_escapes_what_it_shows(points, tmp_path):
    evil = "<script>alert('1')</script> & more of this"
    frame = pd.DataFrame(points[0]).assign(kind=points[1], note=[f"{evil} {row}" for row in range(120)])
    found = find_wrong_labels(frame.set_index(frame.kind + "<b>"), "kind", text=["note"], model="linear")
    found.write_page(tmp_path / "page.html", 5)
    text = (tmp_path / "page.html").read_text("utf-8")
    page = Cells(text)
    assert not page.tags & {"script", "b", "img", "link"} - {"b"} and text.count("<b>") == 1  # The estimate is bold.
    worst = found.most_suspicious(5)
    assert [cell for cell in page.cells if cell.startswith(evil)] == [
        f"{evil} {row}" for row in found.suspects.order[:5].tolist()
    ]
    assert str(worst[0].row) in page.cells and "http" not in text
    with pytest.raises(ValueError, match="`count` must be a positive integer, got 0"):
        found.write_page(tmp_path / "page.html", 0)


BAD = {
    "path": (("iris.csv", "label"), {}, TypeError, r"`data` must be .*; pass read_table\(path\)"),
    "model": ((np.eye(4), [0, 1, 0, 1]), {"model": "forest"}, ValueError, "`model` must be one of 'auto'"),
    "measure": ((np.eye(4), [0, 1, 0, 1]), {"measure": "loss"}, ValueError, "`measure` must be one of"),
    "loss": (
        (np.eye(4), [0, 1, 0, 1]),
        {"model": "linear", "loss": "ce"},
        ValueError,
        "`model` must be a model with a network",
    ),
    "rows": ((np.eye(4), [0, 1]), {}, ValueError, "`label` must be 4 labels, got 2"),
    "missing": ((np.eye(4), [0.0, 1.0, np.nan, 1.0]), {}, ValueError, "the features, row 2: `label` is empty"),
    "nan": ((np.eye(4) * np.nan, [0, 1, 0, 1]), {}, ValueError, "`data` must be finite, got nan in row 0, column 0"),
    "no features": ((np.ones((4, 0)), [0, 1, 0, 1]), {}, ValueError, "`data` must have at least one column"),
    "label columns": (
        (pd.DataFrame({"x": range(4)}), pd.DataFrame({"y": range(4), "z": range(4)})),
        {},
        ValueError,
        "`label` must be 4 labels, or the name of a column, got a DataFrame with 2 columns",
    ),
    "lists": ((np.eye(4), pd.Series([[0], [1]] * 2)), {}, ValueError, r"index 0: `label` has \[0\]"),
    "one class": ((np.eye(4), [1] * 4), {}, ValueError, "all labels in `label` are 1"),
    "measurements": ((np.eye(4), [0.1, 1.2, 0.3, 1.4]), {}, ValueError, "`label` has 4 different labels in 4 rows"),
    "no column": ((np.eye(4), "kind"), {}, TypeError, "`label` must be labels, because `data` has no column names"),
    "NA": ((np.eye(4), pd.Series([0, None, 1, 0], dtype="Int64")), {}, ValueError, "index 1: `label` is empty"),
    "columns": ((np.eye(4), [0, 1, 0, 1]), {"ignore": ["x"]}, ValueError, "`ignore` must be empty"),
    "added": (
        (pd.DataFrame({"suspicion": [1], "y": [1]}), "y"),
        {},
        ValueError,
        "already has the output column 'suspicion'",
    ),
}


@pytest.mark.parametrize(("arguments", "options", "error", "message"), BAD.values(), ids=BAD.keys())
def test_messages(arguments, options, error, message):
    with pytest.raises(error, match=message):
        find_wrong_labels(*arguments, **options)


@pytest.mark.parametrize("count", [-1, 2.5, True])
def test_a_count_that_is_none(found, count):
    with pytest.raises(ValueError, match=f"^`count` must be an integer of at least 0, got {count}; pass 20, or None"):
        found.most_suspicious(count)
