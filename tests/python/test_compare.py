"""scripts/compare: its densities against the program's, its truths by quadrature, its distances against SciPy's."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.special
import scipy.stats

HERE = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path[:0] = [str(HERE / "compare"), str(HERE / "measure" / "posteriors")]

import cases  # noqa: E402
import database  # noqa: E402
import densities  # noqa: E402
import in_short  # noqa: E402
import molecule  # noqa: E402
import physics  # noqa: E402
import words  # noqa: E402
from sterna_cli import PROGRAM, sterna  # noqa: E402


def asked(case, points, tmp_path):
    lines = [f"{name} = {json.dumps(value)}" for name, value in case.target.items()]
    (tmp_path / "case.toml").write_text("[target]\n" + "\n".join(lines))
    (tmp_path / "points.json").write_text(json.dumps(points.tolist()))
    done = sterna("evaluate", tmp_path / "case.toml", tmp_path / "points.json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [case.name for case in cases.CASES if case.log_likelihood and case.dim < 200])
def test_densities_are_the_programs(name, tmp_path):
    case = cases.BY_NAME[name]
    x = 0.8 * np.random.default_rng(1).normal(size=(4, case.dim))
    if case.group == "evidence":
        low, high = case.box.T
        expected = case.log_likelihood(np, low + (high - low) * scipy.special.ndtr(x)) + scipy.stats.norm.logpdf(x).sum(axis=1)
    elif name == "mrna":
        low, high = case.box.T
        share = scipy.special.expit(x)
        expected = case.log_likelihood(np, low + (high - low) * share) + np.log((high - low) * share * (1 - share)).sum(axis=1)
    elif case.group == "lattice":
        length = case.target["length"]
        coupling = case.target.get("coupling", densities.numbers_of_couplings()[length])
        field, _, log_volume = densities.phi4_modes(length, coupling)
        expected = case.log_likelihood(np, field(x)) + log_volume
    else:
        expected = case.log_likelihood(np, x)
    assert asked(case, x, tmp_path)["log_density"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_clusters_are_the_programs(tmp_path):
    n = 13
    positions = 1.2 * np.random.default_rng(2).normal(size=(3, n, 3))
    k = np.arange(1, n)[:, None]
    i = np.arange(n)
    basis = np.where(i < k, 1.0, np.where(i == k, -k, 0.0)) / np.sqrt(k * (k + 1))
    y = np.einsum("ki,bia->bka", basis, positions).reshape(3, -1)
    found = asked(cases.BY_NAME["lj-13"], y, tmp_path)
    energy, force = densities.lennard_jones(positions)
    assert found["log_density"] == pytest.approx(-energy, rel=1e-9)
    score = np.einsum("ki,bia->bka", basis, force).reshape(3, -1)
    assert np.array(found["score"]) == pytest.approx(score, rel=1e-7, abs=1e-6 * np.abs(score).max())


def test_scores_of_lattices_are_slopes():
    field = np.random.default_rng(3).normal(size=(1, 4, 4))
    up, down = field.copy(), field.copy()
    up[0, 1, 2] += 1e-6
    down[0, 1, 2] -= 1e-6
    log_density = densities.phi4(4, 2.0)
    slope = (log_density(np, up.reshape(1, -1)) - log_density(np, down.reshape(1, -1)))[0] / 2e-6
    assert densities.phi4_score(field, 2.0)[0, 1, 2] == pytest.approx(slope, rel=1e-6)


def test_slopes_by_modes_are_slopes():
    field, slopes, _ = densities.phi4_modes(5, 3.0)
    z, along = np.random.default_rng(4).normal(size=(2, 1, 25))
    log_density = densities.phi4(5, 3.0)
    expected = (log_density(np, field(z + 1e-6 * along)) - log_density(np, field(z - 1e-6 * along)))[0] / 2e-6
    of_sites = densities.phi4_score(field(z).reshape(1, 5, 5), 3.0).reshape(1, 25)
    assert (slopes(of_sites) * along).sum() == pytest.approx(expected, rel=1e-6)


def test_truths_are_those_of_quadrature():
    for name, value in densities.truths().items():
        assert cases.BY_NAME[name].truth == pytest.approx(value, abs=2e-6), name
    spike = cases.spike_share()
    assert cases.BY_NAME["spike-slab-10"].weights == pytest.approx((1 - spike, spike), abs=1e-4)


def test_the_spike_is_felt_in_a_ball():
    """In two dimensions, by a grid."""
    grid = np.linspace(-1, 1, 2001)
    x = np.stack(np.meshgrid(grid, grid), axis=-1)

    def bell(mean, width):
        return -0.5 * (((x - mean) / width) ** 2).sum(axis=-1) - 2 * np.log(width)

    share = (bell(0.25, 0.02) > bell(-0.25, 0.2)).mean()
    assert densities.spike_share_of_box(2) == pytest.approx(share, rel=0.01)
    assert densities.spike_share_of_box(10) == pytest.approx(4.2e-10, rel=0.02)


def test_distances_of_energies():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=4000), 3 + 2 * rng.normal(size=4000)
    # Of two normals: √(difference of means² + difference of widths²).
    assert physics.distance(a, b) == pytest.approx(np.sqrt(10), rel=0.03)
    assert physics.distance(a, a[::-1]) == 0


def test_basins_and_dihedrals_of_molecules():
    # Four atoms whose last turns about the middle bond.
    angles = np.radians([0.0, 90.0, 180.0, 300.0])
    x = np.array([[[1, 0, 0], [0, 0, 0], [0, 0, 1], [np.cos(a), np.sin(a), 1]] for a in angles], float)
    assert molecule.dihedral(x, (0, 1, 2, 3)) == pytest.approx([0, 90, 180, 300], abs=1e-9)
    rng = np.random.default_rng(5)
    c7ax = rng.uniform(size=(2, 5000)) < 0.25
    found = molecule.of_torsions(np.where(c7ax, 60.0, -80.0), np.full(c7ax.shape, 70.0), 1_000_000)
    assert found["basins"]["C7ax"]["mean"] == c7ax.mean() and found["basins"]["C7eq"]["mean"] == (~c7ax).mean()
    assert 8000 < found["ess"] < 12_000 and found["per_effective"] == 1e6 / found["ess"]
    # Replica 0 goes up and down once, replica 1 only up; 2 stays.
    at = np.array([[0, 1, 2], [1, 0, 2], [3, 2, 2], [1, 3, 2], [0, 2, 2]])
    assert molecule.round_trips(at) == 0 + 1


def test_priors_of_the_database_are_those_of_their_cubes():
    """log |∂x/∂u| is −log density, for each of the cube's points that lead to x."""
    free = {"hmm_example-hmm_example": [0, 2, 4, 5]}
    ways = {"low_dim_gauss_mix-low_dim_gauss_mix": 2}
    rng = np.random.default_rng(6)
    for name, prior in database.PRIORS.items():
        count, draw, log_density = prior()
        u, h = rng.uniform(0.2, 0.8, size=count), 1e-6
        steps = h * np.eye(count)
        slopes = np.array([(draw(u + step) - draw(u - step)) / (2 * h) for step in steps])
        slopes = slopes[:, free.get(name, range(count))]
        expected = np.log(ways.get(name, 1)) - np.linalg.slogdet(slopes)[1]
        assert log_density(draw(u)) == pytest.approx(expected, abs=1e-5), name


