"""Densities of JAX and of torch: one compiled call for all rows, gradients by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ._core import ConfigError, Problem
from ._parameters import Parameters, describe
from ._target import Target, _dim, _name

# Compiled functions are made for a number of rows: these grow in steps, so that there are few.
_FEWEST_ROWS = 8


def _padded(rows: int) -> int:
    return max(_FEWEST_ROWS, 1 << (rows - 1).bit_length())


def from_jax(
    log_density: Callable[..., Any],
    dim_or_example: Any,
    *,
    parameters: Parameters | None = None,
    name: str | None = None,
) -> Target:
    """Make a target of a function of JAX: compiled, for all rows of a batch at once, with its gradient; on a GPU if JAX has one.

    Parameters
    ----------
    log_density
        A function of one point that returns its log density.
    dim_or_example
        The number of coordinates, and points are vectors; or an example of a point, a vector or a dictionary of arrays.
        What a dictionary names, draws and summaries name too.
    parameters
        Supports and priors, as in :func:`sterna.from_pyfunc`; with an example by names, of those that have any.
    name
        What run folders call it.

    Numbers have 64 bits in it, whatever JAX is set to elsewhere.
    """
    import jax
    import jax.experimental
    import numpy as np

    plain = hasattr(dim_or_example, "__index__") or not isinstance(dim_or_example, Mapping)
    if plain:
        dim = _dim(dim_or_example if hasattr(dim_or_example, "__index__") else np.size(dim_or_example))
        described = describe(parameters)
        point: Callable[[Any], Any] = lambda x: x
    else:
        shapes = {key: list(np.shape(value)) for key, value in dim_or_example.items()}
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        dim = _dim(sum(sizes))
        ends = np.cumsum(sizes).tolist()
        given = {key: value for key, value in parameters.items()} if isinstance(parameters, Mapping) else {}
        if set(given) - set(shapes):
            raise ConfigError(f"parameters names {sorted(set(given) - set(shapes))}, which the example does not")
        supports = {key: (shapes[key], *one[2:]) for key, one in zip(given, describe(given), strict=True)}
        described = [(key, *supports.get(key, (shape, None, None))) for key, shape in shapes.items()]

        def point(x: Any) -> Any:
            parts = zip(shapes, ends, sizes, strict=True)
            return {key: x[end - size : end].reshape(shapes[key]) for key, end, size in parts}

    each = jax.vmap(jax.value_and_grad(lambda x: log_density(point(x))))

    def together(x: Any) -> Any:
        """One array, since each that is fetched costs as much as the whole call."""
        value, score = each(x)
        return jax.numpy.concatenate([value[:, None], score], axis=1)

    call = jax.jit(together)
    wide: Any = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

    def evaluate(x: Any) -> tuple[Any, Any]:
        rows = len(x)
        room = _padded(rows)
        if room != rows:
            # Sooner made than by concatenating what was broadcast: calls take some 40 us.
            given, x = x, np.empty((room, x.shape[1]))
            x[:rows], x[rows:] = given, given[-1]
        with wide(True):
            both = np.asarray(call(x))
        return both[:rows, 0], both[:rows, 1:]

    core = Problem.callback(evaluate, dim, True, described, _name(log_density, name))
    return Target._of(core, threads=1)


def from_torch(
    log_density: Callable[..., Any],
    dim: int,
    *,
    parameters: Parameters | None = None,
    name: str | None = None,
    device: str = "cpu",
) -> Target:
    """Make a target of a function of torch: of one point, which is mapped over all rows of a batch, with its gradient.

    Points are tensors of 64-bit numbers on the given device. ``parameters`` and ``name`` are as in
    :func:`sterna.from_pyfunc`.
    """
    import torch

    call = torch.func.vmap(torch.func.grad_and_value(log_density))

    def evaluate(x: Any) -> tuple[Any, Any]:
        score, value = call(torch.from_numpy(x).to(device))
        return value.detach().cpu().numpy(), score.detach().cpu().numpy()

    core = Problem.callback(evaluate, _dim(dim), True, describe(parameters), _name(log_density, name))
    return Target._of(core, threads=1)
