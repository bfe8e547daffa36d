"""The step of exact decoding: with a bound or without, the maximum is the same to the last bit."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from linearcore.kernels import _max_product
from linearcore.kernels._max_product import MIN_TAGS_TO_PRUNE, NUM_BOUND_TAGS, MaxProduct

SIZE, BATCH = 300, 3


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def forbidden(*shape: int, rate: float, seed: int = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < rate


def with_row_and_column(transitions: Tensor) -> Tensor:
    """A tag that cannot be left and one that cannot be reached."""
    transitions = transitions.clone()
    transitions[7], transitions[:, 11] = -math.inf, -math.inf
    return transitions


ALPHA, TRANSITIONS = normal(BATCH, SIZE), normal(SIZE, SIZE, seed=2)
#: A row sharp, a row flat, a row that nothing reaches: the bound has to serve all at once.
MIXED = torch.stack([100 * ALPHA[0], 0.01 * ALPHA[1], torch.full((SIZE,), -math.inf, dtype=torch.float64)])

STEPS: dict[str, tuple[Tensor, Tensor]] = {
    "flat": (0.01 * ALPHA, TRANSITIONS),
    "sharp": (100 * ALPHA, TRANSITIONS),
    "sharp alpha alone": (100 * ALPHA, torch.zeros(SIZE, SIZE, dtype=torch.float64)),
    "a few can raise": (5 * ALPHA, TRANSITIONS),
    "half forbidden": (100 * ALPHA, TRANSITIONS.masked_fill(forbidden(SIZE, SIZE, rate=0.5), -math.inf)),
    "nearly all forbidden": (100 * ALPHA, TRANSITIONS.masked_fill(forbidden(SIZE, SIZE, rate=0.99), -math.inf)),
    "row and column forbidden": (100 * ALPHA, with_row_and_column(TRANSITIONS)),
    "all forbidden": (ALPHA, torch.full((SIZE, SIZE), -math.inf, dtype=torch.float64)),
    "few tags reached": ((10 * ALPHA).masked_fill(forbidden(BATCH, SIZE, rate=0.97), -math.inf), TRANSITIONS),
    "mixed": (MIXED, TRANSITIONS),
    "all tie": (torch.zeros(BATCH, SIZE, dtype=torch.float64), torch.zeros(SIZE, SIZE, dtype=torch.float64)),
    "many tie": ((3 * ALPHA).round(), (2 * TRANSITIONS).round()),
    "no chains": (ALPHA[:0], TRANSITIONS),
}
every_step = pytest.mark.parametrize(("alpha", "transitions"), STEPS.values(), ids=STEPS.keys())
both_dtypes = pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=("float32", "float64"))


def definition(alpha: Tensor, transitions: Tensor) -> Tensor:
    return (alpha.unsqueeze(-1) + transitions).amax(1)


@both_dtypes
@every_step
def test_the_step_is_the_maximum(alpha: Tensor, transitions: Tensor, dtype: torch.dtype) -> None:
    alpha, transitions = alpha.to(dtype), transitions.to(dtype)
    step = MaxProduct(transitions)
    right = definition(alpha, transitions)
    assert torch.equal(step(alpha), right)
    assert torch.equal(step._dense(alpha), right)


@every_step
def test_a_bound_skips_without_loss_however_much_it_leaves(
    alpha: Tensor, transitions: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a second look always paid."""
    monkeypatch.setattr(_max_product, "MAX_REMAINING_FRACTION", 1.0)
    step = MaxProduct(transitions)
    assert step._row_max is not None
    found = step._max_with_pruning(alpha, step._row_max)
    assert found is not None and torch.equal(found, definition(alpha, transitions))


def test_sharp_scores_skip_and_flat_ones_do_not() -> None:
    skips = {}
    for name, (alpha, transitions) in STEPS.items():
        step = MaxProduct(transitions)
        skips[name] = step._row_max is not None and step._max_with_pruning(alpha, step._row_max) is not None
    assert skips["sharp"] and skips["sharp alpha alone"] and skips["a few can raise"]
    assert not skips["flat"] and not skips["mixed"]


