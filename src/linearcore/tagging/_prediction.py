"""The result of `Tagger.predict` and its options."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from linearcore._checks import complaint
from linearcore.heads import CANDIDATES, SAMPLES, ChainHead, RiskOptions, check_risk_options
from linearcore.structures import Cost
from linearcore.tagging._costs import cost_of_names
from linearcore.tagging._decoding import best_sequences, best_tags, least_risk_tags, tag_confidences
from linearcore.tagging._heads import check_count, check_width


class ScoredTags(NamedTuple):
    """A tag sequence and its score.

    Attributes:
        tags: one tag per word.
        score: score of the sequence, as in `linearcore.heads.ChainHead`; the log-probability with loss "ce".
    """

    tags: list[str]
    score: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Tags of one sentence, and what else was requested; None for what was not.

    Confidences measure how sure the model is of one tag. They are not calibrated. What they are depends on the loss:

        "crf"    marginal probability P(y_j = tag | x)
        "ce"     softmax probability of the tag
        "lc"     posterior of the surrogate at the margin between the tag and its alternatives, given the tags of the other
                 words; exactly ½ if the margin is between −τ and τ
        "ssvm"   softmax over the tags of this word, given the tags of the other words

    Attributes:
        tags: the best tags, one per word; with `decode_for` those with the least expected cost.
        confidences: confidence in [0, 1] of each tag.
        margin: score of the best sequence minus score of the second best: how sure the decoder is of the whole sequence.
            inf if there is only one sequence, as for an empty sentence.
        kbest: the k best sequences with their scores, best first; fewer if fewer exist.
    """

    tags: list[str]
    confidences: list[float] | None = None
    margin: float | None = None
    kbest: list[ScoredTags] | None = None


@dataclass(frozen=True)
class Decoding:
    """Converts emissions to predictions, with the options of `Tagger.predict`.

    Attributes:
        head: the head of the model; None is token cross-entropy.
        tags: names of the tags.
        beam: beam width; 0 is exact search.
        confidences, margin, kbest: as in `Tagger.predict`.
        cost: the cost to decode for, with its `risk_options`; None for the best score.

    Raises:
        ValueError: if an option is out of range, or options do not fit the head or each other.
    """

    head: ChainHead | None
    tags: Sequence[str]
    beam: int
    confidences: bool = False
    margin: bool = False
    kbest: int = 1
    cost: Cost | None = None
    risk_options: RiskOptions | None = None

    @classmethod
    def of(
        cls,
        head: ChainHead | None,
        tags: Sequence[str],
        default_beam: int,
        *,
        confidences: bool = False,
        margin: bool = False,
        kbest: int = 1,
        beam: int | None = None,
        decode_for: str | Cost | None = None,
        candidates: int | None = None,
        temperature: float | None = None,
    ) -> "Decoding":
        """Checks the options; `default_beam` is used if `beam` is None."""
        check_count("kbest", kbest)
        cost = None if decode_for is None else cost_of_names("decode_for", decode_for, tags)
        _check_combination(cost, {"kbest": kbest > 1, "margin": margin, "beam": bool(beam)}, candidates, temperature)
        risk_options = check_risk_options(
            CANDIDATES if candidates is None else candidates, SAMPLES, 1.0 if temperature is None else temperature
        )
        if beam is not None:
            check_width("beam", beam)
            if head is None:
                raise ValueError(complaint("beam", "be None with loss 'ce'", beam, "there is no chain to search; omit it"))
            if beam and (margin or kbest > 1):
                advice = "k-best search is exact; omit it"
                raise ValueError(complaint("beam", "be None or 0 with `kbest` or `margin`", beam, advice))
        width = default_beam if beam is None else beam
        return cls(head, tags, width, confidences, margin, kbest, cost, risk_options)

    @property
    def num_sequences(self) -> int:
        """Number of sequences to search for."""
        return max(self.kbest, 2 if self.margin else 1)

    def empty(self) -> Prediction:
        """Returns the prediction for an empty sentence, whose only sequence is empty and has score 0."""
        return self._prediction([[]], [0.0], [])

    def predictions(self, emissions: Tensor, mask: Tensor | None, lengths: Sequence[int]) -> list[Prediction | None]:
        """Returns the predictions of a batch; None for a sentence that has no sequence with a finite score.

        Args:
            emissions: (B, L, |Y|), float32 or float64.
            mask: (B, L) booleans; None if all sentences have L words.
            lengths: number of words of each sentence, at least 1.
        """
        if self.num_sequences == 1:
            best = self._best_tags(emissions, mask)
            sequences = [[row] for row in best.tolist()]
            scores: list[list[float]] = [[]] * len(lengths)  # Not needed.
        else:
            all_tags, all_scores = best_sequences(self.head, emissions, mask, self.num_sequences)
            best, sequences, scores = all_tags[0], all_tags.transpose(0, 1).tolist(), all_scores.t().tolist()
        confidences: list[list[float]] = [[]] * len(lengths)
        if self.confidences:
            confidences = tag_confidences(self.head, emissions, mask, best).tolist()
        return [
            # If there is no sequence, all tags are negative.
            None if rows[0][0] < 0 else self._prediction([row[:length] for row in rows], row_scores, certain[:length])
            for rows, row_scores, certain, length in zip(sequences, scores, confidences, lengths, strict=True)
        ]

    def _best_tags(self, emissions: Tensor, mask: Tensor | None) -> Tensor:
        if self.cost is None or self.risk_options is None:
            return best_tags(self.head, emissions, mask, self.beam)
        return least_risk_tags(self.head, emissions, mask, self.cost, self.risk_options)

    def _prediction(self, sequences: list[list[int]], scores: list[float], confidences: list[float]) -> Prediction:
        """Returns the prediction of one sentence from its tag indices and scores, best first, −inf for missing sequences."""
        tags = self.tags
        best = [tags[index] for index in sequences[0]]
        if self.num_sequences == 1:
            return Prediction(best, confidences if self.confidences else None)
        found = [score for score in scores if score > -math.inf]
        pairs = zip(sequences[: self.kbest], found, strict=False)
        return Prediction(
            best,
            confidences if self.confidences else None,
            (found[0] - found[1] if len(found) > 1 else math.inf) if self.margin else None,
            [ScoredTags([tags[index] for index in row], score) for row, score in pairs] if self.kbest > 1 else None,
        )


def _check_combination(
    cost: Cost | None, search: Mapping[str, bool], candidates: int | None, temperature: float | None
) -> None:
    """Raises if `decode_for` comes with an option that orders sequences by score, or its options come without it."""
    for name, is_set in search.items():
        if cost is not None and is_set:
            advice = f"it orders sequences by score and {cost.name!r} by expected cost; omit one of the two"
            raise ValueError(complaint(name, "be omitted with `decode_for`", "both", advice))
    for name, value in (("candidates", candidates), ("temperature", temperature)):
        if cost is None and value is not None:
            raise ValueError(complaint(name, "come with `decode_for`", f"{value} alone", "choose a cost, or omit it"))
