"""Other programs as judges: JAX for derivatives, OpenMM for energies and forces, mdtraj for trajectories."""

import os
import subprocess
import sys

import pytest

from sterna_cli import ROOT, example


@pytest.mark.parametrize("script, judged", [
    ("crates/sterna-neural/tests/oracle.py", "oracle"),
    ("scripts/molecule/check.py", "conformations"),
])
def test_agrees(script, judged):
    built = {**os.environ, "STERNA_EXAMPLE": str(example(judged))}
    done = subprocess.run([sys.executable, script], cwd=ROOT, env=built, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
