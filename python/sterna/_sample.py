"""One call: a target and keywords become a run."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _config
from ._core import ConfigError, Handle, of_first
from ._interrupts import Interrupts
from ._ranks import leave_at_exit, rank
from ._run import Run
from ._target import Target


def sample(
    model: Target | Any,
    draws: float | None = None,
    *,
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress_bar: bool = True,
    blocking: bool = True,
    chains: int | str | Mapping[str, Any] | None = None,
    ensembles: int | None = None,
    reference: str | Mapping[str, Any] | None = None,
    explorer: str | Mapping[str, Any] | None = None,
    accelerator: str | Mapping[str, Any] | None = None,
    steps: int | str | None = None,
    schedule: Mapping[str, Any] | int | None = None,
    network: Mapping[str, Any] | str | None = None,
    training: Mapping[str, Any] | int | None = None,
    iterations: int | None = None,
    burn_in: int | None = None,
    thin: int | None = None,
    until: Mapping[str, Any] | None = None,
    log_z_error: float | None = None,
    minutes: float | None = None,
    evaluations: int | None = None,
    threads: int | None = None,
    run: Mapping[str, Any] | None = None,
    output: Mapping[str, Any] | None = None,
    **more: Any,
) -> Run:
    """Sample a target.

    Keywords are the fields of the config, with the same names, defaults and meanings (docs/book/config.md): a section as a
    dictionary (``chains={"count": 10, "ensembles": 4}``), or its main field alone (``chains=10``,
    ``accelerator="cmcd"``), or one field as ``training__steps=2000``.

    Parameters
    ----------
    model
        What is sampled: a :class:`Target`, from :mod:`sterna.targets` or one of the functions ``from_...``; a model of
        PyMC is taken as well.
    draws
        Effective draws of every coordinate that are enough (``run.until.ess``); targets of users ask for 1000 by default,
        built-in ones run for a fixed number of iterations.
    seed
        Of all randomness: same seed, same bits, for any number of threads and the command line alike.
    store
        The run folder; without one, a folder that goes with the result.
    progress_bar
        Whether to show how far it has come.
    blocking
        Whether to wait for the end; if not, see :meth:`Run.wait`, :meth:`Run.inspect`, :meth:`Run.pause`,
        :meth:`Run.resume` and :meth:`Run.abort`.

    Returns
    -------
    Run
        With results, or, if not blocking, on its way.
    """
    target = as_target(model)
    named = {
        "seed": seed, "chains": chains, "ensembles": ensembles, "reference": reference, "explorer": explorer,
        "accelerator": accelerator, "steps": steps, "schedule": schedule, "network": network, "training": training,
        "iterations": iterations, "burn_in": burn_in, "thin": thin, "until": until, "draws": draws,
        "log_z_error": log_z_error, "minutes": minutes, "evaluations": evaluations,
        "threads": target._threads if threads is None else threads, "run": run, "output": output,
    }  # fmt: skip
    settings = [*target._overrides, *_config.overrides({**named, **more})]
    if store is not None and (Path(store) / "config.toml").exists():
        raise ConfigError(f"{store} holds a run already: go on with sterna.resume({str(store)!r}), or choose another store")
    temporary = store is None and rank() == 0
    folder = Path(of_first(tempfile.mkdtemp(prefix="sterna-") if temporary else str(store)))

    def begin() -> Handle:
        return Handle.start(target._core, target._text, settings, str(folder))

    with Interrupts() as interrupts:
        try:
            begun = Run._begin(folder, target, progress_bar, begin)
        except BaseException:
            if temporary:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if temporary:
            begun._kept = weakref.finalize(begun, shutil.rmtree, folder, True)
        leave_at_exit()
        return begun._follow(interrupts) if blocking else begun


def as_target(model: Any) -> Target:
    """Take a target for itself, and make one of a model of PyMC."""
    if isinstance(model, Target):
        return model
    if type(model).__module__.split(".")[0] == "pymc":
        from ._pymc import from_pymc

        return from_pymc(model)
    raise ConfigError(f"{model!r} is no target: sterna.targets and the functions sterna.from_... make them")


def load(folder: str | os.PathLike[str]) -> Run:
    """Open a run folder, whoever made it: this package or the command line."""
    run = Run(folder)
    if not (run.folder / "summary.json").exists():
        raise ConfigError(f"{folder} holds no summary.json: is it a run folder, and has sampling begun?")
    return run


def resume(
    folder: str | os.PathLike[str],
    *,
    model: Target | None = None,
    draws: float | None = None,
    iterations: int | None = None,
    log_z_error: float | None = None,
    minutes: float | None = None,
    evaluations: int | None = None,
    threads: int | None = None,
    progress_bar: bool = True,
    blocking: bool = True,
) -> Run:
    """Go on with the run of a folder: after a stop, a crash, or for more. Same bits as an uninterrupted run.

    The folder may be one of the command line, and the command line can go on with runs of this package, where the target is
    built in, a Stan model, a library or a molecule. A target that lives in Python has to be given again, as ``model``.
    """
    path = Path(folder)
    if not (path / "config.toml").exists():
        raise ConfigError(f"{path} holds no run: there is no config.toml")
    target = None if model is None else as_target(model)
    if target is not None and threads is None:
        threads = target._threads
    leave_at_exit()
    goals = (iterations, None if draws is None else float(draws), log_z_error, minutes, evaluations, threads)
    core = None if target is None else target._core
    with Interrupts() as interrupts:
        begun = Run._begin(path, target, progress_bar, lambda: Handle.resume(core, str(path), *goals))
        return begun._follow(interrupts) if blocking else begun
