"""Tables of lattices, clusters, a molecule and the posteriors of Stan's database."""

import itertools
import json
import math
import pathlib
import statistics

import cases
from physics import CHAINS, distance
from words import commands, count, good, median, missing, number, rows_of, seconds, table

# Published distances of energies, 1,000 samples each.
PUBLISHED = {
    "lj-13": "ASBS 1.99, PDNS 1.01, Flow Sampling 0.97; plain MCMC 0.52",
    "lj-55": "iDEM 93.5, AS 30.8, ASBS 28.1, PDNS 21.97, Flow Sampling 21.3; plain MCMC 0.87",
}
# Seeds that are told one by one.
FEW = 3
# Means that are farther off, in standard deviations, are wrong.
WRONG_MEAN = 0.1
# Whose energies stand for the truth: another program's, which knows nothing of ladders.
TRUTH = "hmc"


def of_group(group):
    return [case for case in cases.CASES if case.group == group]


def pooled(rows, name):
    """Mean over seeds with its error, and evaluations for an effective draw, of an observable."""
    seen = [row["observables"][name] for row in rows]
    mean = statistics.mean(one["mean"] for one in seen)
    error = math.sqrt(sum(one["error"] ** 2 for one in seen)) / len(seen)
    effective = sum(one.get("ess", 0) for one in seen)
    each = sum(row["evaluations"] for row in rows) / effective if effective else None
    time = statistics.mean(one["time"] for one in seen if "time" in one) if any("time" in one for one in seen) else None
    return mean, error, each, time


def keeps_sign(rows):
    """Fewer effective signs than there are chains side by side: none has changed."""
    return all(row["program"].startswith("hmc") and row["observables"]["sign M"]["ess"] < CHAINS for row in rows)


def lattices(results):
    lines = []
    for case in of_group("lattice"):
        for program in case.programs:
            fine = good(rows_of(results, case, program))
            if not fine:
                lines.append([case.name, program, *["–"] * 9, missing(case, program, rows_of(results, case, program))])
                continue

            def shown(name, digits, fine=fine):
                mean, error, *_ = pooled(fine, name)
                return f"{number(mean, digits)} ± {number(error, digits)}"

            *_, each, time = pooled(fine, "|M|")
            *_, each_sign, time_sign = pooled(fine, "sign M")
            if keeps_sign(fine):
                time_sign = each_sign = None
            chains = median(fine, "chains")
            verdicts = ", ".join(sorted({row["verdict"] for row in fine if "verdict" in row}))
            lines.append([
                case.name, program, len(fine), shown("|M|", 4), shown("susceptibility", 3), shown("sign M", 3), count(time), count(time_sign),
                count(each), count(each_sign), seconds(fine), "; ".join([f"{chains:.0f} chains", verdicts] if chains else ["chains keep the sign that they began with"] if keeps_sign(fine) else []),
            ])  # fmt: skip
    heads = ["lattice", "program", "seeds", "⟨abs M⟩", "susceptibility", "⟨sign M⟩", "draws an effective abs M", "… sign M"]
    return table([*heads, "evaluations an effective abs M", "… sign M", "processor s", "what to know"], lines)


