"""Measures trained transports: round trips, barrier, log Z and the cost of training, config by config.

    python3 scripts/measure/trained.py [--jobs N] [--threads T] [--seeds 1,2] [--only WORD] [--set key=value] [--sterna PATH]

Runs `sterna run --json` on a list of configs, N at a time, and prints one row per run as it ends and one per
config at the end. z is the error of log Z by BAR in standard errors. Training CPU is the processor time of the
whole run times the share of its wall time spent training, so it holds on a busy machine too.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAPER = ["schedule.criterion=rejection", "run.iterations=100000"]
GMM = ["target.kind=gmm", "target.dim=10", "explorer.step_size=0.03", *PAPER]
MANY_WELL = ["target.kind=many-well", "explorer.step_size=0.22", *PAPER]
# Local moves are cheap beside the network, so there may be more of them.
ADAPTED = ["target.kind=many-well", "run.iterations=100000", "explorer.steps=5", "explorer.leapfrog_steps=12"]
DW4 = ["target.kind=dw4", "explorer.step_size=0.22", *PAPER]
ALANINE = ["target.kind=alanine-dipeptide", "schedule.criterion=fixed", "run.iterations=50000"]


def chains(n):
    return [f"chains.count={n}"]


def cmcd(k):
    return ["accelerator.kind=cmcd", f"accelerator.steps={k}"]


def diffusion(k):
    return ["accelerator.kind=diffusion", f"accelerator.steps={k}"]


FLOW = ["accelerator.kind=flow"]
SPLINE = [*FLOW, "accelerator.coupling=spline"]
MONOTONE = ["accelerator.kind=monotone"]
TWO = ["explorer.steps=2"]

# Name, settings, round trips wanted.
CONFIGS = [
    ("gmm flow 6", GMM + chains(6) + FLOW, 10_000),
    ("gmm spline 6", GMM + chains(6) + SPLINE, 12_500),
    ("gmm spline 10", GMM + chains(10) + SPLINE, 14_000),
    ("gmm cmcd 10 K=1", GMM + chains(10) + cmcd(1), 6000),
    ("gmm cmcd 10 K=2", GMM + chains(10) + cmcd(2), 7500),
    ("gmm cmcd 10 K=5", GMM + chains(10) + cmcd(5), 9500),
    ("gmm cmcd 30 K=5", GMM + chains(30) + cmcd(5), 9522),
    ("dw4 cmcd 10 K=1", DW4 + chains(10) + cmcd(1), 6400),
    ("dw4 cmcd 10 K=5", DW4 + chains(10) + cmcd(5), 9800),
    ("mw32 cmcd 10 K=1", MANY_WELL + chains(10) + cmcd(1), 2900),
    ("mw32 cmcd 10 K=5", MANY_WELL + chains(10) + cmcd(5), 4800),
    ("gmm diffusion 10 K=0", GMM + chains(10) + diffusion(0), 734),
    ("gmm diffusion 10 K=1", GMM + chains(10) + diffusion(1), 1551),
    ("gmm diffusion 10 K=2", GMM + chains(10) + diffusion(2), 2064),
    ("gmm diffusion 10 K=5", GMM + chains(10) + diffusion(5), 3080),
    ("mw32 diffusion 10 K=0", MANY_WELL + chains(10) + diffusion(0) + TWO, 1561),
    ("mw32 diffusion 10 K=1", MANY_WELL + chains(10) + diffusion(1) + TWO, 2402),
    ("mw32 diffusion 10 K=2", MANY_WELL + chains(10) + diffusion(2) + TWO, 4022),
    ("mw32 diffusion 10 K=5", MANY_WELL + chains(10) + diffusion(5) + TWO, 5700),
    ("dw4 diffusion 10 K=5", DW4 + chains(10) + diffusion(5) + TWO + ["explorer.step_size=0.2"], 12_000),
    ("mw32 adapted cmcd 10 K=1", ADAPTED + chains(10) + cmcd(1), 2900),
    ("mw32 adapted cmcd 10 K=5", ADAPTED + chains(10) + cmcd(5), 4800),
    ("mw32 monotone 10", MANY_WELL + chains(10) + MONOTONE, 9500),
    ("alanine affine 4", ALANINE + chains(4) + ["accelerator.kind=affine"], 7000),
    ("alanine flow 4", ALANINE + chains(4) + FLOW, 12_500),
]


def measure(options, name, settings, seed):
    """One run's summary with its processor seconds, or what it said when it failed."""
    with tempfile.TemporaryDirectory() as folder:
        # An empty config means the defaults; none at all would mean the demo.
        config = pathlib.Path(folder) / "empty.toml"
        config.touch()
        command = [options.sterna, "run", str(config), "--json"]
        command += ["--seed", str(seed), "--threads", str(options.threads)]
        command += ["--out", f"{folder}/run"]
        for setting in settings + options.set:
            command += ["--set", setting]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return {"name": name, "seed": seed, "failed": process.returncode}
    found = json.loads(text)
    times = found["time"]
    parts = [times[part] for part in ("tuning_s", "collecting_s", "training_s", "sampling_s")]
    cpu = usage.ru_utime + usage.ru_stime
    log_z = found["log_z"]
    row = {
        "name": name,
        "seed": seed,
        "trips": found["round_trips"],
        "barrier": found["global_barrier"],
        "efficiency": found["exploration_efficiency"],
        "rejections": found["rejection_rates"],
        "log_z": log_z["bar"],
        "error": log_z["standard_error"],
        "z": math.nan if log_z["truth"] is None else (log_z["bar"] - log_z["truth"]) / log_z["standard_error"],
        "training_cpu": cpu * times["training_s"] / sum(parts),
        "training_wall": times["training_s"],
        "alarms": sorted({alarm["code"] for alarm in found["alarms"]}),
    }
    return row


def show(row):
    if "failed" in row:
        return f"{row['name']:<26} seed {row['seed']:<3} failed with exit code {row['failed']}"
    return (
        f"{row['name']:<26} seed {row['seed']:<3} R {row['trips']:>6}  Λ {row['barrier']:.3f}  "
        f"rejections {' '.join(f'{r:.2f}' for r in row['rejections'])}  efficiency {row['efficiency']:.2f}  log Z {row['log_z']:.4f} ± {row['error']:.4f} (z {row['z']:+.1f})  "
        f"training CPU {row['training_cpu']:.0f} s, wall {row['training_wall']:.0f} s  {' '.join(row['alarms'])}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--only", default="", help="configs whose name holds this")
    parser.add_argument("--set", action="append", default=[], help="a further setting for all")
    parser.add_argument("--sterna", default=str(ROOT / "target/release/sterna"))
    options = parser.parse_args()
    configs = [config for config in CONFIGS if options.only in config[0]]
    work = [(name, settings, int(seed)) for seed in options.seeds.split(",") for name, settings, _ in configs]
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda item: measure(options, *item), work):
            print(show(row), flush=True)
            rows.append(row)
    print()
    for name, _, wanted in configs:
        done = [row for row in rows if row["name"] == name and "failed" not in row]
        if not done:
            continue
        trips = sum(row["trips"] for row in done) / len(done)
        worst = max(abs(row["z"]) for row in done)
        cpu = max(row["training_cpu"] for row in done)
        verdict = "reached" if trips >= wanted else "SHORT"
        print(f"{name:<26} mean R {trips:>8.0f} of {wanted:>6} {verdict:<8} worst |z| {worst:.1f}  training CPU ≤ {cpu:.0f} s")


if __name__ == "__main__":
    main()
