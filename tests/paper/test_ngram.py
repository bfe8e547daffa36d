"""`ngram`: noun phrases from trees, minimum-risk training, numbers of single sentences, and the run at smoke scale."""

import lzma
import zipfile

import pytest
import torch

from linearcore import ChainCRF
from linearcore.structures import Sequences, Sites, SpanF1, sequence_scores
from linearcore_paper.experiments import ngram
from linearcore_paper.experiments.ngram import sentences, table, training
from linearcore_paper.experiments.ngram.chunks import PARTS, generated_task, noun_phrase_task
from linearcore_paper.experiments.ngram.strings import FILES, StringEdit, generated_strings, string_task, treebank_task
from linearcore_paper.experiments.ngram.trees import noun_phrases, parse_trees
from linearcore_paper.runner import RecordedRun, Settings
from tests.paper.outcomes import COMMITTED, conclusion

TREE = """( (S (NP-SBJ (NP (NNP Pierre) (NNP Vinken)) (, ,) (ADJP (NP (CD 61) (NNS years)) (JJ old)) (, ,))
  (VP (MD will) (VP (VB join) (NP (DT the) (ADJP (RB very) (JJ old)) (NN board)
  (S (NP-SBJ (-NONE- *)) (VP (TO to) (VP (VB act)))))
  (NP (DT a) (NN car) (CC and) (NN bus)))) (. .)))"""


@pytest.fixture(scope="module")
def small():
    """The outcome at smoke scale. With one weight nothing is tuned, so no run needs the results of others."""
    results = {
        name: part.compute() if isinstance(part, RecordedRun) else part() for name, part in ngram.parts(Settings()).items()
    }
    return ngram.conclude(results, Settings())


def test_chunks_are_noun_phrases_without_clauses_traces_and_punctuation():
    words, tags = noun_phrases(next(parse_trees(TREE)))
    spans = " ".join(
        f"{'[' if tag == 'B-NP' else ''}{word}{'' if tag == 'O' else '_'}" for word, tag in zip(words, tags, strict=True)
    )
    expected = "[Pierre_ Vinken_ , [61_ years_ old , will join [the_ very_ old_ board_ to act [a_ car_ and_ bus_ ."
    assert spans == expected


def test_files_are_split_by_number_and_rare_words_are_unknown(tmp_path):
    noun_phrase_task.cache_clear()
    (tmp_path / "tagging").mkdir()
    with zipfile.ZipFile(tmp_path / "tagging" / "ptb_sample.zip", "w") as archive:
        for number in range(1, 21):
            archive.writestr(
                f"treebank/combined/wsj_{number:04}.mrg", f"( (S (NP (NN dog) (NN w{number})) (VP (VBZ sits))) )"
            )
    task = noun_phrase_task(tmp_path)
    assert [len(task.parts[part]) for part in PARTS] == [16, 2, 2]
    assert task.parts["test"].tags.tolist() == [[1, 2, 0]] * 2
    assert task.parts["test"].inputs[0, 0, 0] > 1 and task.parts["test"].inputs[0, 1, 0] == 1


def test_generated_spans_follow_the_scheme_and_the_seed():
    task, again, other = (generated_task(seed, 20) for seed in (3, 3, 4))
    tags = task.parts["train"].tags
    assert torch.equal(tags, again.parts["train"].tags) and not torch.equal(tags, other.parts["train"].tags)
    inside = tags[:, 1:] % 2 == 0
    kept = (tags[:, 1:] == tags[:, :-1]) | (tags[:, 1:] == tags[:, :-1] + 1)
    assert kept[inside & (tags[:, 1:] > 0)].all()


def test_strings_are_the_features_of_words_in_order(tmp_path):
    treebank_task.cache_clear()
    (tmp_path / "tagging").mkdir()
    for file, case in zip(FILES, ("Loc", "Abl"), strict=True):
        features = {number: "Kind=New" if number == 10 else f"Case={case}|Proper=False" for number in range(1, 11)}
        words = (f"1\tev\t_\tNOUN\t_\t{features[number]}\t0\troot\t_\t_\n" for number in features)
        with lzma.open(tmp_path / "tagging" / file, "wt") as text:
            text.write("\n".join(f"{word}2\t.\t_\tPUNCT\t_\t_\t1\tp\t_\t_\n" for word in words) + "\n")
    task = treebank_task(tmp_path)
    assert [len(task.parts[part]) for part in PARTS] == [32, 4, 4]
    strings = {part: {"|".join(task.names[tag] for tag in row) for row in task.parts[part].tags} for part in PARTS}
    assert strings["dev"] == {"NOUN|Case=Loc|Proper=False", "NOUN|Case=Abl|Proper=False", "PUNCT|–|–"}
    assert strings["train"] == strings["dev"] and strings["test"] == {"NOUN|?|–", "PUNCT|–|–"}


def test_empty_symbols_are_no_part_of_a_string():
    cost, target = StringEdit(), torch.tensor([3, 4, 5, 0])
    predictions = torch.tensor([[3, 4, 5, 0], [0, 3, 4, 5], [4, 5, 0, 0], [3, 4, 4, 5], [0, 0, 0, 0]])
    assert cost.between(predictions, target).tolist() == pytest.approx([0, 0, 1 / 3, 1 / 4, 1])
    masked = torch.tensor([True, True, False, False])
    assert cost.between(predictions[3], target, masked).item() == 0
    assert cost.between(predictions[2], target, torch.ones(4).bool()).item() == pytest.approx(1 / 3)


