"""scripts/measure/posteriors: its effective draws against ArviZ's, its reader against h5py's, its densities against values
computed another way."""

import ctypes
import pathlib
import subprocess
import sys

import arviz
import h5py
import numpy as np
import pytest
import scipy.stats

HERE = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "measure" / "posteriors"
sys.path.insert(0, str(HERE))

import cells  # noqa: E402
import draws  # noqa: E402
import netcdf  # noqa: E402
import nuts  # noqa: E402
from sterna_cli import sterna  # noqa: E402


@pytest.mark.parametrize("memory", [-0.4, 0.0, 0.7, 0.95])
def test_effective_draws_are_arvizs(memory):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 2001))
    for i in range(1, x.shape[1]):
        x[:, i] += memory * x[:, i - 1]
    # One and the same estimator, but for where the sequence of correlations is cut.
    for values in (x, np.round(x), np.exp(x)):
        assert draws.bulk_ess(values) == pytest.approx(arviz.ess(values, method="bulk"), rel=0.02)


def test_parameters_of_a_model():
    code = "data { int N; } parameters { real<lower=0> a; // b;\n vector[3] c; simplex[2] d[4]; } transformed parameters { real e; }"
    assert nuts.parameters(code) == ["a", "c", "d"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("densities") / "densities.so"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", path, HERE / "densities.c", "-lm"], check=True)
    return ctypes.CDLL(str(path))


def evaluated(library, symbol, x):
    pointer = ctypes.POINTER(ctypes.c_double)
    x = np.ascontiguousarray(x)
    log_density, score = np.empty(len(x)), np.empty_like(x)
    arguments = [array.ctypes.data_as(pointer) for array in (x, log_density, score)]
    assert library[symbol](ctypes.c_size_t(len(x)), ctypes.c_size_t(x.shape[1]), *arguments) == 0
    return log_density, score


def tilted(dim):
    turn = np.eye(dim) - 2 * np.ones((dim, dim)) / dim
    return turn @ np.diag(10.0 ** (-6 * np.arange(dim) / (dim - 1))) @ turn


def mixture(centres):
    parts = [scipy.stats.multivariate_normal(c, np.eye(len(c))) for c in centres]
    return lambda x: scipy.special.logsumexp([p.logpdf(x) for p in parts], axis=0) - np.log(len(parts))


CORNERS = [[20.0 if k >> j & 1 else -20.0 for j in range(3)] for k in range(8)]
DENSITIES = {
    "two_normals": (mixture([[0.0] * 5, [10.0] * 5]), 5, 0.0, 4.0),
    "cube": (mixture(CORNERS), 3, 0.0, 15.0),
    "wide": (scipy.stats.multivariate_normal(np.zeros(4), 1e6 * np.eye(4)).logpdf, 4, 0.0, 1e3),
    "far": (scipy.stats.multivariate_normal(1e4 * np.ones(4), 1e-6 * np.eye(4)).logpdf, 4, 1e4, 1e-3),
    "ill_conditioned": (scipy.stats.multivariate_normal(np.zeros(6), tilted(6)).logpdf, 6, 0.0, 1e-2),
}


@pytest.mark.parametrize("symbol", DENSITIES)
def test_densities(library, symbol):
    exact, dim, mean, width = DENSITIES[symbol]
    x = mean + width * np.random.default_rng(2).normal(size=(7, dim))
    log_density, score = evaluated(library, symbol, x)
    assert log_density == pytest.approx(exact(x), rel=1e-7, abs=1e-7)
    for j in range(dim):
        step = 1e-4 * width * (np.arange(dim) == j)
        slope = (exact(x + step) - exact(x - step)) / (2e-4 * width)
        assert score[:, j] == pytest.approx(slope, rel=1e-4, abs=1e-4 * np.abs(score).max())


def test_weights_of_modes():
    assert cells.corners(dict(enumerate(np.array(CORNERS).T)))["weights"] == [1 / 8] * 8
    orders = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    assert cells.permutations({f"mu[{k + 1}]": orders[:, k] for k in range(3)})["weights"] == [1 / 6] * 6


@pytest.mark.parametrize("kind", ["mrna", "galaxies"])
def test_draws_are_read_without_hdf5(tmp_path, kind):
    few = ["run.until.evaluations=2000", "run.iterations=40", f"target.kind={kind}"]
    settings = [word for setting in few for word in ("--set", setting)]
    assert sterna("run", "--out", tmp_path / "run", *settings).returncode == 0
    found = netcdf.by_numpy(tmp_path / "run" / "draws.nc")
    with h5py.File(tmp_path / "run" / "draws.nc") as file:
        assert sorted(found) == sorted(file["posterior"])
        for name, array in found.items():
            assert np.array_equal(array, np.asarray(file["posterior"][name])), name