def test_the_best_predecessor_may_be_none_of_the_guesses() -> None:
    """One tag scores too little to be a guess, and has the one transition that is worth it."""
    alpha, transitions = torch.full((2, SIZE), -100.0), torch.zeros(SIZE, SIZE)
    alpha[:, :NUM_BOUND_TAGS] = 10.0
    alpha[0, 20], transitions[20, 5] = 9.0, 50.0
    step = MaxProduct(transitions)
    assert step._row_max is not None
    found = step._max_with_pruning(alpha, step._row_max)
    assert found is not None and torch.equal(found, definition(alpha, transitions))
    assert found[:, 5].tolist() == [59.0, 10.0]


def test_few_tags_are_never_skipped() -> None:
    assert MaxProduct(torch.zeros(MIN_TAGS_TO_PRUNE - 1, MIN_TAGS_TO_PRUNE - 1))._row_max is None
    assert MaxProduct(torch.zeros(MIN_TAGS_TO_PRUNE, MIN_TAGS_TO_PRUNE))._row_max is not None


@pytest.mark.parametrize("num_tags", (1, 2, 7, 255))
@pytest.mark.parametrize("block", (1, 100, 7 * 7 * 2, 2**20))
def test_dense_blocks_of_any_size(num_tags: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_max_product, "CPU_STEP", block)
    alpha, transitions = normal(5, num_tags), normal(num_tags, num_tags, seed=1)
    assert torch.equal(MaxProduct(transitions)(alpha), definition(alpha, transitions))


def test_steps_share_memory_but_not_results() -> None:
    step = MaxProduct(TRANSITIONS[:50, :50])
    alphas = [normal(batch, 50, seed=batch) for batch in (3, 1, 6)]
    found = [step(alpha) for alpha in alphas]
    assert all(torch.equal(one, definition(alpha, TRANSITIONS[:50, :50])) for one, alpha in zip(found, alphas, strict=True))


def test_columns_are_the_ways_to_arrive() -> None:
    tags = torch.tensor([3, 0, 299, 3])
    assert torch.equal(MaxProduct(TRANSITIONS).columns(tags), TRANSITIONS[:, tags].t())


def test_flat_scores_are_tried_again_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    flat, sharp = torch.zeros(1, MIN_TAGS_TO_PRUNE), torch.zeros(1, MIN_TAGS_TO_PRUNE)
    sharp[0, 0] = 1e3
    tried: list[int] = []
    done: list[Tensor] = []
    inner = MaxProduct._max_with_pruning

    def spy(self: MaxProduct, alpha: Tensor, most: Tensor) -> Tensor | None:
        tried.append(len(done))
        return inner(self, alpha, most)

    monkeypatch.setattr(MaxProduct, "_max_with_pruning", spy)
    step = MaxProduct(normal(MIN_TAGS_TO_PRUNE, MIN_TAGS_TO_PRUNE).float())
    for scores in [flat] * 60 + [sharp] * 15 + [flat] * 2:
        done.append(step(scores))
    # One step apart, then two, four, eight and sixteen; after a success without a pause, and then from the beginning.
    assert tried == [0, 2, 5, 10, 19, 36, 53, 70, 71, 72, 73, 74, 75]


def test_a_dense_search_is_one_until_it_ends() -> None:
    transitions = torch.zeros(MIN_TAGS_TO_PRUNE, MIN_TAGS_TO_PRUNE)
    with pytest.raises(ZeroDivisionError), _max_product.dense_search():
        assert not MaxProduct(transitions)._can_prune
        raise ZeroDivisionError
    assert MaxProduct(transitions)._can_prune


def test_a_dense_search_is_its_own_threads_alone() -> None:
    transitions = torch.zeros(MIN_TAGS_TO_PRUNE, MIN_TAGS_TO_PRUNE)
    with _max_product.dense_search(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: MaxProduct(transitions)._can_prune).result()
