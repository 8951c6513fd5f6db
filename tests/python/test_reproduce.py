"""`sterna reproduce`, at its quick budget: every table and figure, the page, and going on after a stop."""

import json
import re
import signal
import subprocess
import time

import pytest

from sterna_cli import PROGRAM, sterna

FIGURES = ["fig-overview", "fig-dimension", "fig-free-energy", "fig-neural-samplers", "fig-many-well", "fig-ou"]
TABLES = ["table-gmm", "table-mw", "table-dw", "table-alanine"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce")
    done = sterna("reproduce", "all", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done


def test_every_part_is_there_and_holds(everything):
    out, done = everything
    assert "✗" not in done.stdout
    folder = out / "reproduction" / "quick"
    page = (out / "reproduction.md").read_text()
    for name in FIGURES + TABLES:
        assert f"sterna reproduce {name} --budget quick" in page
    for name in FIGURES:
        data = json.loads((folder / f"{name}.json").read_text())
        assert data
        drawings = list(folder.glob(f"{name}*.svg"))
        assert drawings and all("NaN" not in d.read_text() for d in drawings)
    shown = re.findall(r'src="([^"]+)"', page)
    assert shown and all((out / name).exists() for name in shown)


def test_the_page_loads_nothing(everything):
    out, _ = everything
    page = (out / "reproduction.html").read_text()
    assert "default-src 'none'" in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "{{" not in page


def test_what_is_there_is_not_run_again(everything):
    out, _ = everything
    begin = time.monotonic()
    again = sterna("reproduce", "table-gmm", "--out", out)
    assert again.returncode == 0 and again.stderr == ""
    assert time.monotonic() - begin < 30


def test_a_stopped_command_goes_on(tmp_path):
    command = [str(PROGRAM), "reproduce", "table-gmm", "--only", "gmm", "--jobs", "1", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 1 and "the same command goes on" in rest
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "reproduction/quick/cells").iterdir()}
    assert before
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "reproduction/quick/cells").iterdir()}
    assert before.items() <= after.items() and len(after) > len(before)
