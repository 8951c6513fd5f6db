"""A script on several ranks: the bits of one process, and no rank that waits for ever."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import sterna
from conftest import ROOT, SHORT, humps, same_draws

# The package, built with the feature mpi: ./check puts it there.
PACKAGE = pathlib.Path(os.environ.get("STERNA_WITH_MPI", ROOT / "target" / "with-mpi"))
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "PYTHONPATH": f"{PACKAGE}{os.pathsep}{pathlib.Path(__file__).parent}", "OMP_NUM_THREADS": "1",
}  # fmt: skip

SCRIPT = """
import os, sys
import numpy as np
import sterna
from conftest import SHORT, humps

target = sterna.from_pyfunc(2, humps)
"""


@pytest.fixture(scope="module", autouse=True)
def built_with_mpi():
    if "STERNA_MPI" in os.environ:
        assert (PACKAGE / "sterna").exists(), f"{PACKAGE} holds no package with the feature mpi"
        return
    if shutil.which("mpirun") is None or not (PACKAGE / "sterna").exists():
        pytest.skip("there is no mpirun, or no package that was built with the feature mpi")


def started(ranks, script, *arguments, environment=ENVIRONMENT):
    command = ["mpirun", "--oversubscribe", "-n", ranks, sys.executable, "-c", SCRIPT + script, *arguments]
    return subprocess.Popen([*map(str, command)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def on(ranks, script, *arguments, **more):
    """A script on so many ranks: its code, and what it said."""
    process = started(ranks, script, *arguments, **more)
    said, errors = process.communicate(timeout=120)
    return process.returncode, said, errors


def test_a_script_on_any_number_of_ranks_has_the_bits_of_one(tmp_path):
    alone = sterna.sample(sterna.from_pyfunc(2, humps), **SHORT, seed=3)
    script = """
run = sterna.sample(target, **SHORT, seed=3, store=sys.argv[1])
assert run.draws["x"].shape[1] == SHORT["iterations"] and sterna.ranks() == int(sys.argv[2])
if sterna.rank() == 0:
    print("first", run.log_z)
"""
    for ranks in [2, 3]:
        code, said, errors = on(ranks, script, tmp_path / str(ranks), ranks)
        assert code == 0, errors
        assert said.count("first") == 1 and repr(alone.log_z) in said
        same_draws(sterna.load(tmp_path / str(ranks)), alone)


def test_temporary_folders_and_several_runs_and_likelihoods(tmp_path):
    script = """
found = [sterna.sample(target, **SHORT, seed=seed).log_z for seed in [1, 2]]
nested = sterna.from_likelihood(lambda x: -0.5 * float(x @ x), lambda u: 6.0 * u - 3.0, 2)
schedule = {"rounds": 2, "iterations": 100, "burn_in": 20}
run = sterna.sample(nested, iterations=200, chains=3, ensembles=2, burn_in=50, schedule=schedule, reference="standard-normal",
                    seed=1, progress_bar=False)
assert run.folder.exists()
with open(f"{sys.argv[1]}/{sterna.rank()}", "w") as file:
    print(*found, run.log_z, file=file)
"""
    code, _, errors = on(2, script, tmp_path)
    assert code == 0, errors
    # Both ranks have found the same. Each has a file: lines that two processes print may be joined.
    first, second = [(tmp_path / str(rank)).read_text() for rank in [0, 1]]
    assert len(first.split()) == 3 and first == second


def test_what_is_raised_on_one_rank_ends_all():
    script = """
def raises(x):
    if sterna.rank() == 1 and (x[:, 0] > 1.0).any():
        raise LookupError("no such orbital")
    return humps(x)

sterna.sample(sterna.from_pyfunc(2, raises), **SHORT)
"""
    code, _, errors = on(3, script)
    assert code != 0 and "LookupError: no such orbital" in errors and "RunError: rank 1 on " in errors, errors


def test_a_rank_that_leaves_ends_all():
    script = """
sterna.sample(target, **SHORT)
if sterna.rank() == 1:
    raise SystemExit(0)
sterna.sample(target, **{**SHORT, "iterations": 10**8})
"""
    begin = time.monotonic()
    code, _, errors = on(2, script)
    assert code != 0 and "rank 1 on " in errors and "has ended, but others go on" in errors, errors
    assert time.monotonic() - begin < 60


def test_a_signal_to_any_rank_stops_all_and_another_number_goes_on(tmp_path):
    long = {**SHORT, "iterations": 8_000}
    alone = sterna.sample(sterna.from_pyfunc(2, humps), **long, seed=4)
    script = """
store = sys.argv[1]
open(f"{store}.{sterna.rank()}", "w").write(str(os.getpid()))
if os.path.exists(f"{store}/config.toml"):
    run = sterna.resume(store, model=target, progress_bar=False)
else:
    run = sterna.sample(target, **{**SHORT, "iterations": 8_000}, seed=4, store=store, run={"checkpoint_seconds": 0.05})
"""
    store = tmp_path / "run"
    process = started(3, script, store)
    end = time.monotonic() + 60
    while not (store / "checkpoint" / "state").exists() or not pathlib.Path(f"{store}.2").exists():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.05)
    os.kill(int(pathlib.Path(f"{store}.2").read_text()), signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and '"stopped"' in (store / "progress.json").read_text(), errors
    code, _, errors = on(2, script, store)
    assert code == 0, errors
    same_draws(sterna.load(store), alone)


def lives(process):
    """Whether there is such a process, other than one whose end nobody has asked for."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_launcher_that_dies_stops_all_well(tmp_path):
    script = """
open(f"{sys.argv[1]}.{sterna.rank()}", "w").write(str(os.getpid()))
sterna.sample(target, **{**SHORT, "iterations": 10**7}, store=sys.argv[1], run={"checkpoint_seconds": 0.05})
"""
    store = tmp_path / "run"
    process = started(3, script, store)
    end = time.monotonic() + 60
    while not (store / "checkpoint" / "state").exists() or not pathlib.Path(f"{store}.2").exists():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.05)
    ranks = [int(pathlib.Path(f"{store}.{rank}").read_text()) for rank in range(3)]
    process.kill()
    process.communicate()
    end = time.monotonic() + 15
    while any(map(lives, ranks)):
        assert time.monotonic() < end, "a rank is left"
        time.sleep(0.1)
    assert '"stopped"' in (store / "progress.json").read_text()


def test_one_run_at_a_time():
    script = """
run = sterna.sample(target, **{**SHORT, "iterations": 10**8}, blocking=False)
try:
    sterna.sample(target, **SHORT)
except sterna.ConfigError as error:
    print(error)
run.abort()
"""
    code, said, errors = on(2, script)
    assert code == 0 and said.count("one run at a time") == 2, said + errors


def test_without_mpi_several_processes_are_refused():
    plain = ENVIRONMENT | {"PYTHONPATH": str(pathlib.Path(__file__).parent)}
    code, _, errors = on(2, "sterna.sample(target, **SHORT)", environment=plain)
    assert code != 0 and "built without MPI" in errors and "cuda,mpi" in errors, errors
    assert np.isfinite(sterna.sample(sterna.from_pyfunc(2, humps), **SHORT).log_z)


def test_the_script_of_the_page(tmp_path):
    page = (ROOT / "docs" / "book" / "clusters.md").read_text()
    script = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "my_model.py").write_text("from conftest import humps\n")
    script = f"os.chdir({str(tmp_path)!r}); sys.path.insert(0, {str(tmp_path)!r})\n{script}"
    code, said, errors = on(2, script)
    assert code == 0 and said.count("<sterna.Run") == 1, said + errors
