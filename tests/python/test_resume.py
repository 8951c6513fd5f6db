"""Runs that are stopped, killed or starved go on as if nothing had happened: same draws, same summary."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from kills import resumed_in, same
from sterna_cli import PROGRAM, ROOT, sterna

# A small trained run with all stages: tuning, collecting, training (twice), burn-in, sampling.
TRAINED = """
seed = 5
[target]
kind = "gmm"
dim = 2
[chains]
count = 4
ensembles = 3
[schedule]
rounds = 3
iterations = 3000
[accelerator]
kind = "cmcd"
steps = 2
[network]
layers = 2
width = 16
[training]
rounds = 2
collect = 3000
steps = 500
batch = 32
[run]
iterations = 20000
burn_in = 2000
thin = 5
checkpoint_seconds = 0.0
"""

KILLS = int(os.environ.get("STERNA_KILLS", "6"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that nobody disturbed, and how long it took."""
    folder = tmp_path_factory.mktemp("whole")
    config = folder / "c.toml"
    config.write_text(TRAINED)
    begin = time.monotonic()
    done = sterna("run", config, "--out", folder / "run", "--threads", 1)
    assert done.returncode == 0, done.stderr
    return config, folder / "run", time.monotonic() - begin


def test_killed_runs_resume_to_the_same_bits(whole, tmp_path):
    config, undisturbed, seconds = whole
    out = tmp_path / "run"
    moments = random.Random(20)
    command = [PROGRAM, "run", config, "--out", out]
    wanted = {"Tuning", "Collecting", "Fitting", "Sampling"} if KILLS >= 25 else set()
    kills, stages = 0, []
    for attempt in range(20 * KILLS):
        threads = str(moments.choice([1, 2, 3]))
        process = subprocess.Popen([*map(str, command), "--threads", threads],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        enough = kills >= KILLS and wanted <= set(stages + resumed_in(out))
        try:
            # Spread over the length of the run; the last one may live.
            life = None if enough else moments.uniform(0.02, 2.0 * seconds / KILLS)
            _, errors = process.communicate(timeout=life)
            assert process.returncode == 0, errors
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
        if process.returncode == 0:
            same(out, undisturbed)
            stages += resumed_in(out)
            if enough:
                break
            shutil.rmtree(out)
        # Killed before the folder held a config, it has to begin anew.
        command = [PROGRAM, "resume", out] if (out / "config.toml").exists() else [PROGRAM, "run", config, "--out", out]
    print(f"\n{kills} kills, resumed in", {stage: stages.count(stage) for stage in sorted(set(stages))})
    assert kills >= KILLS and wanted <= set(stages)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_how_to_go_on(whole, tmp_path, stop):
    config, undisturbed, seconds = whole
    out = tmp_path / "run"
    process = subprocess.Popen([PROGRAM, "run", config, "--out", out], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: (out / "checkpoint" / "state").exists())
    time.sleep(0.1 * seconds)
    process.send_signal(stop)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and f"sterna resume {out}" in errors, errors
    done = sterna("resume", out, "--threads", 2, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((out / "summary.json").read_text())
    same(out, undisturbed)


def small(out, *more, iterations=3000):
    settings = ["target.kind=normal", "target.dim=2", "chains.count=3", "schedule.rounds=2", "schedule.iterations=200",
                f"run.iterations={iterations}"]
    return sterna("run", "--out", out, *(part for s in settings for part in ("--set", s)), *more)


def test_a_finished_run_can_be_made_longer(tmp_path):
    assert small(tmp_path / "short").returncode == 0
    assert small(tmp_path / "long", iterations=8000).returncode == 0
    done = sterna("resume", tmp_path / "short", "--iterations", 8000)
    assert done.returncode == 0, done.stderr
    same(tmp_path / "short", tmp_path / "long")
    assert (tmp_path / "short/config.toml").read_text() == (tmp_path / "long/config.toml").read_text()
    shorter = sterna("resume", tmp_path / "short", "--iterations", 5000)
    assert shorter.returncode == 2 and "longer, not shorter" in shorter.stderr
    # Nothing to do is no error.
    assert sterna("resume", tmp_path / "short").returncode == 0
    same(tmp_path / "short", tmp_path / "long")


def test_bad_checkpoints_are_refused_and_nothing_is_changed(tmp_path):
    out = tmp_path / "run"
    assert small(out).returncode == 0
    state = out / "checkpoint" / "state"
    good = state.read_bytes()
    config = (out / "config.toml").read_text()
    edited = bytearray(good)
    edited[len(good) // 2] ^= 1
    other_format = good[:8] + b"\x63\0\0\0" + good[12:]
    cases = [(good[:-7], "truncated"), (bytes(edited), "checksum"), (other_format, "format 99"), (b"", "not written")]
    for bytes_, part in cases:
        state.write_bytes(bytes_)
        before = {f: f.read_bytes() for f in out.rglob("*") if f.is_file() and f.name != "lock"}
        done = sterna("resume", out)
        assert done.returncode == 2 and part in done.stderr and str(state) in done.stderr, done.stderr
        assert before == {f: f.read_bytes() for f in out.rglob("*") if f.is_file() and f.name != "lock"}
    state.write_bytes(good)
    for old, new, part in [("leapfrog_steps = 5", "leapfrog_steps = 6", "explorer.leapfrog_steps is 6 now, but was 5"),
                           ("seed = 1", "seed = 2", "seed is 2 now, but was 1"),
                           ("iterations = 3000", "iterations = 2000", "run.iterations is 2000 now, but was 3000")]:
        assert old in config
        (out / "config.toml").write_text(config.replace(old, new))
        done = sterna("resume", out)
        assert done.returncode == 2 and part in done.stderr, done.stderr
    (out / "config.toml").write_text(config)
    assert sterna("resume", out).returncode == 0
    missing = sterna("resume", tmp_path / "nowhere")
    assert missing.returncode == 2 and "nowhere" in missing.stderr


ENDLESS = ["--set", "run.iterations=500000000", "--set", "run.thin=1000", "--set", "target.kind=normal", "--set",
           "target.dim=2", "--set", "chains.count=3", "--set", "schedule.rounds=1", "--set", "run.checkpoint_seconds=0.2"]


def wait_for(condition, seconds=60, pause=0.05):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(pause)


@pytest.fixture
def endless(tmp_path):
    """A run that goes on until it is stopped, with draws on disk."""
    out = tmp_path / "run"
    process = subprocess.Popen([PROGRAM, "run", "--out", out, *ENDLESS], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: (out / "draws.nc").exists() and (out / "summary.json").exists() or process.poll() is not None)
    yield out, process
    process.kill()
    process.communicate()


def test_results_can_be_read_while_the_run_goes_on(endless):
    import arviz
    out, process = endless
    seen = []

    def has_grown():
        found = json.loads((out / "summary.json").read_text())
        assert found["finished"] is False
        draws = arviz.from_netcdf(out / "draws.nc").posterior["x"]
        assert draws.shape[2] == 2 and draws.shape[1] > 0
        seen.append(found["iterations"])
        return seen[-1] > seen[0]

    wait_for(has_grown)
    assert seen == sorted(seen)
    assert process.poll() is None


def test_two_runs_cannot_share_a_folder(endless):
    out, process = endless
    for command in (["resume", out], ["run", "--out", out]):
        done = sterna(*command)
        assert done.returncode == 2, done.stderr
        assert str(process.pid) in done.stderr or "holds a run already" in done.stderr
    assert process.poll() is None
    # The lock of a killed process does not outlive it.
    process.kill()
    process.communicate()
    process = subprocess.Popen([PROGRAM, "resume", out], stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "stopped on request" in errors


def test_the_second_interrupt_stops_at_once(endless):
    out, process = endless
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 1
    # Whatever was under way, the last checkpoint is whole.
    process = subprocess.Popen([PROGRAM, "resume", out], stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "stopped on request" in errors


def limited(command, kilobytes):
    """Runs with a bound on the size of files: the system answers like a full disk."""
    import resource

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, kilobytes * 1024))

    return subprocess.run([PROGRAM, *map(str, command)], preexec_fn=limit, capture_output=True, text=True, timeout=120)


def test_a_full_disk_loses_nothing(tmp_path):
    assert small(tmp_path / "whole", iterations=60000).returncode == 0
    out = tmp_path / "run"
    settings = ["target.kind=normal", "target.dim=2", "chains.count=3", "schedule.rounds=2", "schedule.iterations=200",
                "run.iterations=60000", "run.checkpoint_seconds=0.0"]
    done = limited(["run", "--out", out, *(part for s in settings for part in ("--set", s))], 400)
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr and "make room" in done.stderr and f"sterna resume {out}" in done.stderr
    assert not list(out.rglob("*.partial"))
    # With room again, the run goes on and ends as if nothing had happened.
    done = sterna("resume", out)
    assert done.returncode == 0, done.stderr
    same(out, tmp_path / "whole")


def test_a_place_that_cannot_be_written_to(tmp_path):
    done = small("/proc/nowhere/run")
    assert done.returncode == 2 and "/proc/nowhere" in done.stderr
    file = tmp_path / "file"
    file.write_text("")
    done = small(file / "run")
    assert done.returncode == 2 and str(file) in done.stderr
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        done = small(tmp_path / "closed" / "run")
        assert done.returncode == 2 and "--out" in done.stderr


# Two modes, and slow enough to be caught at anything.
SLOW = """
#include <math.h>
#include <unistd.h>
#include "sterna.h"
size_t sterna_dim(void) { return 2; }
int sterna_evaluate(size_t rows, size_t dim, const double *x, double *l, double *s) {
    usleep(20 * rows);
    for (size_t i = 0; i < rows; i++) {
        double a = 0, b = 0;
        for (size_t j = 0; j < dim; j++) {
            double u = x[i * dim + j];
            a -= u * u / 2;
            b -= (u - 9) * (u - 9) / 2;
        }
        double top = fmax(a, b), share = 1 / (exp(a - top) + exp(b - top));
        l[i] = top - log(share);
        for (size_t j = 0; j < dim; j++) s[i * dim + j] = -x[i * dim + j] + 9 * exp(b - top) * share;
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A run from a fitted reference that nobody disturbed."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "slow.c").write_text(SLOW)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", ROOT / "include", "-o", folder / "slow.so", folder / "slow.c", "-lm"],
                   check=True)
    config = folder / "c.toml"
    config.write_text(f'[target]\nkind = "library"\nlibrary = "{folder}/slow.so"\n[run]\ncheckpoint_seconds = 0.0\n[run.until]\ness = 200\n')
    done = sterna("run", config, "--out", folder / "run", "--threads", 1)
    assert done.returncode == 0, done.stderr
    return config, folder / "run"


def kill_in(stage, command, out):
    """Kills the process once it is in a stage and has said so in a checkpoint."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    state = out / "checkpoint" / "state"

    def there():
        assert process.poll() is None, process.communicate()[1]
        try:
            return json.loads((out / "progress.json").read_text())["snapshot"]["stage"] == stage and state.exists()
        except (FileNotFoundError, json.JSONDecodeError):
            return False

    wait_for(there, pause=0.002)
    if stage != "starting":
        seen = state.stat().st_mtime_ns
        wait_for(lambda: state.stat().st_mtime_ns > seen or process.poll() is not None, pause=0.002)
    process.kill()
    process.communicate()


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("threads", [[1, 2, 7, 1, 2], [7, 1, 2, 7, 1]])
def test_fitted_runs_killed_in_every_stage_resume_to_the_same_bits(slow, tmp_path, threads):
    config, undisturbed = slow
    out = tmp_path / "run"
    command = [PROGRAM, "run", config, "--out", out]
    # Climbs are over before they tell of progress.
    for stage, number in zip(["starting", "tuning", "burn-in", "sampling"], threads):
        kill_in(stage, [*command, "--threads", number], out)
        command = [PROGRAM, "resume", out]
    done = sterna("resume", out, "--threads", threads[-1])
    assert done.returncode == 0, done.stderr
    assert resumed_in(out) == ["Climbing", "Tuning", "BurnIn", "Sampling"]
    same(out, undisturbed)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_other_goals_from_the_command_line(slow, tmp_path):
    config, little = slow
    [much, raised] = [tmp_path / name for name in ("much", "raised")]
    done = sterna("run", config, "--out", much, "--set", "run.until.ess=400")
    assert done.returncode == 0, done.stderr
    shutil.copytree(little, raised)
    done = sterna("resume", raised, "--set", "run.until.ess=400", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["goals"]["ess"]["wanted"] == 400
    same(raised, much)
    for setting, parts in {
        "run.until.es=400": ["run.until.es=400", "did you mean `ess`?"],
        "run.until.ess=-1": ["run.until.ess = -1", "positive"],
        "chains.count=3": ["chains.count=3", "goes on as it began", "run.until.ess"],
        "run.until.ess": ["key.path=value"],
    }.items():
        done = sterna("resume", raised, "--set", setting)
        assert done.returncode == 2 and all(part in done.stderr for part in parts), done.stderr
