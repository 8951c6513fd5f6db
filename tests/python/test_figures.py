"""What the page of the reproduction shows, against values computed another way: quadrature, closed forms, recounts.

Reads the results in docs/reproduction and what is plotted of them. Tolerances are standard errors; a bound of 5 is passed by
chance once in two million.
"""

import json
import math

import numpy as np
import pytest

from closed_forms import (ROOT, chunk_means, dw4_distances, euler_distance, gmm_means, plotted, results, well_weight)

STANDARD = results("standard")
FULL = results("full")
BOTH = {"standard": STANDARD, "full": FULL}
EVERY = [(budget, name) for budget, all in BOTH.items() for name in all]


@pytest.fixture(scope="module")
def particles():
    return dw4_distances()


def shares(counts):
    return np.asarray(counts) / np.sum(counts)


def total_variation(a, b):
    return 0.5 * np.abs(np.asarray(a) - np.asarray(b)).sum()


# ---- Distances of DW-4.


def test_the_true_distances_are_those_of_quadrature(particles):
    _, exact = particles
    truth = STANDARD["dw-truth"]
    counts = truth["kept"]["distances"]
    draws = 8 * truth["cell"]["config"]["run"]["iterations"] // truth["cell"]["config"]["run"]["thin"]
    assert sum(counts) == 6 * draws
    # Chance makes 0.0028 with 400,000 draws of six distances that count as one.
    assert total_variation(shares(counts), exact) < 0.004
    # Particles in the wrong coordinates are 0.38 off: the test can tell.
    assert total_variation(np.roll(exact, 5), exact) > 0.2


def test_distances_inside_tempering_are_those_of_quadrature(particles):
    _, exact = particles
    rows = plotted("standard")["fig-neural-samplers"]
    for row in rows:
        kept = STANDARD[row["cell"]]["kept"]
        assert sum(kept["distances"]) == 6 * STANDARD[row["cell"]]["summary"]["iterations"]
        assert sum(kept["plain_distances"]) == 6 * 20_000
        assert row["histogram"] == pytest.approx(shares(kept["distances"]))
        assert row["plain_histogram"] == pytest.approx(shares(kept["plain_distances"]))
        assert row["truth"] == pytest.approx(shares(STANDARD["dw-truth"]["kept"]["distances"]))
        assert row["accelerated"] == pytest.approx(total_variation(row["histogram"], row["truth"]))
        assert row["plain"] == pytest.approx(total_variation(row["plain_histogram"], row["truth"]))
        assert total_variation(row["histogram"], exact) < 0.02


# ---- Draws.


@pytest.mark.parametrize("budget", ["standard", "full"])
def test_draws_of_the_mixture_lie_about_its_means(budget):
    means, width = gmm_means(), 1.0 / 40.0
    rows = plotted(budget)["fig-overview"]
    assert len(rows) == 4
    for row in rows:
        measured = BOTH[budget][row["cell"]]
        draws = np.array(measured["kept"]["draws"])
        assert draws.shape == (1000, 2) and row["draws"] == 1000
        squares = ((draws[:, None, :] - means[None, :, :]) ** 2).sum(2)
        assert row["modes"] == len(set(squares.argmin(1)))
        # Responsibilities of all modes: the squared distance to one's own has mean 2σ², whatever modes were visited.
        weights = np.exp(-0.5 * (squares - squares.min(1, keepdims=True)) / width**2)
        weights /= weights.sum(1, keepdims=True)
        ours = (weights * squares).sum(1) / (2.0 * width**2)
        # Those of exact draws of the same modes: neighbours that overlap take from each other.
        modes = squares.argmin(1)
        noise = np.random.default_rng(1).normal(size=(20, 1000, 2)) * width
        exact = means[modes] + noise
        far = ((exact[:, :, None, :] - means) ** 2).sum(3)
        theirs = np.exp(-0.5 * (far - far.min(2, keepdims=True)) / width**2)
        theirs = (theirs / theirs.sum(2, keepdims=True) * far).sum(2) / (2.0 * width**2)
        mean, error = chunk_means(ours, 10)
        assert abs(mean - theirs.mean()) < 5.0 * error + 0.02, row["row"]
        trips = np.array(measured["kept"]["round_trips"])
        assert (np.diff(trips, axis=0) >= 0).all()
        # Bounded memories thin out as they fill: the last point lies in the last hundredth.
        made, total = measured["summary"]["iterations"], measured["summary"]["round_trips"]
        assert 0.99 * made <= trips[-1][0] <= made
        assert 0 <= total - trips[-1][1] <= 5 + 0.02 * total
        assert list(trips[-1]) == row["round_trips"]


