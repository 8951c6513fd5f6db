"""Runs the program as a user does."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = pathlib.Path(os.environ.get("STERNA_PROGRAM", ROOT / "target" / "release" / "sterna"))


def sterna(*arguments, folder=None):
    """The finished process: code, stdout, stderr."""
    command = [str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def summary(out, seed=1, config=None, threads=1, **settings):
    """Runs with `--set` for each setting (dots written as __) and returns the summary."""
    command = ["run", *([config] if config else []), "--out", out, "--seed", seed, "--threads", threads, "--json"]
    for key, value in settings.items():
        command += ["--set", f"{key.replace('__', '.')}={value}"]
    done = sterna(*command)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
