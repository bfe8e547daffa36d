"""The library computes what the snapshot has, and the comparison notices where it does not."""

import numpy as np
import pytest

from tests.snapshot.families import FAMILIES, of_family
from tests.snapshot.optimizers import optimizers
from tests.snapshot.record import Entry, collect, compare, difference, read, refused, write


@pytest.fixture(scope="module")
def record():
    return read()


#: One of so many entries is compared by `make test`; 7 has no factor in common with the axes that entries run over.
ONE_OF = 7


@pytest.mark.parametrize("family", FAMILIES)
def test_some_numbers_of_every_family_have_not_changed(family, record):
    names = list(dict.fromkeys(entry.name for entry in FAMILIES[family]()))[::ONE_OF]
    entries = [entry for entry in FAMILIES[family]() if entry.name in names]
    problems = [text for text in compare(entries, of_family(family, record)) if not text.endswith("no longer computed")]
    assert entries and not problems, "\n".join([*problems[:20], "`python -m tests.snapshot` compares everything"])


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_has_changed(family, record):
    problems = list(compare(FAMILIES[family](), of_family(family, record)))
    shown = "\n".join(problems[:20])
    assert not problems, f"{len(problems)} differences; `python -m tests.snapshot --verbose {family}` has all:\n{shown}"


def test_the_record_has_no_other_families(record):
    assert {name.split("/")[0] for name in record} == set(FAMILIES)


def test_the_comparison_notices_a_changed_a_missing_and_an_additional_number(record):
    recorded = of_family("optimizers", record)
    changed, missing = sorted(recorded)[:2]
    perturbed = recorded[changed].copy()
    perturbed.flat[0] *= 1 + 1e-4
    altered = {**recorded, changed: perturbed, "optimizers/more": np.zeros(2)}
    del altered[missing]
    problems = list(compare(optimizers(), altered))
    assert [problem.split(": ")[0] for problem in problems] == [changed, missing, "optimizers/more"]
    assert "differ, worst at" in problems[0]
    assert "not in the record" in problems[1]
    assert "no longer computed" in problems[2]


def test_another_way_to_the_same_numbers_is_compared_with_their_record():
    entries = [Entry("a", lambda: {"value": 1.0, "value [how]": 3.0}), Entry("a", lambda: {"value": 2.0}, via="backend")]
    recorded = collect(entries)
    assert set(recorded) == {"a/value"}
    assert list(compare(entries, recorded)) == [
        "a/value [how]: 1 of 1 differ, worst: 3.0 instead of 1.0",
        "a/value [backend]: 1 of 1 differ, worst: 2.0 instead of 1.0",
    ]


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        (np.float64(1 + 2e-9), np.float64(1)),
        (np.float32(1 + 1e-4), np.float32(1)),
        (np.float32(1), np.float64(1)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1, 0]), np.array([True, False])),
        (np.array("yes"), np.array("no")),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([1.0, 2.0]), np.array([1.0, np.nan])),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf])),
        (np.array([1.0, 1e300]), np.array([1.0, np.inf])),
    ],
)
def test_what_differs(found, recorded):
    assert difference(np.asarray(found), np.asarray(recorded))


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        (np.float64(1 + 1e-10), np.float64(1)),
        (np.float32(1 + 1e-5), np.float32(1)),
        (np.array([np.nan, np.inf, -np.inf]), np.array([np.nan, np.inf, -np.inf])),
        (np.array([1e6, 1e-7]), np.array([1e6, 2e-7])),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_what_does_not_differ(found, recorded):
    assert not difference(np.asarray(found), np.asarray(recorded))


def test_two_entries_of_one_name_are_an_error():
    with pytest.raises(ValueError, match="two entries have the name a/value"):
        collect([Entry("a", lambda: {"value": 1.0})] * 2)


def test_a_call_that_is_not_refused_is_an_error():
    with pytest.raises(AssertionError, match="expected to refuse"):
        refused(lambda: None)


def test_writing_is_deterministic_and_reading_gives_it_back(tmp_path, record):
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    write(record, first)
    write(dict(reversed(record.items())), second)
    assert first.read_bytes() == second.read_bytes()
    again = read(first)
    assert again.keys() == record.keys()
    assert all(again[name].dtype == array.dtype for name, array in record.items())
    assert all(np.array_equal(again[name], array, equal_nan=array.dtype.kind == "f") for name, array in record.items())
