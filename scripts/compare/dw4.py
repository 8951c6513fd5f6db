"""Distances of DW-4 by another program: sequential Monte Carlo with random walks in numpy, against what fig-neural-samplers has.

    python3 scripts/compare/dw4.py        # two minutes; prints total variations, those of the page beside those to this truth
"""

import json
import pathlib

import numpy as np

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reproduction" / "standard.jsonl"
FIRST, SECOND = np.triu_indices(4, 1)
# As the program's histograms.
BINS, LONGEST = 50, 7.5
# Width of the normal that points begin from, and the share of effective points that a level keeps.
WIDE, KEPT = 3.5, 0.8


def distances(x):
    return np.linalg.norm(x[:, FIRST] - x[:, SECOND], axis=2)


def energy(x):
    u = distances(x) - 4
    return (-4 * u**2 + 0.9 * u**4).sum(axis=1)


def trap(x):
    return (x**2).sum(axis=(1, 2)) / (2 * WIDE**2)


def centred(x):
    return x - x.mean(axis=1, keepdims=True)


def weights(log_weights):
    w = np.exp(log_weights - log_weights.max())
    return w / w.sum()


def next_beta(beta, difference):
    """The largest of 1 and what keeps enough effective points, to a part in 2⁴⁰."""
    low, high = beta, 1.0
    for middle in [1.0] + [None] * 40:
        middle = middle or 0.5 * (low + high)
        enough = 1 / (weights((middle - beta) * difference) ** 2).sum() >= KEPT * len(difference)
        if enough and middle == 1.0:
            return 1.0
        low, high = (middle, high) if enough else (low, middle)
    return low


def sampled(seed, count=15_000):
    """Distances in draws of the target, six a point."""
    rng = np.random.default_rng(seed)
    x = centred(WIDE * rng.normal(size=(count, 4, 2)))
    beta, step = 0.0, 1.0
    while beta < 1:
        difference = trap(x) - energy(x)
        to = next_beta(beta, difference)
        places = np.cumsum(weights((to - beta) * difference))
        x, beta = x[np.minimum(np.searchsorted(places, (np.arange(count) + rng.uniform()) / count), count - 1)], to
        at = beta * energy(x) + (1 - beta) * trap(x)
        for _ in range(25 if beta < 1 else 250):
            sizes = step * rng.choice([0.3, 1, 2.5], size=(count, 1, 1))
            y = centred(x + sizes * rng.normal(size=x.shape))
            there = beta * energy(y) + (1 - beta) * trap(y)
            accepted = np.log(rng.uniform(size=count)) < at - there
            x[accepted], at[accepted] = y[accepted], there[accepted]
            step *= np.exp(0.05 * (accepted.mean() - 0.3))
    return distances(x).ravel()


def shares(counts):
    return np.asarray(counts) / np.sum(counts)


def total_variation(a, b):
    return 0.5 * np.abs(shares(a) - shares(b)).sum()


def main():
    batches = [np.histogram(sampled(seed), bins=BINS, range=(0, LONGEST))[0] for seed in range(4)]
    truth = sum(batches)
    print("batches against the rest:", *(f"{total_variation(batch, truth - batch):.4f}" for batch in batches))
    rows = [row for row in map(json.loads, RESULTS.read_text().splitlines()) if row.get("kept", {}).get("distances")]
    kept = {row["cell"]["name"]: row["kept"] for row in rows}
    theirs = kept.pop("dw-truth")["distances"]
    print(f"the program's truth against this one: {total_variation(theirs, truth):.4f}")
    for name, found in kept.items():
        for how, counts in (("inside tempering", found["distances"]), ("alone", found.get("plain_distances"))):
            if counts:
                print(f"{name} {how}: {total_variation(counts, theirs):.4f} on the page, {total_variation(counts, truth):.4f} to this truth")


if __name__ == "__main__":
    main()
