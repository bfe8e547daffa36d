"""The command `linearcore tag predict`."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from linearcore._checks import complaint, one_of
from linearcore.cli import _tag_files as options
from linearcore.cli._tag_files import DECODE_FOR, FILE, FORMAT, file_name, reader_errors
from linearcore.cli._usage import check_device, usage_errors
from linearcore.tagging.readers import OUTPUT_FORMATS, Details, TagColumns, make_writer, read_sentences

if TYPE_CHECKING:
    from linearcore.tagging import Prediction, Tagger
    from linearcore.tagging.readers import Sentence, SentenceWriter

_CONFIDENCE = (
    "Also write the confidence of each tag: in JSON lines as confidences, in columns as a further column, in CoNLL-U as "
    "Confidence=… in MISC."
)
_MARGIN = "Also write the score of the best tags minus that of the second-best: margin in JSON lines, a comment in CoNLL-U."
_TAG = (
    "Column for the tags, or key in JSON lines. Default: as in training; `last` if the file format differs from that of the "
    "training files."
)


def predict(
    model: options.Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help=f"File to tag. {FILE}")] = "-",
    tag: Annotated[
        str | None,
        typer.Option(help=_TAG),
    ] = None,
    device: options.Device = "cpu",
    format: Annotated[str, typer.Option(help=f"{FORMAT} auto: the format of the training files only.")] = "auto",
    output_format: Annotated[
        str,
        typer.Option(help=f"Output format: {', '.join(OUTPUT_FORMATS)}. same writes columns for text and raw."),
    ] = "same",
    language: Annotated[
        str | None, typer.Option(help="Language code for --format raw, for example en. Default: xx, any language.")
    ] = None,
    check_ids: options.CheckIds = True,
    comments: options.Comments = None,
    confidence: Annotated[bool, typer.Option("--confidence", help=_CONFIDENCE)] = False,
    margin: Annotated[bool, typer.Option("--margin", help=_MARGIN)] = False,
    kbest: Annotated[
        int, typer.Option(help="In JSON lines: number of best tag sequences to write, with their scores, as kbest.")
    ] = 1,
    beam: Annotated[int | None, typer.Option(help="Beam width; 0 is exact search. Default: as in training.")] = None,
    decode_for: Annotated[str | None, typer.Option(help=f"{DECODE_FOR} Not with --kbest, --margin, --beam.")] = None,
    temperature: options.Temperature = None,
    candidates: options.Candidates = None,
    batch_tokens: Annotated[int, typer.Option(help="Batch size in words.")] = 4096,
    unbuffered: Annotated[
        bool, typer.Option("--unbuffered", help="Tag and print each sentence as soon as it is read; slower for files.")
    ] = False,
) -> None:
    """Tag a file and print it; other columns are unchanged. The file may be larger than memory.

    \b
    Examples
        linearcore tag predict english new.conllu > tagged.conllu
        xzcat big.conllu.xz | linearcore tag predict english > tagged.conllu
        linearcore tag predict english sentences.txt --format text > tagged.tsv
        linearcore tag predict english book.txt --format raw --language en --output-format jsonl > tagged.jsonl
        linearcore tag predict english new.jsonl --confidence --kbest 5 > tagged.jsonl
        linearcore tag predict entities news.conllu --decode-for span-f1 > tagged.conllu
    """
    with usage_errors():
        from linearcore.tagging import Tagger

        one_of("output_format", output_format, OUTPUT_FORMATS)
        tagger = Tagger.load(model, check_device(device))
        sentences = read_sentences(
            file, None, format, check_ids=check_ids, comments=comments, language=language, layout=tagger.layout
        )
    with reader_errors():
        first = next(sentences)
        wanted = {"confidences": confidence, "margin": margin, "kbest": kbest > 1}
        details = [name for name, is_wanted in wanted.items() if is_wanted]
        write = _writer(tagger, first, output_format, tag, file, details, is_detected=format == "auto")
        predicted = tagger.predict_sentences(
            chain([first], sentences),
            confidences=confidence,
            margin=margin,
            kbest=kbest,
            beam=beam,
            decode_for=decode_for,
            temperature=temperature,
            candidates=candidates,
            batch_tokens=batch_tokens,
            buffered=not unbuffered,
        )
        _print(predicted, write, unbuffered, file_name(file))


def _writer(
    tagger: "Tagger",
    sentence: "Sentence",
    output_format: str,
    tag: str | None,
    name: str,
    details: list[str],
    is_detected: bool,
) -> "SentenceWriter":
    """Returns the function that writes the sentences of a file that begins with `sentence`."""
    write = make_writer(sentence, output_format, tag, layout=tagger.layout, details=details)
    if is_detected and tag is None:
        tagger.layout.require_tags(sentence, tagger.vocabulary.tag_numbers, name)
    columns = TagColumns.parse(tagger.columns)
    positions = None if tag is None else columns.positions(tag)
    if positions is None or positions == tuple(range(len(columns.indices))):
        return write
    if "kbest" in details:
        must = f"be {columns} or omitted with kbest, whose sequences have all columns"
        raise ValueError(complaint("tag", must, tag, "omit --tag or --kbest"))

    def write_some_columns(sentence: "Sentence", tags: Sequence[str], details: Details | None = None) -> str:
        parts = [columns.split(tag) for tag in tags]
        return write(sentence, [columns.join([values[place] for place in positions]) for values in parts], details)

    return write_some_columns


def _print(predicted: "Iterable[tuple[Sentence, Prediction]]", write: "SentenceWriter", unbuffered: bool, name: str) -> None:
    """Prints sentences as they are tagged, with a progress bar unless the tags are printed to a terminal."""
    from linearcore.runtime import Progress

    with nullcontext() if sys.stdout.isatty() else Progress() as progress:
        if progress is not None:
            predicted = progress.track(predicted, f"tagging {name}", unit="sentences")
        for sentence, prediction in predicted:
            details = Details(prediction.confidences, prediction.margin, prediction.kbest)
            sys.stdout.write(write(sentence, prediction.tags, details))
            if unbuffered:
                sys.stdout.flush()
        sys.stdout.flush()
