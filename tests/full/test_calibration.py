"""log Z by BAR agrees with the truth within its own error bar, and the error bar is right.

80 seeds a target, fixed (160 in depth), or as many as STERNA_CALIBRATION says. The standard deviation of 80 z-scores of a normal lies within
0.8–1.25 but for 7e-3 (of 160: 4e-4). A standard error is an estimate too, and one that came out small makes a large z-score of a
common error; so an outlier is an error far beyond its own standard error and the root mean square of all: of 80 normals none is
beyond 4.5 but for 5.4e-4 (of 160: 1.1e-3). Of the first 40 z-scores as they are none is beyond 4: 2.5e-3 for normals.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from depth import DEEP, count
from sterna_cli import summary

SEEDS = count("STERNA_CALIBRATION", 80, 160)
TARGETS = {
    "gmm": dict(target__dim=10, chains__count=12),
    "dw4": dict(chains__count=8),
    "many-well": dict(chains__count=12),
    "normal": dict(target__dim=10, chains__count=5),
    # Wider than a standard normal, and its neck is narrow: a wide reference and careful moves.
    "funnel": dict(target__dim=4, chains__count=12, reference__scale=8, explorer__steps=3, explorer__acceptance=0.98),
    "banana": dict(chains__count=8),
}


# A choice must not bend what is estimated after it.
CHOSEN = ["gmm", "dw4", "many-well", "normal", "banana"] if DEEP else ["gmm"]


@pytest.mark.parametrize(("kind", "swaps"), [(kind, "none") for kind in TARGETS] + [(kind, "auto") for kind in CHOSEN])
def test_log_z(tmp_path, kind, swaps):
    def error_and_standard_error(seed):
        settings = dict(TARGETS[kind], target__kind=kind, chains__ensembles=1, run__iterations=20_000)
        settings |= dict(accelerator__kind=swaps)
        found = summary(tmp_path / str(seed), seed=seed, **settings)["log_z"]
        return found["bar"] - found["truth"], found["standard_error"]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        error, standard_error = np.array(list(pool.map(error_and_standard_error, range(1, SEEDS + 1)))).T
    z = error / standard_error
    usual = np.sqrt((standard_error**2).mean())
    farthest = (np.abs(error) / np.maximum(standard_error, usual)).max()
    print(f"\n{kind}, {swaps}: z-scores {z.mean():+.2f} ± {z.std(ddof=1):.2f}, largest error {farthest:.2f} standard errors")
    assert 0.8 < z.std(ddof=1) < 1.25
    assert np.abs(z[:40]).max() < 4
    assert farthest < 4.5