def test_draws_of_many_wells_have_the_weights_of_quadrature():
    right, _ = well_weight()
    exact = [(1 - right) ** 2, right * (1 - right), right * (1 - right), right**2]
    rows = plotted("standard")["fig-many-well"]
    assert len(rows) == 12
    off = []
    for row in rows:
        draws = np.array(STANDARD[row["cell"]]["kept"]["draws"])
        assert draws.shape == (1000, 4)
        quadrant = 2 * (draws[:, 0] > 0) + (draws[:, 2] > 0)
        counts = np.bincount(quadrant, minlength=4) / 1000
        assert row["weights"] == pytest.approx(counts)
        # Consecutive draws of one chain stay in a well for long: errors from means of consecutive parts.
        side = 0.5 * ((draws[:, 0] > 0) + (draws[:, 2] > 0) * 1.0)
        mean, error = chunk_means(side, 10)
        off.append((mean - right) / error)
        assert total_variation(counts, exact) < 0.25, row["panel"]
        # Odd coordinates are standard normal: the local moves mix these at once.
        mean, error = chunk_means(draws[:, 1] ** 2)
        assert abs(mean - 1.0) < 6.0 * error, row["panel"]
    # A ratio with ten parts has heavier tails than a normal; none is far off, and together they are not.
    assert np.abs(off).max() < 6.0
    assert abs(np.mean(off)) < 5.0 / math.sqrt(len(off)) * 1.2


# ---- log Z.


def truth_of(name, particles):
    log_z, _ = particles
    _, pair = well_weight()
    return {"gmm": 0.0, "mw": 16 * pair, "dw": log_z}.get(name.split("-")[0].rstrip("0123456789"))


def test_exact_log_z_is_that_of_quadrature(particles):
    seen = set()
    for budget, name in EVERY:
        known = truth_of(name, particles)
        stored = BOTH[budget][name]["summary"]["log_z"]["truth"]
        assert (known is None) == (stored is None), name
        if known is not None:
            assert stored == pytest.approx(known, abs=1e-7), name
            seen.add(name.split("-")[0])
    assert {"gmm", "mw", "dw", "gmm100"} <= seen


def test_log_z_of_every_run_is_near_the_exact_value(particles):
    deviations = []
    for budget, name in EVERY:
        summary, known = BOTH[budget][name]["summary"], truth_of(name, particles)
        if known is None or name.endswith("-independent"):
            continue
        z = (summary["log_z"]["bar"] - known) / summary["log_z"]["standard_error"]
        assert abs(z) < 4.5, name
        deviations.append(z)
    assert len(deviations) > 250
    # Neither too far nor too near: error bars mean what they say, as a whole.
    assert abs(np.mean(deviations)) < 5.0 / math.sqrt(len(deviations)) * np.std(deviations)
    assert 0.6 < np.std(deviations) < 1.4


