"""The commands `linearcore tag train`, `tag predict` and `tag eval`."""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from linearcore._torch import is_compiler_error
from linearcore.cli._usage import INTERRUPTED, UsageError, check_device, usage_errors
from linearcore.tagging import HeadSettings

if TYPE_CHECKING:
    from linearcore.tagging import TaggedSentence, Tagger, Training, TrainingResult
    from linearcore.tagging.readers import Sentence, TagColumns

tag = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

#: Number of file options of `tag train`; `--help` lists the options of the head after them.
_NUM_FILE_OPTIONS = 4
_FILE = "May be compressed (.xz, .gz, .zip); - is standard input."
_FORMAT = "File format: auto, conllu, columns, penn or brown."
_DEVICE = "Torch device, for example cpu or cuda:1."
_CHECK_IDS = "Require consecutive CoNLL-U ids."
_MODEL = "Folder written by `tag train`."
_CHAIN_LR_SCALE = (
    "Learning-rate multiplier for transition, start and end scores. Default: 1. Try 0.1 with --rank, more than 1 with a "
    "transformer."
)


@tag.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Train and use sequence taggers.

    \b
    Start with
        linearcore tag train --train train.conllu --dev dev.conllu --tag upos --out model
        linearcore tag eval model test.conllu
        linearcore tag predict model new.conllu > tagged.conllu
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _with_head_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces `**head` in the signature of `command`, which typer reads, by one option per field of `HeadSettings`."""
    *parameters, _ = (item.replace(kind=item.KEYWORD_ONLY) for item in inspect.signature(command).parameters.values())
    types = get_type_hints(HeadSettings)
    head_options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=Annotated[types[option.name], typer.Option(help=option.metadata["help"])],
        )
        for option in fields(HeadSettings)
    ]
    parameters[_NUM_FILE_OPTIONS:_NUM_FILE_OPTIONS] = head_options
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@tag.command()
@_with_head_options
def train(
    train: Annotated[str, typer.Option(help=f"Training file. {_FILE}")],
    out: Annotated[Path, typer.Option(help="Folder for the tagger.")],
    tag: Annotated[
        str, typer.Option(help="Tag column: upos, xpos, upos+feats, … in CoNLL-U; a 1-based number or last in column files.")
    ] = "last",
    dev: Annotated[
        str | None, typer.Option(help="Validation file for early stopping. Default: every tenth training sentence.")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="bilstm, or transformer:PATH with a local folder or a name on the Hugging Face hub.")
    ] = "bilstm",
    characters: Annotated[bool, typer.Option(help="Use prefix, suffix and shape features (BiLSTM).")] = True,
    hidden: Annotated[int, typer.Option(help="Hidden units per direction (BiLSTM).")] = 256,
    layers: Annotated[int, typer.Option(help="Number of layers (BiLSTM).")] = 1,
    epochs: Annotated[
        int | None, typer.Option(help="Maximum number of epochs. Default: 12, or 4 for a transformer.")
    ] = None,
    patience: Annotated[
        int, typer.Option(help="Stop after N epochs without a better validation accuracy.", metavar="N")
    ] = 4,
    lr: Annotated[
        float | None, typer.Option(help="Peak learning rate. Default: 0.003, or 0.0001 for a transformer.")
    ] = None,
    chain_lr_scale: Annotated[float | None, typer.Option(help=_CHAIN_LR_SCALE)] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(help="Batch size in words. Default: 800, or 1600 for a transformer.")
    ] = None,
    optimizer: Annotated[str, typer.Option(help="adam (AdamW), or sgd with momentum 0.9.")] = "adam",
    inflate: Annotated[int | None, typer.Option(help="Pad the tag set to N tags, for benchmarks.", metavar="N")] = None,
    precision: Annotated[str, typer.Option(help="fp32, bf16, or auto (bf16 on a GPU that supports it).")] = "auto",
    device: Annotated[str, typer.Option(help=_DEVICE)] = "cpu",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Use torch.compile for the loss; useful with many tags on a GPU.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    format: Annotated[str, typer.Option(help=_FORMAT)] = "auto",
    check_ids: Annotated[bool, typer.Option(help=_CHECK_IDS)] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore what --out contains and start again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    **head: Any,
) -> None:
    """Train a tagger and save it.

    If training was interrupted, run the same command again to resume.

    \b
    Examples
        linearcore tag train --train en-train.conllu --dev en-dev.conllu --tag xpos --out english
        linearcore tag train --train la.conllu.xz --tag upos+feats --loss crf --device cuda --out latin
        linearcore tag train --train la.conllu.xz --tag upos+feats --rank 64 --unary 0.5 --sharpness 4 --out latin
        linearcore tag train --train ner.txt --tag last --encoder transformer:my-bert --out entities
    """
    with usage_errors():
        from linearcore.tagging import Training
        from linearcore.tagging.readers import read_sentences

        settings = Training(
            encoder=encoder, characters=characters, epochs=epochs, patience=patience, lr=lr, batch_tokens=batch_tokens,
            optimizer=optimizer, inflate=inflate, precision=precision, seed=seed, hidden=hidden, layers=layers,
            chain_lr_scale=chain_lr_scale, compiled=compiled, **head,
        )  # fmt: skip
        device = check_device(device)
        sentences, dev_sentences = _training_data(
            train, dev, partial(read_sentences, tag=tag, format=format, check_ids=check_ids)
        )
    result = _train(sentences, dev_sentences, settings, columns=tag, out=out, device=device, fresh=fresh)
    _print_result(result, out, len(sentences), len(dev_sentences), as_json)


@tag.command()
def predict(
    model: Annotated[Path, typer.Argument(help=_MODEL)],
    file: Annotated[str, typer.Argument(help=f"File to tag. {_FILE}")] = "-",
    tag: Annotated[
        str | None,
        typer.Option(help="Output column. Default: as in training, or the last column in files without column names."),
    ] = None,
    device: Annotated[str, typer.Option(help=_DEVICE)] = "cpu",
    format: Annotated[str, typer.Option(help=_FORMAT)] = "auto",
    check_ids: Annotated[bool, typer.Option(help=_CHECK_IDS)] = True,
    batch_tokens: Annotated[int, typer.Option(help="Batch size in words.")] = 4096,
) -> None:
    """Tag a file and print it; other columns are unchanged. The file may be larger than memory.

    \b
    Examples
        linearcore tag predict english new.conllu > tagged.conllu
        xzcat big.conllu.xz | linearcore tag predict english > tagged.conllu
    """
    with usage_errors():
        from linearcore.tagging import Tagger
        from linearcore.tagging.readers import TagColumns, read_sentences

        columns = None if tag is None else TagColumns.parse(tag)
        tagger = Tagger.load(model, check_device(device))
        sentences = read_sentences(file, None, format, check_ids=check_ids)
    _predict(tagger, sentences, columns, batch_tokens, _name(file))


@tag.command(name="eval")
def evaluate(
    model: Annotated[Path, typer.Argument(help=_MODEL)],
    file: Annotated[str, typer.Argument(help=f"Tagged sentences. {_FILE}")],
    tag: Annotated[str | None, typer.Option(help="Tag column. Default: as in training.")] = None,
    device: Annotated[str, typer.Option(help=_DEVICE)] = "cpu",
    format: Annotated[str, typer.Option(help=_FORMAT)] = "auto",
    check_ids: Annotated[bool, typer.Option(help=_CHECK_IDS)] = True,
    all_tags: Annotated[bool, typer.Option("--all-tags", help="Show all tags instead of the 20 most frequent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare predicted tags with the tags in a file.

    Prints accuracy (also for known and unknown words separately), precision and recall of each tag, the most frequent
    confusions, and precision and recall of entities for BIO tags.

    \b
    Examples
        linearcore tag eval english en-test.conllu
        linearcore tag eval english en-test.conllu --json
    """
    from linearcore.runtime import Progress

    with usage_errors():
        from linearcore.tagging import Tagger
        from linearcore.tagging.readers import read_sentences

        tagger = Tagger.load(model, check_device(device))
        sentences = read_sentences(file, tag or tagger.columns, format, check_ids=check_ids)
    evaluation = tagger.evaluation()
    with _reader_errors(), Progress() as progress:
        for sentence, tags in progress.track(tagger.tag_sentences(sentences), f"tagging {_name(file)}", unit="sentences"):
            evaluation.add(sentence.words, sentence.tags or [], tags)
    if as_json:
        typer.echo(json.dumps(evaluation.to_json(), ensure_ascii=False))
        return

    from rich.console import Console
    from rich.text import Text

    from linearcore.tagging import evaluation_report

    console = Console(highlight=False)
    for part in evaluation_report(evaluation, all_tags):
        # The summary is not wrapped, so other programs can parse it as one line.
        console.print(part, soft_wrap=isinstance(part, Text))


