"""One call: built-in targets and own ones, the same bits as the command line, and runs that go on on either side."""

import subprocess
import sys
import time

import numpy as np
import pytest
import sterna
from conftest import SHORT, humps, humps_log_z, same_draws


def test_the_same_bits_as_the_command_line(program, tmp_path):
    config = tmp_path / "gmm.toml"
    config.write_text(
        "seed = 7\n[target]\nkind = 'gmm'\ndim = 4\n[chains]\ncount = 5\nensembles = 3\n[accelerator]\nkind = 'affine'\n"
        "[schedule]\nrounds = 3\niterations = 200\n[training]\ncollect = 300\n[run]\niterations = 500\nburn_in = 20\n"
    )
    done = program("run", config, "--out", tmp_path / "cli")
    assert done.returncode == 0, done.stderr
    run = sterna.sample(
        sterna.targets.gmm(dim=4), seed=7, chains=5, ensembles=3, accelerator="affine", iterations=500, burn_in=20,
        schedule={"rounds": 3, "iterations": 200}, training__collect=300, progress_bar=False, store=tmp_path / "python",
    )  # fmt: skip
    other = sterna.load(tmp_path / "cli")
    same_draws(run, other)
    assert run.log_z == other.log_z
    assert (tmp_path / "python/config.toml").read_text() == (tmp_path / "cli/config.toml").read_text()


def test_a_run_goes_on_on_either_side(program, tmp_path):
    target, settings = sterna.targets.banana(), {**SHORT, "seed": 3}
    whole = sterna.sample(target, **{**settings, "iterations": 700})
    sterna.sample(target, **settings, store=tmp_path / "a")
    done = program("resume", tmp_path / "a", "--iterations", 700)
    assert done.returncode == 0, done.stderr
    same_draws(sterna.load(tmp_path / "a"), whole)
    # The other way round, on another number of threads.
    words = [f"--set={key}={value}" for key, value in [
        ("target.kind", "banana"), ("reference.kind", "standard-normal"), ("chains.count", 4), ("chains.ensembles", 2),
        ("schedule.rounds", 3), ("schedule.iterations", 200), ("run.burn_in", 50), ("run.iterations", 400)]]  # fmt: skip
    done = program("run", "--out", tmp_path / "b", "--seed", 3, *words)
    assert done.returncode == 0, done.stderr
    same_draws(sterna.resume(tmp_path / "b", iterations=700, threads=2, progress_bar=False), whole)


def test_an_own_target_with_no_words_at_all():
    run = sterna.sample(sterna.from_pyfunc(2, humps), seed=2, progress_bar=False)
    assert run.verdict == "sound" and run.finished and run.alarms == []
    # 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    assert abs(run.log_z - humps_log_z(2)) < 5 * run.log_z_error
    x = run.draws["x"]
    assert x.shape[0] == 4 and x.shape[2] == 2
    right = (x[:, :, 0] > 0).mean()
    assert abs(right - 0.5) < 5 * 0.5 / np.sqrt(run.summary["ess"]["coordinates"][0])
    assert run.summary["stopped_by"] == "goals"


def test_an_own_target_goes_on(tmp_path):
    target = sterna.from_pyfunc(2, humps)
    whole = sterna.sample(target, **{**SHORT, "iterations": 700})
    sterna.sample(target, **SHORT, store=tmp_path / "run")
    with pytest.raises(sterna.ConfigError, match="lives in the program"):
        sterna.resume(tmp_path / "run", progress_bar=False)
    with pytest.raises(sterna.ConfigError, match="another target"):
        sterna.resume(tmp_path / "run", model=sterna.from_pyfunc(3, humps), progress_bar=False)
    with pytest.raises(sterna.ConfigError, match=r"go on with sterna.resume\("):
        sterna.sample(target, **SHORT, store=tmp_path / "run")
    same_draws(sterna.resume(tmp_path / "run", model=target, iterations=700, progress_bar=False), whole)
    # A run in memory goes on by itself.
    first = sterna.sample(target, **SHORT)
    same_draws(first.resume(iterations=700, progress_bar=False), whole)


