"""What `accelerator.kind = "auto"` chooses, and what that is worth beside plain swaps and fixed kinds: docs/auto.md.

    python3 scripts/measure/auto.py [--seeds 1,2] [--targets gmm-10;funnel] [--kinds none;auto] [--jobs 2] [--minutes 9]
    python3 scripts/measure/auto.py --calibrate 40 [--first 1] [--targets gmm-10] [--kinds none;auto] [--jobs 2] [--minutes 9]
    python3 scripts/measure/auto.py --page

Runs `sterna run --json` on one thread each, so many at a time and none begun after so many minutes, and keeps one line for each in
docs/auto/results.jsonl (or `--results FILE`), by target, kind and seed: a run that is measured again replaces its line. `--calibrate`
compares log Z with the truth over so many seeds, from `--first` on: where `auto` has chosen, and beside it with plain swaps. `--page` writes the tables of docs/auto.md from all lines that
there are, and runs nothing. Effective draws are those of the coordinate that has fewest; evaluations and processor-seconds are those of
the whole run, with tuning, collecting, judging and training.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "auto" / "results.jsonl"
PAGE = ROOT / "docs" / "auto.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
Z_BEGIN, Z_END = "<!-- calibration: begin -->", "<!-- calibration: end -->"

TARGETS = {
    "gmm-10": ["target.kind=gmm", "target.dim=10", "chains.count=10", "run.iterations=50000"],
    "gmm-50": ["target.kind=gmm", "target.dim=50", "chains.count=12", "run.iterations=20000"],
    "gmm-100": ["target.kind=gmm", "target.dim=100", "chains.count=16", "run.iterations=20000"],
    "dw4": ["target.kind=dw4", "chains.count=10", "run.iterations=50000"],
    "many-well-32": ["target.kind=many-well", "chains.count=10", "run.iterations=50000"],
    "funnel": ["target.kind=funnel", "chains.count=10", "run.iterations=50000"],
    "banana": ["target.kind=banana", "chains.count=6", "run.iterations=50000"],
    "normal-10": ["target.kind=normal", "target.dim=10", "chains.count=6", "run.iterations=50000"],
    "alanine": ["target.kind=alanine-dipeptide", "chains.count=4", "explorer.leapfrog_steps=5", "run.iterations=20000"],
    "shells": ["target.kind=shells"],
    "correlated-normal": ["target.kind=correlated-normal"],
    "rosenbrock": ["target.kind=rosenbrock"],
    "mrna": ["target.kind=mrna"],
    "galaxies": ["target.kind=galaxies"],
    "shells-30": ["target.kind=shells", "target.dim=30"],
}
# The same as a user's function gets it: a fitted reference, and an end when there are draws enough.
FITTED = ["reference.kind=fitted"]
TARGETS |= {
    "gmm-10, fitted": ["target.kind=gmm", "target.dim=10", *FITTED],
    "dw4, fitted": ["target.kind=dw4", *FITTED],
    "many-well-32, fitted": ["target.kind=many-well", *FITTED],
    "funnel, fitted": ["target.kind=funnel", *FITTED],
    "banana, fitted": ["target.kind=banana", *FITTED],
    "gmm-10, fitted, 20000 draws": ["target.kind=gmm", "target.dim=10", "run.until.ess=20000", *FITTED],
    "banana, fitted, 20000 draws": ["target.kind=banana", "run.until.ess=20000", *FITTED],
}
# Posteriors of Stan's database, where a folder has their compiled models and data.
MODELS = os.environ.get("STAN_MODELS")
for model in sorted(pathlib.Path(MODELS).glob("*/model.so")) if MODELS else []:
    TARGETS[model.parent.name] = ["target.kind=stan", f"target.model={model}", f"target.data={model.parent}/data.json"]
# The same at another length.
LONG = {"gmm-10": 200_000, "gmm-50": 200_000, "dw4": 200_000, "many-well-32": 200_000, "banana": 500_000, "alanine": 200_000}
TARGETS |= {
    f"{name}, long": [s for s in TARGETS[name] if not s.startswith("run.iterations")] + [f"run.iterations={count}"]
    for name, count in LONG.items()
}
KINDS = {
    "none": ["accelerator.kind=none"],
    "auto": ["accelerator.kind=auto"],
    "auto, 0.1 ms": ["accelerator.kind=auto", "accelerator.evaluation_cost_s=1e-4"],
    "auto, 1 ms": ["accelerator.kind=auto", "accelerator.evaluation_cost_s=1e-3"],
    "auto, 10 ms": ["accelerator.kind=auto", "accelerator.evaluation_cost_s=1e-2"],
    "affine": ["accelerator.kind=affine"],
    "affine-full": ["accelerator.kind=affine", "accelerator.covariance=full"],
    "monotone": ["accelerator.kind=monotone", "training.collect=5000"],
    "scaling": ["accelerator.kind=scaling"],
    # Short trainings: what a run of this length can bear.
    "flow": ["accelerator.kind=flow", "training.steps=1000"],
    "cmcd": ["accelerator.kind=cmcd", "accelerator.steps=1", "training.steps=300"],
    "cmcd, K auto": ["accelerator.kind=cmcd", "accelerator.steps=auto", "training.steps=300"],
    "diffusion, K auto": ["accelerator.kind=diffusion", "accelerator.steps=auto", "training.steps=1000"],
}
# What each seed of a calibration runs.
CALIBRATED = {
    "gmm-10": ["target.kind=gmm", "target.dim=10", "chains.count=12"],
    "dw4": ["target.kind=dw4", "chains.count=8"],
    "many-well-32": ["target.kind=many-well", "chains.count=12"],
    "normal-10": ["target.kind=normal", "target.dim=10", "chains.count=5"],
    "banana": ["target.kind=banana", "chains.count=8"],
}
CALIBRATION = ["chains.ensembles=1", "run.iterations=20000"]
CALIBRATED_KINDS = {"auto": "calibration", "none": "calibration, plain"}
# No run of a series may take longer.
LIMIT = 100


def program():
    return os.environ.get("STERNA_PROGRAM", str(ROOT / "target" / "debug" / "sterna"))


def summary(seed, settings):
    """What a run says of itself; nothing where it took too long."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program(), "run", "--json", "--seed", str(seed), "--out", f"{folder}/run", "--threads", "1"]
        for setting in settings:
            command += ["--set", setting]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return None
    if done.returncode:
        print(" ".join(settings), done.stderr[-500:], flush=True)
        return None
    return json.loads(done.stdout)


