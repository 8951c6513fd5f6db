"""docs/posteriors.md from results alone."""

import collections
import statistics

import cells
import charts

COMMAND = "python3 scripts/measure/posteriors/measure.py"
INTRODUCTION = """# Posteriors, with nothing but `[target]`

What `sterna run` makes of posteriors that people have, beside Stan's NUTS, and of densities whose
answers are known. No config says more than what is sampled: reference, chains, moves and the end of the run are the
program's own choice. Made by one command, which goes on where it was stopped:

```sh
{command} --posteriors FOLDER --models FOLDER --stan PYTHON
```

Evaluations are all of a run: climbs, fits, tuning, burn-in, sampling; those of NUTS are its leapfrog steps, warm-up
counted once. ESS is the smallest bulk ESS over all parameters, by one function for both. Means, standard deviations and
the share of draws below the 5, 50 and 95 % quantiles are held against 10,000 draws of the database; K_m of
one_comp_mm_elim_abs has no standard deviation: where it is large the data know V_m/K_m alone, two Cauchy priors are left, and
its density falls as K_m⁻³, so that any number of draws has whatever deviation its few largest give it. Any single cell is repeated
by the command at the end of its table, with its own name: `GROUP/NAME/GOAL/SEED`. Of several seeds the tables have the median of
evaluations and seconds, the least ESS and what is farthest off. Evaluations do not depend on the
machine; processor seconds do, are of one thread, and are not to be compared where cells were measured at other times. NUTS is
the same whatever becomes of this program: its rows were measured once, and stay.
"""


def count(n):
    return "–" if n is None else f"{n:,}"


def number(x, digits=3):
    return "–" if x is None else f"{x:.{digits}f}".replace("-", "−")


def seconds(x):
    return "–" if x is None else f"{x:.1f}" if x < 100 else f"{x:,.0f}"


def rounded(value):
    """Numbers of a result, short enough to read."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def line(row):
    """One result in a line, for the terminal."""
    words = [f"{row['key']:<60}"]
    if "failed" in row:
        return " ".join([*words, f"FAILED with exit code {row['failed']}: {row['said']}"])
    shown = ["chains", "evaluations", "ess", "bar", "standard_error", "mean_off", "sd_off", "weights", "quantiles"]
    for name in [*shown, "goals", "seconds", "alarms"]:
        if row.get(name) is not None:
            words.append(f"{name} {rounded(row[name])}")
    return " ".join(words)


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def alarms(row):
    if "failed" in row:
        return f"failed: {row['said']}"
    return ", ".join(row["alarms"]) or "none"


def short(name):
    return name.partition("-")[2] or name


def chosen(results, group, **fields):
    rows = [row for row in results.values() if row["group"] == group]
    return [row for row in rows if all(row[name] == value for name, value in fields.items())]


def beyond(found, error, truth):
    """Distance of two estimates in their joint standard error; none is as far as can be."""
    if found is None or error is None:
        return float("inf")
    return (found - truth[0]) / (error**2 + truth[1] ** 2) ** 0.5


def alarms_of(runs):
    """Alarms of several runs of one cell, each with how many raised it."""
    failed = [row for row in runs if "failed" in row]
    if failed:
        return alarms(failed[0])
    raised = collections.Counter(code for row in runs for code in row["alarms"])
    return ", ".join(f"{code} {times}" for code, times in sorted(raised.items())) or "none"


def posterior_row(runs, theirs, goal):
    """A posterior's runs in a row: medians, and the worst of what is off."""
    name, done = short(runs[0]["name"]), [row for row in runs if "failed" not in row]
    if len(done) < len(runs):
        return [name, alarms_of(runs), *["–"] * 12], None
    at, more = (theirs or {}).get("goals", {}).get(str(goal)), ""
    if not at and theirs:
        # As far as it came: whatever the goal takes is more.
        at, more = theirs, "> "
    spent = [row["evaluations"] for row in done]
    ratio = at["evaluations"] / statistics.median(spent) if at else None
    truth = cells.LOG_Z.get(runs[0]["name"])
    first = min(done, key=lambda row: row["seed"])
    away = [beyond(row["bar"], row["standard_error"], truth) for row in done] if truth else []

    def worst(field):
        return max(row[field] for row in done)

    return [
        name,
        alarms_of(runs),
        count(round(statistics.median(spent))),
        f"{count(min(spent))}–{count(max(spent))}",
        more + count(at and at["evaluations"]),
        f"{more}×{ratio:.1f}" if ratio else "–",
        count(round(min(row["ess"] for row in done))),
        seconds(statistics.median(row["seconds"] for row in done)),
        seconds(at and at["seconds"]),
        number(worst("mean_off")),
        f"{100 * worst('sd_off'):.1f} %",
        number(worst("share_off")),
        f"{number(first['bar'])} ± {number(first['standard_error'])}",
        number(max(away, key=abs), 1) if truth else "–",
    ], ratio


