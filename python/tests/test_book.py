"""Pages of the book in Python, followed as a reader does: their blocks one after the other, held against exact values."""

import re

import numpy as np
import sterna
from conftest import ROOT


def follow(page):
    """What a reader has who copied all blocks of a page."""
    text = (ROOT / "docs" / "book" / page).read_text()
    reader: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(compile(block, page, "exec"), reader)
    return reader


def test_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    reader = follow("python.md")
    evidence = reader["evidence"]
    # 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    assert abs(evidence.log_z - 2 * np.log(np.sqrt(2 * np.pi) * 0.5 / 20)) < 5 * evidence.log_z_error
    assert (tmp_path / "runs/mine/report.html").exists() and sterna.load("runs/mine").finished
    assert "sigma" in capsys.readouterr().out


def test_every_name_is_on_the_page():
    text = (ROOT / "docs" / "book" / "python.md").read_text()
    for name in sterna.__all__:
        if name.startswith("from_") or name in ("sample", "load", "resume"):
            assert f"sterna.{name}" in text, name


def log_sum(values, axis=None):
    top = values.max()
    return top + np.log(np.exp(values - top).sum(axis))


def test_the_tutorial_for_statisticians(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = follow("tutorial-statistician.md")
    data, one, two = reader["data"], reader["one"], reader["two"]
    assert len(data) == 66 and round(data.mean(), 2) == 26.21
    # The evidence of one kind by quadrature; 5 standard errors: false alarm below 1e-6, and the seed is fixed.
    mu, sigma = np.linspace(10, 42, 400)[:, None], np.linspace(5, 22, 400)[None, :]
    squares = (data**2).sum() - 2 * mu * data.sum() + 66 * mu**2
    log_l = -0.5 * squares / sigma**2 - 66 * np.log(sigma * np.sqrt(2 * np.pi))
    prior = (
        -0.5 * (mu / 50) ** 2 - np.log(50 * np.sqrt(2 * np.pi)) - 0.5 * (sigma / 30) ** 2 + np.log(2 / (30 * np.sqrt(2 * np.pi)))
    )
    exact = log_sum(log_l + prior) + np.log(32 / 399 * 17 / 399)
    assert abs(one.log_z - exact) < 5 * one.log_z_error + 0.01
    assert one.verdict == two.verdict == "sound" and reader["log_odds"] > 10
    assert reader["poor"].verdict == "unsound" and reader["more"].summary["mixing"]["ess_bulk"] >= 2000


def test_the_tutorial_for_chemists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = follow("tutorial-chemist.md")
    basins = reader["residue"]["basins"]
    assert reader["run"].round_trips > 100 and abs(sum(found["population"] for found in basins.values()) - 1) < 1e-9
    # What long runs found (README.md): 0.643, 0.327 and 0.029, with errors of their own.
    for basin, long in (("C7eq", 0.64), ("C5", 0.33), ("C7ax", 0.03)):
        found = basins[basin]
        assert abs(found["population"] - long) < 5 * found["standard_error"] + 0.01, (basin, found)
    assert reader["run"].verdict == "sound" and reader["poor"].verdict == "unsound"
    assert (tmp_path / "alanine.html").exists()


def planet_by_quadrature(reader):
    """The offset by hand, the rest on a grid."""
    t, v, noise = (reader[name] for name in ("times", "velocities", "noise"))
    phases, amplitudes, total = np.linspace(0, 2 * np.pi, 25)[:-1], np.linspace(0, 30, 61)[1:], []
    constant = -len(t) * np.log(noise * np.sqrt(2 * np.pi)) + np.log(np.sqrt(2 * np.pi / len(t)) * noise / 40)
    for period in np.geomspace(2, 100, 4000):
        waves = amplitudes[:, None, None] * np.sin(2 * np.pi * t / period + phases[:, None])
        left = v - waves
        squares = ((left - left.mean(-1, keepdims=True)) ** 2).sum(-1)
        total.append(np.exp(-0.5 * squares / noise**2).mean())
    return np.log(np.mean(total)) + constant


def test_the_tutorial_for_astronomers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = follow("tutorial-astronomer.md")
    run, nothing, v, noise = (reader[name] for name in ("run", "nothing", "velocities", "noise"))
    offset = np.linspace(-20, 20, 20_001)
    log_l = (-0.5 * ((v[:, None] - offset) / noise) ** 2 - np.log(noise * np.sqrt(2 * np.pi))).sum(0)
    assert abs(nothing.log_z - (log_sum(log_l) + np.log(1 / 20_001))) < 5 * nothing.log_z_error + 0.001
    # The other evidence by quadrature: given a period, offset and the parts of the sine are a linear model, but for the prior of
    # the amplitude, which is flat in its length and not in the plane.
    assert run.verdict == "sound" and abs(run.log_z - planet_by_quadrature(reader)) < 5 * run.log_z_error + 0.02
    period = run.draws["period"]
    assert 0.3 < ((period > 11) & (period < 14)).mean() < 0.6 and 0.1 < (period < 2.6).mean() < 0.4
    # By dynesty's names it is the same model.
    together = np.hypot(nothing.log_z_error, reader["results"].logzerr[-1])
    assert abs(nothing.log_z - reader["results"].logz[-1]) < 5 * together
