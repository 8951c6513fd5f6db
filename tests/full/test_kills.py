"""Runs of every kind killed in every stage go on to the same bits: SIGKILL at moments spread over the length of a run, other threads each time.

`STERNA_ALL_KILLS` is how many kills there are over all kinds.
"""

import json
import os
import random
import shutil
import subprocess
import time

import pytest

from sizes import files
from sterna_cli import PROGRAM, sterna
from test_resume import resumed_in, same

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

KILLS = int(os.environ.get("STERNA_ALL_KILLS", "1000"))

# So few that they spread over all stages of a run, the first ones too.
KILLS_OF_A_RUN = 10

# Written as often as can be, and in no hurry to end.
LONG = {"run.checkpoint_seconds": 0.0, "chains.ensembles": 3, "run.iterations": 10_000, "run.thin": 5}
TUNED = {"chains.count": 4, "schedule.rounds": 3, "schedule.iterations": 1500, "run.burn_in": 1000}
TRAINED = {"training.rounds": 2, "training.collect": 2000, "training.steps": 300, "training.batch": 32, "network.layers": 2,
           "network.width": 16, "network.coordinates": "together"}
MOLECULE = {"target.kind": "alanine-dipeptide", "chains.count": 3, "chains.ensembles": 2, "schedule.rounds": 2, "schedule.iterations": 200,
            "schedule.burn_in": 50, "run.burn_in": 200, "run.iterations": 3000, "run.thin": 5, "run.checkpoint_seconds": 0.0}


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


def arguments(settings):
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


def lives(command, out, kills, seconds, moments):
    """Starts, kills and resumes until the run is whole; how many kills that took, and in which stages it went on."""
    done = 0
    while True:
        threads = str(moments.choice([1, 2, 3]))
        # Killed before the folder held a config, it has to begin anew.
        begin = [PROGRAM, "resume", out] if (out / "config.toml").exists() else command
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


@pytest.mark.parametrize("number", range(11))
def test_killed_runs_of_all_kinds_resume_to_the_same_bits(tmp_path, number):
    all_kinds = kinds(tmp_path)
    assert len(all_kinds) == 11
    name, settings = list(all_kinds.items())[number]
    begin = time.monotonic()
    done = sterna("run", "--out", tmp_path / "whole", *arguments(settings))
    assert done.returncode == 0, done.stderr
    seconds = time.monotonic() - begin
    moments, share = random.Random(number), -(-KILLS // len(all_kinds))
    kills, runs, stages = 0, 0, []
    while kills < share:
        out = tmp_path / "run"
        more, seen = lives([PROGRAM, "run", "--out", out, *arguments(settings)], out, min(KILLS_OF_A_RUN, share - kills), seconds, moments)
        kills, runs, stages = kills + more, runs + 1, stages + seen
        same(out, tmp_path / "whole")
        shutil.rmtree(out)
    told = {stage: stages.count(stage) for stage in sorted(set(stages))}
    print(f"\n{name}: {kills} kills in {runs} runs of {seconds:.1f} s, resumed in {json.dumps(told)}: no differing bit")
    assert KILLS < 500 or len(set(stages)) > 1
