"""Low-noise conditions, which turn a pointwise bound into a faster one."""

from dataclasses import dataclass

from torch import Tensor

from linearcore._checks import between, complaint


@dataclass(frozen=True)
class NoiseCondition:
    """Tsybakov's noise condition on a binary problem, with Massart's as its end point.

        P(h(x) is wrong)  ≤  constant · (0-1 regret of h)^exponent        for every h

    "Wrong" means: of the other sign than 2η(x) − 1 ≠ 0. Exponent 0 with constant 1 holds for every distribution.
    Exponent 1 is Massart's condition, |2η(x) − 1| ≥ 1/constant almost surely.

    Args:
        exponent: α in [0, 1].
        constant: at least 1; no problem satisfies the condition with a smaller one.

    Example:
        >>> from linearcore import Logistic
        >>> from linearcore.analysis import NoiseCondition, rate
        >>> [round(rate(Logistic(), noise=NoiseCondition(alpha)).limit, 3) for alpha in (0.0, 0.5, 1.0)]
        [0.5, 0.667, 1.0]
        >>> NoiseCondition.massart(0.2)
        NoiseCondition(exponent=1.0, constant=5.0)
    """

    exponent: float
    constant: float = 1.0

    def __post_init__(self) -> None:
        between("exponent", self.exponent, 0, 1, "0 holds for every distribution, 1 is Massart's condition")
        if not 1 <= self.constant < float("inf"):
            raise ValueError(complaint("constant", "be a number of at least 1", self.constant, "1 is the strongest"))

    @classmethod
    def massart(cls, margin: float) -> "NoiseCondition":
        """Returns Massart's condition |2η(x) − 1| ≥ margin."""
        if not 0 < margin <= 1:
            raise ValueError(complaint("margin", "be in (0, 1]", margin, "it is the least |2η − 1|"))
        return cls(1.0, 1 / margin)

    def mass(self, regret: Tensor) -> Tensor:
        """Returns the largest probability of a wrong prediction at a 0-1 regret."""
        return (self.constant * regret**self.exponent).clamp(max=1)

    def margin(self, regret: Tensor) -> Tensor:
        """Returns the least mean of |2η − 1| over the wrong predictions: regret / mass, with its limit at regret 0."""
        return (regret ** (1 - self.exponent) / self.constant).maximum(regret)
