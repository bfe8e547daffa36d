"""Chooses how sentences are written with predicted tags."""

from collections.abc import Collection

from linearcore._checks import complaint, one_of
from linearcore.tagging.readers._format import Format, SentenceWriter
from linearcore.tagging.readers._index import BY_NAME, OUTPUT_FORMATS
from linearcore.tagging.readers._layout import Layout
from linearcore.tagging.readers._sentence import Sentence


def output_format(sentence: Sentence, format: str = "same") -> Format:
    """Returns the format for writing a file that begins with this sentence.

    Args:
        sentence: the first sentence of the file.
        format: one of `OUTPUT_FORMATS`; "same" is the format of the file, or columns if that cannot be written.
    """
    one_of("output_format", format, OUTPUT_FORMATS)
    return BY_NAME[BY_NAME[sentence.format].output if format == "same" else format]


def make_writer(
    sentence: Sentence,
    format: str = "same",
    tag: str | None = None,
    *,
    layout: Layout | None = None,
    details: Collection[str] = (),
) -> SentenceWriter:
    """Returns a function `write(sentence, tags)` that returns the text of a sentence with these tags.

    A sentence that was read in the output format keeps everything but its tags. Line ends become \\\\n, and several blank
    lines become one. Other sentences are written anew, with words and tags only.

    Args:
        sentence: the first sentence of the file.
        format: one of `OUTPUT_FORMATS`; "same" is the format of the file, or columns if that cannot be written.
        tag: the place of the tags in the output, in the syntax of `--tag`. None is the place of training if the output has
            the format of `layout`; else the last column or the key `tags`. CoNLL-U has no default place.
        layout: the format of the training files.
        details: fields of `Details`, the third argument of `write`, that must be written.

    Raises:
        ValueError: if the output format has no place `tag` or no place for one of the details, or `tag` is None and the
            place is not known.

    Example:
        >>> sentence = Sentence(["A", "dog"], None, ["A ? x", "dog ? y"], [0, 1], line=1)
        >>> print(make_writer(sentence, tag="2")(sentence, ["DET", "NOUN"]))
        A DET x
        dog NOUN y
        <BLANKLINE>
        <BLANKLINE>
        >>> print(make_writer(sentence, "jsonl")(sentence, ["DET", "NOUN"]).strip())
        {"tokens": ["A", "dog"], "tags": ["DET", "NOUN"]}
    """
    chosen = output_format(sentence, format)
    for detail in details:
        if detail not in chosen.details:
            others = " or ".join(name for name in OUTPUT_FORMATS[1:] if detail in BY_NAME[name].details)
            must = f"be {others} for {detail}"
            raise ValueError(complaint("output_format", must, chosen.name, f"pass --output-format {others.split()[0]}"))
    if tag is None and layout is not None:
        tag = layout.output_tag(sentence, chosen)
    return chosen.writer(tag)
