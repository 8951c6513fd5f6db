"""Compares the Rust force field with OpenMM itself (pip install openmm numpy) on fresh conformations.

    python scripts/molecule/check_against_openmm.py [--count 200] [--seed 7]

For each of three molecules: `count` conformations from OpenMM's own dynamics at 300 and 1200 K, one in eight
distorted. Energies by term and each atom's force must agree to 1e-10 relative. Exit code 1 if not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import openmm
from openmm import app

from build_systems import ALANINE, ROOT, TEST_DATA, evaluate, reference_context, sample

TOLERANCE = 1e-10
MOLECULES = {"alanine dipeptide": (ALANINE, ""), "alanine tetrapeptide": (TEST_DATA, "ala3."), "ACE-PHE-NME": (TEST_DATA, "phe.")}


def rust(system, points):
    built = os.environ.get("STERNA_EXAMPLE")
    program = [built] if built else ["cargo", "run", "--quiet", "-p", "sterna-molecule", "--example", "evaluate", "--"]
    return json.loads(subprocess.run([*program, system, points], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)["conformations"]


def compare(name, folder, stem, count, seed):
    path = folder / f"{stem}system.xml"
    system = openmm.XmlSerializer.deserialize(path.read_text())
    start = app.PDBFile(str(folder / f"{stem}topology.pdb")).positions
    conformations = sample(system, start, count, seed, interval=40)
    with tempfile.TemporaryDirectory() as scratch:
        points = Path(scratch) / "points.json"
        points.write_text(json.dumps([x.tolist() for x in conformations]))
        found = rust(path, points)
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    good = [compare(name, *where, options.count, options.seed) for name, where in MOLECULES.items()]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    sys.exit(0 if all(good) else 1)
