"""The list of file formats. A new format is one file with a subclass of `Format`, and one line here."""

from linearcore.tagging.readers._brown import Brown
from linearcore.tagging.readers._columns import Columns
from linearcore.tagging.readers._conllu import CoNLLU
from linearcore.tagging.readers._format import Format
from linearcore.tagging.readers._jsonl import JSONLines
from linearcore.tagging.readers._penn import PennTreebank
from linearcore.tagging.readers._raw import Raw
from linearcore.tagging.readers._text import Text

BY_NAME: dict[str, Format] = {
    format.name: format for format in (CoNLLU(), Columns(), JSONLines(), Text(), Raw(), PennTreebank(), Brown())
}
#: Values of `--format`; "auto" detects the format from the content.
FORMATS = ("auto", *BY_NAME)
#: Values of `--output-format`; "same" is the format of the input, or columns where that cannot be written.
OUTPUT_FORMATS = ("same", *(name for name, format in BY_NAME.items() if format.output == name))
