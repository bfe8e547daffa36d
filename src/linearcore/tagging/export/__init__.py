"""Export of taggers to ONNX and torch.export, and `ExportedTagger`, which runs them. `Tagger.export` is the way in."""

from linearcore.tagging.export._export import ExportedFiles, export_tagger
from linearcore.tagging.export._exported import ExportedTagger
from linearcore.tagging.export._inputs import make_inputs

__all__ = ["ExportedFiles", "ExportedTagger", "export_tagger", "make_inputs"]
