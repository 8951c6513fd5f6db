"""Targets in shared libraries: the example in C, and libraries that are missing, wrong or crash."""

import json
import shutil
import subprocess

import pytest

from sterna_cli import ROOT, sterna

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

SMALL = ["chains.count=4", "schedule.rounds=3", "schedule.iterations=300", "run.iterations=4000", "explorer.step_size=0.05"]


def compiled(folder, source, name="lib.so"):
    """Compiles C text, or a file, into a shared library."""
    if "\n" in source or "{" in source:
        (folder / "source.c").write_text('#include "sterna.h"\n' + source)
        source = folder / "source.c"
    out = folder / name
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", ROOT / "include", "-o", out, source, "-lm"], check=True)
    return out


def run(library, out, *settings):
    settings = ["target.kind=library", f"target.library={library}", *SMALL, *settings]
    return sterna("run", "--out", out, "--json", *(part for s in settings for part in ("--set", s)))


@pytest.fixture(scope="module")
def banana(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("banana"), str(ROOT / "examples" / "c" / "banana.c"), "libbanana.so")


TRAINED = ["training.steps=100", "training.collect=500", "training.loss=log-variance"]


@pytest.mark.parametrize("accelerator", [
    [],
    ["accelerator.kind=affine"],
    ["accelerator.kind=cmcd", "accelerator.drift=none"],
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


def test_evaluate_verify_and_resume_know_libraries(banana, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(f'[target]\nkind = "library"\nlibrary = "./{banana.name}"\n')
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
    settings = [part for s in SMALL for part in ("--set", s)]
    done = sterna("run", "c.toml", "--out", "run", *settings, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = sterna("resume", tmp_path / "run", "--iterations", 5000)
    assert done.returncode == 0, done.stderr


def test_a_report_outlives_the_library(banana, tmp_path):
    """Nothing is loaded: the library is gone, or would do harm."""
    library = tmp_path / "lib.so"
    shutil.copy(banana, library)
    out = tmp_path / "run"
    done = run(library, out)
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
    done = run(library, tmp_path / "run", "target.symbol=mine", "target.dim=3")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["target"]["dim"] == 3


@pytest.mark.parametrize("source, settings, parts", [
    (text(name="other"), ["target.dim=2"], ["no function `sterna_evaluate`", "target.symbol"]),
    (text(), [], ["does not export `sterna_dim`", "target.dim"]),
    (text(more="size_t sterna_dim(void) { return 4; }"), ["target.dim=2"], ["dimension 4", "target.dim = 2"]),
    (text(more="__attribute__((constructor)) void f(void) { *(volatile int *)0 = 1; }"), ["target.dim=2"],
     ["crashed when it was loaded", "signal 11"]),
    (text(body="raise(SIGFPE);"), ["target.dim=2"], ["crashed when it evaluated the origin", "signal 8"]),
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
    done = run(library, out, "target.dim=2", "run.iterations=200000")
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
