"""The section about training with wrong labels in docs/measured.md."""

import statistics
from typing import Any

from _tables import RESULTS, source, table, wrapped

from linearcore.runtime import read_record


def noisy_letters() -> list[str]:
    """Accuracy of every loss with labels that a law made wrong; nothing where there is no record."""
    path = RESULTS / "noisy_letters.json"
    if not path.is_file():
        return []
    record = read_record(path)
    rows, settings = record["results"], record["settings"]
    laws, losses = (list(dict.fromkeys(row[key] for row in rows)) for key in ("law", "loss"))
    found = {(row["law"], row["loss"]): row for row in rows}
    best = {law: max(losses, key=lambda loss: statistics.mean(found[law, loss]["test"])) for law in laws}
    cells = [
        [loss, *(_cell(found[law, loss], settings["scales"], is_best=best[law] == loss) for law in laws)] for loss in losses
    ]
    told = f"{_TEXT.format(seeds=len(settings['seeds']))}\n{source(record)}"
    return ["\n\n".join([told, table(["accuracy on true labels, %", *laws], cells), _learned(found, laws, best)]) + "\n"]


def _cell(row: dict[str, Any], scales: list[float], *, is_best: bool) -> str:
    mean = f"{statistics.mean(row['test']):.2f} ± {statistics.stdev(row['test']):.2f}"
    edge = ", edge" if row["scale"] in (scales[0], scales[-1]) else ""
    return f"{f'**{mean}**' if is_best else mean} (scale {row['scale']:g}{edge})"


def _learned(found: dict[tuple[str, str], dict[str, Any]], laws: list[str], best: dict[str, str]) -> str:
    """What of the labels that were given a network gives itself in the end."""
    told = "; ".join(
        f"{law}: {best[law]} {statistics.mean(found[law, best[law]]['fit']):.0f} %, CE "
        f"{statistics.mean(found[law, 'CE']['fit']):.0f} %"
        for law in laws
        if law != "0 %"
    )
    words = (
        f"Labels as given, right or wrong, that the network of the best loss has learned in the end, beside CE's: {told}."
    )
    return wrapped(words)


_TEXT = """## Training with wrong labels, 26 classes, CPU

UCI letter recognition, 6,000 rows, two hidden layers of 256 units with batch norm, SGD with momentum and weight decay for 60
epochs: enough to learn wrong labels by heart. Every loss was multiplied by each of eight scales, and the scale taken that
agreed with most of 2,500 held-out labels, as wrong as the others, on a seed that does not count. Mean and standard deviation
over {seeds} seeds, which draw their own wrong labels; bold is the best mean. The forms are means over the competitors.
"Normed scores" have `NormedScores` behind the last layer: the unhinged loss because it has no minimum, CE and GCE to tell
what the norm does from what the loss does.
"""
