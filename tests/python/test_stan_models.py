"""Real Stan models, compiled with nothing but packages, held against exact values, and against the same models in C and in Rust."""

import ctypes
import json
import math
import shutil
import subprocess

import numpy
import pytest
import xarray

from book import blocks, follow, write_files
from sterna_cli import ROOT, example, sterna

if shutil.which("g++") is None:
    pytest.skip("there is no C++ compiler", allow_module_level=True)

from stan_models import GALAXIES, SHARES, compiled

COUNTS = {"K": 3, "counts": [12, 5, 3], "limit": 1}


def log_beta(*all):
    return sum(map(math.lgamma, all)) - math.lgamma(sum(all))


def same(a, b):
    """5 standard errors of both: false alarm below 1e-6 each, and seeds are fixed."""
    assert abs(a["mean"] - b["mean"]) < 5 * math.hypot(a["mcse"], b["mcse"]), (a, b)


def same_log_z(a, b):
    (a, b) = (a["log_z"], b["log_z"])
    assert abs(a["bar"] - b["bar"]) < 5 * math.hypot(a["standard_error"], b["standard_error"]), (a, b)


def run(folder, source, *settings, data=COUNTS, out="run"):
    shutil.copy(compiled(source), folder / "model.so")
    (folder / "data.json").write_text(json.dumps(data))
    (folder / "c.toml").write_text('[target]\nkind = "stan"\nmodel = "model.so"\ndata = "data.json"\n')
    settings = [part for s in settings for part in ("--set", s)]
    return sterna("run", folder / "c.toml", "--out", folder / out, "--json", *settings)


def in_c(folder, name, more=""):
    library = folder / f"{name}.so"
    source = ROOT / "examples" / "c" / f"{name}.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", ROOT / "include", "-o", library, source, "-lm"], check=True)
    (folder / f"{name}.toml").write_text(f'[target]\nkind = "library"\nlibrary = "{name}.so"\n' + more)
    done = sterna("run", folder / f"{name}.toml", "--out", folder / name, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_rust(folder, name):
    done = subprocess.run([example("models"), name, folder / "rust"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "rust" / "summary.json").read_text())


def test_shares_in_stan_in_c_and_in_rust(tmp_path):
    done = run(tmp_path, SHARES)
    assert done.returncode == 0, done.stderr
    # The model prints at each evaluation; stdout is the summary all the same.
    found = json.loads(done.stdout)
    names = [f"share[{k}]" for k in (1, 2, 3)] + ["odds"] + [f"again[{k}]" for k in (1, 2, 3)]
    assert [p["name"] for p in found["parameters"]] == names
    # Dirichlet(14, 7, 5), E p/(1 − p) of Beta(14, 12), and counts of 20.
    exact = [14 / 26, 7 / 26, 5 / 26, 14 / 11, 20 * 14 / 26, 20 * 7 / 26, 20 * 5 / 26]
    for parameter, mean in zip(found["parameters"], exact):
        assert abs(parameter["mean"] - mean) < 5 * parameter["mcse"], (parameter, mean)
    ways = math.lgamma(21) - math.lgamma(13) - math.lgamma(6) - math.lgamma(4)
    log_z = ways + log_beta(14, 7, 5) - log_beta(2, 2, 2)
    for other in (found, in_c(tmp_path, "shares", '[[parameters]]\nname = "share"\nsize = 3\nprior = "dirichlet(2)"\n'), in_rust(tmp_path, "shares")):
        assert abs(other["log_z"]["bar"] - log_z) < 5 * other["log_z"]["standard_error"], (other["log_z"], log_z)
        for a, b in zip(found["parameters"], other["parameters"]):
            same(a, b)
    draws = xarray.open_dataset(tmp_path / "run" / "draws.nc", group="posterior", engine="h5netcdf")
    numpy.testing.assert_allclose(draws["share"].sum("share_dim_0"), 1.0, rtol=1e-12)
    numpy.testing.assert_allclose(draws["odds"], draws["share"][:, :, 0] / (1 - draws["share"][:, :, 0]), rtol=1e-9)
    assert (draws["again"].sum("again_dim_0") == 20).all()


def test_bits_are_stans_and_threads_change_none(tmp_path):
    done = run(tmp_path, SHARES, "run.iterations=300", "threads=1", out="one")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, SHARES, "run.iterations=300", "threads=4", out="four")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "one" / "draws.nc").read_bytes() == (tmp_path / "four" / "draws.nc").read_bytes()
    points = numpy.random.default_rng(3).normal(size=(50, 2))
    (tmp_path / "p.json").write_text(json.dumps(points.tolist()))
    found = json.loads(sterna("evaluate", tmp_path / "c.toml", tmp_path / "p.json").stdout)
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    library.bs_model_construct.restype = ctypes.c_void_p
    model = ctypes.c_void_p(library.bs_model_construct((tmp_path / "data.json").read_bytes(), 0, None))
    pair = ctypes.c_double * 2
    for point, log_density, score in zip(points, found["log_density"], found["score"]):
        value, gradient = ctypes.c_double(), pair()
        assert library.bs_log_density_gradient(model, True, True, pair(*point), ctypes.byref(value), gradient, None) == 0
        assert (value.value, list(gradient)) == (log_density, score)


