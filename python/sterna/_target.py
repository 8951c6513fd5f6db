"""What is sampled: a density, with what is known of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _config
from ._core import ConfigError, Problem
from ._parameters import Parameters, as_toml, describe

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


class Target:
    """A density on real vectors.

    ``Target(dim, evaluate)`` is the same as :func:`from_pyfunc`; the other ways to make one are the functions
    ``from_...`` of the package and :mod:`sterna.targets`.

    A target can be called: ``target(points)`` gives log density and score of each row, in the free coordinates that
    are sampled, and ``target.values(points)`` the values that draws and summaries speak of.
    """

    def __init__(
        self,
        dim: int,
        evaluate: Callable[..., Any],
        *,
        parameters: Parameters | None = None,
        score: bool | None = None,
        name: str | None = None,
    ) -> None:
        made = from_pyfunc(dim, evaluate, parameters=parameters, score=score, name=name)
        self.__dict__.update(made.__dict__)

    @classmethod
    def _of(
        cls,
        core: Problem,
        overrides: _config.Overrides | None = None,
        text: str = "",
        *,
        threads: int | None = None,
        coords: Mapping[str, Sequence[Any]] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
    ) -> Target:
        self = cls.__new__(cls)
        self._core = core
        self._overrides = overrides or []
        self._text = text
        # Python itself runs one thread at a time: further ones would only wait.
        self._threads = threads
        self.coords = dict(coords or {})
        self.dims = dict(dims or {})
        return self

    _core: Problem
    _overrides: _config.Overrides
    _text: str
    _threads: int | None
    coords: dict[str, Sequence[Any]]
    _kept: Any
    dims: dict[str, Sequence[str]]

    @property
    def dim(self) -> int:
        """Coordinates that are sampled."""
        return self._core.dim

    @property
    def has_score(self) -> bool:
        """Whether the gradient of the log density is known; moves are slices where it is not."""
        return self._core.has_score

    @property
    def names(self) -> list[str]:
        """A name for each value; empty where they have none."""
        return self._core.names

    def __call__(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Log density and score at each row of points."""
        return self._core.evaluate(_rows(points))

    def values(self, points: npt.ArrayLike) -> Array:
        """The values that draws speak of, at each row of free coordinates."""
        return self._core.values(_rows(points))

    def __repr__(self) -> str:
        kind = dict(self._overrides).get("target.kind", "own").strip('"')
        score = "" if self.has_score else ", without a score"
        return f"<sterna.Target {kind}: {self.dim} coordinates{score}>"

    @staticmethod
    def from_numba(cfunc: Any, dim: int, **more: Any) -> Target:
        """See :func:`sterna.from_numba`."""
        return from_numba(cfunc, dim, **more)

    @staticmethod
    def from_jax(log_density: Callable[..., Any], dim_or_example: Any, **more: Any) -> Target:
        """See :func:`sterna.from_jax`."""
        from ._jax import from_jax

        return from_jax(log_density, dim_or_example, **more)

    @staticmethod
    def from_openmm(system: Any, positions: Any = None, **more: Any) -> Target:
        """See :func:`sterna.from_openmm`."""
        from ._openmm import from_openmm

        if positions is None:
            raise ConfigError("a System holds no positions: give a conformation to start from, positions=...")
        return from_openmm(system, positions, **more)


