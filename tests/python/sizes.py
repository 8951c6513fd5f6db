"""Every key of a config with values that nobody should give: `--set KEY=VALUE` is one line that names the key and exit 2, or runs.

The program itself says which keys there are. Each try has 4 GiB of memory and a few seconds; what still runs then, runs.
"""

import functools
import re
import resource
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from sterna_cli import PROGRAM, ROOT, sterna

MEMORY = 4 << 30

HUGE = ["9223372036854775807", "99999999999999999999", "4294967296", "1000000000", "1000000", "1e308", "1e30"]
TINY = ["5e-324", "1e-308", "1e-9", "0.5"]
NEGATIVE = ["-1", "-9223372036854775808", "-1e308", "-0.0"]
OTHERS = ["0", "1", "nan", "inf", "-inf"]
EMPTY = ["''", "[]", "{}"]
WRONG = ["true", "word", "[1, 2]", "[[1, 2]]", "[nan]", "{a = 1}", "1979-05-27"]
VALUES = HUGE + TINY + NEGATIVE + OTHERS + EMPTY + WRONG

# Short runs of everything.
SHORT = {
    "chains.count": 3, "chains.ensembles": 1, "schedule.rounds": 1, "schedule.iterations": 12, "schedule.burn_in": 2,
    "run.iterations": 20, "run.burn_in": 2, "training.collect": 20, "training.steps": 3, "training.batch": 8,
    "network.layers": 1, "network.width": 4, "training.rounds": 1, "run.until.evaluations": 100_000,
}


def said_of(given):
    """What the program says of settings, run where nothing can be written."""
    return sterna("run", "--out", "/dev/null/nowhere", *(part for k, v in given.items() for part in ("--set", f"{k}={v}"))).stderr


def fields_of(**given):
    """Fields that the program would have known instead of `zzz`, which it says between backticks."""
    found = re.search(r"unknown field `\w+`, expected (?:one of )?(.*)", said_of(given))
    return re.findall(r"`(\w+)`", found[1]) if found else []


def keys():
    """All keys that hold a value, and the kinds of each section that has some."""
    fields, kinds = [], {}

    def walk(prefix):
        for name in fields_of(**{f"{prefix}zzz": 1}):
            key = prefix + name
            if name == "kind":
                words = re.search(r"is not known; known are (.*?)\.( Did|$)", said_of({key: "zzz"}))
                kinds[prefix[:-1]] = re.findall(r'"([\w-]+)"', words[1])
            elif fields_of(**{f"{key}.zzz": 1}):
                walk(key + ".")
            elif key != "parameters":
                fields.append(key)

    walk("")
    return fields, kinds


def files(folder):
    """What targets outside the program need."""
    def library(source):
        out = folder / f"{source.stem}.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-I", ROOT / "include", "-o", out, source, "-lm"], check=True)
        return out

    model = library(ROOT / "crates" / "sterna-run" / "tests" / "stan" / "model.c")
    molecule = ROOT / "assets" / "alanine-dipeptide"
    return {
        "library": {"target.library": library(ROOT / "examples" / "c" / "banana.c")},
        "likelihood": {"target.kind": "library", "target.library": library(ROOT / "examples" / "c" / "shares.c"),
                       "parameters": "[{name = 'share', size = 3, prior = 'dirichlet(2)'}]"},
        "stan": {"target.model": model, "target.data": "'{\"m\": 0.3}'"},
        "molecule": {"target.system": molecule / "system.xml", "target.positions": molecule / "topology.pdb"},
    }


def settings(folder):
    """Pairs of a key and the short runs in which it is tried: each of its section's kinds, on a target that it goes with."""
    fields, kinds = keys()
    assert len(fields) > 40 and set(kinds) == {"target", "reference", "explorer", "accelerator"}, (fields, kinds)
    needed = files(folder)
    targets = {kind: {"target.kind": kind} | needed.get(kind, {}) for kind in kinds["target"] if kind != "own"}
    targets["normal"]["target.dim"] = 2
    common = [targets[kind] for kind in ("normal", "alanine-dipeptide", "library", "stan")]
    common.append(needed["likelihood"])
    runs = functools.cache(lambda given: wrong_with(folder / "base", "", dict(given), "", 60)[1] == "runs")
    bases = {"target": list(targets.values())}
    for section in ("reference", "explorer", "accelerator"):
        for kind in kinds[section]:
            going = [base | {f"{section}.kind": kind} for base in common]
            going = [base for base in going if runs(tuple(base.items()))]
            assert going, (section, kind)
            bases.setdefault(section, []).extend(going[:2])
    trained = [base for base in bases["accelerator"] if base["accelerator.kind"] in ("flow", "cmcd", "diffusion")]
    out = []
    for key in fields:
        section = key.split(".")[0]
        out += [(key, base) for base in bases.get(section, trained if section in ("training", "network") else common[:3])]
    library = {"parameters": "[{zzz=1}]"} | targets["library"]
    return out + [(f"parameters.{field}", targets["library"]) for field in fields_of(**library)]


def tries(folder, every=1, offset=0):
    """All of them, or each `every`-th, evenly over keys and values."""
    all_of_them = [(key, base, value) for key, base in settings(folder) for value in VALUES]
    return all_of_them[offset::every]


def command(out, key, base, value):
    """The command line of one try: what is tried comes last."""
    chosen = SHORT | base
    chosen.pop(key, None)
    if key.startswith("parameters."):
        field = key.removeprefix("parameters.")
        word = value if re.fullmatch(r"[-+\d.e\[\]{}', =a]*|true|nan|-?inf|\d+-.*", value) else f"'{value}'"
        rest = {"name": "'a'", "size": 2} | {field: word}
        key, value = "parameters", "[{" + ", ".join(f"{k} = {v}" for k, v in rest.items()) + "}]"
    given = [*chosen.items(), *([(key, value)] if key else [])]
    return [str(PROGRAM), "run", "--out", str(out), *(part for k, v in given for part in ("--set", f"{k}={v}"))]


def wrong_with(out, key, base, value, seconds):
    """What was wrong with one try; nothing if all was well."""
    process = subprocess.Popen(
        command(out, key, base, value), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        shutil.rmtree(out, ignore_errors=True)
        return None, "runs on"
    code, left = process.returncode, out.exists()
    shutil.rmtree(out, ignore_errors=True)
    fault = None
    if "panicked" in said or code not in (0, 2):
        fault = f"exit {code}"
    elif code == 2 and left:
        fault = "left a folder"
    elif code == 2 and (len(said.strip().splitlines()) != 1 or key.removeprefix("parameters.") not in said):
        fault = "not one line that names the key"
    return (f"{fault}: {said.strip()[-500:]}" if fault else None), {0: "runs", 2: "refused"}.get(code, "fails")


def survey(folder, tried, seconds, workers):
    """Faults and a tally."""
    faults, tally = [], {}

    def one(numbered):
        number, (key, base, value) = numbered
        fault, kind = wrong_with(folder / f"out-{number}", key, base, value, seconds)
        return (fault and f"{key}={value} with {base}: {fault}"), kind

    with ThreadPoolExecutor(workers) as pool:
        for fault, kind in pool.map(one, enumerate(tried)):
            tally[kind] = tally.get(kind, 0) + 1
            faults += [fault] if fault else []
    return faults, tally
