"""The paper's rows for plain parallel tempering, and what adaptation makes of them.

T = 100,000 iterations, four seeds in depth, two otherwise. Bounds are those of the paper's own figures (errata E18: N counts chains).
`pytest -s tests/full/test_paper_rows.py` prints what was measured.
"""

import numpy as np
import pytest

from depth import DEEP
from sterna_cli import summary

SEEDS = (1, 2, 3, 4) if DEEP else (1, 2)
PAPER = dict(chains__ensembles=1, schedule__criterion="rejection", run__iterations=100_000)


def measure(tmp_path, label, **settings):
    runs = [summary(tmp_path / str(seed), seed=seed, **settings) for seed in SEEDS]
    trips = np.array([r["round_trips"] for r in runs])
    barrier = np.array([r["global_barrier"] for r in runs])
    z = np.array([(r["log_z"]["bar"] - r["log_z"]["truth"]) / r["log_z"]["standard_error"] for r in runs])
    print(f"\n{label}: R {trips.mean():.0f} ± {trips.std(ddof=1) / len(SEEDS) ** 0.5:.0f}, Λ {barrier.mean():.3f}, z {z.round(1)}")
    assert np.abs(z).max() < 4  # 4 draws of a normal exceed 4 with probability 2.5e-4, 2 with half of it
    return trips.mean(), barrier.mean()


@pytest.mark.parametrize("chains, low, high", [(30, 1830, 1950), (10, 650, 730), (6, 8, 30)])
def test_gmm(tmp_path, chains, low, high):
    settings = dict(PAPER, target__kind="gmm", target__dim=10, chains__count=chains, explorer__step_size=0.03)
    trips, barrier = measure(tmp_path, f"GMM-10, {chains} chains", **settings)
    assert low <= trips <= high
    if chains == 30:
        assert abs(barrier - 8.33) <= 0.03


@pytest.mark.parametrize("chains, expected", [(5, 2320), (10, 5110), (30, 7560)])
def test_dw4(tmp_path, chains, expected):
    settings = dict(PAPER, target__kind="dw4", chains__count=chains, explorer__step_size=0.22)
    trips, barrier = measure(tmp_path, f"DW-4, {chains} chains", **settings)
    assert abs(trips / expected - 1) < 0.03
    if chains == 30:
        assert abs(barrier - 4.02) <= 0.02


@pytest.mark.parametrize("chains, expected", [(5, 585), (10, 1885), (30, 3710)])
def test_many_well(tmp_path, chains, expected):
    settings = dict(PAPER, target__kind="many-well", chains__count=chains, explorer__step_size=0.22)
    trips, barrier = measure(tmp_path, f"ManyWell-32, {chains} chains", **settings)
    assert abs(trips / expected - 1) < 0.04
    if chains == 30:
        assert abs(barrier - 5.48) <= 0.02


@pytest.mark.parametrize("chains, least", [(6, 220), (10, 1100), (30, 2900)])
def test_adapted_moves_and_barrier_tuning(tmp_path, chains, least):
    settings = dict(target__kind="gmm", target__dim=10, chains__count=chains, chains__ensembles=1)
    trips, _ = measure(tmp_path, f"GMM-10 adapted, {chains} chains", run__iterations=100_000, **settings)
    assert trips >= least


# A JAX program's figures for the true diffusion path, one seed each.
DIFFUSION = {
    10: (1932, 3896, 5597, 8996),
    50: (252, 945, 1829, 3490),
    100: (49, 299, 959, 2148),
    2: (12246, 13230, 16375, 21703),
}


@pytest.mark.parametrize("dim, step", [(dim, step) for dim in (DIFFUSION if DEEP else [10, 2]) for step in range(4)])
def test_true_diffusion_path(tmp_path, dim, step):
    k = (0, 1, 2, 5)[step]
    settings = dict(PAPER, target__kind="gmm", target__dim=dim, chains__count=30, explorer__step_size=0.03,
                    accelerator__kind="diffusion", accelerator__score="exact", accelerator__steps=k)
    trips, _ = measure(tmp_path, f"diffusion, GMM-{dim}, K = {k}", **settings)
    expected = DIFFUSION[dim][step]
    print(f"  the other program: {expected}, ratio {trips / expected:.3f}")
    assert trips / expected > (0.85 if expected < 500 else 0.94)
