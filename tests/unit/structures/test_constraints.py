"""Hard constraints against brute force over all sequences of tags."""

import copy
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from linearcore.structures import Chain, Constraints, Sites, bio, bioes, bmes, path_score


def obeys(constraints: Constraints, tags: Sequence[int]) -> bool:
    """The definition, in plain Python."""
    return (
        bool(constraints.start[tags[0]])
        and all(bool(constraints.transitions[a, b]) for a, b in itertools.pairwise(tags))
        and bool(constraints.end[tags[-1]])
    )


def reads_as_bio(names: Sequence[str]) -> bool:
    """A reader of segments: it holds the type of the segment that may go on, or nothing."""
    going: str | None = None
    for name in names:
        if name == "O":
            going = None
            continue
        prefix, kind = name[0], name[2:]
        if prefix == "I" and going != kind:
            return False
        going = kind
    return True


def reads_as_closed(names: Sequence[str], inner: str) -> bool:
    """The same for schemes that close their segments: it holds the type of the open segment, which must be closed."""
    going: str | None = None
    for name in names:
        prefix, kind = name[0], name[2:]
        if going is None:
            if prefix not in "OBS":
                return False
            going = kind if prefix == "B" else None
        else:
            if prefix not in (inner, "E") or kind != going:
                return False
            going = None if prefix == "E" else kind
    return going is None


def reads_as_bioes(names: Sequence[str]) -> bool:
    return reads_as_closed(names, "I")


def reads_as_bmes(names: Sequence[str]) -> bool:
    return reads_as_closed(names, "M")


Scheme = tuple[Callable[[Sequence[str]], Constraints], Callable[[Sequence[str]], bool], str]
SCHEMES: dict[str, Scheme] = {
    "bio": (bio, reads_as_bio, "BI"),
    "bioes": (bioes, reads_as_bioes, "BIES"),
    "bmes": (bmes, reads_as_bmes, "BMES"),
}
TYPES = {"one": ("-PER",), "two": ("-PER", "-LOC"), "hyphens": ("-work-of-art", "-work"), "bare": ("",), "mixed": ("", "-X")}
every_scheme = pytest.mark.parametrize(("build", "reads", "prefixes"), SCHEMES.values(), ids=SCHEMES.keys())
every_type = pytest.mark.parametrize("types", TYPES.values(), ids=TYPES.keys())

# Odd lengths only; one length only; a dead end; a start that leads nowhere; one tag; two cycles that meet every 6 steps.
GRAPHS = {
    "odd": Constraints.forbid(2, pairs=[(0, 0), (1, 1)], start=[1], end=[1]),
    "two": Constraints.forbid(2, pairs=[(0, 0), (1, 0), (1, 1)], start=[1], end=[0]),
    "dead end": Constraints.forbid(3, pairs=[(2, 0), (2, 1), (2, 2)], end=[2]),
    "lost start": Constraints.forbid(3, pairs=[(0, 1), (0, 2)], start=[2], end=[0]),
    "single": Constraints.forbid(1, pairs=[(0, 0)]),
    "free": Constraints.forbid(3),
    "cycles": Constraints.forbid(
        5, pairs=set(itertools.product(range(5), repeat=2)) - {(0, 1), (1, 0), (2, 3), (3, 4), (4, 2)}, end=[0, 3, 4]
    ),
}
every_graph = pytest.mark.parametrize("constraints", GRAPHS.values(), ids=GRAPHS.keys())


@every_scheme
@every_type
@pytest.mark.parametrize("outside", (True, False), ids=("with O", "without O"))
@pytest.mark.parametrize("length", (1, 2, 3, 4))
def test_schemes_allow_what_a_reader_of_segments_understands(
    build: Callable[[Sequence[str]], Constraints],
    reads: Callable[[Sequence[str]], bool],
    prefixes: str,
    types: Sequence[str],
    outside: bool,
    length: int,
) -> None:
    # Neither sorted nor in groups, so that an index taken for a name would show.
    names = [prefix + kind for prefix in reversed(prefixes) for kind in types]
    names[1:1] = ["O"] if outside else []
    constraints = build(names)
    allowed = 0
    for tags in itertools.product(range(len(names)), repeat=length):
        expected = reads([names[tag] for tag in tags])
        assert obeys(constraints, tags) == expected, [names[tag] for tag in tags]
        allowed += expected
    assert constraints.has_path(length) == (allowed > 0)


