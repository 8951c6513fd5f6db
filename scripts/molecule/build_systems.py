"""Writes the molecules that the project ships and tests with, using OpenMM (pip install openmm numpy).

    python scripts/molecule/build_systems.py

For each of three molecules in vacuum (amber14/protein.ff14SB, no cutoff, no constraints): the serialized
System, a PDB file with topology and start positions, and conformations with energies by term and forces
from OpenMM's Reference platform in double precision.

    assets/alanine-dipeptide/                        built into the crate (ACE-ALA-NME, 22 atoms)
    crates/sterna-molecule/tests/data/ala3.*         alanine tetrapeptide, ACE-ALA-ALA-ALA-NME
    crates/sterna-molecule/tests/data/phe.*          ACE-PHE-NME, with a ring

`assets/alanine-dipeptide/reference.json` is data of the project and is not written here: the script checks
that OpenMM still agrees with it.
"""

import io
import json
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

ROOT = Path(__file__).resolve().parents[2]
FORCE_FIELD = "amber14/protein.ff14SB.xml"
ALANINE = ROOT / "assets" / "alanine-dipeptide"
TEST_DATA = ROOT / "crates" / "sterna-molecule" / "tests" / "data"


def place(a, b, c, length, angle, dihedral):
    """The point at `length` from c, `angle` c-b (degrees), `dihedral` c-b-a (degrees)."""
    angle, dihedral = np.radians([angle, dihedral])
    axis = (c - b) / np.linalg.norm(c - b)
    normal = np.cross(b - a, axis)
    normal /= np.linalg.norm(normal)
    frame = np.stack([axis, np.cross(normal, axis), normal])
    local = length * np.array([-np.cos(angle), np.sin(angle) * np.cos(dihedral), np.sin(angle) * np.sin(dihedral)])
    return c + local @ frame


def heavy_atoms(residues, phi=-75.0, psi=60.0):
    """Residue name and heavy atoms (name, element, position in nm) of ACE-…-NME from ideal geometry."""
    ch3, c = np.zeros(3), np.array([0.152, 0.0, 0.0])
    o = np.array([0.152 + 0.0615, 0.1065, 0.0])
    chain = [("ACE", [("CH3", "C", ch3), ("C", "C", c), ("O", "O", o)])]
    before, carbonyl, oxygen = ch3, c, o
    for residue in residues:
        n = place(oxygen, before, carbonyl, 0.1335, 116.6, 180.0)
        ca = place(before, carbonyl, n, 0.1449, 121.9, 180.0)
        c = place(carbonyl, n, ca, 0.1522, 110.1, phi)
        cb = place(carbonyl, n, ca, 0.1526, 109.7, phi - 120.0)
        next_n = place(n, ca, c, 0.1335, 116.6, psi)
        o = place(n, ca, c, 0.1229, 120.4, psi + 180.0)
        atoms = [("N", "N", n), ("CA", "C", ca), ("CB", "C", cb), ("C", "C", c), ("O", "O", o)]
        if residue == "PHE":
            cg = place(n, ca, cb, 0.151, 113.8, -60.0)
            cd1 = place(ca, cb, cg, 0.140, 120.0, 90.0)
            cd2 = place(ca, cb, cg, 0.140, 120.0, -90.0)
            ce1 = place(cb, cg, cd1, 0.140, 120.0, 180.0)
            ce2 = place(cb, cg, cd2, 0.140, 120.0, 180.0)
            cz = place(cg, cd1, ce1, 0.140, 120.0, 0.0)
            atoms += [("CG", "C", cg), ("CD1", "C", cd1), ("CD2", "C", cd2), ("CE1", "C", ce1), ("CE2", "C", ce2), ("CZ", "C", cz)]
        chain.append((residue, atoms))
        before, carbonyl, oxygen = ca, c, o
        following = next_n
    methyl = place(before, carbonyl, following, 0.1449, 121.9, 180.0)
    chain.append(("NME", [("N", "N", following), ("C", "C", methyl)]))
    return chain


def peptide(residues):
    """Topology and start positions with hydrogens."""
    topology = app.Topology()
    chain = topology.addChain()
    positions = []
    for name, atoms in heavy_atoms(residues):
        residue = topology.addResidue(name, chain)
        for atom, element, position in atoms:
            topology.addAtom(atom, app.Element.getBySymbol(element), residue)
            positions.append(position)
    topology.createStandardBonds()
    modeller = app.Modeller(topology, np.array(positions) * unit.nanometer)
    modeller.addHydrogens(app.ForceField(FORCE_FIELD))
    return modeller.topology, modeller.positions


