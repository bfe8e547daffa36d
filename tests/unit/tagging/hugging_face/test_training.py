"""Trainer and pipeline do with a chain what they do with any other model."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from linearcore.tagging.hugging_face import ChainForTokenClassification, register
from tests.cases import each
from tests.tiny_transformer import real_encoder, transformers, word_piece, write_encoder

pytest.importorskip("accelerate")
NAMES = ["B-PER", "I-PER", "O"]
FIRST = ["paris", "rome", "bob"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"), layers=1)


def cycles(number, seed):
    """The first word says with which label a text begins; the rest is one word again and again, and labels take turns."""
    generator = torch.Generator().manual_seed(seed)
    tokenizer, examples = word_piece(), []
    for start, length in zip(
        torch.randint(3, (number,), generator=generator).tolist(),
        torch.randint(3, 9, (number,), generator=generator).tolist(),
        strict=True,
    ):
        found = tokenizer([FIRST[start], *["hams"] * (length - 1)], is_split_into_words=True)
        words = found.word_ids()
        first = [word is not None and word != words[place - 1] for place, word in enumerate(words)]
        labels = [(start + word) % 3 if begins else -100 for word, begins in zip(words, first, strict=True)]
        examples.append({"input_ids": found["input_ids"], "attention_mask": found["attention_mask"], "labels": labels})
    return examples


def trainer_of(model, tmp_path, examples, **options):
    options = {"max_steps": 1, "per_device_train_batch_size": 8, "learning_rate": 1e-2, **options}
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
        seed=0, **options,
    )  # fmt: skip

    def accuracy(found):
        on = found.label_ids != -100
        return {"accuracy": float((np.argmax(found.predictions, -1) == found.label_ids)[on].mean())}

    collator = transformers.DataCollatorForTokenClassification(word_piece())
    return transformers.Trainer(
        model,
        arguments,
        data_collator=collator,
        train_dataset=examples,
        eval_dataset=cycles(60, 1),
        compute_metrics=accuracy,
    )


@each("loss", {loss: loss for loss in ("lc", "crf", "ssvm")}, ("lc",))
def test_trainer_learns_which_label_follows_which(folder, tmp_path, loss):
    torch.manual_seed(0)
    model = ChainForTokenClassification.from_encoder(folder, labels=NAMES, loss=loss, dropout=0.0)
    trainer = trainer_of(model, tmp_path, cycles(200, 0), max_steps=60, per_device_eval_batch_size=16)
    before, _ = trainer.evaluate(), trainer.train()
    after = trainer.evaluate()
    assert after["eval_loss"] < 0.5 * before["eval_loss"]
    assert before["eval_accuracy"] < 0.7 and after["eval_accuracy"] > 0.95
    assert model.head.transitions.detach().argmax(1).tolist() == [1, 2, 0]


@each("loss", {loss: loss for loss in ("lc", "crf", "ce")}, ("crf",))
def test_accumulated_gradients_are_those_of_one_large_batch(folder, tmp_path, loss):
    found = []
    for size, steps in ((8, 1), (2, 4)):
        torch.manual_seed(0)
        model = ChainForTokenClassification.from_encoder(folder, labels=NAMES, loss=loss, dropout=0.0)
        start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        options = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps, "max_grad_norm": 0.0}
        trainer = trainer_of(model, tmp_path, cycles(8, 3), optim="sgd", learning_rate=1.0, **options)
        trainer.train()
        found.append({name: weight.detach() - start[name] for name, weight in model.named_parameters()})
    assert found[0]["projection.weight"].abs().max() > 1e-3
    for name, step in found[0].items():
        torch.testing.assert_close(found[1][name], step, atol=1e-5, rtol=1e-4)


@pytest.fixture(scope="module")
def trained(folder):
    """A chain that calls "bob", "ann" and "unbelievably ann" persons."""
    torch.manual_seed(0)
    model = ChainForTokenClassification.from_encoder(folder, labels=NAMES, loss="crf", constraints="bio", dropout=0.0)
    tokenizer = word_piece()
    texts = ["bob lives in paris", "unbelievably ann lives in rome", "ann lives unbelievably", "in paris lives bob ann"]
    spans = [[0, 2, 2, 2], [0, 1, 2, 2, 2], [0, 2, 0], [2, 2, 2, 0, 1]]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    sites = model.sites(inputs["input_ids"], inputs["attention_mask"])
    labels = torch.full_like(inputs["input_ids"], -100)
    labels[sites] = torch.tensor([label for row in spans for label in row])
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    assert model.eval().decode(**inputs) == [[NAMES[label] for label in row] for row in spans]
    return model


def test_pipelines_give_the_decoded_labels(trained):
    register()
    run = transformers.pipeline("token-classification", model=trained, tokenizer=word_piece(), ignore_labels=[])
    text = "unbelievably ann lives in rome"
    tokens = [(item["word"], item["entity"]) for item in run(text)]
    assert tokens == [
        ("un", "B-PER"), ("##believ", "B-PER"), ("##ably", "B-PER"), ("ann", "I-PER"), ("lives", "O"), ("in", "O"),
        ("rome", "O"),
    ]  # fmt: skip
    assert all(0 <= item["score"] <= 1 for item in run(text))
    grouped = run(text, aggregation_strategy="first")
    assert [(item["word"], item["entity_group"]) for item in grouped] == [
        ("unbelievably ann", "PER"),
        ("lives in rome", "O"),
    ]
    simple = run(text, aggregation_strategy="simple", ignore_labels=["O"])
    assert {item["entity_group"] for item in simple} == {"PER"} and simple[-1]["end"] == len("unbelievably ann")


def test_a_saved_pipeline_is_found_by_its_folder(trained, tmp_path):
    register()
    trained.save_pretrained(tmp_path)
    word_piece().save_pretrained(tmp_path)
    run = transformers.pipeline("token-classification", model=str(tmp_path), aggregation_strategy="first")
    assert [item["word"] for item in run(["bob lives in paris"])[0]] == ["bob"]


def test_a_real_encoder_is_trained_saved_and_run(tmp_path):
    path = real_encoder()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    torch.manual_seed(0)
    model = ChainForTokenClassification.from_encoder(path, labels=NAMES, constraints="bio", rank=2)
    inputs = tokenizer(["Angela Merkel visited Hamburg-Harburg."], return_tensors="pt")
    sites = model.sites(inputs["input_ids"], inputs["attention_mask"])
    # Angela | Merkel | visited | Hamburg | - | Harburg | . | punctuation is a word of its own for BERT.
    words = inputs.word_ids()
    assert sites[0].tolist() == [word is not None and word != words[place - 1] for place, word in enumerate(words)]
    assert int(sites.sum()) == 7
    labels = torch.full_like(inputs["input_ids"], -100)
    labels[sites] = torch.tensor([0, 1, 2, 2, 2, 2, 2])
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses = []
    for _ in range(3):
        loss = model.train()(**inputs, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    model.eval().save_pretrained(tmp_path)
    again = ChainForTokenClassification.from_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.equal(again(**inputs).logits, model(**inputs).logits)
    run = transformers.pipeline("token-classification", model=again, tokenizer=tokenizer, aggregation_strategy="first")
    assert isinstance(run("Angela Merkel visited Hamburg-Harburg."), list)
