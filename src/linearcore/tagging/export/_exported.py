"""A tagger in an ONNX or torch.export file, run with onnxruntime or torch.

This file is also part of the script that `Tagger.export` writes, so it imports numpy and the standard library only, and
onnxruntime or torch where the model is loaded.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from linearcore.tagging.export._inputs import make_inputs

#: Format of the JSON file beside the model.
FORMAT = "linearcore exported tagger 1"


class ExportedTagger:
    """A tagger that `Tagger.export` wrote: MODEL.onnx or MODEL.pt2, and MODEL.json with its words and tags.

    MODEL.onnx needs onnxruntime and numpy, MODEL.pt2 needs torch; a transformer also needs tokenizers. The script MODEL.py
    beside them contains this class and does not need linearcore.

    Args:
        path: the file of the model.

    Attributes:
        tags: names of the tags.
        columns: the tag columns of a file, in the syntax of `--tag`.

    Raises:
        ValueError: if a file is missing, or is not that of an exported tagger.
        ImportError: if a package is missing.

    Example:
        tagger = ExportedTagger("english.onnx")
        tagger.tag(["the", "cat", "sleeps"])
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        for file in (path, path.with_suffix(".json")):
            if not file.is_file():
                raise ValueError(f"`path` must be an exported tagger, got no file {file}; pass the file that `export` wrote")
        contents = json.loads(path.with_suffix(".json").read_text("utf-8"))
        if not isinstance(contents, dict) or contents.get("format") != FORMAT:
            raise ValueError(
                f"`path` must have a JSON file with format {FORMAT!r}, got {path.with_suffix('.json')}; export again"
            )
        self.tags: list[str] = contents["tags"]
        self.columns: str = contents["columns"]
        self._inputs = make_inputs(contents["encoder"], contents["lookup"])
        self._run = _load_onnx(path) if path.suffix == ".onnx" else _load_torch(path)

    def tag(self, words: Sequence[str]) -> list[str]:
        """Returns the tags of one sentence, one per word.

        Raises:
            TypeError: if `words` is a string.
        """
        return next(self.tag_all([words]))

    def tag_all(self, sentences: Iterable[Sequence[str]], batch_size: int = 32) -> Iterator[list[str]]:
        """Yields the tags of each sentence, in order.

        Args:
            sentences: lists of words.
            batch_size: number of sentences in a batch.

        Raises:
            TypeError: if a sentence is a string.
        """
        remaining = iter(sentences)
        while batch := list(islice(remaining, batch_size)):
            yield from self._tag_batch(batch)

    def _tag_batch(self, sentences: list[Sequence[str]]) -> list[list[str]]:
        for words in sentences:
            if isinstance(words, str):
                raise TypeError("`words` must be a list of words, got a string; split it, for example words.split()")
        lengths = [len(words) for words in sentences]
        length = max(1, *lengths)
        mask = np.arange(length) < np.array(lengths)[:, None]
        rows = self._run({"mask": mask, **self._inputs(sentences, length)})
        if (rows[mask] < 0).any():
            raise ValueError("no sequence of tags is allowed for a sentence; its scores are NaN, or constraints forbid it")
        return [[self.tags[tag] for tag in row[:size]] for row, size in zip(rows.tolist(), lengths, strict=True)]


def _load_onnx(path: Path) -> Callable[[dict[str, Any]], Any]:
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("onnxruntime not installed; run pip install onnxruntime") from None
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)[0]


def _load_torch(path: Path) -> Callable[[dict[str, Any]], Any]:
    import torch

    program = torch.export.load(path).module()
    # The arguments of the program are positional, in the order of `inputs`.
    return lambda inputs: program(*map(torch.from_numpy, inputs.values())).numpy()


def main(path: str | Path) -> None:
    """Tags sentences from standard input, one per line, words separated by spaces; prints tags separated by tabs."""
    tagger = ExportedTagger(path)
    sentences = (line.split() for line in sys.stdin)
    for tags in tagger.tag_all(sentences):
        print(*tags, sep="\t")
