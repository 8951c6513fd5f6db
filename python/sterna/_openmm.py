"""Systems of OpenMM: by own kernels where they know all forces, else by OpenMM's platform."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

from ._core import ConfigError, Problem
from ._target import Target, configured

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# kJ/mol/K
_GAS_CONSTANT = 8.31446261815324e-3


def _positions(positions: Any) -> npt.NDArray[np.float64]:
    import numpy as np

    if hasattr(positions, "value_in_unit"):
        from openmm import unit

        positions = positions.value_in_unit(unit.nanometer)
    rows = [[one.x, one.y, one.z] if hasattr(one, "x") else list(one) for one in positions]
    found = np.asarray(rows, dtype=float)
    if found.ndim != 2 or found.shape[1] != 3:
        raise ConfigError(f"positions have shape {found.shape}: x, y and z of each atom are needed, in nm")
    return found


def from_openmm(
    system: Any,
    positions: Any,
    *,
    temperature: float = 300.0,
    platform: str | None = None,
) -> Target:
    """Make a target of a system of OpenMM at a temperature.

    Parameters
    ----------
    system
        An ``openmm.System``.
    positions
        A conformation to start from: a quantity of OpenMM, or numbers in nm.
    temperature
        In kelvin, or a quantity.
    platform
        ``"sterna"`` for own kernels alone, or the name of a platform of OpenMM. If it is not said, own kernels compute a
        molecule in vacuum whose forces they know (harmonic bonds and angles, periodic torsions, non-bonded without cutoff):
        fast, with all transports, and the command line can go on with the run. Anything else OpenMM's Reference platform
        computes, one conformation at a time, which costs tens of microseconds each and more; a warning says so. ``"CPU"``
        and ``"CUDA"`` are faster for large systems, but add forces in single precision and in an order that hangs on
        threads: a run there is not repeated to the bit.
    """
    import openmm

    if not isinstance(system, openmm.System):
        raise ConfigError(f"{system!r} is no openmm.System: createSystem of a force field makes one")
    if hasattr(temperature, "value_in_unit"):
        temperature = temperature.value_in_unit(openmm.unit.kelvin)
    start = _positions(positions)
    if len(start) != system.getNumParticles():
        raise ConfigError(f"there are {len(start)} positions, but {system.getNumParticles()} particles")
    if platform in (None, "sterna"):
        try:
            return _own_kernels(system, start, temperature)
        except ConfigError as error:
            if platform == "sterna":
                raise
            warnings.warn(
                f"own kernels cannot compute this system ({error}): OpenMM does, one conformation at a time, which is slower",
                stacklevel=2,
            )
    return _by_openmm(system, start, temperature, platform or "Reference")


def _own_kernels(system: Any, start: npt.NDArray[np.float64], temperature: float) -> Target:
    import openmm

    folder = tempfile.TemporaryDirectory(prefix="sterna-")
    files = {name: os.path.join(folder.name, name) for name in ("system.xml", "positions.json")}
    with open(files["system.xml"], "w", encoding="utf-8") as file:
        file.write(openmm.XmlSerializer.serialize(system))
    with open(files["positions.json"], "w", encoding="utf-8") as file:
        json.dump(start.tolist(), file)
    fields = {"system": files["system.xml"], "positions": files["positions.json"], "temperature": float(temperature)}
    target = configured({"kind": "molecule", **fields})
    # A run copies the files into its folder when it begins.
    target._kept = folder
    return target


def _mean_free(atoms: int) -> npt.NDArray[np.float64]:
    """Orthonormal rows, all orthogonal to (1, …, 1): Helmert's."""
    import numpy as np

    rows = np.zeros((atoms - 1, atoms))
    for k in range(1, atoms):
        rows[k - 1, :k] = 1.0
        rows[k - 1, k] = -k
        rows[k - 1] /= np.sqrt(k * (k + 1.0))
    return rows


def _by_openmm(system: Any, start: npt.NDArray[np.float64], temperature: float, platform: str) -> Target:
    """Coordinates are positions without their centre, relative to the start, in units of 0.1 Å."""
    import numpy as np
    import openmm

    unit = openmm.unit
    integrator = openmm.VerletIntegrator(0.001)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform))
    basis, beta, scale = _mean_free(len(start)), 1.0 / (_GAS_CONSTANT * temperature), 0.01

    def conformation(point: Any) -> Any:
        return start + scale * (basis.T @ point.reshape(-1, 3))

    def evaluate(x: Any) -> tuple[Any, Any]:
        log_density, score = np.empty(len(x)), np.empty_like(x)
        for i, point in enumerate(x):
            context.setPositions(conformation(point))
            state = context.getState(getEnergy=True, getForces=True)
            log_density[i] = -beta * state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
            forces = state.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer)
            score[i] = (beta * scale) * (basis @ forces).ravel()
        return log_density, score

    dim = 3 * len(start) - 3
    core = Problem.callback(evaluate, dim, True, [], "openmm")
    values = lambda x: np.stack([conformation(point).ravel() for point in x])
    return Target._of(core.speaking_of(values, [("positions", [len(start), 3], None, None)]), threads=1)