def test_more_draws_later(tmp_path):
    target = sterna.from_pyfunc(2, humps)
    few = sterna.sample(target, draws=100, store=tmp_path / "run", progress_bar=False).draws["x"]
    more = sterna.resume(tmp_path / "run", model=target, draws=2000, progress_bar=False)
    assert more.draws["x"].shape[1] > few.shape[1]
    same_draws(more, sterna.sample(target, draws=2000, progress_bar=False))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"chain": 3}, ["'chain'", "Did you mean 'chains'"]),
        ({"cores": 3}, ["'cores'", "Say threads"]),
        ({"tune": 1000}, ["'tune'", "tuning ends by itself"]),
        ({"chains": {"cuont": 3}}, ["cuont", "did you mean `count`"]),
        ({"chains": 1}, ["chains.count = 1", "at least 2"]),
        ({"accelerator": "cmdc"}, ["accelerator.kind", "cmdc", 'Did you mean "cmcd"']),
        ({"draws": 0}, ["run.until.ess = 0", "positive"]),
        ({"run": 3}, ["run = 3", "dictionary"]),
        ({"seed": object()}, ["no value of a config"]),
        ({"iterations": 10.5}, ["run.iterations", "10.5"]),
    ],
)
def test_wrong_keywords_are_named(settings, words, tmp_path):
    with pytest.raises(sterna.ConfigError) as error:
        sterna.sample(sterna.targets.banana(), store=tmp_path / "run", progress_bar=False, **settings)
    for word in words:
        assert word in str(error.value)
    assert not (tmp_path / "run").exists()


def test_what_is_no_target():
    for nothing in (None, 3, humps):
        with pytest.raises(sterna.ConfigError, match="no target"):
            sterna.sample(nothing)
    with pytest.raises(sterna.ConfigError, match="target.dim"):
        sterna.targets.many_well(dim=3)


def test_built_in_targets_are_all_there():
    made = {"gmm", "dw4", "many-well", "normal", "funnel", "banana", "mrna", "galaxies", "alanine-dipeptide"}
    made |= {"shells", "eggbox", "log-gamma", "rosenbrock", "correlated-normal", "spike-slab", "lennard-jones", "phi4"}
    assert made < set(sterna.targets.kinds())
    for kind in made:
        target = getattr(sterna.targets, kind.replace("-", "_"))()
        log_density, score = target(np.zeros((2, 66 if kind == "alanine-dipeptide" else target.dim)))
        assert log_density.shape == (2,) and score.shape[0] == 2
    assert sterna.targets.normal(2, mean=[1.0, 2.0], precision=4).dim == 2


def test_import_is_quick():
    # By processor time, since the machine may be busy; numpy is most of it.
    code = "import time; t = time.process_time(); import sterna; print(time.process_time() - t)"
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)]
    print(f"import sterna: {min(times):.3f} s of a processor")
    assert min(times) < 0.3
    code = "import sys, sterna; print(sorted({'pandas', 'arviz', 'numba', 'jax', 'torch', 'pymc', 'xarray'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_first_own_target_in_under_ten_lines(tmp_path):
    script = tmp_path / "first.py"
    script.write_text(
        "import numpy as np\nimport sterna\n\ndef log_density(x):\n    return -0.5 * (x**2).sum(axis=1)\n\n"
        "run = sterna.sample(sterna.from_pyfunc(2, log_density))\nprint(run.verdict, run.log_z)\n"
    )
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    print(f"a first own target: {time.perf_counter() - begin:.1f} s")
    verdict, log_z = done.stdout.split()
    assert verdict == "sound" and abs(float(log_z) - np.log(2 * np.pi)) < 0.5
