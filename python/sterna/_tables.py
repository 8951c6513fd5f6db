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
    """What is known of each chain and pair of the ladder."""
    import numpy as np
    import xarray

    summary = run.summary
    numbers = [("schedule", "rung"), ("rejection_rates", "pair")]
    data = {name: (axis, np.asarray(summary[name], dtype=float)) for name, axis in numbers}
    explorer = summary["explorer"]
    for name, label in (("acceptance", "acceptance_rate"), ("step_size", "step_size")):
        if explorer.get(name):
            data[label] = ("rung", np.asarray(explorer[name], dtype=float))
    scalars = {key: summary[key] for key in ("global_barrier", "round_trips")}
    attributes = {**scalars, "log_z": run.log_z, "log_z_error": run.log_z_error, "verdict": run.verdict}
    sizes = {axis: len(values) for axis, values in data.values()}
    kept = {name: pair for name, pair in data.items() if len(pair[1]) == sizes[pair[0]]}
    return xarray.Dataset(kept, attrs=attributes)


def to_arviz(run: Run) -> Any:
    """InferenceData before ArviZ 1, DataTree from then on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz

    about = run.about()
    stats = dict(run.sample_stats)
    sizes = run.summary["explorer"].get("step_size") or []
    if sizes and run.summary["explorer"].get("size", "step size") == "step size":
        # Frozen while sampling, so that of the target's chain is that of every draw.
        import numpy as np

        target = len(run.summary["schedule"]) - 1 if not run.summary.get("legs") else run.summary["legs"][0]["chains"] - 1
        if target < len(sizes) and sizes[target] is not None:
            stats["step_size"] = np.full(stats["lp"].shape, float(sizes[target]))
    known = {name: values for name, values in about.get("coords", {}).items()}
    dims = {name: axes for name, axes in about.get("dims", {}).items() if name in run.draws}
    attributes = {"inference_library": "sterna", "inference_library_version": run.summary["sterna"]}
    groups = {"posterior": run.draws, "sample_stats": stats}
    if int(arviz.__version__.split(".")[0]) >= 1:
        import xarray

        tree = arviz.from_dict(groups, coords=known, dims=dims)
        tree.attrs.update(attributes)
        tree["tempering"] = xarray.DataTree(_tempering(run))
        return tree
    data = arviz.from_dict(**groups, coords=known, dims=dims, attrs=attributes)
    data.add_groups({"tempering": _tempering(run)}, warn_on_custom_groups=False)
    return data
