"""Libraries whose values have names, supports and priors: posteriors that are known exactly, and what is told of wrong ones."""

import json
import math
import shutil
import subprocess

import numpy
import pytest
import xarray

from sterna_cli import ROOT, sterna

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

SMALL = ["chains.count=5", "chains.ensembles=4", "schedule.rounds=4", "schedule.iterations=300", "run.iterations=5000"]


def compiled(folder, source, *flags):
    if "\n" in str(source):
        (folder / "source.c").write_text('#include "sterna.h"\n#include <math.h>\n' + source)
        source = folder / "source.c"
    out = folder / "lib.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *flags, "-I", ROOT / "include", "-o", out, source, "-lm"], check=True)
    return out


def run(folder, text="", *settings):
    (folder / "c.toml").write_text('[target]\nkind = "library"\nlibrary = "lib.so"\n' + text)
    settings = [part for s in settings for part in ("--set", s)]
    return sterna("run", folder / "c.toml", "--out", folder / "run", "--json", *settings)


def near(found, exact):
    """5 standard errors: false alarm below 1e-6 each, and seeds are fixed."""
    assert abs(found["mean"] - exact) < 5 * found["mcse"], (found, exact)


def log_z_is(found, exact):
    z = found["log_z"]
    assert abs(z["bar"] - exact) < 5 * z["standard_error"], (z, exact)


def test_the_example_of_supports(tmp_path):
    """Dirichlet shares and a gamma rate, with defaults: names, constrained draws, and log Z over the values."""
    compiled(tmp_path, ROOT / "examples" / "c" / "counts.c")
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [p["name"] for p in found["parameters"]] == ["share[0]", "share[1]", "share[2]", "rate"]
    for parameter, exact in zip(found["parameters"], [13 / 23, 6 / 23, 4 / 23, 21 / 5]):
        near(parameter, exact)
    gammas = math.lgamma(13) + math.lgamma(6) + math.lgamma(4) - math.lgamma(23)
    log_z_is(found, gammas + math.lgamma(21) - 21 * math.log(5))
    assert [o["name"] for o in found["observables"]] == ["first", "last"]
    near(found["observables"][0], 13 / 23 * 21 / 5)
    near(found["observables"][1], 4 / 23 * 21 / 5)
    assert found["target"] == {"kind": "library", "dim": 3} and "of" not in found["log_z"]
    posterior = xarray.open_dataset(tmp_path / "run" / "draws.nc", group="posterior", engine="h5netcdf")
    numpy.testing.assert_allclose(posterior["share"].sum("share_dim_0"), 1.0, rtol=1e-12)
    assert (posterior["rate"] > 0).all()
    numpy.testing.assert_allclose(posterior["first"], posterior["share"][:, :, 0] * posterior["rate"], rtol=1e-12)
    done = sterna("verify", tmp_path / "c.toml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_supports_of_the_config(tmp_path):
    """The same density without names of its own, and a run that goes on to the same bits."""
    source = (ROOT / "examples" / "c" / "counts.c").read_text().replace("sterna_names", "names").replace("sterna_supports", "supports")
    compiled(tmp_path, source)
    text = '''
[[parameters]]
name = "share"
size = 3
support = "simplex"

[[parameters]]
name = "rate"
lower = 0.0
'''
    done = run(tmp_path, text, *SMALL)
    assert done.returncode == 0, done.stderr
    for parameter, exact in zip(json.loads(done.stdout)["parameters"], [13 / 23, 6 / 23, 4 / 23, 21 / 5]):
        near(parameter, exact)
    done = sterna("resume", tmp_path / "run", "--iterations", 6000, "--threads", 1)
    assert done.returncode == 0, done.stderr
    bits = (tmp_path / "run" / "draws.nc").read_bytes()
    shutil.rmtree(tmp_path / "run")
    done = run(tmp_path, text, *SMALL, "run.iterations=6000", "threads=2")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "draws.nc").read_bytes() == bits


