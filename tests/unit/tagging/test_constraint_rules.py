import pytest

from linearcore.tagging._constraint_rules import parse_rules, read_rules, rules_constraints

NAMES = ["O", "B", "I", "a b"]


def test_each_kind_of_rule():
    text = "# a comment\n\nforbid O I B\nafter B O\nafter B I\nfirst O B\nlast\tO\ta b\n"
    constraints = rules_constraints(text, NAMES)
    forbidden = {(NAMES[i], NAMES[j]) for i, j in (~constraints.transitions).nonzero().tolist()}
    assert forbidden == {("O", "I"), ("O", "B"), ("B", "B"), ("B", "a b")}
    assert constraints.start.tolist() == [True, True, False, False]
    assert constraints.end.tolist() == [True, False, False, True]


def test_forbid_and_after_together():
    allowed = rules_constraints("after B O I\nforbid B O\n", NAMES).transitions
    assert allowed[1].tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "text, fact",
    [
        ("forbid O I\nallow O B\n", "'allow' in line 2"),
        ("\nforbid O\n", "1 in line 2"),
        ("first\n", "0 in line 1"),
        ("forbid\tO\t\n", "1 in line 1"),
        ("# nothing\n", "must have a rule, got none"),
        ("forbid O X\n", "'X' in line 1"),
        ("forbid O a b\n", "'a' in line 1"),
        ("first I\nafter I I\nlast O\n", "allow at least one sequence"),
    ],
)
def test_rules_that_are_refused(text, fact):
    with pytest.raises(ValueError, match="`constraints` must") as caught:
        rules_constraints(text, NAMES)
    assert fact in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_bytes("\ufeffforbid O I\r\nfirst O".encode())
    assert read_rules(path) == "forbid O I\nfirst O\n"
    assert [rule.kind for rule in parse_rules(read_rules(path))] == ["forbid", "first"]
    path.write_bytes(b"forbid \xff O\n")
    with pytest.raises(ValueError, match=r"`constraints` must be .* UTF-8 text .*, got .*rules\.txt"):
        read_rules(path)
    with pytest.raises(ValueError, match=r"`constraints` must be a file .* that can be read, got .*\(is a directory\)"):
        read_rules(tmp_path)
