"""An experiment of recorded runs whose functions a worker can import. It logs what it does in the folder of its data.

A file `mode.json` in that folder, {part: what}, makes a part fail, die, hang or take its time.
"""

import json
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from linearcore_paper.runner import After, Claim, Experiment, Outcome, Part, RecordedRun, Settings

NAMES = ["final", "tune-1", "tune-2", "tune-3", "timing", "check", "plain"]


def parts(settings: Settings) -> dict[str, Part]:
    """Returns three tuning runs, a final run, a check of it, a timing and a plain function, not in order of dependence."""
    tune = {f"tune-{rate}": _run(f"tune-{rate}", settings, rate) for rate in (1, 2, 3)}
    return {
        "final": After(tuple(tune), partial(_final, settings)),
        **tune,
        "timing": _run("timing", settings, 0, alone=True),
        "check": After(("final",), partial(_check, settings)),
        "plain": partial(_compute, "plain", settings, 0),
    }


def _run(name: str, settings: Settings, rate: int, alone: bool = False) -> RecordedRun:
    told = {"rate": rate, "sizes": [1, 2], "data": "0123abcd"}
    return RecordedRun(told, settings.seed, partial(_compute, name, settings, rate), alone)


def _final(settings: Settings, results: dict[str, Any]) -> RecordedRun:
    assert sorted(results) == ["tune-1", "tune-2", "tune-3"]
    return _run("final", settings, max(result["score"] for result in results.values()))


def _check(settings: Settings, results: dict[str, Any]) -> RecordedRun:
    return _run("check", settings, 10 * results["final"]["score"])


def _compute(name: str, settings: Settings, rate: int) -> dict[str, Any]:
    folder = settings.data or Path()
    mode = json.loads((folder / "mode.json").read_text()).get(name) if (folder / "mode.json").exists() else None
    started = time.time()
    (folder / f"started-{name}").touch()
    if mode == "slow":
        time.sleep(0.2)
    elif mode == "hang":
        time.sleep(600)
    elif mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "fail":
        raise ValueError(f"a bug in {name}")
    line = {"part": name, "started": started, "ended": time.time(), "process": os.getpid()}
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line | {"threads": torch.get_num_threads()}) + "\n")
    return {"score": rate, "name": name}


def _conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    return Outcome([Claim("it tunes", "3", str(results["final"]["score"]), "holds")], results, "no picture")


STUB = Experiment(
    "stub", "A stub", "Does it tune?", "tunes", "nowhere", "nothing", {"smoke": "0 s", "paper": "0 s"},
    parts, _conclude, Figure,
)  # fmt: skip


def log(folder: Path) -> list[dict[str, Any]]:
    """Returns the log entries in order of completion."""
    path = folder / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def did(folder: Path) -> list[str]:
    """Returns the names of the computed parts, in order."""
    return [line["part"] for line in log(folder)]
