"""Measures sterna's defaults on posteriors, beside Stan's NUTS, and writes docs/posteriors.md.

    alias measure='python3 scripts/measure/posteriors/measure.py'
    measure --posteriors FOLDER --models FOLDER [--stan PYTHON] [--jobs N]
    measure --only calibration/funnel --jobs 16        # some cells alone, on any machine
    measure --cell calibration/funnel/1000/7           # one, measured anew and printed
    measure --page                                     # the page from what was measured

FOLDER of posteriors: a folder each with model.stan, data.json, reference.json; of models: NAME/model.so, compiled by
BridgeStan. PYTHON: one that has pystan. A cell that was measured with the same program and settings is not measured
again (a line each in docs/posteriors/results.jsonl, to which lines of another machine can be added). Needs numpy.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed

import cells
import draws
import page

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RESULTS = ROOT / "docs" / "posteriors" / "results.jsonl"
# Of the command `timeout`.
TIMED_OUT = 124


def read(path):
    """The last result of each cell."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


def write(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(results[key], sort_keys=True, ensure_ascii=False) + "\n" for key in sorted(results)]
    text = path.with_suffix(".new")
    text.write_text("".join(lines))
    text.replace(path)


def spent(process):
    """Processor seconds of a process that is waited for, and how it ended."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def ran(command, limit):
    """Exit code, what was printed, and processor seconds; a command beyond its limit is asked to stop."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        process = subprocess.Popen(["timeout", str(limit), *map(str, command)], stdout=out, stderr=error, cwd=HERE)
        seconds = spent(process)
        out.seek(0), error.seek(0)
        return process.returncode, out.read().decode(), error.read().decode(), seconds


def command_of(cell, options, config, folder):
    settings = [word for setting in cell.all_settings() for word in ("--set", setting)]
    words = [options.sterna, "run", config, "--json", "--seed", str(cell.seed), "--threads", str(options.threads)]
    return [*words, "--out", folder, *settings]


def by_sterna(cell, options):
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        (place / "target.toml").write_text(cell.config())
        command = command_of(cell, options, place / "target.toml", place / "run")
        code, text, error, seconds = ran(command, options.limit)
        if code:
            last = [line for line in error.splitlines() if line.strip()][-1:]
            said = f"not done in {options.limit} s" if code == TIMED_OUT else last[0] if last else ""
            return {"failed": code, "said": said, "seconds": seconds}
        row = of_summary(json.loads(text)) | {"seconds": seconds}
        return row | of_draws(cell, draws.read(place / "run"), options)


def of_summary(found):
    row = {name: found[name] for name in ("chains", "iterations", "round_trips", "stopped_by")}
    row |= {name: found["log_z"][name] for name in ("bar", "standard_error", "truth")}
    row["evaluations"] = found["evaluations"]["target"]
    row["legs"] = [{name: leg[name] for name in ("chains", "barrier", "log_z", "log_z_error")} for leg in found["legs"]]
    row["alarms"] = sorted({alarm["code"] for alarm in found["alarms"]})
    row["verdict"] = found.get("verdict")
    return row


def of_draws(cell, values, options):
    row = {"ess": draws.smallest_bulk_ess(values), "draws": int(next(iter(values.values())).size)}
    if cell.group == "posteriors":
        reference = json.loads((options.posteriors / cell.name / "reference.json").read_text())
        row |= draws.against(values, reference)
    return row | (cell.look(values) if cell.look else {})


def by_nuts(cell, options):
    folder = options.posteriors / cell.name
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place) / "nuts.json"
        script = [options.stan, HERE / "nuts.py", folder]
        # Compiling is no part of what is measured: the second process finds the model in pystan's cache.
        code, _, error, _ = ran([*script, "--build"], options.limit)
        if not code:
            code, _, error, seconds = ran([*script, out], options.limit)
        if code:
            return {"failed": code, "said": error.splitlines()[-1] if error else ""}
        return json.loads(out.read_text())


def measured(cell, options):
    row = by_nuts(cell, options) if cell.group == "nuts" else by_sterna(cell, options)
    row |= {"key": cell.key, "group": cell.group, "name": cell.name, "goal": cell.goal, "seed": cell.seed}
    return row | made_by(cell, options)


def made_by(cell, options):
    """What must be the same for a result to stand."""
    if cell.group == "nuts":
        return {"program": "pystan"}
    # Where files lie is this machine's own business.
    config = re.sub(r'"/[^"]*/([^"/]+/[^"/]+)"', r'"\1"', cell.config())
    return {"program": options.program, "config": config, "settings": list(cell.all_settings())}


def stands(cell, result, options):
    """Whether a result is one of this cell: of the same program and settings, wherever files lie."""

    def bare(row):
        return {name: row.get(name) for name in ("program", "settings")}

    return result is not None and "failed" not in result and bare(result) == bare(made_by(cell, options))


def wanted(options):
    found = cells.modes(options.library) + cells.places(options.library) + cells.calibration(options.seeds)
    if options.posteriors:
        found = cells.posteriors(options.posteriors, options.models, options.repeats) + cells.nuts(options.posteriors) + found
    if options.cell:
        return [cell for cell in found if cell.key == options.cell]
    return [cell for cell in found if any(word in cell.key for word in options.only.split(","))]


def library(options):
    """The densities in C, compiled unless a library was given."""
    if options.library:
        return options.library.resolve()
    made = pathlib.Path(tempfile.gettempdir()) / "sterna-densities.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", made, HERE / "densities.c", "-lm"], check=True)
    return made


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriors", type=pathlib.Path, help="folder of posteriors")
    parser.add_argument("--models", type=pathlib.Path, help="folder of their compiled models")
    parser.add_argument("--stan", default=sys.executable, help="a Python that has pystan")
    parser.add_argument("--sterna", type=pathlib.Path, default=ROOT / "target" / "release" / "sterna")
    parser.add_argument("--library", type=pathlib.Path, help="densities.c compiled, where there is no compiler")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, default=40, help="of a calibration")
    parser.add_argument("--repeats", type=int, default=3, help="seeds of a posterior")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run")
    parser.add_argument("--limit", type=int, default=1800, help="seconds of a cell at most")
    parser.add_argument("--only", default="", help="cells whose name holds one of these words, with commas between")
    parser.add_argument("--cell", help="one cell, measured anew and printed, not kept")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--no-page", action="store_true", help="only keep results")
    parser.add_argument("--plan", action="store_true", help="only say what would be measured")
    return parser.parse_args()


def main():
    options = arguments()
    results = read(options.results)
    if not options.page:
        options.sterna = options.sterna.resolve()
        options.program = hashlib.sha256(options.sterna.read_bytes()).hexdigest()[:12]
        options.library = library(options)
        todo = wanted(options)
        if options.cell:
            print(json.dumps(measured(todo[0], options), indent=1, ensure_ascii=False))
            return
        todo = [cell for cell in todo if not stands(cell, results.get(cell.key), options)]
        if options.plan:
            print("\n".join(cell.key for cell in todo))
            return
        with ThreadPoolExecutor(options.jobs) as pool:
            for done in as_completed([pool.submit(measured, cell, options) for cell in todo]):
                row = done.result()
                results[row["key"]] = row
                write(options.results, results)
                print(page.line(row), flush=True)
    if not options.no_page:
        page.write(results, ROOT / "docs")


if __name__ == "__main__":
    main()
