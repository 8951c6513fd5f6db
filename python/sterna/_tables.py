"""Results as others want them: ArviZ and pandas."""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from ._run import Run


def draws_table(run: Run) -> pandas.DataFrame:
    """A row for each draw."""
    import numpy as np
    import pandas

    columns = {}
    chains = count = 0
    for name, values in run.draws.items():
        chains, count = values.shape[:2]
        flat = values.reshape(chains * count, -1)
        places = itertools.product(*(range(n) for n in values.shape[2:]))
        for column, place in enumerate(places):
            label = f"{name}[{','.join(map(str, place))}]" if place else name
            columns[label] = flat[:, column]
    index = pandas.MultiIndex.from_arrays(
        [np.repeat(np.arange(chains), count), np.tile(np.arange(count), chains)], names=["chain", "draw"]
    )
    return pandas.DataFrame(columns, index=index)


def _tempering(run: Run) -> Any:
    """What is known of each chain and pair of the ladder, with draws of all chains where they were kept."""
    import numpy as np
    import xarray

    summary = run.summary
    chains = len(summary["schedule"])
    data: dict[str, Any] = {
        "schedule": ("rung", np.asarray(summary["schedule"], dtype=float)),
        "rejection_rates": ("pair", np.asarray(summary["rejection_rates"], dtype=float)),
    }
    for name, label in (("acceptance", "acceptance_rate"), ("step_size", "step_size")):
        of_chains = summary["explorer"].get(name) or []
        if len(of_chains) == chains:
            data[label] = ("rung", np.asarray(of_chains, dtype=float))
    coords: dict[str, Any] = {}
    if (run.folder / "chain-0.nc").exists():
        about = run.about()
        for name, values in [*run.all_chains.items(), ("lp", run.all_chains_stats["lp"])]:
            own = about.get("dims", {}).get(name) or [f"{name}_dim_{i}" for i in range(values.ndim - 3)]
            data[name] = (("rung", "chain", "draw", *own), values)
            coords |= {axis: about["coords"][axis] for axis in own if axis in about.get("coords", {})}
    scalars = {key: summary[key] for key in ("global_barrier", "round_trips")}
    attributes = {**scalars, "log_z": run.log_z, "log_z_error": run.log_z_error, "verdict": run.verdict}
    return xarray.Dataset(data, coords=coords, attrs=attributes)


def _with_step_size(run: Run, stats: dict[str, Any]) -> dict[str, Any]:
    """With the step size of the target's chain, frozen while sampling; of moves that halve it, the one they begin from."""
    import numpy as np

    summary = run.summary
    sizes = summary["explorer"].get("step_size") or []
    target = summary["legs"][0]["chains"] - 1 if summary.get("legs") else len(summary["schedule"]) - 1
    known = summary["explorer"].get("size", "step size") == "step size" and target < len(sizes)
    if not known or sizes[target] is None:
        return stats
    return {**stats, "step_size": np.full(stats["lp"].shape, float(sizes[target]))}


def to_arviz(run: Run) -> Any:
    """InferenceData before ArviZ 1, DataTree from then on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz

    about = run.about()
    known = dict(about.get("coords", {}))
    dims = {name: axes for name, axes in about.get("dims", {}).items() if name in run.draws}
    attributes = {"inference_library": "sterna", "inference_library_version": run.summary["sterna"]}
    groups = {"posterior": run.draws, "sample_stats": _with_step_size(run, run.sample_stats)}
    if run.warmup:
        groups |= {"warmup_posterior": run.warmup, "warmup_sample_stats": run.warmup_stats}
    if int(arviz.__version__.split(".")[0]) >= 1:
        import xarray

        tree = arviz.from_dict(groups, save_warmup=True, coords=known, dims=dims)
        tree.attrs.update(attributes)
        tree["tempering"] = xarray.DataTree(_tempering(run))
        return tree
    data = arviz.from_dict(**groups, save_warmup=True, coords=known, dims=dims, attrs=attributes)
    data.add_groups({"tempering": _tempering(run)}, warn_on_custom_groups=False)
    return data
