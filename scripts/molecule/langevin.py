"""Populations of alanine dipeptide's basins at a temperature from OpenMM's own Langevin dynamics.

    python scripts/molecule/langevin.py [--nanoseconds 5] [--temperature 300] [--seed 1]

Friction 1/ps, steps of 1 fs without constraints, Reference platform (double precision). At 300 K the dynamics hardly ever
cross to phi > 0, so populations are given phi < 0 (here: outside 0 to 125 degrees). Standard errors from ten blocks. JSON out.
"""

import argparse
import json

import numpy as np
import openmm
from openmm import app, unit

from build_systems import ALANINE

PHI, PSI = (4, 6, 8, 14), (6, 8, 14, 16)


def dihedral(x, atoms):
    i, j, k, l = (x[a] for a in atoms)
    b1, b2, b3 = j - i, k - j, l - k
    n = np.cross(b2, b3)
    return np.degrees(np.arctan2(np.linalg.norm(b2) * b1 @ n, np.cross(b1, b2) @ n)) % 360.0


def basin(phi, psi):
    """As sterna_molecule::Basin."""
    if phi < 125.0:
        return "C7ax"
    return "C5" if 110.0 <= psi < 230.0 else "alphaR" if 230.0 <= psi < 330.0 else "C7eq"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nanoseconds", type=float, default=5.0)
    parser.add_argument("--temperature", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    system = openmm.XmlSerializer.deserialize((ALANINE / "system.xml").read_text())
    integrator = openmm.LangevinMiddleIntegrator(options.temperature, 1.0, 0.001)
    integrator.setRandomNumberSeed(options.seed)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(app.PDBFile(str(ALANINE / "topology.pdb")).positions)
    integrator.step(20_000)
    found, energies = [], []
    for _ in range(int(options.nanoseconds * 1e6 / 200)):
        integrator.step(200)
        state = context.getState(getPositions=True, getEnergy=True)
        x = state.getPositions(asNumpy=True).value_in_unit(unit.nanometer)
        found.append(basin(dihedral(x, PHI), dihedral(x, PSI)))
        energies.append(state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole))
    blocks = np.array_split(np.array(found), 10)
    populations = {}
    for name in ("C7eq", "C5", "alphaR"):
        shares = [np.mean(block[block != "C7ax"] == name) for block in blocks]
        populations[name] = {"population": float(np.mean(shares)), "standard_error": float(np.std(shares, ddof=1) / 10**0.5)}
    means = [np.mean(block) for block in np.array_split(np.array(energies), 10)]
    energy = {"mean": float(np.mean(means)), "standard_error": float(np.std(means, ddof=1) / 10**0.5)}
    crossed = float(np.mean(np.array(found) == "C7ax"))
    print(json.dumps({"given_phi_negative": populations, "phi_positive": crossed, "energy_kj_mol": energy}))
