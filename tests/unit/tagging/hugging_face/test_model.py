from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("transformers")

from linearcore.structures import SpanF1
from linearcore.tagging.hugging_face import ChainConfig, ChainForTokenClassification, register
from tests.tiny_transformer import PIECES, SPECIAL, tiny_bert, transformers, word_piece, write_encoder

NAMES = ["O", "B-PER", "I-PER"]
TEXTS = ["ann lives unbelievably in paris", "bob", "unbelievably ann . hams"]
CHAINS = ["lc", "crf", "ssvm"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def model_of(folder, **options):
    torch.manual_seed(0)
    return ChainForTokenClassification.from_encoder(folder, labels=NAMES, **options).eval()


def inputs_of(texts=TEXTS):
    return dict(word_piece()(texts, padding=True, return_tensors="pt"))


def labels_of(inputs, first_only=True):
    """Labels 0, 1, 2, 0, … at the first sub-words, −100 elsewhere."""
    names = word_piece().convert_ids_to_tokens(inputs["input_ids"].flatten())
    begins = torch.tensor([not name.startswith("##") and name[0] != "[" for name in names]).view_as(inputs["input_ids"])
    return torch.where(begins, (begins.cumsum(1) - 1) % 3, -100)


@pytest.mark.parametrize("loss", ["lc", "crf", "ssvm", "ce"])
def test_the_encoder_keeps_its_weights_and_the_rest_is_fresh(folder, loss):
    model = model_of(folder, loss=loss)
    given = transformers.BertModel.from_pretrained(folder).state_dict()
    found = model.encoder.state_dict()
    assert found and all(torch.equal(found[name], given[name]) for name in found)
    assert set(given) - set(found) == {"pooler.dense.weight", "pooler.dense.bias"}
    assert 0.01 < model.projection.weight.std() < 0.03 and not model.projection.bias.any()
    if loss != "ce":
        assert 0 < model.head.transitions.abs().max() <= 0.1
    assert model.config.id2label == dict(enumerate(NAMES)) and model.config.label2id["I-PER"] == 2


@pytest.mark.parametrize("loss", CHAINS)
def test_the_loss_is_the_heads_mean_over_labels(folder, loss):
    model, inputs = model_of(folder, loss=loss), inputs_of()
    labels = labels_of(inputs)
    emissions = model.projection(model.encoder(**inputs).last_hidden_state)
    expected = -model.head(emissions, labels, reduction="token_mean")
    torch.testing.assert_close(model(**inputs, labels=labels).loss, expected)


def test_training_for_a_cost_survives_saving(folder, tmp_path):
    inputs = inputs_of()
    labels = labels_of(inputs)
    model_of(folder, cost="span-f1").save_pretrained(tmp_path)
    model = ChainForTokenClassification.from_pretrained(tmp_path).eval()
    emissions = model.projection(model.encoder(**inputs).last_hidden_state)
    expected = model.head.candidate_loss(emissions, labels, cost=SpanF1(tuple(NAMES)))
    torch.testing.assert_close(model(**inputs, labels=labels).loss, expected)
    assert (expected - model.head.loss(emissions, labels)).abs() > 1e-3
    with pytest.raises(ValueError, match="`cost` must be None with loss 'crf'"):
        model_of(folder, loss="crf", cost="span-f1")


def test_token_cross_entropy_is_torchs(folder):
    model, inputs = model_of(folder, loss="ce"), inputs_of()
    labels = labels_of(inputs)
    output = model(**inputs, labels=labels)
    torch.testing.assert_close(output.loss, F.cross_entropy(output.logits.flatten(0, 1), labels.flatten()))
    torch.testing.assert_close(output.logits, model.projection(model.encoder(**inputs).last_hidden_state))


@pytest.mark.parametrize("loss", ["crf", "ce"])
def test_the_number_of_items_replaces_the_number_of_labels(folder, loss):
    model, inputs = model_of(folder, loss=loss), inputs_of()
    labels = labels_of(inputs)
    count, mean = int((labels != -100).sum()), model(**inputs, labels=labels).loss
    for number in (4 * count, torch.tensor(4 * count), torch.tensor([[4 * count]])):
        torch.testing.assert_close(model(**inputs, labels=labels, num_items_in_batch=number).loss, mean / 4)


@pytest.mark.parametrize("loss", ["lc", "ce"])
def test_a_batch_without_labels_costs_nothing(folder, loss):
    model, inputs = model_of(folder, loss=loss), inputs_of()
    loss = model(**inputs, labels=torch.full_like(inputs["input_ids"], -100)).loss
    assert loss.item() == 0
    loss.backward()


@pytest.mark.parametrize("constraints", [None, "bio"])
@pytest.mark.parametrize("loss", CHAINS)
@torch.no_grad()
def test_argmax_of_logits_is_what_is_decoded(folder, loss, constraints):
    model, inputs = model_of(folder, loss=loss, constraints=constraints), inputs_of()
    torch.nn.init.normal_(model.projection.weight, 0.0, 1.0)
    torch.nn.init.normal_(model.head.transitions, 0.0, 2.0)
    logits, sites = model(**inputs).logits, model.sites(inputs["input_ids"], inputs["attention_mask"])
    assert sites.sum(1).tolist() == [5, 1, 4]
    emissions = model.projection(model.encoder(**inputs).last_hidden_state)
    assert torch.equal(logits.argmax(-1)[sites], model.head.viterbi(emissions, sites)[0][sites])
    names = [[NAMES[label] for label in row[on]] for row, on in zip(logits.argmax(-1), sites, strict=True)]
    assert names == model.decode(**inputs)
    # "unbelievably" is the third word of the first text: its three sub-words agree.
    assert torch.equal(logits[0, 4], logits[0, 3]) and torch.equal(logits[0, 5], logits[0, 3])
    if constraints:
        assert all(row[0] != "I-PER" for row in names)


@torch.no_grad()
def test_labels_say_where_the_sites_are_and_a_mask_of_words_says_it_first(folder):
    model, inputs = model_of(folder, loss="crf"), inputs_of()
    torch.nn.init.normal_(model.head.transitions, 0.0, 3.0)
    emissions = model.projection(model.encoder(**inputs).last_hidden_state)
    labels = torch.full_like(inputs["input_ids"], -100)
    labels[:, 1:3] = 0
    words = torch.zeros_like(labels)
    words[:, 1] = 1
    for given, sites in (({"labels": labels}, labels != -100), ({"labels": labels, "word_mask": words}, words == 1)):
        logits = model(**inputs, **given).logits
        assert torch.equal(logits.argmax(-1)[sites], model.head.viterbi(emissions, sites)[0][sites])
    assert [len(row) for row in model.decode(**inputs, word_mask=words)] == [1, 1, 1]


def test_training_decodes_only_when_asked(folder):
    model, inputs = model_of(folder, loss="crf", dropout=0.0).train(), inputs_of()
    emissions = model.projection(model.encoder(**inputs).last_hidden_state)
    torch.testing.assert_close(model(**inputs).logits, emissions)
    asked = model(**inputs, decode_logits=True).logits
    torch.testing.assert_close(asked, model.eval()(**inputs).logits)
    torch.testing.assert_close(model(**inputs, decode_logits=False).logits, emissions)


@torch.no_grad()
def test_many_labels_are_decoded_with_a_beam(folder):
    names = [f"T{number}" for number in range(700)]
    model = ChainForTokenClassification.from_encoder(folder, labels=names, rank=4).eval()
    inputs = inputs_of()
    sites = model.sites(inputs["input_ids"], inputs["attention_mask"])
    emissions = model.projection(model.encoder(**inputs).last_hidden_state)
    assert torch.equal(model(**inputs).logits.argmax(-1)[sites], model.head.beam(emissions, sites, width=16)[0][sites])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("loss", [*CHAINS, "ce"])
def test_mixed_precision_computes_the_loss_in_float32(folder, loss, dtype):
    model, inputs = model_of(folder, loss=loss), inputs_of()
    labels = labels_of(inputs)
    with torch.autocast("cpu", dtype):
        output = model(**inputs, labels=labels)
        emissions = model.projection(model.encoder(**inputs).last_hidden_state)
    assert output.loss.dtype == output.logits.dtype == torch.float32 and emissions.dtype == dtype
    if loss != "ce":
        expected = -model.head(emissions.float(), labels, reduction="token_mean")
        torch.testing.assert_close(output.loss, expected, rtol=1e-6, atol=0)
    output.loss.backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize(
    "options", [{"loss": "lc", "rank": 2, "surrogate": {"tau": 2.0}}, {"loss": "crf", "constraints": "bio"}, {"loss": "ce"}]
)
@torch.no_grad()
def test_saved_and_loaded_it_is_the_same(folder, tmp_path, options):
    model, inputs = model_of(folder, **options), inputs_of()
    model.save_pretrained(tmp_path)
    word_piece().save_pretrained(tmp_path)
    files = list(tmp_path.iterdir())
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".txt"}
    text = "".join(path.read_text("utf-8") for path in files if path.suffix != ".safetensors")
    assert str(Path(folder)) not in text
    register()
    for reader in (ChainForTokenClassification, transformers.AutoModelForTokenClassification):
        again = reader.from_pretrained(tmp_path)
        assert type(again) is ChainForTokenClassification and not again.training
        assert torch.equal(again.token_kinds, model.token_kinds)
        assert torch.equal(again(**inputs).logits, model(**inputs).logits)
        assert again.decode(**inputs) == model.decode(**inputs)
    assert isinstance(transformers.AutoConfig.from_pretrained(tmp_path), ChainConfig)


