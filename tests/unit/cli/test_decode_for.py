"""`linearcore tag predict` and `tag eval` with `--decode-for`."""

import json

import pytest
import torch

from linearcore.cli import main
from linearcore.tagging import Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM
from tests.tagged_text import sentences

WORDS = [words for words, _ in sentences(12, seed=1)]


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", *map(str, words)])
    return int(left.value.code or 0)


def save(folder, tags):
    vocabulary = Vocabulary.of((words, (tags * 9)[: len(words)]) for words, _ in sentences(20))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TaggingModel(BiLSTM(vocabulary.words), vocabulary.tags, "crf")
    with torch.no_grad():
        model.projection.weight.mul_(20)
    Tagger(model, vocabulary, "2").save(folder)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decode-for")
    save(folder / "entities", ["O", "B-X", "I-X"])
    save(folder / "upos", ["NOUN", "VERB"])
    gold = [[f"{word}\t{('B-X', 'I-X', 'O')[place % 3]}" for place, word in enumerate(words)] for words in WORDS]
    (folder / "gold.tsv").write_text("\n\n".join("\n".join(lines) for lines in gold) + "\n")
    return folder


def test_predict(files, capsys):
    assert run("predict", files / "entities", files / "gold.tsv", "--decode-for", "span-f1", "--temperature", "2") == 0
    text = capsys.readouterr().out
    tags = [[line.split("\t")[1] for line in block.split("\n")] for block in text.strip().split("\n\n")]
    tagger = Tagger.load(files / "entities")
    assert tags == [prediction.tags for prediction in tagger.predict(WORDS, decode_for="span-f1", temperature=2.0)]
    assert tags != [prediction.tags for prediction in tagger.predict(WORDS)]


def test_eval_compares_both(files, capsys):
    assert run("eval", files / "entities", files / "gold.tsv", "--decode-for", "span-f1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert run("eval", files / "entities", files / "gold.tsv", "--json") == 0
    alone = json.loads(capsys.readouterr().out)
    decoded = found.pop("decode_for")
    assert alone.pop("decode_for") is None and alone.pop("cost") is None
    cost = found.pop("cost")
    assert (found["decoding"], decoded.pop("decoding")) == ("best score", "least span-f1 cost")
    assert found == alone
    assert cost["name"] == decoded["cost"]["name"] == "span-f1" and cost["mean"] != decoded["cost"]["mean"]
    tagger = Tagger.load(files / "entities")
    data = [(words, [("B-X", "I-X", "O")[place % 3] for place in range(len(words))]) for words in WORDS]
    assert decoded == tagger.evaluate(data, decode_for="span-f1").to_json()
    assert run("eval", files / "entities", files / "gold.tsv", "--decode-for", "span-f1") == 0
    text = capsys.readouterr().out
    for evaluation in (found, decoded):
        assert f"{evaluation['entities']['f1']:.2f}" in text and f"{evaluation['accuracy']:.2f}" in text


@pytest.mark.parametrize("command", ("predict", "eval"))
@pytest.mark.parametrize(
    ("model", "options", "fact"),
    (
        ("entities", ("--decode-for", "f1"), "`decode_for` must be one of 'zero-one', "),
        ("upos", ("--decode-for", "span-f1"), "`decode_for` must fit the tags of the model, got 'span-f1'"),
        ("entities", ("--temperature", "2"), "`temperature` must come with `decode_for`"),
        ("entities", ("--decode-for", "edit", "--candidates", "0"), "`candidates` must be an integer of at least 1"),
    ),
)
def test_options_that_are_refused(files, capsys, command, model, options, fact):
    assert run(command, files / model, files / "gold.tsv", *options) == 2
    out, err = capsys.readouterr()
    assert out == "" and fact in err and len(err.strip().splitlines()) == 1


def test_search_by_score_is_refused(files, capsys):
    assert run("predict", files / "entities", files / "gold.tsv", "--decode-for", "edit", "--beam", "2") == 2
    assert "`beam` must be omitted with `decode_for`" in capsys.readouterr().err
