"""`draws.nc` through the readers that people use: ArviZ, xarray with both engines, h5py.

The numbers come from the example
`write_draws` and are computed again here, so that every bit can be compared.
"""

import signal
import subprocess
import warnings

import h5py
import numpy as np
import pytest
import xarray

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its version 1
    import arviz

from sterna_cli import example

# As in the example: ensembles, draws, dimension.
CASES = {
    "one": (1, 1000, 3),
    "several": (4, 777, 5),
    "line": (2, 50, 1),
    "point": (1, 1, 1),
    "wide": (2, 3, 40_000),
    "long": (3, 70_001, 3),
}


def bits(seed, n):
    """The first `n` numbers of the example's stream `seed`."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed << 40) + np.arange(1, n + 1, dtype=np.uint64)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def real(seed, n):
    return (bits(seed, n) >> np.uint64(11)).astype(float) * 2.0**-53 - 0.5


def expected(ensembles, draws, dim):
    """What the file should hold, by variable."""
    x = np.stack([real(4 * e, draws * dim) for e in range(ensembles)])
    special = np.array([-0.0, 5e-324, np.nan, -np.inf, np.finfo(float).max])[: draws * dim]
    x[:, : len(special)] = special
    replica = np.stack([bits(4 * e + 3, draws) for e in range(ensembles)]).astype(np.uint32).astype(np.int64)
    return {
        "posterior": {"x": x.reshape(ensembles, draws, dim)},
        "sample_stats": {
            "lp": np.stack([real(4 * e + 1, draws) for e in range(ensembles)]),
            "replica": replica,
            "energy": np.stack([real(4 * e + 2, draws) for e in range(ensembles)]),
            "steps": replica,
        },
    }


def same_bits(found, wanted):
    found = np.asarray(found)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(found.view(np.uint64), wanted.view(np.uint64))


def check_attributes(attributes):
    assert attributes["created_by"].startswith("sterna ")
    assert attributes["inference_library"] == "sterna"
    assert attributes["created_by"] == "sterna " + attributes["inference_library_version"]
    assert attributes["seed"] == 2**64 - 1
    assert attributes["target"] == "Gauß"
    assert attributes["thin"] == 2
    assert attributes["first_iteration"] == 1001
    assert attributes["temperature"] == 0.1
    assert attributes["note"] == ""


def check_group(dataset, name, case):
    """An xarray dataset against what group `name` should hold."""
    ensembles, draws, dim = CASES[case]
    variables = expected(ensembles, draws, dim)[name]
    assert list(dataset.data_vars) == list(variables)
    dims = ("chain", "draw", "x_dim_0") if name == "posterior" else ("chain", "draw")
    lengths = {"chain": ensembles, "draw": draws, "x_dim_0": dim}
    assert dict(dataset.sizes) == {d: lengths[d] for d in dims}
    assert set(dataset.coords) == set(dims)
    for d in dims:
        same_bits(dataset[d], np.arange(lengths[d]))
    for variable, wanted in variables.items():
        assert dataset[variable].dims == dims
        same_bits(dataset[variable], wanted)
    check_attributes(dataset.attrs)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draws")
    out = subprocess.run([example("write_draws"), folder], check=True, text=True, stdout=subprocess.PIPE).stdout
    written = {name: tuple(map(int, sizes[:3])) for name, *sizes in map(str.split, out.splitlines())}
    assert written == CASES
    assert sorted(p.name for p in folder.iterdir()) == sorted(f"{name}.nc" for name in CASES)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_arviz(folder, case):
    data = arviz.from_netcdf(folder / f"{case}.nc")
    assert data.groups() == ["posterior", "sample_stats"]
    for group in data.groups():
        check_group(data[group].load(), group, case)
    check_attributes(data.attrs)


def test_arviz_summarises(folder):
    data = arviz.from_netcdf(folder / "several.nc").sel(draw=slice(1, None))
    table = arviz.summary(data)
    assert list(table.index) == [f"x[{i}]" for i in range(5)]
    # Independent draws.
    assert (table["r_hat"] < 1.02).all() and (table["ess_bulk"] > 2000).all()


def test_arviz_writes_it_again(folder, tmp_path):
    data = arviz.from_netcdf(folder / "one.nc")
    data.to_netcdf(tmp_path / "again.nc")
    again = arviz.from_netcdf(tmp_path / "again.nc")
    same_bits(again.posterior["x"], expected(*CASES["one"])["posterior"]["x"])


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
@pytest.mark.parametrize("case", CASES)
def test_xarray(folder, case, engine):
    for group in ["posterior", "sample_stats"]:
        with xarray.open_dataset(folder / f"{case}.nc", group=group, engine=engine) as dataset:
            check_group(dataset, group, case)
    # What ArviZ 1 reads with.
    with xarray.open_datatree(folder / f"{case}.nc", engine=engine) as tree:
        assert set(tree.children) == {"posterior", "sample_stats"}
        same_bits(tree["posterior/x"], expected(*CASES[case])["posterior"]["x"])


@pytest.mark.parametrize("case", CASES)
def test_h5py(folder, case):
    ensembles, draws, dim = CASES[case]
    with h5py.File(folder / f"{case}.nc") as file:
        check_attributes(file.attrs)
        dimension_ids = []
        for group, variables in expected(ensembles, draws, dim).items():
            check_attributes(file[group].attrs)
            for name, wanted in variables.items():
                dataset = file[group][name]
                same_bits(dataset[...], wanted)
                assert dataset.compression == "gzip" and dataset.shuffle
                assert dataset.chunks[0] == 1 and np.prod(dataset.chunks) <= max(32_768, dim)
                for axis, scale in enumerate(["chain", "draw", "x_dim_0"][: wanted.ndim]):
                    assert dataset.dims[axis][0] == file[group][scale]
            for scale in (d for d in file[group].values() if d.is_scale):
                same_bits(scale[...], np.arange(len(scale)))
                dimension_ids.append(scale.attrs["_Netcdf4Dimid"])
        assert dimension_ids == list(range(5))


@pytest.mark.parametrize("limit", [0, 100, 5_000, 50_000, 500_000])
def test_a_full_disk_is_an_error_and_leaves_the_old_file(folder, tmp_path, limit):
    """A limit on file sizes stands in for the disk; the whole file would have about 900 kB."""
    resource = pytest.importorskip("resource")
    old = (folder / "one.nc").read_bytes()
    (tmp_path / "draws.nc").write_bytes(old)

    def restrict():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # write() then answers EFBIG
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    run = subprocess.run(
        [example("write_draws"), tmp_path, "1", "10000", "10"],
        preexec_fn=restrict,
        restore_signals=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr.startswith(f"cannot write {tmp_path / 'draws.nc'}: File too large")
    assert len(run.stderr.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["draws.nc"]
    assert (tmp_path / "draws.nc").read_bytes() == old
