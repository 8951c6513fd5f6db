"""Ctrl-C while a run is begun and followed, which no moment may lose."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """Hears Ctrl-C and raises it where it is asked for, and at the end.

    Python itself raises ``KeyboardInterrupt`` wherever it happens to be, and drops it in finalizers, in callbacks of weak
    references and in locks of imports: the run would go on as if nobody had asked. A program with a handler of its own
    keeps it.
    """

    def __init__(self) -> None:
        self._heard = False
        self._before: object = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._hear)
        return self

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True

    def check(self) -> None:
        """Raise it, if it was heard."""
        if self._heard:
            self._heard = False
            raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if kind is None:
            self.check()
