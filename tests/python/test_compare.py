"""scripts/compare: its densities against the program's, its truths by quadrature, its distances against SciPy's."""

import json
import pathlib
import sys

import numpy as np
import pytest
import scipy.special
import scipy.stats

HERE = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path[:0] = [str(HERE / "compare"), str(HERE / "measure" / "posteriors")]

import cases  # noqa: E402
import densities  # noqa: E402
import physics  # noqa: E402
from sterna_cli import sterna  # noqa: E402


def asked(case, points, tmp_path):
    lines = [f"{name} = {json.dumps(value)}" for name, value in case.target.items()]
    (tmp_path / "case.toml").write_text("[target]\n" + "\n".join(lines))
    (tmp_path / "points.json").write_text(json.dumps(points.tolist()))
    done = sterna("evaluate", tmp_path / "case.toml", tmp_path / "points.json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [case.name for case in cases.CASES if case.log_likelihood and case.dim < 200])
def test_densities_are_the_programs(name, tmp_path):
    case = cases.BY_NAME[name]
    x = 0.8 * np.random.default_rng(1).normal(size=(4, case.dim))
    if case.group == "evidence":
        low, high = case.box.T
        expected = case.log_likelihood(np, low + (high - low) * scipy.special.ndtr(x)) + scipy.stats.norm.logpdf(x).sum(axis=1)
    elif name == "mrna":
        low, high = case.box.T
        share = scipy.special.expit(x)
        expected = case.log_likelihood(np, low + (high - low) * share) + np.log((high - low) * share * (1 - share)).sum(axis=1)
    else:
        expected = case.log_likelihood(np, x)
    assert asked(case, x, tmp_path)["log_density"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_clusters_are_the_programs(tmp_path):
    n = 13
    positions = 1.2 * np.random.default_rng(2).normal(size=(3, n, 3))
    k = np.arange(1, n)[:, None]
    i = np.arange(n)
    basis = np.where(i < k, 1.0, np.where(i == k, -k, 0.0)) / np.sqrt(k * (k + 1))
    y = np.einsum("ki,bia->bka", basis, positions).reshape(3, -1)
    found = asked(cases.BY_NAME["lj-13"], y, tmp_path)
    energy, force = densities.lennard_jones(positions)
    assert found["log_density"] == pytest.approx(-energy, rel=1e-9)
    score = np.einsum("ki,bia->bka", basis, force).reshape(3, -1)
    assert np.array(found["score"]) == pytest.approx(score, rel=1e-7, abs=1e-6 * np.abs(score).max())


def test_scores_of_lattices_are_slopes():
    field = np.random.default_rng(3).normal(size=(1, 4, 4))
    up, down = field.copy(), field.copy()
    up[0, 1, 2] += 1e-6
    down[0, 1, 2] -= 1e-6
    log_density = densities.phi4(4, 2.0)
    slope = (log_density(np, up.reshape(1, -1)) - log_density(np, down.reshape(1, -1)))[0] / 2e-6
    assert densities.phi4_score(field, 2.0)[0, 1, 2] == pytest.approx(slope, rel=1e-6)


def test_truths_are_those_of_quadrature():
    for name, value in densities.truths().items():
        assert cases.BY_NAME[name].truth == pytest.approx(value, abs=2e-6), name
    spike = cases.spike_share()
    assert cases.BY_NAME["spike-slab-10"].weights == pytest.approx((1 - spike, spike), abs=1e-4)


def test_distances_of_energies():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=4000), 3 + 2 * rng.normal(size=4000)
    # Of two normals: √(difference of means² + difference of widths²).
    assert physics.distance(a, b) == pytest.approx(np.sqrt(10), rel=0.03)
    assert physics.distance(a, a[::-1]) == 0
