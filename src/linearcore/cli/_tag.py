"""`linearcore tag train`, `tag predict` and `tag eval`."""

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
    from linearcore.tagging import Tagged, Tagger, Trained, Training
    from linearcore.tagging.readers import Sentence, TagColumns

tag = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

#: How many options of `tag train` are about files; the help shows those of the head after them.
_FILES = 4
_FORMATS = "auto, conllu, columns, penn or brown."
_FILE = "A file, plain or .xz, .gz, .zip; - is standard input."
_CHAIN_RATE = (
    "The chain's own scores learn at so many times the rate; by default 1. With --rank, 0.1 keeps them from outrunning the "
    "words; on a transformer they may want more than 1."
)


@tag.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Train taggers for words in sentences, and use them.

    \b
    Start with
        linearcore tag train --train train.conllu --dev dev.conllu --tag upos --out model
        linearcore tag eval model test.conllu
        linearcore tag predict model new.conllu > tagged.conllu
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _with_head_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with an option for each field of `HeadSettings` in the place of its `**head`, as typer reads signatures."""
    *own, _ = (item.replace(kind=item.KEYWORD_ONLY) for item in inspect.signature(command).parameters.values())
    types = get_type_hints(HeadSettings)
    options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=Annotated[types[option.name], typer.Option(help=option.metadata["help"])],
        )
        for option in fields(HeadSettings)
    ]
    options = [*own[:_FILES], *options, *own[_FILES:]]
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command


@tag.command()
@_with_head_options
def train(
    train: Annotated[str, typer.Option(help=f"Sentences to learn from. {_FILE}")],
    out: Annotated[Path, typer.Option(help="Folder for the tagger.")],
    tag: Annotated[
        str, typer.Option(help="What the tag is: upos, xpos, upos+feats, … in CoNLL-U; a number, or the last, in columns.")
    ] = "last",
    dev: Annotated[
        str | None, typer.Option(help="Sentences to stop by; without, every tenth of --train is held out.")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="bilstm, or transformer:PATH with a local folder or a name on the Hugging Face hub.")
    ] = "bilstm",
    characters: Annotated[bool, typer.Option(help="Whether a BiLSTM looks at the spelling of words.")] = True,
    hidden: Annotated[int, typer.Option(help="Units of a BiLSTM in each direction.")] = 256,
    layers: Annotated[int, typer.Option(help="Layers of a BiLSTM.")] = 1,
    epochs: Annotated[
        int | None, typer.Option(help="At most so many passes; by default 12, or 4 for a transformer.")
    ] = None,
    patience: Annotated[int, typer.Option(help="Stop after so many epochs without a better dev accuracy.")] = 4,
    rate: Annotated[float | None, typer.Option(help="Learning rate; by default 0.003, or 0.0001 for a transformer.")] = None,
    chain_rate: Annotated[float | None, typer.Option(help=_CHAIN_RATE)] = None,
    tokens: Annotated[int | None, typer.Option(help="Words of a batch; by default 800, or 1600 for a transformer.")] = None,
    optimizer: Annotated[str, typer.Option(help="adam, or sgd with momentum.")] = "adam",
    inflate: Annotated[int | None, typer.Option(help="Add tags that never occur until there are so many.")] = None,
    precision: Annotated[str, typer.Option(help="fp32, bf16, or auto: bf16 on a GPU.")] = "auto",
    device: Annotated[str, typer.Option(help="Where to train, in torch's words: cpu, cuda, cuda:1.")] = "cpu",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the loss first: meant for many tags on a GPU, and a later start.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 0,
    format: Annotated[str, typer.Option(help=f"Of the files: {_FORMATS}")] = "auto",
    check_ids: Annotated[bool, typer.Option(help="Whether ids in CoNLL-U must count up 1, 2, 3, …")] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what --out holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
    **head: Any,
) -> None:
    """Train a tagger and save it.

    A run that was interrupted, or killed, goes on where it was last saved when the same command is given again.

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
            encoder=encoder, characters=characters, epochs=epochs, patience=patience, rate=rate, tokens=tokens,
            optimizer=optimizer, inflate=inflate, precision=precision, seed=seed, hidden=hidden, layers=layers,
            chain_rate=chain_rate, compiled=compiled, **head,
        )  # fmt: skip
        where = check_device(device)
        sentences, held_out = _training_data(
            train, dev, partial(read_sentences, tag=tag, format=format, check_ids=check_ids)
        )
    trained = _train(sentences, held_out, settings, columns=tag, out=out, device=where, fresh=fresh)
    _print_trained(trained, out, len(sentences), len(held_out), as_json)


