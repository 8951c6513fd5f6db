"""Overnight runs: memory and disk stay bounded, however many iterations there are.

`STERNA_SOAK` is the length of the soak in seconds.
"""

import json
import pathlib
import signal
import subprocess
import time

import numpy as np

from depth import count
from sterna_cli import PROGRAM

SMALL = ["target.kind=normal", "target.dim=2", "chains.count=4"]
SOAK = count("STERNA_SOAK", 90, 600)


def start(out, *settings):
    command = [PROGRAM, "run", "--out", out, "--threads", "1"]
    for setting in [*SMALL, *settings]:
        command += ["--set", setting]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def memory(process):
    """MiB that the process itself has taken, without mapped files."""
    status = pathlib.Path(f"/proc/{process.pid}/status")
    try:
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["RssAnon"].split()[0]) / 1024
    except (FileNotFoundError, KeyError, ProcessLookupError):
        return None


def watch(process, seconds):
    """Memory once a second until the process ends or time is up."""
    seen, end = [], time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        seen.append(memory(process))
        time.sleep(1)
    return np.array([m for m in seen if m is not None])


def disk(folder):
    """MiB of all files."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 2**20


def test_ten_million_iterations(tmp_path):
    out = tmp_path / "run"
    process = start(out, "run.iterations=10000000", "run.thin=1000", "run.checkpoint_seconds=10")
    seen = watch(process, 3600)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found = json.loads((out / "summary.json").read_text())
    print(f"\n10,000,000 iterations: {found['time']['sampling_s']:.0f} s, at most {seen.max():.0f} MiB of memory, "
          f"{disk(out):.1f} MiB of disk, log Z {found['log_z']['bar']:.5f} ± {found['log_z']['standard_error']:.5f}")
    assert found["finished"] and found["iterations"] == 10_000_000
    assert seen.max() < 150 and disk(out) < 20
    log_z = found["log_z"]
    assert abs(log_z["bar"] - log_z["truth"]) < 4 * log_z["standard_error"]  # false alarm 6e-5
    # 30 million proposals of three pairs: the error is known to be small.
    assert log_z["standard_error"] < 2e-3


def test_a_soak_leaves_memory_flat(tmp_path):
    out = tmp_path / "run"
    process = start(out, "run.iterations=1000000000000", "run.thin=100000", "run.checkpoint_seconds=5")
    seen = watch(process, SOAK)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "sterna resume" in errors, errors
    third = len(seen) // 3
    early, late = np.median(seen[third:2 * third]), np.median(seen[2 * third:])
    print(f"\n{SOAK} s: {early:.1f} MiB in the second third, {late:.1f} MiB in the last, {disk(out):.1f} MiB of disk")
    assert late < 1.02 * early + 1
