"""docs/comparison.md from results alone."""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "measure" / "posteriors"))

import cases  # noqa: E402
import in_short  # noqa: E402
import physical  # noqa: E402
import plots  # noqa: E402
import sections  # noqa: E402
from words import commands, count, ended, for_a_tenth, good, median, missing, number, off, rows_of, seconds, table  # noqa: E402

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
whole process (of rivals in Python, of the sampling without imports; just-in-time compilation is in it), measured with 15 of them side by side on 16 cores; those with a dagger on a shared machine
of two cores, where one process alone is about twice as fast. Evaluations are exact, seconds are rough, and so are ratios of seconds below three. Other programs' densities are numpy and JAX here, sterna's are built in: seconds compare what a user of
either would have waited, evaluations compare the samplers.
"""


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
            count(median(fine, "evaluations")), count(for_a_tenth(case, ended(rows), "evaluations")),
            f"{seconds(fine)} / {seconds(fine, for_a_tenth(case, fine, 'processor_s')) if ended(rows) else '–'}", note(case, fine, rows),
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
    if verdicts and all(row["alarms"] == ["truth-missed"] for row in fine):
        words.append("unsound by the truth alone: nothing else rings")
    broken = len(rows) - len(fine)
    if broken:
        words.append(f"{broken} more failed: {[row['failed'] for row in rows if 'failed' in row][0]}")
    return "; ".join(words)


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
            number(max(row["mode_error"] for row in fine)), seconds(fine),
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
            seconds(fine), number(off(case, fine)[0]), number(median(fine, "mode_error")),
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


def write(results, docs):
    folder = docs / "comparison"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [INTRODUCTION, in_short.section(results, docs)]
    boxes = [case for case in cases.CASES if case.group == "evidence"]
    costs = {
        case.name: {p: for_a_tenth(case, ended(rows_of(results, case, p)), "evaluations") for p in case.programs}
        for case in boxes
        if not in_short.all_lose(results, case)
    }
    (folder / "evidence.svg").write_text(plots.costs("Evaluations for an error of 0.1 in log Z", costs))
    parts.append(sections.EVIDENCE)
    for case in boxes:
        parts += [f"### {case.name}\n\nTruth {number(case.truth, 6)}.\n", evidence(results, case), commands(results, case)]
    parts.append(sections.POSTERIORS)
    for case in [case for case in cases.CASES if case.group == "posterior"]:
        parts += [f"### {case.name}\n", posterior(results, case), commands(results, case)]
    parts += [sections.DATABASE, physical.database(results, docs), sections.PHYSICS, *physical.parts(results, docs)]
    parts.append(sections.PAPER)
    for case in [case for case in cases.CASES if case.group == "paper"]:
        parts += [f"### {case.name}\n", paper(results, case, [p for p in case.programs if p not in cases.SWAPS])]
        parts += [
            "How often to swap, at about as many evaluations:\n",
            paper(results, case, list(cases.SWAPS)),
            commands(results, case),
        ]
    (docs / "comparison.md").write_text("\n".join(parts))
