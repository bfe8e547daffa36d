"""Several processes that do parts of an experiment side by side, for the one process that writes."""

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Self

import torch

from linearcore.runtime import environment
from linearcore_paper.runner._compute import Done, as_work, compute
from linearcore_paper.runner._experiment import Experiment, Settings

#: How long a worker may take to obey before it is killed.
PATIENCE = 2.0
#: How long an interrupt may go unheard while workers are busy.
LISTENING = 0.5


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


class DeadWorkerError(RuntimeError):
    """A worker ended without a result; the message is one line that names the part."""


class Workers:
    """A context with up to `order.workers` processes, started when there is work for them and stopped at its end.

    With one worker there are none: whoever asks does the work himself.

    Args:
        order: what they work on.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._size = order.workers if order.workers > 1 else 0
        self._processes: dict[connection.Connection[Any, Any], SpawnProcess] = {}
        self._busy: dict[connection.Connection[Any, Any], str] = {}

    @property
    def has_room(self) -> bool:
        """Whether one more part can be started."""
        return len(self._busy) < self._size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops them, whatever they do. All have the same time to obey: one after the other a dozen would take minutes."""
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + PATIENCE
        for process in self._processes.values():
            process.join(max(0.0, deadline - time.monotonic()))
        for process in self._processes.values():
            if process.is_alive():
                process.kill()
        for pipe, process in self._processes.items():
            # A killed process may hang in its driver; nobody waits for that.
            process.join(PATIENCE)
            pipe.close()
        self._processes.clear()
        self._busy.clear()

    def start(self, name: str, results: Mapping[str, Any]) -> None:
        """Gives a part to a process that has none; only while `has_room`.

        Args:
            name: of the part.
            results: of the parts that it needs.
        """
        pipe = next((pipe for pipe in self._processes if pipe not in self._busy), None) or self._hire()
        self._busy[pipe] = name
        try:
            pipe.send((name, dict(results)))
        except OSError:
            raise self._dead(pipe) from None

    def wait(self) -> tuple[str, Done]:
        """Waits for the next part that is done.

        Raises:
            DeadWorkerError: if a process ended without a result.
            BaseException: what the part raised, with the worker's traceback as a note.
        """
        ready: Sequence[object] = ()
        while not ready:
            # Not for ever: an interrupt that comes just before the system begins to wait, or reaches another thread, would
            # be heard only when something is done.
            ready = connection.wait(list(self._busy), timeout=LISTENING)
        pipe = next(pipe for pipe in self._busy if pipe in ready)
        try:
            answer = pipe.recv()
        except (EOFError, OSError):
            raise self._dead(pipe) from None
        name = self._busy.pop(pipe)
        if isinstance(answer, Done):
            return name, answer
        error, text = answer
        error.add_note(f"In a worker, part {name}:\n{text}")
        raise error

    def _hire(self) -> "connection.Connection[Any, Any]":
        # Not forked: CUDA and threads do not survive that.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work_for, args=(theirs, self._order))
        with _interrupts_held_back():
            process.start()
        # Only the worker holds its end, so that its death can be seen at ours.
        theirs.close()
        self._processes[ours] = process
        return ours

    def _dead(self, pipe: "connection.Connection[Any, Any]") -> DeadWorkerError:
        process = self._processes[pipe]
        process.join(PATIENCE)
        code = process.exitcode
        how = "still hanging" if code is None else f"exit code {code}" if code >= 0 else f"signal {-code}"
        memory = ", as when memory runs out" if code == -9 else ""
        return DeadWorkerError(
            f"the worker that did part {self._busy[pipe]} died ({how}{memory}); finished parts are kept, go on with the "
            f"same command and fewer --workers"
        )


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process started inside never hears Ctrl-C, which a terminal sends to all: its parent stops it, without a word."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # It would be started with the first process, and lets interrupts through again when it is.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