def test_constraints_are_there_after_loading_on_any_dtype(folder, tmp_path):
    model_of(folder, loss="lc", constraints="bio").save_pretrained(tmp_path)
    again, found = ChainForTokenClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert torch.equal(again.head._allowed_transitions, again.head.constraints.transitions)
    assert torch.equal(again.head._allowed_start, torch.tensor([True, True, False]))
    assert not found["missing_keys"]


def test_the_dtype_of_a_foreign_configuration_is_not_taken_over():
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = ChainForTokenClassification(ChainConfig(transformers.BertConfig(dtype="float16", **small)))
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_without_a_tokenizer_every_token_is_a_word_and_it_is_said(tmp_path):
    tiny_bert(len(SPECIAL) + len(PIECES)).save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="every token is treated as a word, because there is no tokenizer: `path` must"):
        model = ChainForTokenClassification.from_encoder(tmp_path, labels=NAMES)
    inputs = inputs_of()
    sites = model.sites(inputs["input_ids"], inputs["attention_mask"])
    assert torch.equal(sites, inputs["attention_mask"].bool())
    model.use_tokenizer(word_piece())
    assert model.sites(inputs["input_ids"], inputs["attention_mask"]).sum(1).tolist() == [5, 1, 4]


def test_tuples_hidden_states_and_unknown_arguments(folder):
    model, inputs = model_of(folder), inputs_of()
    labels = labels_of(inputs)
    loss, logits, states = model(**inputs, labels=labels, output_hidden_states=True, return_dict=False)
    assert loss.dim() == 0 and logits.shape[-1] == 3 and len(states) == 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'lables'"):
        model(**inputs, lables=labels)


@pytest.mark.parametrize("labels", [[], ["O", "O"], ["O", 3]])
def test_labels_must_be_different_names(folder, labels):
    with pytest.raises(ValueError, match="`labels` must be at least one name, all different, got"):
        ChainForTokenClassification.from_encoder(folder, labels=labels)


def test_labels_that_break_the_rules_are_refused(folder):
    model, inputs = model_of(folder, constraints="bio"), inputs_of()
    labels = torch.where(labels_of(inputs) == -100, -100, 2)
    with pytest.raises(ValueError, match="`tags` must satisfy `constraints`"):
        model(**inputs, labels=labels)


def test_a_foreign_folder_is_one_line(folder, tmp_path):
    for path in (folder, tmp_path, tmp_path / "not there"):
        with pytest.raises(
            ValueError, match="`path` must be a folder or name of a saved ChainForTokenClassification, got"
        ) as error:
            ChainForTokenClassification.from_pretrained(path)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="`path` must be a Hugging Face encoder") as error:
        ChainForTokenClassification.from_encoder(tmp_path, labels=NAMES)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="`config` must contain the configuration of an encoder, got none"):
        ChainForTokenClassification(ChainConfig())
