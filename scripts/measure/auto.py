"""What `accelerator.kind = "auto"` chooses, and what that is worth beside plain swaps and every fixed kind: docs/auto.md.

    python3 scripts/measure/auto.py [--seeds 1,2] [--targets gmm-10;funnel] [--kinds none;auto] [--page]

Runs `sterna run --json`, one after the other, and keeps one line for each in docs/auto/results.jsonl, by target, kind and seed:
a run that is measured again replaces its line. `--page` writes the tables of docs/auto.md from all lines that there are, and runs
nothing. Effective draws are those of the coordinate that has fewest; evaluations and processor-seconds are those of the whole run,
with tuning, collecting, judging and training.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "auto" / "results.jsonl"
PAGE = ROOT / "docs" / "auto.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"

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
}
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
    "affine": ["accelerator.kind=affine"],
    "affine-full": ["accelerator.kind=affine", "accelerator.covariance=full"],
    "scaling": ["accelerator.kind=scaling"],
}


def program():
    return os.environ.get("STERNA_PROGRAM", str(ROOT / "target" / "debug" / "sterna"))


def measure(target, kind, seed):
    """One run as a line of results."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program(), "run", "--json", "--seed", str(seed), "--out", f"{folder}/run", "--threads", "1"]
        for setting in TARGETS[target] + KINDS[kind]:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{target} {kind}: {done.stderr[-500:]}")
    summary = json.loads(done.stdout)
    choice = summary.get("choice") or {}
    carried = {}
    for name in choice.get("pairs", []):
        carried[name] = carried.get(name, 0) + 1
    return {
        "target": target, "kind": kind, "seed": seed,
        "ess": summary["ess"]["minimum"], "round_trips": summary["round_trips"],
        "evaluations": summary["evaluations"]["target"], "iterations": summary["iterations"],
        "processor_s": sum(summary["time"]["processor"].values()), "log_z": summary["log_z"],
        "chosen": carried, "promised": choice.get("gain"), "reason": choice.get("reason"),
        "judging": choice.get("evaluations"), "steps": (summary.get("training") or {}).get("steps", 0),
    }


def lines():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def keep(row):
    same = lambda other: all(other[key] == row[key] for key in ("target", "kind", "seed"))  # noqa: E731
    rows = [other for other in lines() if not same(other)] + [row]
    rows.sort(key=lambda row: (list(TARGETS).index(row["target"]), list(KINDS).index(row["kind"]), row["seed"]))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))


def table():
    """A row for each target and kind, medians over seeds, beside plain swaps."""
    cells = {}
    for row in lines():
        cells.setdefault((row["target"], row["kind"]), []).append(row)
    out = ["| target | swaps | seeds | chosen | ESS per 1,000 evaluations | beside plain | ESS per second | beside plain | round trips per second |",
           "|---|---|---|---|---|---|---|---|---|"]
    each = lambda rows, of: statistics.median(of(row) for row in rows)  # noqa: E731
    by_work = lambda row: 1e3 * row["ess"] / row["evaluations"]  # noqa: E731
    by_time = lambda row: row["ess"] / row["processor_s"]  # noqa: E731
    for (target, kind), rows in cells.items():
        plain = cells.get((target, "none"), rows)
        chosen = "; ".join(sorted({", ".join(f"{n} {name}" for name, n in row["chosen"].items()) for row in rows} - {""}))
        steps = {row["steps"] for row in rows} - {0}
        chosen += f" ({', '.join(str(s) for s in sorted(steps))} steps)" if steps else ""
        seeds = ", ".join(str(row["seed"]) for row in rows)
        out.append(
            f"| {target} | {kind} | {seeds} | {chosen} | {each(rows, by_work):.3g} | {each(rows, by_work) / each(plain, by_work):.2f} "
            f"| {each(rows, by_time):.3g} | {each(rows, by_time) / each(plain, by_time):.2f} "
            f"| {each(rows, lambda row: row['round_trips'] / row['processor_s']):.3g} |"
        )
    return "\n".join(out)


def write_page():
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--targets", default=";".join(TARGETS), help="separated by ;")
    parser.add_argument("--kinds", default="none;auto", help="separated by ;")
    parser.add_argument("--page", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    if not arguments.page:
        for target in arguments.targets.split(";"):
            for kind in arguments.kinds.split(";"):
                for seed in arguments.seeds.split(","):
                    row = measure(target, kind, int(seed))
                    keep(row)
                    print(target, kind, seed, f"ESS {row['ess']:.0f}, {row['evaluations']} evaluations,",
                          f"{row['processor_s']:.1f} s, {row['round_trips']} round trips,", row["chosen"], row["promised"], row["reason"], flush=True)
    write_page()


if __name__ == "__main__":
    main()
