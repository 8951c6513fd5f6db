"""How far a run has come, shown where people look: a line on a terminal or in a notebook, now and then one in a log."""

from __future__ import annotations

import html
import sys
import time
from typing import Any

WIDTH = 24


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    active = shell.get_ipython()
    return active is not None and hasattr(active, "kernel")


def line(progress: dict[str, Any]) -> str:
    """A bar where the total is known, and what there is to say."""
    stage, done, total = progress["stage"], progress["done"], progress["total"]
    if total:
        share = min(done / total, 1.0)
        full = int(share * WIDTH)
        return f"{stage:>10} {'█' * full}{'░' * (WIDTH - full)} {share:4.0%}  {progress['details']}"
    return f"{stage:>10} {done} iterations  {progress['details']}"


class Bar:
    """Shows progress; with ``visible=False`` nothing at all."""

    def __init__(self, visible: bool) -> None:
        self._display: Any = None
        self._wide = 0
        self._last = time.monotonic()
        self._kind = "none"
        if visible:
            self._kind = "notebook" if _in_notebook() else "terminal" if sys.stderr.isatty() else "log"

    def show(self, progress: dict[str, Any] | None) -> None:
        """Shows it, if it is time."""
        if progress is None or self._kind == "none":
            return
        now = time.monotonic()
        if self._kind == "log":
            if now - self._last >= 5.0:
                self._last = now
                print(line(progress), file=sys.stderr, flush=True)
            return
        text = line(progress)
        if self._kind == "terminal":
            self._wide = max(self._wide, len(text))
            print("\r" + text.ljust(self._wide), end="", file=sys.stderr, flush=True)
        elif now - self._last >= 0.3 or self._display is None:
            from IPython.display import HTML, display

            self._last = now
            shown = HTML(f"<pre>{html.escape(text)}</pre>")
            if self._display is None:
                self._display = display(shown, display_id=True)
            else:
                self._display.update(shown)

    def close(self) -> None:
        """Leaves nothing behind."""
        if self._kind == "terminal" and self._wide:
            print("\r" + " " * self._wide + "\r", end="", file=sys.stderr, flush=True)
        elif self._display is not None:
            from IPython.display import HTML

            self._display.update(HTML(""))
