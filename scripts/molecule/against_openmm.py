"""Speed of the force field beside OpenMM's (pip install openmm numpy): evaluations per processor-second.

    python scripts/molecule/against_openmm.py

OpenMM runs alanine dipeptide inside its own dynamics (one force evaluation a step, no Python in between) and
through its Python interface, on the Reference and CPU platforms with one thread; then `cargo bench` runs ours,
in the same minute. All figures are processor time, so other load on the machine matters little.
"""

import re
import subprocess
import time

import openmm

from build_systems import ALANINE, ROOT
from openmm import app


def per_second(work, count):
    work(count // 10)
    best = 0.0
    for _ in range(5):
        before = time.process_time()
        work(count)
        best = max(best, count / (time.process_time() - before))
    return best


def openmm_speed(platform, properties):
    system = openmm.XmlSerializer.deserialize((ALANINE / "system.xml").read_text())
    positions = app.PDBFile(str(ALANINE / "topology.pdb")).positions
    integrator = openmm.VerletIntegrator(0.0005)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform), properties)
    context.setPositions(positions)
    dynamics = per_second(integrator.step, 20000)

    def call(count):
        for _ in range(count):
            context.getState(getEnergy=True, getForces=True)

    return dynamics, per_second(call, 2000)


def rust_speed():
    command = ["cargo", "bench", "--quiet", "-p", "sterna-molecule", "--bench", "force_field"]
    text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {int(rows): float(speed) for rows, speed in re.findall(r"batches of (\d+): (\d+)", text)}


if __name__ == "__main__":
    rust_speed()  # builds, and wakes the processor
    peers = {}
    for platform, properties in [("Reference", {}), ("CPU", {"Threads": "1"})]:
        dynamics, python = openmm_speed(platform, properties)
        peers[f"OpenMM {openmm.__version__} {platform}, own dynamics"] = dynamics
        peers[f"OpenMM {openmm.__version__} {platform}, Python calls"] = python
    ours = rust_speed()[32]
    print(f"{'sterna-molecule, batches of 32':45} {ours:12,.0f} energy+force evaluations per processor-second")
    for name, speed in peers.items():
        print(f"{name:45} {speed:12,.0f}   ours is {ours / speed:.1f} times as fast")
