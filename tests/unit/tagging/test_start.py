import shutil

import pytest
import torch

from linearcore.runtime import StoppedError, StoreError
from linearcore.tagging import Tagger, Training, train
from linearcore.tagging.readers import Layout
from tests.tagged_text import sentences

DATA, DEV = sentences(60), sentences(20, seed=1)
SHORT = Training(epochs=2, batch_tokens=64, embedding=8, hidden=12, layers=2, dropout=0.1)
#: Sentences with a new word and a new tag.
MORE = [([*words, "zork"], [*tags, "X Foo=Bar"]) for words, tags in sentences(30, seed=2)]


def weights(tagger):
    return tagger.model.state_dict()


def equal(one, other):
    return all(torch.equal(left, right) for left, right in zip(weights(one).values(), weights(other).values(), strict=True))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "model"
    train(DATA, DEV, SHORT, out=folder, columns="upos+feats")
    return folder


def go_on(first, data=MORE, columns="upos+feats", out=None, **options):
    options = {"epochs": 2, "batch_tokens": 64, "continue_from": str(first)} | options
    return train(data, DEV, Training(**options), columns=columns, out=out)


def untrained(first, monkeypatch, **options):
    """The tagger at the start of continued training."""
    monkeypatch.setattr("linearcore.tagging._loop.TrainingLoop.train_epochs", lambda *_: None)
    return go_on(first, **options).tagger


def test_it_starts_with_the_weights_words_and_tags_of_the_tagger(first, monkeypatch):
    old, new = Tagger.load(first), untrained(first, monkeypatch)
    assert new.vocabulary.tags == [*old.vocabulary.tags, "X Foo=Bar"]
    assert new.vocabulary.words[: len(old.vocabulary.words)] == old.vocabulary.words and "zork" in new.vocabulary.words
    assert new.vocabulary.counts[new.vocabulary.words.index("zork")] == 30
    for name, value in weights(old).items():
        if name != "encoder.hiding":
            assert torch.equal(weights(new)[name][tuple(map(slice, value.shape))], value), name
    assert (new.model.encoder.width, len(new.model.encoder.forth)) == (24, 2)
    assert new.metadata["training"]["hidden"] == 12 and new.metadata["training"]["layers"] == 2
    # Without new words and tags it is the same tagger.
    same = untrained(first, monkeypatch, data=DATA)
    hiding = weights(same).pop("encoder.hiding")
    assert all(
        torch.equal(value, weights(same)[name]) for name, value in weights(old).items() if value.shape != hiding.shape
    )
    assert [same.tag(words) for words, _ in DEV] == [old.tag(words) for words, _ in DEV]


@pytest.mark.parametrize("options", [{"loss": "crf"}, {"rank": 2}, {"loss": "ce"}, {"loss": "ssvm"}, {"compose": True}])
def test_every_head(options, tmp_path):
    train(DATA, DEV, Training(epochs=2, batch_tokens=64, hidden=12, **options), out=tmp_path, columns="upos+feats")
    found = go_on(tmp_path, epochs=6, **{name: value for name, value in options.items() if name != "rank"})
    assert "X Foo=Bar" in found.tagger.tag([*DEV[0][0], "zork"])
    assert found.history[0]["dev_accuracy"] > Tagger.load(tmp_path).metadata["dev_accuracy"] - 15


def test_what_was_unseen_and_occurs_now_is_seen(tmp_path):
    data = [(["a", "b"], ["N A=1|B=1", "N A=2|B=2"])] * 5
    train(data, data, Training(compose=True, epochs=1, hidden=4), out=tmp_path, columns="upos+feats")
    assert Tagger.load(tmp_path).vocabulary.unseen == ["N A=1|B=2", "N A=2|B=1"]
    more = [(["c", "d"], ["N A=1|B=2", "N A=3|B=1"])] * 5
    settings = Training(compose=True, epochs=1, continue_from=str(tmp_path))
    found = train(more, more, settings, columns="upos+feats").tagger.vocabulary
    assert "N A=1|B=2" in found.seen_tags and "N A=2|B=1" in found.unseen and "N A=3|B=2" in found.unseen
    assert len(set(found.tags)) == len(found.tags)


