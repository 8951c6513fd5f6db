"""A model of messages and waiting: what share of their time ranks work, up to 4,096 of them, and where that breaks.

    python scripts/measure/clusters/model.py --chart docs/book/clusters-model.svg

Rows sit on ranks, evaluations take times with a spread, messages arrive after a latency, and swaps happen as in the program: even and odd
pairs in turns, half of them accepted. Three rules say when a rank may begin its next iteration:

    all       once it has heard all ranks of its ladder: what a collective call would do;
    program   once it has heard the partners of its own rows, and all others of the iteration before: what the program does;
    partners  once it has heard the partners of its own rows: the least that the same bits allow.

Ladders know nothing of each other, but at the end of each block of iterations all ranks wait for each other.
"""

import argparse
import heapq
import json

import numpy as np

# Seconds that a rank spends on telling or hearing one message, as measured by tells.py on one machine.
PER_MESSAGE = 0.6e-6


def efficiency(ladders, chains, ranks, *, seconds, spread, latency, rule="program", moves=1, block=64, iterations=256, seed=1):
    """Share of their time that ranks work: `ranks` of them to a ladder of so many chains, all of whose rows make `moves` evaluations."""
    random = np.random.default_rng(seed)
    mover = np.arange(chains) * ranks // chains
    seats = np.array([random.permutation(chains) for _ in range(ladders)])  # the row on each chain
    rows = np.arange(ladders)[:, None]
    begin = np.zeros((ladders, ranks))
    before = np.full((ladders, ranks), -np.inf)  # when each had made the iteration before
    talk = PER_MESSAGE * 2 * (ranks - 1)
    shape = spread**-2
    worked = 0.0
    for t in range(1, iterations + 1):
        # Gamma: positive, with the mean and the spread that were asked for.
        each = seconds / shape * random.gamma(shape, size=(ladders, chains, moves)).sum(axis=2) if spread else np.full((ladders, chains), seconds * moves)
        work = np.zeros((ladders, ranks))
        np.add.at(work, (rows, mover[None, :]), each)
        worked += work.sum()
        done = begin + work + (talk if ranks > 1 else 0.0)
        next_begin = done.copy()
        first = t % 2
        lower, upper = seats[:, first:-1:2], seats[:, first + 1::2]
        pairs = min(lower.shape[1], upper.shape[1])
        lower, upper = lower[:, :pairs], upper[:, :pairs]
        if rule == "all":
            next_begin = np.maximum(next_begin, done.max(axis=1, keepdims=True) + latency)
        else:
            for one, other in [(mover[lower], mover[upper]), (mover[upper], mover[lower])]:
                heard = np.where(one == other, -np.inf, np.take_along_axis(done, other, axis=1) + latency)
                np.maximum.at(next_begin, (rows, one), heard)
            if rule == "program" and ranks > 1:
                next_begin = np.maximum(next_begin, before.max(axis=1, keepdims=True) + latency)
        before = done
        accepted = random.random(lower.shape) < 0.5
        new_lower = np.where(accepted, upper, lower)
        new_upper = np.where(accepted, lower, upper)
        seats[:, first:first + 2 * pairs:2], seats[:, first + 1:first + 1 + 2 * pairs:2] = new_lower, new_upper
        if t % block == 0:
            # A tree of messages among all ranks of the run.
            next_begin[:] = next_begin.max() + latency * np.ceil(np.log2(max(2, ladders * ranks)))
        begin = next_begin
    return worked / (ladders * ranks * begin.max())


def one_by_one(chains, ranks, *, seconds, spread, latency, iterations=256, seed=1):
    """The same for a rank that would take its rows one by one, as their partners become known: not what the program does."""
    random = np.random.default_rng(seed)
    seats, partner = random.permutation(chains), np.full((iterations + 1, chains), -1)
    for t in range(1, iterations + 1):
        for lower in range((t + 1) % 2, chains - 1, 2):
            a, b = seats[lower], seats[lower + 1]
            partner[t, a], partner[t, b] = b, a
            if random.random() < 0.5:
                seats[lower], seats[lower + 1] = b, a
    shape, mover = spread**-2, np.arange(chains) * ranks // chains
    done = np.full((iterations + 1, chains), np.nan)
    done[0], ready, free = 0.0, [[(1, row, 0.0) for row in range(chains) if mover[row] == rank] for rank in range(ranks)], np.zeros(ranks)
    events = [(0.0, rank) for rank in range(ranks)]
    while events:
        now, rank = heapq.heappop(events)
        now = max(now, free[rank])
        able = [task for task in ready[rank] if task[2] <= now]
        if not able:
            if ready[rank]:
                heapq.heappush(events, (min(task[2] for task in ready[rank]), rank))
            continue
        task = min(able)
        ready[rank].remove(task)
        t, row, _ = task
        free[rank] = done[t, row] = now + random.gamma(shape) * seconds / shape
        heapq.heappush(events, (free[rank], rank))
        other = partner[t, row]
        for own, far in [(row, other), (other, row)] if other >= 0 and not np.isnan(done[t, other]) else [(row, row)] if other < 0 else []:
            if t < iterations:
                away = latency if mover[own] != mover[far] else 0.0
                when = max(done[t, own], done[t, far] + away)
                ready[mover[own]].append((t + 1, own, when))
                heapq.heappush(events, (when, mover[own]))
    return chains * iterations * seconds / (ranks * done.max())


