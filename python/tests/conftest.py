"""What tests share: a density in several languages, and the program of the same build."""

import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest

# Shells start what goes on in the background deaf to Ctrl-C, and so would be all programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = pathlib.Path(os.environ.get("STERNA_PROGRAM", ROOT / "target" / "debug" / "sterna"))

# A short run of a fixed length, with what goes with the paper's own targets.
SHORT = {
    "reference": "standard-normal", "chains": 4, "ensembles": 2, "explorer": {"kind": "hmc"},
    "schedule": {"rounds": 3, "iterations": 200}, "burn_in": 50, "iterations": 400, "progress_bar": False,
}  # fmt: skip


def humps(x):
    """Two humps on a line, and as many normals beside as there are further coordinates: log density and score, by rows."""
    a, b = -8.0 * (x[:, 0] - 1.0) ** 2, -8.0 * (x[:, 0] + 1.0) ** 2
    top = np.maximum(a, b)
    share = np.exp(a - top) / (np.exp(a - top) + np.exp(b - top))
    score = -x
    score[:, 0] = -16.0 * (x[:, 0] - 1.0) * share - 16.0 * (x[:, 0] + 1.0) * (1.0 - share)
    return np.logaddexp(a, b) - 0.5 * (x[:, 1:] ** 2).sum(1), score


def humps_log_z(dim):
    return np.log(2.0 * np.sqrt(np.pi / 8.0)) + 0.5 * (dim - 1) * np.log(2.0 * np.pi)


@pytest.fixture(scope="session")
def program():
    """Runs the command line; it must have been built."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")

    def run(*arguments):
        command = [str(PROGRAM), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    return run


def same_draws(a, b):
    assert a.draws.keys() == b.draws.keys()
    for name, values in a.draws.items():
        np.testing.assert_array_equal(values, b.draws[name])
    np.testing.assert_array_equal(a.sample_stats["lp"], b.sample_stats["lp"])
