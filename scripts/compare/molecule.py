"""Alanine dipeptide by OpenMM: replica exchange of openmmtools, and what is said of torsions whoever drew them."""

import pathlib
import sys
import tempfile
import warnings

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "measure" / "posteriors"))

import draws as judged  # noqa: E402

ASSETS = ROOT / "crates" / "sterna-molecule" / "assets"
PHI, PSI = (4, 6, 8, 14), (6, 8, 14, 16)
COLDEST, HOTTEST = 300.0, 1200.0


def dihedral(x, atoms):
    """Degrees from 0 to 360 of positions of shape (…, atoms, 3)."""
    i, j, k, l = (x[..., a, :] for a in atoms)
    b1, b2, b3 = j - i, k - j, l - k
    n = np.cross(b2, b3)
    across = np.linalg.norm(b2, axis=-1) * (b1 * n).sum(axis=-1)
    return np.degrees(np.arctan2(across, (np.cross(b1, b2) * n).sum(axis=-1))) % 360.0


def of_torsions(phi, psi, evaluations):
    """Shares of the basins from torsions of shape (chains, draws), each with its error, and evaluations for an effective draw of C7ax:
    which side of the barrier a replica is on."""
    phi, psi = phi % 360.0, psi % 360.0
    c7ax = phi < 125.0
    of_psi = {"C5": (psi >= 110.0) & (psi < 230.0), "alphaR": (psi >= 230.0) & (psi < 330.0)}
    of_psi["C7eq"] = ~of_psi["C5"] & ~of_psi["alphaR"]
    inside = {"C7ax": c7ax} | {name: here & ~c7ax for name, here in of_psi.items()}
    basins = {}
    for name, here in inside.items():
        x = here.astype(float)
        effective = judged.ess(x) if x.std() > 0 else float("nan")
        error = float(x.std() / np.sqrt(effective)) if effective == effective else float("nan")
        basins[name] = {"mean": float(x.mean()), "error": error, "ess": float(effective)}
    effective = basins["C7ax"]["ess"]
    return {"basins": basins, "ess": effective, "per_effective": evaluations / effective if effective == effective else None}


def replica_exchange(seed, iterations=2000, steps=500, temperatures=6):
    """Torsions of the coldest replica; `rivals.openmm_replica_exchange` says how."""
    warnings.filterwarnings("ignore")
    import openmm
    from openmm import app, unit
    from openmmtools import cache, mcmc, states
    from openmmtools.multistate import MultiStateReporter, ParallelTemperingSampler

    cache.global_context_cache.platform = openmm.Platform.getPlatformByName("Reference")
    np.random.seed(seed)
    system = openmm.XmlSerializer.deserialize((ASSETS / "system.xml").read_text())
    positions = app.PDBFile(str(ASSETS / "topology.pdb")).positions
    move = mcmc.LangevinDynamicsMove(timestep=1.0 * unit.femtosecond, collision_rate=1.0 / unit.picosecond, n_steps=steps)
    sampler = ParallelTemperingSampler(mcmc_moves=move, number_of_iterations=iterations, online_analysis_interval=None)
    with tempfile.TemporaryDirectory() as place:
        sampler.create(
            states.ThermodynamicState(system=system, temperature=COLDEST * unit.kelvin),
            states.SamplerState(positions),
            MultiStateReporter(f"{place}/run.nc", checkpoint_interval=iterations),
            min_temperature=COLDEST * unit.kelvin,
            max_temperature=HOTTEST * unit.kelvin,
            n_temperatures=temperatures,
        )
        cold, at = [], []
        for _ in range(iterations):
            sampler.run(n_iterations=1)
            at.append(np.array(sampler._replica_thermodynamic_states))
            coldest = int(np.flatnonzero(at[-1] == 0)[0])
            cold.append(sampler.sampler_states[coldest].positions.value_in_unit(unit.nanometer))
    kept = np.array(cold)[iterations // 10 :][None]
    evaluations = iterations * steps * temperatures
    row = {"evaluations": evaluations, "gradients": True, "chains": temperatures, "round_trips": int(round_trips(np.array(at)))}
    return row | of_torsions(dihedral(kept, PHI), dihedral(kept, PSI), evaluations)


def round_trips(at):
    """Ways from the coldest to the hottest and back, of all replicas: at[t] has the rung of each."""
    hottest, trips = at.max(), 0
    for replica in at.T:
        ends = [rung for rung in replica if rung in (0, hottest)]
        turns = sum(a != b for a, b in zip(ends, ends[1:], strict=False))
        trips += turns // 2
    return trips
