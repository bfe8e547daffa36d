"""What is written besides the tags: confidences, margin and k-best sequences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Key of a confidence in the MISC column of CoNLL-U, and of the margin in its comments.
_CONFIDENCE, _MARGIN = "Confidence", "margin"
_MISC = 9


@dataclass(frozen=True, slots=True)
class Details:
    """What is known about the predicted tags of a sentence; None is not written.

    Attributes:
        confidences: confidence of each tag.
        margin: difference in score between the best and the second-best sequence; inf if there is no second one.
        kbest: the best sequences with their scores, best first.
    """

    confidences: Sequence[float] | None = None
    margin: float | None = None
    kbest: Sequence[tuple[Sequence[str], float]] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values for what is known. A margin of inf is None, because JSON has no infinity.

        Example:
            >>> Details([0.5, 0.987654321], margin=float("inf"), kbest=[(["DET", "NOUN"], 1.25)]).to_json()
            {'confidences': [0.5, 0.987654], 'margin': None, 'kbest': [{'tags': ['DET', 'NOUN'], 'score': 1.25}]}
        """
        values: dict[str, Any] = {}
        if self.confidences is not None:
            values["confidences"] = [round(confidence, 6) for confidence in self.confidences]
        if self.margin is not None:
            values["margin"] = None if self.margin == float("inf") else round(self.margin, 6)
        if self.kbest is not None:
            values["kbest"] = [{"tags": list(tags), "score": round(score, 6)} for tags, score in self.kbest]
        return values

    def add_to_columns(self, lines: list[str], rows: Sequence[int]) -> list[str]:
        """Returns the lines of a column file with the confidences in a further column.

        Example:
            >>> Details([0.5, 0.987654321]).add_to_columns(["# a", "A DET", "dog\\tNOUN"], [1, 2])
            ['# a', 'A DET 0.5000', 'dog\\tNOUN\\t0.9877']
        """
        lines = list(lines)
        for row, confidence in zip(rows, self.confidences or (), strict=False):
            lines[row] += f"{chr(9) if chr(9) in lines[row] else ' '}{confidence:.4f}"
        return lines

    def add_to_conllu(self, lines: list[str], rows: Sequence[int]) -> list[str]:
        """Returns the lines of a CoNLL-U sentence with the confidences in MISC and the margin as the last comment.

        Values of an earlier prediction are replaced.

        Example:
            >>> line = "1\\tdog\\t_\\tNOUN\\t_\\t_\\t_\\t_\\t_\\tSpaceAfter=No"
            >>> for text in Details([0.987654321], margin=2.5).add_to_conllu(["# text = dog", line], [1]):
            ...     print(text.replace("\\t", " "))
            # text = dog
            # margin = 2.5000
            1 dog _ NOUN _ _ _ _ _ SpaceAfter=No|Confidence=0.9877
        """
        lines = list(lines)
        for row, confidence in zip(rows, self.confidences or (), strict=False):
            cells = lines[row].split("\t")
            kept = [item for item in cells[_MISC].split("|") if item != "_" and not item.startswith(f"{_CONFIDENCE}=")]
            cells[_MISC] = "|".join([*kept, f"{_CONFIDENCE}={confidence:.4f}"])
            lines[row] = "\t".join(cells)
        if self.margin is not None:
            lines = [line for line in lines if not line.startswith(f"# {_MARGIN} = ")]
            place = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
            lines.insert(place, f"# {_MARGIN} = {self.margin:.4f}")
        return lines
