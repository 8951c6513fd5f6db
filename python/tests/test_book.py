"""The book's page on Python, followed as a reader does: its blocks one after the other, held against exact values."""

import re

import numpy as np
import sterna
from conftest import ROOT


def test_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "book" / "python.md").read_text()
    reader: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(compile(block, "python.md", "exec"), reader)
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
