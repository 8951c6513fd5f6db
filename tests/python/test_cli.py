"""The command line as users and scripts meet it: files, numbers, errors."""

import json
import os
import shutil
import signal
import subprocess
import time
import warnings

import numpy as np
import pytest

from sterna_cli import PROGRAM, sterna, summary

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

FIELDS = """sterna finished seed target chains pairs ensembles iterations accelerator schedule rejection_rates
global_barrier round_trips round_trip_rate round_trip_rate_predicted exploration_efficiency log_z evaluations
compute_normalised_round_trips time ess explorer alarms""".split()

SMALL = dict(chains__count=4, schedule__rounds=3, schedule__iterations=300, run__iterations=2000)


@pytest.fixture(scope="module")
def normal(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "normal"
    settings = dict(SMALL, target__kind="normal", target__dim=3, chains__ensembles=2)
    return out, summary(out, **settings)


def test_summary_has_all_promised_fields(normal):
    _, found = normal
    assert [name for name in FIELDS if name not in found] == []
    assert found["chains"] == 4 and found["pairs"] == 3 and len(found["rejection_rates"]) == 3
    assert set(found["log_z"]) >= {"forward", "backward", "geometric_mean", "bar", "standard_error", "truth"}
    assert found["finished"] is True and found["target"] == {"kind": "normal", "dim": 3}
    assert sum(found["rejection_rates"]) == pytest.approx(found["global_barrier"])
    # 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    assert abs(found["log_z"]["bar"] - found["log_z"]["truth"]) < 5 * found["log_z"]["standard_error"]


def test_folder_holds_what_is_promised(normal):
    out, found = normal
    assert json.loads((out / "summary.json").read_text()) == found
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [e["event"] for e in events] == ["start", "end"]


def test_arviz_opens_the_draws(normal):
    out, found = normal
    draws = arviz.from_netcdf(out / "draws.nc")
    assert draws.posterior["x"].shape == (2, 2000, 3)
    ess = arviz.ess(draws, method="mean")["x"].values
    np.testing.assert_allclose(ess, found["ess"]["coordinates"], rtol=1e-9)
    mean = draws.posterior["x"].mean(("chain", "draw")).values
    np.testing.assert_allclose(mean, found["expectations"]["mean"], rtol=1e-9, atol=1e-12)


def test_resolved_config_repeats_the_run(normal, tmp_path):
    out, found = normal
    again = summary(tmp_path / "again", config=out / "config.toml")
    assert again["log_z"] == found["log_z"] and again["schedule"] == found["schedule"]
    assert (tmp_path / "again" / "draws.nc").read_bytes() == (out / "draws.nc").read_bytes()


@pytest.mark.parametrize("accelerator", [
    {"accelerator__kind": "none"},
    {"accelerator__kind": "affine", "accelerator__covariance": "full"},
    {"accelerator__kind": "cmcd", "accelerator__drift": "exact", "accelerator__steps": 3},
    {"accelerator__kind": "diffusion", "accelerator__score": "exact", "accelerator__steps": 2},
])
def test_threads_change_no_bit(tmp_path, accelerator):
    settings = dict(SMALL, target__kind="normal", target__dim=3, chains__ensembles=3, **accelerator)
    for threads in (1, 2, 7):
        summary(tmp_path / str(threads), threads=threads, **settings)
    draws = [(tmp_path / str(threads) / "draws.nc").read_bytes() for threads in (1, 2, 7)]
    assert draws[0] == draws[1] == draws[2]


@pytest.mark.parametrize("threads", [10_000, 2**64 - 1])
def test_no_more_threads_than_are_of_use(tmp_path, threads):
    command = [PROGRAM, "run", "--out", tmp_path / "out", "--threads", str(threads), "--set", "chains.ensembles=3"]
    process = subprocess.Popen(command + ["--set", "run.iterations=50000000"], stderr=subprocess.DEVNULL)
    most = 0
    try:
        for _ in range(20):
            time.sleep(0.05)
            status = open(f"/proc/{process.pid}/status").read()
            most = max(most, int(status.split("Threads:")[1].split()[0]))
    finally:
        process.kill()
        process.wait()
    # One for each ladder, the main one, and two for the bar and for Ctrl-C.
    assert 3 <= most <= 3 + 3


def test_evaluate_reads_all_formats(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('[target]\nkind = "gmm"\ndim = 2\n')
    points = np.array([[0.1, 0.2], [-0.5, 0.25], [3.0, 4.0]])
    (tmp_path / "p.json").write_text(json.dumps(points.tolist()))
    np.save(tmp_path / "p.npy", points)
    np.savetxt(tmp_path / "p.csv", points, delimiter=",", header="x,y", comments="")
    answers = [json.loads(sterna("evaluate", config, tmp_path / f"p.{kind}").stdout) for kind in ("json", "npy", "csv")]
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]["log_density"]) == 3 and np.shape(answers[0]["score"]) == (3, 2)