HEADS = ["posterior", "alarms", "evaluations", "of all seeds", "NUTS", "fewer", "ESS, least", "CPU s", "NUTS"]
HEADS += ["farthest mean, sd", "farthest sd", "farthest share", "log Z, seed 1", "from the table, s.e."]


def to_goal(goal, ours, theirs, docs):
    """Table and chart of whole runs to one goal."""
    names = sorted({row["name"] for row in ours})
    runs_of = {name: [row for row in ours if row["name"] == name] for name in names}
    made = [posterior_row(runs_of[name], theirs.get(name), goal) for name in names]
    ratios = sorted(ratio for _, ratio in made if ratio)
    parts = [f"### To ESS {goal:,}\n"]
    # A run that did not end where NUTS did is no reason to leave the posterior out: it counts as the worst.
    lost = [r["name"] for r in ours if "failed" in r and r["seed"] == 1 and str(goal) in theirs.get(r["name"], {}).get("goals", {})]
    if ratios:
        extremes = f"least ×{ratios[0]:.2f}, most ×{ratios[-1]:.0f}"
        median = statistics.median([0.0] * len(lost) + ratios)
        ended = f"; of runs that ended, {extremes}" if lost else f"; {extremes}"
        worst = f" ({', '.join(map(short, lost))}, which did not end, counted as worst)" if lost else ""
        reached = all(str(goal) in theirs[row["name"]]["goals"] for row in ours if row["name"] in theirs)
        spent = "" if reached else " (where NUTS did not get so far, than it had spent by then)"
        parts.append(f"Median: ×{median:.1f} fewer evaluations than NUTS{spent}{worst}{ended}.\n")
    drawn = []
    for name, runs in runs_of.items():
        at, done = theirs.get(name, {}).get("goals", {}).get(str(goal)), [row for row in runs if "failed" not in row]
        spent = statistics.median(row["evaluations"] for row in done) if done else None
        drawn.append((short(name), spent, at and at["evaluations"]))
    file = docs / "posteriors" / f"evaluations-{goal}.svg"
    file.write_text(charts.pairs(f"Evaluations to ESS {goal:,}", drawn))
    words = f"Evaluations of sterna and of NUTS to ESS {goal:,}, posterior by posterior: the numbers of the table"
    parts += [f'<img src="posteriors/{file.name}" alt="{words}">\n', table(HEADS, [row for row, _ in made])]
    name, folders = ours[0]["name"], "--posteriors FOLDER --models FOLDER"
    again = f"`{COMMAND} {folders} --cell posteriors/{name}/{goal}/1`"
    return [*parts, f"{again}, and `--stan PYTHON --cell nuts/{name}/{max(cells.GOALS)}/1`\n"]


def of_posteriors(results, docs):
    theirs = {row["name"]: row for row in chosen(results, "nuts") if "failed" not in row}
    parts = ["## Twelve posteriors of Stan's database\n"]
    for goal in cells.GOALS:
        ours = chosen(results, "posteriors", goal=goal)
        parts += to_goal(goal, ours, theirs, docs) if ours else []
    warned = [f"{short(n)} ({row['divergent']})" for n, row in theirs.items() if row["divergent"]]
    if warned:
        parts.append("Divergences of NUTS: " + ", ".join(warned) + ".\n")
    for goal in cells.GOALS:
        short_of = [row for row in theirs.values() if str(goal) not in row["goals"]]
        names = [f"{short(row['name'])} (ESS {row['ess']:,.0f}, {row['draws']:,} draws a chain)" for row in short_of]
        if names:
            parts.append(f"NUTS did not reach ESS {goal:,} on " + ", ".join(names) + ".\n")
    return parts


