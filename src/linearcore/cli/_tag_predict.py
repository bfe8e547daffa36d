"""The command `linearcore tag predict`."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linearcore.cli._tag_files import CHECK_IDS, DEVICE, FILE, FORMAT, MODEL, file_name, reader_errors
from linearcore.cli._usage import check_device, usage_errors

if TYPE_CHECKING:
    from linearcore.tagging import Tagger
    from linearcore.tagging.readers import Sentence, TagColumns


def predict(
    model: Annotated[Path, typer.Argument(help=MODEL)],
    file: Annotated[str, typer.Argument(help=f"File to tag. {FILE}")] = "-",
    tag: Annotated[
        str | None,
        typer.Option(help="Output column. Default: as in training, or the last column in files without column names."),
    ] = None,
    device: Annotated[str, typer.Option(help=DEVICE)] = "cpu",
    format: Annotated[str, typer.Option(help=FORMAT)] = "auto",
    check_ids: Annotated[bool, typer.Option(help=CHECK_IDS)] = True,
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
    _predict(tagger, sentences, columns, batch_tokens, file_name(file))


def _predict(
    tagger: "Tagger", sentences: "Iterator[Sentence]", columns: "TagColumns | None", batch_tokens: int, name: str
) -> None:
    """Prints sentences as they are tagged, with a progress bar unless the tags are printed to a terminal."""
    from linearcore.runtime import Progress
    from linearcore.tagging.readers import TagColumns, columns_for, write_sentence

    training_columns = TagColumns.parse(tagger.columns)
    with reader_errors(), nullcontext() if sys.stdout.isatty() else Progress() as progress:
        tagged = tagger.tag_sentences(sentences, batch_tokens)
        for sentence, tags in tagged if progress is None else progress.track(tagged, f"tagging {name}", unit="sentences"):
            if columns is None:
                columns = columns_for(sentence, training_columns)
            write_sentence(sys.stdout, sentence, tags, columns)
        sys.stdout.flush()