@pytest.mark.parametrize("arguments, parts", [
    (["--set", "chains.cuont=3"], ["chains.cuont", "did you mean `count`"]),
    (["--set", "chains.count=1"], ["chains.count", "1", "at least 2"]),
    (["--set", "chains.count=0"], ["error: chains.count", "at least 2"]),
    (["--set", "target.kind=gnm"], ["target.kind", "gnm", 'Did you mean "gmm"']),
    (["--set", "target.dim=1"], ["target.dim", "1", "2 or more"]),
    (["--set", "run.iterations=abc"], ["run.iterations"]),
    (["--set", "nonsense"], ["nonsense", "key.path=value"]),
    (["--set", "accelerator.kind=cmcd", "--set", "accelerator.drift=nine"], ["accelerator.drift", "nine", '"none"']),
    (["--set", "accelerator.kind=diffusion", "--set", "accelerator.score=exact", "--set", "target.kind=dw4"],
     ["accelerator.score", "dw4"]),
    (["--set", "run.device=cdua"], ["run.device", "cdua", 'Did you mean "cuda"']),
    (["--set", "run.device=cuda", "--set", "accelerator.kind=flow"], ["run.device", "flow", 'run.device = "cpu"']),
    (["missing.toml"], ["missing.toml"]),
    (["--out", "/proc/nowhere"], ["/proc/nowhere"]),
    (["--seed", "x"], ["x"]),
    (["--seed", "-3"], ["invalid value '-3' for '--seed"]),
])
def test_wrong_input_is_named_and_costs_nothing(tmp_path, arguments, parts):
    out = [] if "--out" in arguments else ["--out", tmp_path / "out"]
    done = sterna("run", *arguments, *out)
    assert done.returncode == 2, done.stderr
    for part in parts:
        assert part in done.stderr
    assert "note:" not in done.stderr and not (tmp_path / "out").exists()


def test_the_cpu_stands_in_where_there_is_no_gpu(tmp_path):
    small = dict(chains__count=4, schedule__rounds=2, run__iterations=300)
    by_cpu = summary(tmp_path / "cpu", **small)
    stood_in = summary(tmp_path / "cuda", run__device="cuda", run__fallback="true", **small)
    alarms = {alarm["code"]: alarm["message"] for alarm in stood_in["alarms"]}
    if "device-replaced" not in alarms:
        pytest.skip("there is a GPU")
    assert "sampling runs on the CPU" in alarms["device-replaced"]
    assert stood_in["log_z"] == by_cpu["log_z"]


