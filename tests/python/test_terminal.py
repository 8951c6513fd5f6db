"""What people see on a terminal: tables that fit, one line of progress, few words or none, JSON, completions, a manual, first configs."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios

import pytest

from sterna_cli import PROGRAM, sterna

SHORT = ["schedule.rounds=3", "schedule.iterations=300", "run.iterations=3000", "chains.count=4"]
TARGET = ["target.kind=normal", "target.dim=3"]


def sets(settings):
    return [part for s in settings for part in ("--set", s)]


def with_columns(columns, *arguments, **more):
    environment = {**os.environ, "COLUMNS": str(columns), **more}
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=environment)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("terminal") / "run"
    done = sterna("run", "--out", out, *sets([*TARGET, *SHORT]))
    assert done.returncode == 0, done.stderr
    return out, done.stdout


# Names of files, and words that are longer than the line, cannot be broken.
def too_long(text, columns):
    return [line for line in text.splitlines() if len(line) > columns and "/" not in line and max(map(len, line.split())) < columns]


@pytest.mark.parametrize("columns", [200, 120, 80, 60, 45])
def test_tables_fit(run, tmp_path, columns):
    done = with_columns(columns, "targets")
    assert done.returncode == 0 and not too_long(done.stdout, columns), done.stdout
    done = with_columns(columns, "resume", run[0])
    assert done.returncode == 0 and not too_long(done.stdout, columns), done.stdout
    assert "round trips" in done.stdout
    done = with_columns(columns, "compare", run[0], run[0], "--out", tmp_path / "two.html")
    assert done.returncode == 0 and not too_long(done.stdout, columns), done.stdout


def test_eighty_columns_need_no_second_lines(run):
    done = with_columns(80, "resume", run[0])
    table = done.stdout.split("what ")[1].split("\n\n")[0]
    assert all(re.match(r" *\S+.* {3,}\S+", line) for line in table.splitlines()[2:]), done.stdout
    # Tables of 80 columns are also what a pipe gets.
    assert not too_long(run[1], 80)


@pytest.mark.parametrize("columns", [80, 60])
def test_numbers_are_never_broken(tmp_path, columns):
    """Errors of a hundred-thousandth ask for many digits, which a narrow table leaves out."""
    narrow = ["target.kind=gmm", "target.dim=10", "chains.count=12", "chains.ensembles=4", "schedule.rounds=2", "run.iterations=4000"]
    done = sterna("run", "--out", tmp_path / "run", *sets(narrow))
    assert done.returncode == 0, done.stderr
    said = with_columns(columns, "resume", tmp_path / "run").stdout
    rows = [line for line in said.splitlines() if re.match(r" x\[\d+\] ", line)]
    assert len(rows) == 10 and not too_long(said, columns)
    table = said[said.index(rows[0]) : said.index(rows[-1]) + len(rows[-1])]
    assert table.splitlines() == rows, table
    compared = with_columns(columns, "compare", tmp_path / "run", tmp_path / "run", "--out", tmp_path / "two.html").stdout
    assert len([line for line in compared.splitlines() if line.strip()]) == 5, compared


def test_any_width_will_do(run):
    for columns in (0, 1, 5, 25, 70000, -3, "wide"):
        assert with_columns(columns, "targets").returncode == 0
        assert with_columns(columns, "resume", run[0]).returncode == 0


def test_quiet_says_nothing_but_what_is_wrong(tmp_path):
    done = sterna("run", "--quiet", "--out", tmp_path / "run", *sets([*TARGET, *SHORT]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (tmp_path / "c.toml").write_text('[target]\nkind = "normal"\n')
    for command in (["verify", tmp_path / "c.toml"], ["report", tmp_path / "run"], ["resume", tmp_path / "run"], ["watch", tmp_path / "run"]):
        done = sterna(*command, "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), command
    done = sterna("run", "-q", "--set", "target.kind=none")
    assert done.returncode == 2 and "target.kind" in done.stderr


def test_json_of_every_command(run, tmp_path):
    config, points = tmp_path / "c.toml", tmp_path / "p.json"
    config.write_text('[target]\nkind = "normal"\ndim = 3\n')
    points.write_text("[[0, 0, 0]]")
    found = {
        name: json.loads(sterna(*command, "--json").stdout)
        for name, command in {
            "targets": ["targets"],
            "verify": ["verify", config],
            "evaluate": ["evaluate", config, points],
            "report": ["report", run[0]],
            "resume": ["resume", run[0]],
            "watch": ["watch", run[0]],
            "init": ["init", "stan", tmp_path / "stan.toml"],
            "compare": ["compare", run[0], run[0], "--out", tmp_path / "two.html"],
        }.items()
    }
    assert {"library", "stan", "molecule"} < {target["kind"] for target in found["targets"]}
    assert found["verify"]["sound"] and found["verify"]["checks"] > 10 and found["verify"]["violations"] == []
    assert found["evaluate"]["log_density"] == [pytest.approx(0.0, abs=10)]
    assert found["report"]["report"].endswith("report.html") and found["watch"]["ended"] == "finished"
    assert [one["log_z"] for one in found["compare"]["runs"]] == 2 * [found["resume"]["log_z"]["bar"]]
    assert found["resume"]["finished"] and found["init"]["written"].endswith("stan.toml")


def test_targets_tell_how_to_bring_ones_own():
    said = re.sub(r"\s+", " ", sterna("targets").stdout)
    for part in ('library = "./libmine.so"', "model = its source", "data = a JSON file", "system = OpenMM's XML", "sterna init KIND"):
        assert part in said, said


@pytest.mark.parametrize("kind", [target["kind"] for target in json.loads(sterna("targets", "--json").stdout) if target["kind"] != "own"])
def test_a_first_config_of_each_kind(tmp_path, kind):
    done = sterna("init", kind, folder=tmp_path)
    assert done.returncode == 0 and f"sterna run {kind}.toml" in done.stdout, done.stderr
    text = (tmp_path / f"{kind}.toml").read_text()
    assert text.count("# ") > 10
    # What is there stays.
    done = sterna("init", kind, folder=tmp_path)
    assert done.returncode == 2 and "is there already" in done.stderr and (tmp_path / f"{kind}.toml").read_text() == text
    done = sterna("run", f"{kind}.toml", "--out", "run", *sets(SHORT), folder=tmp_path)
    if kind in ("stan", "library", "molecule"):
        missing = {"stan": "model.stan", "library": "libmine.so", "molecule": "system.xml"}[kind]
        assert done.returncode == 2 and missing in done.stderr, done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_an_unknown_kind_is_told(tmp_path):
    done = sterna("init", "stann", folder=tmp_path)
    assert done.returncode == 2 and "stan" in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(shell):
    done = sterna("completions", shell)
    assert done.returncode == 0
    for word in ("run", "resume", "verify", "--quiet", "--out"):
        assert word.removeprefix("--") in done.stdout
    assert "probe-library" not in done.stdout


def test_the_manual():
    page = sterna("man").stdout
    for part in (".TH sterna", "STERNA RUN", "STERNA VERIFY", "\\-\\-quiet", "\\-\\-strict"):
        assert part in page
    assert "PROBE" not in page


def on_a_terminal(columns, *arguments, **more):
    """What a program writes on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", **more}
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    out = b""
    while select.select([ours], [], [], 120)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    assert process.wait(timeout=60) == 0
    return out.decode()


