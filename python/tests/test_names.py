"""Names that scripts rely on, older ones among them: each does what it says."""

import inspect

import numpy as np
import pytest
import sterna
from conftest import SHORT, humps, same_draws


def test_a_target_by_its_class_is_that_of_the_functions():
    run = sterna.sample(sterna.from_pyfunc(2, humps), **SHORT)
    same_draws(run, sterna.sample(sterna.Target(dim=2, evaluate=humps), **SHORT))
    with pytest.raises(sterna.ConfigError, match="positions"):
        sterna.Target.from_openmm(object(), temperature=300.0)


def test_numba_and_jax_by_the_class():
    numba, jax = pytest.importorskip("numba"), pytest.importorskip("jax")

    @numba.cfunc(sterna.numba_signature())
    def density(rows, dim, points, log_density, score):
        for i in range(rows):
            log_density[i] = -0.5 * points[i] * points[i]
            score[i] = -points[i]
        return 0

    for target in (sterna.Target.from_numba(density, 1), sterna.Target.from_jax(lambda x: -0.5 * jax.numpy.sum(x * x), 1)):
        log_density, score = target([[2.0]])
        assert log_density[0] == -2.0 and score[0, 0] == -2.0


def test_a_run_has_what_it_had(tmp_path):
    settings = {"schedule": {"rounds": 2, "iterations": 150}, "burn_in": 20, "iterations": 200, "training__collect": 200}
    run = sterna.sample(
        sterna.targets.gmm(dim=10),
        chains=4,
        accelerator="cmcd",
        steps=1,
        seed=1,
        progress_bar=False,
        training__steps=20,
        **settings,
    )
    assert np.isfinite(run.log_z) and run.round_trips >= 0 and run.summary["accelerator"]["kind"] == "cmcd"
    assert run.report(tmp_path / "report.html").exists()
    run.save(tmp_path / "mine")
    assert sterna.load(tmp_path / "mine").log_z == run.log_z


def test_words_of_the_interface_are_parameters():
    wanted = {
        sterna.sample: ["model", "draws", "seed", "progress_bar", "store", "blocking", "chains", "accelerator", "reference"],
        sterna.resume: ["folder", "draws"],
        sterna.from_pyfunc: ["dim", "f"],
        sterna.from_numba: ["cfunc", "dim"],
        sterna.from_jax: ["log_density", "dim_or_example"],
        sterna.from_torch: ["log_density", "dim"],
        sterna.from_stan: ["model", "data"],
        sterna.from_pymc: ["model"],
        sterna.from_openmm: ["system", "positions", "temperature"],
        sterna.from_likelihood: ["log_likelihood", "prior_transform", "ndim"],
        sterna.NestedSamplerLike: ["loglikelihood", "prior_transform", "ndim"],
    }
    for function, names in wanted.items():
        assert set(names) <= set(inspect.signature(function).parameters), function
    for name in (
        "log_z",
        "log_z_error",
        "summary",
        "alarms",
        "verdict",
        "to_arviz",
        "report",
        "wait",
        "inspect",
        "pause",
        "resume",
        "abort",
    ):
        assert hasattr(sterna.Run, name), name
