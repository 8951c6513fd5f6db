"""Models of Stan from Python, by a library in C with BridgeStan's functions; runs that go on at the command line."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import sterna
from conftest import ROOT, SHORT, same_draws


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    out = tmp_path_factory.mktemp("stan") / "model.so"
    source = ROOT / "crates" / "sterna-run" / "tests" / "stan" / "model.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", out, source, "-lm"], check=True)
    return out


def test_data_from_a_dictionary(model, tmp_path, capfd):
    target = sterna.from_stan(model, data={"m": np.float64(0.3)})
    assert target.dim == 2 and target.names == ["sigma", "p[1]", "p[2]"]
    run = sterna.sample(target, draws=400, seed=1, progress_bar=False)
    # Z = sqrt(2 pi)/2 B(2, 3); 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    assert abs(run.log_z - np.log(np.sqrt(2 * np.pi) / 2 / 12)) < 5 * run.log_z_error
    np.testing.assert_allclose(run.draws["p"].sum(2), 1.0)
    file = tmp_path / "data.json"
    file.write_text(json.dumps({"m": 0.3}))
    same_draws(run, sterna.sample(sterna.from_stan(model, file), draws=400, seed=1, progress_bar=False))

    class Model:
        """As cmdstanpy has them."""

        stan_file = str(model)

    assert sterna.from_stan(Model(), data={"m": 0.3}).names == target.names


def test_a_run_goes_on_at_the_command_line(model, program, tmp_path):
    target = sterna.from_stan(model, data={"m": 0.3})
    settings = {**SHORT, "seed": 2}
    whole = sterna.sample(target, **{**settings, "iterations": 600})
    sterna.sample(target, **settings, store=tmp_path / "run")
    done = program("resume", tmp_path / "run", "--iterations", 600)
    assert done.returncode == 0, done.stderr
    same_draws(sterna.load(tmp_path / "run"), whole)
    assert sterna.resume(tmp_path / "run", iterations=700, progress_bar=False).draws["sigma"].shape[1] == 700


def test_what_is_no_model(tmp_path):
    with pytest.raises(sterna.ConfigError, match="no such file"):
        sterna.from_stan(tmp_path / "nothing.so")
    with pytest.raises(sterna.ConfigError, match="the text of a Stan model"):
        sterna.from_stan("parameters { real x; } model { x ~ normal(0, 1); }")
    with pytest.raises(sterna.ConfigError, match="no Stan model"):
        sterna.from_stan(3)
    with pytest.raises(TypeError, match="no data for Stan"):
        sterna.from_stan(tmp_path / "nothing.so", data={"m": object()})
