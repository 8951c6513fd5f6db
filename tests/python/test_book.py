"""Pages of the book for people with models: what a reader who copies their blocks gets, held against exact values."""

import json
import math
import shutil
import subprocess

import pytest

from book import follow, write_files
from sterna_cli import example, sterna

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def near(found, exact):
    """5 standard errors: false alarm below 1e-6 each, and seeds are fixed."""
    assert abs(found["mean"] - exact) < 5 * found["mcse"], (found, exact)


def log_z_is(found, exact):
    z = found["log_z"]
    assert abs(z["bar"] - exact) < 5 * z["standard_error"], (z, exact)


def log_beta(*all):
    return sum(map(math.lgamma, all)) - math.lgamma(sum(all))


# p⁵(1 − p)³, and 2π I₀(4) of a direction.
COIN = log_beta(6, 4) + math.log(2 * math.pi * 11.301921952136330)


def test_parameters_with_supports(tmp_path):
    follow(write_files("parameters.md", tmp_path), tmp_path)
    found = summary(tmp_path / "runs" / "coin")
    assert [p["name"] for p in found["parameters"]] == ["heads", "north"]
    near(found["parameters"][0], 0.6)
    log_z_is(found, COIN)
    # The names and supports of the config must agree with the library's, and do.
    done = sterna("verify", tmp_path / "named.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([example("own_parameters"), tmp_path / "rust"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = summary(tmp_path / "rust")
    log_z_is(found, COIN)
    assert found["observables"][0]["name"] == "odds"
    near(found["observables"][0], 6 / 3)


def test_your_likelihood_and_prior(tmp_path):
    follow(write_files("likelihood.md", tmp_path), tmp_path)
    found = summary(tmp_path / "runs" / "shares")
    assert found["log_z"]["of"] == "evidence" and found["stopped_by"] == "goals"
    for parameter, exact in zip(found["parameters"], [14 / 26, 7 / 26, 5 / 26]):
        near(parameter, exact)
    ways = math.lgamma(21) - math.lgamma(13) - math.lgamma(6) - math.lgamma(4)
    log_z_is(found, ways + log_beta(14, 7, 5) - log_beta(2, 2, 2))
    found = summary(tmp_path / "runs" / "peaks")
    assert found["log_z"]["of"] == "evidence" and found["stopped_by"] == "goals"
    log_z_is(found, math.log(2 * math.pi / 2 / 400))
    near(found["parameters"][0], 0.0)
    assert 'kind = "slice"' in (tmp_path / "runs" / "peaks" / "config.toml").read_text()
