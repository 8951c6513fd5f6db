"""Same seed, same bits, from version to version: draws, schedule and estimates of a short run of every kind.

`python tests/python/test_bits.py` writes the hashes anew; a change of them is a change that users see, so it wants a line in
CHANGELOG.md that names the kinds it touches.
"""

import hashlib
import json
import pathlib
import sys
import tempfile

import h5py
import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from sterna_cli import sterna  # noqa: E402

RECORDED = pathlib.Path(__file__).with_name("bits.json")

# Every stage, at the least length that still goes through all of it.
SHORT = {
    "chains.count": 5,
    "chains.ensembles": 2,
    "schedule.rounds": 3,
    "schedule.iterations": 160,
    "schedule.burn_in": 40,
    "training.collect": 300,
    "run.burn_in": 50,
    "run.iterations": 400,
}
# Not guarded, so that the network is in use even where it does worse than plain swaps.
TRAINED = {"training.steps": 200, "training.batch": 32, "training.guard": "false"}
ACCELERATORS = {
    "none": {"kind": "none"},
    "affine": {"kind": "affine"},
    "affine-full": {"kind": "affine", "covariance": "full"},
    "annealed": {"kind": "cmcd", "drift": "none", "steps": 2},
}
NETWORKS = {
    "flow": {"kind": "flow"},
    "cmcd": {"kind": "cmcd", "steps": 2},
    "diffusion": {"kind": "diffusion", "steps": 2},
}
EXACT = {"kind": "diffusion", "score": "exact", "steps": 3}


def cases():
    """Name of each case with the fields it sets."""
    out = {}
    for target in ["gmm", "many-well", "dw4", "funnel", "banana", "normal"]:
        chosen = dict(ACCELERATORS)
        if target in ("gmm", "many-well", "dw4", "funnel"):
            chosen |= NETWORKS
        if target in ("gmm", "normal"):
            chosen["exact-diffusion"] = EXACT
            chosen["exact-euler"] = EXACT | {"integrator": "euler"}
        if target == "normal":
            chosen["exact-drift"] = {"kind": "cmcd", "drift": "exact", "steps": 3}
        for name, fields in chosen.items():
            settings = {f"accelerator.{key}": value for key, value in fields.items()}
            if name in NETWORKS:
                settings |= TRAINED
            out[f"{target}-{name}"] = {"target.kind": target} | settings
    for name, kind in {"none": "none", "scaling": "scaling", "affine": "affine", "cmcd": "cmcd"}.items():
        out[f"alanine-{name}"] = {"target.kind": "alanine-dipeptide", "accelerator.kind": kind}
    # On the paper's path.
    flow = {"accelerator.kind": "flow", "training.steps": 20, "training.batch": 16, "reference.peptide_bonds": "heated"}
    out["alanine-flow"] = {"target.kind": "alanine-dipeptide", "training.rounds": 1} | flow
    out["alanine-moves"] = {
        "target.kind": "alanine-dipeptide",
        "explorer.torsion_moves": 3,
        "explorer.masses": "atoms",
        "schedule.criterion": "fixed",
    }
    for name, settings in {
        "auto-chains": {"chains.count": "auto"},
        "mala": {"explorer.kind": "mala", "explorer.steps": 3},
        "fixed-step": {"explorer.step_size": 0.03, "schedule.criterion": "rejection"},
        "steps-per-chain": {"explorer.step_size": "[0.1, 0.2, 0.2, 0.1, 0.1]", "explorer.masses": "unit"},
        "paper-steps": {"explorer.adaptation": "paper"},
        "wide": {"reference.scale": 2.0, "accelerator.kind": "affine"},
        "two-rounds": TRAINED | {"accelerator.kind": "flow", "training.rounds": 2, "training.guard": "true"},
        "fine-tuned": {"accelerator.kind": "cmcd", "training.fine_tune": 50, "training.loss": "log-variance"} | TRAINED,
        "together": {"accelerator.kind": "diffusion", "network.coordinates": "together"} | TRAINED,
        "thin": {"run.thin": 3},
        "auto": {"accelerator.kind": "auto", "run.iterations": 6000},
    }.items():
        out[f"gmm-{name}"] = {"target.kind": "gmm"} | settings
    return out


def digest(out, settings):
    """One hash of the draws, one of what was made of them."""
    command = ["run", "--out", out, "--seed", 11, "--json"]
    for key, value in (SHORT | settings).items():
        command += ["--set", f"{key}={value}"]
    done = sterna(*command)
    assert done.returncode == 0, done.stderr
    with h5py.File(pathlib.Path(out) / "draws.nc") as file:
        draws = numpy.ascontiguousarray(file["posterior/x"][...], dtype="<f8")
    summary = json.loads(done.stdout)
    fields = ["schedule", "rejection_rates", "round_trips", "log_z", "expectations", "ess", "evaluations", "explorer"]
    estimates = json.dumps([summary[field] for field in fields])
    return {
        "draws": hashlib.sha256(draws.tobytes()).hexdigest()[:16],
        "estimates": hashlib.sha256(estimates.encode()).hexdigest()[:16],
    }


@pytest.mark.parametrize("name", cases())
def test_bits_stay(tmp_path, name):
    assert digest(tmp_path / "run", cases()[name]) == json.loads(RECORDED.read_text())[name]


if __name__ == "__main__":
    recorded = {}
    for name, settings in cases().items():
        with tempfile.TemporaryDirectory() as folder:
            recorded[name] = digest(pathlib.Path(folder) / "run", settings)
        print(name, recorded[name], flush=True)
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
