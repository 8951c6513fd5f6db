"""Models of Stan, by a library in C with BridgeStan's functions: from configs, to draws that ArviZ reads."""

import json
import shutil
import subprocess

import numpy
import pytest
import xarray

from sterna_cli import ROOT, sterna

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

SMALL = ["chains.count=4", "chains.ensembles=2", "schedule.rounds=4", "schedule.iterations=300", "run.iterations=4000"]


def compiled(folder, *flags):
    out = folder / "model.so"
    source = ROOT / "crates" / "sterna-run" / "tests" / "stan" / "model.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *flags, "-o", out, source, "-lm"], check=True)
    return out


def run(folder, data='"data.json"', *settings):
    (folder / "c.toml").write_text(f'[target]\nkind = "stan"\nmodel = "model.so"\ndata = {data}\n')
    settings = [part for s in [*SMALL, *settings] for part in ("--set", s)]
    # From another folder: names of files are relative to the config's.
    return sterna("run", folder / "c.toml", "--out", folder / "run", "--json", *settings)


def test_draws_are_of_the_declared_parameters(tmp_path):
    compiled(tmp_path)
    (tmp_path / "data.json").write_text('{"m": 0.3}')
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    # The model prints at each evaluation; stdout is the summary all the same.
    found = json.loads(done.stdout)
    assert [p["name"] for p in found["parameters"]] == ["sigma", "p[1]", "p[2]"]
    posterior = xarray.open_dataset(tmp_path / "run" / "draws.nc", group="posterior", engine="h5netcdf")
    assert posterior["sigma"].dims == ("chain", "draw") and posterior["p"].dims == ("chain", "draw", "p_dim_0")
    assert posterior["p"].shape == (2, 4000, 2)
    numpy.testing.assert_allclose(posterior["p"].sum("p_dim_0"), 1.0, rtol=1e-12)
    means = [posterior["sigma"].mean(), *posterior["p"].mean(("chain", "draw"))]
    numpy.testing.assert_allclose([p["mean"] for p in found["parameters"]], means, rtol=1e-12)
    # The free parameters are where they always are.
    numpy.testing.assert_allclose(found["expectations"]["mean"][0], numpy.log(posterior["sigma"]).mean(), rtol=1e-12)


def test_verify_evaluate_resume_and_threads(tmp_path):
    compiled(tmp_path)
    done = run(tmp_path, "'{\"m\": 0.3}'", "run.iterations=1000")
    assert done.returncode == 0, done.stderr
    done = sterna("resume", tmp_path / "run", "--iterations", 2000, "--threads", 1)
    assert done.returncode == 0, done.stderr
    (tmp_path / "again").mkdir()
    shutil.copy(tmp_path / "model.so", tmp_path / "again")
    done = run(tmp_path / "again", "'{\"m\": 0.3}'", "run.iterations=2000", "threads=2")
    assert done.returncode == 0, done.stderr
    draws = [(tmp_path / name / "draws.nc").read_bytes() for name in ("run", "again/run")]
    assert draws[0] == draws[1]
    done = sterna("verify", tmp_path / "c.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "p.json").write_text("[[0.3, 0.0]]")
    done = sterna("evaluate", tmp_path / "c.toml", tmp_path / "p.json")
    assert json.loads(done.stdout)["log_density"][0] == pytest.approx(5 * numpy.log(0.5))


@pytest.mark.parametrize("flags, data, parts", [
    ([], '"none.json"', ["target.data", "none.json", "cannot read"]),
    ([], "'{\"n\": 1}'", ["target.model", "Stan says", "variable name=m", "target.data"]),
    ([], "'{\"m\": 0, \"limit\": 0}'", ["the density vanishes", "sigma is too large"]),
    (["-DMAJOR=4"], "'{\"m\": 0}'", ["target.model", "BridgeStan 4", "BridgeStan 2"]),
])
def test_what_is_wrong_is_told(tmp_path, flags, data, parts):
    compiled(tmp_path, *flags)
    done = run(tmp_path, data)
    assert done.returncode == 2, done.stderr
    assert all(part in done.stderr for part in parts), done.stderr


def test_a_library_of_another_kind_is_told(tmp_path):
    compiled(tmp_path)
    done = sterna("run", "--set", "target.kind=library", "--set", f"target.library={tmp_path / 'model.so'}", "--out", tmp_path / "run")
    assert done.returncode == 2 and 'target.kind = "stan"' in done.stderr, done.stderr
    banana = ROOT / "examples" / "c" / "banana.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", ROOT / "include", "-o", tmp_path / "model.so", banana, "-lm"], check=True)
    for command in ("run", "verify"):
        (tmp_path / "c.toml").write_text('[target]\nkind = "stan"\nmodel = "model.so"\n')
        done = sterna(command, tmp_path / "c.toml", *(["--out", tmp_path / "run"] if command == "run" else []))
        assert done.returncode == 2 and 'target.kind = "library"' in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


def test_verify_says_what_the_model_says(tmp_path):
    compiled(tmp_path)
    (tmp_path / "c.toml").write_text("[target]\nkind = \"stan\"\nmodel = \"model.so\"\ndata = '{\"m\": 0, \"limit\": 0}'\n")
    done = sterna("verify", tmp_path / "c.toml")
    assert done.returncode == 2 and "the target says" in done.stderr and "sigma is too large" in done.stderr, done.stderr
