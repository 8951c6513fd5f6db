"""Models of PyMC: what is sampled is PyMC's own density in its unconstrained space, what is reported are its own values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ._core import ConfigError, Problem
from ._parameters import Described
from ._target import Target, numba_signature


def from_pymc(model: Any, *, backend: str | None = None, name: str | None = None) -> Target:
    """Make a target of a model of PyMC.

    Draws, names, coordinates and constrained values, deterministics among them, are as PyMC reports them.

    Parameters
    ----------
    model
        A ``pymc.Model`` of continuous variables; data are taken as they are now.
    backend
        ``"numba"`` compiles density and gradient to a function without the GIL, for all threads; ``"jax"`` makes one call for
        all rows, on a GPU if JAX has one; ``"c"`` calls what PyMC compiles, point by point. If it is not said, numba where
        it is installed.
    name
        What run folders call it.
    """
    import numpy as np
    import pytensor
    from pymc.pytensorf import join_nonshared_inputs
    from pymc.util import is_transformed_name

    if getattr(model, "discrete_value_vars", None):
        names = [variable.name for variable in model.discrete_value_vars]
        raise ConfigError(f"the model has discrete variables ({', '.join(names)}): sum over them, then sample the rest")
    # In the order that they were written, which freezing does not keep.
    order = [variable.name for variable in (*model.value_vars, *model.unobserved_RVs)]
    after = len(model.value_vars)
    start = model.initial_point(random_seed=0)
    model = _frozen(model)
    inputs = sorted(model.value_vars, key=lambda variable: order.index(variable.name))
    point = {variable.name: start[variable.name] for variable in inputs}
    dim = int(sum(np.size(value) for value in point.values()))
    [log_density], joined = join_nonshared_inputs(point=point, outputs=[model.logp()], inputs=inputs)
    reported = [variable for variable in model.unobserved_value_vars if not is_transformed_name(variable.name)]
    reported.sort(key=lambda variable: order.index(variable.name, after))
    outputs, values_in = join_nonshared_inputs(point=point, outputs=reported, inputs=inputs)
    make_values = pytensor.function([values_in], outputs)
    first = np.concatenate([np.ravel(value) for value in point.values()]) if point else np.zeros(0)
    shapes = [list(np.shape(value)) for value in make_values(first)]
    names = [_clean(variable.name) for variable in reported]

    def values(x: Any) -> Any:
        rows = [np.concatenate([np.ravel(value) for value in make_values(one)]) for one in x]
        return np.asarray(rows, dtype=float)

    gradient = pytensor.gradient.grad(log_density, joined)
    called = name or _clean(getattr(model, "name", "") or "pymc")
    if backend is None:
        backend = "numba" if _has("numba") else "c"
    if backend == "numba":
        core, threads = _by_numba(joined, [log_density, gradient], dim, called), None
    elif backend == "jax":
        core, threads = _by_jax(joined, log_density, dim, called), 1
    elif backend == "c":
        function = _compiled([joined], [log_density, gradient])
        core, threads = Problem.callback(_rows(function), dim, True, [], called), 1
    else:
        raise ConfigError(f"backend = {backend!r} is not known; numba, jax and c are")
    described: list[Described] = [(key, shape, None, None) for key, shape in zip(names, shapes, strict=True)]
    axes = {
        _clean(variable): [axis if axis is not None else f"{_clean(variable)}_dim_{i}" for i, axis in enumerate(given)]
        for variable, given in model.named_vars_to_dims.items()
        if _clean(variable) in names
    }
    used = {axis for given in axes.values() for axis in given}
    coords = {axis: list(labels) for axis, labels in model.coords.items() if axis in used and labels is not None}
    return Target._of(core.speaking_of(values, described), threads=threads, coords=coords, dims=axes)


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def _clean(name: str) -> str:
    """A name as files have it: letters, digits and underscores."""
    clean = re.sub(r"\W", "_", name, flags=re.ASCII)
    return clean if clean[:1].isalpha() or clean[:1] == "_" else f"_{clean}"


def _compiled(inputs: list[Any], outputs: list[Any], **more: Any) -> Any:
    """By PyMC's own way, in which parameters that a law does not allow have no density instead of raising."""
    from pymc import pytensorf

    compile_ = getattr(pytensorf, "compile", None) or pytensorf.compile_pymc
    return compile_(inputs, outputs, **more)


def _frozen(model: Any) -> Any:
    """The model with its data as constants, which compiled functions need not be handed.

    PyMC does not freeze models that say where chains are to start, which is of no meaning here: it is put aside meanwhile.
    """
    from pymc.model.transform.optimization import freeze_dims_and_data

    starts = model.rvs_to_initial_values
    kept = dict(starts)
    try:
        starts.update(dict.fromkeys(starts))
        return freeze_dims_and_data(model)
    finally:
        starts.update(kept)


def _rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Point by point."""
    import numpy as np

    def evaluate(x: Any) -> tuple[Any, Any]:
        log_density, score = np.empty(len(x)), np.empty_like(x)
        for i, point in enumerate(x):
            log_density[i], score[i] = function(point)
        return log_density, score

    return evaluate


def _by_numba(joined: Any, outputs: list[Any], dim: int, name: str) -> Problem:
    """What pytensor compiles for numba, called row by row by a C function."""
    import numba
    import numpy as np

    compiled = _compiled([joined], outputs, mode="NUMBA")
    if compiled.get_shared():
        raise ConfigError("the model holds shared variables that are no data: backend='c' can sample it")
    inner = compiled.vm.jit_fn

    @numba.cfunc(numba_signature())
    def evaluate(rows, dim, points, log_density, score):  # type: ignore[no-untyped-def]
        x = numba.carray(points, (rows, dim))
        slopes = numba.carray(score, (rows, dim))
        for i in range(rows):
            # What raises has no density: a matrix that is not positive definite, for one. It is counted.
            log_density[i] = np.nan
            slopes[i] = np.nan
            try:
                value, slope = inner(x[i].copy())
                log_density[i] = np.asarray(value).item()
                slopes[i] = slope
            except Exception:
                pass
        return 0

    return Problem.address(evaluate.address, dim, True, [], name, (evaluate, compiled))


def _by_jax(joined: Any, log_density: Any, dim: int, name: str) -> Problem:
    """What pytensor makes of the graph for JAX."""
    from pymc.sampling.jax import get_jaxified_graph

    from ._jax import from_jax

    function = get_jaxified_graph([joined], [log_density])
    return from_jax(lambda x: function(x)[0], dim, name=name)._core