def test_one_line_of_progress_and_colours(tmp_path):
    settings = sets([*TARGET, "accelerator.kind=flow", "training.steps=200", "training.collect=500", *SHORT, "run.iterations=60000"])
    said = on_a_terminal(80, "run", "--out", tmp_path / "a", *settings)
    lines = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", said)]
    stages = [re.match(r"\S? ?(\d)/5 (\S+)", line) for line in lines]
    seen = {(m[1], m[2]) for m in stages if m}
    assert ("5", "sampling") in seen and seen <= {("1", "tuning"), ("2", "collecting"), ("3", "training"), ("4", "burn-in"), ("5", "sampling")}, seen
    progress = [line for line, m in zip(lines, stages) if m]
    assert all(len(line) <= 80 for line in progress), progress
    assert any("left in all" in line for line in progress) and any("loss " in line for line in progress if "training" in line), progress
    assert "\x1b[32m" in said.split("verdict")[1]
    plain = on_a_terminal(80, "resume", tmp_path / "a", NO_COLOR="1")
    assert "\x1b[3" not in plain.split("verdict")[1]


def test_verify_shows_its_progress(tmp_path):
    (tmp_path / "c.toml").write_text('[target]\nkind = "normal"\n')
    said = on_a_terminal(80, "verify", tmp_path / "c.toml")
    assert "tuning" in said and "sampling all chains" in said and "sound" in said, said


@pytest.mark.parametrize("command", [["targets"], ["man"], ["completions", "zsh"], ["targets", "--json"]])
def test_a_reader_may_have_enough(command):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([PROGRAM, *command], stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("error: cannot write to stdout: No space left"), done.stderr
