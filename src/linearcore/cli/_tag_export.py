"""The command `linearcore tag export`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linearcore.cli import _tag_files as options
from linearcore.cli._usage import UsageError, usage_errors

if TYPE_CHECKING:
    from linearcore.tagging import Tagger

_HUGGING_FACE = "hugging-face"


def export(
    model: options.Model,
    out: Annotated[
        Path,
        typer.Option(
            help="With onnx, a file OUT.onnx; with torch, OUT.pt2; OUT.json and OUT.py are written beside it. With "
            "hugging-face, a folder."
        ),
    ],
    to: Annotated[
        str, typer.Option(help="Format: onnx, torch (torch.export), or hugging-face, for taggers with a transformer.")
    ] = "onnx",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a tagger for use without linearcore or in Hugging Face pipelines.

    With onnx and torch the model is one graph that includes decoding and takes batches of any size and length. With --out
    OUT.onnx, OUT.json has the words and tags, and OUT.py tags text with the graph. The command runs the exported graph,
    checks that it predicts the same tags as the tagger, and prints the time for one sentence.

    \b
    Examples
        linearcore tag export english --to onnx --out english.onnx
        linearcore tag export english --to torch --out english.pt2
        echo "the cat sleeps" | python english.py
        linearcore tag export entities --to hugging-face --out entities-hf
    """
    with usage_errors():
        from linearcore._checks import complaint, one_of
        from linearcore._extras import require
        from linearcore.tagging import Tagger
        from linearcore.tagging.export import SUFFIXES

        suffixes = {name: suffix for suffix, name in SUFFIXES.items()}
        one_of("--to", to, (*suffixes, _HUGGING_FACE))
        if to != _HUGGING_FACE and out.suffix != suffixes[to]:
            advice = f"for example model{suffixes[to]}"
            raise ValueError(complaint("--out", f"end in {suffixes[to]} with --to {to}", repr(str(out)), advice))
        if to == "onnx":
            require("onnx", "onnxscript", "onnxruntime", extra=None)
        tagger = Tagger.load(model)
        lines, values = _to_hugging_face(tagger, out) if to == _HUGGING_FACE else _to_graph(tagger, out)
    typer.echo(json.dumps(values, ensure_ascii=False) if as_json else "\n".join(lines))


def _to_hugging_face(tagger: "Tagger", out: Path) -> tuple[list[str], dict[str, object]]:
    hugging_face_model, tokenizer = tagger.to_hugging_face()
    hugging_face_model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    load = f'pipeline("token-classification", model="{out}", aggregation_strategy="first")'
    call = f"linearcore.tagging.hugging_face.register(), then transformers.{load}"
    return [f"Saved to {out}. In Python: {call}."], {"out": str(out)}


def _to_graph(tagger: "Tagger", out: Path) -> tuple[list[str], dict[str, object]]:
    from linearcore.tagging import ExportedTagger
    from linearcore.tagging.export import compare

    files = tagger.export(out)
    found = compare(tagger, ExportedTagger(files.model))
    if found.differing:
        counts = f"{found.differing} of {found.words} words have other tags than with the tagger"
        raise UsageError(f"{out} is not exact: {counts}; check the model for NaN and for tags with equal scores")
    opset = "" if files.opset is None else f", opset {files.opset}"
    lines = [
        f"Saved {files.model} ({files.size / 1e6:.1f} MB{opset}), {files.lookup.name} and {files.script.name}.",
        f"{found.words} words have the same tags as with the tagger. A sentence of {found.timed_words} words takes "
        f"{1000 * found.seconds:.2f} ms; the tagger takes {1000 * found.tagger_seconds:.2f} ms.",
        f"Next: python {files.script} < FILE, or linearcore.tagging.ExportedTagger({str(files.model)!r}).",
    ]
    written = {"model": str(files.model), "lookup": str(files.lookup), "script": str(files.script)}
    return lines, written | {"opset": files.opset, "bytes": files.size} | asdict(found)
