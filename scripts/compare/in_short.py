"""What docs/comparison.md says first: wins and losses, from the rows alone."""

from cases import TOLD
from physical import keeps_sign, of_group, of_posteriors, pooled
from words import count, ended, for_a_tenth, good, median, number, off, rows_of, table


def evidence_of(results):
    """Cases with {program: (evaluations, seconds) for an error of 0.1}."""
    found = []
    for case in of_group("evidence"):
        rows = {p: ended(rows_of(results, case, p)) for p in case.programs}
        costs = {p: tuple(for_a_tenth(case, r, cost) for cost in ("evaluations", "processor_s")) for p, r in rows.items() if r}
        found.append((case, costs))
    return found


# What stands for the program: told the target alone, and with the reference that targets without a prior of their own get.
OURS = ("sterna", "sterna fitted")
BASELINES = ("sterna ais", "sterna smc")


def times(x):
    return f"×{count(x)}"


def beyond_four(case, rows):
    """How many runs have log Z wrong by more than four of its errors, and how many of those raise an alarm that needs no truth, which no user's
    target knows."""
    wrong = [row for row in rows if abs(row["log_z"] - off(case, rows)[1]) > 4 * row["log_z_error"]]
    return len(wrong), sum(bool(set(row["alarms"]) - {"truth-missed"}) for row in wrong)


def told_apart(results, program):
    """How many runs of ours have log Z right, and which have not."""
    right, runs, beyond = 0, 0, []
    for case in of_group("evidence"):
        rows = good(rows_of(results, case, program))
        if rows:
            wrong, told = beyond_four(case, rows)
            runs, right = runs + len(rows), right + len(rows) - wrong
            if wrong:
                warned = f"{told} of them" if told else "none of them"
                beyond.append(f"{case.name} in {wrong} of {len(rows)}, and {warned} would have warned a user, whose target does not know its truth")
    said = f"- {program}: log Z within 4 of its standard errors in {right} of {runs} runs"
    return [said + (f"; not so: {', '.join(beyond)}." if beyond else ".")] if runs else []


def of_evidence(results):
    said = [line for program in OURS for line in told_apart(results, program)]
    known = [(case, costs) for case, costs in evidence_of(results) if "sterna" in costs and not all_lose(results, case)]
    tables = []
    for k, unit in enumerate(("evaluations", "processor seconds")):
        lines = [[case.name, *beside(costs, k)] for case, costs in known]
        heads = [f"for an error of 0.1 in log Z, {unit}", *OURS, "best other", *(f"other/{program}" for program in OURS)]
        tables += [table(heads, lines)] if lines else []
    return [*said, "", *tables]


def beside(costs, k):
    """What ours cost, the best other's cost, and how many times as much that one is."""
    ours = [costs[p][k] if p in costs else None for p in OURS]
    others = {p: c[k] for p, c in costs.items() if not p.startswith("sterna") and c[k]}
    best = min(others, key=others.get, default=None)
    named = f"{best} {count(others[best])}" if best else "–"
    return [*map(count, ours), named, *(times(others[best] / own) if best and own else "–" for own in ours)]


def of_posterior(results, docs):
    said = []
    for case in of_group("posterior"):
        ours = good(rows_of(results, case, "sterna"))
        if not ours:
            continue
        worst = {p: max(row["mode_error"] for row in good(rows_of(results, case, p)) or [{"mode_error": 0}]) for p in case.programs}
        lost = [f"{p} {number(worst[p], 2)}" for p in case.programs if worst[p] > 0.05]
        each = 1e3 * median(ours, "ess") / median(ours, "evaluations")
        word = f"- {case.name}: mode weights within {number(worst['sterna'], 3)}, {count(each)} effective draws for 1,000 evaluations"
        said.append(word + (f"; weights of others off by {', '.join(lost)}." if lost else "."))
    known, gains = of_posteriors(docs), []
    for case in of_group("database"):
        name = case.target["name"]
        pies = good(rows_of(results, case, "nutpie"))
        if pies and pies[0]["to_1000"]:
            gains.append(pies[0]["to_1000"] / known[f"posteriors/{name}/1000/1"]["evaluations"])
    if gains:
        gains.sort()
        said.append(
            f"- Posteriors of Stan's database: nutpie needs {times(gains[0])} to {times(gains[-1])} as many evaluations to ESS 1,000, {times(gains[len(gains) // 2])} in the "
            f"median of {len(gains)}; Stan's NUTS stands in [posteriors.md](posteriors.md)."
        )
    return said


