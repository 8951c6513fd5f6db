"""docs/comparison.md from results alone."""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "measure" / "posteriors"))

import cases  # noqa: E402
import plots  # noqa: E402
import sections  # noqa: E402

ALIAS = "alias compare='/tmp/rivals/bin/python scripts/compare/compare.py --sterna target/release/sterna'"
INTRODUCTION = f"""# Beside what people use

Sterna and other programs on the same work, each program from its own package, in an environment of its own
(`scripts/compare/requirements.py`). One command makes this page and goes on where it was stopped:

```sh
python3 -m venv /tmp/rivals && /tmp/rivals/bin/pip install $(python3 scripts/compare/requirements.py)
cargo build --release && export PATH="$PWD/target/release:$PATH"
{ALIAS}
compare
```

A cell is a case, a program and a seed: one process on one thread. `docs/comparison/results.jsonl` has a line for each. A line of a table
ends with the command that repeats its first seed; `--seed N`, or another last number, repeats the others.

**Evaluations** are all of a run, tuning and warm-up included. For sterna, NUTS and HMC each comes with a gradient, for nested and ensemble samplers without; a
gradient costs these densities about as much again as the value, in general up to a few times the value. **Processor seconds** are of the
whole process (of rivals in Python, of the sampling without imports; just-in-time compilation is in it). They were measured on a shared machine with two cores on which other work
ran: evaluations are exact, seconds are rough, and so are ratios of seconds below two. Other programs' densities are numpy and JAX here, sterna's are built in: seconds compare what a user of
either would have waited, evaluations compare the samplers.
"""


def short(value):
    if isinstance(value, float):
        return f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def number(x, digits=3):
    return "–" if x is None or not math.isfinite(x) else f"{x:,.{digits}f}".replace("-", "−")


