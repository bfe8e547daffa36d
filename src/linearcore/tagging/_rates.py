"""Precision, recall and F1."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rates:
    """How well one kind of thing is found, in percent.

    Attributes:
        precision: of what was predicted, how much is right.
        recall: of what is there, how much was found.
        f1: their harmonic mean.
        support: how much is there.
    """

    precision: float
    recall: float
    f1: float
    support: int

    @classmethod
    def of(cls, both: int, predicted: int, gold: int) -> "Rates":
        """From counts: right predictions, predictions, and what is there. 0/0 is 0.

        Example:
            >>> Rates.of(both=1, predicted=4, gold=2)
            Rates(precision=25.0, recall=50.0, f1=33.33, support=2)
        """
        total = predicted + gold
        return cls(
            precision=100 * both / predicted if predicted else 0.0,
            recall=100 * both / gold if gold else 0.0,
            # 2PR/(P+R) with the counts put in: no rounding, and 0/0 only where there is nothing at all.
            f1=200 * both / total if total else 0.0,
            support=gold,
        )
