"""What the pages on trust say, measured with one program on a machine with many cores, which needs no compiler of Rust.

    python3 scripts/measure/trust.py --out FOLDER --bundle FOLDER [--parts zoo,...] [--beside reports] [--jobs N] [--limit SECONDS]
    python3 scripts/measure/trust.py --fold FOLDER          # into docs/, on the machine that has the source

The bundle holds what must be built before: `sterna` and `calibration` (cargo build --release -p sterna-cli; --example calibration),
`fuzz` (cargo test --test fuzz --no-run) and, for the posteriors, `posteriors/` and `models/` (see posteriors/measure.py). Parts run one
after the other, as they are named, each on all cores; what each has found is in FOLDER as it goes, so that a part that is cut off by its
limit or by the end of the call leaves the rest.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
POSTERIORS = ROOT / "scripts" / "measure" / "posteriors"
DOCS = ROOT / "docs"

# What cells of the zoo leave is looked at once, and too much to be kept.
KEPT = pathlib.Path(tempfile.gettempdir()) / "sterna-zoo-kept"

SEED = 20261118
MUTATIONS, KILLS, SIMULATIONS, ZOO_SEEDS = 10_000_000, 1000, 100, 8
# Kinds of files that have as many mutations each; pages are made of reports, which takes longer, one after the other.
KINDS, PAGES = 8, 8000
# Each so-manieth value of a key.
EVERY = 7
SURVEY = """
import pathlib, sys, tempfile
import sizes
every, workers = map(int, sys.argv[1:])
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    tried = sizes.tries(folder, every=every)
    faults, tally = sizes.survey(folder, tried, seconds=20, workers=workers)