def test_segments_without_single_tags_need_two_sites() -> None:
    constraints = bmes(("B", "M", "E"))
    assert [constraints.has_path(length) for length in range(5)] == [True, False, True, True, True]


def test_names_may_come_as_an_array() -> None:
    names = ["O", "B-A", "I-A"]
    assert torch.equal(bio(np.array(names)).transitions, bio(names).transitions)  # type: ignore[arg-type]


@every_graph
@pytest.mark.parametrize("order", ([1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]), ids=str)
def test_has_path_is_there_is_a_sequence(constraints: Constraints, order: list[int]) -> None:
    fresh = Constraints(constraints.transitions, constraints.start, constraints.end)
    for length in order:
        expected = any(obeys(fresh, tags) for tags in itertools.product(range(fresh.num_tags), repeat=length))
        assert fresh.has_path(length) is expected
        assert fresh.has_path(length) is expected
    assert fresh.has_path(0) is True


def test_long_paths_come_in_the_rhythm_of_the_cycles() -> None:
    # 0 1 0 1 … must stop in 1, which it can at any length: it starts in 0 or in 1. From 3 the way to 2 takes 2 steps.
    assert all(GRAPHS["cycles"].has_path(length) for length in range(1, 50))
    only_long = Constraints(GRAPHS["cycles"].transitions, torch.arange(5) == 3, torch.arange(5) == 2)
    assert [length for length in range(1, 13) if only_long.has_path(length)] == [3, 6, 9, 12]


def test_what_is_known_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    constraints = bio(["O", "B", "I"])
    assert constraints.has_path(30)
    monkeypatch.setattr(Tensor, "any", lambda *_: pytest.fail("walked again"))
    assert all(constraints.has_path(length) for length in range(31))


def test_copies_work() -> None:
    constraints = copy.deepcopy(GRAPHS["odd"])
    assert constraints is not GRAPHS["odd"]
    assert [constraints.has_path(length) for length in (1, 2, 3)] == [True, False, True]
    assert len({constraints, GRAPHS["odd"]}) == 2


@pytest.mark.parametrize("padding", (0, -100))
def test_violations_are_at_the_sites_that_break_a_rule(padding: int) -> None:
    names = ["O", "B-A", "I-A", "E-A", "S-A"]
    constraints = bioes(names)
    # Capitals are wrong: the first tag, what does not follow, and the last. A dot is masked out.
    rows = ["o b i e s", "I . e o B", ". b O . I", "b . . e .", "s I B . .", "E . . . .", ". . . . ."]
    letters = "obies"
    cells = [row.split() for row in rows]
    mask = torch.tensor([[cell != "." for cell in row] for row in cells]).T
    tags = torch.tensor([[padding if cell == "." else letters.index(cell.lower()) for cell in row] for row in cells]).T
    expected = torch.tensor([[cell.isupper() for cell in row] for row in cells]).T
    assert torch.equal(constraints.violations(tags, Sites.of(mask)), expected)


@every_graph
def test_sequences_without_violations_obey(constraints: Constraints) -> None:
    for length in (1, 2, 3):
        every = list(itertools.product(range(constraints.num_tags), repeat=length))
        tags = torch.tensor(every).T
        wrong = constraints.violations(tags, Sites.of(torch.ones_like(tags, dtype=torch.bool)))
        assert (~wrong.any(0)).tolist() == [obeys(constraints, row) for row in every]


def test_no_sites_no_violations() -> None:
    tags = torch.zeros(0, 3, dtype=torch.long)
    assert GRAPHS["odd"].violations(tags, Sites.of(tags.bool())).shape == (0, 3)