def measure(target, kind, seed):
    """One run as a line of results."""
    found = summary(seed, TARGETS[target] + KINDS[kind])
    if found is None:
        return {"target": target, "kind": kind, "seed": seed, "failed": True}
    choice = found.get("choice") or {}
    carried = {}
    for name in choice.get("pairs", []):
        carried[name] = carried.get(name, 0) + 1
    return {
        "target": target, "kind": kind, "seed": seed,
        "ess": found["ess"]["minimum"], "round_trips": found["round_trips"],
        "evaluations": found["evaluations"]["target"], "iterations": found["iterations"],
        "processor_s": sum(found["time"]["processor"].values()), "chains": found["chains"],
        "chosen": carried, "promised": choice.get("gain"), "reason": choice.get("reason"),
        "judging": choice.get("evaluations"), "steps": (found.get("training") or {}).get("steps", 0),
        "accelerator_steps": found["accelerator"]["steps"],
    }


def calibrate(target, kind, seed):
    """How far log Z is from the truth, in standard errors, and what had been chosen."""
    found = summary(seed, CALIBRATED[target] + CALIBRATION + KINDS[kind])
    row = {"target": target, "kind": CALIBRATED_KINDS[kind], "seed": seed}
    if found is None:
        return row | {"failed": True}
    log_z = found["log_z"]
    off, error = log_z["bar"] - log_z["truth"], log_z["standard_error"]
    pairs = (found.get("choice") or {}).get("pairs", [])
    return row | {"z": off / error, "off": off, "error": error,
                  "carried": sum(name != "plain" for name in pairs), "pairs": len(pairs)}


def lines():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


LOCK = threading.Lock()


def keep(row):
    """One line for each target, kind and seed; a file of one's own is only added to."""
    with LOCK, open(RESULTS, "a") as out:
        out.write(json.dumps(row, sort_keys=True) + "\n")


def sorted_lines():
    """The last line of each run, in the order of the tables."""
    last = {(row["target"], row["kind"], row["seed"]): row for row in lines()}
    kinds, targets = list(KINDS), list(TARGETS)
    place = lambda name, names: names.index(name) if name in names else len(names)  # noqa: E731
    order = lambda row: (place(row["target"], targets), row["target"], place(row["kind"], kinds), row["seed"])  # noqa: E731
    return sorted(last.values(), key=order)


