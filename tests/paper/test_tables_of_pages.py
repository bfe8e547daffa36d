"""What generated pages share: tables, paragraphs, and where figures come from."""

import pytest

from tests.paper.generated_pages import page_module


@pytest.fixture
def tables(monkeypatch):
    return page_module("_tables", monkeypatch)


def test_numbers_keep_their_percent_sign(tables):
    text = "of 40 % and 50 %, of 60 %"
    assert tables.wrapped(text, 11) == "of 40 % and\n50 %, of\n60 %"
    # Were they apart, the sign would begin a line.
    assert not any(line.startswith("%") for width in range(5, 30) for line in tables.wrapped(text, width).splitlines())
    assert tables.wrapped("a  b\nc", 125) == "a b c"
    assert tables.wrapped("a b", 3, initial_indent="- ", subsequent_indent="  ") == "- a\n  b"
    assert tables.wrapped("`--a-long-name` x", 5) == "`--a-long-name`\nx"


@pytest.mark.parametrize(
    ("settings", "machine"),
    [({}, "a CPU"), ({"device": "cpu"}, "a CPU"), ({"device": "cuda"}, "a GPU"), ({"device": "cuda:1"}, "a GPU")],
)
def test_machine_is_the_one_that_was_used(tables, settings, machine):
    record = {"command": "x", "settings": settings, "environment": {"torch": "9", "cpu": "a CPU", "device": "a GPU"}}
    assert tables.source(record) == f"`x`, torch 9, {machine}."


def test_what_is_not_known_is_a_dash(tables):
    assert (tables.figure(None, ".2f"), tables.figure(1 / 3, ".2f")) == ("–", "0.33")
    assert tables.table(["a", "b"], [["c", "d"]]) == "| a | b |\n| --- | ---: |\n| c | d |"