def test_an_interrupted_run_goes_on_to_equal_weights(first, tmp_path, monkeypatch):
    whole = go_on(first).tagger

    def stop(run, *_):
        run._save()
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr("linearcore.tagging._loop.TrainingLoop._end_epoch", stop)
        with pytest.raises(StoppedError):
            go_on(first, out=tmp_path / "out")
    # Another tagger to continue from is another run.
    other = shutil.copytree(first, tmp_path / "model")
    Tagger.load(other).save(other)
    tagger = Tagger.load(other)
    tagger.model.projection.bias.data += 1.0
    tagger.save(other)
    with pytest.raises(ValueError, match="unfinished run with another continue_from_sha256"):
        go_on(other, out=tmp_path / "out")
    found = go_on(first, out=tmp_path / "out")
    assert found.resumed is not None and equal(found.tagger, whole) and equal(Tagger.load(tmp_path / "out"), whole)
    assert go_on(first, out=tmp_path / "out").was_finished


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "upos"}, r"`columns` must be 'upos\+feats' .*, got 'upos'; pass --tag upos\+feats"),
        ({"loss": "crf"}, "`loss` must be 'lc' .*, got 'crf'; pass --loss lc"),
        ({"rank": 3}, "`rank` must be .*, got 3; omit it"),
        ({"hidden": 13}, "`hidden` must be 12 .*, got 13; omit it"),
        ({"characters": False}, "`characters` must be .*, got False; omit it"),
        ({"encoder": "transformer:bert"}, "`encoder` must be 'bilstm' .*, got 'transformer:bert'; omit it"),
        ({"vectors": "some.vec"}, "`vectors` must be None .*, got 'some.vec'; omit it"),
        ({"compose": True}, "`compose` must be False .*, got True"),
    ],
)
def test_conflicting_options_are_refused_in_one_line(options, message, first):
    with pytest.raises(ValueError, match=message) as caught:
        go_on(first, **options)
    assert "\n" not in str(caught.value)


def test_options_that_agree_are_accepted(first, monkeypatch):
    assert untrained(first, monkeypatch, hidden=12, layers=2, encoder="bilstm", loss="lc").model.encoder.width == 24


def test_the_layout_is_that_of_the_tagger(tmp_path, monkeypatch):
    layout = Layout("jsonl", "pos")
    train(DATA, DEV, SHORT, out=tmp_path, columns="last", layout=layout)
    assert untrained(tmp_path, monkeypatch, columns="last").layout == layout


def test_folders(first, tmp_path):
    with pytest.raises(ValueError, match="`out` must differ from `continue_from`"):
        go_on(first, out=first)
    with pytest.raises(StoreError, match="must be a saved tagger, got no such folder"):
        go_on(tmp_path / "nowhere")


def write_vectors(path, size=5):
    generator = torch.Generator().manual_seed(0)
    words = [*sorted({word for words, _ in DATA for word in words})[::2], "unheard"]
    rows = torch.randn(len(words), size, generator=generator).tolist()
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows, strict=True)))
    return str(path)


def test_vectors_are_saved_with_the_tagger_and_their_hash_is_part_of_the_key(tmp_path):
    file, out = write_vectors(tmp_path / "vectors.txt"), tmp_path / "model"
    settings = Training(epochs=1, batch_tokens=64, hidden=12, vectors=file)
    found = train(DATA, DEV, settings, out=out).tagger
    assert found.metadata["training"]["vectors"] == "vectors.txt"
    assert train(DATA, DEV, settings, out=out).was_finished
    write_vectors(tmp_path / "vectors.txt", size=6)
    with pytest.raises(ValueError, match="finished tagger with another vectors_sha256"):
        train(DATA, DEV, settings, out=out)
    (tmp_path / "vectors.txt").unlink()
    with pytest.raises(ValueError, match=r"`vectors` must be .* \(no such file or directory\)"):
        train(DATA, DEV, settings, out=out)
    loaded = Tagger.load(out)
    assert loaded.model.encoder.vectors.ids(["unheard"]) != [0] and loaded.model.encoder.vectors.size == 5
    assert [loaded.tag(words) for words, _ in DEV] == [found.tag(words) for words, _ in DEV]
    # The vectors are those of the trained tagger when training is continued.
    continued = go_on(out, columns="tag").tagger
    assert torch.equal(continued.model.encoder.vectors.rows, found.model.encoder.vectors.rows)