def table():
    """A row for each target and kind, medians over seeds, beside plain swaps with the same seeds."""
    cells = {}
    for row in sorted_lines():
        if row["kind"] in KINDS and not row.get("failed"):
            cells.setdefault((row["target"], row["kind"]), []).append(row)
    out = ["| target | swaps | seeds | chosen | chains | ESS per 1,000 evaluations | beside plain | ESS per second | beside plain | at 1 ms an evaluation |",
           "|---|---|---|---|---|---|---|---|---|---|"]
    each = lambda rows, of: statistics.median(of(row) for row in rows)  # noqa: E731
    by_work = lambda row: 1e3 * row["ess"] / row["evaluations"]  # noqa: E731
    by_time = lambda row: row["ess"] / row["processor_s"]  # noqa: E731
    # What the run's own work takes, and a millisecond for each evaluation.
    slowly = lambda row: row["ess"] / (row["processor_s"] + 1e-3 * row["evaluations"])  # noqa: E731
    for (target, kind), rows in cells.items():
        plain = cells.get((target, "none"), rows)
        chosen = "; ".join(sorted({", ".join(f"{n} {name}" for name, n in row["chosen"].items()) for row in rows} - {""}))
        steps = {row["steps"] for row in rows} - {0}
        chosen += f" ({', '.join(str(s) for s in sorted(steps))} steps)" if steps else ""
        seeds = ", ".join(str(row["seed"]) for row in rows)
        chains = ", ".join(str(n) for n in sorted({row["chains"] for row in rows if "chains" in row}))
        both = {row["seed"] for row in rows} & {row["seed"] for row in plain}
        alike, beside_them = ([row for row in some if row["seed"] in both] for some in (rows, plain))
        beside = lambda of: each(alike, of) / each(beside_them, of) if both else math.nan  # noqa: E731
        out.append(f"| {target} | {kind} | {seeds} | {chosen} | {chains} | {each(rows, by_work):.3g} | {beside(by_work):.2f} "
                   f"| {each(rows, by_time):.3g} | {beside(by_time):.2f} | {beside(slowly):.2f} |")
    return "\n".join(out)


def calibration():
    """What log Z is worth with chosen swaps, and with plain ones: z-scores over seeds."""
    cells = {}
    swaps = {kind: name for name, kind in CALIBRATED_KINDS.items()}
    for row in sorted_lines():
        if row["kind"] in swaps and not row.get("failed"):
            cells.setdefault((row["target"], swaps[row["kind"]]), []).append(row)
    out = ["| target | swaps | seeds | seeds with a transport | mean z | in its standard errors | standard deviation of z | largest |",
           "|---|---|---|---|---|---|---|---|"]
    for (target, kind), rows in cells.items():
        z = [row["z"] for row in rows]
        spread = statistics.stdev(z) if len(z) > 1 else math.nan
        carried = sum(row["carried"] > 0 for row in rows)
        mean = statistics.mean(z)
        out.append(f"| {target} | {kind} | {len(z)} | {carried} | {mean:+.2f} | {mean / spread * math.sqrt(len(z)):+.1f} | {spread:.2f} "
                   f"| {max(map(abs, z)):.2f} |")
    return "\n".join(out)


def write_page():
    text = PAGE.read_text()
    for (begin, end), made in zip([(BEGIN, END), (Z_BEGIN, Z_END)], [table(), calibration()]):
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{made}\n\n{end}{rest.split(end)[1]}"
    PAGE.write_text(text)
    RESULTS.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in sorted_lines()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--targets", default=";".join(TARGETS), help="separated by ;")
    parser.add_argument("--kinds", default="none;auto", help="separated by ;")
    parser.add_argument("--calibrate", type=int, default=0, help="so many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first seed of a calibration")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--results", help="a file of one's own; the page stays as it is")
    parser.add_argument("--page", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    global RESULTS
    if arguments.results:
        RESULTS = pathlib.Path(arguments.results)
    end = time.time() + 60 * arguments.minutes
    targets, kinds = arguments.targets.split(";"), arguments.kinds.split(";")
    seeds = arguments.seeds.split(",")
    jobs = [(measure, target, kind, int(seed)) for seed in seeds for kind in kinds for target in targets]
    if arguments.calibrate:
        every = range(arguments.first, arguments.first + arguments.calibrate)
        wanted = [target for target in targets if target in CALIBRATED]
        jobs = [(calibrate, target, kind, seed) for seed in every for kind in kinds for target in wanted]

    def carry_out(job):
        if time.time() < end:
            row = job[0](*job[1:])
            keep(row)
            print(json.dumps(row, sort_keys=True), flush=True)

    if not arguments.page:
        RESULTS.parent.mkdir(exist_ok=True)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(carry_out, jobs))
    if not arguments.results:
        write_page()


if __name__ == "__main__":
    main()