@every_graph
def test_forbidden_sequences_score_minus_infinity_and_the_others_what_they_did(constraints: Constraints) -> None:
    stream, size = torch.Generator().manual_seed(0), constraints.num_tags
    start, transitions, end = (
        torch.randn(shape, dtype=torch.float64, generator=stream) for shape in ((size,), (size, size), (size,))
    )
    chain = Chain(start, transitions, end)
    every = list(itertools.product(range(size), repeat=3))
    tags = torch.tensor(every).T
    sites = Sites.of(torch.ones_like(tags, dtype=torch.bool))
    emissions = torch.randn(*tags.shape, size, dtype=torch.float64, generator=stream)
    before = path_score(emissions, chain, tags, sites)
    allowed = torch.tensor([obeys(constraints, row) for row in every])
    expected = torch.where(allowed, before, -math.inf)
    assert torch.equal(path_score(emissions, constraints.apply(chain), tags, sites), expected)


def test_gradients_reach_what_is_allowed_and_nothing_else() -> None:
    constraints = Constraints.forbid(3, pairs=[(0, 2), (1, 1)], start=[2], end=[0])
    chain = Chain(*(torch.ones(shape, requires_grad=True) for shape in ((3,), (3, 3), (3,))))
    scores = constraints.apply(chain)
    torch.cat([score.exp().reshape(-1) for score in scores]).sum().backward()
    for leaf, allowed in zip(chain, (constraints.start, constraints.transitions, constraints.end), strict=True):
        torch.testing.assert_close(leaf.grad, allowed * math.e)


def test_forbid_forbids_this_and_nothing_else() -> None:
    constraints = Constraints.forbid(3, pairs=[(0, 2), np.array([1, 1])], start=[torch.tensor(2)], end=[0, 1])
    assert constraints.num_tags == 3
    assert (~constraints.transitions).nonzero().tolist() == [[0, 2], [1, 1]]
    assert constraints.start.tolist() == [True, True, False]
    assert constraints.end.tolist() == [False, False, True]


