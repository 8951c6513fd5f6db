"""What docs/comparison.md says first: one table of wins and one of losses, from the rows alone."""

import dataclasses
import statistics

from cases import TOLD
from physical import WRONG_MEAN, keeps_sign, of_group, of_posteriors, pooled, to_a_thousand
from words import count, ended, for_a_tenth, good, median, number, off, rows_of, table

# What stands for the program: told the target alone, and with the reference that targets without a prior of their own get.
OURS = ("sterna", "sterna fitted")
BASELINES = ("sterna ais", "sterna smc")
# Weights of modes that are off by more are wrong.
RIGHT_WEIGHTS = 0.05


HOW_TO_READ = """Of each case: what one result costs, ours beside the program that needs the fewest evaluations for it. `sterna` is told the target alone; `sterna fitted` is
explained below. Nested and ensemble samplers ask for no gradient, all others here do. Processor seconds are those of the fastest other.
"""


@dataclasses.dataclass(frozen=True)
class Contest:
    """What one result costs, ours and the best other's: evaluations, and processor seconds where both are known."""

    case: str
    result: str
    ours: str
    own: tuple
    other: str
    theirs: tuple
    # Beyond the numbers.
    word: str = ""

    def times(self, k):
        return self.theirs[k] / self.own[k] if self.own[k] and self.theirs[k] else None


def times(x):
    return "–" if x is None else f"×{count(x)}"


def evidence_of(results):
    """Cases with {program: (evaluations, seconds) for an error of 0.1}."""
    found = []
    for case in of_group("evidence"):
        rows = {p: ended(rows_of(results, case, p)) for p in case.programs}
        costs = {p: tuple(for_a_tenth(case, r, cost) for cost in ("evaluations", "processor_s")) for p, r in rows.items() if r}
        found.append((case, costs))
    return found


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
    said = f"- `{program}`: log Z within 4 of its standard errors in {right} of {runs} runs"
    return [said + (f"; not so: {', '.join(beyond)}." if beyond else ".")] if runs else []


def all_lose(results, case):
    """Whether every program has the weight of a mode wrong by far unless it is told where to look: such an error does not fall with the cost."""
    rows = [row for p in case.programs if p != TOLD for row in good(rows_of(results, case, p)) if "mode_error" in row]
    return bool(rows) and min(row["mode_error"] for row in rows) > 0.2


def of_evidence(results):
    found = []
    for case, costs in evidence_of(results):
        others = {p: c for p, c in costs.items() if not p.startswith("sterna") and c[0]}
        if all_lose(results, case) or not others:
            continue
        best = min(others, key=lambda p: others[p][0])
        fastest = min((c[1] for c in others.values() if c[1]), default=None)
        for ours in OURS:
            if ours in costs and costs[ours][0]:
                found.append(Contest(case.name, "log Z to ± 0.1", ours, costs[ours], best, (others[best][0], fastest)))
    return found


def of_posterior(results):
    found = []
    for case in of_group("posterior"):
        rows = {p: good(rows_of(results, case, p)) for p in case.programs}
        right = {p: r for p, r in rows.items() if r and max(row["mode_error"] for row in r) <= RIGHT_WEIGHTS}
        each = {p: tuple(median(r, cost) / median(r, "ess") for cost in ("evaluations", "processor_s")) for p, r in right.items()}
        own = each.pop("sterna", None)
        if own is None:
            continue
        wrong = [f"{p} {number(max(row['mode_error'] for row in r), 2)}" for p, r in rows.items() if r and p not in right]
        word = f"weights of modes off: {', '.join(wrong)}" if wrong else ""
        best = min(each, key=lambda p: each[p][0], default="none has the weights of modes right")
        found.append(Contest(case.name, "an effective draw", "sterna", own, best, each.get(best, (None, None)), word))
    return found


def of_database(results, docs):
    """Each posterior of Stan's database: to ESS 1,000, where dynesty ends by itself beyond it."""
    found, known = [], of_posteriors(docs)
    for case in of_group("database"):
        own, others = to_a_thousand(results, known, case)
        others = {p: cost for p, cost in others.items() if cost}
        if others:
            best = min(others, key=others.get)
            found.append(Contest(case.name, "ESS 1,000", "sterna", (own, None), best, (others[best], None), off_by_far(results, case, own)))
    return found


def off_by_far(results, case, own):
    """Who ends sooner than ours with a mean that is wrong."""
    said = []
    for program in ("nutpie", "dynesty"):
        rows = [row for row in good(rows_of(results, case, program)) if row["mean_off"] > WRONG_MEAN and row["evaluations"] < own]
        if rows:
            worst = max(rows, key=lambda row: row["mean_off"])
            said.append(f"{program}, after {count(worst['evaluations'])}, has a mean off by {number(worst['mean_off'], 2)} sd")
    return "; ".join(said)


