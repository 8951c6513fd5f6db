"""Every key of every kind with values that nobody should give: one line that names the key and exit 2, or a run.

`STERNA_SIZES` is which share of them is tried: each so-manieth, all if it is 1.
"""

import os
import shutil

import pytest

import sizes
from depth import count

EVERY = count("STERNA_SIZES", 12, 1)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_all_values_of_every_key_are_refused_by_name_or_run(tmp_path):
    tried = sizes.tries(tmp_path, every=EVERY)
    faults, tally = sizes.survey(tmp_path, tried, seconds=20, workers=os.cpu_count())
    print(f"\n{len(tried)} values of {len({key for key, _, _ in tried})} keys: {tally}, {len(faults)} faults")
    assert faults == [], "\n".join(faults)