LIKELIHOOD = """
size_t sterna_dim(void) { return 2; }
/* Seven heads of ten, and four events: p and a rate. */
int sterna_log_likelihood(size_t rows, size_t dim, const double *x, double *l, double *s) {
    for (size_t i = 0; i < rows; i++) {
        double p = x[2 * i], rate = x[2 * i + 1];
        l[i] = 7 * log(p) + 3 * log1p(-p) + 4 * log(rate) - rate;
        s[2 * i] = 7 / p - 3 / (1 - p);
        s[2 * i + 1] = 4 / rate - 1;
    }
    return 0;
}
"""
PRIORS = """
[[parameters]]
name = "p"
prior = "beta(2, 2)"
[[parameters]]
name = "rate"
prior = "gamma(3, 0.5)"
"""


def test_priors_by_name_give_the_evidence(tmp_path):
    compiled(tmp_path, LIKELIHOOD)
    done = run(tmp_path, PRIORS, *SMALL)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    def log_beta(a, b):
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    evidence = log_beta(9, 5) - log_beta(2, 2) + math.lgamma(7) - 7 * math.log(1.5) + 3 * math.log(0.5) - math.lgamma(3)
    log_z_is(found, evidence)
    near(found["parameters"][0], 9 / 14)
    near(found["parameters"][1], 7 / 1.5)
    assert found["log_z"]["of"] == "evidence"
    assert "log evidence" in (tmp_path / "run" / "report.html").read_text()
    assert 'kind = "prior"' in (tmp_path / "run" / "config.toml").read_text()
    done = sterna("verify", tmp_path / "c.toml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name, evidence", [("shells", -14.5905), ("eggbox", 235.856), ("loggamma", 0.0)])
def test_what_nested_samplers_are_judged_by(tmp_path, name, evidence):
    """A prior transform, no gradient and no word about how to sample it: the evidence, known by other means."""
    compiled(tmp_path, ROOT / "examples" / "c" / f"{name}.c")
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # 4 standard errors: a false alarm in 16,000, and the seed is fixed.
    z = found["log_z"]
    assert abs(z["bar"] - evidence) < 4 * z["standard_error"], (z["bar"], z["standard_error"], evidence)
    assert z["standard_error"] < 0.1 and z["of"] == "evidence" and found["stopped_by"] == "goals"
    if name == "shells":
        near(found["parameters"][0], 0.0)
    assert 'kind = "slice"' in (tmp_path / "run" / "config.toml").read_text()


TWO_HUMPS = """
int sterna_has_score(void) { return 0; }
int sterna_evaluate(size_t rows, size_t dim, const double *x, double *l, double *s) {
    (void)s;
    for (size_t i = 0; i < rows; i++) {
        double a = 0, b = 0;
        for (size_t j = 0; j < dim; j++) { double y = x[i * dim + j]; a += (y - AT) * (y - AT); b += (y + AT) * (y + AT); }
        a *= -2; b = -2 * b + log(3.0);
        l[i] = fmax(a, b) + log1p(exp(-fabs(a - b)));
    }
    return 0;
}
"""