def test_cells_are_measured_side_by_side_and_merged(tmp_path):
    script = [sys.executable, HERE / "compare" / "compare.py", "--sterna", PROGRAM, "--results", tmp_path / "here.jsonl"]
    cells = ["spike-slab-10/sterna/1", "spike-slab-10/sterna smc/1", "shells-2/sterna ais/1"]
    (tmp_path / "cells").write_text("\n".join(cells))
    subprocess.run([*script, "--cells", tmp_path / "cells", "--jobs", "2", "--seconds", "200"], check=True, timeout=300)

    def read():
        return {row["key"]: row for row in map(json.loads, (tmp_path / "here.jsonl").read_text().splitlines())}

    assert sorted(read()) == sorted(cells) and not any("failed" in row for row in read().values())
    # What failed elsewhere does not take the place of what was measured here; what is new does.
    kept, new = read()[cells[0]], read()[cells[1]] | {"ess": 1.0}
    rows = [{"key": cells[0], "failed": "not done in 1 s"}, new]
    (tmp_path / "there.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    subprocess.run([*script, "--merge", tmp_path / "there.jsonl"], check=True, timeout=60)
    assert read()[cells[0]] == kept and read()[cells[1]]["ess"] == 1.0


def test_what_no_seeds_and_no_error_tell_is_not_said():
    case = cases.BY_NAME["shells-2"]
    row = {"program": "blackjax smc", "log_z": case.truth, "evaluations": 1000}
    assert words.for_a_tenth(case, [row], "evaluations") is None
    assert words.for_a_tenth(case, [row | {"log_z_error": 0.2}], "evaluations") == pytest.approx(4000)


def test_wrong_runs_are_told_apart_by_whether_they_warn():
    case = cases.BY_NAME["eggbox"]
    row = {"program": "sterna", "log_z": case.truth + 0.5, "log_z_error": 0.1, "alarms": ["truth-missed"]}
    warned = row | {"alarms": ["truth-missed", "unvisited-optimum"]}
    assert in_short.beyond_four(case, [row, warned, row | {"log_z_error": 0.2}]) == (2, 1)