def test_what_a_model_throws_is_told(tmp_path):
    done = run(tmp_path, SHARES, data={**COUNTS, "limit": 0.7})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    first = found["bad_densities"]["first"]
    assert found["bad_densities"]["count"] > 0 and "the first share is 0." in first["says"]
    alarm = next(alarm for alarm in found["alarms"] if alarm["code"] == "bad-density")
    assert "the first share is 0." in alarm["message"]
    assert "the first share is 0." in (tmp_path / "run" / "log.jsonl").read_text()
    draws = xarray.open_dataset(tmp_path / "run" / "draws.nc", group="posterior", engine="h5netcdf")
    assert draws["share"][:, :, 0].max() <= 0.7


@pytest.mark.parametrize("change, parts", [
    ({"limit": 0}, ["the density vanishes", "the target says", "the first share is 0.33"]),
    ({"counts": [12, 5]}, ["target.data", "Stan says", "mismatch in dimension", "counts"]),
    ({"counts": "many"}, ["target.data", "Stan says", "counts"]),
    ({"K": 1, "counts": [3]}, ["Stan says", "K"]),
])
def test_wrong_data_and_a_model_that_always_throws(tmp_path, change, parts):
    done = run(tmp_path, SHARES, data={**COUNTS, **change})
    assert done.returncode == 2, done.stderr
    assert all(part in done.stderr for part in parts), done.stderr
    assert not (tmp_path / "run").exists()


def test_the_book_and_eight_schools_in_c_and_in_rust(tmp_path):
    """The page's model is compiled by our own tools, as an installed BridgeStan would; all else is typed."""
    commands = write_files("stan.md", tmp_path)
    source = next(text for language, text in blocks("stan.md") if language == "stan")
    shutil.copy(compiled(source), tmp_path / "schools_model.so")
    follow(commands, tmp_path)
    found = json.loads((tmp_path / "runs" / "schools" / "summary.json").read_text())
    names = ["mu", "tau", *(f"theta[{j}]" for j in range(1, 9)), "spread", "best", *(f"again[{j}]" for j in range(1, 9))]
    assert [p["name"] for p in found["parameters"]] == names and found["stopped_by"] == "goals"
    for other in (in_c(tmp_path, "schools"), in_rust(tmp_path, "eight-schools")):
        same_log_z(found, other)
        rows = other["parameters"] + other["observables"]
        assert [row["name"] for row in rows] == ["mu", "tau", *(f"theta[{j}]" for j in range(8)), "spread"]
        for a, b in zip(found["parameters"], rows):
            same(a, b)
    # The other config of the page: data in the text, a seed, declared parameters alone.
    short = [part for s in ("schedule.rounds=2", "schedule.iterations=200", "run.iterations=200") for part in ("--set", s)]
    done = sterna("run", tmp_path / "library.toml", "--out", tmp_path / "two", "--json", *short)
    assert done.returncode == 0, done.stderr
    assert [p["name"] for p in json.loads(done.stdout)["parameters"]] == ["mu", "tau", "theta[1]", "theta[2]"]


def test_galaxies_in_stan_in_c_and_in_rust(tmp_path):
    """Six modes that weigh the same: what any order of the three normals leaves as it is, and what it exchanges."""
    source = (ROOT / "examples" / "c" / "galaxies.c").read_text()
    velocities = [float(v) for v in source.split("VELOCITIES[82] = {")[1].split("}")[0].split(",")]
    done = run(tmp_path, GALAXIES, data={"N": len(velocities), "velocity": velocities})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = [f"{name}[{k}]" for name in ("mu", "sigma", "weight") for k in (1, 2, 3)] + ["lowest", "highest"]
    assert [p["name"] for p in found["parameters"]] == names
    for other in (in_c(tmp_path, "galaxies"), in_rust(tmp_path, "galaxies")):
        same_log_z(found, other)
        rows = other["parameters"] + other["observables"]
        assert len(rows) == len(names) and [row["name"] for row in other["observables"]] == ["lowest", "highest"]
        for a, b in zip(found["parameters"], rows):
            same(a, b)
            assert b["ess_bulk"] > 400 and b["r_hat"] < 1.02
        # Each of the three is as often the lowest, in the middle and the highest as the others.
        for name in ("mu", "sigma", "weight"):
            first, *others = [row for row in rows if row["name"].startswith(name + "[")]
            for one in others:
                same(first, one)
