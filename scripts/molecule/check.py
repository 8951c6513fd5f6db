"""Compares the Rust force field with OpenMM itself on fresh conformations, and opens the trajectories that the crate writes with
mdtraj (pip install openmm mdtraj numpy).

    python scripts/molecule/check.py [--count 200] [--seed 7]

For each of three molecules: `count` conformations from OpenMM's own dynamics at 300 and 1200 K, one in eight
distorted. Energies by term and each atom's force must agree to 1e-10 relative. A DCD trajectory and a PDB file must hold the
positions they were given. Exit code 1 if not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mdtraj
import numpy as np
import openmm
from openmm import app

from build_systems import ALANINE, ROOT, TEST_DATA, evaluate, reference_context, sample

TOLERANCE = 1e-10
MOLECULES = {"alanine dipeptide": (ALANINE, ""), "alanine tetrapeptide": (TEST_DATA, "ala3."), "ACE-PHE-NME": (TEST_DATA, "phe.")}


def rust(*arguments):
    built = os.environ.get("STERNA_EXAMPLE")
    program = [built] if built else ["cargo", "run", "--quiet", "-p", "sterna-molecule", "--example", "conformations", "--"]
    return subprocess.run([*program, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def compare(name, folder, stem, count, seed):
    path = folder / f"{stem}system.xml"
    system = openmm.XmlSerializer.deserialize(path.read_text())
    start = app.PDBFile(str(folder / f"{stem}topology.pdb")).positions
    conformations = sample(system, start, count, seed, interval=40)
    with tempfile.TemporaryDirectory() as scratch:
        points = Path(scratch) / "points.json"
        points.write_text(json.dumps([x.tolist() for x in conformations]))
        found = json.loads(rust(path, points))["conformations"]
    context = reference_context(openmm.XmlSerializer.clone(system))
    worst = {}
    for x, row in zip(conformations, found, strict=True):
        energy, forces = evaluate(context, x)
        for term, value in energy.items():
            worst[term] = max(worst.get(term, 0.0), abs(row["energy"][term] - value) / abs(value))
        error = np.linalg.norm(np.array(row["forces"]) - forces, axis=1) / np.linalg.norm(forces, axis=1)
        worst["force"] = max(worst.get("force", 0.0), error.max())
    print(f"{name}: {len(conformations)} conformations, worst relative error " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    return all(v < TOLERANCE for v in worst.values())


def check_trajectory():
    reference = json.loads((ALANINE / "reference.json").read_text())["conformations"]
    expected = np.array([row["coordinates"] for row in reference])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "trajectory"
        rust(ALANINE / "system.xml", ALANINE / "reference.json", ALANINE / "topology.pdb", out)
        trajectory = mdtraj.load_dcd(f"{out}.dcd", top=f"{out}.pdb")
        start = mdtraj.load_pdb(f"{out}.pdb")
    assert trajectory.xyz.shape == expected.shape, (trajectory.xyz.shape, expected.shape)
    assert np.abs(trajectory.xyz - expected).max() < 1e-6
    assert np.abs(start.xyz[0] - expected[0]).max() < 1e-4
    assert [a.name for a in trajectory.topology.atoms][8] == "CA" and trajectory.topology.n_bonds == 21
    phi = np.degrees(mdtraj.compute_phi(trajectory)[1][:, 0])
    printed = np.array([row["cv"]["phi_deg"] for row in reference])
    assert np.abs(phi - printed).max() < 0.01
    print(f"mdtraj {mdtraj.__version__}: {len(expected)} frames, positions and phi agree")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    check_trajectory()
    good = [compare(name, *where, options.count, options.seed) for name, where in MOLECULES.items()]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    sys.exit(0 if all(good) else 1)