def of_modes(results):
    rows = []
    for row in sorted(chosen(results, "modes"), key=lambda row: (row["name"], row["goal"], row["seed"])):
        head = [row["name"], str(row["seed"]), count(row["goal"]), alarms(row)]
        if "failed" in row:
            rows.append([*head, *["–"] * 5])
            continue
        weights = row.get("weights", [])
        off = max((abs(w - 1 / len(weights)) for w in weights), default=None)
        shown = " ".join(number(w) for w in weights) or "–"
        estimate = f"{number(row['bar'])} ± {number(row['standard_error'])}"
        truth = cells.LOG_Z_OF_MODES.get(row["name"])
        away = number(beyond(row["bar"], row["standard_error"], truth), 1) if truth else "–"
        rows.append([*head, count(row["evaluations"]), shown, number(off), estimate, away])
    heads = ["target", "seed", "ESS wanted", "alarms", "evaluations", "weights", "farthest from equal", "log Z"]
    heads.append("from the truth, s.e.")
    words = """## Several modes

Exchanging the two rates of the mRNA model, or the three components of the galaxies' mixture, leaves the posterior as
it is: modes weigh the same. Two unit normals lie at 0 and at (10, …, 10) in 5 dimensions, eight at the corners of a
cube of side 40; their log Z is 0. That of the mRNA model is 19.530 ± 0.002 by importance sampling of one mode.
"""
    return [words, table(heads, rows), f"`{COMMAND} --cell modes/mrna/1000/1`\n"] if rows else []


def of_places(results):
    rows = []
    for row in chosen(results, "places"):
        head = [row["name"], alarms(row)]
        if "failed" in row:
            rows.append([*head, *["–"] * 5])
            continue
        estimate = f"{number(row['bar'])} ± {number(row['standard_error'])}"
        shown = [number(row.get("mean_off")), number(row.get("sd_off"))]
        rows.append([*head, str(row["chains"]), count(row["evaluations"]), *shown, estimate])
    heads = ["normal", "alarms", "chains", "evaluations", "farthest mean, sd", "farthest sd, relative"]
    heads.append("log Z (truth: 0)")
    return ["## Far, wide, narrow\n", table(heads, rows), f"`{COMMAND} --cell 'places/width 1000/1000/1'`\n"] if rows else []


def of_calibration(results, docs):
    rows, drawn = [], []
    for name in cells.CALIBRATED:
        runs = [row for row in chosen(results, "calibration", name=name) if "failed" not in row]
        if len(runs) < 2:
            continue
        z = [beyond(row["bar"], row["standard_error"], (row["truth"], 0.0)) for row in runs]
        alarmed = sum(bool(row["alarms"]) for row in runs)
        spent = statistics.median(row["evaluations"] for row in runs)
        farthest = max(z, key=abs)
        shown = [number(statistics.mean(z), 2), number(statistics.stdev(z), 2), number(farthest, 1)]
        rows.append([name, str(len(z)), *shown, count(round(spent)), str(alarmed)])
        drawn.append((name, z))
    if not rows:
        return []
    file = docs / "posteriors" / "calibration.svg"
    file.write_text(charts.strips("log Z over seeds", drawn))
    heads = ["target", "seeds", "mean of z", "sd of z", "farthest z", "evaluations, median", "runs with alarms"]
    words = """## Is the error of log Z what it says?

z is the error of log Z in its own standard error, over seeds, on targets whose log Z is known. These are the paper's,
whose default is its reference N(0, I); here they are run as a user's target is, by `reference.kind=fitted`
(many-well to ESS 100, so that alarms about few draws ring). The sd of 40 z-scores of normals lies within 0.8 to 1.25 but for 5 % of the times.
"""
    image = '<img src="posteriors/calibration.svg" alt="z-scores of log Z, target by target: the numbers of the table">\n'
    parts = [words, image, table(heads, rows), f"`{COMMAND} --cell calibration/funnel/1000/1`\n"]
    return parts + of_neck(results)


