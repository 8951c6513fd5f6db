"""Trained transports with default settings: round trips, log Z and the guard (§5, App. E.2).

T = 100,000 iterations, the paper's fixed-step moves unless said, two seeds in depth and one otherwise. `scripts/measure/trained.py` prints the
same rows with the cost of training.
"""

import numpy as np
import pytest

from depth import DEEP
from sterna_cli import summary

SEEDS = (1, 2) if DEEP else (1,)
PAPER = dict(chains__ensembles=1, schedule__criterion="rejection", run__iterations=100_000)
GMM = dict(PAPER, target__kind="gmm", target__dim=10, explorer__step_size=0.03)
DW4 = dict(PAPER, target__kind="dw4", explorer__step_size=0.22)
MANY_WELL = dict(PAPER, target__kind="many-well", explorer__step_size=0.22)


def measure(tmp_path, label, **settings):
    runs = [summary(tmp_path / str(seed), seed=seed, **settings) for seed in SEEDS]
    trips = np.mean([r["round_trips"] for r in runs])
    z = np.array([(r["log_z"]["bar"] - r["log_z"]["truth"]) / r["log_z"]["standard_error"] for r in runs])
    print(f"\n{label}: R {trips:.0f}, z {z.round(1)}, alarms {[a['code'] for r in runs for a in r['alarms']]}")
    assert np.abs(z).max() < 4  # 2 draws of a normal exceed 4 with probability 1.3e-4
    return trips


def test_flow(tmp_path):
    assert measure(tmp_path, "flow, 6 chains", **GMM, chains__count=6, accelerator__kind="flow") >= 10_000


@pytest.mark.parametrize("target, chains, steps, least", [
    (GMM, 10, 2, 7500), (DW4, 10, 5, 9800), (MANY_WELL, 10, 1, 2900),
    *([(GMM, 10, 1, 6000), (GMM, 10, 5, 9500), (DW4, 10, 1, 6400), (MANY_WELL, 10, 5, 4800)] if DEEP else []),
])
def test_controlled_diffusion(tmp_path, target, chains, steps, least):
    label = f"cmcd, {target['target__kind']}, {chains} chains, K = {steps}"
    kind = dict(chains__count=chains, accelerator__kind="cmcd", accelerator__steps=steps)
    assert measure(tmp_path, label, **target, **kind) >= least


# Batches grow with the pairs that share them (docs/training.md). Some ten minutes of a core each.
@pytest.mark.skipif(not DEEP, reason="in depth")
@pytest.mark.parametrize("along_score", ["false", "true"])
def test_more_chains_never_hurt(tmp_path, along_score):
    kind = dict(accelerator__kind="cmcd", accelerator__steps=5, network__along_score=along_score)
    few = measure(tmp_path / "10", "10 chains", **GMM, chains__count=10, **kind)
    assert measure(tmp_path / "30", "30 chains", **GMM, chains__count=30, **kind) > few