print("\\n".join(faults))
print(f"{len(tried)} values of {len({key for key, _, _ in tried})} keys: {tally}, {len(faults)} faults", flush=True)
"""


def parts(out, bundle, jobs):
    """A command and what it hears of the environment, by name."""
    tests = {"STERNA_PROGRAM": str(bundle / "sterna"), "PYTHONPATH": str(ROOT / "tests" / "python")}
    fuzz = {"STERNA_FUZZ": MUTATIONS // KINDS, "STERNA_FUZZ_SEED": SEED, "STERNA_FUZZ_WORKERS": jobs}
    one_by_one = [bundle / "fuzz", "--nocapture", "--test-threads", 1]
    measure = [sys.executable, POSTERIORS / "measure.py", "--sterna", bundle / "sterna", "--jobs", jobs, "--no-page", "--limit", 400]
    measure += ["--results", out / "posteriors.jsonl"]
    places = ["--posteriors", bundle / "posteriors", "--models", bundle / "models"]
    kills = ROOT / "tests" / "python" / "kills.py"
    return {
        "zoo": ([bundle / "sterna", "zoo", "--seeds", ZOO_SEEDS, "--jobs", jobs, "--keep", KEPT, "--out", out / "zoo"], {}),
        "evidence": ([sys.executable, ROOT / "scripts" / "measure" / "evidence.py", KEPT, out / "zoo" / "trust" / "zoo.jsonl"], {}),
        "posteriors": ([*measure, *places, "--only", "posteriors/,modes/,places/"], {}),
        "calibration": ([*measure, "--only", "calibration/"], {}),
        "simulations": ([bundle / "calibration", out / "simulations", SIMULATIONS], {"RAYON_NUM_THREADS": jobs}),
        "fuzz": ([*one_by_one, "--skip", "reports"], fuzz),
        # A page for twenty of what others have.
        "reports": ([*one_by_one, "reports"], fuzz | {"STERNA_FUZZ": 20 * PAGES}),
        "kills": ([sys.executable, kills, KILLS, "--workers", jobs], tests),
        "sizes": ([sys.executable, "-c", SURVEY, EVERY, jobs], tests),
    }


def begun(command, environment, log, limit):
    """A process whose words go into a file as it says them."""
    environment = os.environ | {key: str(value) for key, value in environment.items()}
    command = ["timeout", str(limit), *map(str, command)]
    return subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, env=environment)


def measure(options):
    """Part after part; how each ended is a line."""
    options.out.mkdir(parents=True, exist_ok=True)
    every = parts(options.out.resolve(), options.bundle.resolve(), options.jobs)
    beside = [name for name in options.beside.split(",") if name]
    chosen = options.parts.split(",") if options.parts else [name for name in every if name not in beside]
    first = time.monotonic()

    def begin(name):
        return begun(*every[name], options.out / f"{name}.log", options.limit)

    def end(name, process, since):
        ended = {"part": name, "code": process.wait(), "seconds": round(time.monotonic() - since)}
        print(json.dumps(ended), flush=True)
        with (options.out / "parts.jsonl").open("a") as file:
            file.write(json.dumps(ended) + "\n")

    waiting = [(name, begin(name)) for name in beside]
    for name in chosen:
        since = time.monotonic()
        end(name, begin(name), since)
    for name, process in waiting:
        end(name, process, first)


def said(folder, name):
    """What a part has said, if it was run to its end."""
    ended = [json.loads(line) for line in (folder / "parts.jsonl").read_text().splitlines()]
    whole = any((part["part"], part["code"]) == (name, 0) for part in ended)
    return (folder / f"{name}.log").read_text() if whole else None


def replaced(page, mark, text):
    """Writes a text between the marks of a page."""
    begin, end = f"<!-- {mark}: written by scripts/measure/trust.py -->\n", f"<!-- end of {mark} -->"
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + text + end + rest.split(end)[1])


FILES = {"xml": "System XML", "points": "points and conformations", "draws": "`draws.nc`", "draws-mended": "`draws.nc` with its inner checksums mended",
         "stored-draws": "draws of a checkpoint", "reports": "summaries and traces of reports"}


def of_fuzz(log):
    """A row for each kind of file."""
    pattern = r"([\w-]+): (\d+) mutations of seed (\d+), (\d+) accepted, at most (\d+) bytes at once"
    found = [(kind, *map(int, numbers)) for kind, *numbers in re.findall(pattern, log)]
    rows = "".join(f"| {FILES.get(kind, kind)} | {count:,} | {accepted:,} |\n" for kind, count, _, accepted, _ in found)
    most = max(largest for *_, largest in found) / 2**20
    total = sum(count for _, count, *_ in found)
    told = f"\n{total:,} mutations with seed {found[0][2]}, at most {most:.1f} MiB at once: no panic, nothing that hangs.\n"
    return f"| kind of file | mutations | accepted |\n|---|---|---|\n{rows}{told}"


def of_kills(log):
    """What the survey of kills said, kind by kind."""
    rows = re.findall(r"^(.+): (\d+) kills in (\d+) runs of [\d.]+ s, resumed in (\{.*\}): no differing bit$", log, re.M)
    lines = "".join(
        f"| {kind} | {kills} | {runs} | {', '.join(f'{stage} {times}' for stage, times in json.loads(stages).items())} |\n"
        for kind, kills, runs, stages in rows
    )
    total = sum(int(kills) for _, kills, *_ in rows)
    return f"{total:,} kills, no differing bit:\n\n| kind of run | kills | runs | resumed while |\n|---|---|---|---|\n{lines}"


def of_sizes(log):
    """The last line of the survey."""
    tried, keys, tally, faults = re.search(r"(\d+) values of (\d+) keys: \{(.*)\}, (\d+) faults", log).groups()
    words = {"refused": "refused", "runs": "ran", "runs on": "still ran when their time was up", "fails": "ended otherwise"}
    counts = [f"{int(count):,} {words.get(kind, kind)}" for kind, count in re.findall(r"'([\w ]+)': (\d+)", tally)]
    return f"{int(tried):,} values of {keys} keys, each {EVERY}th: {', '.join(counts)}; {faults} faults.\n"


def fold(folder):
    """Into the pages, whatever came to its end; cells of zoo and posteriors one by one."""
    page = DOCS / "trust" / "damage.md"
    for name, text in [("fuzz", of_fuzz), ("kills", of_kills), ("sizes", of_sizes)]:
        log = said(folder, name)
        if name == "fuzz" and log is not None:
            log += said(folder, "reports") or ""
        print(f"{name}: {'not whole' if log is None else 'folded'}")
        if log is not None:
            replaced(page, name, text(log))
    for name in ["calibration.md", "calibration.svg"]:
        if (folder / "simulations" / name).exists():
            shutil.copy(folder / "simulations" / name, DOCS / "trust" / name)
    if (folder / "zoo" / "trust" / "zoo.jsonl").exists():
        shutil.copy(folder / "zoo" / "trust" / "zoo.jsonl", DOCS / "trust" / "zoo.jsonl")
        print("zoo: `sterna zoo --seeds 8 --out docs` makes the page")
    if (folder / "posteriors.jsonl").exists():
        sys.path.insert(0, str(POSTERIORS))
        import measure as posteriors

        results = posteriors.read(posteriors.RESULTS) | posteriors.read(folder / "posteriors.jsonl")
        posteriors.write(posteriors.RESULTS, results)
        posteriors.page.write(results, DOCS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--bundle", type=pathlib.Path)
    parser.add_argument("--parts", default="", help="some of them, with commas between; all otherwise")
    parser.add_argument("--beside", default="", help="parts that need one core, beside the others")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=1800, help="seconds of a part at most")
    parser.add_argument("--fold", type=pathlib.Path, help="what was measured, to be folded into docs/")
    options = parser.parse_args()
    if options.fold:
        fold(options.fold)
    else:
        measure(options)


if __name__ == "__main__":
    main()