def _training_data(
    train: str, dev: str | None, read: "Callable[[str], Iterator[Sentence]]"
) -> "tuple[list[TaggedSentence], list[TaggedSentence]]":
    """Reads training and validation sentences."""
    from linearcore.tagging import split_dev

    names = [train] if dev is None else [train, dev]
    parts: list[list[TaggedSentence]] = [
        [(sentence.words, sentence.tags or []) for sentence in read(name)] for name in names
    ]
    return split_dev(parts[0]) if dev is None else (parts[0], parts[1])


def _train(
    sentences: "list[TaggedSentence]", dev: "list[TaggedSentence]", settings: "Training", **options: Any
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
    best = max(result.history, key=lambda row: float(row["dev_accuracy"]))
    typer.echo(
        f"Validation accuracy {values['dev_accuracy']:.2f} % (epoch {best['epoch']} of {len(result.history)}); "
        f"{values['tags']} tags, {sentences:,} training sentences, {dev:,} validation sentences."
    )
    typer.echo(f"Saved to {out}. Next: linearcore tag eval {out} FILE, or linearcore tag predict {out} FILE.")


def _predict(
    tagger: "Tagger", sentences: "Iterator[Sentence]", columns: "TagColumns | None", batch_tokens: int, name: str
) -> None:
    """Prints sentences as they are tagged, with a progress bar unless the tags are printed to a terminal."""
    from linearcore.runtime import Progress
    from linearcore.tagging.readers import TagColumns, columns_for, write_sentence

    training_columns = TagColumns.parse(tagger.columns)
    with _reader_errors(), nullcontext() if sys.stdout.isatty() else Progress() as progress:
        tagged = tagger.tag_sentences(sentences, batch_tokens)
        for sentence, tags in tagged if progress is None else progress.track(tagged, f"tagging {name}", unit="sentences"):
            if columns is None:
                columns = columns_for(sentence, training_columns)
            write_sentence(sys.stdout, sentence, tags, columns)
        sys.stdout.flush()


def _name(file: str) -> str:
    """Returns the name of a file in messages."""
    return "standard input" if file == "-" else Path(file).name


@contextmanager
def _reader_errors() -> Iterator[None]:
    """Reports errors of the input file, which is read while it is tagged, and exits quietly if the output is closed."""
    try:
        yield
    # Includes ReaderError, and tags that do not fit into the file's columns.
    except ValueError as error:
        sys.stdout.flush()
        raise UsageError(str(error)) from error
    except BrokenPipeError:
        # The program that reads the output, such as `head`, has closed it.
        sys.stderr.close()
        sys.exit(0)
