"""Targets in shared libraries: the example in C, and libraries that are missing, wrong or crash."""

import json
import shutil
import subprocess

import pytest

from sterna_cli import PROGRAM, ROOT, sterna

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

# A fixed length, with what goes with the paper's own targets.
FIXED = ["reference.kind=standard-normal", "chains.count=4", "schedule.rounds=3", "schedule.iterations=300", "run.iterations=4000",
         "explorer.step_size=0.05"]


def compiled(folder, source, name="lib.so"):
    """Compiles C text, or a file, into a shared library."""
    if "\n" in source or "{" in source:
        (folder / "source.c").write_text('#include "sterna.h"\n' + source)
        source = folder / "source.c"
    out = folder / name
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", ROOT / "include", "-o", out, source, "-lm"], check=True)
    return out


def run(library, out, *settings):
    settings = ["target.kind=library", f"target.library={library}", *settings]
    return sterna("run", "--out", out, "--json", *(part for s in settings for part in ("--set", s)))


@pytest.fixture(scope="module", autouse=True)
def stuck(tmp_path_factory):
    """A run of a library that never comes back. The program waits for it half a minute: from the first test to the last."""
    folder = tmp_path_factory.mktemp("stuck")
    library = compiled(folder, "#include <unistd.h>\n" + text(body="for (;;) pause();"))
    settings = ["target.kind=library", f"target.library={library}", "target.dim=2"]
    command = [PROGRAM, "run", "--out", folder / "run", *(part for s in settings for part in ("--set", s))]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield folder / "run", process
    process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def banana(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("banana"), str(ROOT / "examples" / "c" / "banana.c"), "libbanana.so")


# Where it matters that a run ends, not what it finds.
BRIEF = ["chains.count=4", "schedule.rounds=2", "schedule.iterations=200", "run.iterations=300"]
TRAINED = [*FIXED, "training.steps=100", "training.collect=500", "training.loss=log-variance"]


@pytest.mark.parametrize("accelerator", [
    [],
    ["explorer.kind=slice"],
    ["explorer.kind=hmc", "explorer.step_size=0.1"],
    ["explorer.kind=hmc"],
    ["accelerator.kind=affine"],
    ["accelerator.kind=cmcd", "accelerator.drift=none", *FIXED],
    ["accelerator.kind=cmcd", *TRAINED],
])
def test_the_example_is_sampled(banana, tmp_path, accelerator):
    done = run(banana, tmp_path / "run", *accelerator)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["target"] == {"kind": "library", "dim": 2}
    log_z = found["log_z"]
    # 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    assert abs(log_z["bar"] - log_z["truth"]) < 5 * log_z["standard_error"]
    if "run.iterations=4000" not in accelerator:
        # The defaults of targets that are not the paper's: four ladders, an end when it is enough, and two legs. Moves of one's own
        # may not bring the second leg near enough: then it is given up, and told so.
        assert found["ensembles"] == 4 and found["stopped_by"] == "goals"
        assert len(found["legs"]) == 2 or accelerator and found["reference"]["anchor"] == "given-up"
        assert log_z["standard_error"] <= 0.1