ONES = torch.ones(2, dtype=torch.bool)
SQUARE = torch.ones(2, 2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("masks", "kind", "message"),
    (
        (
            ([[1]], ONES, ONES),
            TypeError,
            r"^`transitions` must be a torch tensor, got list; ",
        ),
        ((SQUARE, ONES.float(), ONES), TypeError, r"^`start` must be boolean, got torch.float32; "),
        ((SQUARE, ONES, None), TypeError, r"^`end` must be a torch tensor, got NoneType; "),
        ((SQUARE[:1], ONES, ONES), ValueError, r"^`transitions` must have shape \(num_tags, num_tags\), got \(1, 2\); "),
        ((ONES, ONES, ONES), ValueError, r"^`transitions` must have shape \(num_tags, num_tags\), got \(2,\); "),
        ((SQUARE, ONES[:1], ONES), ValueError, r"^`start` must have shape \(2,\), got \(1,\); "),
        ((SQUARE, ONES, SQUARE), ValueError, r"^`end` must have shape \(2,\), got \(2, 2\); "),
    ),
)
def test_messages_of_masks(masks: tuple[Tensor, Tensor, Tensor], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Constraints(*masks)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    (
        ((2.0,), TypeError, r"^`num_tags` must be an integer, got 2.0; "),
        ((0,), ValueError, r"^`num_tags` must be at least 1, got 0; "),
        ((2, [(0, 2)]), ValueError, r"^`pairs` must hold tags in \[0, 2\), got 2; "),
        ((2, [(-1, 0)]), ValueError, r"^`pairs` must hold tags in \[0, 2\), got -1; "),
        ((2, [(0, 1, 1)]), TypeError, r"^`pairs` must hold pairs of tags, got \(0, 1, 1\); "),
        ((2, [0, 1]), TypeError, r"^`pairs` must hold pairs of tags, got 0; "),
        ((2, [("O", 1)]), TypeError, r"^`pairs` must be an integer, got 'O'; "),
        ((2, [], [2]), ValueError, r"^`start` must hold tags in \[0, 2\), got 2; "),
        ((2, [], [], [5]), ValueError, r"^`end` must hold tags in \[0, 2\), got 5; "),
    ),
)
def test_messages_of_lists(arguments: tuple[object, ...], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Constraints.forbid(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "build",
    (
        lambda: Constraints.forbid(2, start=[0, 1]),
        lambda: Constraints.forbid(2, end=[0, 1]),
        lambda: Constraints.forbid(2, pairs=[(0, 1)], start=[1], end=[0]),
        lambda: Constraints.forbid(4, pairs=[(0, 2), (0, 3), (1, 2), (1, 3)], start=[2, 3], end=[0, 1]),
    ),
)
def test_constraints_that_nothing_obeys_are_refused(build: Callable[[], Constraints]) -> None:
    message = r"^`constraints` must allow at least one sequence, got none from \d allowed first tags to \d .*; "
    with pytest.raises(ValueError, match=message):
        build()


def test_an_end_many_steps_away_is_found() -> None:
    size = 40
    pairs = [(a, b) for a in range(size) for b in range(size) if b != a + 1]
    constraints = Constraints.forbid(size, pairs, start=range(1, size), end=range(size - 1))
    assert [length for length in range(1, 2 * size) if constraints.has_path(length)] == [size]


@every_scheme
@pytest.mark.parametrize("name", ("X-FOO", "PAD", "O-PER", "B-", "", "-PER", "BI-PER", "b-PER", "B_PER"))
def test_messages_of_names_outside_the_scheme(
    build: Callable[[Sequence[str]], Constraints], reads: object, prefixes: str, name: str
) -> None:
    known = ", ".join(map(repr, prefixes))
    message = (
        rf"^`names` must hold tags of {build.__name__.upper()}, got '{name}'; allowed are 'O' and {known} with or without"
    )
    with pytest.raises(ValueError, match=message + r" a type, as in 'B-PER'; rename the tag, or .* Constraints.forbid$"):
        build(["O", "B-PER", name])


@every_scheme
def test_messages_of_lists_of_names(build: Callable[[Sequence[str]], Constraints], reads: object, prefixes: str) -> None:
    with pytest.raises(ValueError, match=r"^`names` must be distinct and not empty, got 'B-A' 3 times; "):
        build(["O", "B-A", "B-A", "S-A" if "S" in prefixes else "I-A", "B-A"])
    with pytest.raises(ValueError, match=r"^`names` must be distinct and not empty, got none; "):
        build([])
    with pytest.raises(TypeError, match=r"^`names` must hold strings, got int; "):
        build(["O", 1])  # type: ignore[list-item]


def test_messages_of_lengths_and_chains() -> None:
    constraints = GRAPHS["free"]
    with pytest.raises(ValueError, match=r"^`length` must be at least 0, got -1; "):
        constraints.has_path(-1)
    with pytest.raises(TypeError, match=r"^`length` must be an integer, got 1.5; "):
        constraints.has_path(1.5)  # type: ignore[arg-type]
    chain = Chain(torch.zeros(4), torch.zeros(4, 4), torch.zeros(4))
    with pytest.raises(
        ValueError, match=r"^`constraints` must have the chain's 4 tags, got 3; build both from the same list"
    ):
        constraints.apply(chain)


@pytest.mark.parametrize(
    ("build", "names", "dead", "scheme"),
    (
        (bio, ["O", "I-A"], "I-A", "BIO"),
        (bio, ["B-A", "I-A", "I-B"], "I-B", "BIO"),
        (bioes, ["O", "B-A", "I-A"], "B-A", "BIOES"),
        (bioes, ["S-A", "B-A", "E-A", "E-B"], "E-B", "BIOES"),
        (bmes, ["S", "M"], "M", "BMES"),
    ),
)
def test_names_of_another_scheme_are_refused(
    build: Callable[[list[str]], Constraints], names: list[str], dead: str, scheme: str
) -> None:
    with pytest.raises(ValueError, match=f"^`names` must be usable in {scheme}, got '{dead}'; no sequence can contain it"):
        build(names)


@pytest.mark.parametrize("names", ("O", {"O": 0}, {0: "O"}))
def test_what_has_no_order_of_names_is_refused(names: object) -> None:
    with pytest.raises(TypeError, match=r"^`names` must be a sequence of names, got (str|dict); "):
        bio(names)  # type: ignore[arg-type]
