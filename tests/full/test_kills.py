"""Runs of every kind killed in every stage go on to the same bits: SIGKILL at moments spread over the length of a run, other threads each time.

`STERNA_ALL_KILLS` is how many kills there are over all kinds.
"""

import os
import shutil

import pytest

import kills
from depth import count

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

KILLS = count("STERNA_ALL_KILLS", 110, 1000)


def test_killed_runs_of_all_kinds_resume_to_the_same_bits(tmp_path):
    stages = kills.survey(tmp_path, KILLS, workers=os.cpu_count())
    assert len(stages) == 11
    assert KILLS < 500 or all(len(seen) > 1 for seen in stages.values()), stages