def test_evaluate_verify_and_resume_know_libraries(banana, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(f'[target]\nkind = "library"\nlibrary = "./{banana.name}"\n[chains]\ncount = 4\n[schedule]\nrounds = 3\niterations = 300\n')
    (tmp_path / "p.json").write_text("[[0.5, -0.25], [1.0, 0.0]]")
    shutil.copy(banana, tmp_path)
    done = sterna("evaluate", "c.toml", "p.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    off = -0.25 - 0.25 + 1.0
    assert found["log_density"][0] == pytest.approx(-0.125 - 0.5 * off**2 / 0.01)
    assert found["score"][1] == [-1.0, 0.0] or found["score"][1] == [-1.0, -0.0]
    done = sterna("verify", "c.toml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    # A relative path is kept as an absolute one: the run goes on from any folder.
    done = sterna("run", "c.toml", "--out", "run", "--set", "run.iterations=300", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = sterna("resume", tmp_path / "run", "--iterations", 400)
    assert done.returncode == 0, done.stderr


def test_a_report_outlives_the_library(banana, tmp_path):
    """Nothing is loaded: the library is gone, or would do harm."""
    library = tmp_path / "lib.so"
    shutil.copy(banana, library)
    out = tmp_path / "run"
    done = run(library, out, *BRIEF)
    assert done.returncode == 0, done.stderr
    before = (out / "report.html").read_bytes()
    library.unlink()
    done = sterna("report", out)
    assert done.returncode == 0, done.stderr
    assert (out / "report.html").read_bytes() == before
    witness = tmp_path / "loaded"
    harm = f'__attribute__((constructor)) void f(void) {{ fclose(fopen("{witness}", "w")); }}'
    compiled(tmp_path, "#include <stdio.h>\n" + text(more=harm))
    for arguments in ([], ["--chart", "marginal-0"]):
        done = sterna("report", out, *arguments)
        assert done.returncode == 0, done.stderr
    assert (out / "report.html").read_bytes() == before and not witness.exists()


GOOD = """
#include <math.h>
#include <stdlib.h>
#include <signal.h>
int NAME(size_t rows, size_t dim, const double *x, double *l, double *s) {
    for (size_t i = 0; i < rows * dim; i++) { if (i % dim == 0) l[i / dim] = 0; l[i / dim] -= x[i] * x[i] / 2; s[i] = -x[i]; }
    BODY
    return 0;
}
"""


def text(name="sterna_evaluate", body="", more=""):
    return GOOD.replace("NAME", name).replace("BODY", body) + more


def test_another_symbol_and_a_given_dimension(tmp_path):
    library = compiled(tmp_path, text(name="mine"))
    done = run(library, tmp_path / "run", "target.symbol=mine", "target.dim=3", *BRIEF)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["target"]["dim"] == 3


SILENT = "int sterna_evaluate(size_t rows, size_t dim, const double *x, double *l, double *s) { for (size_t i = 0; i < rows * dim; i++) s[i] = -x[i]; return 0; }"
NO_SCORE = "int sterna_evaluate(size_t rows, size_t dim, const double *x, double *l, double *s) { for (size_t i = 0; i < rows; i++) l[i] = -x[i * dim] * x[i * dim]; return 0; }"


@pytest.mark.parametrize("source, settings, parts", [
    (text(name="other"), ["target.dim=2"], ["no function `sterna_evaluate`", "target.symbol"]),
    (text(), [], ["does not export `sterna_dim`", "target.dim"]),
    (text(more="size_t sterna_dim(void) { return 4; }"), ["target.dim=2"], ["dimension 4", "speaks of 2", "target.dim"]),
    (text(more="__attribute__((constructor)) void f(void) { *(volatile int *)0 = 1; }"), ["target.dim=2"],
     ["crashed when it was loaded", "signal 11"]),
    (text(body="raise(SIGFPE);"), ["target.dim=2"], ["crashed when it evaluated the origin", "signal 8"]),
    (text(body="exit(0);"), ["target.dim=2"], ["ended the whole program when it evaluated the origin", "exit()"]),
    (text(more="__attribute__((constructor)) void f(void) { exit(4); }"), ["target.dim=2"], ["ended the whole program when it was loaded"]),
    # Liars: each is told from the others.
    (SILENT, ["target.dim=2"], ["without having written the log density"]),
    (NO_SCORE, ["target.dim=2"], ["without having written coordinate 0 of the score", "target.gradient = false"]),
    (text(body="l[0] += rows;"), ["target.dim=2"], ["no function of the point"]),
    (text(body="for (size_t i = 0; i < rows; i++) l[i] += 0.01 * i;"), ["target.dim=2"], ["no function of the point"]),
    (text(body="static int calls; calls++; for (size_t i = 0; i < rows; i++) l[i] += 0.01 * calls;"), ["target.dim=2"],
     ["no function of the point"]),
    (text(body="((double *)x)[0] = 0;"), ["target.dim=2"], ["writes to the points"]),
])
def test_bad_libraries_are_wrong_input(tmp_path, source, settings, parts):
    library = compiled(tmp_path, source)
    done = run(library, tmp_path / "run", *settings)
    assert done.returncode == 2, (done.returncode, done.stderr)
    for part in parts:
        assert part in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


def test_missing_and_foreign_files(tmp_path):
    done = run(tmp_path / "nowhere.so", tmp_path / "run", "target.dim=2")
    assert done.returncode == 2 and "no such file" in done.stderr and "nowhere.so" in done.stderr
    (tmp_path / "text.so").write_text("no library")
    done = run(tmp_path / "text.so", tmp_path / "run", "target.dim=2")
    assert done.returncode == 2 and "cannot load" in done.stderr
    done = sterna("run", "--set", "target.kind=library")
    assert done.returncode == 2 and "target.library" in done.stderr


def test_a_failure_names_the_point_and_keeps_the_checkpoint(tmp_path):
    library = compiled(tmp_path, text(body="for (size_t i = 0; i < rows; i++) if (x[i * dim] > 2.5) return 7;"))
    out = tmp_path / "run"
    done = run(library, out, "target.dim=2", "run.iterations=20000")
    assert done.returncode == 1, done.stderr
    for part in ["returned 7", "the point [", f"sterna resume {out}"]:
        assert part in done.stderr, done.stderr
    assert (out / "checkpoint" / "state").exists()
    # With the cause gone, the run goes on.
    compiled(tmp_path, text())
    done = sterna("resume", out)
    assert done.returncode == 0, done.stderr


def test_densities_that_are_no_numbers_are_counted(tmp_path):
    library = compiled(tmp_path, text(body="for (size_t i = 0; i < rows; i++) if (x[i * dim] > 2.8) l[i] = NAN;"))
    done = run(library, tmp_path / "run", "target.dim=2")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bad_densities"]["count"] > 0 and found["bad_densities"]["first"]["point"][0] > 2.8
    assert "bad-density" in [alarm["code"] for alarm in found["alarms"]]


def test_a_library_of_another_machine_is_told(tmp_path, banana):
    bytes_ = bytearray(banana.read_bytes())
    bytes_[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "other.so").write_bytes(bytes_)
    done = run(tmp_path / "other.so", tmp_path / "run")
    assert done.returncode == 2 and "built for aarch64" in done.stderr and "compile it here" in done.stderr, done.stderr


def test_a_flipped_score_is_an_alarm_and_strict_runs_say_no(tmp_path):
    """Its draws may be right; nobody should believe them unread."""
    library = compiled(tmp_path, text(body="for (size_t i = 0; i < rows * dim; i++) s[i] = x[i];"))
    settings = ["target.kind=library", f"target.library={library}", "target.dim=2", *FIXED]
    done = sterna("run", "--out", tmp_path / "run", "--json", *(part for s in settings for part in ("--set", s)))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "score-not-gradient" in [alarm["code"] for alarm in found["alarms"]]
    assert found["verdict"] != "sound" and found["evaluations"]["trial"] > 0


def test_strict_runs_exit_with_3_where_the_verdict_is_unsound(tmp_path):
    settings = ["target.kind=normal", "target.dim=2", "chains.count=3", "run.iterations=20", "schedule.rounds=2", "schedule.iterations=300"]
    sets = [part for s in settings for part in ("--set", s)]
    done = sterna("run", "--strict", "--out", tmp_path / "run", *sets)
    assert done.returncode == 3, (done.returncode, done.stderr)
    assert "verdict unsound" in done.stdout and "few-draws" in done.stdout
    assert sterna("resume", "--strict", tmp_path / "run").returncode == 3
    done = sterna("resume", tmp_path / "run", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["verdict"] == "unsound"
    done = sterna("resume", "--strict", tmp_path / "run", "--iterations", 20000, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["verdict"] == "sound", found["alarms"]


def test_names_of_files_are_relative_to_the_config(banana, tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (there / "c.toml").write_text('[target]\nkind = "library"\nlibrary = "./libbanana.so"\n')
    (here / "p.json").write_text("[[1.0, 0.0]]")

    def evaluate(*more):
        return sterna("evaluate", there / "c.toml", "p.json", *more, folder=here)

    done = evaluate()
    assert done.returncode == 2 and str(there / "libbanana.so") in done.stderr.replace("/./", "/"), done.stderr
    # One that is in the current folder alone keeps working, with a note.
    shutil.copy(banana, here)
    done = evaluate()
    assert done.returncode == 0 and "note: ./libbanana.so is not in the folder of the config" in done.stderr, done.stderr
    assert evaluate("--quiet").stderr == ""
    shutil.copy(banana, there)
    done = evaluate()
    assert done.returncode == 0 and done.stderr == ""
    # Transports and the files of molecules too.
    (there / "d.toml").write_text('[accelerator]\nkind = "flow"\ntransport = "mine.safetensors"\n')
    done = sterna("run", there / "d.toml", "--out", "run", folder=here)
    assert done.returncode == 2 and str(there / "mine.safetensors") in done.stderr, done.stderr
    (there / "e.toml").write_text('[target]\nkind = "molecule"\nsystem = "s.xml"\npositions = "p.csv"\ntemperature = 300.0\n')
    done = sterna("run", there / "e.toml", "--out", "run", folder=here)
    assert done.returncode == 2 and str(there / "s.xml") in done.stderr, done.stderr
    assert not (here / "run").exists()


def test_a_library_that_never_comes_back_is_left(stuck):
    out, process = stuck
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2 and "did not come back within" in errors, errors
    assert not out.exists()
