import itertools
import random

import pytest

from linearcore.structures import bio
from linearcore.tagging import Tagger, Training, train
from linearcore.tagging._constraints import first_violation, make_constraints, resolve_constraints

BIO = ["O", "B-X", "I-X"]
GOOD = [(["a", "b", "c"], ["B-X", "I-X", "O"]), (["d"], ["O"])]
#: The second sentence violates BIO.
BAD = [*GOOD[:1], (["a", "b"], ["O", "I-X"])]
SHORT = {"epochs": 1, "embedding": 4, "hidden": 4}


@pytest.mark.parametrize(
    "tags, sentence, scheme",
    [
        (BIO, ["B-X", "I-X", "O"], "bio"),
        (["B", "I", "O"], ["B", "I", "O"], "bio"),
        (["O", "B-X", "I-X", "E-X", "S-X"], ["S-X", "B-X", "I-X", "E-X", "O"], "bioes"),
        (["B", "M", "E", "S"], ["B", "M", "E", "S"], "bmes"),
        (["O", "B-X"], ["B-X", "B-X", "O"], None),  # Every sequence is allowed.
        (["DET", "NOUN"], ["DET", "NOUN"], None),
        (["O", "I-X"], ["I-X", "O"], None),  # IOB1 without B.
    ],
)
def test_schemes_are_found(tags, sentence, scheme):
    data = [(["w"] * len(sentence), sentence)]
    value, note = resolve_constraints("auto", tags, data, data)
    assert value == scheme
    assert (note is None) == (scheme is None)
    if scheme is not None:
        assert scheme in note and "\n" not in note


def test_a_scheme_with_exceptions_is_not_used():
    value, note = resolve_constraints("auto", BIO, BAD, GOOD)
    assert value is None and "training sentence 1 has 'I-X' after 'O'" in note
    value, note = resolve_constraints("auto", BIO, GOOD, BAD)
    assert value is None and "validation sentence 1 has 'I-X' after 'O'" in note
    # Validation tags that do not occur in the training sentences violate nothing.
    assert resolve_constraints("auto", BIO, GOOD, [(["a", "b"], ["B-Y", "I-Y"])])[0] == "bio"


def test_constraints_that_are_asked_for_hold_for_all_training_sentences():
    assert resolve_constraints("bio", BIO, GOOD, BAD) == ("bio", None)
    with pytest.raises(ValueError, match=r"`constraints` .* got 'I-X' after 'O', words 0 and 1 in sentence 1"):
        resolve_constraints("bio", BIO, BAD, GOOD)
    with pytest.raises(ValueError, match=r"`constraints` .* got 'O' as the last tag in sentence 0"):
        resolve_constraints("last I-X\n", BIO, GOOD, GOOD)
    with pytest.raises(ValueError, match=r"`constraints` .* got 'B-X' as the first tag in sentence 0"):
        resolve_constraints("first O\n", BIO, GOOD, GOOD)
    with pytest.raises(ValueError, match="`names` must hold tags of BIO, got 'DET'"):
        resolve_constraints("bio", ["DET"], [], [])


def test_none_and_files(tmp_path):
    assert resolve_constraints("none", BIO, BAD, BAD) == resolve_constraints(None, BIO, BAD, BAD) == (None, None)
    path = tmp_path / "rules.txt"
    path.write_text("forbid O I-X")
    assert resolve_constraints(str(path), BIO, GOOD, GOOD) == ("forbid O I-X\n", None)
    with pytest.raises(ValueError, match="`constraints` must be auto, none, bio, bioes, bmes or a file of rules, got 'iob'"):
        resolve_constraints("iob", BIO, GOOD, GOOD)


def test_violations_agree_with_the_tensors():
    for tags in itertools.product(BIO, repeat=3):
        is_allowed = first_violation(bio(BIO), BIO, [(["w"] * 3, tags)]) is None
        assert is_allowed == ("I-X" not in tags[:1] and ("O", "I-X") not in itertools.pairwise(tags))
    assert first_violation(make_constraints("bio", BIO), BIO, [([], [])]) is None


def random_entities(count, seed):
    """Generates sentences whose tags are BIO; words do not tell the tags."""
    generator = random.Random(seed)
    data = []
    for _ in range(count):
        tags = generator.choices((["O"], ["B-X"], ["B-X", "I-X"], ["B-Y", "I-Y", "I-Y"]), k=4)
        flat = list(itertools.chain(*tags))
        data.append(([generator.choice("abcd") for _ in flat], flat))
    return data


@pytest.mark.parametrize("loss", ["lc", "crf", "ssvm"])
def test_training_with_constraints_saved_and_loaded(loss, tmp_path, capsys):
    data = random_entities(30, seed=0)
    found = train(data, data, Training(loss=loss, **SHORT), out=tmp_path / "auto")
    assert found.tagger.model.settings()["constraints"] == "bio"
    assert found.tagger.metadata["training"]["constraints"] == "bio"
    assert capsys.readouterr().err.count("BIO without exception") == 1
    loaded = Tagger.load(tmp_path / "auto")
    names = loaded.vocabulary.tags
    new = [words for words, _ in random_entities(50, seed=1)]
    tagged = [([], tags) for tags in loaded.tag_all(new)]
    assert first_violation(bio(names), names, tagged) is None
    # Without constraints the head allows every sequence.
    free = train(data, data, Training(loss=loss, constraints="none", **SHORT)).tagger
    assert free.model.head.constraints is None


def test_custom_rules_are_saved_with_the_tagger(tmp_path):
    data = random_entities(30, seed=0)
    rules = tmp_path / "rules.txt"
    rules.write_text("forbid O I-X I-Y\n")
    train(data, data, Training(constraints=str(rules), **SHORT), out=tmp_path / "model")
    rules.unlink()
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.model.settings()["constraints"] == "forbid O I-X I-Y\n"
    assert int((~loaded.model.head.constraints.transitions).sum()) == 2


def test_continued_training_keeps_the_constraints_unless_others_are_given(tmp_path):
    # The rule is not a scheme, so "auto" would not find it.
    rule, data = "forbid B C\n", [(["a", "b", "c"], ["A", "B", "A"]), (["c"], ["C"])] * 5
    train(data, data, Training(constraints=rule, **SHORT), out=tmp_path)

    def constraints(data, **options):
        settings = Training(epochs=1, continue_from=str(tmp_path), **options)
        return train(data, data, settings).tagger.model.settings()["constraints"]

    assert constraints(data) == rule and constraints(data, constraints="none") is None
    with pytest.raises(ValueError, match=r"`constraints` .* got 'C' after 'B', .*; .*--constraints none"):
        constraints([(["b", "c"], ["B", "C"])])


def test_training_sentences_that_violate_a_scheme_are_refused_and_auto_leaves_them():
    data = [*random_entities(30, seed=0), (["a", "b"], ["O", "I-X"])]
    with pytest.raises(ValueError, match=r"`constraints` .* got 'I-X' after 'O', .* in sentence 30"):
        train(data, data, Training(constraints="bio", **SHORT))
    assert train(data, data, Training(**SHORT)).tagger.model.head.constraints is None


def test_cross_entropy_has_no_constraints():
    with pytest.raises(ValueError, match="`constraints` must be none or auto with loss 'ce', got 'bio'"):
        Training(loss="ce", constraints="bio")
    data = random_entities(10, seed=0)
    assert train(data, data, Training(loss="ce", **SHORT)).tagger.model.settings()["constraints"] is None