def sweeps():
    """What the chart shows, as lines of (ranks, efficiency)."""
    counts = [16, 64, 256, 1024, 4096]
    of = lambda ranks, rows_each, **more: efficiency(
        ranks * rows_each // 64 or 1, min(64, ranks * rows_each), min(64, ranks * rows_each) // rows_each, **more)
    usual = {"seconds": 0.01, "spread": 0.3, "latency": 100e-6}
    rules = {
        "waits for all": [of(n, 1, rule="all", **usual) for n in counts],
        "as in the program": [of(n, 1, **usual) for n in counts],
        "partners alone": [of(n, 1, rule="partners", **usual) for n in counts],
        "4 rows a rank": [of(n, 4, **usual) for n in counts],
        "5 evaluations a move": [of(n, 1, moves=5, **usual) for n in counts],
    }
    times = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0]
    latencies = {f"{label} latency": [of(4096, 1, seconds=s, spread=0.3, latency=latency, moves=5) for s in times]
                 for label, latency in [("10 µs", 1e-5), ("100 µs", 1e-4), ("1 ms", 1e-3)]}
    usual_ladder = {rows: one_by_one(64, 64 // rows, **usual) for rows in [1, 2, 4]}
    return {"one by one, by rows a rank": usual_ladder, "ranks": counts, "rules": rules, "seconds": times, "latencies": latencies}


COLOURS = ["#c0504d", "#1f6f8b", "#7a7a7a", "#4f8a3c", "#8a5fae"]


def panel(left, title, ticks, lines, label):
    """One chart: efficiency from 0 to 1 over ticks at even distances."""
    x = lambda i: left + 50 + i * 260 / (len(ticks) - 1)
    y = lambda e: 250 - 200 * e
    out = [f'<text x="{left + 50}" y="24" class="title">{title}</text>']
    for e in [0, 0.25, 0.5, 0.75, 0.9, 1]:
        out.append(f'<line x1="{left + 50}" x2="{left + 310}" y1="{y(e):.1f}" y2="{y(e):.1f}" class="grid"/>'
                   f'<text x="{left + 44}" y="{y(e) + 4:.1f}" text-anchor="end">{e:g}</text>')
    out += [f'<text x="{x(i):.1f}" y="268" text-anchor="middle">{tick}</text>' for i, tick in enumerate(ticks)]
    out.append(f'<text x="{left + 180}" y="286" text-anchor="middle">{label}</text>')
    for k, (name, values) in enumerate(lines.items()):
        points = " ".join(f"{x(i):.1f},{y(e):.1f}" for i, e in enumerate(values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[k]}" stroke-width="2"><title>{name}: '
                   f'{", ".join(f"{e:.2f}" for e in values)}</title></polyline>')
        out.append(f'<text x="{left + 56}" y="{306 + 16 * k}" fill="{COLOURS[k]}" class="key">{name}</text>')
    return out


def chart(found):
    """Both panels as SVG."""
    ticks = [f"{1e3 * s:g} ms" if s < 1 else "1 s" for s in found["seconds"]]
    body = panel(0, "one row a rank, evaluations of 10 ms ± 30%", found["ranks"], found["rules"], "ranks, 64 to a ladder")
    body += panel(360, "4,096 ranks, 5 evaluations a move", ticks, found["latencies"], "an evaluation takes")
    style = ("text{font:11px sans-serif;fill:#555}.title{font-weight:bold}.key{font-weight:bold}.grid{stroke:#999;stroke-width:.4}"
             "@media(prefers-color-scheme:dark){text{fill:#bbb}}")
    keys = "".join(f".k{k}{{fill:{colour}}}" for k, colour in enumerate(COLOURS))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 390" role="img" aria-label="Share of their time that ranks work, by the '
            f'number of ranks and by what an evaluation takes"><style>{style}{keys}</style>' + "".join(body) + "</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chart", help="the SVG to write")
    asked = parser.parse_args()
    found = sweeps()
    print(json.dumps(found, indent=1, ensure_ascii=False, default=float))
    if asked.chart:
        with open(asked.chart, "w", encoding="utf-8") as out:
            out.write(chart(found))


if __name__ == "__main__":
    main()
