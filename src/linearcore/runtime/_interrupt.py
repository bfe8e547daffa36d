"""Turns SIGINT and SIGTERM into a flag that is polled between steps, so that a run can save its state and stop."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class StoppedError(Exception):
    """The user stopped the run and its state was saved; the message says at which step."""


class Interrupt:
    """Context manager that becomes true after SIGINT or SIGTERM. A second SIGINT raises KeyboardInterrupt.

    Outside the main thread Python allows no signal handlers: the object stays false and signals keep their handlers.

    Example:
        >>> with Interrupt() as interrupt:
        ...     for step in range(3):
        ...         if interrupt:
        ...             break
        >>> bool(interrupt)
        False
    """

    def __init__(self) -> None:
        self._received = False
        self._old_handlers: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self._received

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old_handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        self._old_handlers.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = True
