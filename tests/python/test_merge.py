"""Independent runs joined into one result."""

import json

import arviz
import numpy
import pytest

from sterna_cli import sterna

SMALL = {"target.kind": "normal", "target.dim": 2, "chains.count": 3, "chains.ensembles": 2, "schedule.rounds": 2, "schedule.iterations": 200}


def run(out, **more):
    settings = SMALL | more
    return sterna("run", "--out", out, "--quiet", *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three of different lengths."""
    folder = tmp_path_factory.mktemp("runs")
    for seed, iterations in [(1, 1000), (2, 1500), (3, 1200)]:
        assert run(folder / str(seed), **{"seed": seed, "run.iterations": iterations}).returncode == 0
    return [folder / str(seed) for seed in (1, 2, 3)]


def test_all_draws_and_one_log_z(runs, tmp_path):
    done = sterna("merge", *runs, "--out", tmp_path / "all")
    assert done.returncode == 0, done.stderr
    merged, each = arviz.from_netcdf(tmp_path / "all" / "draws.nc"), [arviz.from_netcdf(run / "draws.nc") for run in runs]
    assert dict(merged.posterior.sizes) == {"chain": 6, "draw": 1000, "x_dim_0": 2}
    for i, one in enumerate(each):
        for group in ("posterior", "sample_stats"):
            for name, values in one[group].data_vars.items():
                numpy.testing.assert_array_equal(merged[group][name][2 * i:2 * i + 2].values, values[:, -1000:].values)
    summary = json.loads((tmp_path / "all" / "summary.json").read_text())
    z, errors = (numpy.array([one[key] for one in summary["merged"]]) for key in ("log_z", "log_z_error"))
    weights = errors**-2 / (errors**-2).sum()
    assert summary["log_z"]["bar"] == pytest.approx((weights * z).sum())
    grown = max(1.0, (((z - (weights * z).sum()) / errors) ** 2).sum() / 2)
    assert summary["log_z"]["standard_error"] == pytest.approx((grown / (errors**-2).sum()) ** 0.5)
    table = arviz.summary(merged, round_to="none")
    assert [row["r_hat"] for row in summary["parameters"]] == pytest.approx(table["r_hat"].tolist(), rel=1e-6)
    assert [row["mean"] for row in summary["parameters"]] == pytest.approx(table["mean"].tolist())
    assert (tmp_path / "all" / "report.html").read_text().count("<svg") > 0


def test_what_cannot_be_merged_is_refused_with_a_word(runs, tmp_path):
    def refused(*folders, out=tmp_path / "out"):
        done = sterna("merge", *folders, "--out", out)
        assert done.returncode == 2 and not (tmp_path / "out").exists(), done.stderr
        return done.stderr

    assert "same seed, 1" in refused(runs[0], runs[0])
    assert run(tmp_path / "wider", **{"seed": 4, "run.iterations": 500, "target.precision": 2.0}).returncode == 0
    said = refused(runs[0], tmp_path / "wider")
    assert "different problems" in said and "precision" in said
    assert run(tmp_path / "longer", **{"seed": 4, "run.iterations": 500, "target.dim": 3}).returncode == 0
    assert "of dimension 3" in refused(runs[0], tmp_path / "longer")
    assert "holds no summary.json" in refused(runs[0], tmp_path)
    assert "holds a result already" in refused(runs[0], runs[1], out=runs[2])