def count(x):
    """Three digits, as people read them."""
    if x is None or not math.isfinite(x):
        return "–"
    rounded = float(f"{x:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def rows_of(results, case, program):
    found = [row for row in results.values() if row["case"] == case.name and row["program"] == program]
    return sorted(found, key=lambda row: row["seed"])


def good(rows):
    return [row for row in rows if "failed" not in row]


def median(rows, name):
    values = [row[name] for row in rows if row.get(name) is not None]
    return statistics.median(values) if values else None


def off(case, rows):
    """Root mean square error of log Z over seeds."""
    if case.truth is None or not rows or rows[0].get("log_z") is None:
        return None
    truth = case.truth + (cases.MRNA_VOLUME if case.name == "mrna" and rows[0]["program"] == "sterna" else 0.0)
    return math.sqrt(statistics.mean((row["log_z"] - truth) ** 2 for row in rows)), truth


def for_a_tenth(case, rows, cost):
    """What an error of 0.1 costs: the cost falls with the variance."""
    error, spent = off(case, rows), median(rows, cost)
    if error is None or spent is None:
        return None
    # What a few seeds show by luck is no smaller than what the program says of itself.
    return spent * (max(error[0], median(rows, "log_z_error") or 0.0) / 0.1) ** 2


def missing(case, program, rows):
    if program in case.dashes:
        return case.dashes[program]
    if rows:
        return rows[0]["failed"]
    return "not measured"


def evidence(results, case):
    lines = []
    for program in case.programs:
        rows = rows_of(results, case, program)
        fine = good(rows)
        if not fine:
            lines.append([program, "–", "–", "–", "–", "–", "–", "–", "–", missing(case, program, rows)])
            continue
        error, truth = off(case, fine)
        said = median(fine, "log_z_error")
        beyond = sum(abs(row["log_z"] - truth) > 4 * row["log_z_error"] for row in fine if row.get("log_z_error"))
        lines.append([
            program, len(fine), number(statistics.mean(row["log_z"] for row in fine)), number(error),
            number(said), "–" if said is None else f"{beyond} of {len(fine)}",
            count(median(fine, "evaluations")), count(for_a_tenth(case, fine, "evaluations")),
            f"{count(median(fine, 'processor_s'))} / {count(for_a_tenth(case, fine, 'processor_s'))}", note(case, fine, rows),
        ])  # fmt: skip
    heads = ["program", "seeds", "log Z, mean", "error (RMS)", "its own error", "beyond 4 of its errors", "evaluations"]
    heads += ["for an error of 0.1", "processor s / for 0.1", "effective draws; modes; what to know"]
    return table(heads, lines)


def note(case, fine, rows):
    words = []
    if median(fine, "ess"):
        words.append(f"{count(median(fine, 'ess'))} effective")
    if case.weights and median(fine, "mode_error") is not None:
        words.append(f"mode weights off by {median(fine, 'mode_error'):.3f}")
    verdicts = [row["verdict"] for row in fine if "verdict" in row]
    if verdicts:
        words.append(", ".join(f"{verdicts.count(v)} {v}" for v in ("sound", "doubtful", "unsound") if v in verdicts))
    broken = len(rows) - len(fine)
    if broken:
        words.append(f"{broken} more failed: {[row['failed'] for row in rows if 'failed' in row][0]}")
    return "; ".join(words)


def commands(results, case):
    lines = []
    for program in case.programs:
        fine = rows_of(results, case, program)
        if fine:
            lines.append(f"{fine[0]['command']}  # {program}")
    return "```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""


def posterior(results, case):
    lines = []
    for program in case.programs:
        rows = rows_of(results, case, program)
        fine = good(rows)
        if not fine:
            lines.append([program, "–", "–", "–", "–", "–", "–", missing(case, program, rows)])
            continue
        evaluations, ess = median(fine, "evaluations"), median(fine, "ess")
        log_z = median(fine, "log_z")
        if log_z is not None and program != "sterna" and case.name == "mrna":
            log_z += cases.MRNA_VOLUME
        lines.append([
            program, len(fine), count(evaluations), count(ess), count(1e3 * ess / evaluations),
            number(max(row["mode_error"] for row in fine)), count(median(fine, "processor_s")),
            ("log Z " + number(log_z) + "; " if log_z is not None else "") + ", ".join(sorted({row["verdict"] for row in fine if "verdict" in row})),
        ])  # fmt: skip
    heads = [
        "program",
        "seeds",
        "evaluations",
        "effective draws",
        "per 1,000 evaluations",
        "mode weights off by, worst seed",
        "processor s",
        "what to know",
    ]
    return table(heads, lines)


# Published distances of energies, 1,000 samples each.
PUBLISHED = {
    "lj-13": "ASBS 1.99, PDNS 1.01, Flow Sampling 0.97; plain MCMC 0.52",
    "lj-55": "iDEM 93.5, AS 30.8, ASBS 28.1, PDNS 21.97, Flow Sampling 21.3; plain MCMC 0.87",
}


def told(row):
    words = [f"log Z {number(row['log_z'], 2)} ± {number(row['log_z_error'], 2)}"] if "log_z" in row else []
    if "energy" in row:
        words.append(f"{count(row['energy']['ess'])} effective energies")
    return "; ".join([*words, *([row["verdict"]] if "verdict" in row else [])])


def clusters(results):
    from physics import distance

    lines = []
    for case in [case for case in cases.CASES if case.group == "cluster"]:
        every = {p: good(rows_of(results, case, p)) for p in case.programs}
        floor = (
            statistics.mean(rows[0]["energy"]["floor"] for rows in every.values() if rows and "energy" in rows[0])
            if any(every.values())
            else None
        )
        for program, rows in every.items():
            if not rows:
                lines.append(
                    [case.name, program, "–", "–", "–", "–", "–", missing(case, program, rows_of(results, case, program))]
                )
                continue
            # Against the runs of another kind or another seed, never against itself.
            exact = ("sterna", "sterna wide", "hmc")
            others = [other["energies"] for p in exact for other in every.get(p, []) if p != program]
            w2 = statistics.mean(distance(rows[0]["energies"], other) for other in others) if others else None
            energy = rows[0].get("energy")
            mean = (
                f"{number(energy['mean'], 2)} ± {number(energy['error'], 2)}"
                if energy
                else number(statistics.mean(rows[0]["energies"]), 2)
            )
            lines.append([
                case.name, program, mean, number(w2, 2), number(floor, 2), count(median(rows, "evaluations")),
                count(median(rows, "processor_s")), told(rows[0]),
            ])  # fmt: skip
    heads = ["cluster", "program", "⟨E⟩", "W₂ of energies", "floor", "evaluations", "processor s", "what to know"]
    return table(heads, lines)


def lattices(results):
    lines = []
    for case in [case for case in cases.CASES if case.group == "lattice"]:
        for program in case.programs:
            fine = good(rows_of(results, case, program))
            if not fine:
                lines.append(
                    [case.name, program, "–", "–", "–", "–", "–", "–", missing(case, program, rows_of(results, case, program))]
                )
                continue
            seen = fine[0]["observables"]

            def shown(name, digits=4, seen=seen):
                return f"{number(seen[name]['mean'], digits)} ± {number(seen[name]['error'], digits)}"

            lines.append([
                case.name, program, shown("|M|"), shown("susceptibility", 3), shown("sign M", 3),
                count(seen["|M|"]["evaluations"]), count(seen["sign M"]["evaluations"]), count(fine[0]["evaluations"]),
                count(fine[0]["processor_s"]),
            ])  # fmt: skip
    heads = [
        "lattice",
        "program",
        "⟨abs M⟩",
        "susceptibility",
        "⟨sign M⟩",
        "evaluations an effective abs M",
        "… sign M",
        "evaluations",
        "processor s",
    ]
    return table(heads, lines)


def paper(results, case, programs):
    lines = []
    for program in programs:
        rows = rows_of(results, case, program)
        fine = good(rows)
        if not fine:
            lines.append([program, *["–"] * 8, missing(case, program, rows)])
            continue
        trips, evaluations = median(fine, "round_trips"), median(fine, "evaluations")
        lines.append([
            program, count(trips), "–" if trips is None else count(1e6 * trips / evaluations), count(evaluations), count(median(fine, "network")),
            count(median(fine, "processor_s")), number(off(case, fine)[0]), number(median(fine, "mode_error")),
            f"{number(median(fine, 'w2'), 2)} ({number(median(fine, 'floor'), 2)})", count(median(fine, "ess")),
        ])  # fmt: skip
    heads = [
        "how",
        "round trips",
        "per 10⁶ evaluations",
        "evaluations",
        "of networks",
        "processor s, training in it",
        "error of log Z",
    ]
    return table([*heads, "mode weights off by", "W₂ of energies (floor)", "effective draws"], lines)


def losses(results):
    """Where another program was better, in a sentence each."""
    said = []
    for case in cases.CASES:
        if case.group == "evidence":
            ours = good(rows_of(results, case, "sterna"))
            for cost, words in (("evaluations", "evaluations"), ("processor_s", "processor seconds")):
                own = for_a_tenth(case, ours, cost) if ours else None
                for program in case.programs[1:]:
                    rows = good(rows_of(results, case, program))
                    theirs = for_a_tenth(case, rows, cost) if rows else None
                    if own and theirs and theirs < own:
                        said.append(
                            f"- {case.name}: {program} needs {count(theirs)} {words} for an error of 0.1, sterna {count(own)}."
                        )
        if case.group == "posterior":
            ours = good(rows_of(results, case, "sterna"))
            for program in case.programs[1:]:
                rows = good(rows_of(results, case, program))
                if not ours or not rows:
                    continue
                own, theirs = (median(r, "ess") / median(r, "evaluations") for r in (ours, rows))
                if theirs > own:
                    worst = max(row["mode_error"] for row in rows)
                    said.append(
                        f"- {case.name}: {program} has {theirs / own:.1f} times as many effective draws for an evaluation (its mode weights are off by up to {worst:.2f})."
                    )
        if case.group == "lattice":
            ours, rows = good(rows_of(results, case, "sterna")), good(rows_of(results, case, "hmc"))
            for name in ("|M|", "sign M"):
                if ours and rows:
                    own, theirs = (r[0]["observables"][name]["evaluations"] for r in (ours, rows))
                    if theirs < own:
                        said.append(
                            f"- {case.name}: plain HMC needs {count(theirs)} evaluations for an effective draw of {name.replace('|', '')}, sterna {count(own)}."
                        )
    return "\n".join(said) + "\n" if said else "None of what was measured.\n"


def write(results, docs):
    folder = docs / "comparison"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [INTRODUCTION]
    boxes = [case for case in cases.CASES if case.group == "evidence"]
    costs = {
        case.name: {p: for_a_tenth(case, good(rows_of(results, case, p)), "evaluations") for p in case.programs} for case in boxes
    }
    (folder / "evidence.svg").write_text(plots.costs("Evaluations for an error of 0.1 in log Z", costs))
    parts.append(sections.EVIDENCE)
    for case in boxes:
        parts += [f"### {case.name}\n\nTruth {number(case.truth, 6)}.\n", evidence(results, case), commands(results, case)]
    parts.append(sections.POSTERIORS)
    for case in [case for case in cases.CASES if case.group == "posterior"]:
        parts += [f"### {case.name}\n", posterior(results, case), commands(results, case)]
    parts.append(sections.PHYSICS)
    published = table(["cluster", "W₂ of energies, published"], [[name, words] for name, words in PUBLISHED.items()])
    parts += ["### Lennard-Jones clusters\n", clusters(results), published, "### Lattice φ⁴\n", lattices(results)]
    parts += [commands(results, case) for case in cases.CASES if case.group in ("cluster", "lattice")]
    parts.append(sections.PAPER)
    for case in [case for case in cases.CASES if case.group == "paper"]:
        parts += [f"### {case.name}\n", paper(results, case, [p for p in case.programs if p not in cases.SWAPS])]
        parts += [
            "How often to swap, at about as many evaluations:\n",
            paper(results, case, list(cases.SWAPS)),
            commands(results, case),
        ]
    parts += ["## Where others did better\n", losses(results)]
    (docs / "comparison.md").write_text("\n".join(parts))