@tag.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Folder of a tagger.")],
    file: Annotated[str, typer.Argument(help=f"Sentences to tag. {_FILE}")] = "-",
    tag: Annotated[
        str | None, typer.Option(help="Column for the tags; by default that of training, or the last where it has no name.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute, in torch's words.")] = "cpu",
    format: Annotated[str, typer.Option(help=f"Of the file: {_FORMATS}")] = "auto",
    check_ids: Annotated[bool, typer.Option(help="Whether ids in CoNLL-U must count up 1, 2, 3, …")] = True,
    tokens: Annotated[int, typer.Option(help="Words of a batch.")] = 4096,
) -> None:
    """Tag a file of any size and print it, every other column as it was.

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
    _predict(tagger, sentences, columns, tokens, _name(file))


@tag.command(name="eval")
def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a tagger.")],
    file: Annotated[str, typer.Argument(help=f"Tagged sentences. {_FILE}")],
    tag: Annotated[str | None, typer.Option(help="What the tag is; by default what it was in training.")] = None,
    device: Annotated[str, typer.Option(help="Where to compute, in torch's words.")] = "cpu",
    format: Annotated[str, typer.Option(help=f"Of the file: {_FORMATS}")] = "auto",
    check_ids: Annotated[bool, typer.Option(help="Whether ids in CoNLL-U must count up 1, 2, 3, …")] = True,
    every: Annotated[bool, typer.Option("--all-tags", help="A row for every tag, not for the most frequent 20.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compare a tagger's tags with those in a file.

    Prints accuracy, on known and unknown words apart, precision and recall of tags, the pairs that are confused most, and
    for BIO tags precision and recall of entities.

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
    found = tagger.evaluation()
    with _reading(), Progress() as progress:
        for sentence, tags in progress.track(tagger.tagged(sentences), f"tagging {_name(file)}", unit="sentences"):
            found.add(sentence.words, sentence.tags or [], tags)
    if as_json:
        typer.echo(json.dumps(found.to_json(), ensure_ascii=False))
        return

    from rich.console import Console
    from rich.text import Text

    from linearcore.tagging import evaluation_report

    console = Console(highlight=False)
    for part in evaluation_report(found, every):
        # Sentences in one line, however long: they are read by other programs, too.
        console.print(part, soft_wrap=isinstance(part, Text))


def _training_data(
    train: str, dev: str | None, read: "Callable[[str], Iterator[Sentence]]"
) -> "tuple[list[Tagged], list[Tagged]]":
    """Sentences to learn from and to stop by."""
    from linearcore.tagging import split_dev

    names = [train] if dev is None else [train, dev]
    found: list[list[Tagged]] = [[(sentence.words, sentence.tags or []) for sentence in read(name)] for name in names]
    return split_dev(found[0]) if dev is None else (found[0], found[1])


def _train(sentences: "list[Tagged]", dev: "list[Tagged]", settings: "Training", **options: Any) -> "Trained":
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
        raise UsageError(f"torch.compile gave up ({reason}); train without --compile") from error


def _print_trained(trained: "Trained", out: Path, sentences: int, dev: int, as_json: bool) -> None:
    tagger = trained.tagger
    told = {
        "dev_accuracy": tagger.told["dev_accuracy"],
        "tags": len(tagger.vocabulary.tags),
        "sentences": {"train": sentences, "dev": dev},
        "epochs": trained.history,
        "settings": tagger.told["training"],
        "resumed": None if trained.resumed is None else dict(zip(("epoch", "batch"), trained.resumed, strict=True)),
        "was_finished": trained.was_finished,
        "out": str(out),
    }
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    if trained.was_finished:
        typer.echo(f"Nothing to do: {out} holds this tagger already.")
    best = max(trained.history, key=lambda row: float(row["dev_accuracy"]))
    typer.echo(
        f"{told['dev_accuracy']:.2f} % of the dev words are right (epoch {best['epoch']} of {len(trained.history)}); "
        f"{told['tags']} tags, {sentences:,} sentences to learn from, {dev:,} to stop by."
    )
    typer.echo(f"Saved to {out}; now: linearcore tag eval {out} FILE, or linearcore tag predict {out} FILE.")


def _predict(
    tagger: "Tagger", sentences: "Iterator[Sentence]", columns: "TagColumns | None", tokens: int, name: str
) -> None:
    """Prints sentences as they are tagged. A bar is shown unless the tags themselves go to the terminal."""
    from linearcore.runtime import Progress
    from linearcore.tagging.readers import TagColumns, columns_for, write_sentence

    trained = TagColumns.parse(tagger.columns)
    with _reading(), nullcontext() if sys.stdout.isatty() else Progress() as progress:
        tagged = tagger.tagged(sentences, tokens)
        for sentence, tags in tagged if progress is None else progress.track(tagged, f"tagging {name}", unit="sentences"):
            if columns is None:
                columns = columns_for(sentence, trained)
            write_sentence(sys.stdout, sentence, tags, columns)
        sys.stdout.flush()


def _name(file: str) -> str:
    """A file as messages call it."""
    return "standard input" if file == "-" else Path(file).name


@contextmanager
def _reading() -> Iterator[None]:
    """A file is read while it is tagged, so that its faults show up late."""
    try:
        yield
    # A ReaderError among them, and tags that do not fit into the file's columns.
    except ValueError as error:
        sys.stdout.flush()
        raise UsageError(str(error)) from error
    except BrokenPipeError:
        # The reader of our output has had enough, as `head` has.
        sys.stderr.close()
        sys.exit(0)