def _rows(points: Any) -> Array:
    import numpy as np

    rows = np.asarray(points, dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[None, :]
    if rows.ndim != 2:
        raise ConfigError(f"points have shape {rows.shape}, but rows are needed: (points, coordinates)")
    return rows


def _name(function: Any, given: str | None) -> str:
    if given is not None:
        return given
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() else "own"


def _dim(dim: Any) -> int:
    if isinstance(dim, bool) or not hasattr(dim, "__index__") or int(dim) < 1:
        raise ConfigError(f"dim = {dim!r} is impossible: a whole number from 1 up is needed")
    return int(dim)


def from_pyfunc(
    dim: int,
    f: Callable[..., Any],
    *,
    parameters: Parameters | None = None,
    score: bool | None = None,
    name: str | None = None,
) -> Target:
    """Make a target of a function of numpy arrays.

    Parameters
    ----------
    dim
        Coordinates of a point.
    f
        ``f(x) -> (log_density, score)`` with ``x`` of shape (n, dim), ``log_density`` of shape (n,) and ``score``, its
        gradient, of shape (n, dim); or ``f(x) -> log_density``, and moves are made that need no gradient. It gets all
        rows of all ladders in one call, and what it returns for a row must depend on that row alone. Where the density
        vanishes it returns ``-inf``; where it cannot be computed, ``nan`` (rejected, counted and reported). What it
        raises comes back as itself, with the point.
    parameters
        Names, shapes, supports and priors: ``{"mu": (), "sigma": "positive", "w": (3, "simplex")}``. The function gets
        the values, within their supports; what is sampled are free coordinates, and the volume of the change is not its
        business. With ``prior`` for each (``{"mu": {"prior": "normal(0, 1)"}}``) the function is a log likelihood,
        chain 0 draws from the prior, and log Z is the log evidence.
    score
        Whether ``f`` returns a score; if it is not said, ``f`` is asked for one point to see.
    name
        What run folders call it; the function's own name if it is not said.
    """
    dim = _dim(dim)
    if not callable(f):
        raise ConfigError(f"{f!r} cannot be called: a function of points is needed")
    described = describe(parameters)
    called = _name(f, name)
    if score is None:
        probe = Problem.callback(lambda x: _scoreless(x), dim, False, described, called)
        point = probe.values(_rows([0.0] * probe.dim))
        try:
            score = isinstance(f(point), (tuple, list))
        except Exception as error:
            _note(
                error, f"raised when tried: f gets rows of points, an array of shape (n, {dim}), here one row: {point.tolist()}"
            )
            raise
    return Target._of(Problem.callback(f, dim, bool(score), described, called), threads=1)


def _note(error: BaseException, note: str) -> None:
    """Say more about an exception, where Python can (3.11)."""
    if note and hasattr(error, "add_note"):
        error.add_note(note)


def _scoreless(x: Array) -> Array:
    return x[:, 0]


def numba_signature() -> Any:
    """Return the signature that :func:`from_numba` wants, that of ``sterna_evaluate`` in include/sterna.h.

    ``int32(uintp rows, uintp dim, double* points, double* log_density, double* score)``, for ``@numba.cfunc``.
    """
    from numba import types

    double = types.CPointer(types.float64)
    return types.int32(types.uintp, types.uintp, double, double, double)


def from_numba(
    cfunc: Any,
    dim: int,
    *,
    parameters: Parameters | None = None,
    score: bool = True,
    name: str | None = None,
) -> Target:
    """Make a target of a compiled function, called without the GIL and from all threads.

    ``cfunc`` is what ``@numba.cfunc(sterna.numba_signature())`` makes, an object of ctypes or cffi with that signature,
    or the address of such a function. It writes log density and score for ``rows`` points and returns 0; anything else
    stops the run with that number and the point. With ``score=False`` it need not write scores.
    """
    address = cfunc
    if hasattr(cfunc, "address") and hasattr(cfunc, "_sig"):
        if cfunc._sig != numba_signature():
            raise ConfigError(f"the function has signature {cfunc._sig}, but {numba_signature()} is needed")
        address = cfunc.address
    elif hasattr(cfunc, "argtypes"):
        import ctypes

        address = ctypes.cast(cfunc, ctypes.c_void_p).value or 0
    elif not isinstance(cfunc, int):
        raise ConfigError(f"{cfunc!r} is no compiled function: @numba.cfunc(sterna.numba_signature()) makes one")
    core = Problem.address(int(address), _dim(dim), score, describe(parameters), _name(cfunc, name), cfunc)
    return Target._of(core)


def from_likelihood(
    log_likelihood: Callable[..., Any],
    prior_transform: Callable[..., Any],
    ndim: int,
    *,
    parameters: Parameters | None = None,
    vectorized: bool = False,
    name: str | None = None,
) -> Target:
    """Make a target of a log likelihood and a prior transform, as users of nested samplers have them.

    ``prior_transform(u)`` makes values of a point of the unit cube, ``log_likelihood(v)`` takes values; both get one
    point of ``ndim`` numbers, or with ``vectorized=True`` rows of them. Chain 0 draws from the prior, the path tempers the
    likelihood, and ``run.log_z`` is the log evidence.
    """
    core = Problem.likelihood(
        log_likelihood, prior_transform, _dim(ndim), vectorized, describe(parameters), _name(log_likelihood, name)
    )
    return Target._of(core, threads=1)


def configured(target: Mapping[str, Any], parameters: Parameters | None = None) -> Target:
    """Make a target of the fields of a config's ``[target]``: one that the command line can go on with."""
    overrides = list(_config.flat("target", target))
    text = as_toml(describe(parameters))
    return Target._of(Problem.configured(text, overrides), overrides, text)


def from_library(
    library: str | os.PathLike[str],
    *,
    dim: int | None = None,
    symbol: str | None = None,
    parameters: Parameters | None = None,
) -> Target:
    """Make a target of a shared library that exports the functions of include/sterna.h."""
    fields = {"kind": "library", "library": os.path.abspath(library), "dim": dim, "symbol": symbol}
    return configured(fields, parameters)


def from_stan(
    model: Any,
    data: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    seed: int | None = None,
    quantities: bool | None = None,
    bridgestan: str | os.PathLike[str] | None = None,
) -> Target:
    """Make a target of a Stan model.

    Parameters
    ----------
    model
        A ``.stan`` file, which BridgeStan compiles (``pip install sterna[stan]`` and a C++ compiler, or ``$BRIDGESTAN``), the
        shared library that it makes, or a model of cmdstanpy.
    data
        A dictionary, or a JSON file.
    seed
        Of random numbers in ``transformed data``.
    quantities
        Whether transformed parameters and generated quantities are kept too; they are if it is not said.
    bridgestan
        The folder of the BridgeStan that compiles, if not the one that is found.
    """
    path = getattr(model, "stan_file", model)
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"{model!r} is no Stan model: a .stan file, its compiled library or a cmdstanpy model is")
    if "{" in str(path):
        raise ConfigError("model is the text of a Stan model: write it into a file with the ending .stan, and give its name")
    if isinstance(data, Mapping):
        text: str | None = json.dumps(data, default=_plain)
    else:
        text = None if data is None else os.path.abspath(data)
    fields = {
        "kind": "stan",
        "model": os.path.abspath(path),
        "data": text,
        "seed": seed,
        "quantities": quantities,
        "bridgestan": None if bridgestan is None else os.path.abspath(bridgestan),
    }
    return configured(fields)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is no data for Stan: numbers and lists or arrays of them are")
