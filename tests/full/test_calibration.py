"""log Z by BAR agrees with the truth within its own error bar, and the error bar is right.

Forty seeds a target. The standard deviation of forty z-scores of a normal lies within 0.7–1.34 but for 1e-3;
the bounds are tighter, so the seeds are fixed.
"""

import numpy as np
import pytest

from sterna_cli import summary

TARGETS = {
    "gmm": dict(target__dim=10, chains__count=12),
    "dw4": dict(chains__count=8),
    "many-well": dict(chains__count=12),
    "normal": dict(target__dim=10, chains__count=5),
    # Wider than a standard normal, and its neck is narrow: a wide reference and careful moves.
    "funnel": dict(target__dim=4, chains__count=12, reference__scale=8, explorer__steps=3, explorer__acceptance=0.98),
    "banana": dict(chains__count=8),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_log_z(tmp_path, kind):
    z = []
    for seed in range(1, 41):
        settings = dict(TARGETS[kind], target__kind=kind, chains__ensembles=1, run__iterations=20_000)
        found = summary(tmp_path / str(seed), seed=seed, **settings)["log_z"]
        z.append((found["bar"] - found["truth"]) / found["standard_error"])
    z = np.array(z)
    print(f"\n{kind}: z-scores {z.mean():+.2f} ± {z.std(ddof=1):.2f}, largest {np.abs(z).max():.2f}")
    assert 0.8 < z.std(ddof=1) < 1.25
    assert np.abs(z).max() < 4