def test_words_keep_their_strings():
    task = string_task([[[("a", "X"), ("b", "Y"), ("c", "Z")]] * 20])
    for part in task.parts.values():
        pairs = set(zip(part.inputs[:, 0, 0].tolist(), part.tags[:, 0].tolist(), strict=True))
        assert len(pairs) == 3


def test_rare_strings_are_cut_to_the_longest_in_training():
    sentences = [[("a", "X|f=1")]] * 8 + [[("a", "X")], [("a", "X|f=1|f=1|f=1")]]
    task = string_task([sentences])
    assert task.length == 2 and task.parts["test"].tags.tolist() == [[2, 3]]
    assert torch.equal(generated_strings(3, 20).parts["train"].inputs, generated_strings(3, 20).parts["train"].inputs)


def test_minimum_risk_training_is_the_expected_cost_over_all_sequences_if_all_are_candidates(monkeypatch):
    monkeypatch.setattr(training, "CANDIDATES", 27)
    torch.manual_seed(0)
    head, cost = ChainCRF(3, batch_first=True).double(), SpanF1(("O", "B-X", "I-X"))
    emissions, tags = torch.randn(1, 3, 3).double(), torch.tensor([[1, 2, 0]])
    outputs = Sequences(3, 3).outputs
    sites = Sites.of(torch.ones(3, 1, dtype=torch.bool))
    scores = sequence_scores(emissions.transpose(0, 1), head.chain(), outputs.unsqueeze(-1), sites).squeeze(-1)
    risk = (scores.softmax(0) * cost.between(outputs, tags[0], dtype=torch.float64)).sum()
    found = training.METHODS["risk"].loss(head, emissions, tags, cost, 6.0) - head.loss(emissions, tags)
    torch.testing.assert_close(found, 6 * risk / 3, rtol=1e-6, atol=0)


def test_token_cross_entropy_has_no_transitions():
    head = training.METHODS["ce"].head(3, batch_first=True)
    emissions, tags = torch.randn(2, 4, 3), torch.randint(3, (2, 4))
    expected = torch.nn.functional.cross_entropy(emissions.flatten(0, 1), tags.flatten())
    torch.testing.assert_close(training.METHODS["ce"].loss(head, emissions, tags, None, 0.0), expected)
    assert not any(parameter.requires_grad for parameter in head.parameters())


def test_span_f1_counts_spans_of_all_sentences_together():
    cost = SpanF1(("O", "B-X", "I-X"))
    # Spans: one of one, none of two; a span does not go on in the next sentence.
    assert training.span_f1(cost, [[1, 2], [2, 0]], [[1, 2], [1, 1]]) == pytest.approx(100 * 2 * 2 / (2 + 3))


def test_only_aligned_ngrams_are_additive():
    found = sentences.additivity()
    assert max(found["aligned pairs"]) == 0
    assert all(value > 0.2 for name, values in found.items() if name != "aligned pairs" for value in values)


def test_ngram_paths_are_unbiased_for_aligned_ngrams_and_with_uniform_samples():
    found = sentences.expectations(5)
    assert found["aligned pairs"] == {"aligned": 1, "with uniform": 1}
    for cost in ("span F1", "BLEU"):
        assert 0 < found[cost]["aligned"] < 0.9 and found[cost]["with uniform"] == 1


def test_ngram_proposals_need_fewer_samples_for_aligned_ngrams_only():
    found = sentences.variances(5)
    assert found["aligned pairs"]["aligned"] > 5 > 1 > found["BLEU"]["aligned"]


def test_rate_for_ngrams_goes_to_zero():
    found = sentences.linear_rate()
    assert found["ratios"] == sorted(found["ratios"]) and found["ratios"][0] == pytest.approx(0.0417, abs=1e-3)


def test_intervals_are_paired_by_seed():
    first, second = ({"viterbi": table.interval(values)} for values in ([1.0, 2.0, 4.0], [0.0, 1.0, 3.0]))
    found = table.difference(first, second)
    assert (found["mean"], found["half_width"]) == (1.0, 0.0)


def test_small_runs_measure_every_method_and_judge_no_training(small):
    rows, verdicts = small.data["rows"], [claim.verdict for claim in small.claims]
    found = {(row["task"], row["metric"], row["method"]) for row in rows}
    cases = [("generated", "span-f1"), ("generated", "ngram"), ("strings", "edit")]
    assert found == {(*case, method) for case in cases for method in training.METHODS}
    assert all(0 < row[by]["mean"] < 100 for row in rows for by in ("viterbi", "risk"))
    holds, fails = "holds with a correction", "does not hold"
    assert verdicts[:5] == [holds, fails, holds, fails, fails]
    assert set(verdicts[6:]) == {"not judged"}


def test_paper_scale_needs_the_treebank(tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(ValueError, match=r"`data`.*tagging/ptb_sample\.zip"):
            ngram.parts(Settings(scale="paper", data=folder))


def test_shipped_record_has_five_seeds_and_a_verdict_for_every_claim():
    results = conclusion(COMMITTED, "ngram")["results"]
    assert all(len(row["viterbi"]["values"]) == 5 for row in results["data"]["rows"])
    assert {row["task"] for row in results["data"]["rows"]} == set(ngram.TASKS)
    assert not {claim["verdict"] for claim in results["claims"]} & {"not judged", "not run"}
