"""What draws and weights of the zoo's cells could have said: evidence that no alarm uses, held against what was wrong.

    sterna zoo --seeds 8 --keep KEPT --out OUT
    python3 scripts/measure/evidence.py KEPT OUT/trust/zoo.jsonl

A line for each measure: its value in every cell that was wrong and called `sound`, and in how many of a hundred cells that were right it
is as large. A measure that speaks has few of these. Needs numpy.
"""

import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "posteriors"))

import draws  # noqa: E402

FAR, FEW = 4.0, 100.0


def is_right(cell):
    return cell["has_law"] and (cell["off"] if cell["off"] is not None else np.inf) <= FAR and (cell["ess"] or 0.0) >= FEW


def rows(path, width):
    return np.fromfile(path, dtype="<f4").astype(float).reshape(-1, width)


def ladders(path, dim):
    """Ladders × draws × coordinates, the log density the last of them."""
    all_rows = rows(path, dim + 2)
    each = [all_rows[all_rows[:, 0] == ladder, 1:] for ladder in np.unique(all_rows[:, 0])]
    length = min(map(len, each))
    return np.stack([x[:length] for x in each])


def apart(x):
    """Of ladders × draws: how far means of ladders lie from each other, in what each knows of its own."""
    own = [x[i].var(ddof=1) / max(draws.ess(x[i : i + 1]), 1.0) for i in range(len(x))]
    means = x.mean(axis=1)
    return float(np.abs(means - means.mean()).max() / np.sqrt(max(np.mean(own), 1e-300)))


def tail_shape(log_weights):
    """Pareto's k̂ of the largest fifth of the weights, by Hill's estimate."""
    w = np.sort(log_weights[np.isfinite(log_weights)])
    top = w[-max(len(w) // 5, 5) :]
    return float((top[1:] - top[0]).mean()) if len(w) > 25 else np.nan


def of_draws(x):
    """Measures of the draws, the largest over coordinates."""
    out = {}
    columns = [x[:, :, j] for j in range(x.shape[2]) if np.ptp(x[:, :, j]) > 0]
    count = x.shape[0] * x.shape[1]
    squares = [(c - c.mean()) ** 2 for c in columns]
    out["draws per ESS of a mean"] = max(count / draws.ess(c) for c in columns)
    out["draws per ESS of a square"] = max(count / draws.ess(c) for c in squares)
    out["draws per bulk ESS"] = max(count / draws.bulk_ess(c) for c in columns)
    out["ladders apart, means"] = max(apart(c) for c in columns)
    out["ladders apart, squares"] = max(apart(c) for c in squares)
    out["ladders apart, ranks"] = max(apart(draws.ranked(c)) for c in columns)
    out["largest square, share of all"] = max(float(c.max() / c.sum()) for c in squares)
    farthest = [np.sort(np.abs(c - np.median(c)).max(axis=1)) for c in columns]
    out["farthest draws of ladders, ratio"] = max(float(f[-1] / max(f[0], 1e-300)) for f in farthest)
    halves = [np.concatenate([c[:, : c.shape[1] // 2], c[:, c.shape[1] // 2 :][:, : c.shape[1] // 2]]) for c in columns]
    out["halves apart, squares"] = max(apart((h - h.mean()) ** 2) for h in halves)
    return out


def of_weights(table):
    """Measures of the weights of swaps, the largest over pairs."""
    out = {}
    for name, side, sign in [("forward", 0, 1.0), ("backward", 1, -1.0)]:
        shapes = []
        for place in np.unique(table[:, [0, 2]], axis=0):
            chosen = (table[:, 0] == place[0]) & (table[:, 2] == place[1]) & (table[:, 3] == side)
            shapes.append(tail_shape(sign * table[chosen, 4]))
        known = [s for s in shapes if np.isfinite(s)]
        out[f"k of {name} weights"] = max(known) if known else np.nan
    return out


def number(x):
    return np.nan if x is None else float(x)


def of_summary(summary):
    """Measures that a summary has."""
    z = summary["log_z"]
    error = max(number(z["standard_error"]), 1e-8)
    slopes = [abs(number(pair["crossing_slope"]) - 1.0) for pair in z["pairs"]]
    out = {
        "forward off, in errors": abs(number(z["forward"]) - number(z["bar"])) / error,
        "backward off, in errors": abs(number(z["backward"]) - number(z["bar"])) / error,
        "slope of crossing off": np.nanmax(slopes) if slopes else np.nan,
        "no overlap": 1.0 - min(number(pair["overlap"]) for pair in z["pairs"]),
        "rejected": max(map(number, summary["rejection_rates"])),
        "inefficiency": 1.0 - number(summary["exploration_efficiency"]),
        "one in so many effective draws, means": 1.0 / number(summary["ess"]["minimum"]),
        "R̂": number((summary.get("mixing") or {}).get("r_hat")),
    }
    legs = summary.get("legs") or []
    if len(legs) == 2:
        gap = abs(number(legs[0]["log_z"]) - number(legs[1]["log_z"]))
        out["legs apart, in errors"] = gap / np.hypot(number(legs[0]["log_z_error"]), number(legs[1]["log_z_error"]))
    return out


def measured(folder):
    summary = json.loads((folder / "summary.json").read_text())
    dim = len(summary["parameters"])
    found = of_summary(summary) | of_weights(rows(folder / "weights.f32", 5))
    return found | of_draws(ladders(folder / "draws.f32", dim))


def main():
    kept, results = map(pathlib.Path, sys.argv[1:])
    cells = [json.loads(line) for line in results.read_text().splitlines()]
    right, wrong, seen = [], [], {}
    for cell in cells:
        name = f"{cell['case']}-{cell['seed']}"
        if cell["verdict"] != "sound" or cell["hidden"] or not (kept / name / "draws.f32").exists():
            continue
        try:
            with np.errstate(all="ignore"):
                seen[name] = measured(kept / name)
        except (ValueError, KeyError, TypeError) as error:
            print(f"{name}: {error!r}", file=sys.stderr)
            continue
        (right if is_right(cell) else wrong).append(name)
    print(f"{len(right)} right and sound, {len(wrong)} wrong and sound: {', '.join(wrong)}")
    for measure in sorted({measure for found in seen.values() for measure in found}):
        usual = np.array([seen[name].get(measure, np.nan) for name in right])
        usual = usual[np.isfinite(usual)]
        shown = []
        for name in wrong:
            value = seen[name].get(measure, np.nan)
            shown.append(f"{value:.3g} ({100 * np.mean(usual >= value):.1f}%)")
        print(f"{measure:38} {'  '.join(shown)}")


if __name__ == "__main__":
    main()
