"""A drop-in for nested samplers: dynesty's names, Sterna's work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._run import Run
from ._sample import sample
from ._target import from_likelihood

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# What dynesty is told about its own ways, which has no meaning here.
_IGNORED = {
    "nlive", "bound", "sample", "walks", "slices", "facc", "enlarge", "bootstrap", "update_interval", "first_update", "pool",
    "queue_size", "use_pool", "periodic", "reflective", "rstate", "live_points", "npdim", "maxiter", "maxcall", "print_func",
    "save_bounds", "checkpoint_file", "checkpoint_every", "add_live", "wt_kwargs", "stop_kwargs", "nlive_init", "nlive_batch",
    "maxbatch", "dlogz_init", "n_effective", "logl_max", "use_stop",
}  # fmt: skip


class Results:
    """What a nested sampler would have found, by the names that dynesty has for it; draws have equal weights."""

    def __init__(self, run: Run, log_likelihood: npt.NDArray[np.float64], samples: npt.NDArray[np.float64]) -> None:
        import numpy as np

        self.run = run
        #: Rows of values.
        self.samples = samples
        #: Log likelihood of each.
        self.logl = log_likelihood
        #: Log evidence; the last entry is the result, as dynesty's users read it.
        self.logz = np.array([run.log_z])
        #: Its standard error.
        self.logzerr = np.array([run.log_z_error])
        self.logwt = np.full(len(samples), -np.log(len(samples)) + run.log_z)
        self.niter = int(run.summary["iterations"])
        self.ncall = int(run.summary["evaluations"]["target"])
        self.eff = 100.0 * len(samples) / max(self.ncall, 1)

    def importance_weights(self) -> npt.NDArray[np.float64]:
        """One for each sample, all the same, with a sum of 1."""
        import numpy as np

        return np.full(len(self.samples), 1.0 / len(self.samples))

    def samples_equal(self, rstate: Any = None) -> npt.NDArray[np.float64]:
        """Samples of equal weight, which they are."""
        return self.samples

    def asdict(self) -> dict[str, Any]:
        """All of it by name."""
        return {key: value for key, value in vars(self).items() if key != "run"}

    def summary(self) -> None:
        """Print what matters."""
        print(f"niter: {self.niter}\nncall: {self.ncall}\nlogz: {self.logz[-1]:.3f} +/- {self.logzerr[-1]:.3f}")
        print(f"verdict: {self.run.verdict}")


class NestedSamplerLike:
    """Takes what ``dynesty.NestedSampler`` takes, and tempers instead of nesting.

    Numbers of live points, bounds and ways to sample have no meaning here and are passed over; keywords of
    :func:`sterna.sample` are taken.
    """

    def __init__(
        self,
        loglikelihood: Callable[..., Any],
        prior_transform: Callable[..., Any],
        ndim: int,
        *,
        logl_args: Sequence[Any] = (),
        logl_kwargs: dict[str, Any] | None = None,
        ptform_args: Sequence[Any] = (),
        ptform_kwargs: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self._likelihood: Callable[..., Any] = lambda v: loglikelihood(v, *logl_args, **(logl_kwargs or {}))
        transform: Callable[..., Any] = lambda u: prior_transform(u, *ptform_args, **(ptform_kwargs or {}))
        self.ndim = ndim
        self.target = from_likelihood(self._likelihood, transform, ndim, name=getattr(loglikelihood, "__name__", None))
        self._settings = {key: value for key, value in settings.items() if key not in _IGNORED}
        self._results: Results | None = None

    def run_nested(self, *, dlogz: float | None = None, print_progress: bool = True, **settings: Any) -> NestedSamplerLike:
        """Sample; ``dlogz`` is the standard error of the log evidence that is enough."""
        import numpy as np

        mine = {key: value for key, value in settings.items() if key not in _IGNORED}
        chosen = {"progress_bar": print_progress, "log_z_error": dlogz, **self._settings, **mine}
        run = sample(self.target, **chosen)
        samples = run.draws["x"].reshape(-1, self.ndim)
        # The path's log density has the prior of the cube in it, which the likelihood has not.
        found = np.array([float(np.asarray(self._likelihood(v))) for v in samples])
        self._results = Results(run, found, samples)
        return self

    @property
    def results(self) -> Results:
        """What was found."""
        if self._results is None:
            raise AttributeError("there are no results yet: call run_nested() first")
        return self._results
