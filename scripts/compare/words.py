"""Numbers of rows as people read them: medians over seeds, errors of log Z, tables."""

import math
import statistics

import cases

# Of the machine whose seconds stand without a mark.
CORES = 16


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
    # A program that says nothing of its error is known by its seeds alone, and two say nothing.
    if len(rows) < 3 and median(rows, "log_z_error") is None:
        return None
    # What a few seeds show by luck is no smaller than what the program says of itself.
    return spent * (max(error[0], median(rows, "log_z_error") or 0.0) / 0.1) ** 2


def ended(rows):
    """Runs whose cost means something: all, or none where some did not end."""
    return rows if len(good(rows)) == len(rows) else []


def missing(case, program, rows):
    if program in case.dashes:
        return case.dashes[program]
    if rows:
        return rows[0]["failed"]
    return "not measured"


def seconds(rows, cost=None):
    """Processor seconds, marked where they are another machine's."""
    value = median(rows, "processor_s") if cost is None else cost
    return count(value) + ("" if value is None or all(row.get("cores") == CORES for row in rows) else "†")


def commands(results, case):
    lines = []
    for program in case.programs:
        fine = rows_of(results, case, program)
        if fine:
            lines.append(f"{fine[0]['command']}  # {program}")
    return "```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""
