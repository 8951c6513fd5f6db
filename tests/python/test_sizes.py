"""A share of the values that `tests/full/test_sizes.py` tries on every key."""

import os
import shutil

import pytest

import sizes

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def test_some_values_of_every_key_are_refused_by_name_or_run(tmp_path):
    tried = sizes.tries(tmp_path, every=211)
    faults, tally = sizes.survey(tmp_path, tried, seconds=10, workers=os.cpu_count())
    print(f"\n{len(tried)} values: {tally}")
    assert faults == []
    assert tally["refused"] > 30 and tally["runs"] > 3


@pytest.mark.parametrize("setting, parts", [
    ("run.checkpoint_seconds=1e308", ["run.checkpoint_seconds = 1e308 is impossible", "at most 1000000000"]),
    ("seed=1e308", ["--set seed=1e308: expected a whole number from 0 up"]),
    ("chains.count=100000000", ["chains.count = 100000000 is impossible", "GiB of memory", "run.memory_gib = 4"]),
    ("schedule.rounds=1000000", ["schedule.rounds = 1000000 is impossible", "10000"]),
    ("chains.zzz=1", ["unknown field `zzz`", "expected `count` or `ensembles`"]),
    ("target.library=''", ["target.library"]),
])
def test_refusals_are_one_line(tmp_path, setting, parts):
    more = ["target.kind=library"] if "library" in setting else []
    done = sizes.sterna("run", "--out", tmp_path / "run", *(part for s in [*more, setting] for part in ("--set", s)))
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for part in parts:
        assert part in done.stderr, done.stderr
