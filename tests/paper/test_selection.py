"""Which parts are asked for, and which cannot be done."""

import pytest

from linearcore_paper.runner import After, RecordedRun
from linearcore_paper.runner._job import check_parts, matching, with_dependencies


def run(settings=None):
    return RecordedRun(settings or {}, 0, dict)


def after(*needs):
    return After(needs, lambda results: run())


PARTS = {"d": after("b", "c"), "a": run(), "b": after("a"), "c": dict, "e": run()}


def test_parts_may_come_in_any_order():
    check_parts(PARTS)


def test_needs_are_followed_to_the_end():
    assert with_dependencies(PARTS, ["d"]) == {"a", "b", "c", "d"}
    assert with_dependencies(PARTS, ["e", "c"]) == {"c", "e"}


@pytest.mark.parametrize(("globs", "names"), [([], "abcde"), (["a"], "a"), (["[ab]", "e*"], "abe"), (["A"], "")])
def test_globs(globs, names):
    assert matching(PARTS, globs) == set(names)


@pytest.mark.parametrize("name", ["", ".", ".a", "a/b", "a b", "ä", "a\n", "../a", "a\\b"])
def test_names_are_words(name):
    with pytest.raises(ValueError, match="`part` must be letters, digits"):
        check_parts({name: run()})


@pytest.mark.parametrize(
    "parts", [{"a": after("a")}, {"a": after("b"), "b": after("a")}, {"a": after("nope")}, {"z": run(), "a": after("b")}]
)
def test_parts_that_cannot_be_done_are_named(parts):
    with pytest.raises(ValueError, match=r"`needs` must name parts that can run before, got \{'a': "):
        check_parts(parts)


@pytest.mark.parametrize(("value", "kind"), [(float("nan"), ValueError), (object(), TypeError)])
def test_settings_of_a_run_are_json(value, kind):
    with pytest.raises(kind, match="`settings` must be JSON values"):
        run({"rate": value})
