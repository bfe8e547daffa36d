"""What is told of a table: how many rows prefer another label, whatever the measure, and the most frequent label."""

import pytest
import torch

from linearcore.cleaning import Table, find_wrong_labels


@pytest.fixture(scope="module")
def table():
    stream = torch.Generator().manual_seed(0)
    rows = []
    for number in range(120):
        kind = number % 4 % 3
        numbers = (torch.randn(2, generator=stream) + kind).tolist()
        rows.append([*map(str, numbers), "abc"[kind]])
    return Table("t.csv", ("x", "y", "label"), rows, list(range(2, 122)), ",")


def test_rows_that_prefer_another_label_are_counted_by_margin(table):
    found = find_wrong_labels(table, "label", by="log_odds", loss="ce", epochs=5)
    assert found.prefer_another == int((found.suspects.margin > 0).sum())
    assert found.prefer_another < int((found.suspects.suspicion > 0).sum())
    assert found.prefer_another == pytest.approx(120 * (1 - found.agreement))


def test_the_most_frequent_label_and_its_share(table):
    assert find_wrong_labels(table, "label", epochs=1).majority == ("a", 0.5)


def test_the_worst_come_in_order_and_none_is_left_out(table):
    worst = find_wrong_labels(table, "label", epochs=1).worst()
    assert [one.rank for one in worst] == list(range(1, 121))
    assert sorted(one.line for one in worst) == table.lines
    assert all(one.given == table.rows[one.line - 2][2] != one.suggested for one in worst)
