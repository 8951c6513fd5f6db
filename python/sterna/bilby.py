"""Sterna as a sampler of bilby: ``bilby.run_sampler(likelihood, priors, sampler="sterna")``."""

from __future__ import annotations

import os
from typing import Any

from bilby.core.sampler.base_sampler import NestedSampler

from ._sample import sample
from ._target import from_likelihood


class Sterna(NestedSampler):  # type: ignore[misc]
    """Parallel tempering from the prior to the posterior; the evidence comes with it.

    Keywords are those of :func:`sterna.sample`: ``draws``, ``log_z_error``, ``minutes``, ``seed`` and any field of the config.
    """

    sampler_name = "sterna"
    sampling_seed_key = "seed"
    default_kwargs = {
        "draws": 1000, "log_z_error": 0.1, "seed": None, "minutes": None, "evaluations": None, "chains": None,
        "ensembles": None, "explorer": None, "iterations": None, "threads": None, "accelerator": None, "progress_bar": True,
    }  # fmt: skip

    @property
    def external_sampler_name(self) -> str:
        """What bilby imports."""
        return "sterna"

    def _verify_external_sampler(self) -> None:
        """It is here, or this would not run."""

    def run_sampler(self) -> Any:
        """Sample, and say so in bilby's words."""
        import numpy as np

        names = [f"p{i}" for i in range(self.ndim)]
        target = from_likelihood(self.log_likelihood, self.prior_transform, self.ndim, parameters=names, name="bilby")
        store = os.path.join(self.outdir, f"{self.label}_sterna") if self.outdir else None
        if store is not None and os.path.exists(os.path.join(store, "config.toml")):
            from ._sample import resume

            limits = {key: self.kwargs.get(key) for key in ("draws", "log_z_error", "minutes", "evaluations", "iterations")}
            run = resume(store, model=target, progress_bar=bool(self.kwargs.get("progress_bar", True)), **limits)
        else:
            settings = {key: value for key, value in self.kwargs.items() if key in self.default_kwargs}
            run = sample(target, store=store, **settings)
        draws = np.stack([run.draws[name].ravel() for name in names], axis=1)
        self.result.samples = draws
        self.result.log_likelihood_evaluations = np.array([self.log_likelihood(point) for point in draws])
        self.result.log_evidence = run.log_z
        self.result.log_evidence_err = run.log_z_error
        self.result.num_likelihood_evaluations = int(run.summary["evaluations"]["target"])
        self.result.sampler_output = run.summary
        self.result.nested_samples = None
        return self.result