def of_physics(results):
    said = []
    for case in of_group("lattice"):
        ours, theirs = (good(rows_of(results, case, p)) for p in ("sterna", "hmc"))
        if ours and theirs:
            own, other = (pooled(rows, "sign M")[2] for rows in (ours, theirs))
            if keeps_sign(theirs):
                said.append(f"- {case.name}: no chain of plain HMC changes the sign of M; an effective sign takes {count(own)} evaluations here.")
            elif own < other:
                said.append(f"- {case.name}: {times(other / own)} fewer evaluations for an effective sign of M than plain HMC.")
    for case in of_group("molecule"):
        ours = {p: good(rows_of(results, case, p)) for p in case.programs}
        each = {p: sum(r["evaluations"] for r in rows) / sum(r["ess"] for r in rows) for p, rows in ours.items() if rows}
        other = each.pop("openmm replica exchange", None)
        if each and other and other == other:
            best = min(each, key=each.get)
            said.append(f"- {case.name}: {best} needs {times(other / each[best])} fewer evaluations of forces for an effective draw of C7ax than replica exchange by openmmtools.")
    return said


def all_lose(results, case):
    """Whether every program has the weight of a mode wrong by far unless it is told where to look: such an error does not fall with the cost."""
    rows = [row for p in case.programs if p != TOLD for row in good(rows_of(results, case, p)) if "mode_error" in row]
    return bool(rows) and min(row["mode_error"] for row in rows) > 0.2


def losses(results, docs):
    """Where another program was better, a line a case."""
    said = []
    own = [[], []]
    for case, costs in evidence_of(results):
        ours, words = costs.get("sterna"), []
        if all_lose(results, case):
            word = f"- {case.name}: no program here, sterna among them, finds the narrow mode; its cost for an error of 0.1 means nothing."
            told = good(rows_of(results, case, TOLD))
            if told:
                wrong, warned = beyond_four(case, told)
                word += f" Told about where it lies, sterna has log Z right in {len(told) - wrong} of {len(told)} runs"
                word += f"; {warned} of the {wrong} that have not would have warned a user." if wrong else "."
            said.append(word)
            continue
        for k, unit in enumerate(("evaluations", "processor seconds")):
            better = {p: c[k] for p, c in costs.items() if ours and p not in OURS and c[k] and ours[k] and c[k] < ours[k]}
            own[k] += [case.name] if any(p in BASELINES for p in better) else []
            named = [f"{p} {count(c)}" for p, c in sorted(better.items(), key=lambda pc: pc[1]) if p not in BASELINES]
            own_words = [f"{p} {count(costs[p][k])}" for p in OURS if p in costs]
            words += [f"{unit}: {', '.join([*named, *own_words])}"] if named else []
        if words:
            said.append(f"- {case.name}, for an error of 0.1 in log Z, in {'; in '.join(words)}.")
    for names, unit in zip(own, ("evaluations", "processor seconds"), strict=True):
        if names:
            said.append(f"- Sterna's own `baseline smc` or `ais`, which raises no alarms, takes fewer {unit} on {', '.join(names)}.")
    for case in of_group("posterior"):
        ours = good(rows_of(results, case, "sterna"))
        for program in case.programs[1:]:
            rows = good(rows_of(results, case, program))
            if ours and rows:
                own, theirs = (median(r, "ess") / median(r, "evaluations") for r in (ours, rows))
                if theirs > own:
                    worst = max(row["mode_error"] for row in rows)
                    said.append(
                        f"- {case.name}: {program} has {times(theirs / own)} as many effective draws for an evaluation (its mode weights are off by up to {number(worst, 2)})."
                    )
    known = of_posteriors(docs)
    for case in of_group("database"):
        ours = known[f"posteriors/{case.target['name']}/1000/1"]["evaluations"]
        rows = [row for row in good(rows_of(results, case, "dynesty")) if row["ess"] >= 1000]
        if rows and rows[0]["evaluations"] < ours:
            said.append(f"- {case.name}: dynesty has ESS {count(rows[0]['ess'])} after {count(rows[0]['evaluations'])} evaluations, without gradients; sterna takes {count(ours)} to ESS 1,000.")
    for case in of_group("lattice"):
        ours, theirs = (good(rows_of(results, case, p)) for p in ("sterna", "hmc"))
        words = []
        for name in ("|M|", "sign M"):
            if ours and theirs and not (name == "sign M" and keeps_sign(theirs)):
                own, other = (pooled(rows, name)[2] for rows in (ours, theirs))
                if other < own:
                    words.append(f"{times(own / other)} for {name.replace('|M|', 'abs M')}")
        if words:
            said.append(f"- {case.name}: plain HMC needs fewer evaluations for an effective draw, {', '.join(words)}.")
    for case in of_group("cluster"):
        rows = good(rows_of(results, case, "sterna"))
        if rows and all(row["verdict"] == "unsound" for row in rows):
            said.append(f"- {case.name}: no round trip, no log Z, and the runs say so (unsound); plain HMC has the energies for fewer evaluations.")
    return said


def section(results, docs):
    wins = of_evidence(results) + of_posterior(results, docs) + of_physics(results)
    lost = losses(results, docs)
    return "\n".join(["## In short\n", *wins, "\nWhere others did better:\n", *(lost or ["- nowhere of what was measured."]), ""])
