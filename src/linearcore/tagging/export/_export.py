"""Writes a tagger as ONNX or torch.export program, with the JSON file and the script to run it."""

import inspect
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.tagging._batches import Bucket
from linearcore.tagging._corpus import Corpus
from linearcore.tagging.encoders import cut_into_rows, spelling
from linearcore.tagging.export._exported import FORMAT, ExportedTagger
from linearcore.tagging.export._graph import TaggerGraph
from linearcore.tagging.export._inputs import make_inputs

if TYPE_CHECKING:
    from linearcore.tagging._tagger import Tagger

#: Ends of file names, and what is written.
SUFFIXES = {".onnx": "onnx", ".pt2": "torch"}
#: First line of the script.
_SCRIPT_MARK = "# Written by linearcore: runs the exported tagger beside this file."
#: Version of the ONNX operators.
OPSET = 20


@dataclass(frozen=True)
class ExportedFiles:
    """The files that `export_tagger` wrote.

    Attributes:
        model: the ONNX or torch.export file.
        lookup: the JSON file with words and tags.
        script: a script that runs the model without linearcore.
        opset: version of the ONNX operators; None for torch.export.
    """

    model: Path
    lookup: Path
    script: Path
    opset: int | None

    @property
    def size(self) -> int:
        """Size of the model in bytes."""
        return self.model.stat().st_size


def export_tagger(tagger: "Tagger", path: str | Path) -> ExportedFiles:
    """Writes encoder, projection and decoding of a tagger as one graph; see `Tagger.export`."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        advice = "write for example model.onnx, or model.pt2 for torch.export"
        raise ValueError(complaint("path", f"end in {' or '.join(SUFFIXES)}", repr(str(path)), advice))
    is_onnx = SUFFIXES[path.suffix] == "onnx"
    if is_onnx:
        require("onnx", "onnxscript", extra=None)
    encoder = tagger.model.encoder
    contents = {
        "format": FORMAT,
        "columns": tagger.columns,
        "tags": tagger.vocabulary.tags,
        "encoder": encoder.kind,
        "lookup": encoder.lookup(),
    }
    files = ExportedFiles(path, path.with_suffix(".json"), path.with_suffix(".py"), OPSET if is_onnx else None)
    for file, mark in ((files.lookup, FORMAT), (files.script, _SCRIPT_MARK)):
        if file.exists() and mark not in file.read_text("utf-8", "replace")[:200]:
            raise ValueError(
                complaint("path", "not overwrite files of others", f"{file}, which exists", "choose another name")
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    with _quiet(), torch.no_grad():
        program, names = _trace(tagger)
        if is_onnx:
            onnx_program = torch.onnx.export(
                program, input_names=names, output_names=["tags"], opset_version=OPSET, dynamo=True, verbose=False
            )
            assert onnx_program is not None
            onnx_program.save(str(path), external_data=False)
        else:
            torch.export.save(program, path)
    files.lookup.write_text(json.dumps(contents), "utf-8")
    files.script.write_text(script_source(path.name), "utf-8")
    return files


def _trace(tagger: "Tagger") -> tuple[torch.export.ExportedProgram, list[str]]:
    """Returns the exported program and the names of its inputs; batch size, length and sub-words are dynamic."""
    mask, inputs = _example(tagger)
    axes = {"mask": ("batch", "length"), **tagger.model.encoder.input_axes}
    # DYNAMIC raises if tracing fixes a size. It finds out by itself which sizes are equal, and their largest values.
    shapes = {name: dict.fromkeys(range(len(axes[name])), torch.export.Dim.DYNAMIC) for name in ("mask", *inputs)}
    program = torch.export.export(
        TaggerGraph(tagger.model, list(inputs)),
        (mask, *inputs.values()),
        dynamic_shapes={"mask": shapes.pop("mask"), "inputs": tuple(shapes.values())},
        strict=False,
    )
    return program, ["mask", *inputs]


def _example(tagger: "Tagger") -> tuple[Tensor, dict[str, Tensor]]:
    """Returns a batch in which all sizes differ and none is 0 or 1, which torch.export would take as fixed."""
    encoder, word = tagger.model.encoder, (tagger.vocabulary.words or ["a"])[0]
    corpus = Corpus.of([([word] * size, [""] * size) for size in (5, 3)], tagger.vocabulary, encoder)
    batch = corpus.batch(Bucket([0, 1], 5, 2))
    return batch.mask, batch.inputs


def script_source(model: str) -> str:
    """Returns the source of a script that runs the model in the file `model` beside it, without linearcore."""
    modules = [sys.modules[part.__module__] for part in (spelling, cut_into_rows, make_inputs, ExportedTagger)]
    lines = [line for module in modules for line in inspect.getsource(module).splitlines()]
    kept = [line for line in lines if not line.startswith("from linearcore")]
    call = f'if __name__ == "__main__":\n    main(Path(__file__).with_name({model!r}))\n'
    return "\n".join([_SCRIPT_MARK, *kept, "", "", call])


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides the messages of torch's exporters about packages and operators that the tagger does not use."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