def of_physics(results):
    found = []
    for case in of_group("lattice"):
        rows = {p: good(rows_of(results, case, p)) for p in case.programs}
        for name, word in (("|M|", "abs M"), ("sign M", "sign M")):
            each = {p: pooled(r, name)[2] for p, r in rows.items() if r and not (name == "sign M" and keeps_sign(r))}
            own = each.pop("sterna", None)
            if own and len(rows["hmc"]):
                best = min(each, key=each.get, default="plain HMC never changes it")
                found.append(Contest(case.name, f"an effective {word}", "sterna", (own, None), best, (each.get(best), None)))
    for case in of_group("molecule"):
        rows = {p: good(rows_of(results, case, p)) for p in case.programs}
        each = {p: tuple(sum(row[c] for row in r) / sum(row["ess"] for row in r) for c in ("evaluations", "processor_s")) for p, r in rows.items() if r}
        other = each.pop("openmm replica exchange", None)
        if each and other and other == other:
            best = min(each, key=lambda p: each[p][0])
            found.append(Contest(case.name, "an effective draw of C7ax", best, each[best], "openmm replica exchange", other))
    return found


def contests(results, docs):
    return of_evidence(results) + of_posterior(results) + of_database(results, docs) + of_physics(results)


def wins_and_losses(found):
    """Those in which nobody needs fewer evaluations, and the rest."""
    lost = [c for c in found if c.times(0) is not None and c.times(0) < 1]
    return [c for c in found if c not in lost], lost


def contest_table(found, more):
    """`more` says how many times as many evaluations the loser takes: the other, or ours."""
    lines = []
    for c in found:
        ratios = [c.times(k) for k in (0, 1)]
        if more == "ours":
            ratios = [r and 1 / r for r in ratios]
        other = f"{c.other} {count(c.theirs[0])}" if c.theirs[0] else c.other
        lines.append([c.case, c.result, f"{c.ours} {count(c.own[0])}", other, times(ratios[0]), times(ratios[1]), c.word])
    heads = ["case", "result", "ours, evaluations", "best other, evaluations", "times as many", "… processor s", "beside"]
    return table(heads, lines)


def plain_words(results):
    """What no table of costs can say."""
    said = [line for program in OURS for line in told_apart(results, program)]
    for case in of_group("evidence"):
        if all_lose(results, case):
            word = f"- {case.name}: no program here, sterna among them, finds the narrow mode; its cost for an error of 0.1 means nothing."
            told = good(rows_of(results, case, TOLD))
            if told:
                wrong, warned = beyond_four(case, told)
                word += f" Told about where it lies, sterna has log Z right in {len(told) - wrong} of {len(told)} runs"
                word += f"; {warned} of the {wrong} that have not would have warned a user." if wrong else "."
            said.append(word)
    for k, unit in enumerate(("evaluations", "processor seconds")):
        names = [case.name for case, costs in evidence_of(results) if not all_lose(results, case) and own_baseline_wins(costs, k)]
        if names:
            said.append(f"- Sterna's own `baseline smc` or `ais`, which raises no alarms, takes fewer {unit} than `sterna run` on {', '.join(names)}.")
    for case in of_group("cluster"):
        rows = good(rows_of(results, case, "sterna"))
        if rows and all(row["verdict"] == "unsound" for row in rows):
            said.append(f"- {case.name}: no round trip, no log Z, and the runs say so (unsound); plain HMC has the energies for fewer evaluations.")
    return said


def own_baseline_wins(costs, k):
    ours = costs.get("sterna", (None, None))[k]
    return ours and any(costs[p][k] and costs[p][k] < ours for p in BASELINES if p in costs)


def in_a_sentence(won, lost):
    """Numbers of both tables, for those who read no further."""
    known = [c.times(0) for c in won if c.times(0)]
    if not known:
        return ""
    middle = statistics.median(known)
    words = f"In {len(won)} of {len(won) + len(lost)} results below nobody takes fewer evaluations than sterna"
    return f"{words} (where another has the result at all, {times(middle)} as many in the median); in {len(lost)} another program takes fewer.\n"


def section(results, docs):
    won, lost = wins_and_losses(contests(results, docs))
    parts = ["## In short\n", in_a_sentence(won, lost)]
    parts += [HOW_TO_READ, "Nobody takes fewer (×: what the best other takes, by what ours takes):\n", contest_table(won, "theirs")]
    parts += ["Another takes fewer (×: what ours takes, by what the other takes; below 1 ours is the faster):\n", contest_table(lost, "ours")]
    return "\n".join([*parts, "What costs do not tell:\n", *plain_words(results), ""])
