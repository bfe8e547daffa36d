"""Worker processes that compute parts of an experiment in parallel; only the main process writes files."""

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
from linearcore_paper.runner._compute import PartResult, as_work, compute
from linearcore_paper.runner._experiment import Experiment, Settings

#: Seconds until a worker that does not terminate is killed.
STOP_TIMEOUT_S = 2.0
#: Longest delay in seconds of an interrupt while workers are busy.
POLL_INTERVAL_S = 0.5


@dataclass(frozen=True)
class WorkerConfig:
    """Configuration that a worker receives when it starts.

    Args:
        experiment: the experiment; its functions are pickled by name.
        settings: settings of the experiment.
        workers: number of processes that share the machine.
    """

    experiment: Experiment
    settings: Settings
    workers: int


class WorkerDiedError(RuntimeError):
    """A worker ended without a result; the message is one line that names the part."""


class Workers:
    """Context manager for up to `config.workers` processes, which start on demand and stop at the end.

    With `config.workers` = 1 it starts no process, and the caller computes the parts.

    Args:
        config: configuration of the workers.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._size = config.workers if config.workers > 1 else 0
        self._processes: dict[connection.Connection[Any, Any], SpawnProcess] = {}
        self._busy: dict[connection.Connection[Any, Any], str] = {}

    @property
    def has_idle_worker(self) -> bool:
        """Whether one more part can be started."""
        return len(self._busy) < self._size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops all processes. They share one deadline, because a dozen separate timeouts would take minutes."""
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in self._processes.values():
            process.join(max(0.0, deadline - time.monotonic()))
        for process in self._processes.values():
            if process.is_alive():
                process.kill()
        for pipe, process in self._processes.items():
            # A killed process may hang in the GPU driver: do not wait for it without a limit.
            process.join(STOP_TIMEOUT_S)
            pipe.close()
        self._processes.clear()
        self._busy.clear()

    def start(self, name: str, results: Mapping[str, Any]) -> None:
        """Sends a part to an idle process; call it only if `has_idle_worker`.

        Args:
            name: name of the part.
            results: results of the parts that it needs.
        """
        pipe = next((pipe for pipe in self._processes if pipe not in self._busy), None) or self._start_process()
        self._busy[pipe] = name
        try:
            pipe.send((name, dict(results)))
        except OSError:
            raise self._died_error(pipe) from None

    def wait(self) -> tuple[str, PartResult]:
        """Waits for the next finished part and returns its name and result.

        Raises:
            WorkerDiedError: if a process ended without a result.
            BaseException: the exception of the part, with the worker's traceback as a note.
        """
        ready: Sequence[object] = ()
        while not ready:
            # With a timeout: an interrupt that arrives just before the wait, or in another thread, does not end the wait.
            ready = connection.wait(list(self._busy), timeout=POLL_INTERVAL_S)
        pipe = next(pipe for pipe in self._busy if pipe in ready)
        try:
            reply = pipe.recv()
        except (EOFError, OSError):
            raise self._died_error(pipe) from None
        name = self._busy.pop(pipe)
        if isinstance(reply, PartResult):
            return name, reply
        error, text = reply
        error.add_note(f"In a worker, part {name}:\n{text}")
        raise error

    def _start_process(self) -> "connection.Connection[Any, Any]":
        # CUDA and threads do not work after a fork.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=run_worker, args=(theirs, self._config))
        with _blocked_interrupts():
            process.start()
        # Closed here, so that `recv` raises EOFError if the worker dies.
        theirs.close()
        self._processes[ours] = process
        return ours

    def _died_error(self, pipe: "connection.Connection[Any, Any]") -> WorkerDiedError:
        process = self._processes[pipe]
        process.join(STOP_TIMEOUT_S)
        code = process.exitcode
        status = "still running" if code is None else f"exit code {code}" if code >= 0 else f"signal {-code}"
        memory = ", perhaps out of memory" if code == -9 else ""
        return WorkerDiedError(
            f"the worker of part {self._busy[pipe]} died ({status}{memory}); finished parts are saved, run the same command "
            f"again with fewer --workers"
        )


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Processes started in this context ignore Ctrl-C, which a terminal sends to all processes; the parent stops them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Starting the resource tracker unblocks interrupts, so start it before they are blocked.
    resource_tracker.ensure_running()
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def run_worker(parent: "connection.Connection[Any, Any]", config: WorkerConfig) -> None:
    """Worker loop: receives (name, results it needs), sends a `PartResult` or (error, traceback), until the pipe closes."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    # At most OMP_NUM_THREADS, and in total at most one thread per core.
    torch.set_num_threads(max(1, min(torch.get_num_threads(), available_cores() // config.workers)))
    parts = config.experiment.parts(config.settings)
    worker_environment = environment() | {"workers": config.workers}
    while True:
        try:
            name, results = parent.recv()
        except EOFError:
            return
        try:
            work = as_work(parts[name], results)
            if work is None:
                raise RuntimeError(f"part {name} was started before the results that it needs")
            parent.send(compute(work, worker_environment))
        except BaseException as error:
            parent.send((_picklable(error), traceback.format_exc()))


def available_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _exit_with_parent() -> None:
    """Exits when the parent is killed; otherwise the worker would occupy the GPU until its part is finished."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _picklable(error: BaseException) -> BaseException:
    """Returns the error, or a RuntimeError with the same message if it cannot be pickled."""
    try:
        copy = pickle.loads(pickle.dumps(error))
        return copy if isinstance(copy, BaseException) else RuntimeError(repr(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
