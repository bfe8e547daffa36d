"""The command `linearcore tag train`."""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from linearcore._checks import complaint
from linearcore._torch import is_compiler_error
from linearcore.cli import _tag_files as options
from linearcore.cli._config import read_config
from linearcore.cli._tag_files import FILE, FORMAT
from linearcore.cli._usage import INTERRUPTED, UsageError, check_device, usage_errors
from linearcore.tagging import Training

if TYPE_CHECKING:
    from linearcore.tagging import TaggedSentence, TrainingResult
    from linearcore.tagging.readers import Layout, Sentence

#: Number of file options; `--help` lists the options of `Training` after them.
_NUM_FILE_OPTIONS = 5


def _with_training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces `**training` in the signature of `command`, which typer reads, by one option per field of `Training`."""
    *parameters, _ = (item.replace(kind=item.KEYWORD_ONLY) for item in inspect.signature(command).parameters.values())
    types = get_type_hints(Training)
    training_options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=Annotated[
                types[option.name],
                typer.Option(*option.metadata.get("flags", ()), help=option.metadata["help"]),
            ],
        )
        for option in fields(Training)
    ]
    parameters[_NUM_FILE_OPTIONS:_NUM_FILE_OPTIONS] = training_options
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _read_config(context: typer.Context, file: Path | None) -> Path | None:
    """Makes the values in the file the defaults of the options; typer calls this before it reads the other options."""
    if file is not None:
        types = {name: get_args(annotation)[0] for name, annotation in train.__annotations__.items()}
        names = {option.opts[0].removeprefix("--"): str(option.name) for option in context.command.params}
        del names["config"]
        context.default_map = read_config(file, {key: (name, types[name]) for key, name in names.items()})
    return file


@_with_training_options
def train(
    train: Annotated[
        list[str], typer.Option(metavar="<file>", help=f"Training file; required. Repeat for several. {FILE}")
    ] = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="Folder for the tagger; required.")] = None,
    tag: Annotated[
        str,
        typer.Option(
            help="Tag column: upos, xpos, upos+feats, … in CoNLL-U; a 1-based number or last in column files; a key in "
            "JSON lines, where `last` means the key `tags`."
        ),
    ] = "last",
    dev: Annotated[
        list[str],
        typer.Option(
            metavar="<file>",
            help="Validation file for early stopping; repeat for several. Default: every tenth training sentence.",
        ),
    ] = [],  # noqa: B006
    config: Annotated[
        Path | None,
        typer.Option(
            is_eager=True,
            callback=_read_config,
            help="TOML file with options, for example epochs = 20. Options on the command line take precedence.",
        ),
    ] = None,
    device: options.Device = "cpu",
    format: Annotated[str, typer.Option(help=FORMAT)] = "auto",
    check_ids: options.CheckIds = True,
    comments: options.Comments = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore what --out contains and start again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    **training: Any,
) -> None:
    """Train a tagger and save it.

    If training was interrupted, run the same command again to resume.

    \b
    Examples
        linearcore tag train --train en-train.conllu --dev en-dev.conllu --tag xpos --out english
        linearcore tag train --train la.conllu.xz --tag upos+feats --loss crf --device cuda --out latin
        linearcore tag train --train news.conllu --train blogs.conllu --tag upos --config settings.toml --out mixed
        linearcore tag train --train ner.txt --tag last --encoder transformer:my-bert --out entities
        linearcore tag train --train ner.txt --tag last --cost span-f1 --out entities
    """
    with usage_errors():
        from linearcore.tagging.readers import read_sentences

        out = _require_options(train, out)
        settings = Training(**training)
        device = check_device(device)
        read = partial(read_sentences, tag=tag, format=format, check_ids=check_ids, comments=comments)
        sentences, dev_sentences, layout = _training_data(train, dev, tag, read)
    kwargs = {"columns": layout.columns, "layout": layout, "out": out, "device": device, "fresh": fresh}
    result = _train(sentences, dev_sentences, settings, **kwargs)
    _print_result(result, out, len(sentences), len(dev_sentences), as_json)


def _require_options(train: list[str], out: Path | None) -> Path:
    """Returns the folder for the tagger; raises if a required option is missing, and names all that are."""
    missing = [name for name, value in (("--train", train), ("--out", out)) if not value]
    if missing or out is None:
        raise UsageError(f"missing {' and '.join(missing)}; see `linearcore tag train --help`")
    return out


def _training_data(
    train: list[str], dev: list[str], tag: str, read: "Callable[[str], Iterator[Sentence]]"
) -> "tuple[list[TaggedSentence], list[TaggedSentence], Layout]":
    """Reads training and validation sentences, each from several files in order; also returns the layout of the first."""
    from linearcore.tagging import split_dev
    from linearcore.tagging.readers import Layout, TagColumns

    layouts: list[Layout] = []

    def pairs(files: list[str]) -> "Iterator[TaggedSentence]":
        for file in files:
            for number, sentence in enumerate(read(file)):
                if number == 0:
                    layouts.append(Layout.of(sentence, tag))
                yield sentence.words, sentence.tags or []

    sentences = list(pairs(train))
    sentences, dev_sentences = (sentences, list(pairs(dev))) if dev else split_dev(sentences)
    formats = sorted({layout.format for layout in layouts})
    if len(formats) > 1:
        must, advice = "be files of one format", "convert them to one format"
        raise ValueError(complaint("--train and --dev", must, " and ".join(formats), advice))
    widths = sorted({layout.width for layout in layouts if layout.width is not None})
    if len(widths) > 1 and TagColumns.parse(tag).has_last:
        advice = "pass a number with --tag, for example --tag 2, or files with equally many columns"
        raise ValueError(complaint("--tag", "be a number for files with different numbers of columns", tag, advice))
    return sentences, dev_sentences, layouts[0]


def _train(
    sentences: "list[TaggedSentence]", dev: "list[TaggedSentence]", settings: Training, **options: Any
) -> "TrainingResult":
    from linearcore.tagging import StoppedError, train

    try:
        with usage_errors():
            return train(sentences, dev, settings, **options)
    except StoppedError as error:
        print(f"linearcore: {error}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Exception as error:
        if not settings.compiled or not is_compiler_error(error):
            raise
        reason = str(error).partition("\n")[0]
        raise UsageError(f"torch.compile failed ({reason}); train without --compile") from error


def _print_result(result: "TrainingResult", out: Path, sentences: int, dev: int, as_json: bool) -> None:
    tagger = result.tagger
    values = {
        "dev_accuracy": tagger.metadata["dev_accuracy"],
        "best_epoch": result.best_epoch,
        "tags": len(tagger.vocabulary.tags),
        "sentences": {"train": sentences, "dev": dev},
        "epochs": result.history,
        "settings": tagger.metadata["training"],
        "resumed": None if result.resumed is None else dict(zip(("epoch", "batch"), result.resumed, strict=True)),
        "was_finished": result.was_finished,
        "out": str(out),
    }
    if as_json:
        typer.echo(json.dumps(values, ensure_ascii=False))
        return
    if result.was_finished:
        typer.echo(f"Training is complete: {out} already contains this tagger.")
    typer.echo(
        f"Validation accuracy {values['dev_accuracy']:.2f} % (epoch {result.best_epoch} of {result.last_epoch}); "
        f"{values['tags']} tags, {sentences:,} training sentences, {dev:,} validation sentences."
    )
    if result.was_improving:
        advice = f"try --epochs {2 * result.last_epoch}"
        typer.echo(f"The last epoch was the best, so longer training may give a more accurate tagger: {advice}.")
    typer.echo(f"Saved to {out}. Next: linearcore tag eval {out} FILE, or linearcore tag predict {out} FILE.")
