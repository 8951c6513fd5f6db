"""Runs: started, followed, looked at, gone on with."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import ConfigError, Handle, RunError
from ._interrupts import Interrupts
from ._progress import Bar
from ._ranks import rank
from ._target import Target, _note

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas

# What a program leaves when it ends in the midst of a run: a checkpoint.
_running: weakref.WeakSet[Run] = weakref.WeakSet()

# Files of Python's own: what the config cannot tell.
ABOUT = "python.json"


class Run:
    """A run: on its way, or with its results.

    Results are those of the run folder, ``run.folder``: the same files that the command line writes and reads.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._handle: Handle | None = None
        self._pid = os.getpid()
        self._target: Target | None = None
        self._bar = False
        self._kept: Any = None
        self._began = time.monotonic()
        self._cache: dict[str, Any] = {}
        self._error: BaseException | None = None

    # On its way

    @classmethod
    def _begin(cls, folder: Path, target: Target | None, bar: bool, begin: Callable[[], Handle]) -> Run:
        self = cls(folder)
        self._target, self._bar = target, bar
        self._handle = begin()
        _running.add(self)
        return self

    def _active(self) -> Handle | None:
        if self._handle is not None and os.getpid() != self._pid:
            raise RunError("the run belongs to the process that this one was forked from")
        return self._handle

    def _ended(self) -> None:
        """The run is over: its results can be looked at, or its error is raised."""
        handle = self._handle
        if handle is None:
            return
        self._handle = None
        self._cache.clear()
        _running.discard(self)
        try:
            handle.check()
        except BaseException as error:
            self._error = error
            _note(error, self._how_to_go_on())
            raise
        self._remember()

    def _how_to_go_on(self) -> str:
        if not (self._folder / "checkpoint").exists():
            return ""
        # A mistake that showed at once left nothing to go on with, unless somebody named the place.
        worth = self._kept is None or (self._folder / "summary.json").exists() or time.monotonic() - self._began > 10
        if not worth:
            return ""
        self._keep()
        own = ", model=..." if self._target is not None and self._target._core.is_own else ""
        return f"what was checkpointed is safe: go on with sterna.resume({str(self._folder)!r}{own})"

    def _keep(self) -> None:
        """A folder that would go with this object stays."""
        if self._kept is not None:
            self._kept.detach()
            self._kept = None

    def _follow(self, interrupts: Interrupts) -> Run:
        """To the end, with a bar. Ctrl-C stops after the present block of iterations; a second one leaves at once."""
        handle, bar = self._active(), Bar(self._bar and rank() == 0)
        if handle is None:
            return self
        try:
            interrupts.check()
            while not handle.wait(0.1):
                interrupts.check()
                bar.show(handle.progress())
            # Ctrl-C may have come with the end: the results stay.
            interrupts.check()
        except BaseException as error:
            handle.stop()
            self._keep()
            while not handle.wait(0.1):
                interrupts.check()
            self._handle = None
            _running.discard(self)
            _note(error, self._how_to_go_on())
            error.sterna_run = self  # type: ignore[attr-defined]
            raise
        finally:
            bar.close()
        self._ended()
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, for so many seconds at most; whether it has come. An error of the run is raised."""
        handle = self._active()
        if handle is None:
            if self._error is not None:
                raise self._error
            return True
        if timeout is None:
            with Interrupts() as interrupts:
                self._follow(interrupts)
            return True
        if not handle.wait(timeout):
            return False
        self._ended()
        return True

    @property
    def progress(self) -> dict[str, Any] | None:
        """How far it has come: stage, done, total (0 if unknown), details; None once it has ended, or before it begins."""
        handle = self._active()
        return None if handle is None else handle.progress()

    def inspect(self, timeout: float = 60.0) -> Run:
        """Look at the results so far, while the run goes on: a run of its own, that later draws do not change."""
        handle = self._active()
        if handle is not None and not handle.write_files(timeout):
            raise TimeoutError(f"the run did not come to write its files within {timeout} s")
        if not (self._folder / "summary.json").exists():
            raise RunError("sampling has not begun: there is nothing to look at yet")
        copy = Path(tempfile.mkdtemp(prefix="sterna-"))
        _copy_results(self._folder, copy)
        seen = Run(copy)
        seen._target = self._target
        seen._kept = weakref.finalize(seen, shutil.rmtree, copy, True)
        return seen

    def pause(self) -> None:
        """Hold the run after the present block of iterations."""
        handle = self._active()
        if handle is not None:
            handle.pause(True)

    def resume(self, **changes: Any) -> Run:
        """Go on: with a run that was paused, or, once it has ended, for longer (see :func:`sterna.resume`)."""
        handle = self._active()
        if handle is not None:
            if changes:
                raise ConfigError("a run on its way keeps its goals: wait for it, or abort it, then resume it with others")
            handle.pause(False)
            return self
        own = self._target is not None and self._target._core.is_own
        from ._sample import resume

        again = resume(self._folder, model=self._target if own else None, **changes)
        again._kept, self._kept = self._kept, None
        if again._kept is not None:
            again._keep()
            again._kept = weakref.finalize(again, shutil.rmtree, self._folder, True)
        return again

    def abort(self) -> Run:
        """Stop after the present block of iterations; a checkpoint, and the results so far, remain."""
        handle = self._active()
        if handle is not None:
            handle.stop()
            while not handle.wait(0.1):
                pass
            self._ended()
        return self

    # Results

    @property
    def folder(self) -> Path:
        """The run folder. One that nobody named goes when this object goes: name it (``store=``), or :meth:`save` it."""
        return self._folder

    def _read(self, name: str, read: Callable[[], Any]) -> Any:
        handle = self._active()
        if handle is not None:
            if not handle.is_over:
                raise RunError("the run is on its way: wait() for it, or inspect() what there is")
            self._ended()
        if self._error is not None and not (self._folder / "summary.json").exists():
            raise self._error
        if name not in self._cache:
            self._cache[name] = read()
        return self._cache[name]

    @property
    def summary(self) -> dict[str, Any]:
        """What the run found: the same dictionary as summary.json."""

        def read() -> dict[str, Any]:
            path = self._folder / "summary.json"
            if not path.exists():
                raise RunError(f"{self._folder} holds no summary: sampling had not begun when the run stopped")
            return dict(json.loads(path.read_text(encoding="utf-8")))

        found: dict[str, Any] = self._read("summary", read)
        return found

    @property
    def finished(self) -> bool:
        """Whether the run went to its end."""
        return bool(self.summary["finished"])

    @property
    def log_z(self) -> float:
        """Log of the normalising constant, which is the log evidence where likelihood and prior are apart."""
        return _number(self.summary["log_z"]["bar"])

    @property
    def log_z_error(self) -> float:
        """Standard error of :attr:`log_z`."""
        return _number(self.summary["log_z"]["standard_error"])

    @property
    def round_trips(self) -> int:
        """How often replicas went from the reference to the target and back, over all ladders."""
        return int(self.summary["round_trips"])

    @property
    def verdict(self) -> str:
        """What the alarms come to: ``sound``, ``doubtful`` or ``unsound``."""
        return str(self.summary["verdict"])

    @property
    def alarms(self) -> list[dict[str, str]]:
        """What a user should know: code and message of each."""
        return list(self.summary["alarms"])

    def _groups(self, name: str = "draws.nc") -> dict[str, dict[str, npt.NDArray[Any]]]:
        found: dict[str, dict[str, Any]] = self._read(name, lambda: _core.read_draws(str(self._folder / name)))
        return found

    def _by_name(self, found: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """In the order of the parameters."""
        order = [row["name"].split("[")[0] for row in self.summary.get("parameters", [])]
        return {name: found[name] for name in dict.fromkeys([*order, *found]) if name in found}

    @property
    def draws(self) -> dict[str, npt.NDArray[np.float64]]:
        """Draws of the target, by name: arrays of ladder × draw × shape."""
        return self._by_name(self._groups()["posterior"])

    @property
    def sample_stats(self) -> dict[str, npt.NDArray[Any]]:
        """Log density (``lp``), replica, ``acceptance_rate``, ``diverging`` and more of each draw: arrays of ladder × draw."""
        return _stats(self._groups()["sample_stats"])

    @property
    def warmup(self) -> dict[str, npt.NDArray[np.float64]]:
        """The target's chain before sampling, by name: at most 512 evenly spread iterations of tuning and burn-in."""
        return self._by_name(self._groups().get("warmup_posterior", {}))

    @property
    def warmup_stats(self) -> dict[str, npt.NDArray[Any]]:
        """What :attr:`sample_stats` has, of :attr:`warmup`; ``iteration`` says which they are."""
        return _stats(self._groups().get("warmup_sample_stats", {}))

    @property
    def all_chains(self) -> dict[str, npt.NDArray[np.float64]]:
        """Draws of all chains, by name: arrays of chain × ladder × draw × shape, chain 0 nearest the reference.

        They are kept where ``output={"trajectories": True, "every": 1}`` asks for them, every so many iterations.
        """
        return self._stacked("posterior")

    @property
    def all_chains_stats(self) -> dict[str, npt.NDArray[Any]]:
        """What :attr:`sample_stats` has, of :attr:`all_chains`; ``lp`` is the log density of each chain's own law."""
        return _stats(self._stacked("sample_stats"))

    def _stacked(self, group: str) -> dict[str, npt.NDArray[Any]]:
        import numpy as np

        names = [f"chain-{chain}.nc" for chain in range(int(self.summary["chains"]))]
        if not (self._folder / names[0]).exists():
            cure = 'sample with output={"trajectories": True, "every": 1}'
            raise RunError(f"draws of all chains were not kept: {cure} (of a molecule, they are files for chemists: *.dcd)")
        each = [self._by_name(self._groups(name)[group]) for name in names]
        return {name: np.stack([one[name] for one in each]) for name in each[0]}

    def table(self) -> pandas.DataFrame:
        """Mean, sd, quantiles, error, effective draws and R-hat of each parameter and observable, as a table of pandas."""
        import pandas

        rows = [*self.summary.get("parameters", []), *self.summary.get("observables", [])]
        if not rows:
            means = self.summary["expectations"]
            sizes = self.summary["ess"]["coordinates"]
            names = [f"x[{i}]" for i in range(len(means["mean"]))]
            columns = {"mean": means["mean"], "mcse": means["standard_error"], "ess": sizes}
            return pandas.DataFrame(columns, index=pandas.Index(names, name="name"), dtype=float)
        table = pandas.DataFrame(rows).set_index("name")
        numbers = [column for column in table if not any(isinstance(row[column], str) for row in rows)]
        return table.astype({column: float for column in numbers})

    def to_pandas(self) -> pandas.DataFrame:
        """All draws as a table of pandas: a row for each, by ladder and draw; a column for each value."""
        from ._tables import draws_table

        return draws_table(self)

    def to_arviz(self) -> Any:
        """Hand all to ArviZ: an ``InferenceData`` with ArviZ 0.2x, a ``DataTree`` with ArviZ 1.

        Groups are posterior and sample_stats; warmup_posterior and warmup_sample_stats, of the time before sampling; and
        tempering (schedule, rejections, acceptance and step size of each chain, and draws of all chains where they were kept).
        """
        from ._tables import to_arviz

        return to_arviz(self)

    def about(self) -> dict[str, Any]:
        """Names of axes and coordinates, where the model has them."""
        path = self._folder / ABOUT
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def _remember(self) -> None:
        """What ArviZ is to know of axes goes into the folder, for those who load it."""
        target = self._target
        if target is not None and target.dims and self._folder.exists() and rank() == 0:
            coords = {name: [_plain(value) for value in values] for name, values in target.coords.items()}
            about = {"coords": coords, "dims": {name: list(axes) for name, axes in target.dims.items()}}
            (self._folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report, one page that opens offline; into the run folder if no path is given. Says where it is."""
        self.summary  # noqa: B018 - raises what the run ended with
        to = Path(path) if path is not None else self._folder / "report.html"
        to.write_text(_core.report_page(str(self._folder)), encoding="utf-8")
        return to

    def chart(self, name: str) -> str:
        """Draw one chart of the report, as SVG: ``energies``, ``index-process``, ``log-z``, …"""
        self.summary  # noqa: B018
        return _core.report_chart(str(self._folder), name)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Copy the whole run folder, checkpoint and all, to where it stays."""
        self.summary  # noqa: B018
        to = Path(path)
        if to.exists() and any(to.iterdir()):
            raise ConfigError(f"{to} is not empty: choose another folder")
        shutil.copytree(self._folder, to, dirs_exist_ok=True)
        return to

    def __repr__(self) -> str:
        handle = self._handle
        if handle is not None and not handle.is_over:
            progress = handle.progress()
            at = "starting" if progress is None else f"{progress['stage']}, {progress['details']}"
            return f"<sterna.Run on its way: {at}>"
        if not (self._folder / "summary.json").exists():
            return f"<sterna.Run in {self._folder}: no draws>"
        end = "" if self.finished else ", not finished"
        return f"<sterna.Run {self.verdict}{end}: log Z {self.log_z:.6g} ± {self.log_z_error:.2g}, {self._folder}>"

    def _repr_html_(self) -> str | None:
        handle = self._handle
        if (handle is not None and not handle.is_over) or not (self._folder / "summary.json").exists():
            return None
        return _core.report_view(str(self._folder))

    # Pickles hold the files: results travel to other processes and machines.

    def __getstate__(self) -> dict[str, Any]:
        self.summary  # noqa: B018
        names = [path for path in self._folder.iterdir() if path.is_file()]
        return {"files": {path.name: path.read_bytes() for path in names}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="sterna-"))
        for name, content in state["files"].items():
            (folder / name).write_bytes(content)
        self.__init__(folder)  # type: ignore[misc]
        self._kept = weakref.finalize(self, shutil.rmtree, folder, True)


def _stats(found: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Statistics, with truths as such."""
    return {name: values.astype(bool) if name == "diverging" else values for name, values in found.items()}


def _number(value: Any) -> float:
    """JSON knows no NaN: it is null there."""
    return float("nan") if value is None else float(value)


def _plain(value: Any) -> Any:
    """A coordinate as JSON has it."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, (int, float, str)) else str(value)


def _copy_results(folder: Path, to: Path) -> None:
    for path in folder.iterdir():
        if path.is_file():
            shutil.copy2(path, to / path.name)


def _stop_all() -> None:
    """At the end of a program: runs stop with a checkpoint."""
    for run in list(_running):
        if run._handle is not None and run._pid == os.getpid():
            run._handle.stop()
            run._handle.wait(30.0)


atexit.register(_stop_all)
