"""Every cost against a loop over tag sequences written for the test, with masks, padding and all pairs."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from linearcore.structures import (
    COST_NAMES,
    COSTS,
    AlignedNgram,
    Bleu,
    ClippedNgram,
    Cost,
    EditDistance,
    SpanF1,
    TokenF1,
    ngram_kernel,
    resolve_cost,
)

BIO = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
BIOES = ("O", "B-A", "I-A", "E-A", "S-A", "B", "I", "E", "S")
Tags = list[int]


def grams(tags: Tags, n: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(tags[j : j + n]) for j in range(len(tags) - n + 1))


def aligned(guess: Tags, truth: Tags, n: int) -> float:
    if not truth:
        return 0.0
    n = min(n, len(truth))
    places = range(len(truth) - n + 1)
    return sum(guess[j : j + n] != truth[j : j + n] for j in places) / len(places)


def clipped(guess: Tags, truth: Tags, n: int) -> float:
    if not truth:
        return 0.0
    n = min(n, len(truth))
    return 1 - (grams(guess, n) & grams(truth, n)).total() / grams(truth, n).total()


def levenshtein(guess: Tags, truth: Tags) -> int:
    row = list(range(len(truth) + 1))
    for i, tag in enumerate(guess, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(truth, 1):
            diagonal, row[j] = row[j], min(diagonal + (tag != other), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def token_f1(guess: Tags, truth: Tags, outside: set[int]) -> float:
    found, true = ({(j, tag) for j, tag in enumerate(tags) if tag not in outside} for tags in (guess, truth))
    return 1 - 2 * len(found & true) / (len(found) + len(true)) if found or true else 0.0


def span_f1(guess: Tags, truth: Tags, names: tuple[str, ...]) -> float:
    entities = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    found, true = (set(entities([names[tag] for tag in tags])) for tags in (guess, truth))
    return 1 - 2 * len(found & true) / (len(found) + len(true)) if found or true else 0.0


def sacrebleu(guess: Tags, truth: Tags, **options: object) -> float:
    metric = pytest.importorskip("sacrebleu.metrics").BLEU(tokenize="none", effective_order=True, **options)
    if not guess and not truth:
        return 0.0
    return 1 - metric.sentence_score(" ".join(map(str, guess)), [" ".join(map(str, truth))]).score / 100


def bleu(**options: object) -> Callable[[Tags, Tags], float]:
    return lambda guess, truth: sacrebleu(guess, truth, **options)


CASES: dict[str, tuple[Cost, int, Callable[[Tags, Tags], float]]] = {
    "ngram": (AlignedNgram(), 3, lambda guess, truth: aligned(guess, truth, 2)),
    "ngram-3": (AlignedNgram(3), 2, lambda guess, truth: aligned(guess, truth, 3)),
    "clipped-ngram": (ClippedNgram(), 3, lambda guess, truth: clipped(guess, truth, 2)),
    "clipped-ngram-3": (ClippedNgram(3), 2, lambda guess, truth: clipped(guess, truth, 3)),
    "edit": (EditDistance(), 3, lambda guess, truth: levenshtein(guess, truth) / max(1, len(truth))),
    "token-f1": (TokenF1(1), 3, lambda guess, truth: token_f1(guess, truth, {1})),
    "token-f1-two-outside": (TokenF1((0, 2)), 4, lambda guess, truth: token_f1(guess, truth, {0, 2})),
    "span-f1": (SpanF1(BIO), 5, lambda guess, truth: span_f1(guess, truth, BIO)),
    "span-f1-bioes": (SpanF1(BIOES), 9, lambda guess, truth: span_f1(guess, truth, BIOES)),
    "bleu": (Bleu(), 3, bleu()),
    "bleu-2": (Bleu(2), 3, bleu(max_ngram_order=2)),
    "bleu-none": (Bleu(smooth="none"), 2, bleu(smooth_method="none")),
    "bleu-floor": (Bleu(smooth="floor"), 3, bleu(smooth_method="floor")),
    "bleu-floor-0.5": (Bleu(smooth="floor", value=0.5), 3, bleu(smooth_method="floor", smooth_value=0.5)),
    "bleu-add-k": (Bleu(smooth="add-k"), 3, bleu(smooth_method="add-k")),
    "bleu-add-2": (Bleu(smooth="add-k", value=2.0), 3, bleu(smooth_method="add-k", smooth_value=2.0)),
}
every_case = pytest.mark.parametrize(("cost", "num_tags", "by_loop"), CASES.values(), ids=CASES.keys())


def close(left: Tensor, right: Any) -> None:
    torch.testing.assert_close(left, torch.as_tensor(right, dtype=torch.float64), rtol=0.0, atol=1e-12)


def draw(num_tags: int, lengths: list[int], width: int, seed: int, padding: int) -> tuple[list[Tags], Tensor, Tensor]:
    """Sequences, bare and padded, at random places, and the mask."""
    stream = random.Random(seed)
    rows = [[stream.randrange(num_tags) for _ in range(length)] for length in lengths]
    mask, tags = torch.zeros(len(rows), width, dtype=torch.bool), torch.full((len(rows), width), padding)
    for row, sequence in enumerate(rows):
        places = sorted(stream.sample(range(width), len(sequence)))
        mask[row, places] = True
        tags[row, places] = torch.tensor(sequence, dtype=torch.long)
    return rows, tags, mask


LENGTHS = [0, 1, 2, 3, 4, 5, 6, 8, 8, 8, 8, 8]


@every_case
@pytest.mark.parametrize("padding", (0, -100))
def test_equals_a_loop_over_sequences(cost: Cost, num_tags: int, by_loop: Callable[..., float], padding: int) -> None:
    truths, target, mask = draw(num_tags, LENGTHS, 8, seed=0, padding=padding)
    guesses, prediction = [], target.clone()
    stream = random.Random(1)
    for row, truth in enumerate(truths):  # Some tags are changed, in some rows all are drawn again.
        guess = [tag if stream.random() < row / 12 else stream.randrange(num_tags) for tag in truth]
        guesses.append(guess)
        prediction[row, mask[row]] = torch.tensor(guess, dtype=torch.long)
    found = cost.between(prediction, target.masked_fill(~mask, padding + 1), mask, dtype=torch.float64)
    close(found, [by_loop(guess, truth) for guess, truth in zip(guesses, truths, strict=True)])
    assert cost.between(prediction, target, mask).dtype == torch.float32


@every_case
def test_all_pairs_equal_single_ones(cost: Cost, num_tags: int, by_loop: Callable[..., float]) -> None:
    rows, tags, _ = draw(num_tags, [6] * 6, 6, seed=2, padding=0)
    candidates = tags.view(3, 2, 6)  # 3 candidates for 2 sentences.
    table = cost.between(candidates.unsqueeze(1), candidates, dtype=torch.float64)
    assert table.shape == (3, 3, 2)
    expected = [[[by_loop(rows[2 * i + b], rows[2 * j + b]) for b in range(2)] for j in range(3)] for i in range(3)]
    close(table, expected)
    mask = torch.tensor([[True] * 6, [True, False, True, True, True, False]])
    masked = cost.between(candidates.unsqueeze(1), candidates, mask, dtype=torch.float64)
    close(masked[..., 0], table[..., 0])
    places = mask[1].nonzero().squeeze(-1)
    expected = [[by_loop(*(candidates[k, 1, places].tolist() for k in (i, j))) for j in range(3)] for i in range(3)]
    close(masked[..., 1], expected)


@every_case
def test_sequences_without_positions(cost: Cost, num_tags: int, by_loop: Callable[..., float]) -> None:
    assert cost.between(torch.zeros(2, 0).long(), torch.zeros(2, 0).long()).tolist() == [0.0, 0.0]
    assert cost.between(torch.zeros(0, 3).long(), torch.zeros(0, 3).long()).shape == (0,)


@pytest.mark.parametrize("name", ("edit", "bleu", "bleu-add-k", "bleu-floor"))
def test_predictions_of_other_lengths(name: str) -> None:
    cost, _, by_loop = CASES[name]
    assert isinstance(cost, EditDistance | Bleu)
    if isinstance(cost, EditDistance):
        by_loop = lambda guess, truth: levenshtein(guess, truth) / max(1, len(guess), len(truth))  # noqa: E731
    truths, target, mask = draw(3, [0, 0, 3, 4, 5, 6, 7], 7, seed=3, padding=0)
    guesses, prediction, prediction_mask = draw(3, [0, 3, 0, 9, 6, 2, 7], 9, seed=4, padding=0)
    found = cost.between(prediction, target, mask, prediction_mask=prediction_mask, dtype=torch.float64)
    close(found, [by_loop(guess, truth) for guess, truth in zip(guesses, truths, strict=True)])


@pytest.mark.parametrize("n", (1, 2, 4))
def test_the_count_kernel_counts_pairs_of_equal_ngrams(n: int) -> None:
    rows, tags, mask = draw(2, [0, 3, 5, 7], 7, seed=5, padding=-100)
    others, prediction, _ = draw(2, [7], 7, seed=6, padding=0)
    counts = [sum(count * grams(others[0], n)[gram] for gram, count in grams(row, n).items()) for row in rows]
    # The masks differ, so the prediction is packed on its own.
    full = torch.ones(1, 7, dtype=torch.bool)
    stacked, masks = torch.cat([prediction, tags]), torch.cat([full, mask])
    own = [sum(count**2 for count in grams(row, n).values()) for row in rows]
    close(ngram_kernel(stacked[1:], stacked[1:], masks[1:], n, dtype=torch.float64), [float(value) for value in own])
    assert float(ngram_kernel(prediction[0], tags[3], n=n)) == counts[3]


def test_codes_of_many_tags_are_renumbered() -> None:
    large = torch.randint(2**20, (4, 12), generator=torch.Generator().manual_seed(0))
    small = large.flatten().unique(return_inverse=True)[1].view(4, 12)
    mixed = [torch.where(torch.arange(12) % 7 < 6, tags[0], tags) for tags in (large, small)]
    for cost in (Bleu(), ClippedNgram(), Bleu(6)):
        # Padding keeps its meaning.
        mask = torch.arange(12) != 11
        tables = [cost.between(tags.unsqueeze(1), tags, mask, dtype=torch.float64) for tags in mixed]
        close(tables[0], tables[1])
        assert 0 < float(tables[0][0, 1]) < 1


@pytest.mark.parametrize("name", COST_NAMES)
def test_names(name: str) -> None:
    cost = resolve_cost(name, BIO)
    assert cost.name == name
    cost.check(len(BIO))
    if name in COSTS:
        assert type(resolve_cost(name)) is type(cost)
    else:
        with pytest.raises(ValueError, match=rf"^`cost` must come with the names of the tags, got '{name}'; pass "):
            resolve_cost(name)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    (
        (lambda: AlignedNgram(0), ValueError, r"^`n` must be a positive integer, got 0; "),
        (lambda: ClippedNgram(True), ValueError, r"^`n` must be a positive integer, got True; "),
        (
            lambda: ngram_kernel(torch.zeros(2), torch.zeros(2), n=1.5),
            ValueError,
            r"^`n` must be a positive integer, got 1.5; ",
        ),
        (lambda: Bleu(0), ValueError, r"^`max_order` must be a positive integer, got 0; "),
        (lambda: Bleu(smooth="nist"), ValueError, r"^`smooth` must be one of 'none', 'floor', 'add-k', 'exp', got 'nist'; "),
        (lambda: Bleu(value=0.1), ValueError, r"^`value` must be None with smooth='exp', got 0.1; "),
        (lambda: Bleu(smooth="floor", value=2.0), ValueError, r"^`value` must be a number in \[0, 1\], got 2.0; "),
        (lambda: TokenF1(-1), ValueError, r"^`outside` must hold indices of tags, got -1; "),
        (lambda: TokenF1(5).check(5), ValueError, r"^`outside` must be below 5, got 5; "),
        (lambda: TokenF1.of_names(["A", "B"]), ValueError, r"^`names` must contain 'O' for 'token-f1', got 2 other names; "),
        (lambda: SpanF1("OBI"), TypeError, r"^`names` must be a sequence of names, got str; "),
        (lambda: SpanF1(["O", 3]), TypeError, r"^`names` must hold strings, got int; "),
        (lambda: SpanF1(["O", "NOUN"]), ValueError, r"^`names` must hold tags of spans, got 'NOUN'; "),
        (lambda: SpanF1(["O", "B-"]), ValueError, r"^`names` must hold tags of spans, got 'B-'; "),
        (lambda: SpanF1(["O"]), ValueError, r"^`names` must hold tags of spans, got none; "),
        (lambda: SpanF1(BIO).check(4), ValueError, r"^`names` must have one name for each of 4 tags, got 5; "),
    ),
)
def test_messages(make: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_bmes_tags_are_read_as_bioes() -> None:
    bmes, bioes = SpanF1(["B", "M", "E", "S"]), SpanF1(["B", "I", "E", "S"])
    tags = torch.randint(4, (2, 20, 9), generator=torch.Generator().manual_seed(0))
    assert torch.equal(bmes.between(*tags), bioes.between(*tags))


@pytest.mark.parametrize("name", ("bleu", "bleu-add-k", "span-f1", "span-f1-bioes", "edit"))
def test_equals_a_loop_on_longer_sequences(name: str) -> None:
    cost, num_tags, by_loop = CASES[name]
    stream = random.Random(7)
    truths, target, mask = draw(num_tags, [stream.randrange(1, 40) for _ in range(60)], 40, seed=8, padding=0)
    prediction = torch.where(torch.rand(target.shape, generator=torch.Generator().manual_seed(9)) < 0.7, target, 0)
    guesses = [prediction[row, mask[row]].tolist() for row in range(60)]
    found = cost.between(prediction, target, mask, dtype=torch.float64)
    close(found, [by_loop(guess, truth) for guess, truth in zip(guesses, truths, strict=True)])
