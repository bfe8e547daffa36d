"""AT&T text format: what is read and written, and errors that name the file and the line."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from linearcore.structures import Automaton, read_att, write_att
from tests.automata import automata, every_path


def paths(automaton: Automaton) -> list[tuple[list[int], float]]:
    """Labels, without arcs that write nothing, and scores of all paths, sorted."""
    label, scores = automaton.label.tolist(), automaton.arc_scores.tolist()
    return sorted(
        ([label[arc] for arc in path if label[arc] >= 0], math.fsum(scores[arc] for arc in path))
        for path in every_path(automaton)
    )


@settings(max_examples=40)
@given(automata(), st.integers(1, 3), st.integers(0, 2**31))
def test_what_is_written_is_read_again(tmp_path_factory, automaton: Automaton, offset: int, seed: int) -> None:
    path = tmp_path_factory.mktemp("att") / "a.fst"
    scores = torch.randn(automaton.num_arcs, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    scores[::5] = -math.inf
    write_att(automaton, path, scores, offset=offset)
    found = read_att(path, offset=offset, acceptor=True)
    assert found.start == automaton.start and found.final.tolist() == automaton.final.tolist()
    known = zip(automaton.source, automaton.target, automaton.label, scores, strict=True)
    again = zip(found.source, found.target, found.label, found.arc_scores, strict=True)
    assert sorted(map(str, again)) == sorted(map(str, known))
    copy = path.with_suffix(".copy")
    write_att(found, copy, offset=offset)
    assert read_att(copy, offset=offset, acceptor=True).arc_scores.tolist() == found.arc_scores.tolist()


def test_costs_are_negative_scores_and_final_costs_become_arcs() -> None:
    found = read_att(["0\t1\t3\t0.5\n", "0\t2\t4\n", "\n", "1\t2\t3\t-2\r\n", "2\t1.5\n", "1\n"])
    assert paths(found) == [([3], -0.5), ([3, 3], 0.0), ([4], -1.5)]
    assert found.final.tolist() == [3]
    assert read_att(["0 1 3 Infinity", "0 1 2 1", "1"]).arc_scores.tolist() == [-math.inf, -1]
    assert paths(read_att(["4 2", "4 5 1", "5"])) == [([], -2.0), ([1], 0.0)]


def test_epsilon_writes_nothing_and_the_offset_moves_labels() -> None:
    found = read_att(["0 1 0", "1 2 5", "0 2 1", "2"], offset=1)
    assert found.label.tolist() == [-1, 4, 0]


def test_files_of_k2_have_label_minus_one_on_arcs_into_the_final_state() -> None:
    found = read_att(["0 1 10 -0.5", "0 1 20 -1.5", "1 2 -1 -2", "2"])
    assert found.label.tolist() == [10, 20, -1] and paths(found) == [([10], 2.5), ([20], 3.5)]


def test_the_first_line_names_the_start() -> None:
    assert read_att(["7 3 1", "3"]).start == 7
    assert read_att(["9"]).start == 9 and read_att(["9"]).count == 1


def test_symbols_have_names_and_numbers(tmp_path: Path) -> None:
    table = tmp_path / "symbols.txt"
    table.write_text("<eps>\t0\nthe\t1\ncat\t9\n", encoding="utf-8")
    found = read_att(["0 1 the", "1 2 cat 0.5", "1 2 <eps>", "2"], symbols=table)
    assert found.label.tolist() == [1, 9, -1] and found.symbols == {1: "the", 9: "cat"}
    assert read_att(["0 1 the", "1"], symbols=["the 1"], offset=1).symbols == {0: "the"}
    # Non-breaking spaces are part of a name.
    assert read_att(["0\t1\ta\u00a0b\t0.5", "1"], symbols=["a\u00a0b\t4"]).label.tolist() == [4]


def test_two_labels_are_read_if_they_are_equal_or_one_is_chosen() -> None:
    assert read_att(["0 1 3 3 0.5", "1 2 4 4", "2"]).arc_scores.tolist() == [-0.5, 0]
    assert read_att(["0 1 3 3", "1"], acceptor=False).arc_scores.tolist() == [0]
    assert read_att(["0 1 3 3", "1"], acceptor=True).arc_scores.tolist() == [-3]
    assert read_att(["0 1 a a", "1"], symbols=["a 1"]).label.tolist() == [1]
    for project, expected in (("input", 3), ("output", 8)):
        assert read_att(["0 1 3 8 0.5", "1"], project=project).label.tolist() == [expected]


def test_trim_removes_what_is_on_no_path_with_final_costs() -> None:
    lines = ["0 1 1 2", "1 2 2 3", "1 3 3 4", "5 2 4 5", "2 0.5", "6 1"]
    found = read_att(lines, trim=True)
    assert paths(found) == [([1, 2], -5.5)]


#: name: (lines, options, message)
ERRORS = {
    "nothing": ([], {}, "file: no lines;"),
    "blank": (["", "  "], {}, "file: no lines;"),
    "cycle": (["0 1 1", "1 2 1", "2 1 1", "2"], {}, r"file:(2: a cycle through state 1|3: a cycle through state 2);"),
    "unreachable": (["0 1 1", "5 1 2", "1"], {}, "file:2: no path from the start leads to state 5;"),
    "unreachable final": (["0 1 1", "1", "8"], {}, "file:3: no path from the start leads to state 8;"),
    "dead end": (["0 1 1", "", "0 2 1", "1"], {}, "file:3: no final state follows state 2;"),
    "empty language": (["0 1 1", "1 2 1"], {}, "file:1: no path from start state 0 to a final state;"),
    "empty after trim": (["0 1 1", "2 3 1", "3"], {"trim": True}, "file:1: no path from start state 0"),
    "state": (["0 1 1", "x 1 1", "1"], {}, "file:2: the state 'x' is not a number from 0;"),
    "negative state": (["0 -1 1", "1"], {}, "file:1: the state '-1' is not a number from 0;"),
    "final state": (["0 1 1", "1.5"], {}, "file:2: the state '1.5' is not a number from 0;"),
    "columns": (["0 1 1", "1 2 1 0.5 7 8", "2"], {}, "file:2: 6 columns, and an arc has 3 or 4;"),
    "three and five": (["0 1 1 1 0.5", "1 2 1", "2"], {}, "file:2: 3 columns, and an arc has 4 or 5;"),
    "cost": (["0 1 1 cheap", "0 1 2", "1"], {}, "file:1: the cost 'cheap' is not a number above −inf;"),
    "nan": (["0 1 1 nan", "0 1 2", "1"], {}, "file:1: the cost 'nan' is not a number above −inf;"),
    "minus infinity": (["0 1 1", "1 -Infinity"], {}, "file:2: the cost '-Infinity' is not a number above −inf;"),
    "label": (["0 1 a", "1"], {}, "file:1: the label 'a' is not a number; pass the symbol table as `symbols`"),
    "negative label": (["0 1 3", "1 2 -2", "2"], {}, "file:2: label '-2' has number -2, which is below the smallest, 1;"),
    "below the offset": (["0 1 1", "1"], {"offset": 2}, "file:1: label '1' has number 1, which is below the smallest, 2;"),
    "large state": (["0 1 1", "1 2147483648 1", "2147483648"], {}, "file:2: the state 2147483648 is above the largest,"),
    "large label": (["0 1 1", f"1 2 {10**20}", "2"], {}, f"file:2: the label {10**20} is above the largest, 2147483647;"),
    "large symbol": (["0 1 a", "1"], {"symbols": [f"a {10**20}"]}, f"file:1: the label {10**20} is above the largest,"),
    "unknown symbol": (["0 1 b", "1"], {"symbols": ["a 1"]}, "file:1: the symbol 'b' is not in the symbol table;"),
    "ambiguous": (["0 1 3 3", "1"], {}, "file:1: the fourth column equals the third: .*; pass acceptor=True or"),
    "transducer": (["0 1 3 3 1", "1 2 4 5 1", "2"], {}, "file:2: the labels '4' and '5' differ;"),
    "symbol table": (["0 1 a", "1"], {"symbols": ["a 1", "b"]}, "symbols:2: the line is not a name and a number;"),
    "repeated symbol": (["0 1 a", "1"], {"symbols": ["a 1", "a 2"]}, "symbols:2: the symbol 'a' is repeated;"),
    "project": (["0 1 1", "1"], {"project": "both"}, "`project` must be one of None, 'input', 'output', got 'both';"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_and_line(case: str) -> None:
    lines, options, message = ERRORS[case]
    with pytest.raises(ValueError, match=f"^{message}") as error:
        read_att(lines, **options)
    assert "\n" not in str(error.value)


def test_errors_have_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "lattice.fst").write_text("0 1 1\n1 0 1\n1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^lattice\.fst:[12]: a cycle through state [01];"):
        read_att(tmp_path / "lattice.fst")
    (tmp_path / "binary.fst").write_bytes(b"\xd6\xfd\xb2\x7e\x06")
    with pytest.raises(ValueError, match=r"^binary\.fst: the file is not UTF-8 text .*; write it as text"):
        read_att(str(tmp_path / "binary.fst"))
    with pytest.raises(FileNotFoundError):
        read_att(tmp_path / "none.fst")


def test_writing_refuses_labels_that_would_be_epsilon(tmp_path: Path) -> None:
    chain = Automaton.from_chain(2, 2)
    with pytest.raises(ValueError, match="`offset` must give labels numbers from 1, got number 0; pass offset=1"):
        write_att(chain, tmp_path / "a.fst")
    with pytest.raises(ValueError, match=r"`scores` must have shape \(6,\), got \(3, 6\);"):
        write_att(chain, tmp_path / "a.fst", torch.zeros(3, 6), offset=1)
    assert not (tmp_path / "a.fst").exists()
