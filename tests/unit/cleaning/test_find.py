"""What is told of a table: how many rows prefer another label, whatever the measure, and the most frequent label."""

import bz2
import gzip
import lzma
from dataclasses import replace

import pytest
import torch

from linearcore.cleaning import Table, find_wrong_labels, read_table


@pytest.fixture(scope="module")
def table():
    stream = torch.Generator().manual_seed(0)
    rows = []
    for number in range(120):
        kind = number % 4 % 3
        numbers = (torch.randn(2, generator=stream) + kind).tolist()
        rows.append([*map(str, numbers), "abc"[kind]])
    return Table("t.csv", ("x", "y", "label"), rows, list(range(2, 122)), ",")


def test_rows_that_num_disagreements_label_are_counted_by_margin(table):
    found = find_wrong_labels(table, "label", measure="log_odds", loss="ce", epochs=5)
    assert found.num_disagreements == int((found.suspects.margin > 0).sum())
    assert found.num_disagreements < int((found.suspects.suspicion > 0).sum())
    assert found.num_disagreements == pytest.approx(120 * (1 - found.agreement))


def test_the_most_frequent_label_and_its_share(table):
    assert find_wrong_labels(table, "label", epochs=1).majority == ("a", 0.5)


def test_the_worst_come_in_order_and_none_is_left_out(table):
    worst = find_wrong_labels(table, "label", epochs=1).most_suspicious()
    assert [one.rank for one in worst] == list(range(1, 121))
    assert sorted(one.line for one in worst) == table.lines
    assert all(one.given_label == table.rows[one.line - 2][2] for one in worst)


@pytest.mark.parametrize("measure", ["margin", "log_odds"])
def test_the_given_label_is_suggested_where_the_networks_agree(table, measure):
    found = find_wrong_labels(table, "label", measure=measure, loss="ce", epochs=5)
    best = found.out_of_fold.scores.argmax(1)
    suggested = {one.line: one.suggested_label for one in found.most_suspicious()}
    assert [suggested[line] for line in table.lines] == [found.encoded.classes[place] for place in best.tolist()]
    assert (
        0 < sum(one.suggested_label != one.given_label for one in found.most_suspicious()) == found.num_disagreements < 120
    )


@pytest.mark.parametrize(("suffix", "opened"), [(".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open), ("", open)])
def test_a_file_is_packed_as_its_name_says(table, tmp_path, suffix, opened):
    path = tmp_path / f"ranked.csv{suffix}"
    find_wrong_labels(table, "label", epochs=1).write(path)
    with opened(path, "rt") as stream:
        assert stream.readline() == "x,y,label,suspicion_rank,suspicion,suggested_label\n"
    assert len(read_table(path).rows) == 120


def test_spaces_around_a_label_are_no_other_label(table, tmp_path):
    spaced = replace(table, rows=[[*row[:2], f" {row[2]}"] for row in table.rows])
    found = find_wrong_labels(spaced, "label", epochs=5)
    found.write(tmp_path / "ranked.csv")
    assert sum(row[2] != row[5] for row in read_table(tmp_path / "ranked.csv").rows) == found.num_disagreements < 120


def test_a_path_is_no_table():
    with pytest.raises(TypeError, match=r"^`table` must be a Table, got str; pass read_table\(path\)$"):
        find_wrong_labels("iris.csv", "label")


@pytest.mark.parametrize("count", [-1, 2.5, True])
def test_a_count_that_is_none(table, count):
    with pytest.raises(ValueError, match=f"^`count` must be an integer of at least 0, got {count}; pass 20, or None"):
        find_wrong_labels(table, "label", epochs=1).most_suspicious(count)
