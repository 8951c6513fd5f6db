"""Opens a DCD trajectory and a PDB file that the crate writes with mdtraj (pip install mdtraj) and compares.

    python scripts/molecule/check_trajectory.py
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import mdtraj
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "assets" / "alanine-dipeptide"

if __name__ == "__main__":
    reference = json.loads((FOLDER / "reference.json").read_text())["conformations"]
    expected = np.array([row["coordinates"] for row in reference])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "trajectory"
        files = [FOLDER / "system.xml", FOLDER / "topology.pdb", FOLDER / "reference.json", out]
        built = os.environ.get("STERNA_EXAMPLE")
        program = [built] if built else ["cargo", "run", "--quiet", "-p", "sterna-molecule", "--example", "trajectory", "--"]
        subprocess.run([*program, *files], cwd=ROOT, check=True)
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
    print("1 passed, 0 failed")
