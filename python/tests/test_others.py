"""Where others fit in: dynesty's names, bilby, PyMC, OpenMM. What is not installed is skipped."""

import warnings

import numpy as np
import pytest
import sterna
from conftest import ROOT, SHORT, same_draws


def test_names_of_dynesty():
    def loglikelihood(v, width, *, centre=0.0):
        return -0.5 * (((v - centre) / width) ** 2).sum()

    sampler = sterna.NestedSamplerLike(
        loglikelihood,
        lambda u: 20.0 * u - 10.0,
        2,
        logl_args=[0.5],
        logl_kwargs={"centre": 1.0},
        nlive=500,
        bound="multi",
        seed=1,
    )
    with pytest.raises(AttributeError, match="run_nested"):
        sampler.results
    results = sampler.run_nested(dlogz=0.1, print_progress=False, draws=100).results
    # 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    assert abs(results.logz[-1] - 2 * np.log(np.sqrt(2 * np.pi) * 0.5 / 20.0)) < 5 * results.logzerr[-1]
    assert results.logzerr[-1] <= 0.1 and results.samples.shape[1] == 2
    np.testing.assert_allclose(results.logl, [loglikelihood(v, 0.5, centre=1.0) for v in results.samples])
    assert results.importance_weights().sum() == pytest.approx(1.0) and results.samples_equal() is results.samples


def test_bilby(tmp_path):
    bilby = pytest.importorskip("bilby")
    data = np.random.default_rng(2).normal(3.0, 4.0, 100)

    class Gaussian(bilby.Likelihood):
        def __init__(self):
            super().__init__(parameters={"mu": None, "sigma": None})

        def log_likelihood(self, parameters=None):
            p = parameters or self.parameters
            return float(
                -0.5 * (((data - p["mu"]) / p["sigma"]) ** 2).sum() - len(data) * np.log(p["sigma"] * np.sqrt(2 * np.pi))
            )

    priors = {"mu": bilby.core.prior.Uniform(0, 5, "mu"), "sigma": bilby.core.prior.Uniform(0, 10, "sigma")}
    result = bilby.run_sampler(
        likelihood=Gaussian(),
        priors=priors,
        sampler="sterna",
        outdir=str(tmp_path),
        label="g",
        draws=200,
        seed=1,
        progress_bar=False,
    )
    # The evidence by quadrature.
    mu, sigma = np.linspace(0, 5, 401)[:, None], np.linspace(2.0, 8.0, 401)[None, :]
    log_l = -0.5 * ((data**2).sum() - 2 * mu * data.sum() + 100 * mu**2) / sigma**2 - 100 * np.log(sigma * np.sqrt(2 * np.pi))
    top = log_l.max()
    exact = top + np.log(np.exp(log_l - top).sum() * (5 / 400) * (6 / 400) / 50)
    assert abs(result.log_evidence - exact) < 5 * result.log_evidence_err + 0.01
    assert abs(result.posterior["mu"].mean() - data.mean()) < 0.2
    assert set(result.posterior) >= {"mu", "sigma", "log_likelihood"}


@pytest.fixture(scope="module")
def schools():
    pm = pytest.importorskip("pymc")
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 5)
        z = pm.Normal("z", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta, np.array([15.0, 10, 16, 11, 9, 11, 10, 18]), observed=y, dims="school")
    return model


@pytest.mark.parametrize("backend", ["numba", "c", "jax"])
def test_pymc_computes_what_pymc_does(schools, backend):
    if backend == "jax":
        pytest.importorskip("jax")
    target = sterna.from_pymc(schools, backend=backend)
    assert target.dim == 10 and target.names[:2] == ["mu", "tau"] and target.names[-1] == "theta[7]"
    x = np.random.default_rng(1).normal(size=(3, 10))
    log_density, score = target(x)
    function = schools.compile_fn(schools.logp(), point_fn=True)
    for i, row in enumerate(x):
        expected = function({"mu": row[0], "tau_log__": row[1], "z": row[2:]})
        assert log_density[i] == pytest.approx(float(expected), rel=1e-10)
    step = 1e-6 * np.eye(10)
    slopes = [(target(x[:1] + h)[0] - target(x[:1] - h)[0])[0] / 2e-6 for h in step]
    np.testing.assert_allclose(score[0], slopes, rtol=1e-5, atol=1e-5)
    values = target.values(x)
    np.testing.assert_allclose(values[:, 1], np.exp(x[:, 1]))
    np.testing.assert_allclose(values[:, -8:], x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:])


@pytest.mark.parametrize("backend", ["numba", "c", "jax"])
def test_pymc_parameters_that_no_law_allows_have_no_density(backend):
    pm = pytest.importorskip("pymc")
    if backend == "jax":
        pytest.importorskip("jax")
    with pm.Model() as model:
        sigma = pm.HalfCauchy("sigma", 2.5)
        pm.Normal("y", 0, sigma, observed=[0.5, -1.0])
    target = sterna.from_pymc(model, backend=backend)
    # Far out sigma is 0 in floating point, which a normal refuses.
    log_density, _ = target([[0.0], [-800.0]])
    assert np.isfinite(log_density[0]) and not log_density[1] > -1e300


