"""The numbers of docs/theory.md against values computed another way: error functions, integrals, a second simulation."""

import json
import math

import numpy as np
import pytest

from closed_forms import ROOT, euler_distance

DATA = json.loads((ROOT / "docs" / "theory" / "data.json").read_text())


def rows(name):
    assert DATA[name]["rows"]
    return DATA[name]["rows"]


def test_rejections_of_shifted_normals():
    for row in rows("rejection-estimators"):
        exact = math.erf(row["shift"] / 2.0)
        assert row["total_variation"] == pytest.approx(exact, rel=1e-3)
        for estimate, error in zip(row["estimates"], row["standard_errors"]):
            assert abs(estimate - exact) < 5.0 * error


def test_the_barrier_of_normals():
    """Λ = ¼ log(precision) E|χ²_d − χ′²_d|, the mean as 2 ∫ F (1 − F)."""
    for row in rows("barrier"):
        x = np.linspace(0.0, 40.0 + 8.0 * row["dim"], 2_000_001)
        density = np.zeros_like(x)
        density[1:] = np.exp((row["dim"] / 2 - 1) * np.log(x[1:]) - x[1:] / 2)
        if row["dim"] == 1:
            # The first interval of √x⁻¹ exactly.
            cumulative = np.array([math.erf(math.sqrt(v / 2)) for v in x[::100]])
            grid = x[::100]
        else:
            cumulative = np.cumsum(density) / density.sum()
            grid = x
        spread = 2.0 * np.trapezoid(cumulative * (1.0 - cumulative), grid)
        exact = 0.25 * math.log(DATA["barrier"]["precision"]) * spread
        assert row["barrier"] == pytest.approx(exact, rel=2e-3), row["dim"]
        if row["pairs"] > 64:
            assert row["sum_exact"] == pytest.approx(exact, rel=0.02)
        assert abs(row["sum"] - row["sum_exact"]) < 5.0 * row["standard_error"] + 1e-3


def test_round_trip_rates():
    for row in rows("round-trip-rate"):
        if row["ladder"] == "equal r":
            r = row["sum_of_rejections"] / row["pairs"]
            exact = 1.0 / (2.0 + 2.0 * row["pairs"] * r / (1.0 - r))
            assert row["predicted"] == pytest.approx(exact, rel=1e-3)
        assert abs(row["simulated"] - row["predicted"]) < 5.0 * row["standard_error"]


def test_rejections_are_bounded_by_divergences():
    for row in rows("divergence-bounds"):
        r = max(row["r"] - 5.0 * row["standard_error"], 0.0)
        assert row["symmetric_divergence"] * 1.01 + 1e-4 >= r * math.atanh(min(r, 1.0 - 1e-12))


def test_an_exact_map_gives_log_z_at_once():
    exact = [row for row in rows("exact-log-z") if "exact" in row["accelerator"]]
    assert exact and all(row["largest_error_of_all_estimators"] < 1e-10 for row in exact)


def test_euler_steps():
    for row in rows("ornstein-uhlenbeck"):
        if row["steps"] <= 64:
            distance, divergence = euler_distance(row["steps"])
            assert row["divergence"] == pytest.approx(divergence, rel=1e-3)
            assert abs(row["total_variation"] - distance) < 4.5 * row["standard_error"] + 5e-5


def test_both_spaces_reject_alike():
    z = [row["z"] for row in rows("extended-space")]
    assert np.abs(z).max() < 4.5
    for row in rows("extended-space"):
        assert abs(row["accelerated"] - row["extended"]) < 0.03


def acceptance(dim, steps, sign, rng, n=20_000):
    """Between identical normals by Langevin steps without drift; `sign` of the score on the way back."""
    h = 1.0 / steps

    def log_weight(path):
        out = 0.5 * (path[0] ** 2 - path[-1] ** 2)
        for a, b in zip(path, path[1:]):
            out = out + ((b - (1 - h) * a) ** 2 - (a - (1 - sign * h) * b) ** 2) / (4 * h)
        return out.sum(1)

    forward, backward = [rng.normal(size=(n, dim))], [rng.normal(size=(n, dim))]
    for _ in range(steps):
        noise = rng.normal(size=(2, n, dim)) * math.sqrt(2 * h)
        forward.append((1 - h) * forward[-1] + noise[0])
        backward.append((1 - sign * h) * backward[-1] + noise[1])
    accepted = np.minimum(1.0, np.exp(np.minimum(log_weight(forward) - log_weight(backward[::-1]), 0.0)))
    return accepted.mean(), accepted.std() / math.sqrt(n)


def test_acceptance_with_both_signs():
    rng = np.random.default_rng(1)
    for row in rows("backward-sign"):
        if row["steps"] > 8:
            continue
        for value, error, sign in zip([row["corrected"], row["printed"]], row["standard_errors"], [1, -1]):
            ours, noise = acceptance(row["dim"], row["steps"], sign, rng)
            assert abs(value - ours) < 5.0 * math.hypot(error, noise) + 1e-4, (row, sign, ours)
