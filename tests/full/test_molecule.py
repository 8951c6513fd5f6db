"""Alanine dipeptide at length: populations against themselves and against OpenMM, and the table's round trips.

`pytest -s tests/full/test_molecule.py` prints what was measured.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from depth import DEEP
from sterna_cli import ROOT, summary

ALA = dict(target__kind="alanine-dipeptide")


def populations(found, given=False):
    (residue,) = found["molecule"]["residues"]
    entries = residue["given_negative_phi" if given else "basins"]
    return {name: (entry["population"], entry["standard_error"]) for name, entry in entries.items()}


@pytest.fixture(scope="module")
def independent(tmp_path_factory):
    """Two independent runs of plain parallel tempering, 8 chains from 1200 to 300 K."""
    folder = tmp_path_factory.mktemp("populations")
    settings = dict(ALA, chains__count=8, chains__ensembles=4, explorer__torsion_moves=4, run__iterations=100_000)
    return [summary(folder / str(seed), seed=seed, threads=0, **settings) for seed in (1, 2)]


@pytest.mark.xdist_group("independent runs")
def test_independent_runs_agree(independent):
    first, second = map(populations, independent)
    for name in first:
        (p, e), (q, f) = first[name], second[name]
        print(f"{name}: {p:.4f} ± {e:.4f}, {q:.4f} ± {f:.4f}")
        # Three standard errors on four basins: about 1% on a fresh seed; the seeds are fixed.
        assert abs(p - q) < 3 * np.hypot(e, f)
    for found in independent:
        assert 0.015 < populations(found)["C7ax"][0] < 0.045


@pytest.mark.xdist_group("independent runs")
def test_openmm_agrees_given_negative_phi(independent):
    command = [sys.executable, ROOT / "scripts" / "molecule" / "langevin.py", "--nanoseconds", "20" if DEEP else "4"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    theirs = json.loads(done.stdout)["given_phi_negative"]
    for found in independent:
        ours = populations(found, given=True)
        for name in ("C7eq", "C5"):
            (p, e), (q, f) = ours[name], (theirs[name]["population"], theirs[name]["standard_error"])
            print(f"{name}: {p:.4f} ± {e:.4f}, OpenMM's Langevin dynamics {q:.4f} ± {f:.4f}")
            # Four errors, since theirs comes from ten blocks; the integrator's step of 1 fs moves populations by less.
            assert abs(p - q) < 4 * np.hypot(e, f)


# The paper prints 199 for parallel tempering, and 465, 597 and 627 for its controlled diffusions of 1, 2 and 5 steps. A C program
# measured 180-251, 2,686-3,074 (scaling) and 5,963-7,064 (affine).
@pytest.mark.parametrize("kind, steps, low, high", [
    ("none", 0, 180, 450), ("scaling", 1, 2500, 4000), ("affine", 1, 5500, 20_000), ("flow", 1, 9000, 25_000),
    ("cmcd", 1, 5500, 20_000), ("cmcd", 2, 5500, 20_000), ("cmcd", 5, 5500, 20_000),
])
def test_round_trips(tmp_path, kind, steps, low, high):
    """Four ladders of four chains, geometric in temperature, 5 leapfrog steps, 50,000 iterations."""
    settings = dict(ALA, chains__count=4, chains__ensembles=4, schedule__criterion="fixed", accelerator__kind=kind,
                    accelerator__steps=steps, run__iterations=50_000)
    found = summary(tmp_path / kind, threads=0, **settings)
    each = found["round_trips"] / 4
    print(f"{kind}, K = {steps}: {each:.0f} round trips a ladder, rejections {np.round(found['rejection_rates'], 3)}")
    assert low <= each <= high


def test_the_papers_local_moves(tmp_path):
    settings = dict(ALA, chains__count=4, chains__ensembles=4, schedule__criterion="fixed", explorer__masses="unit",
                    explorer__adaptation="paper", run__iterations=50_000)
    found = summary(tmp_path / "paper", threads=0, **settings)
    each = found["round_trips"] / 4
    print(f"parallel tempering with the paper's rule: {each:.0f} round trips a ladder")
    assert 180 <= each <= 330
