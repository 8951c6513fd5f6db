"""Scripts that ``mpirun`` or ``srun`` started several times: their processes, the ranks, share each run."""

from __future__ import annotations

import atexit
import signal
import threading
from types import FrameType

from . import _core

_knows_how_to_leave = False


def rank() -> int:
    """Number of this process among those that share runs: 0 for the first, which writes all files, and for one that is alone."""
    return _core.ranks()[0]


def ranks() -> int:
    """How many processes share runs: as many as ``mpirun`` or ``srun`` started, or 1."""
    return _core.ranks()[1]


def leave_at_exit() -> None:
    """To be called once a run has begun: this process then ends together with the others."""
    global _knows_how_to_leave
    if _knows_how_to_leave or ranks() == 1:
        return
    _knows_how_to_leave = True
    # What was registered later is called earlier: temporary folders go when all have left.
    atexit.register(_leave)
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def _leave() -> None:
    """Ends what is on its way, and then together with the others."""
    from ._run import _stop_all

    _stop_all()
    _core.leave()


def _end(number: int, frame: FrameType | None) -> None:
    """Ends the script as Ctrl-C does: runs stop on all ranks, with a checkpoint."""
    raise SystemExit(128 + number)
