"""`sterna reproduce`, at its quick budget: every table and figure, the page, and going on after a stop."""

import json
import re
import signal
import subprocess
import time

import pytest

from closed_forms import dw4_distances
from sterna_cli import PROGRAM, sterna

FIGURES = ["fig-overview", "fig-dimension", "fig-free-energy", "fig-neural-samplers", "fig-many-well", "fig-ou"]
TABLES = ["table-gmm", "table-mw", "table-dw", "table-alanine"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce")
    # Some minutes of two cores; a busy machine takes longer.
    done = sterna("reproduce", "all", "--out", out, seconds=2400)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done


def test_every_part_is_there_and_holds(everything):
    out, done = everything
    assert "✗" not in done.stdout
    folder = out / "reproduction" / "quick"
    page = (out / "reproduction.md").read_text()
    for name in FIGURES + TABLES:
        assert f"sterna reproduce {name} --budget quick" in page
    data = json.loads((folder / "data.json").read_text())
    for name in FIGURES:
        assert data[name]
        assert "NaN" not in (folder / f"{name}.svg").read_text()
    shown = re.findall(r'src="([^"]+)"', page)
    assert shown and all((out / name).exists() for name in shown)


def test_distances_of_a_fresh_run_are_those_of_quadrature(everything):
    out, _ = everything
    lines = [json.loads(line) for line in (out / "reproduction" / "quick.jsonl").read_text().splitlines()]
    truth = next(r for r in lines if r.get("cell", {}).get("name") == "dw-truth")["kept"]["distances"]
    run = next(r for r in lines if r.get("cell", {}).get("name") == "dw-truth")["cell"]["config"]["run"]
    assert sum(truth) == 6 * 8 * run["iterations"] // run["thin"]
    _, exact = dw4_distances(spacing=0.25)
    assert 0.5 * sum(abs(n / sum(truth) - p) for n, p in zip(truth, exact)) < 0.01


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
    command = [str(PROGRAM), "reproduce", "fig-dimension", "--jobs", "1", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 1 and "the same command goes on" in rest
    results = tmp_path / "reproduction" / "quick.jsonl"
    before = set(results.read_text().splitlines())
    assert len(before) >= 2  # the machine, and a run
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    after = results.read_text().splitlines()
    assert before < set(after)
    names = [json.loads(line)["cell"]["name"] for line in after[1:]]
    assert names == sorted(names) and len(names) == len(set(names))
