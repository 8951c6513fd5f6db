"""What a run gives: ArviZ, pandas, pictures, files and pickles."""

import concurrent.futures
import multiprocessing
import pickle
import warnings

import numpy as np
import pytest
import sterna
from conftest import SHORT, humps, same_draws


@pytest.fixture(scope="module")
def run():
    target = sterna.from_pyfunc(3, humps, parameters={"mu": (), "theta": 2})
    return sterna.sample(target, seed=6, draws=200, progress_bar=False)


def test_numbers(run):
    summary = run.summary
    assert run.log_z == summary["log_z"]["bar"] and run.log_z_error == summary["log_z"]["standard_error"]
    assert run.round_trips == summary["round_trips"] > 0 and run.verdict == summary["verdict"]
    assert "sound" in repr(run) and run.alarms == summary["alarms"]
    ladders, draws = run.draws["mu"].shape
    assert run.draws["theta"].shape == (ladders, draws, 2)
    stats = run.sample_stats
    assert stats["lp"].shape == (ladders, draws) and stats["replica"].dtype == np.int64
    # What the moves before each draw did, NaN where a lone pair swapped without any; over all of them, the mean that the
    # summary has for the target's chain.
    target = run.summary["legs"][0]["chains"] - 1
    assert stats["diverging"].dtype == bool and not stats["diverging"].any()
    assert np.nanmean(stats["acceptance_rate"]) == pytest.approx(run.summary["explorer"]["acceptance"][target], abs=1e-6)
    x = np.concatenate([run.draws["mu"][..., None], run.draws["theta"]], axis=2).reshape(-1, 3)
    np.testing.assert_allclose(stats["lp"].ravel(), humps(x)[0], rtol=1e-12)


def test_arviz(run):
    arviz = pytest.importorskip("arviz")
    data = run.to_arviz()
    assert list(data["posterior"].data_vars) == ["mu", "theta"]
    assert data["posterior"]["theta"].dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(data["posterior"]["mu"].values, run.draws["mu"])
    assert data["sample_stats"]["lp"].shape == run.draws["mu"].shape and "step_size" in data["sample_stats"]
    assert data["sample_stats"]["diverging"].dtype == bool and data["sample_stats"]["acceptance_rate"].max() <= 1
    # What was before sampling, of the same shape but for its length.
    warmup, stats = data["warmup_posterior"], data["warmup_sample_stats"]
    assert list(warmup.data_vars) == ["mu", "theta"] and warmup["theta"].shape[::2] == data["posterior"]["theta"].shape[::2]
    assert (np.diff(stats["iteration"].values, axis=1) > 0).all() and set(stats) >= {"lp", "acceptance_rate", "diverging"}
    x = np.concatenate([run.warmup["mu"][..., None], run.warmup["theta"]], axis=2).reshape(-1, 3)
    np.testing.assert_allclose(run.warmup_stats["lp"].ravel(), humps(x)[0], rtol=1e-12)
    tempering = data["tempering"]
    assert "mu" not in tempering and len(tempering["schedule"]) == run.summary["chains"] == len(tempering["rejection_rates"]) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = arviz.summary(data)
    assert list(table.index) == ["mu", "theta[0]", "theta[1]"]
    # The same means, rounded as ArviZ does.
    assert float(table["mean"].iloc[0]) == pytest.approx(run.table()["mean"].iloc[0], abs=0.06)


def test_draws_of_all_chains_if_asked_for(run):
    with pytest.raises(sterna.RunError, match=r'output=\{"trajectories": True, "every": 1\}'):
        run.all_chains
    target = sterna.from_pyfunc(2, humps, parameters={"a": (), "b": "real"})
    kept = sterna.sample(target, **{**SHORT, "thin": 2, "output": {"trajectories": True, "every": 2}})
    assert kept.all_chains["a"].shape == (4, 2, 200)
    for name, values in kept.draws.items():
        np.testing.assert_array_equal(kept.all_chains[name][-1], values)
    lp, x = kept.all_chains_stats["lp"], np.stack([kept.all_chains["a"], kept.all_chains["b"]], axis=-1)
    betas = np.array(kept.summary["schedule"])[:, None, None]
    normal = -0.5 * (x**2).sum(-1) - np.log(2 * np.pi)
    of_target = humps(x.reshape(-1, 2))[0].reshape(lp.shape)
    np.testing.assert_allclose(lp, (1 - betas) * normal + betas * of_target, rtol=1e-9, atol=1e-9)
    pytest.importorskip("arviz")
    assert kept.to_arviz()["tempering"]["b"].dims == ("rung", "chain", "draw")


def test_the_file_says_the_same(run):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(run.folder / "draws.nc") as file:
        np.testing.assert_array_equal(file["posterior/theta"][:], run.draws["theta"])
        assert set(file["sample_stats"].variables) >= {"lp", "replica", "acceptance_rate", "diverging"}
        np.testing.assert_array_equal(file["warmup_posterior/theta"][:], run.warmup["theta"])


def test_moves_that_diverge_are_told():
    def holed(x):
        log_density, score = humps(x)
        return np.where(x[:, 0] > 1.5, np.nan, log_density), score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sterna.sample(sterna.from_pyfunc(2, holed, score=True), **SHORT)
    share = run.sample_stats["diverging"].mean()
    assert 0 < share < 1 and (run.sample_stats["acceptance_rate"][run.sample_stats["diverging"]] < 1).all()


def test_pandas(run):
    pytest.importorskip("pandas")
    table = run.table()
    assert list(table.index) == ["mu", "theta[0]", "theta[1]"]
    draws = run.to_pandas()
    assert list(draws.columns) == list(table.index) and draws.index.names == ["chain", "draw"]
    assert draws["mu"].mean() == pytest.approx(table.loc["mu", "mean"], abs=1e-9)
    plain = sterna.sample(sterna.targets.banana(), **SHORT)
    assert list(plain.table().index) == ["x[0]", "x[1]"] and list(plain.to_pandas().columns) == ["x[0]", "x[1]"]


def test_report_and_notebook(run, tmp_path):
    page = run.report(tmp_path / "report.html")
    assert page.read_text().startswith("<!doctype html>") and "theta[1]" in page.read_text()
    assert run.report().read_text() == (run.folder / "report.html").read_text()
    view = run._repr_html_()
    assert "Sound" in view and view.count("<img") == 3 and "theta[1]" in view
    assert run.chart("index-process").startswith("<svg")
    with pytest.raises(sterna.ConfigError, match="is not known"):
        run.chart("pie")


def test_files_and_pickles(run, tmp_path):
    run.save(tmp_path / "kept")
    same_draws(sterna.load(tmp_path / "kept"), run)
    with pytest.raises(sterna.ConfigError, match="not empty"):
        run.save(tmp_path / "kept")
    with pytest.raises(sterna.ConfigError, match="no summary.json"):
        sterna.load(tmp_path)
    with pytest.raises(sterna.ConfigError, match="no config.toml"):
        sterna.resume(tmp_path)
    again = pickle.loads(pickle.dumps(run))
    same_draws(again, run)
    assert again.summary == run.summary and again.folder != run.folder and again._repr_html_() == run._repr_html_()
    # Not forked: threads of other packages do not survive that.
    fresh = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=fresh) as pool:
        assert pool.submit(log_z_of, run).result(60) == run.log_z


def log_z_of(run):
    return run.log_z


def test_a_nameless_folder_goes_with_its_run():
    run = sterna.sample(sterna.targets.banana(), **SHORT)
    folder = run.folder
    assert (folder / "summary.json").exists()
    del run
    assert not folder.exists()