def test_boxes_of_free_energies_are_recounted(particles):
    rows = {(r["target"], r["row"], r["chains"]): r for r in plotted("standard")["fig-free-energy"]}
    titles = {"plain": "PT", "diffusion-k0": "Diff-PT"}
    titles |= {f"cmcd-k{k}": f"CMCD-APT, K = {k}" for k in (1, 2, 5)}
    titles |= {f"diffusion-k{k}": f"Diff-APT, K = {k}" for k in (1, 2, 5)}
    recounted = 0
    for name, measured in STANDARD.items():
        for part, key, tail in [("subsets", "subsets", ""), ("ladders", "independent", "-independent")]:
            estimates = measured["kept"].get(part)
            if estimates is None or not name.endswith(f"-s1{tail}"):
                continue
            target, rest = name.split("-", 1)
            method, chains = rest.removesuffix(f"-s1{tail}").rsplit("-n", 1)
            errors = np.array(estimates)[:, 0] - truth_of(name, particles)
            assert len(errors) == 30
            box = rows[target, titles[method], int(chains)][key]
            assert box["median_error"] == pytest.approx(np.median(errors), abs=1e-6)
            assert box["standard_deviation"] == pytest.approx(errors.std(ddof=1), abs=1e-6)
            assert box["quartiles"] == pytest.approx(np.quantile(errors, [0, 0.25, 0.5, 0.75, 1]), abs=1e-6)
            recounted += 1
    assert recounted == 2 * len(rows)


# ---- Round trips.


def test_round_trips_are_those_that_rejections_allow():
    """R against 1 / (2 + 2 Σ r/(1 − r)) of Theorem 2, computed from the rejection rates alone."""
    seen = []
    for budget, name in EVERY:
        summary, ladders = BOTH[budget][name]["summary"], BOTH[budget][name]["cell"]["config"]["chains"]["ensembles"]
        rates = np.array(summary["rejection_rates"])
        assert len(rates) + 1 == len(summary["schedule"])
        assert summary["global_barrier"] == pytest.approx(rates.sum())
        schedule = np.array(summary["schedule"])
        assert schedule[0] == 0.0 and schedule[-1] == 1.0 and (np.diff(schedule) > 0).all()
        if (rates >= 1.0).any():
            assert summary["round_trips"] == 0
            continue
        allowed = 1.0 / (2.0 + 2.0 * np.sum(rates / (1.0 - rates)))
        efficiency = summary["round_trips"] / (ladders * summary["iterations"]) / allowed
        if ladders == 1:
            assert summary["exploration_efficiency"] == pytest.approx(efficiency, rel=1e-9), name
        noise = 5.0 / math.sqrt(max(summary["round_trips"], 1.0))
        assert efficiency < 1.05 * (1.0 + noise), name
        seen.append(efficiency)
    assert np.median(seen) > 0.5


def test_rates_against_the_dimension_are_recounted():
    rows = plotted("standard")["fig-dimension"]
    assert len(rows) == 4 * 5
    for row in rows:
        kind = "plain" if row["steps"] is None else f"exact-diffusion-k{row['steps']}"
        summary = STANDARD[f"gmm{row['dim']}-{kind}"]["summary"]
        assert (row["round_trips"], row["iterations"]) == (summary["round_trips"], summary["iterations"])
        assert row["compute_normalised"] == pytest.approx(row["round_trips"] / max((row["steps"] or 0) + 1, 2))


@pytest.mark.parametrize("budget,table,target", [
    ("standard", "gmm10", "gmm"), ("standard", "mw32", "mw"), ("standard", "dw4", "dw"),
    ("standard", "alanine_dipeptide", "alanine"), ("full", "gmm10", "gmm")])
