"""Readers that yield the sentences of a file one at a time, so a file may be larger than memory.

    for sentence in read_sentences("en_ewt-train.conllu.xz", tag="upos+feats"):
        sentence.words, sentence.tags

Four formats are supported: CoNLL-U, column files (such as CoNLL-2000 and CoNLL-2003), and NLTK's zip files of the Penn
Treebank sample and the Brown corpus. A sentence keeps its lines, so `write_sentence` can write the file with other tags and
leave everything else unchanged. Malformed input raises a `ReaderError` with file and line; nothing is skipped.
"""

from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._output import columns_for, write_sentence
from linearcore.tagging.readers._read import FORMATS, read_sentences
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import TagColumns

__all__ = ["FORMATS", "ReaderError", "Sentence", "TagColumns", "columns_for", "read_sentences", "write_sentence"]
