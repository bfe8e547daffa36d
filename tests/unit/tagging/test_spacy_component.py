"""The spaCy component, through `nlp.add_pipe`."""

import shutil

import pytest
import torch

pytest.importorskip("spacy")

import spacy

import linearcore.tagging.spacy_component  # Registers the component also where the entry point is not installed.
from linearcore.tagging import Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM

WORDS = ["The", "cat", "sleeps", ".", "Ann", "Lee", "in", "Rome"]


def save(folder, columns, tags):
    """Saves a tagger that was fitted to one sentence: `WORDS` with `tags`."""
    torch.manual_seed(0)
    vocabulary = Vocabulary(WORDS, [1] * len(WORDS), list(dict.fromkeys(tags)))
    encoder = BiLSTM(WORDS, characters=False, embedding=16, hidden=16)
    model = TaggingModel(encoder, len(vocabulary.tags), "ce")
    model.eval()
    tagger = Tagger(model, vocabulary, columns)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    words = encoder.collate([encoder.featurize(WORDS)], len(WORDS))
    mask, target = torch.ones(1, len(WORDS), dtype=torch.bool), torch.tensor([vocabulary.encode(tags)])
    for _ in range(60):
        optimizer.zero_grad()
        model(mask, words, target).backward()
        optimizer.step()
    assert tagger.tag(WORDS) == tags
    tagger.save(folder)
    return str(folder)


UPOS_FEATS = ["DET _", "NOUN Number=Sing", "VERB _", "PUNCT _", "PROPN _", "PROPN _", "ADP _", "PROPN Case=Loc"]
ENTITIES = ["O", "O", "O", "O", "B-PER", "I-PER", "O", "B-LOC"]


def pipeline(model, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("linearcore_tagger", config={"model": model, **config})
    return nlp


def test_columns_of_conllu_set_pos_and_morph(tmp_path):
    doc = pipeline(save(tmp_path, "upos+feats", UPOS_FEATS))(" ".join(WORDS))
    assert [token.pos_ for token in doc] == [tag.split(" ")[0] for tag in UPOS_FEATS]
    assert [str(token.morph) for token in doc] == ["", "Number=Sing", "", "", "", "", "", "Case=Loc"]
    assert not any(token.tag_ for token in doc) and not doc.ents


def test_whitespace_is_not_tagged(tmp_path):
    doc = pipeline(save(tmp_path, "upos+feats", UPOS_FEATS))("The cat\n\n sleeps")
    assert [token.text for token in doc if not token.pos_] == ["\n\n "]
    expected = Tagger.load(tmp_path).tag(["The", "cat", "sleeps"])
    assert [token.pos_ for token in doc if token.pos_] == [tag.split(" ")[0] for tag in expected]


def test_entity_tags_set_ents(tmp_path):
    nlp = pipeline(save(tmp_path, "last", ENTITIES))
    doc = nlp("The cat sleeps. Ann\n Lee in Rome")
    assert [(span.text, span.label_) for span in doc.ents] == [("Ann\n Lee", "PER"), ("Rome", "LOC")]
    assert not any(token.tag_ for token in doc)


def test_other_tags_set_tag_and_targets_overrule(tmp_path):
    model = save(tmp_path, "last", ["D", "N", "V", ".", "P", "P", "I", "P"])
    assert [token.tag_ for token in pipeline(model)("The cat sleeps")] == ["D", "N", "V"]
    xpos = save(tmp_path / "entities", "last", ENTITIES)
    doc = pipeline(xpos, targets=["tag"])(" ".join(WORDS))
    assert [token.tag_ for token in doc] == ENTITIES and not doc.ents


def test_pipe_gives_what_single_calls_give_and_sentences_are_tagged_alone(tmp_path):
    nlp = pipeline(save(tmp_path, "upos+feats", UPOS_FEATS))
    nlp.add_pipe("sentencizer", first=True)
    texts = ["The cat sleeps. Ann Lee sleeps.", "", "  ", "Rome . The cat in Rome"] * 3
    piped = [[token.pos_ for token in doc] for doc in nlp.pipe(texts, batch_size=5)]
    assert piped == [[token.pos_ for token in nlp(text)] for text in texts]
    tagger = Tagger.load(tmp_path)
    expected = tagger.tag(["The", "cat", "sleeps", "."]) + tagger.tag(["Ann", "Lee", "sleeps", "."])
    assert piped[0] == [tag.split(" ")[0] for tag in expected]


def test_a_saved_pipeline_contains_the_tagger(tmp_path):
    nlp = pipeline(save(tmp_path / "model", "last", ENTITIES))
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(tmp_path / "model")
    shutil.move(tmp_path / "pipeline", tmp_path / "moved")
    doc = spacy.load(tmp_path / "moved")(" ".join(WORDS))
    assert [(span.text, span.label_) for span in doc.ents] == [("Ann Lee", "PER"), ("Rome", "LOC")]


@pytest.mark.parametrize(
    ("columns", "config", "fact"),
    (
        ("upos+feats", {"targets": ["pos"]}, r"`targets` must .*upos\+feats.*\['pos'\]"),
        ("last", {"targets": ["pos"]}, "`targets` must .*'pos'.*'D'"),
        ("last", {"targets": ["lemma"]}, "`targets` must .*'lemma'"),
        ("lemma", {}, "`targets` must .* column lemma"),
    ),
)
def test_what_does_not_fit_is_refused(tmp_path, columns, config, fact):
    tags = ["D _"] * 8 if "+" in columns else ["D"] * 8
    model = save(tmp_path, columns, tags)
    with pytest.raises(ValueError, match=fact):
        pipeline(model, **config)


def test_a_missing_folder_is_named(tmp_path):
    nlp = pipeline(str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"`model` must be the folder of a tagger, got .*nowhere"):
        nlp("The cat")


def test_the_entry_point_is_the_component():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["spacy_factories"]["linearcore_tagger"].partition(":")
    assert module == "linearcore.tagging.spacy_component"
    assert getattr(linearcore.tagging.spacy_component, name) is linearcore.tagging.spacy_component.make_tagger
