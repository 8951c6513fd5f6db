"""One ladder of a target that takes its time, on 1, 2, 4, 8 and 16 ranks: what of the ideal speed is reached, and what an exchange costs.

    cargo build -p sterna-cli --features mpi && python scripts/measure/clusters/scaling.py

A sleeping target stands for a machine of its own for each rank: ranks need no cores while they sleep. With --busy it works instead.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def seconds_an_iteration(program, library, out, ranks, asked):
    """Of sampling, on so many ranks."""
    settings = {"target.kind": "library", "target.library": library, "chains.count": asked.chains, "chains.ensembles": 1,
                "reference.kind": "standard-normal", "explorer.kind": "mala", "explorer.step_size": 0.3, "accelerator.kind": "none",
                "schedule.rounds": 0, "run.burn_in": 16, "run.iterations": asked.iterations, "run.checkpoint_seconds": 1e6}
    words = [program, "run", "--out", out, "--threads", "1", "--quiet"]
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    if ranks > 1:
        words = ["mpirun", "--oversubscribe", "-n", ranks, *words]
    environment = os.environ | ENVIRONMENT | {"STERNA_SLEEP_US": str(asked.sleep_us), "STERNA_SPREAD": str(asked.spread),
                                              "STERNA_BUSY": str(int(asked.busy))}
    subprocess.run([*map(str, words)], check=True, env=environment, stdout=sys.stderr)
    summary = json.loads((out / "summary.json").read_text())
    return summary["time"]["sampling_s"] / (summary["iterations"] + 16)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "target" / "debug" / "sterna", type=pathlib.Path)
    parser.add_argument("--chains", type=int, default=16)
    parser.add_argument("--sleep-us", type=float, default=5000.0)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--busy", action="store_true", help="evaluations work in place of sleeping")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        library = folder / "sleeping.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "sleeping.c"], check=True)
        alone = None
        for ranks in asked.ranks:
            took = seconds_an_iteration(asked.program, library, folder / str(ranks), ranks, asked)
            alone = alone or took * ranks
            print(f"{ranks:3} ranks: {1e3 * took:8.3f} ms an iteration, {alone / ranks / took:.3f} of ideal", flush=True)


if __name__ == "__main__":
    main()
