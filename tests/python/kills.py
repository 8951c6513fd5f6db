"""Runs of every kind, killed in every stage, and what must not differ afterwards.

As a program: `python tests/python/kills.py 1000 --workers 16` kills a thousand times over all kinds, so many runs at a time.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import shutil
import subprocess
import tempfile
import time

from sizes import files
from sterna_cli import PROGRAM, sterna

# So few that they spread over all stages of a run, the first ones too.
KILLS_OF_A_RUN = 10

# Written as often as can be, and in no hurry to end.
LONG = {"run.checkpoint_seconds": 0.0, "chains.ensembles": 3, "run.iterations": 10_000, "run.thin": 5}
TUNED = {"chains.count": 4, "schedule.rounds": 3, "schedule.iterations": 1500, "run.burn_in": 1000}
TRAINED = {"training.rounds": 2, "training.collect": 2000, "training.steps": 300, "training.batch": 32, "network.layers": 2,
           "network.width": 16, "network.coordinates": "together"}
MOLECULE = {"target.kind": "alanine-dipeptide", "chains.count": 3, "chains.ensembles": 2, "schedule.rounds": 2, "schedule.iterations": 200,
            "schedule.burn_in": 50, "run.burn_in": 200, "run.iterations": 3000, "run.thin": 5, "run.checkpoint_seconds": 0.0}


def compared(folder):
    """The summary without what a clock says."""
    summary = json.loads((folder / "summary.json").read_text())
    del summary["time"]
    del summary["compute_normalised_round_trips"]["per_second"]
    # Both are made of seconds.
    summary.pop("payoff", None)
    summary.pop("break_even", None)
    return summary


def same(folder, other):
    """Two runs have the same bits."""
    assert compared(folder) == compared(other)
    for file in ("draws.nc", "transport.safetensors"):
        if (other / file).exists():
            assert (folder / file).read_bytes() == (other / file).read_bytes(), file


def resumed_in(folder):
    """The stages in which the run went on, as the log tells."""
    log = folder / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [e["stage"].split("(")[0] for e in map(json.loads, lines) if e["event"] == "resume"]


def kinds(folder):
    """Settings of each kind of run."""
    gmm = LONG | TUNED | {"target.kind": "gmm", "target.dim": 2}
    needed = files(folder)
    until = {"run.checkpoint_seconds": 0.0, "run.iterations": 6000, "run.until.evaluations": 10**9, "run.burn_in": 500}
    return {
        "plain": gmm,
        "affine": gmm | {"accelerator.kind": "affine", "training.collect": 2000},
        "flow": gmm | TRAINED | {"accelerator.kind": "flow"},
        "cmcd": gmm | TRAINED | {"accelerator.kind": "cmcd", "accelerator.steps": 2},
        "diffusion": gmm | TRAINED | {"accelerator.kind": "diffusion", "accelerator.steps": 2},
        "fitted, two legs": until | {"target.kind": "gmm", "target.dim": 2, "reference.kind": "fitted"},
        "library": until | {"target.kind": "library"} | needed["library"],
        "likelihood": until | needed["likelihood"],
        "stan": until | {"target.kind": "stan"} | needed["stan"],
        "molecule": MOLECULE,
        "molecule, affine": MOLECULE | {"accelerator.kind": "affine", "training.collect": 400, "training.rounds": 1},
    }


def command(out, settings):
    """Begins a run with these settings."""
    return [PROGRAM, "run", "--out", out, *(part for key, value in settings.items() for part in ("--set", f"{key}={value}"))]


def undisturbed(out, settings):
    """A run that nobody kills: how many seconds it takes."""
    begin = time.monotonic()
    done = sterna(*command(out, settings)[1:])
    assert done.returncode == 0, done.stderr
    return time.monotonic() - begin


def lives(out, settings, kills, seconds, moments):
    """Starts, kills and resumes until the run is whole; how many kills that took, and in which stages it went on."""
    done = 0
    while True:
        threads = str(moments.choice([1, 2, 3]))
        # Killed before the folder held a config, it has to begin anew.
        begin = [PROGRAM, "resume", out] if (out / "config.toml").exists() else command(out, settings)
        process = subprocess.Popen([*map(str, begin), "--threads", threads], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            life = None if done >= kills else moments.uniform(0.02, 2.5 * seconds / KILLS_OF_A_RUN)
            _, errors = process.communicate(timeout=life)
            assert process.returncode == 0, errors
            return done, resumed_in(out)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            done += 1


def survey(folder, kills, workers, chosen=lambda name: True):
    """Kills runs of all kinds, or the chosen ones, until each has had its share; a line for each kind, and all stages."""
    all_kinds = {name: settings for name, settings in kinds(folder).items() if chosen(name)}
    share = -(-kills // len(all_kinds))
    killed, runs, stages = collections.Counter(), collections.Counter(), {name: collections.Counter() for name in all_kinds}

    def one(name, number, seconds, most):
        out = folder / f"{name}-{number}"
        done, seen = lives(out, all_kinds[name], most, seconds, random.Random(f"{name} {number}"))
        same(out, folder / name)
        shutil.rmtree(out)
        return name, done, seen

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        lengths = dict(zip(all_kinds, pool.map(lambda name: undisturbed(folder / name, all_kinds[name]), all_kinds)))
        number = 0
        while any(killed[name] < share for name in all_kinds):
            # Those that ended before all their kills leave some for the next.
            waiting = []
            for name, seconds in sorted(lengths.items(), key=lambda item: -item[1]):
                left = share - killed[name]
                for first in range(0, left, KILLS_OF_A_RUN):
                    number += 1
                    waiting.append(pool.submit(one, name, number, seconds, min(KILLS_OF_A_RUN, left - first)))
            for ended in concurrent.futures.as_completed(waiting):
                name, done, seen = ended.result()
                killed[name] += done
                if killed.total() // 100 > (killed.total() - done) // 100:
                    print(f"{killed.total()} kills so far, no differing bit", flush=True)
                runs[name] += 1
                stages[name].update(seen)
    for name, seconds in lengths.items():
        told = json.dumps(dict(sorted(stages[name].items())))
        print(f"{name}: {killed[name]} kills in {runs[name]} runs of {seconds:.1f} s, resumed in {told}: no differing bit", flush=True)
    print(f"{killed.total()} kills, no differing bit", flush=True)
    return stages


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kills", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="kinds with this word in their names")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        survey(pathlib.Path(folder), given.kills, given.workers, lambda name: given.only in name)
