"""Densities of JAX and torch."""

import numpy as np
import pytest
import sterna
from conftest import SHORT, same_draws


def test_jax_gradients_and_names():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def banana(x):
        return -0.5 * x[0] ** 2 - 5.0 * (x[1] - x[0] ** 2) ** 2

    target = sterna.from_jax(banana, 2)
    points = np.random.default_rng(1).normal(size=(5, 2))
    log_density, score = target(points)
    off = points[:, 1] - points[:, 0] ** 2
    np.testing.assert_allclose(log_density, -0.5 * points[:, 0] ** 2 - 5.0 * off**2, rtol=1e-13)
    np.testing.assert_allclose(score[:, 1], -10.0 * off, rtol=1e-12)
    run = sterna.sample(target, draws=200, seed=1, progress_bar=False)
    # 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    assert abs(run.log_z - np.log(2 * np.pi / np.sqrt(10.0))) < 5 * run.log_z_error
    same_draws(run, sterna.sample(target, draws=200, seed=1, progress_bar=False))

    def named(v):
        return -0.5 * jnp.sum(v["theta"] ** 2) - v["sigma"]

    example = {"sigma": 1.0, "theta": np.zeros((2, 2))}
    target = sterna.from_jax(named, example, parameters={"sigma": "positive"})
    assert target.names == ["sigma", "theta[0,0]", "theta[0,1]", "theta[1,0]", "theta[1,1]"]
    run = sterna.sample(target, draws=200, progress_bar=False)
    assert (run.draws["sigma"] > 0).all() and run.draws["theta"].shape[2:] == (2, 2)
    with pytest.raises(sterna.ConfigError, match="tau"):
        sterna.from_jax(named, example, parameters={"tau": "positive"})

    def wrong(x):
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        sterna.sample(sterna.from_jax(wrong, 2), progress_bar=False)


def test_torch():
    torch = pytest.importorskip("torch")
    target = sterna.from_torch(lambda x: -0.5 * torch.sum(x**2), 3)
    points = np.random.default_rng(1).normal(size=(5, 3))
    log_density, score = target(points)
    np.testing.assert_allclose(log_density, -0.5 * (points**2).sum(1), rtol=1e-13)
    np.testing.assert_allclose(score, -points, rtol=1e-13)
    assert sterna.sample(target, **SHORT).finished
