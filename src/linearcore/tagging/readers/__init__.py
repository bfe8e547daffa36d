"""Readers that yield the sentences of a file one at a time, so a file may be larger than memory, and their writers.

    for sentence in read_sentences("en_ewt-train.conllu.xz", tag="upos+feats"):
        sentence.words, sentence.tags

Formats: CoNLL-U, column files (such as CoNLL-2000 and CoNLL-2003), JSON lines, text with a sentence per line, running text,
and NLTK's zip files of the Penn Treebank sample and the Brown corpus. A sentence keeps its lines, so `make_writer` can write
the file with other tags and leave everything else unchanged. Malformed input raises a `ReaderError` with file and line;
nothing is skipped. A new format is a subclass of `Format` in a file of its own and one line in `_index.py`.

| files of this package | for |
|---|---|
| `_read`, `_open`, `_lines` | reading: open and unpack a file, decode its lines, choose the format |
| `_detect`, `_layout` | the format of a file by its content; the format that a tagger was trained on |
| `_format`, `_index` | what a format is; the list of formats |
| `_conllu`, `_columns`, `_jsonl`, `_text`, `_raw`, `_penn`, `_brown` | the formats |
| `_blocks`, `_table`, `_cells`, `_tag_columns` | files with columns: sentences, the whole table, a line, the tags |
| `_output`, `_details` | writing: choose the format, confidences and other additions to the tags |
"""

from linearcore.tagging.readers._details import Details
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._format import Format, SentenceWriter
from linearcore.tagging.readers._index import FORMATS, OUTPUT_FORMATS
from linearcore.tagging.readers._layout import Layout
from linearcore.tagging.readers._output import make_writer, output_format
from linearcore.tagging.readers._read import read_sentences
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import TagColumns

__all__ = [
    "FORMATS",
    "OUTPUT_FORMATS",
    "Details",
    "Format",
    "Layout",
    "ReaderError",
    "Sentence",
    "SentenceWriter",
    "TagColumns",
    "make_writer",
    "output_format",
    "read_sentences",
]