def test_tables_are_means_over_seeds(budget, table, target):
    paper = json.loads((ROOT / "crates/sterna-run/assets/tables.json").read_text())[table]
    names = {"PT": ("plain", "pt", 0), "NF-APT": ("flow", "nf", 1), "NF-APT, splines": ("spline", None, 1), "PT, adapted moves": ("adapted", None, 0),
             "Diff-PT": ("diffusion-k0", "diff", 0), "temperature scaling": ("scaling", None, 1),
             "conditional affine": ("affine", None, 1)}
    for k in (1, 2, 5):
        names[f"CMCD-APT, K = {k}"] = (f"cmcd-k{k}", "cmcd", k)
        names[f"Diff-APT, K = {k}"] = (f"diffusion-k{k}", "diff", k)
        names[f"CMCD without drift, K = {k}"] = (f"no-drift-k{k}", None, k)
    rows = plotted(budget)[f"table-{target}"]["cells"]
    assert rows
    for row in rows:
        kind, method, steps = names[row["row"]]
        start = f"{target}-{kind}-n{row['chains']}-s"
        seeds = [m["summary"] for name, m in BOTH[budget].items()
                 if name.startswith(start) and not name.endswith("-independent")]
        trips = np.array([s["round_trips"] for s in seeds], float)
        assert len(seeds) == row["seeds"]
        assert row["round_trips"] == pytest.approx(trips.mean())
        if len(seeds) > 1:
            assert row["standard_error"] == pytest.approx(trips.std(ddof=1) / math.sqrt(len(seeds)))
        assert row["barrier"] == pytest.approx(np.mean([s["global_barrier"] for s in seeds]))
        printed = [r for r in paper["rows"] if r["method"] == method and r["K"] == steps]
        if printed and row["chains"] in paper["chains"]:
            assert row["paper"] == printed[0]["round_trips"][paper["chains"].index(row["chains"])]
        else:
            assert row["paper"] is None


def test_molecules_agree_between_methods():
    """Populations of the basins by transports against those by plain swaps, which know nothing of transports."""
    def populations(kind):
        runs = [m["summary"] for name, m in STANDARD.items() if name.startswith(f"alanine-{kind}-n4")]
        basins = [s["molecule"]["residues"][0]["basins"] for s in runs]
        assert len(basins) == 4
        for seed in basins:
            assert sum(b["population"] for b in seed.values()) == pytest.approx(1.0, abs=0.2)
        names = basins[0].keys()
        values = {n: np.array([seed[n]["population"] for seed in basins]) for n in names}
        return {n: (v.mean(), max(v.std(ddof=1), 1e-3) / 2.0) for n, v in values.items()}

    plain = populations("plain")
    for kind in ["scaling", "affine", "flow", "cmcd-k5"]:
        for name, (mean, error) in populations(kind).items():
            other, its_error = plain[name]
            # Means of four seeds: a difference of 8 estimated errors is one in a million (t with about 6 degrees).
            assert abs(mean - other) < 8.0 * math.hypot(error, its_error) + 0.01, (kind, name)


def test_the_map_of_the_molecule_has_its_populations():
    measured = STANDARD["alanine-affine-n4-s1"]
    energy = np.array([[np.nan if e is None else e for e in row] for row in measured["kept"]["map"]["free_energy"]])
    # kJ/mol at 300 K.
    weight = np.nan_to_num(np.exp(-energy / (8.314462618e-3 * 300.0)))
    weight /= weight.sum()
    assert energy.shape[0] == energy.shape[1] and np.nanmin(energy) == pytest.approx(0.0, abs=0.01)
    bins = energy.shape[0]
    # Rows are φ, from −180°.
    right = weight[bins // 2 :].sum()
    basins = measured["summary"]["molecule"]["residues"][0]["basins"]
    c7ax = next(b["population"] for n, b in basins.items() if n.lower().startswith("c7ax"))
    # φ > 0 is C7ax and little else.
    assert abs(right - c7ax) < 0.01


# ---- Ornstein–Uhlenbeck.


def test_euler_steps_are_as_far_off_as_quadratic_forms_say():
    rows = plotted("standard")["fig-ou"]
    assert [r["steps"] for r in rows] == [2**k for k in range(10)]
    for row in rows:
        if row["steps"] > 128:
            continue
        distance, divergence = euler_distance(row["steps"])
        assert row["divergence"] == pytest.approx(divergence, rel=1e-6)
        assert abs(row["total_variation"] - distance) < 4.5 * row["standard_error"], row["steps"]
    last = rows[-1]
    assert last["total_variation"] * math.sqrt(512) == pytest.approx(0.5 / math.sqrt(math.pi), abs=0.003)
