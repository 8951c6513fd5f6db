"""For those who have a model of PyMC: ``sterna.pymc.sample`` in place of ``pymc.sample``."""

from __future__ import annotations

from typing import Any

from ._pymc import from_pymc
from ._sample import sample as _sample

__all__ = ["from_pymc", "sample"]


def sample(draws: float = 1000, *, model: Any = None, backend: str | None = None, **settings: Any) -> Any:
    """Sample a model and return what ArviZ takes.

    ``draws`` are effective draws of every coordinate; ``model`` is the one of the surrounding ``with`` if it is not given.
    Other keywords are those of :func:`sterna.sample`; the run itself, with its verdict and log Z, is in the attributes of the
    group ``tempering``, and by ``sterna.sample(model)`` if it is wanted whole.
    """
    import pymc

    target = from_pymc(pymc.modelcontext(model), backend=backend)
    return _sample(target, draws, **settings).to_arviz()
