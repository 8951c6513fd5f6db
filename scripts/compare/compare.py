"""Measures Sterna beside what people use, and writes docs/comparison.md.

    python3 -m venv /tmp/rivals && /tmp/rivals/bin/pip install $(python3 scripts/compare/requirements.py)
    alias compare='/tmp/rivals/bin/python scripts/compare/compare.py'
    compare                                  # what is not there yet, cheap cells first; goes on where it was stopped
    compare --only shells                    # cells whose names hold this word
    compare --jobs 15 --seconds 500          # so many at a time, and no longer
    compare --cell shells-10/dynesty/1       # one, measured anew and printed, not kept
    compare --page                           # the page from what was measured

A cell is a case, a program and a seed: a process of its own on one thread with a limit of time, and a line of docs/comparison/results.jsonl.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "measure" / "posteriors"))

import cases  # noqa: E402
import draws as judged  # noqa: E402
import measure  # noqa: E402
import molecule  # noqa: E402
import netcdf  # noqa: E402
import physics  # noqa: E402
import rivals  # noqa: E402
import writing  # noqa: E402
from words import short  # noqa: E402

RESULTS = ROOT / "docs" / "comparison" / "results.jsonl"
# Seeds of each program, if time allows; the page says how many there are.
SEEDS = {"sterna": 10, "sterna fitted": 10}
FEW = 3
# What a distance of energies, or a sign, is to be known by.
MORE_SEEDS = {("phi4-6", "sterna"): 6, ("lj-13", "sterna"): 10, ("lj-13", "hmc"): 6, ("lj-55", "sterna"): 4, ("lj-55", "hmc"): 4}
# Cheap ones first, so that a stop leaves whole rows.
ORDER = ["sterna", "sterna smc", "sterna ais", "dynesty", "nautilus", "ultranest", "blackjax smc", "reddemcee"]
# A cell that was stopped sooner than this, in seconds, was not given its time.
PATIENCE = 120
# Processes that a rival may not start more of, nor more threads.
ALONE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


def key(case, program, seed):
    return f"{case.name}/{program}/{seed}"


def seeds(case, program):
    if case.group == "paper":
        return 2
    if (case.name, program) in MORE_SEEDS:
        return MORE_SEEDS[case.name, program]
    if case.group in ("lattice", "cluster", "molecule"):
        return 2
    return SEEDS.get(program, FEW)


def is_ours(case, program):
    return program.startswith("sterna") or case.group == "paper"


def settings(case, program):
    more = cases.TRANSPORTS.get(program, ()) + cases.SWAPS.get(program, ()) + cases.PATHS.get(program, ())
    said = [f"target.{name}={value}" for name, value in case.target.items()]
    overridden = {word.split("=")[0] for word in more}
    return said + [word for word in case.settings if word.split("=")[0] not in overridden] + list(more)


def command(case, program, seed):
    """What a reader types."""
    if not is_ours(case, program):
        return f"compare --cell '{key(case, program, seed)}'"
    words = (
        ["sterna", "run"]
        if program in ("sterna", *cases.TRANSPORTS, *cases.SWAPS, *cases.PATHS)
        else ["sterna", "baseline", program.split()[1]]
    )
    sets = [word for setting in settings(case, program) for word in ("--set", setting)]
    return " ".join([*words, *sets, "--seed", str(seed), "--threads", "1"])


def by_sterna(case, program, seed, options):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        words = command(case, program, seed).split()[1:] + ["--json"]
        extra = ["--out", folder / "run"] if words[0] == "run" else ["--draws", folder / "draws.json"]
        limit = seconds_left(options)
        code, text, error, seconds = measure.ran([options.sterna, *words, *extra], limit)
        if code:
            return failed(code, error, limit)
        found = json.loads(text)
        if words[0] == "run":
            return of_run(case, found, folder / "run") | {"processor_s": seconds}
        return of_baseline(case, found, json.loads((folder / "draws.json").read_text())) | {"processor_s": seconds}


def seconds_left(options):
    """What a cell that begins now may take."""
    return options.limit if options.end is None else max(1, min(options.limit, int(options.end - time.time())))


def failed(code, error, limit):
    last = [line for line in error.splitlines() if line.strip()][-1:]
    return {"failed": f"not done in {limit} s" if code == measure.TIMED_OUT else last[0] if last else f"exit code {code}"}


def of_run(case, found, folder):
    row = {
        "log_z": found["log_z"]["bar"],
        "log_z_error": found["log_z"]["standard_error"],
        "evaluations": found["evaluations"]["target"],
    }
    row |= {"gradients": True, "chains": found["chains"], "round_trips": found["round_trips"], "verdict": found["verdict"]}
    row["alarms"] = sorted({alarm["code"] for alarm in found["alarms"]})
    row["tuning_s"], row["training_s"] = found["time"]["tuning_s"], found["time"]["training_s"]
    row["network"] = found["evaluations"]["network"]
    if case.group == "molecule":
        seen = netcdf.group(folder / "draws.nc", "sample_stats")
        return row | molecule.of_torsions(seen["phi"], seen["psi"], row["evaluations"])
    values = judged.read(folder)
    observables = ("magnetisation", "absolute_magnetisation", "energy", "radius")
    x = np.stack([column for name, column in values.items() if name not in observables], axis=2)
    row["draws"] = x.shape[0] * x.shape[1]
    if case.group in ("lattice",):
        return row | physics.observed(case, x, row["evaluations"])
    if case.group == "cluster":
        return row | physics.of_energies(-log_densities(folder), row["evaluations"])
    row["ess"] = judged.smallest_bulk_ess(dict(enumerate(np.moveaxis(x, 2, 0))))
    if case.group == "paper":
        return row | of_paper(case, x.reshape(-1, case.dim), -log_densities(folder).ravel())
    return row | rivals.modes(case, x.reshape(-1, x.shape[2]))


def log_densities(folder):
    return netcdf.group(folder / "draws.nc", "sample_stats")["lp"]


def of_baseline(case, found, points):
    row = {
        "log_z": found["log_z"],
        "log_z_error": found["standard_error"],
        "gradients": True,
        "chains": found["chains"],
        "ess": found["ess"],
    }
    row["evaluations"] = found["evaluations"]["tuning"] + found["evaluations"]["annealing"]
    row["tuning"] = found["evaluations"]["tuning"]
    x, log_weights = np.array(points["values"]), np.array(points["log_weights"], float)
    weights = np.exp(log_weights - np.nanmax(log_weights))
    weights = np.nan_to_num(weights) / np.nansum(weights)
    rng = np.random.default_rng(0)
    energies = -np.array(points["log_density"], float)[rng.choice(len(x), 1000, p=weights)]
    if case.group == "cluster":
        return row | {"energies": [round(float(e), 4) for e in energies]}
    if case.group == "paper":
        return row | of_paper(case, x[rng.choice(len(x), 4000, p=weights)], energies)
    return row | rivals.modes(case, x, weights)


def of_paper(case, x, energies):
    """Mode weights and energies against exact ones."""
    picked = energies[np.linspace(0, len(energies) - 1, 1000).astype(int)]
    exact = exact_energies(case, 1)
    row = {"w2": physics.distance(picked, exact), "floor": physics.distance(exact_energies(case, 2), exact)}
    if case.modes:
        shares = np.bincount(case.modes(x), minlength=len(case.weights)) / len(x)
        return row | {"mode_error": float(np.abs(shares - case.weights).sum() / 2)}
    return row | {"mode_error": float(np.abs(cases.wells(x) - RIGHT_WELL).max())}


def well():
    x = np.linspace(-6, 6, 200_001)
    density = np.exp(-(x**4) + 6 * x**2 + 0.5 * x)
    return x, density / density.sum()


RIGHT_WELL = float(well()[1][100_001:].sum())


def exact_energies(case, seed):
    rng = np.random.default_rng(seed)
    if case.name == "gmm-10":
        # The nearest mean is not the only one that counts: the whole mixture.
        means = np.pad(cases.of.numbers_of_pairs("gmm.rs", "MEANS") / 40, ((0, 0), (0, 8)))
        x = means[rng.integers(40, size=1000)] + rng.normal(size=(1000, 10)) / 40
        parts = -800 * ((x[:, None] - means) ** 2).sum(axis=2)
        return -(np.logaddexp.reduce(parts, axis=1) - math.log(40) + 5 * math.log(1600 / (2 * math.pi)))
    grid, share = well()
    x = rng.choice(grid, (1000, 16), p=share)
    return (x**4 - 6 * x**2 - 0.5 * x + 0.5 * rng.normal(size=x.shape) ** 2).sum(axis=1)


def by_rival(case, program, seed, options):
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place) / "row.json"
        words, limit = ["env", *[f"{name}={value}" for name, value in ALONE.items()]], seconds_left(options)
        code, _, error, seconds = measure.ran([*words, sys.executable, HERE / "rivals.py", program, case.name, seed, out], limit)
        if code:
            return failed(code, error, limit)
        return {"whole_process_s": seconds} | json.loads(out.read_text())


def measured(name, program, seed, options):
    case = cases.BY_NAME[name]
    by = by_sterna if is_ours(case, program) else by_rival
    row = by(case, program, seed, options)
    words = {"key": key(case, program, seed), "case": case.name, "program": program, "seed": seed, "cores": os.cpu_count()}
    return row | words | {"command": command(case, program, seed)}


def wanted():
    """All cells, cheap programs and first seeds first."""
    found = []
    for case in cases.CASES:
        for program in case.programs:
            if program not in case.dashes:
                found += [(case, program, seed) for seed in range(1, seeds(case, program) + 1)]

    def rank(cell):
        case, program, seed = cell
        ours = is_ours(case, program)
        return (not ours, seed > 1, ORDER.index(program) if program in ORDER else 0, case.dim > 400, seed)

    return sorted(found, key=rank)


def line(row):
    shown = ("failed", "log_z", "log_z_error", "evaluations", "ess", "mode_error", "w2", "processor_s", "verdict")
    return " ".join([f"{row['key']:<40}"] + [f"{name} {short(row[name])}" for name in shown if row.get(name) is not None])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sterna", type=pathlib.Path, default=ROOT / "target" / "release" / "sterna")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--limit", type=int, default=1800, help="seconds of a cell at most")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--seconds", type=int, help="of all cells together: the rest is for the next time")
    parser.add_argument("--cells", type=pathlib.Path, help="a file with a cell a line: these alone, in this order, measured anew")
    parser.add_argument("--only", default="", help="cells whose name holds one of these words, with commas between")
    parser.add_argument("--cell", help="one cell, measured anew and printed, not kept")
    parser.add_argument("--again", action="store_true", help="cells that failed before too")
    parser.add_argument("--merge", type=pathlib.Path, help="lines that another machine wrote take the place of those that are here")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--plan", action="store_true", help="only say what would be measured")
    return parser.parse_args()


def asked_for(options, results):
    cells = wanted()
    if options.cells:
        named = {key(*cell): cell for cell in cells}
        return [named[line] for line in options.cells.read_text().splitlines() if line]
    cells = [cell for cell in cells if any(word in key(*cell) for word in options.only.split(","))]
    return [cell for cell in cells if key(*cell) not in results or options.again and "failed" in results[key(*cell)]]


def in_turn(cells, options):
    """Rows of cells as they are done. One that had less than its time, since all were to end, says nothing."""
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = iter(cells)
        running = {}
        while True:
            while len(running) < options.jobs and (options.end is None or time.time() < options.end):
                cell = next(waiting, None)
                if cell is None:
                    break
                running[pool.submit(measured, cell[0].name, *cell[1:], options)] = seconds_left(options)
            if not running:
                return
            done = next(as_completed(running))
            limit, row = running.pop(done), done.result()
            if not row.get("failed", "").startswith("not done") or limit >= min(options.limit, PATIENCE):
                yield row


def main():
    options = arguments()
    options.sterna = options.sterna.resolve()
    options.end = time.time() + options.seconds if options.seconds else None
    results = measure.read(options.results)
    if options.cell:
        cell = next(cell for cell in wanted() if key(*cell) == options.cell)
        print(json.dumps(measured(cell[0].name, *cell[1:], options), indent=1, ensure_ascii=False))
        return
    if options.merge:
        fresh = measure.read(options.merge)
        results |= {key: row for key, row in fresh.items() if "failed" not in row or "failed" in results.get(key, row)}
        measure.write(options.results, results)
        return
    todo = asked_for(options, results)
    if options.plan:
        print("\n".join(key(*cell) for cell in todo))
        return
    for row in in_turn([] if options.page else todo, options):
        # What was measured is not lost to a try that had less time.
        if "failed" not in row or "failed" in results.get(row["key"], row):
            results[row["key"]] = row
        measure.write(options.results, results)
        print(line(row), flush=True)
    if options.results == RESULTS:
        writing.write(results, ROOT / "docs")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(str(error))
