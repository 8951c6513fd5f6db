"""For those who have a model of PyMC: ``sterna.pymc.sample`` in place of ``pymc.sample``."""

from __future__ import annotations

from typing import Any

from ._pymc import from_pymc
from ._sample import sample as _sample

__all__ = ["from_pymc", "sample"]


# What pymc.sample is told, by the names that it has here; None has no meaning here, since tuning ends by itself.
_OF_PYMC = {"random_seed": "seed", "progressbar": "progress_bar", "cores": "threads", "tune": None, "init": None}


def sample(draws: float = 1000, *, model: Any = None, backend: str | None = None, **settings: Any) -> Any:
    """Sample a model and return what ArviZ takes.

    ``draws`` are effective draws of every coordinate; ``model`` is the one of the surrounding ``with`` if it is not given.
    Other keywords are those of :func:`sterna.sample`, where ``chains`` are temperatures: what PyMC calls chains are ladders,
    ``ensembles=4``, and that is what a chain of the result is. ``random_seed``, ``progressbar`` and ``cores`` of ``pymc.sample``
    are taken, ``tune`` and ``init`` passed over. The run itself, with its verdict and log Z, is in the attributes of the
    group ``tempering``, and by ``sterna.sample(model)`` if it is wanted whole.
    """
    import pymc

    here = {name: _OF_PYMC.get(name, name) for name in settings}
    mine: dict[str, Any] = {name: settings[theirs] for theirs, name in here.items() if name is not None}
    target = from_pymc(pymc.modelcontext(model), backend=backend)
    return _sample(target, draws, **mine).to_arviz()