def of_neck(results):
    runs = [row for row in chosen(results, "calibration", name="funnel") if row.get("quantiles")]
    if not runs:
        return []
    levels = list(runs[0]["quantiles"])
    means = [statistics.mean(row["quantiles"][level] for row in runs) for level in levels]
    off = [max(abs(row["quantiles"][level] - float(level)) for row in runs) for level in levels]
    rows = [
        ["exact", *levels],
        ["mean over seeds", *[number(m) for m in means]],
        ["farthest of a seed", *[number(o) for o in off]],
    ]
    words = f"The neck of the funnel (10 dimensions, scale 3), {len(runs)} seeds: draws below exact quantiles.\n"
    return [words, table(["", *[""] * len(levels)], rows)]


def held(ours, says, holds):
    """A line of the summary: of how many runs something holds, and of which it does not."""
    fine = [row for row in ours if "failed" not in row and holds(row)]
    not_so = sorted({short(row["name"]) for row in ours if row not in fine})
    return f"- {says}: {len(fine)} of {len(ours)} runs" + (f"; not so: {', '.join(not_so)}." if not_so else ".")


def in_short(results):
    """What holds and what does not, before any table."""
    ours, modes = chosen(results, "posteriors"), chosen(results, "modes")
    lines = [held(ours, "Posteriors without an alarm", lambda row: not row["alarms"])] if ours else []
    if ours:
        lines.append(held(ours, "means within 0.1 standard deviations", lambda row: row["mean_off"] < 0.1))
        lines.append(held(ours, "standard deviations within 10 %", lambda row: row["sd_off"] < 0.1))

        def agrees(row):
            return abs(beyond(row["bar"], row["standard_error"], cells.LOG_Z[row["name"]])) < 4

        lines.append(held(ours, "log Z within 4 standard errors of the table", agrees))
        most = cells.MOST_EVALUATIONS
        to_first = [row for row in ours if row["goal"] == cells.GOALS[0]]
        lines.append(held(to_first, f"at most {most:,} evaluations to ESS 1,000", lambda row: row["evaluations"] <= most))
    known = [row for row in modes if row["name"] in cells.LOG_Z_OF_MODES]
    if known:

        def is_right(row):
            return abs(beyond(row["bar"], row["standard_error"], cells.LOG_Z_OF_MODES[row["name"]])) < 4

        def is_even(row):
            bound = 0.02 if row["name"] == "galaxies" else 0.03
            weights = row.get("weights", [])
            return all(abs(weight - 1 / len(weights)) < bound for weight in weights)

        lines.append(held(known, "log Z of targets with several modes within 4 standard errors", is_right))
        lines.append(held(modes, "their weights right (0.03; galaxies 0.02)", is_even))
    return ["## In short\n", "\n".join(lines) + "\n"] if lines else []


def of_programs(results):
    """Which program made which cells, where it was not one for all."""
    made = {}
    for row in results.values():
        if row["group"] != "nuts":
            made.setdefault(row["program"], set()).add(row["key"])
    if len(made) < 2:
        return []
    lines = [
        "## Not all of one program\n",
        "Cells, with how many goals and seeds, by the program (start of its SHA-256) that made them; a run of the command makes all by one.\n",
    ]
    for program, keys in made.items():
        # GROUP/NAME, without goals and seeds.
        names = collections.Counter(key.rsplit("/", 2)[0] for key in keys)
        lines.append(f"- `{program}`: {', '.join(f'{name} ({count})' for name, count in sorted(names.items()))}.")
    return ["\n".join(lines) + "\n"]


def write(results, docs):
    (docs / "posteriors").mkdir(parents=True, exist_ok=True)
    parts = [
        INTRODUCTION.format(command=COMMAND),
        *in_short(results),
        *of_posteriors(results, docs),
        *of_modes(results),
    ]
    parts += [*of_places(results), *of_calibration(results, docs), *of_programs(results)]
    (docs / "posteriors.md").write_text("\n".join(parts))
