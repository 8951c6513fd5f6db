"""The notebooks of examples/python run from top to bottom, where what they import is installed."""

import json
import re
from importlib.util import find_spec

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "python").glob("*.ipynb"))


def test_they_are_all_there_and_hold_no_outputs():
    assert [path.stem for path in NOTEBOOKS] == ["alanine_dipeptide", "evidence", "jax_flow", "pymc_mixture", "tour"]
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code"), path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    imported = set(re.findall(r"^(?:import|from) (\w+)", code, re.M)) | ({"arviz"} if "to_arviz" in code else set())
    missing = [name for name in sorted(imported) if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    views = [output for output in shown if "text/html" in output.get("data", {})]
    assert any("<img" in "".join(output["data"]["text/html"]) for output in views), "a run shows itself"
