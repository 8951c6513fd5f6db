"""Eight posteriors through the Python package, as models of PyMC and of Stan, beside draws of long, checked runs.

    python scripts/measure/python_posteriors/measure.py FOLDER [--only WORD] [--through pymc,stan] [--seed 1]

FOLDER has a folder for each posterior (names in in_stan.py) with data.json and reference.json: mean and sd of each, from
10,000 draws. Models are those of this folder; nothing but defaults is asked for: 1,000 effective draws. Needs pymc; for Stan the
wheel httpstan and a C++ compiler, with which tests/python/stan_models.py compiles. A line for each run:

    largest |mean - reference|, in standard errors of both and in sd; sd over reference; evaluations; seconds; verdict
"""

import argparse
import json
import pathlib
import re
import sys
import time

import numpy as np
import sterna

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parents[2] / "tests" / "python")]
# What a mean of the reference is off by, in sd: it has 10,000 draws, not quite independent.
OF_REFERENCE = 0.0115


def in_pymc(name, data):
    import in_pymc

    return sterna.from_pymc(in_pymc.model(name, data), name=name)


def in_stan(name, data):
    import in_stan
    import stan_models

    return sterna.from_stan(stan_models.compiled(in_stan.MODELS[name]), data, quantities=False)


# How to make a target, and what places of names count from.
THROUGH = {"pymc": (in_pymc, 0), "stan": (in_stan, 1)}


def split(parameter):
    """Name and place of what the reference calls `beta[2]`: it counts from 1."""
    name, places = re.fullmatch(r"(\w+)(?:\[([\d,]+)\])?", parameter).groups()
    return name, tuple(int(place) - 1 for place in places.split(",")) if places else ()


def against(run, reference, first):
    """The worst of all parameters: in standard errors, in sd, and sd over reference; places of names count from `first`."""
    table, rows = run.table(), []
    for parameter, expected in reference.items():
        name, place = split(parameter)
        if name not in run.draws:
            continue
        values = run.draws[name][(slice(None), slice(None), *place)]
        label = f"{name}[{','.join(str(i + first) for i in place)}]" if place else name
        off = abs(values.mean() - expected["mean"]) / expected["sd"]
        error = np.hypot(table.loc[label, "mcse"] / expected["sd"], OF_REFERENCE)
        rows.append((off / error, off, values.std() / expected["sd"]))
    errors, off, ratio = np.array(rows).T
    return errors.max(), off.max(), ratio.min(), ratio.max(), len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--through", default="pymc,stan")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    import in_stan

    print("by    n errors     sd    sd ratio evaluations      s  log Z, verdict, posterior")
    for name in in_stan.MODELS:
        if options.only not in name:
            continue
        data = json.loads((options.folder / name / "data.json").read_text())
        reference = json.loads((options.folder / name / "reference.json").read_text())
        for way in options.through.split(","):
            make, first = THROUGH[way]
            target = make(name, data)
            begin = time.perf_counter()
            run = sterna.sample(target, seed=options.seed, progress_bar=False, threads=1)
            seconds = time.perf_counter() - begin
            errors, off, least, most, count = against(run, reference, first)
            codes = ", ".join(alarm["code"] for alarm in run.alarms)
            asked = run.summary["evaluations"]["target"]
            print(
                f"{way:4} {count:3} {errors:6.2f} {off:6.3f} {least:5.2f}-{most:5.2f} {asked:11,} {seconds:6.1f}"
                f"  {run.log_z:.3f} ± {run.log_z_error:.3f}, {run.verdict} {codes}, {name}",
                flush=True,
            )


if __name__ == "__main__":
    main()
