"""Runs the program as a user does."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
# What `cargo test` builds: the dev profile is optimised, so that one build serves lints, tests and these.
PROGRAM = pathlib.Path(os.environ.get("STERNA_PROGRAM", ROOT / "target" / "debug" / "sterna"))


def example(name):
    """A built example of the workspace, beside the program."""
    path = PROGRAM.parent / "examples" / name
    assert path.exists(), f"{path} is missing: `cargo build --workspace --examples` makes it"
    return path


def sterna(*arguments, folder=None, seconds=600):
    """The finished process: code, stdout, stderr."""
    command = [str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)


def summary(out, seed=1, config=None, threads=1, **settings):
    """Runs with `--set` for each setting (dots written as __) and returns the summary."""
    command = ["run", *([config] if config else []), "--out", out, "--seed", seed, "--threads", threads, "--json"]
    for key, value in settings.items():
        command += ["--set", f"{key.replace('__', '.')}={value}"]
    done = sterna(*command)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
