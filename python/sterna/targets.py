"""The built-in targets. The command line can go on with runs of them, and the other way round."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _core
from ._target import Target, configured

__all__ = [
    "alanine_dipeptide",
    "banana",
    "correlated_normal",
    "dw4",
    "eggbox",
    "funnel",
    "galaxies",
    "gmm",
    "lennard_jones",
    "library",
    "log_gamma",
    "many_well",
    "molecule",
    "mrna",
    "normal",
    "phi4",
    "rosenbrock",
    "shells",
    "spike_slab",
    "stan",
]


def _built_in(kind: str, **fields: Any) -> Target:
    return configured({"kind": kind, **fields})


def kinds() -> dict[str, str]:
    """What is built in, with what it is: what ``sterna targets`` prints."""
    return {kind: about for kind, _, about in _core.target_kinds() if kind != "own"}


def gmm(dim: int | None = None) -> Target:
    """A mixture of 40 normals, drawn once and for all."""
    return _built_in("gmm", dim=dim)


def dw4() -> Target:
    """Four particles in the plane with double wells between them, without their centre of mass: 6 coordinates."""
    return _built_in("dw4")


def many_well(dim: int | None = None) -> Target:
    """Independent double wells in pairs of coordinates: 2 to the power of half the dimension modes."""
    return _built_in("many-well", dim=dim)


def normal(
    dim: int | None = None,
    *,
    mean: float | Sequence[float] | None = None,
    precision: float | Sequence[float] | None = None,
) -> Target:
    """A normal with diagonal precision."""
    return _built_in("normal", dim=dim, mean=mean, precision=precision)


def funnel(dim: int | None = None) -> Target:
    """Neal's funnel."""
    return _built_in("funnel", dim=dim)


def banana(dim: int | None = None) -> Target:
    """A bent normal."""
    return _built_in("banana", dim=dim)


def mrna() -> Target:
    """Kinetics of mRNA transfection, which data leave symmetric in two rates."""
    return _built_in("mrna")


def galaxies() -> Target:
    """A mixture of normals for velocities of galaxies, with labels that switch."""
    return _built_in("galaxies")


def shells(dim: int | None = None) -> Target:
    """Two Gaussian shells in a box."""
    return _built_in("shells", dim=dim)


def eggbox() -> Target:
    """Equal narrow peaks in a regular pattern in a square."""
    return _built_in("eggbox")


def log_gamma(dim: int | None = None) -> Target:
    """Four modes with heavy tails in a box."""
    return _built_in("log-gamma", dim=dim)


def rosenbrock(dim: int | None = None) -> Target:
    """Curved valleys in pairs of coordinates, in a box."""
    return _built_in("rosenbrock", dim=dim)


def correlated_normal(dim: int | None = None) -> Target:
    """A normal whose coordinates all have the correlation 0.4, in a box."""
    return _built_in("correlated-normal", dim=dim)


def spike_slab(dim: int | None = None) -> Target:
    """Two normals with equal weights, one ten times narrower, in a box."""
    return _built_in("spike-slab", dim=dim)


def lennard_jones(particles: int | None = None) -> Target:
    """A cluster of particles in a harmonic trap, without their centre of mass: 36 coordinates for 13 of them."""
    return _built_in("lennard-jones", particles=particles)


def phi4(length: int | None = None, *, mass_squared: float | None = None, coupling: float | None = None) -> Target:
    """A field on a periodic square lattice, of either sign."""
    return _built_in("phi4", length=length, mass_squared=mass_squared, coupling=coupling)


def alanine_dipeptide(*, temperature: float | None = None) -> Target:
    """Alanine dipeptide in vacuum (amber14), without its centre of mass: 63 coordinates."""
    return _built_in("alanine-dipeptide", temperature=temperature)


def molecule(system: str | os.PathLike[str], positions: str | os.PathLike[str], *, temperature: float | None = None) -> Target:
    """A small molecule in vacuum, from OpenMM's XML of a System and a file of positions (.pdb, or .json or .csv in nm)."""
    files = {"system": os.path.abspath(system), "positions": os.path.abspath(positions)}
    return _built_in("molecule", **files, temperature=temperature)


def library(path: str | os.PathLike[str], **more: Any) -> Target:
    """A target in a shared library: see :func:`sterna.from_library`."""
    from ._target import from_library

    return from_library(path, **more)


def stan(model: Any, data: Any = None, **more: Any) -> Target:
    """A Stan model: see :func:`sterna.from_stan`."""
    from ._target import from_stan

    return from_stan(model, data, **more)
