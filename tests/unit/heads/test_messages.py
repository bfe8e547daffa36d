"""Bad input to a chain head gets one sentence that says what must hold, what was got and what to do, and changes nothing."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from linearcore.heads import ChainCRF, ChainHead, ChainSSVM, LinearCoreChain
from linearcore.losses import Centered, LogOdds
from linearcore.structures import Constraints, Hamming
from linearcore.surrogates import LinearCore

NUM_TAGS = 3
EMISSIONS = torch.zeros(4, 2, NUM_TAGS)
TAGS = torch.tensor([[0, 1], [1, 2], [2, 0], [0, 0]])
MASK = torch.tensor([[1, 1], [1, 1], [1, 0], [1, 0]]).bool()

HEADS: dict[str, type[ChainHead]] = {"lc": LinearCoreChain, "crf": ChainCRF, "ssvm": ChainSSVM}
every_head = pytest.mark.parametrize("head_type", HEADS.values(), ids=HEADS.keys())


def changed(tensor: Tensor, place: tuple[int, int], value: float) -> Tensor:
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


Given = tuple[object, object, object]
#: Emissions, tags and mask, the error, and its words.
INPUTS: dict[str, tuple[Given, type[Exception], str]] = {
    "emissions a list": (([[[0.0] * 3]], TAGS, None), TypeError, r"`emissions` must be a torch tensor, got list; "),
    "emissions integer": ((EMISSIONS.long(), TAGS, None), TypeError, r"`emissions` must be floating point, got torch.int64"),
    "emissions complex": ((EMISSIONS.cfloat(), TAGS, None), TypeError, r"`emissions` must be floating point, got torch.co"),
    "one dimension too few": (
        (EMISSIONS[:, 0], TAGS[:, 0], None),
        ValueError,
        r"emissions must have dimension of 3, got 2; ",
    ),
    "one dimension too many": ((EMISSIONS[None], TAGS, None), ValueError, r"emissions must have dimension of 3, got 4"),
    "too few tags": (
        (EMISSIONS[..., :2], TAGS, None),
        ValueError,
        r"expected last dimension of emissions is 3, got 2; ",
    ),
    "mask a list": ((EMISSIONS, TAGS, MASK.tolist()), TypeError, r"`mask` must be a torch tensor, got list; "),
    "mask of the other layout": (
        (EMISSIONS, TAGS, MASK.t()),
        ValueError,
        r"the first two dimensions of emissions and mask must match, got \(4, 2\) and \(2, 4\); ",
    ),
    "mask of lengths": (
        (EMISSIONS, TAGS, torch.tensor([4, 2])),
        ValueError,
        r"the first two dimensions of emissions and mask must match, got \(4, 2\) and \(2,\)",
    ),
    "off in front": (
        (EMISSIONS, TAGS, changed(MASK, (0, 1), 0)),
        ValueError,
        r"mask of the first timestep must all be on; ",
    ),
    "off everywhere": (
        (EMISSIONS, TAGS, MASK & torch.tensor([True, False])),
        ValueError,
        r"mask of the first timestep must all be on; ",
    ),
}
TAGS_THEMSELVES: dict[str, tuple[Given, type[Exception], str]] = {
    "tags a list": ((EMISSIONS, TAGS.tolist(), None), TypeError, r"`tags` must be a torch tensor, got list; "),
    "tags of the other layout": (
        (EMISSIONS, TAGS.t(), None),
        ValueError,
        r"the first two dimensions of emissions and tags must match, got \(4, 2\) and \(2, 4\); ",
    ),
    "tags too long": (
        (EMISSIONS, torch.cat([TAGS, TAGS]), None),
        ValueError,
        r"the first two dimensions of emissions and tags must match, got \(4, 2\) and \(8, 2\)",
    ),
    "tags one-hot": (
        (EMISSIONS, EMISSIONS.long(), None),
        ValueError,
        r"the first two dimensions of emissions and tags must match, got \(4, 2\) and \(4, 2, 3\)",
    ),
    "tags float": ((EMISSIONS, TAGS.float(), None), TypeError, r"`tags` must be integers, got torch.float32; "),
    "tags bool": ((EMISSIONS, TAGS > 0, None), TypeError, r"`tags` must be integers, got torch.bool; "),
    "tags complex": ((EMISSIONS, TAGS.cfloat(), None), TypeError, r"`tags` must be integers, got torch.complex64"),
    "tag too large": (
        (EMISSIONS, changed(TAGS, (1, 1), 3), None),
        ValueError,
        r"`tags` must be in \[0, 3\) or -100, got tags from 0 to 3; ",
    ),
    "tag too small": ((EMISSIONS, changed(TAGS, (0, 1), -1), None), ValueError, r"got tags from -1 to 2; "),
    "tag too large where on": ((EMISSIONS, changed(TAGS, (3, 0), 7), MASK), ValueError, r"or -100, got tags from 0 to 7"),
    "tag too large beside -100": (
        (EMISSIONS, changed(changed(TAGS, (1, 1), 5), (0, 0), -100), None),
        ValueError,
        r"`tags` must be in \[0, 3\) or -100, got",
    ),
}


def refused(head: ChainHead, calls: list[Callable[[], object]], error: type[Exception], message: str) -> None:
    """Every call raises, and the head is afterwards as it was."""
    state = copy.deepcopy(head.state_dict())
    for call in calls:
        with pytest.raises(error, match=message):
            call()
    assert all(torch.equal(value, state[name]) for name, value in head.state_dict().items())
    assert head(EMISSIONS, TAGS, MASK).isfinite()


@every_head
@pytest.mark.parametrize(("given", "error", "message"), INPUTS.values(), ids=INPUTS.keys())
def test_emissions_and_masks(head_type: type[ChainHead], given: Given, error: type[Exception], message: str) -> None:
    head, (emissions, tags, mask) = head_type(NUM_TAGS), given
    calls = [
        lambda: head(emissions, tags, mask),
        lambda: head.confidence(emissions, mask, tags),
        lambda: head.confidence(emissions, mask),
        lambda: head.viterbi(emissions, mask),
        lambda: head.beam(emissions, mask, width=2),
        lambda: head.kbest(emissions, mask, k=2),
        lambda: head.decode(emissions, mask),
    ]
    if isinstance(head, ChainCRF):
        calls.append(lambda: head.marginals(emissions, mask))
    refused(head, calls, error, message)


@every_head
@pytest.mark.parametrize(("given", "error", "message"), TAGS_THEMSELVES.values(), ids=TAGS_THEMSELVES.keys())
def test_tags(head_type: type[ChainHead], given: Given, error: type[Exception], message: str) -> None:
    head, (emissions, tags, mask) = head_type(NUM_TAGS), given
    refused(head, [lambda: head(emissions, tags, mask), lambda: head.confidence(emissions, mask, tags)], error, message)


@every_head
def test_the_other_layout(head_type: type[ChainHead]) -> None:
    """The leading position is looked for where the layout says that it is."""
    head = head_type(NUM_TAGS, batch_first=True)
    emissions, tags, mask = EMISSIONS.transpose(0, 1), TAGS.t(), MASK.t()
    with pytest.raises(ValueError, match=r"and tags must match, got \(2, 4\) and \(4, 2\); "):
        head(emissions, TAGS, mask)
    with pytest.raises(ValueError, match="mask of the first timestep must all be on"):
        head(emissions, tags, changed(MASK, (0, 1), 0).t())
    assert head(emissions, tags, changed(mask, (0, 1), 0)).isfinite()
    with pytest.raises(ValueError, match="mask of the first timestep must all be on"):
        head_type(2, batch_first=True)(torch.zeros(1, 2, 2), torch.zeros(1, 2).long(), torch.tensor([[0, 1]]))


@every_head
def test_tags_that_are_off_may_be_anything(head_type: type[ChainHead]) -> None:
    head, tags = head_type(NUM_TAGS), TAGS.masked_fill(~MASK, 10**6)
    assert torch.equal(head(EMISSIONS, tags, MASK), head(EMISSIONS, TAGS, MASK))


@every_head
def test_unsigned_tags_are_tags(head_type: type[ChainHead]) -> None:
    """156 is −100 modulo 256, and yet a tag."""
    head = head_type(200)
    emissions, tags = torch.randn(2, 1, 200), torch.tensor([[156], [3]])
    for mask in (None, torch.ones(2, 1).bool(), torch.tensor([[True], [False]])):
        assert torch.equal(head(emissions, tags.to(torch.uint8), mask), head(emissions, tags, mask))


@every_head
@pytest.mark.parametrize("reduction", ("token-mean", "avg", None))
def test_reductions(head_type: type[ChainHead], reduction: str | None) -> None:
    message = f"invalid reduction: {reduction}; choose one of none, sum, mean, token_mean"
    with pytest.raises(ValueError, match=message):
        head_type(NUM_TAGS)(EMISSIONS, TAGS, reduction=reduction)


#: Only b follows a, only a follows b, a comes first and last: 1, 3, 5, … tags.
ODD = Constraints.forbid(NUM_TAGS, pairs=[(0, 0), (1, 1), (0, 2), (2, 0), (2, 1), (1, 2), (2, 2)], start=[1, 2], end=[1, 2])


@every_head
def test_constraints_that_leave_no_path(head_type: type[ChainHead]) -> None:
    head = head_type(NUM_TAGS, constraints=ODD)
    message = "`constraints` must allow sequences of every length, got none of length 2; "
    mask = torch.tensor([[1, 1], [1, 1], [1, 0], [0, 0]])
    for call in (
        lambda: head(EMISSIONS, TAGS, mask),
        lambda: head(EMISSIONS, TAGS.masked_fill(mask == 0, -100)),
        lambda: head.viterbi(EMISSIONS, mask),
        lambda: head.beam(EMISSIONS, mask, width=2),
        lambda: head.kbest(EMISSIONS, mask, k=2),
        lambda: head.decode(EMISSIONS, mask),
        lambda: head.confidence(EMISSIONS, mask),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="got none of length 4; "):
        head.decode(EMISSIONS)
    assert head.decode(EMISSIONS[:3]) == [[0, 1, 0]] * 2
    # Holes do not count, and a chain without tags needs no path.
    assert head.decode(EMISSIONS, torch.tensor([[1, 1], [0, 1], [1, 1], [1, 0]])) == [[0, 1, 0]] * 2
    assert head(EMISSIONS, torch.full_like(TAGS, -100)) == 0


NO_REPEATS = Constraints.forbid(NUM_TAGS, pairs=[(0, 0), (1, 1), (2, 2)], start=[2], end=[1])


@every_head
@pytest.mark.parametrize("batch_first", (False, True), ids=("time first", "batch first"))
@pytest.mark.parametrize(
    ("rows", "count", "place", "chain", "what"),
    (
        ([[0, 1, 1, 0], [0, 1, 0, 0]], 2, 2, 0, "tag 1 after tag 1"),
        ([[0, 1, 2, 0], [0, 1, 0, 0]], 1, 3, 1, "tag 0 after tag 0"),
        ([[2, 1, 0, 2], [0, 1, 0, 2]], 1, 0, 0, "tag 2 as the first tag"),
        ([[0, 1, 0, 2], [0, 2, 0, 1]], 1, 3, 1, "tag 1 as the last tag"),
        ([[0, 1, 0, 2], [0, -100, 0, 2]], 1, 2, 1, "tag 0 after tag 0"),
        ([[0, 1, 0, 2], [-100, 2, 0, 2]], 1, 1, 1, "tag 2 as the first tag"),
        ([[0, 1, 0, 2], [0, 2, 1, -100]], 1, 2, 1, "tag 1 as the last tag"),
    ),
    ids=("two", "follows", "first", "last", "across a hole", "first after -100", "last before -100"),
)
def test_tags_that_disobey(
    head_type: type[ChainHead], batch_first: bool, rows: list[list[int]], count: int, place: int, chain: int, what: str
) -> None:
    head = head_type(NUM_TAGS, batch_first, constraints=NO_REPEATS)
    tags, emissions = torch.tensor(rows), EMISSIONS.transpose(0, 1)
    if not batch_first:
        tags, emissions = tags.t(), EMISSIONS
    message = (
        f"`tags` must satisfy `constraints`, got {count} violations, the first at position {place} of sequence {chain} "
        rf"\({what}\); "
    )
    with pytest.raises(ValueError, match=message):
        head(emissions, tags)
    with pytest.raises(ValueError, match=message):
        head.confidence(emissions, tags=tags)


@every_head
def test_tags_that_disobey_where_they_are_off(head_type: type[ChainHead]) -> None:
    head = head_type(NUM_TAGS, constraints=NO_REPEATS)
    mask = torch.tensor([[1, 1], [1, 1], [1, 0], [1, 0]])
    tags = torch.tensor([[0, 0, 1, 2], [1, 0, 0, 0]]).t()
    with pytest.raises(ValueError, match="the first at position 1 of sequence 0"):
        head(EMISSIONS, tags, mask)
    tags[1, 0], tags[2, 0] = 1, 0
    assert head(EMISSIONS, tags, mask).isfinite()


#: What is built, the error, and its words.
BUILT: dict[str, tuple[Callable[[type[ChainHead]], ChainHead], type[Exception], str]] = {
    "no tags": (lambda head: head(0), ValueError, r"invalid number of tags: 0; "),
    "tags below zero": (lambda head: head(-3), ValueError, r"invalid number of tags: -3; "),
    "half a tag": (lambda head: head(2.5), ValueError, r"invalid number of tags: 2.5; "),
    "rank zero": (lambda head: head(3, rank=0), ValueError, r"`rank` must be a positive integer or None, got 0; "),
    "rank below zero": (lambda head: head(3, rank=-1), ValueError, r"`rank` must be a positive integer or None, got -1; "),
    "half a rank": (lambda head: head(3, rank=1.5), ValueError, r"`rank` must be a positive integer or None, got 1.5; "),
    "constraints a tensor": (
        lambda head: head(3, constraints=torch.ones(3, 3).bool()),
        TypeError,
        r"`constraints` must be `Constraints` or None, got Tensor; ",
    ),
    "constraints of pairs": (
        lambda head: head(3, constraints=[(0, 1)]),
        TypeError,
        r"`constraints` must be `Constraints` or None, got list",
    ),
    "constraints for others": (
        lambda head: head(4, constraints=NO_REPEATS),
        ValueError,
        r"`constraints` must be for 4 tags, got 3; ",
    ),
}


@every_head
@pytest.mark.parametrize(("build", "error", "message"), BUILT.values(), ids=BUILT.keys())
def test_heads(head_type: type[ChainHead], build: Callable, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(head_type)


LOSSES: dict[str, tuple[Callable[[], ChainHead], type[Exception], str]] = {
    "log-odds on average": (
        lambda: LinearCoreChain(3, form="logodds", normalize=True),
        ValueError,
        r"`normalize` must be None or False for form='logodds', got True; ",
    ),
    "a log-odds object on average": (
        lambda: LinearCoreChain(3, form=LogOdds(), normalize=True),
        ValueError,
        r"`normalize` must be None or False for form='logodds', got True",
    ),
    "centered with two sides": (
        lambda: LinearCoreChain(3, form="centered", surrogate=LinearCore(sides=2)),
        ValueError,
        r"`surrogate` must be one-sided for form=\"centered\", got LinearCore",
    ),
    "a centered object with two sides": (
        lambda: LinearCoreChain(3, form=Centered(), surrogate=LinearCore(sides=2)),
        ValueError,
        r"`surrogate` must be one-sided for form=\"centered\", got LinearCore",
    ),
    "log-odds that rise": (
        lambda: LinearCoreChain(3, surrogate=LinearCore("quartic")),
        ValueError,
        r"`surrogate` must be non-increasing for form=\"logodds\", got LinearCore",
    ),
    "an unknown form": (
        lambda: LinearCoreChain(3, form="log-odds"),
        ValueError,
        r"`form` must be one of 'pairwise', 'centered', 'logodds', got 'log-odds'",
    ),
    "no form": (lambda: LinearCoreChain(3, form=None), TypeError, r"`form` must be a name or a `Form`, got NoneType"),
    "a surrogate by name": (
        lambda: LinearCoreChain(3, surrogate="logistic"),
        TypeError,
        r"`surrogate` must be a `Surrogate`, got str; ",
    ),
    "an unknown cost": (
        lambda: LinearCoreChain(3, cost="f2"),
        ValueError,
        r"`cost` must be one of 'zero-one', 'hamming', .*, got 'f2'; choose one of these or pass a Cost",
    ),
    "an unknown cost of the SSVM": (
        lambda: ChainSSVM(3, cost="f2"),
        ValueError,
        r"`cost` must be one of 'zero-one', 'hamming', .*, got 'f2'",
    ),
    **{
        f"a unary share of {share!r}": (
            lambda share=share: LinearCoreChain(3, unary=share),
            ValueError,
            rf"^`unary` must be a number in \[0, 1\), got {share!r}; ",
        )
        for share in (1.0, 1, -0.1, math.nan, math.inf, True, "half", None)
    },
    "weights for others": (
        lambda: LinearCoreChain(3, cost=Hamming(torch.ones(4))),
        ValueError,
        r"`weight` must have shape \(3,\), got \(4,\); ",
    ),
    "weights for others of the SSVM": (
        lambda: ChainSSVM(3, cost=Hamming(torch.ones(2))),
        ValueError,
        r"`weight` must have shape \(3,\), got \(2,\); ",
    ),
}


@pytest.mark.parametrize(("build", "error", "message"), LOSSES.values(), ids=LOSSES.keys())
def test_losses(build: Callable[[], ChainHead], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


@every_head
@pytest.mark.parametrize("number", (0, -1, 2.0, None, "3", True))
def test_counts(head_type: type[ChainHead], number: object) -> None:
    head = head_type(NUM_TAGS)
    got = repr(number) if isinstance(number, int | float) else type(number).__name__
    for name, decode, example in (("k", head.kbest, 5), ("width", head.beam, 16)):
        with pytest.raises(ValueError, match=f"`{name}` must be a positive integer, got {got}; for example {example}"):
            decode(EMISSIONS, **{name: number})
    if number is not None:
        with pytest.raises(ValueError, match="`width` must be a positive integer"):
            head.decode(EMISSIONS, width=number)


@every_head
def test_counts_by_position(head_type: type[ChainHead]) -> None:
    """Earlier versions had `k` and `width` where the other decoders have `mask`."""
    head = head_type(NUM_TAGS)
    for name, decode in (("k", head.kbest), ("width", head.beam)):
        for arguments in ((EMISSIONS, 5), (EMISSIONS, 5, MASK), (EMISSIONS, MASK, 5)):
            with pytest.raises(TypeError, match=f"`{name}` must be passed by name, got 5.* `{name}=5`"):
                decode(*arguments)
        with pytest.raises(TypeError, match=f"required keyword-only argument: '{name}'"):
            decode(EMISSIONS, MASK)
        with pytest.raises(TypeError, match="`mask` must be a torch tensor, got int"):
            decode(EMISSIONS, 5, **{name: 5})


@every_head
def test_without_validation_masks_may_be_in_any_order(head_type: type[ChainHead]) -> None:
    """Off in front means that the chain begins later; off everywhere, that there is none."""
    head = head_type(NUM_TAGS, validate=False)
    emissions = torch.randn(4, 2, NUM_TAGS)
    mask = torch.tensor([[0, 0], [1, 0], [0, 0], [1, 0]]).bool()
    losses = -head(emissions, TAGS, mask, reduction="none")
    expected = -head(emissions[[1, 3], :1], TAGS[[1, 3], :1])
    torch.testing.assert_close(losses, torch.stack([expected, torch.zeros(())]))
    tags, scores = head.viterbi(emissions, mask)
    assert torch.equal(tags[[1, 3], :1], head.viterbi(emissions[[1, 3], :1])[0])
    assert (tags[~mask] == -100).all() and scores[1] == 0
    assert head.decode(emissions, mask)[1] == []


@every_head
def test_without_validation_constraints_are_not_looked_up(head_type: type[ChainHead]) -> None:
    head = head_type(NUM_TAGS, constraints=NO_REPEATS, validate=False)
    loss = -head(EMISSIONS[:2, :1], torch.tensor([[0], [0]]))
    assert loss == math.inf or head_type is ChainSSVM
    with pytest.raises(ValueError, match="emissions must have dimension of 3"):  # Shapes cost nothing to look at.
        head(EMISSIONS[0], TAGS[0])


@every_head
def test_a_failed_call_leaves_inputs_and_gradients_alone(head_type: type[ChainHead]) -> None:
    head = head_type(NUM_TAGS, constraints=NO_REPEATS)
    emissions = torch.randn(4, 2, NUM_TAGS, requires_grad=True)
    before, tags, mask = emissions.detach().clone(), torch.zeros_like(TAGS), MASK.clone()
    with pytest.raises(ValueError, match="satisfy `constraints`"):
        head(emissions, tags, mask)
    assert torch.equal(emissions.detach(), before) and (tags == 0).all() and torch.equal(mask, MASK)
    assert emissions.grad is None and all(parameter.grad is None for parameter in head.parameters())


@every_head
def test_without_a_strict_mask_the_front_is_skipped(head_type: type[ChainHead]) -> None:
    head = head_type(NUM_TAGS, strict_mask=False)
    mask = torch.tensor([[0, 1], [1, 0], [1, 1], [1, 0]])
    alone = [head.decode(EMISSIONS[mask[:, i].bool(), i : i + 1])[0] for i in range(2)]
    assert head.decode(EMISSIONS, mask) == alone
    assert head.decode(EMISSIONS, torch.zeros_like(mask)) == [[], []]
    apart = [head(EMISSIONS[mask[:, i].bool(), i : i + 1], TAGS[mask[:, i].bool(), i : i + 1]) for i in range(2)]
    torch.testing.assert_close(head(EMISSIONS, TAGS, mask), sum(apart))


@every_head
def test_a_strict_mask_may_be_off_in_front_where_the_tag_says_so_too(head_type: type[ChainHead]) -> None:
    head = head_type(NUM_TAGS)
    tags = TAGS.clone()
    tags[0, 1] = -100
    torch.testing.assert_close(head(EMISSIONS, tags, tags != -100), head(EMISSIONS, tags))
    with pytest.raises(ValueError, match="mask of the first timestep must all be on"):
        head(EMISSIONS, TAGS, tags != -100)