def alanine_dipeptide():
    """Topology and minimum in the atom order of the project's reference data."""
    topology, _ = peptide(["ALA"])
    wanted = json.loads((ALANINE / "atoms.json").read_text())
    by_name = {(atom.residue.name, atom.name): atom for atom in topology.atoms()}
    ordered, new = app.Topology(), {}
    chain, residues = ordered.addChain(), {}
    for entry in wanted["atoms"]:
        old = by_name[entry["residue"], entry["name"]]
        if entry["residue"] not in residues:
            residues[entry["residue"]] = ordered.addResidue(entry["residue"], chain)
        new[old] = ordered.addAtom(old.name, old.element, residues[entry["residue"]])
    for a, b in topology.bonds():
        ordered.addBond(new[a], new[b])
    return ordered, np.array(wanted["minimum"]) * unit.nanometer


def create_system(topology):
    return app.ForceField(FORCE_FIELD).createSystem(
        topology, nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False, removeCMMotion=False
    )


def reference_context(system):
    """A double-precision context whose four energy terms can be asked for one by one."""
    for force in system.getForces():
        force.setForceGroup({"HarmonicBondForce": 0, "HarmonicAngleForce": 1, "PeriodicTorsionForce": 2, "NonbondedForce": 3}[force.getName()])
    return openmm.Context(system, openmm.LangevinMiddleIntegrator(300, 1, 0.0005), openmm.Platform.getPlatformByName("Reference"))


def evaluate(context, positions):
    """Energies by term (kJ/mol) and forces (kJ/mol/nm)."""
    context.setPositions(positions)
    kj = unit.kilojoule_per_mole
    energy = {
        name: context.getState(getEnergy=True, groups={group}).getPotentialEnergy().value_in_unit(kj)
        for group, name in enumerate(["bond", "angle", "torsion", "nonbonded"])
    }
    state = context.getState(getEnergy=True, getForces=True)
    energy["total"] = state.getPotentialEnergy().value_in_unit(kj)
    return energy, state.getForces(asNumpy=True).value_in_unit(kj / unit.nanometer)


def sample(system, positions, count, seed, interval=400):
    """`count` conformations: dynamics at 300 and 1200 K from a minimum, and some of them distorted."""
    random = np.random.default_rng(seed)
    found = []
    for temperature in (300.0, 1200.0):
        integrator = openmm.LangevinMiddleIntegrator(temperature, 5.0, 0.0005)
        integrator.setRandomNumberSeed(seed)
        context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference"))
        context.setPositions(positions)
        openmm.LocalEnergyMinimizer.minimize(context)
        for _ in range(count // 2):
            integrator.step(interval)
            x = context.getState(getPositions=True).getPositions(asNumpy=True).value_in_unit(unit.nanometer)
            if len(found) % 8 == 7:
                x = x + 0.01 * random.standard_normal(x.shape)
            found.append(x - x.mean(0))
    return found


def write(folder, stem, topology, positions, conformations=0):
    system = create_system(topology)
    (folder / f"{stem}system.xml").write_text(openmm.XmlSerializer.serialize(system))
    if conformations:
        context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
        context.setPositions(positions)
        openmm.LocalEnergyMinimizer.minimize(context, 0.01)
        positions = context.getState(getPositions=True).getPositions()
    pdb = io.StringIO()
    app.PDBFile.writeFile(topology, positions, pdb, keepIds=False)
    # Without the first line, which holds the date.
    (folder / f"{stem}topology.pdb").write_text(pdb.getvalue().partition("\n")[2])
    if not conformations:
        return
    context = reference_context(create_system(topology))
    rows = []
    for x in sample(system, positions, conformations, seed=1):
        energy, forces = evaluate(context, x)
        rows.append({"energy": energy, "coordinates": x.tolist(), "forces": forces.tolist()})
    (folder / f"{stem}reference.json").write_text(json.dumps({"conformations": rows}))


def check_against_data():
    """OpenMM as installed must still give the project's reference values."""
    context = reference_context(openmm.XmlSerializer.deserialize((ALANINE / "system.xml").read_text()))
    worst = 0.0
    for row in json.loads((ALANINE / "reference.json").read_text())["conformations"]:
        energy, forces = evaluate(context, row["coordinates"])
        worst = max(worst, *(abs(energy[k] - v) / max(1.0, abs(v)) for k, v in row["energy"].items()))
        worst = max(worst, np.abs(forces - row["forces"]).max() / np.abs(row["forces"]).max())
    print(f"alanine dipeptide: OpenMM {openmm.__version__} and reference.json differ by {worst:.1e} at most")
    assert worst < 1e-11


if __name__ == "__main__":
    TEST_DATA.mkdir(parents=True, exist_ok=True)
    write(ALANINE, "", *alanine_dipeptide())
    check_against_data()
    write(TEST_DATA, "ala3.", *peptide(["ALA", "ALA", "ALA"]), conformations=16)
    write(TEST_DATA, "phe.", *peptide(["PHE"]), conformations=16)
    for path in sorted([*ALANINE.iterdir(), *TEST_DATA.iterdir()]):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
