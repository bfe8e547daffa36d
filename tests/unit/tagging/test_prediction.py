import itertools
import math

import numpy as np
import pytest
import torch

from linearcore.structures import Sites, path_score
from linearcore.tagging import Prediction, ScoredTags, Tagger
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import BiLSTM
from tests.tagged_text import sentences

DATA = [words for words, _ in sentences(30)]
TAGS = ["O", "B-X", "I-X", "B-Y"]
LOSSES = ["lc", "crf", "ssvm", "ce"]


def make(loss="lc", tags=TAGS, **options):
    torch.manual_seed(0)
    vocabulary = Vocabulary.of([(words, itertools.islice(itertools.cycle(tags), 9)) for words in DATA])
    encoder = BiLSTM(vocabulary.words, vocabulary.counts, embedding=8, spelling=8, hidden=8, buckets=100)
    model = TaggingModel(encoder, tags, loss, **options).eval()
    with torch.no_grad():
        for parameter in (model.projection.weight, *([] if model.head is None else model.head.parameters())):
            parameter.copy_(torch.randn(parameter.shape))
    return Tagger(model, Vocabulary(vocabulary.words, vocabulary.counts, tags), "tag")


def enumerate_scores(tagger, words):
    """Returns the score of every tag sequence of a sentence; for cross-entropy its log-probability."""
    model = tagger.model
    inputs = model.encoder.collate([model.encoder.featurize(words)], len(words))
    emissions = model.emissions(torch.ones(1, len(words), dtype=torch.bool), inputs).detach()
    sequences = list(itertools.product(range(len(TAGS)), repeat=len(words)))
    rows = torch.tensor(sequences)
    if model.head is None:
        scores = emissions[0].log_softmax(-1)[torch.arange(len(words)), rows].sum(-1)
    else:
        many = emissions.expand(len(rows), -1, -1).transpose(0, 1)
        sites = Sites.of(torch.ones(many.shape[:2], dtype=torch.bool), is_full=True)
        scores = path_score(many, model.head.chain(many), rows.t(), sites).detach()
    return dict(zip(sequences, scores.tolist(), strict=True))


def expected_confidence(tagger, scores, best, place):
    """Returns the confidence of one tag, from the scores of all sequences."""
    names, head = range(len(TAGS)), tagger.model.head
    if head is None or type(head).__name__ == "ChainCRF":
        weights = {sequence: math.exp(score) for sequence, score in scores.items()}
        chosen = sum(weight for sequence, weight in weights.items() if sequence[place] == best[place])
        return chosen / sum(weights.values())
    local = [scores[(*best[:place], tag, *best[place + 1 :])] for tag in names]
    others = [score for tag, score in enumerate(local) if tag != best[place]]
    log_odds = local[best[place]] - math.log(sum(map(math.exp, others)))
    if type(head).__name__ == "ChainSSVM":
        return 1 / (1 + math.exp(-log_odds))
    return float(head.surrogate.posterior(torch.tensor(log_odds, dtype=torch.float64)))


@pytest.mark.parametrize("loss", LOSSES)
def test_everything_agrees_with_enumeration(loss):
    tagger = make(loss)
    data = [words[:length] for words, length in zip(DATA, (1, 2, 3, 4, 5), strict=False)]
    found = list(tagger.predict(data, confidences=True, margin=True, kbest=6, batch_tokens=12))
    for words, prediction in zip(data, found, strict=True):
        scores = enumerate_scores(tagger, words)
        ranked = sorted(scores.items(), key=lambda item: -item[1])[:6]
        assert [pair.tags for pair in prediction.kbest] == [[TAGS[tag] for tag in tags] for tags, _ in ranked]
        assert [pair.score for pair in prediction.kbest] == pytest.approx([score for _, score in ranked], abs=1e-4)
        assert prediction.margin == pytest.approx(ranked[0][1] - ranked[1][1], abs=1e-4)
        assert prediction.tags == prediction.kbest[0].tags == tagger.tag(words)
        expected = [expected_confidence(tagger, scores, ranked[0][0], place) for place in range(len(words))]
        assert prediction.confidences == pytest.approx(expected, abs=1e-4)


def test_what_is_not_requested_is_none():
    tagger = make()
    words = DATA[0]
    assert next(tagger.predict([words])) == Prediction(tagger.tag(words))
    only = next(tagger.predict([words], margin=True))
    assert only.margin > 0 and only.kbest is None and only.confidences is None
    only = next(tagger.predict([words], kbest=2))
    assert only.margin is None and len(only.kbest) == 2 and only.confidences is None
    only = next(tagger.predict([words], confidences=True))
    assert only.margin is None and only.kbest is None and len(only.confidences) == len(words)


