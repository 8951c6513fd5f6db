"""Parallel tempering accelerated by neural transports.

>>> import sterna
>>> run = sterna.sample(sterna.targets.banana(), iterations=2000, chains=4, progress_bar=False)
>>> run.verdict, run.log_z, run.draws["x"].shape        # doctest: +SKIP

A density of your own is a function of rows:

>>> import numpy as np
>>> def humps(x):
...     return np.logaddexp(-8 * (x[:, 0] - 2) ** 2, -8 * (x[:, 0] + 2) ** 2)
>>> run = sterna.sample(sterna.from_pyfunc(1, humps), draws=200, progress_bar=False)
>>> bool(abs(run.log_z - np.log(2 * np.sqrt(np.pi / 8))) < 5 * run.log_z_error)
True
"""

from . import targets
from ._core import ConfigError, RunError, __version__
from ._jax import from_jax, from_torch
from ._openmm import from_openmm
from ._pymc import from_pymc
from ._ranks import rank, ranks
from ._run import Run
from ._sample import load, resume, sample
from ._target import (
    Target,
    from_library,
    from_likelihood,
    from_numba,
    from_pyfunc,
    from_stan,
    numba_signature,
)
from .nested import NestedSamplerLike

__all__ = [
    "ConfigError",
    "NestedSamplerLike",
    "Run",
    "RunError",
    "Target",
    "__version__",
    "from_jax",
    "from_library",
    "from_likelihood",
    "from_numba",
    "from_openmm",
    "from_pyfunc",
    "from_pymc",
    "from_stan",
    "from_torch",
    "load",
    "numba_signature",
    "rank",
    "ranks",
    "resume",
    "sample",
    "targets",
]