@pytest.mark.parametrize("at, settings", [(2, []), (100, []), (2, ["reference.kind=standard-normal", "reference.scale=3", *SMALL])])
def test_two_modes_without_a_gradient(tmp_path, at, settings):
    """A quarter of the mass at one place, three at another; with defaults they are found wherever they are."""
    compiled(tmp_path, TWO_HUMPS, f"-DAT={at}")
    done = run(tmp_path, "dim = 5\n", *settings)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    log_z_is(found, math.log(4) + 2.5 * math.log(math.pi / 2))
    mean, error = (found["expectations"][key][0] for key in ("mean", "standard_error"))
    assert abs(mean / at + 0.5) < 5 * error / at
    # All that was asked for are evaluations of the density: of climbs some hundred points, each with two for a coordinate.
    assert settings or 11 * 20 < found["evaluations"]["climbing"] < found["evaluations"]["target"] / 10
    done = sterna("verify", tmp_path / "c.toml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_transports_without_a_gradient(tmp_path):
    """Affine ones, and flows whose training follows differences, which are counted: 11 evaluations a score in 5 dimensions."""
    compiled(tmp_path, TWO_HUMPS, "-DAT=1")
    for kind in ("affine", "flow"):
        short = ["chains.count=4", "chains.ensembles=2", "schedule.rounds=4", "schedule.iterations=300", "run.iterations=3000"]
        training = ["training.steps=60", "training.collect=500", "training.batch=64", "network.width=16"]
        done = run(tmp_path, "dim = 5\n", f"accelerator.kind={kind}", "reference.kind=standard-normal", *short, *training)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        log_z_is(found, math.log(4) + 2.5 * math.log(math.pi / 2))
        assert found["evaluations"]["training"] == (60 * 64 * 2 * (2 + 11) if kind == "flow" else 0)
        shutil.rmtree(tmp_path / "run")


@pytest.mark.parametrize("setting, parts", [
    ("explorer.kind=hmc", ["explorer.kind = \"hmc\"", "without a score", "slice"]),
    ("explorer.kind=auto", ["explorer.kind = \"auto\"", "without a score", "slice"]),
    ("accelerator.kind=cmcd", ["accelerator.kind = \"cmcd\"", "without a score", "flow", "affine"]),
    ("accelerator.kind=diffusion", ["accelerator.kind = \"diffusion\"", "without a score", "flow", "affine"]),
])
def test_what_needs_a_gradient_says_so(tmp_path, setting, parts):
    compiled(tmp_path, TWO_HUMPS, "-DAT=2")
    done = run(tmp_path, "dim = 5\n", setting)
    assert done.returncode == 2, done.stderr
    assert all(part in done.stderr for part in parts), done.stderr
    assert not (tmp_path / "run").exists()


def entry(**fields):
    return "[[parameters]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())


RATE = entry(name="rate", support="positive")


@pytest.mark.parametrize("text, parts", [
    (entry(name="p", support="interval(2, 1)") + RATE, ["parameters.p.support = interval(2, 1)", "below"]),
    (entry(name="p", lower=1.0, upper=1.0) + RATE, ["parameters.p.support = interval(1, 1)", "below"]),
    (entry(name="p", support="interval") + RATE, ["parameters.p.support", "give its bounds"]),
    (entry(name="p", support="positiv") + RATE, ["parameters.p.support = \"positiv\"", "unit-vector"]),
    (entry(name="p", support="simplex") + RATE, ["parameters.p.size = 1", "at least 2"]),
    (entry(name="p", support="positive", lower=1.0) + RATE, ["parameters.p.support = \"positive\"", "no bounds"]),
    (entry(name="p", prior="beta(2)") + RATE, ["parameters.p.prior = \"beta(2)\"", "beta(a, b)"]),
    (entry(name="p", prior="beta(2, -1)") + RATE, ["parameters.p.prior = beta(2, -1)", "positive"]),
    (entry(name="p", prior="beta(2, 2)", support="positive") + RATE, ["parameters.p.support = positive", "interval(0, 1)"]),
    (entry(name="p", prior="beta(2, 2)") + RATE, ["parameters.rate.prior is missing"]),
    (entry(name="p", prior="beta(2, 2)"), ["it has dimension 2, but the config speaks of 1", "[[parameters]]"]),
    (entry(name="p", suport="real") + RATE, ["suport", "did you mean `support`?"]),
    (entry(size=2), ["name"]),
    (entry(name="p") + RATE, ["sterna_log_likelihood", "prior", "sterna_prior_transform"]),
    (entry(name="rate", prior="beta(2, 2)") + entry(name="rate", prior="gamma(1, 1)"), ["rate"]),
    (entry(name="p", prior="betta(2, 2)") + RATE, ["parameters.p.prior = \"betta(2, 2)\"", "beta(a, b)"]),
    (entry(name="p", size=2, prior="dirichlet(1, 2, 3)"), ["parameters.p.prior = dirichlet(1, 2, 3)", "as many as there are"]),
    (entry(name="p", size=3, prior="dirichlet(1)"), ["it has dimension 2, but the config speaks of 3", "[[parameters]]"]),
    (entry(name="p", size=0, prior="normal(0, 1)") + RATE, ["parameters.p.size = 0", "at least 1"]),
])
def test_what_is_wrong_is_told_and_nothing_written(tmp_path, text, parts):
    compiled(tmp_path, LIKELIHOOD)
    done = run(tmp_path, text)
    assert done.returncode == 2, done.stderr
    assert all(part in done.stderr for part in parts), done.stderr
    assert not (tmp_path / "run").exists()


TRANSFORM = "int sterna_prior_transform(size_t r, size_t d, const double *u, double *v) {for (size_t i = 0; i < r * d; i++) BODY; return 0;}\n"
CUBE = LIKELIHOOD + TRANSFORM.replace("BODY", "v[i] = u[i]")
SUPPORTS = 'const char *sterna_names(void) { return "p, rate"; }\nconst char *sterna_supports(void) { return "real; positive"; }\n'
WHOLE = LIKELIHOOD.replace("sterna_log_likelihood", "sterna_evaluate")
NO_SCORE = "int sterna_has_score(void) { return 0; }\n"


@pytest.mark.parametrize("source, text, parts", [
    (CUBE, PRIORS, ["parameters.prior", "sterna_prior_transform"]),
    (CUBE + SUPPORTS, "", ["parameters.rate.support = positive", "sterna_prior_transform"]),
    (CUBE, "gradient = true\n", ["target.gradient = true", "sterna_prior_transform"]),
    (WHOLE + TRANSFORM.replace("BODY", "v[i] = u[i]"), "", ["no likelihood", "sterna_log_likelihood"]),
    (WHOLE, PRIORS, ["a whole density", "sterna_log_likelihood"]),
    (WHOLE + NO_SCORE, "gradient = true\n", ["target.gradient = true", "sterna_has_score"]),
    (LIKELIHOOD + TRANSFORM.replace("BODY", "v[i] = NAN"), "", ["no point drawn", "the target says", "sterna_prior_transform"]),
    (LIKELIHOOD + TRANSFORM.replace("BODY", "(void)v"), "", ["the target says: `sterna_prior_transform` makes no value 0"]),
    (WHOLE + SUPPORTS.replace("rate", "p"), "", ["the name `p` is taken", "of its own"]),
])
def test_a_library_against_its_config_and_against_itself(tmp_path, source, text, parts):
    compiled(tmp_path, source)
    done = run(tmp_path, text)
    assert done.returncode == 2, done.stderr
    assert all(part in done.stderr for part in parts), done.stderr
    assert not (tmp_path / "run").exists()


def test_a_likelihood_without_a_value_on_part_of_its_prior(tmp_path):
    """A quarter of the prior has no density: no harm, but an alarm; the evidence is that of the rest."""
    likelihood = LIKELIHOOD.replace("l[i] =", "l[i] = p > 0.75 ? NAN :")
    compiled(tmp_path, likelihood)
    done = run(tmp_path, PRIORS.replace("beta(2, 2)", "uniform(0, 1)"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    p = numpy.linspace(0, 0.75, 100001)
    part = numpy.trapezoid(p**7 * (1 - p) ** 3, p)
    log_z_is(found, math.log(part) + math.lgamma(7) - 7 * math.log(1.5) + 3 * math.log(0.5) - math.lgamma(3))
    assert found["bad_densities"]["count"] > 0 and [a["code"] for a in found["alarms"]] == ["bad-density"]


def test_parameters_belong_to_libraries(tmp_path):
    (tmp_path / "c.toml").write_text('[target]\nkind = "gmm"\n' + RATE)
    done = sterna("run", tmp_path / "c.toml", "--out", tmp_path / "run")
    assert done.returncode == 2 and "[[parameters]] belongs to kind = \"library\", not \"gmm\"" in done.stderr, done.stderr
