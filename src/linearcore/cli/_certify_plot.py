"""Figure of `linearcore certify --plot`: φ, its slope, and T."""

from pathlib import Path

import numpy as np

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.analysis import Certificate, transform

_FORMATS = (".png", ".pdf", ".svg")


def check_plot(path: Path | None) -> None:
    """Raises unless a figure can be written to `path`: matplotlib is installed, and format and folder exist."""
    if path is None:
        return
    require("matplotlib", extra=None)
    if path.suffix not in _FORMATS or not path.parent.is_dir():
        must = f"be a file in an existing folder that ends in {', '.join(_FORMATS)}"
        raise ValueError(complaint("--plot", must, str(path), "for example certificate.png"))


def save_plot(certificate: Certificate, path: Path) -> None:
    """Draws φ, φ' and the binary T of a certificate."""
    from matplotlib.figure import Figure

    surrogate, bound = certificate.surrogate, certificate.bound
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    end = 4.0 if bound is None else max(4.0, 1.25 * bound)
    u = np.linspace(-end, end, 1001)
    left.plot(u, surrogate.value(u), label="φ(u)")
    left.plot(u, surrogate.derivative(u), label="φ'(u)", linestyle="--")
    left.axhline(0, color="0.8", linewidth=0.8)
    if bound is not None:
        left.axvspan(-bound, bound, color="0.93", zorder=0)
    top = min(float(np.max(surrogate.value(u))), 4 * float(surrogate.value(0.0)) + 1)
    low = max(float(np.min(surrogate.derivative(u))), -top / 2)
    left.set(xlabel="margin u", ylim=(1.15 * low, 1.05 * top))
    left.set_title("the loss and its slope", fontsize=10)
    left.legend()
    t = np.linspace(0, 1, 401)
    right.plot(t, transform(surrogate, t, bound=bound), label="T(t), least surrogate regret for two classes")
    worst = certificate.worst_case
    if worst is not None and worst.source != "search":
        name = f"(t / {worst.constant:.3g})^{1 / worst.exponent:.3g}, worst case of this form"
        right.plot(t, (t / worst.constant) ** (1 / worst.exponent), linestyle="--", label=name)
    right.set(xlabel="0-1 regret t", ylabel="surrogate regret")
    right.set_title("what the surrogate regret guarantees", fontsize=10)
    right.legend(fontsize=8)
    figure.suptitle(f"{surrogate}, {certificate.problem.form_name}", fontsize=10)
    figure.savefig(path, dpi=150)
