"""Run folders of targets that live in a Rust program, through ArviZ: the examples of the book."""

import json
import pathlib
import subprocess
import warnings

import numpy as np
import pytest

from sterna_cli import PROGRAM, ROOT, sterna

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz


def example(name):
    """The program, built beside `sterna`."""
    program = pathlib.Path(PROGRAM).parent / "examples" / name
    if not program.exists():
        profile = ["--release"] if program.parts[-3] == "release" else []
        subprocess.run(["cargo", "build", "--quiet", "-p", "sterna-run", "--example", name, *profile], cwd=ROOT, check=True)
    return program


@pytest.fixture(scope="module")
def humps(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "humps"
    done = subprocess.run([example("own_problem"), out], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return out, json.loads((out / "summary.json").read_text()), done.stdout


def test_arviz_shows_the_names(humps):
    out, summary, printed = humps
    draws = arviz.from_netcdf(out / "draws.nc")
    assert list(draws.posterior.data_vars) == ["mu", "theta", "right"]
    assert draws.posterior["theta"].dims == ("chain", "draw", "theta_dim_0")
    assert draws.posterior["mu"].shape == (2, 4000)
    table = arviz.summary(draws, kind="stats")
    assert list(table.index) == ["mu", "theta[0]", "theta[1]", "right"]
    named = {row["name"]: row for row in summary["parameters"] + summary["observables"]}
    assert list(named) == list(table.index)
    for name, row in named.items():
        assert row["mean"] == pytest.approx(table.loc[name, "mean"], abs=6e-4)
        assert row["sd"] == pytest.approx(table.loc[name, "sd"], abs=6e-4)
        assert name in printed
    # Half the mass lies on either side; 5 standard errors at a fixed seed.
    assert abs(named["right"]["mean"] - 0.5) < 5 * named["right"]["mcse"]
    right = draws.posterior["right"].values
    np.testing.assert_array_equal(right, draws.posterior["mu"].values > 0)


def test_the_report_and_the_program_know_such_folders(humps):
    out, summary, _ = humps
    assert summary["target"]["kind"] == "own" and summary["finished"] is True
    assert sterna("report", out).returncode == 0
    page = (out / "report.html").read_text()
    assert "theta[1]" in page
    done = sterna("resume", out)
    assert done.returncode == 2 and "lives in the program" in done.stderr and "humps" in done.stderr
    assert sterna("run", out / "config.toml", "--out", out / "again").returncode == 2
