"""A model of messages and waiting: what share of their time ranks work, up to 4,096 of them, and where that breaks.

    python scripts/measure/clusters/model.py --chart docs/book/clusters-model.svg

Rows sit on ranks, evaluations take times with a spread, messages arrive after a latency, and swaps happen as in the program: even and odd
pairs in turns, half of them accepted. Two rules say when a row may begin its next iteration:

    rows   once its partner has told what it weighs, and all rows of the ladder have told of the iteration before: what the program does,
           whose ranks take the row that is furthest behind of those that may go on;
    all    once all rows of the ladder have told: what a collective call in each iteration would do.

Ladders know nothing of each other, but at the end of each block of iterations all ranks wait for each other.
"""

import argparse
import heapq
import json

import numpy as np

# Seconds that a rank is taken to spend on telling or hearing one message.
PER_MESSAGE = 1e-6
# Iterations of a block, and blocks that are simulated of a ladder.
BLOCK, BLOCKS = 64, 24


def partners(chains, random):
    """Of each row in each iteration of a block; the row itself where it has none."""
    seats, found = random.permutation(chains), np.tile(np.arange(chains), (BLOCK + 1, 1))
    for t in range(1, BLOCK + 1):
        for lower in range((t + 1) % 2, chains - 1, 2):
            a, b = seats[lower], seats[lower + 1]
            found[t, a], found[t, b] = b, a
            if random.random() < 0.5:
                seats[lower], seats[lower + 1] = b, a
    return found


def block_seconds(chains, ranks, seconds, spread, latency, moves, rule, random):
    """How long a ladder takes for a block on so many ranks."""
    partner, mover = partners(chains, random), np.arange(chains) * ranks // chains
    shape = spread**-2
    # Gamma: positive, with the mean and the spread that were asked for.
    takes = seconds / shape * random.gamma(shape, size=(BLOCK + 1, chains, moves)).sum(axis=2) + PER_MESSAGE * 2 * (ranks - 1)
    done = np.full((BLOCK + 1, chains), np.inf)
    done[0] = 0.0
    left = np.full(BLOCK + 1, chains)
    left[0] = 0
    free = np.zeros(ranks)
    able = [[(1, row) for row in range(chains) if mover[row] == rank] for rank in range(ranks)]  # what a rank may begin
    waits = set()  # rows that have done an iteration and may not go on yet
    events = [(0.0, rank, ()) for rank in range(ranks)]

    def may_go_on(t, row, now):
        """When it may, as far as that is known by now."""
        rows = range(chains) if rule == "all" else (row, partner[t, row])
        if left[t if rule == "all" else t - 1] or any(done[t, other] == np.inf for other in rows):
            return None
        heard = max(done[t, other] + (latency if mover[other] != mover[row] else 0.0) for other in rows)
        return max(now, heard, done[t - 1].max() + latency if ranks > 1 else 0.0)

    while events:
        now, rank, arrived = heapq.heappop(events)
        if arrived:
            able[rank].append(arrived)
        if free[rank] > now or not able[rank]:
            continue
        t, row = min(able[rank])
        able[rank].remove((t, row))
        free[rank] = done[t, row] = now + takes[t, row]
        left[t] -= 1
        heapq.heappush(events, (free[rank], rank, ()))
        if t < BLOCK:
            waits.add((t, row))
        for task in [task for task in waits if task[0] in (t, t + 1)]:
            when = may_go_on(*task, now)
            if when is not None:
                waits.remove(task)
                heapq.heappush(events, (when, mover[task[1]], (task[0] + 1, task[1])))
    return done[BLOCK].max()


def efficiency(ladders, chains, ranks, *, seconds=0.01, spread=0.3, latency=1e-4, moves=1, rule="rows", seed=1):
    """Share of their time that ranks work: so many of them to each ladder."""
    random = np.random.default_rng(seed)
    one = np.array([block_seconds(chains, ranks, seconds, spread, latency, moves, rule, random) for _ in range(BLOCKS)])
    # A block of the run ends with its slowest ladder, and a tree of messages.
    slowest = random.choice(one, size=(400, ladders)).max(axis=1).mean()
    slowest += latency * np.ceil(np.log2(max(2, ladders * ranks)))
    return float(chains * BLOCK * moves * seconds / (ranks * slowest))


def sweeps():
    """What the chart shows."""
    counts = [16, 64, 256, 1024, 4096]

    def of(ranks, rows_each=1, **more):
        """Ladders of 64 chains, or of as many as there are rows."""
        chains = min(64, ranks * rows_each)
        return efficiency(ranks * rows_each // chains, chains, chains // rows_each, **more)

    rules = {
        "1 row a rank, if each iteration waited for all": [of(n, rule="all") for n in counts],
        "1 row a rank": [of(n) for n in counts],
        "1 row a rank, 5 evaluations a move": [of(n, moves=5) for n in counts],
        "2 rows a rank": [of(n, 2) for n in counts],
        "4 rows a rank": [of(n, 4) for n in counts],
    }
    times = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0]
    latencies = {f"{label} latency": [of(4096, 2, seconds=s, latency=latency) for s in times]
                 for label, latency in [("10 µs", 1e-5), ("100 µs", 1e-4), ("1 ms", 1e-3)]}
    return {"ranks": counts, "rules": rules, "seconds": times, "latencies": latencies}


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
    body = panel(0, "evaluations of 10 ms ± 30%, 100 µs latency", found["ranks"], found["rules"], "ranks, for ladders of 64 chains")
    body += panel(360, "4,096 ranks, 2 rows each", ticks, found["latencies"], "an evaluation takes")
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