def test_pymc_that_raises_at_a_point_goes_on():
    pm = pytest.importorskip("pymc")
    pytest.importorskip("numba")
    import pytensor.tensor as pt

    with pm.Model() as model:
        r = pm.Normal("r", 0, 1)
        # Not positive definite where r is beyond 1.
        root = pt.linalg.cholesky(pt.stack([pt.stack([1.0, r]), pt.stack([r, 1.0])]))
        pm.Potential("half", pt.log(root[1, 1]))
    target = sterna.from_pymc(model, backend="numba")
    log_density, _ = target([[0.5], [1.5], [0.0]])
    assert np.isfinite(log_density[[0, 2]]).all() and not np.isfinite(log_density[1])


def test_pymc_models_may_say_where_chains_start():
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        ordered = pm.distributions.transforms.ordered
        mu = pm.Normal("mu", 0, 2, shape=2, transform=ordered, initval=[-1.0, 1.0])
        pm.NormalMixture("y", [0.5, 0.5], mu, 1, observed=[-2.0, 2.0])
    target = sterna.from_pymc(model, backend="c")
    assert (np.diff(target.values([[0.5, -1.0], [1.0, 2.0]]), axis=1) > 0).all()
    assert list(model.initial_point()["mu_ordered__"]) == pytest.approx([-1.0, np.log(2.0)])


def test_pymc_from_a_model_to_arviz(schools):
    arviz = pytest.importorskip("arviz")
    import sterna.pymc

    # By PyMC's own words as well; what they mean nothing for is passed over.
    data = sterna.pymc.sample(200, model=schools, random_seed=1, progressbar=False, tune=500)
    posterior = data["posterior"]
    assert list(posterior["theta"].dims) == ["chain", "draw", "school"] and list(posterior["school"].values) == list("ABCDEFGH")
    assert (posterior["tau"] > 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "theta[A]" in arviz.summary(data).index
    run = sterna.sample(schools, draws=200, seed=1, progress_bar=False)
    np.testing.assert_array_equal(run.draws["mu"], posterior["mu"].values)
    # The mean of mu, by a long run of PyMC's own sampler: 4.4 (its error, and ours at 5 standard errors).
    row = run.table().loc["mu"]
    assert abs(row["mean"] - 4.4) < 5 * row["mcse"] + 0.1


def test_pymc_refuses_what_is_discrete():
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        pm.Poisson("n", 3)
    with pytest.raises(sterna.ConfigError, match=r"discrete variables \(n\)"):
        sterna.sample(model)


@pytest.fixture(scope="module")
def dipeptide():
    openmm = pytest.importorskip("openmm")
    from openmm.app import PDBFile

    folder = ROOT / "assets" / "alanine-dipeptide"
    system = openmm.XmlSerializer.deserialize((folder / "system.xml").read_text())
    positions = PDBFile(str(folder / "topology.pdb")).getPositions()
    return system, positions


def test_openmm_by_own_kernels_and_by_its_own(dipeptide, program, tmp_path):
    system, positions = dipeptide
    own = sterna.from_openmm(system, positions, temperature=310.0)
    assert own.dim == 63 and "molecule" in repr(own)
    theirs = sterna.from_openmm(system, positions, temperature=310.0, platform="Reference")
    assert theirs.dim == 63 and theirs.names[0] == "positions[0,0]"
    x = np.random.default_rng(1).normal(size=(2, 63))
    places = theirs.values(x)
    log_density, score = theirs(x)
    np.testing.assert_allclose(own(places)[0] - log_density, 0.0, atol=1e-4)
    step = np.zeros((1, 63))
    step[0, 5] = 1e-4
    slope = (theirs(x[:1] + step)[0] - theirs(x[:1] - step)[0]) / 2e-4
    assert slope[0] == pytest.approx(score[0, 5], rel=1e-4)
    run = sterna.sample(own, chains=3, iterations=100, schedule={"rounds": 2, "iterations": 120}, burn_in=10, progress_bar=False)
    assert run.finished and (run.folder / "system.xml").exists()
    # The command line goes on with it, since the force field lies in its folder.
    run.save(tmp_path / "run")
    done = program("resume", tmp_path / "run", "--iterations", 150)
    assert done.returncode == 0, done.stderr
    same_draws(sterna.load(tmp_path / "run"), run.resume(iterations=150, progress_bar=False))
    with pytest.raises(sterna.ConfigError, match="positions"):
        sterna.from_openmm(system, positions[:3])


def test_openmm_computes_what_own_kernels_do_not():
    openmm = pytest.importorskip("openmm")
    system = openmm.System()
    [system.addParticle(12.0) for _ in range(2)]
    force = openmm.CustomBondForce("500*(r-0.15)^4")
    force.addBond(0, 1, [])
    system.addForce(force)
    with pytest.warns(UserWarning, match="one conformation at a time"):
        target = sterna.from_openmm(system, [[0.0, 0, 0], [0.15, 0, 0]])
    assert target.dim == 3
    with pytest.raises(sterna.ConfigError):
        sterna.from_openmm(system, [[0.0, 0, 0], [0.15, 0, 0]], platform="sterna")
    assert sterna.sample(target, **{**SHORT, "iterations": 50, "schedule": {"rounds": 1, "iterations": 150}}).finished