@pytest.mark.parametrize("loss", LOSSES)
def test_sentences_with_few_sequences(loss):
    tagger = make(loss)
    empty, one = tagger.predict([[], DATA[0][:1]], confidences=True, margin=True, kbest=9)
    assert empty == Prediction([], [], math.inf, [ScoredTags([], 0.0)])
    assert sorted(pair.tags for pair in one.kbest) == sorted([tag] for tag in TAGS)
    single = make(loss, tags=["O"])
    assert next(single.predict([DATA[0]], margin=True)).margin == math.inf


def test_batches_do_not_change_the_predictions():
    tagger = make("crf")
    wanted = {"confidences": True, "margin": True, "kbest": 3}
    together = list(tagger.predict(DATA, **wanted))
    for words, prediction in zip(DATA, together, strict=True):
        alone = next(tagger.predict([words], **wanted))
        assert alone.tags == prediction.tags
        assert alone.confidences == pytest.approx(prediction.confidences, abs=1e-5)
        assert alone.margin == pytest.approx(prediction.margin, abs=1e-4)


def test_a_beam_at_prediction_time():
    tagger = make(beam=1)
    exact = make(beam=0)
    exact.model.load_state_dict(tagger.model.state_dict())
    greedy = [prediction.tags for prediction in tagger.predict(DATA)]
    best = [prediction.tags for prediction in exact.predict(DATA)]
    assert greedy != best
    assert [prediction.tags for prediction in tagger.predict(DATA, beam=0)] == best
    assert [prediction.tags for prediction in exact.predict(DATA, beam=1)] == greedy
    # k-best search is exact, whatever the width of the beam.
    assert [prediction.tags for prediction in tagger.predict(DATA, margin=True)] == best


@pytest.mark.parametrize(
    "loss, options, fact",
    [
        ("lc", {"kbest": 0}, "`kbest` must be a positive integer, got 0"),
        ("lc", {"batch_tokens": 0}, "`batch_tokens` must be a positive integer, got 0"),
        ("lc", {"beam": -1}, "`beam` must be a beam width, or 0 for exact search, got -1"),
        ("lc", {"beam": 4, "kbest": 2}, "`beam` must be None or 0 with `kbest` or `margin`, got 4"),
        ("lc", {"beam": 4, "margin": True}, "`beam` must be None or 0 with `kbest` or `margin`, got 4"),
        ("ce", {"beam": 4}, "`beam` must be None with loss 'ce', got 4"),
    ],
)
def test_options_are_checked_before_anything_is_read(loss, options, fact):
    with pytest.raises(ValueError, match=fact):
        make(loss).predict(iter([]), **options)


def test_usual_forms_of_sentences():
    tagger = make()
    words = DATA[0]
    expected = tagger.tag(words)
    forms = [tuple(words), iter(words), np.array(words), {"tokens": words, "tags": ["?"] * len(words)}]
    assert list(tagger.tag_all(forms)) == [expected] * len(forms)
    assert tagger.tag(word for word in words) == expected
    pairs = [(words, expected), {"tokens": words, "tags": expected}, ([], [])]
    assert tagger.evaluate(pairs).accuracy == 100.0


def test_refused_sentences_are_named_and_those_before_are_tagged():
    tagger = make()
    found = []
    with pytest.raises(TypeError, match="got None as word 1 of sentence 600"):
        for tags in tagger.tag_all([*[["a"]] * 600, ["b", None]]):
            found.append(tags)
    assert len(found) == 600
    with pytest.raises(TypeError, match="got the string 'two words' as sentence 0"):
        next(tagger.tag_all(["two words"]))
    with pytest.raises(TypeError, match="got None as word 0 of the sentence"):
        tagger.tag([None])
    with pytest.raises(TypeError, match="`sentences` must be a list of sentences, got the string"):
        tagger.tag_all("two words")
    with pytest.raises(TypeError, match="got 1 as tag 1 of sentence 0"):
        tagger.evaluate([(["a", "b"], ["O", 1])])


def test_constraints_hold_and_a_sentence_without_a_sequence_is_refused():
    names = ["B-X", "E-X"]
    tagger = make(tags=names, constraints="bioes")
    assert tagger.tag(["a", "b"]) == names
    with pytest.raises(
        ValueError, match="`sentences` must have lengths that the constraints allow, got 3 words in sentence 1"
    ):
        list(tagger.tag_all([["a", "b"], ["a", "b", "c"]]))
    # A narrow beam may end without an allowed sequence; then the search is exact.
    for words in DATA:
        tags = next(make(tags=TAGS, constraints="bio").predict([words], beam=1)).tags
        assert all(before.endswith("-X") for before, after in itertools.pairwise(["O", *tags]) if after == "I-X")


def test_weights_that_are_not_numbers_are_refused():
    tagger = make()
    with torch.no_grad():
        tagger.model.projection.bias.fill_(math.nan)
    with pytest.raises(ValueError, match="a sequence of tags with a finite score, got none for sentence 0"):
        tagger.tag(["a", "b"])
