"""From files to sentences, one at a time, so that a file may be larger than the memory.

    for sentence in read_sentences("en_ewt-train.conllu.xz", tag="upos+feats"):
        sentence.words, sentence.tags

Four formats are read: CoNLL-U, column files (CoNLL-2000, CoNLL-2003 and their like), and NLTK's zips of the Penn Treebank
sample and the Brown corpus. A sentence remembers its lines, so that `write_sentence` gives back the file with other tags and
everything else untouched. What cannot be read is a `ReaderError` that says where and what to do; nothing is skipped.
"""

from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._output import columns_for, write_sentence
from linearcore.tagging.readers._read import FORMATS, read_sentences
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import TagColumns

__all__ = ["FORMATS", "ReaderError", "Sentence", "TagColumns", "columns_for", "read_sentences", "write_sentence"]
