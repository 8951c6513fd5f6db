"""Stan's NUTS on one posterior, in a process of its own.

    python nuts.py FOLDER OUT.json [--build] [--goals 1000,5000] [--most N]

Runs under a Python that has pystan. Documented defaults: 4 chains, 1,000 iterations of warm-up, adapt_delta 0.8, depth
10. A run of 1,000 draws a chain says how many are needed, a second one makes them; a goal is reached at the first draw
at which the smallest bulk ESS over the parameters is enough, on a grid that grows by a twentieth. Evaluations are
the leapfrog steps up to there, those of the warm-up among them, once.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import time

import draws

CHAINS, WARM_UP = 4, 1000


def parameters(code):
    """Names in the block of parameters."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", code, flags=re.S)
    start = re.search(r"(?<!transformed )\bparameters\s*\{", code).end()
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        end += 1
    return re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)?;", code[start:end])


def built(folder):
    import stan

    code, data = (folder / "model.stan").read_text(), json.loads((folder / "data.json").read_text())
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return stan.build(code, data=data, random_seed=1), code


def processor():
    """Processor seconds of this process and of those that it started, pystan's workers, which live on."""
    tick, family = os.sysconf("SC_CLK_TCK"), {os.getpid()}
    seconds = 0.0
    processes = sorted(int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit())
    for process in processes:
        try:
            fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if process in family or int(fields[1]) in family:
            family.add(process)
            seconds += sum(map(int, fields[11:15])) / tick
    return seconds


def sampled(model, names, count):
    """Values of the parameters (chains × draws), leapfrog steps with warm-up, divergences, processor seconds."""
    before = processor()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        fit = model.sample(num_chains=CHAINS, num_warmup=WARM_UP, num_samples=count, save_warmup=True)
    seconds = processor() - before
    # Stan calls beta.1.2 what people call beta[1,2].
    columns = {}
    for column, raw in enumerate(fit.sample_and_sampler_param_names + fit.constrained_param_names):
        name, *places = raw.split(".")
        columns[name + ("[" + ",".join(places) + "]" if places else "")] = column
    all_draws = fit._draws
    leapfrogs = all_draws[columns["n_leapfrog__"]].T
    values = {
        label: all_draws[column].T[:, WARM_UP:]
        for label, column in columns.items()
        if label.split("[")[0] in names and not label.endswith("__")
    }
    divergent = int(all_draws[columns["divergent__"]].T[:, WARM_UP:].sum())
    return values, leapfrogs, divergent, seconds


def reached(values, goal):
    """Draws a chain at which the smallest bulk ESS is enough for the first time, and that ESS; None if it never is."""
    count = next(iter(values.values())).shape[1]
    length = 50
    while True:
        length = min(length, count)
        found = draws.smallest_bulk_ess({n: x[:, :length] for n, x in values.items()})
        if found >= goal:
            return length, found
        if length == count:
            return None
        length = max(length + 1, round(1.05 * length))


def measure(folder, goals, most):
    model, code = built(folder)
    names, count = parameters(code), 1000
    while True:
        values, leapfrogs, divergent, seconds = sampled(model, names, count)
        smallest = draws.smallest_bulk_ess(values)
        if smallest >= max(goals) or count >= most:
            break
        count = int(min(most, max(1.15 * count * max(goals) / max(smallest, 10), 1.2 * count)))
    reference = json.loads((folder / "reference.json").read_text())
    result = {"draws": count, "ess": smallest, "divergent": divergent, "seconds": seconds, "parameters": len(values)}
    result |= {"evaluations": int(leapfrogs.sum()), "warm_up": int(leapfrogs[:, :WARM_UP].sum())}
    result |= draws.against(values, reference)
    result["goals"] = {}
    for goal in goals:
        at = reached(values, goal)
        if at:
            spent = int(leapfrogs[:, : WARM_UP + at[0]].sum())
            share = spent / result["evaluations"]
            result["goals"][goal] = {"draws": at[0], "ess": at[1], "evaluations": spent, "seconds": seconds * share}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("--build", action="store_true", help="compile the model, and no more")
    parser.add_argument("--goals", default="1000,5000")
    parser.add_argument("--most", type=int, default=40_000, help="draws a chain at most")
    options = parser.parse_args()
    if options.build:
        begun = time.time()
        built(options.folder)
        print(f"{options.folder.name}: compiled in {time.time() - begun:.0f} s")
        return
    result = measure(options.folder, [int(goal) for goal in options.goals.split(",")], options.most)
    options.out.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
