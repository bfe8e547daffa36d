"""The command `linearcore tag eval`."""

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linearcore.cli._tag_files import CHECK_IDS, COMMENTS, DEVICE, FILE, FORMAT, MODEL, file_name, reader_errors
from linearcore.cli._usage import check_device, usage_errors

if TYPE_CHECKING:
    from linearcore.tagging import Evaluation

#: Width of tables in a file, where no row is wrapped.
_FILE_WIDTH = 100_000


def evaluate(
    model: Annotated[Path, typer.Argument(help=MODEL)],
    file: Annotated[str, typer.Argument(help=f"Tagged sentences. {FILE}")],
    tag: Annotated[
        str | None,
        typer.Option(
            help="Columns to compare, or key in JSON lines. Default: as in training. Of joint tags, one column is enough."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help=DEVICE)] = "cpu",
    format: Annotated[str, typer.Option(help=FORMAT)] = "auto",
    check_ids: Annotated[bool, typer.Option(help=CHECK_IDS)] = True,
    comments: Annotated[bool | None, typer.Option(help=COMMENTS)] = None,
    all_tags: Annotated[bool, typer.Option("--all-tags", help="Show all tags instead of the 20 most frequent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare predicted tags with the tags in a file.

    Prints accuracy (also for known and unknown words separately, and for every column of joint tags such as upos+feats),
    precision and recall of each feature and each tag, the most frequent confusions, and precision and recall of entities
    for BIO tags. "universal feats" is UFeats of CoNLL-18's evaluation.

    \b
    Examples
        linearcore tag eval english en-test.conllu
        linearcore tag eval latin la-test.conllu --tag upos
        linearcore tag eval english en-test.conllu --json
    """
    from linearcore.runtime import Progress

    with usage_errors():
        from linearcore.tagging import Tagger
        from linearcore.tagging.readers import Layout, read_sentences

        tagger = Tagger.load(model, check_device(device))
        layout = tagger.layout
        gold_tag = tag or layout.tag_for(format)
        sentences = read_sentences(file, gold_tag, format, check_ids=check_ids, comments=comments, layout=layout)
    with reader_errors(), Progress() as progress:
        first = next(sentences)
        if tag is None:
            layout.require_width(first)
        evaluation = tagger.evaluation(Layout.of(first, gold_tag).columns)
        tagged = tagger.tag_sentences(chain([first], sentences))
        for sentence, tags in progress.track(tagged, f"tagging {file_name(file)}", unit="sentences"):
            evaluation.add(sentence.words, sentence.tags or [], tags)
    if as_json:
        typer.echo(json.dumps(evaluation.to_json(), ensure_ascii=False))
    else:
        _print(evaluation, all_tags)


def _print(evaluation: "Evaluation", all_tags: bool) -> None:
    """Prints the tables; names are wrapped on a terminal, and in a file every row is one line."""
    from rich.console import Console
    from rich.text import Text

    from linearcore.tagging import evaluation_report

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    for part in evaluation_report(evaluation, all_tags):
        # The summary is not wrapped, so other programs can parse it as one line.
        console.print(part, soft_wrap=isinstance(part, Text))
