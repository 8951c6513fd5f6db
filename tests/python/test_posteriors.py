"""The built-in posteriors against numpy and scipy, which know nothing of them but the data and the model."""

import json
import pathlib
import re
import subprocess

import numpy as np
import pytest
import scipy.stats

from sterna_cli import PROGRAM

ROOT = pathlib.Path(__file__).resolve().parents[2]


def data(name, constant):
    """The numbers of a constant of the library."""
    text = (ROOT / "crates" / "sterna" / "src" / "targets" / f"{name}.rs").read_text()
    numbers = re.search(rf"{constant}: \[f64; \d+\] = \[(.*?)\]", text, re.S)[1]
    return np.array([float(number) for number in numbers.split(",") if number.strip()])


def mrna(x):
    lower, upper = np.array([-2, -5, -5, -5, -2]), np.array([1, 5, 5, 5, 2])
    share = scipy.special.expit(x)
    start, height, beta, delta, noise = 10 ** (lower + (upper - lower) * share)
    since = 0.2 * np.arange(51) - start
    # The sum over one exponential after the other: an integral, so that near rates are no special case.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    late = np.maximum(since, 0.0)[:, None]
    moments = late / 2 * (1 + nodes)
    mean = height * (np.exp(-beta * moments - delta * (late - moments)) * weights * late / 2).sum(axis=1)
    seen = data("mrna", "FLUORESCENCE")
    return scipy.stats.norm(mean, noise).logpdf(seen).sum() + np.log((upper - lower) * share * (1 - share)).sum()


def galaxies(x):
    mean, width, weight = x[:3], np.exp(x[3:6]), scipy.special.softmax(x[6:])
    seen = data("galaxies", "VELOCITIES")[:, None]
    prior = scipy.stats.norm(20, 10).logpdf(mean).sum() + scipy.stats.norm.logpdf(x[3:]).sum()
    return prior + np.log((weight * scipy.stats.norm(mean, width).pdf(seen)).sum(axis=1)).sum()


CASES = {
    "mrna": (mrna, [1.1, 0.1, -0.2, -0.05, -0.6], 0.2),
    "galaxies": (galaxies, [9.7, 21.4, 33.0, -0.8, 0.8, -0.1, -0.5, 1.5, -0.9], 0.5),
}


@pytest.mark.parametrize("kind", CASES)
def test_values_and_gradients(tmp_path, kind):
    exact, middle, spread = CASES[kind]
    points = middle + spread * np.random.default_rng(3).normal(size=(20, len(middle)))
    config, file = tmp_path / "target.toml", tmp_path / "points.json"
    config.write_text(f'[target]\nkind = "{kind}"\n')
    file.write_text(json.dumps(points.tolist()))
    found = json.loads(subprocess.run([PROGRAM, "evaluate", config, file], capture_output=True, check=True).stdout)
    assert found["log_density"] == pytest.approx([exact(x) for x in points], rel=1e-10)
    step = 1e-6
    for x, score in zip(points, np.array(found["score"])):
        sides = [[exact(x + sign * step * unit) for unit in np.eye(x.size)] for sign in (1, -1)]
        slope = (np.array(sides[0]) - sides[1]) / (2 * step)
        assert score == pytest.approx(slope, rel=1e-5, abs=1e-4)