def told(rows):
    words = []
    known = [row for row in rows if "log_z" in row]
    trips = [row["round_trips"] for row in rows if "round_trips" in row]
    verdicts = [row["verdict"] for row in rows if "verdict" in row]
    if len(known) > FEW:
        spread = [row["log_z"] for row in known]
        words.append(f"log Z {number(statistics.mean(spread), 2)}, seeds scatter by {number(statistics.stdev(spread), 2)}")
        words += [f"round trips {count(min(trips))} to {count(max(trips))}"] if trips else []
        words += [", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))] if verdicts else []
        return "; ".join(words)
    if known:
        words.append("log Z " + ", ".join(f"{number(row['log_z'], 2)} ± {number(row['log_z_error'], 2)}" for row in known))
    if trips:
        words.append("round trips " + ", ".join(map(count, trips)))
    if verdicts:
        words.append(", ".join(verdicts))
    return "; ".join(words)


def typical(numbers):
    return statistics.mean(numbers) if numbers else None


def energies_together(rows):
    """⟨E⟩ of all seeds."""
    seen = [row["energy"] for row in rows if "energy" in row]
    if not seen:
        return number(statistics.mean(e for row in rows for e in row["energies"]), 2)
    error = math.sqrt(sum(one["error"] ** 2 for one in seen)) / len(seen)
    return f"{number(statistics.mean(one['mean'] for one in seen), 2)} ± {number(error, 2)}"


def clusters(results):
    lines = []
    for case in of_group("cluster"):
        every = {p: good(rows_of(results, case, p)) for p in case.programs}
        truths = every[TRUTH]
        floor = typical([distance(a["energies"], b["energies"]) for a, b in itertools.combinations(truths, 2)])
        for program, rows in every.items():
            all_rows = rows_of(results, case, program)
            if not rows:
                lines.append([case.name, program, *["–"] * 7, missing(case, program, all_rows)])
                continue
            each = [typical([distance(row["energies"], other["energies"]) for other in truths if other is not row]) for row in rows]
            each = [w2 for w2 in each if w2 is not None]
            failed = [f"{len(all_rows) - len(rows)} more failed: {row['failed'].split(';')[0]}" for row in all_rows if "failed" in row][:1]
            w2 = typical(each)
            scatter = statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else None
            lines.append([
                case.name, program, len(rows), energies_together(rows), number(w2, 2) + (f" ± {number(scatter, 2)}" if scatter else ""), number(floor, 2),
                f"×{w2 / floor:.2f}" if w2 and floor else "–", count(median(rows, "evaluations")), seconds(rows), "; ".join([told(rows), *failed]).strip("; "),
            ])  # fmt: skip
    heads = ["cluster", "program", "seeds", "⟨E⟩", "W₂ of energies to the truth", "of two truths", "ratio", "evaluations", "processor s", "what to know"]
    return table(heads, lines)


def molecule(results, case):
    lines = []
    for program in case.programs:
        rows = good(rows_of(results, case, program))
        if not rows:
            lines.append([program, *["–"] * 7, missing(case, program, rows_of(results, case, program))])
            continue

        def shown(name, rows=rows):
            return "<br>".join(f"{number(row['basins'][name]['mean'])} ± {number(row['basins'][name]['error'])}" for row in rows)

        effective = [row["ess"] for row in rows if row["ess"] == row["ess"]]
        each = sum(row["evaluations"] for row in rows) / sum(effective) if len(effective) == len(rows) else None
        verdicts = ", ".join(row["verdict"] for row in rows if "verdict" in row)
        lines.append([
            program, len(rows), shown("C7eq"), shown("C5"), shown("C7ax"), count(median(rows, "evaluations")), count(each), seconds(rows),
            "; ".join(["round trips " + ", ".join(count(row["round_trips"]) for row in rows), *([verdicts] if verdicts else [])]),
        ])  # fmt: skip
    heads = ["program", "seeds", "C7eq", "C5", "C7ax", "evaluations of forces", "for an effective draw of C7ax", "processor s", "what to know"]
    return table(heads, lines)


def of_posteriors(root):
    """Rows of docs/posteriors: sterna and Stan's NUTS, to ESS 1,000."""
    lines = (root / "posteriors" / "results.jsonl").read_text().splitlines()
    return {row["key"]: row for row in map(json.loads, lines)}


def to_a_thousand(results, known, case):
    """Evaluations of sterna to ESS 1,000 and {program: its own}, medians over seeds: None where a program ends short of it, or has means that
    are off by a tenth of a standard deviation."""
    name = case.target["name"]
    own = statistics.median(row["evaluations"] for key, row in known.items() if key.startswith(f"posteriors/{name}/1000/"))
    nuts = known.get(f"nuts/{name}/5000/1", {}).get("goals", {}).get("1000")
    others = {"Stan's NUTS": nuts and nuts["evaluations"]}
    for program in ("nutpie", "dynesty"):
        rows = good(rows_of(results, case, program))
        enough = [row.get("to_1000") if program == "nutpie" else row["evaluations"] if row["ess"] >= 1000 else None for row in rows]
        right = rows and all(row["mean_off"] <= WRONG_MEAN for row in rows)
        others[program] = statistics.median(enough) if right and all(enough) else None
    return own, others


def database(results, docs):
    known, lines = of_posteriors(pathlib.Path(docs)), []
    for case in of_group("database"):
        name = case.target["name"]
        own, others = to_a_thousand(results, known, case)
        mine = known[f"posteriors/{name}/1000/1"]
        nuts = known.get(f"nuts/{name}/5000/1", {})
        pies, nested = (good(rows_of(results, case, p)) for p in ("nutpie", "dynesty"))
        worst = [max((row["mean_off"] for row in rows), default=None) for rows in ([mine], [nuts] if nuts else [], pies, nested)]
        off = [number(x, 2) for x in worst]
        said = [f"nutpie: {missing(case, 'nutpie', rows_of(results, case, 'nutpie'))}"] if not pies else []
        short = [row for row in pies if not row["to_1000"]]
        if short:
            said.append(f"nutpie: ESS {count(short[0]['ess'])} after {count(short[0]['evaluations'])} in {len(short)} of {len(pies)} seeds")
        if nested:
            row = nested[0]
            said.append(f"log Z {number(mine['bar'], 2)} ± {number(mine['standard_error'], 2)}, dynesty {number(row['log_z'], 2)} ± {number(row['log_z_error'], 2)}")
        else:
            said.append(f"dynesty: {missing(case, 'dynesty', rows_of(results, case, 'dynesty'))}")
        evaluations = f"{count(median(nested, 'evaluations'))} ({count(median(nested, 'ess'))})" if nested else "–"
        to_thousand = "–" if short or not pies else count(median(pies, "to_1000"))
        seeds = f"{len(pies)} / {len(nested)}"
        lines.append([case.name, count(own), count(others["Stan's NUTS"]), to_thousand, evaluations, seeds, " / ".join(off), "; ".join(said)])
    heads = ["posterior", "sterna", "Stan's NUTS", "nutpie", "dynesty, its ESS in brackets", "seeds of nutpie / dynesty"]
    return table([*heads, "farthest mean, sd", "what to know"], lines)


def parts(results, docs):
    """The sections of physics."""
    published = table(["cluster", "W₂ of energies, published"], [[name, words] for name, words in PUBLISHED.items()])
    found = ["### Lennard-Jones clusters\n", clusters(results), published]
    found += [commands(results, case) for case in of_group("cluster")]
    found += ["### Lattice φ⁴\n", lattices(results), *[commands(results, case) for case in of_group("lattice")]]
    for case in of_group("molecule"):
        found += ["### Alanine dipeptide\n", molecule(results, case), commands(results, case)]
    return found
