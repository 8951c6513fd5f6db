"""Other programs as judges: JAX for derivatives, OpenMM for energies and forces, mdtraj for trajectories."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("script", [
    "crates/sterna-neural/tests/oracle.py",
    "scripts/molecule/check_against_openmm.py",
    "scripts/molecule/check_trajectory.py",
])
def test_agrees(script):
    done = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
