"""Turns words into the integers that an exported tagger takes.

This file is also part of the script that `Tagger.export` writes, so it imports numpy and the standard library only; the
tokenizer of a transformer needs the package tokenizers.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linearcore.tagging.encoders import cut_into_rows, spelling

Arrays = dict[str, Any]
#: Computes the inputs of a batch of sentences, padded to a number of words.
MakeInputs = Callable[[Sequence[Sequence[str]], int], Arrays]


def make_inputs(encoder: str, lookup: dict[str, Any]) -> MakeInputs:
    """Returns a function (sentences, length) ↦ inputs of the encoder as arrays.

    Args:
        encoder: "bilstm" or "transformer".
        lookup: the result of `Encoder.lookup`.

    Example:
        >>> inputs = make_inputs("bilstm", {"words": ["a", "cat"], "first_word": 2, "unknown": 1, "buckets": None})
        >>> inputs([["a", "dog"], ["cat"]], 2)["words"]
        array([[2, 1],
               [3, 0]], dtype=int32)
    """
    return {"bilstm": _bilstm_inputs, "transformer": _transformer_inputs}[encoder](lookup)


def _bilstm_inputs(lookup: dict[str, Any]) -> MakeInputs:
    numbers = {word: number for number, word in enumerate(lookup["words"], lookup["first_word"])}
    unknown, buckets, vectors = lookup["unknown"], lookup["buckets"], lookup.get("vectors")
    vector_numbers = {word: number for number, word in enumerate(vectors or [], 1)}

    def inputs(sentences: Sequence[Sequence[str]], length: int) -> Arrays:
        rows: Arrays = {"words": [[numbers.get(word, unknown) for word in words] for words in sentences]}
        if buckets is not None:
            rows["spelling"] = [[spelling(word, buckets) for word in words] for words in sentences]
        if vectors is not None:
            get = vector_numbers.get
            rows["vectors"] = [[get(word) or get(word.lower(), 0) for word in words] for words in sentences]
        return {
            name: _pad(values, length, len(spelling("", 1)) if name == "spelling" else 0) for name, values in rows.items()
        }

    return inputs


def _pad(rows: Sequence[Sequence[Any]], length: int, width: int) -> Any:
    """Returns rows as an int32 array (B, length), or (B, length, width) if `width` is not 0."""
    padded = np.zeros((len(rows), length, *([width] if width else [])), dtype=np.int32)
    for target, row in zip(padded, rows, strict=True):
        if row:
            target[: len(row)] = row
    return padded


def _transformer_inputs(lookup: dict[str, Any]) -> MakeInputs:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(lookup["tokenizer"]))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def pieces(words: Sequence[str]) -> list[list[int]]:
        # The tokenizer does not accept unpaired surrogates.
        texts = [word.encode("utf-8", "replace").decode("utf-8") for word in words]
        found: list[list[int]] = [[] for _ in texts]
        encoding = tokenizer.encode(texts, is_pretokenized=True, add_special_tokens=False)
        for number, word in zip(encoding.ids, encoding.word_ids, strict=True):
            if word is not None:
                found[word].append(number)
        return [piece or [lookup["unknown"]] for piece in found]

    def inputs(sentences: Sequence[Sequence[str]], length: int) -> Arrays:
        settings = lookup["before"], lookup["after"], lookup["max_tokens"]
        cut = [cut_into_rows(pieces(words), *settings) for words in sentences]
        rows = [row for sentence_rows, _ in cut for row in sentence_rows]
        width = max(2, *map(len, rows))  # Some encoders cannot be traced for rows of one sub-word.
        input_ids = np.full((len(rows), width), lookup["padding"], dtype=np.int64)
        attention_mask = np.zeros((len(rows), width), dtype=np.int64)
        index = np.zeros((len(sentences), length), dtype=np.int64)
        for number, row in enumerate(rows):
            input_ids[number, : len(row)], attention_mask[number, : len(row)] = row, 1
        first = 0
        for target, (sentence_rows, places) in zip(index, cut, strict=True):
            target[: len(places)] = [(first + row) * width + place for row, place in places]
            first += len(sentence_rows)
        return {"input_ids": input_ids, "attention_mask": attention_mask, "index": index}

    return inputs
