import pytest
import torch

from linearcore.tagging import Vocabulary
from linearcore.tagging.encoders import BiLSTM
from linearcore.tagging.encoders._bilstm import UNKNOWN
from linearcore.tagging.encoders._vectors import WordVectors

TABLE = "the 2 0\ncat 0 2\nThe 2 2\nunheard -2 0\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(TABLE)
    return str(path)


def make(file, **settings):
    torch.manual_seed(0)
    vocabulary = Vocabulary(["the", "cat", "dog"], [2, 1, 1], ["X"])
    return BiLSTM.from_settings(vocabulary, vectors=file, embedding=5, hidden=6, **settings)


def test_the_number_of_vectors(file, monkeypatch):
    monkeypatch.setattr("linearcore.tagging.encoders._bilstm.MAX_VECTORS", 2)
    assert make(file).vectors.words == make(file, max_vectors=None).vectors.words == ["the", "cat"]
    assert make(file, max_vectors=3).vectors.words == ["the", "cat", "The"]


def run(encoder, words):
    inputs = encoder.collate([encoder.featurize(words)], len(words))
    return encoder(torch.ones(1, len(words), dtype=torch.bool), **inputs)


def test_lookup_with_lower_case(file):
    vectors = WordVectors.read(file, 10)
    assert vectors.ids(["the", "The", "THE", "Cat", "dog"]) == [1, 3, 1, 2, 0]
    assert vectors(torch.tensor([0])).tolist() == [[0.0, 0.0]]
    # One factor for all vectors.
    assert vectors.rows.square()[1:].mean() == pytest.approx(1.0)
    assert torch.equal(vectors.rows[3], vectors.rows[1] + vectors.rows[2])
    assert WordVectors.read(file, 2).ids(["The", "unheard"]) == [1, 0]


@pytest.mark.parametrize("characters", [True, False])
def test_words_that_are_not_in_the_training_data_have_vectors(characters, file):
    encoder = make(file, characters=characters).eval()
    assert encoder.featurize(["unheard"])[0].tolist() == [UNKNOWN]
    assert encoder.vectors.ids(["unheard"]) == [4]
    before = run(encoder, ["unheard"])
    encoder.vectors.rows[4] = 0.0
    assert not torch.allclose(before, run(encoder, ["unheard"]))


def test_vectors_are_not_trained_and_not_in_the_state_dict(file):
    encoder = make(file)
    assert not any("rows" in name for name in encoder.state_dict())
    before = encoder.vectors.rows.clone()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1.0)
    run(encoder, ["the", "cat"]).sum().backward()
    optimizer.step()
    assert torch.equal(encoder.vectors.rows, before)


@pytest.mark.parametrize("has_vectors", [True, False])
def test_saved_and_loaded(has_vectors, file, tmp_path):
    encoder = make(file if has_vectors else None).eval()
    (tmp_path / "saved").mkdir()
    settings = encoder.save(tmp_path / "saved")
    assert ("has_vectors" in settings) == bool(list((tmp_path / "saved").iterdir())) == has_vectors
    twin = BiLSTM.load(tmp_path / "saved", settings)
    twin.load_state_dict(encoder.state_dict())
    assert torch.equal(run(twin.eval(), ["The", "unheard", "x"]), run(encoder, ["The", "unheard", "x"]))


def test_files_that_do_not_belong_together(file, tmp_path):
    settings = make(file).save(tmp_path)
    (tmp_path / "vectors.json").write_text('["the"]')
    with pytest.raises(ValueError, match="1 words and 4 vectors"):
        BiLSTM.load(tmp_path, settings)


def test_vectors_of_another_language_are_refused(tmp_path):
    (tmp_path / "other.txt").write_text("der 1 2\ndie 3 4\n")
    with pytest.raises(ValueError, match="`vectors` must have words of the training data, got none of 3"):
        make(str(tmp_path / "other.txt"))


def test_inputs_must_fit_the_encoder(file):
    inputs = make(file).collate([make(file).featurize(["the"])], 1)
    with pytest.raises(ValueError, match="`vectors` must be a tensor"):
        make(file)(torch.ones(1, 1, dtype=torch.bool), words=inputs["words"], spelling=inputs["spelling"])
    with pytest.raises(ValueError, match="`vectors` must be None"):
        make(None)(torch.ones(1, 1, dtype=torch.bool), **inputs)
