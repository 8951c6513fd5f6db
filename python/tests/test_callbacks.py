"""Functions of Python and of C as targets: what they get, what they may return, and what becomes of what they raise."""

import ctypes
import gc
import os
import resource
import shutil
import subprocess

import numpy as np
import pytest
import sterna
from conftest import ROOT, SHORT, humps, humps_log_z, same_draws

numba = pytest.importorskip("numba")


def quadratic(x):
    """Sums in the order of the coordinates, as C and numba make them."""
    total = np.zeros(len(x))
    for j in range(x.shape[1]):
        total = total + x[:, j] * x[:, j]
    return -0.5 * total, -x


@pytest.fixture(scope="module")
def compiled():
    @numba.cfunc(sterna.numba_signature())
    def quadratic_in_numba(rows, dim, points, log_density, score):
        for i in range(rows):
            total = 0.0
            for j in range(dim):
                x = points[i * dim + j]
                total = total + x * x
                score[i * dim + j] = -x
            log_density[i] = -0.5 * total
        return 0

    return quadratic_in_numba


C = """
#include "sterna.h"
int sterna_evaluate(size_t rows, size_t dim, const double *x, double *l, double *s) {
    for (size_t i = 0; i < rows; i++) {
        double total = 0;
        for (size_t j = 0; j < dim; j++) { total = total + x[i * dim + j] * x[i * dim + j]; s[i * dim + j] = -x[i * dim + j]; }
        l[i] = -0.5 * total;
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("c")
    (folder / "quadratic.c").write_text(C)
    command = ["cc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I", ROOT / "include", "quadratic.c", "-o", "q.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "q.so"


def test_numpy_numba_and_c_make_the_same_bits(compiled, library):
    by_address = ctypes.CDLL(str(library)).sterna_evaluate
    runs = [
        sterna.sample(target, **SHORT, seed=5)
        for target in (
            sterna.from_pyfunc(3, quadratic),
            sterna.from_numba(compiled, 3),
            sterna.from_library(library, dim=3),
            sterna.from_numba(by_address, 3),
        )
    ]
    for other in runs[1:]:
        same_draws(runs[0], other)
        assert runs[0].log_z == other.log_z


def test_a_library_goes_on_at_the_command_line(library, program, tmp_path):
    target = sterna.from_library(library, parameters={"scale": (3, "positive")})
    settings = {**SHORT, "reference": None, "chains": None}
    run = sterna.sample(target, **settings, store=tmp_path / "run")
    assert run.draws["scale"].shape[2] == 3 and (run.draws["scale"] > 0).all()
    done = program("resume", tmp_path / "run", "--iterations", 500)
    assert done.returncode == 0, done.stderr


def test_all_rows_of_all_ladders_come_in_one_call():
    seen = []

    def counted(x):
        seen.append(len(x))
        return quadratic(x)

    run = sterna.sample(sterna.from_pyfunc(3, counted, score=True), **{**SHORT, "ensembles": 4})
    # 3 chains are explored by leapfrog steps, the first draws from the reference.
    assert max(seen) >= 3 * 4 and run.finished
    usual = np.median(seen)
    assert usual >= 12, usual


def test_without_a_score_moves_need_none():
    target = sterna.from_pyfunc(2, lambda x: humps(x)[0])
    assert not target.has_score and target.names == []
    run = sterna.sample(target, draws=300, seed=4, progress_bar=False)
    assert abs(run.log_z - humps_log_z(2)) < 5 * run.log_z_error and run.verdict == "sound"
    assert 'kind = "slice"' in (run.folder / "config.toml").read_text()


def test_parameters_have_names_shapes_and_supports():
    def density(v):
        mu, sigma, w = v[:, 0], v[:, 1], v[:, 2:8]
        score = np.zeros_like(v)
        score[:, 0], score[:, 1] = -(mu - 3.0), 1.0 / sigma - 1.0
        score[:, 2:8] = -w
        # Far out sigma is infinite, and so no density.
        with np.errstate(invalid="ignore"):
            return -0.5 * (mu - 3.0) ** 2 + np.log(sigma) - sigma - 0.5 * (w**2).sum(1), score

    target = sterna.from_pyfunc(8, density, parameters={"mu": None, "sigma": "positive", "w": (2, 3)})
    assert target.names[:3] == ["mu", "sigma", "w[0,0]"] and target.dim == 8
    run = sterna.sample(target, draws=400, seed=1, progress_bar=False)
    assert list(run.draws) == ["mu", "sigma", "w"] and run.draws["w"].shape[2:] == (2, 3)
    assert (run.draws["sigma"] > 0).all()
    # A gamma of shape 2: 5 standard errors.
    row = run.table().loc["sigma"]
    assert abs(row["mean"] - 2.0) < 5 * row["mcse"]
    # log Z is the integral over values: (2 pi)^(7/2) times the gamma's 1.
    assert abs(run.log_z - 3.5 * np.log(2 * np.pi)) < 5 * run.log_z_error


def test_supports_are_refused_by_name():
    for parameters, words in [
        ({"a": "postive"}, "parameters.a.support"),
        ({"a": (2, 2), "b": "simplex"}, "one axis"),
        ({"a": {"shap": 3}}, "shap"),
        ({"a": 3.5}, "a shape, a support"),
        ("ab", "one word"),
        (["a"], "dim"),
    ]:
        with pytest.raises(sterna.ConfigError, match=words):
            sterna.from_pyfunc(5, quadratic, parameters=parameters)


def test_a_prior_for_each_makes_it_a_likelihood():
    def log_likelihood(v):
        return -0.5 * ((v[:, 0] - 1.0) / 0.5) ** 2

    target = sterna.from_pyfunc(1, log_likelihood, parameters={"mu": {"prior": "normal(0, 2)"}})
    run = sterna.sample(target, draws=400, seed=3, progress_bar=False)
    exact = np.log(0.5 / np.hypot(2.0, 0.5)) - 0.5 / (4.0 + 0.25)
    assert abs(run.log_z - exact) < 5 * run.log_z_error


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_likelihood_with_a_prior_transform(vectorized):
    def log_likelihood(v):
        return -0.5 * (((v - 1.0) / 0.5) ** 2).sum(-1)

    target = sterna.from_likelihood(log_likelihood, lambda u: 20.0 * u - 10.0, 2, vectorized=vectorized, parameters=["a", "b"])
    run = sterna.sample(target, draws=100, seed=3, progress_bar=False)
    exact = 2 * np.log(np.sqrt(2 * np.pi) * 0.5 / 20.0)
    assert abs(run.log_z - exact) < 5 * run.log_z_error
    row = run.table().loc["a"]
    assert abs(row["mean"] - 1.0) < 5 * row["mcse"] and (np.abs(run.draws["a"]) < 10).all()


class Odd(Exception):
    pass


def test_an_exception_comes_back_as_itself_with_the_point():
    def raises(x):
        if (x[:, 0] > 1.5).any():
            raise Odd("here")
        return quadratic(x)

    with pytest.raises(Odd, match="here") as error:
        sterna.sample(sterna.from_pyfunc(2, raises), progress_bar=False)
    assert error.value.sterna_point[0] > 1.5 and len(error.value.sterna_point) == 2
    if hasattr(error.value, "__notes__"):
        assert "at the point" in error.value.__notes__[0]
    with pytest.raises(Odd):
        sterna.from_pyfunc(2, raises)(np.full((3, 2), 2.0))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, StopIteration, MemoryError])
def test_whatever_is_raised_comes_back_as_itself(kind):
    def raises(x):
        if len(x) > 1:
            raise kind("by the target")
        return quadratic(x)

    with pytest.raises(kind, match="by the target"):
        sterna.sample(sterna.from_pyfunc(2, raises), progress_bar=False)


def test_an_exception_of_a_prior_transform_too():
    def transform(u):
        raise Odd("no prior")

    with pytest.raises(Odd):
        sterna.sample(sterna.from_likelihood(lambda v: 0.0, transform, 2), progress_bar=False)


def test_after_an_exception_the_run_goes_on(tmp_path):
    broken = [True]

    def sometimes(x):
        if broken[0] and (x[:, 0] > 2.2).any():
            raise Odd("not yet")
        return humps(x)

    target = sterna.from_pyfunc(2, sometimes)
    settings = {**SHORT, "run": {"checkpoint_seconds": 0.0}}
    with pytest.raises(Odd):
        sterna.sample(target, **settings, store=tmp_path / "run")
    broken[0] = False
    run = sterna.resume(tmp_path / "run", model=target, progress_bar=False)
    same_draws(run, sterna.sample(sterna.from_pyfunc(2, humps), **settings))


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda x: (quadratic(x)[0][:-1], -x), ValueError, "the log density has shape"),
        (lambda x: (quadratic(x)[0], -x[:, :1]), ValueError, "the score has shape"),
        (lambda x: (quadratic(x)[0].sum(), -x), ValueError, r"has shape \[\], but"),
        (lambda x: (quadratic(x)[0].astype(complex), -x), TypeError, "complex128"),
        (lambda x: (["a"] * len(x), -x), TypeError, "dtype"),
        (lambda x: quadratic(x)[0], TypeError, "log_density, score"),
        (lambda x: None, TypeError, "log_density, score"),
    ],
)
def test_wrong_answers_are_told(answer, error, words):
    with pytest.raises(error, match=words):
        sterna.sample(sterna.from_pyfunc(2, answer, score=True), progress_bar=False)


@pytest.mark.parametrize(
    ("log_likelihood", "transform", "error", "words"),
    [
        (lambda v: -(v**2), lambda u: u, TypeError, r"of shape \(2,\), but one number is needed"),
        (lambda v: None, lambda u: u, TypeError, "NoneType.*one number"),
        (lambda v: 0.0, lambda u: u[:1], ValueError, "the prior transform has shape .* gets one point at a time"),
    ],
)
def test_wrong_answers_of_likelihoods_are_told(log_likelihood, transform, error, words):
    with pytest.raises(error, match=words):
        sterna.sample(sterna.from_likelihood(log_likelihood, transform, 2), progress_bar=False)


def test_a_function_of_one_point_is_told_that_it_gets_rows():
    with pytest.raises(IndexError) as error:
        sterna.from_pyfunc(2, lambda x: x[0] + x[1])
    if hasattr(error.value, "__notes__"):
        assert "f gets rows of points" in error.value.__notes__[0]


def test_mistakes_that_show_at_once_leave_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(ValueError, match="shape"):
        sterna.sample(sterna.from_pyfunc(2, lambda x: 0.0), progress_bar=False)
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "form",
    [
        lambda l, s: (l.astype(np.float32).astype(np.float64), s),
        lambda l, s: (l.tolist(), s.tolist()),
        lambda l, s: [l, s],
        lambda l, s: (np.repeat(l, 2)[::2], np.asfortranarray(s)),
        lambda l, s: (l.astype(">f8"), s.astype(">f8")),
    ],
)
def test_right_answers_in_any_form(form):
    target = sterna.from_pyfunc(2, lambda x: form(*quadratic(x)))
    points = np.array([[0.5, 1.0], [-2.0, 4.0]])
    log_density, score = target(points)
    np.testing.assert_array_equal(log_density, quadratic(points)[0])
    np.testing.assert_array_equal(score, -points)


def test_views_kept_arrays_and_changed_input_do_no_harm():
    kept = []

    def odd(x):
        log_density, score = quadratic(x)
        kept[:] = [x]
        np.negative(x, out=x)
        return log_density[::-1][::-1], x

    target = sterna.from_pyfunc(2, odd)
    same_draws(
        sterna.sample(target, **SHORT, seed=2),
        sterna.sample(sterna.from_pyfunc(2, quadratic), **SHORT, seed=2),
    )
    assert kept[0].shape[1] == 2


def test_nan_and_infinity_are_data():
    def cut(x):
        log_density, score = quadratic(x)
        return np.where(x[:, 0] > 0.5, -np.inf, np.where(x[:, 0] < -3.0, np.nan, log_density)), score

    run = sterna.sample(sterna.from_pyfunc(2, cut), draws=200, progress_bar=False)
    assert run.finished and (run.draws["x"][:, :, 0] <= 0.5).all()

    def nowhere(x):
        return np.full(len(x), np.nan), -x

    with pytest.raises(sterna.ConfigError, match="no number there|vanishes"):
        sterna.sample(sterna.from_pyfunc(2, nowhere), progress_bar=False)


def test_a_compiled_function_may_say_no(compiled):
    @numba.cfunc(sterna.numba_signature())
    def fails(rows, dim, points, log_density, score):
        for i in range(rows):
            log_density[i] = 0.0
            for j in range(dim):
                score[i * dim + j] = 0.0
                if points[i * dim + j] > 1.0:
                    return 7
        return 0

    with pytest.raises(sterna.RunError, match="`fails` returned 7 at the point"):
        sterna.sample(sterna.from_numba(fails, 2), progress_bar=False)

    @numba.cfunc("float64(float64)")
    def other(x):
        return x

    for wrong in (other, lambda x: x, "name"):
        with pytest.raises(sterna.ConfigError, match="signature|compiled"):
            sterna.from_numba(wrong, 2)
    with pytest.raises(sterna.ConfigError, match="dim"):
        sterna.from_numba(compiled, 0)


def peak():
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def flat(target, evaluations):
    """Asks a target in batches of 200, and holds what the process came to take."""
    x = np.zeros((200, target.dim))
    [target(x) for _ in range(500)]
    before = peak()
    for _ in range(evaluations // 200):
        target(x)
    # A leak of a fifth of a byte a point would show in 10 million.
    assert peak() - before < 2_000_000


# Points of kinds that are slow; the full check asks for 10 million.
SLOW = int(os.environ.get("STERNA_EVALUATIONS", 200_000))


def test_memory_stays_flat_by_numpy_and_numba(compiled):
    flat(sterna.from_pyfunc(2, quadratic), 10_000_000)
    flat(sterna.from_numba(compiled, 2), 10_000_000)


def test_memory_stays_flat_by_likelihoods():
    flat(sterna.from_likelihood(lambda v: 0.0, lambda u: u, 2), SLOW)


def test_memory_stays_flat_by_jax():
    jnp = pytest.importorskip("jax").numpy
    flat(sterna.from_jax(lambda x: -0.5 * jnp.sum(x * x), 2), SLOW)


def test_memory_stays_flat_by_torch():
    torch = pytest.importorskip("torch")
    flat(sterna.from_torch(lambda x: -0.5 * torch.sum(x * x), 2), SLOW)


@pytest.mark.parametrize("backend", ["numba", "c", "jax"])
def test_memory_stays_flat_by_pymc(backend):
    pm = pytest.importorskip("pymc")
    if backend == "jax":
        pytest.importorskip("jax")
    with pm.Model() as model:
        pm.Normal("x", 0, 1, shape=2)
    flat(sterna.from_pymc(model, backend=backend), SLOW)


def test_memory_stays_flat_by_openmm():
    openmm = pytest.importorskip("openmm")
    system = openmm.System()
    [system.addParticle(12.0) for _ in range(2)]
    force = openmm.CustomBondForce("500*(r-0.15)^4")
    force.addBond(0, 1, [])
    system.addForce(force)
    flat(sterna.from_openmm(system, [[0.0, 0, 0], [0.15, 0, 0]], platform="Reference"), SLOW // 10)
