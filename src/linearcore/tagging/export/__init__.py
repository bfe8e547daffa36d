"""Export of taggers to ONNX and torch.export.

`Tagger.export` writes the files, `ExportedTagger` runs them, and `compare` compares tags and times with the tagger.
"""

from linearcore.tagging.export._comparison import Comparison, compare
from linearcore.tagging.export._export import SUFFIXES, ExportedFiles, export_tagger
from linearcore.tagging.export._exported import ExportedTagger
from linearcore.tagging.export._inputs import make_inputs

__all__ = ["SUFFIXES", "Comparison", "ExportedFiles", "ExportedTagger", "compare", "export_tagger", "make_inputs"]
