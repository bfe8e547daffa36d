"""What a worker process does: it builds the experiment's parts itself, and computes those that it is told to."""

import os
import pickle
import threading
import traceback
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from typing import Any

import torch

from linearcore.runtime import environment
from linearcore_paper.runner._compute import as_work, compute
from linearcore_paper.runner._experiment import Experiment, Settings


@dataclass(frozen=True)
class Order:
    """What a worker is told once, when it starts.

    Args:
        experiment: what it works on; its functions travel by name, and are looked up again.
        settings: with what.
        workers: how many processes share the machine.
    """

    experiment: Experiment
    settings: Settings
    workers: int


def work_for(parent: "connection.Connection[Any, Any]", order: Order) -> None:
    """Takes (name, results that it needs), gives back a `Done` or (error, traceback), until the parent hangs up."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    # No more than the user allows by OMP_NUM_THREADS, and together no more than there are cores.
    torch.set_num_threads(max(1, min(torch.get_num_threads(), available_cores() // order.workers)))
    parts = order.experiment.parts(order.settings)
    where = environment() | {"workers": order.workers}
    while True:
        try:
            name, results = parent.recv()
        except EOFError:
            return
        try:
            work = as_work(parts[name], results)
            if work is None:
                raise RuntimeError(f"part {name} was asked for before the results that it needs")
            parent.send(compute(work, where))
        except BaseException as error:
            parent.send((_portable(error), traceback.format_exc()))


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _die_with_parent() -> None:
    """A parent that was killed tells its workers nothing; without this they would hold the GPU until their part is done."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _portable(error: BaseException) -> BaseException:
    """The error, or one with the same words if it cannot go to another process."""
    try:
        copy = pickle.loads(pickle.dumps(error))
        return copy if isinstance(copy, BaseException) else RuntimeError(repr(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