def test_config_errors_point_at_the_line(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("seed = 1\n[chains]\ncount = 'some'\nensembles = -2\n")
    done = sterna("run", config)
    assert done.returncode == 2 and "line 4" in done.stderr and "-2" in done.stderr


def test_a_finished_run_is_not_overwritten(normal):
    out, _ = normal
    before = (out / "summary.json").read_bytes()
    done = sterna("run", "--out", out)
    assert done.returncode == 2 and "holds a run already" in done.stderr
    assert (out / "summary.json").read_bytes() == before


def test_interrupt_keeps_what_was_sampled(tmp_path):
    out = tmp_path / "out"
    command = [PROGRAM, "run", "--out", out, "--set", "run.iterations=50000000", "--set", "run.thin=1000",
               "--set", "run.checkpoint_seconds=0.2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (out / "draws.nc").exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1 and "stopped on request" in errors
    found = json.loads((out / "summary.json").read_text())
    assert found["finished"] is False and found["iterations"] > 0
    assert arviz.from_netcdf(out / "draws.nc").posterior["x"].shape[2] == 10


def test_no_arguments_print_help():
    done = sterna()
    assert "Examples:" in done.stdout + done.stderr
    assert sterna("--help").returncode == 0 and sterna("frobnicate").returncode == 2


def test_targets_are_listed():
    done = sterna("targets")
    assert done.returncode == 0
    for kind in ("gmm", "dw4", "many-well", "normal", "funnel", "banana"):
        assert kind in done.stdout


def test_a_folder_without_a_run_says_how_to_begin_one(tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.toml").write_text("[target]\nkind = 'gmm'\n")
    for folder in (tmp_path / "nowhere", tmp_path, foreign):
        done = sterna("resume", folder)
        assert done.returncode == 2 and f"{folder} holds no run; begin one with: sterna run" in done.stderr, done.stderr
    assert [file.name for file in foreign.iterdir()] == ["config.toml"] and not (tmp_path / "nowhere").exists()


def test_the_report_of_a_broken_folder_says_what_helps(normal, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(normal[0], folder)
    (folder / "traces.json").unlink()
    for chart in ("index-process", "round-trips", "works", "energies", "tuning-barrier", "tuning-steps"):
        done = sterna("report", folder, "--chart", chart)
        assert done.returncode == 2 and "needs traces.json, which this folder lacks" in done.stderr, done.stderr
    (folder / "summary.json").write_text("{")
    done = sterna("report", folder)
    assert done.returncode == 2 and f"sterna resume {folder} writes it again" in done.stderr
    shutil.rmtree(folder / "checkpoint")
    done = sterna("report", folder)
    assert done.returncode == 2 and "sterna resume" not in done.stderr and "another --out" in done.stderr


@pytest.mark.parametrize("settings, part", [
    (["target.kind=own"], "docs/book/rust-target.md"),
    (["accelerator.kind=flow", "accelerator.steps=0"], "it must be 1"),
    (["target.kind=alanine-dipeptide", "accelerator.kind=diffusion"], "is not for molecules"),
    (["target.kind=alanine-dipeptide", "target.temperature=0"], "target.temperature = 0"),
    (["explorer.step_size=[0.1]"], "explorer.step_size has 1 number; 10 chains need 10"),
    (["run.checkpoint_seconds=nan"], "finite and not negative"),
    (["schedule.criterion=3"], "schedule.criterion = 3 is not known; known are"),
])
def test_messages_speak_of_the_config(tmp_path, settings, part):
    done = sterna("run", "--out", tmp_path / "run", *[word for entry in settings for word in ("--set", entry)])
    assert done.returncode == 2 and part in done.stderr, done.stderr


@pytest.mark.parametrize("kind, size", [("hmc", "step size"), ("auto", "step size"), ("slice", "width")])
def test_sizes_of_moves_are_called_what_they_are(tmp_path, kind, size):
    settings = [f"--set={key}" for key in (f"explorer.kind={kind}", "target.kind=banana", "target.dim=2", "chains.count=3",
                                           "schedule.rounds=2", "schedule.iterations=300", "run.iterations=300")]
    shown = sterna("run", "--out", tmp_path / kind, *settings).stdout
    assert size in shown and ("step size" in shown) == (size == "step size")
    found = json.loads((tmp_path / kind / "summary.json").read_text())["explorer"]
    assert found.get("size", "step size") == size and len(found["step_size"]) == 3
    # The first chain draws exactly; the others have adapted.
    assert len(set(found["step_size"][1:])) == 2


@pytest.mark.parametrize("setting", ["explorer.steps=0", "explorer.steps=64", "explorer.acceptance=1.5"])
def test_fields_of_auto_moves_are_checked(tmp_path, setting):
    ended = sterna("run", "--out", tmp_path / "run", "--set", "explorer.kind=auto", "--set", setting)
    assert ended.returncode == 2 and setting.split("=")[0] in ended.stderr
