"""Evidence through the Python package beside dynesty: bilby's tutorials with both samplers, and dynesty's shells.

    python scripts/measure/python_evidence.py [gaussian|sine-gaussian|shells ...]

`gaussian` is bilby's first tutorial, the mean and width of normal data; `sine-gaussian` a burst in the noise of two detectors
(`pip install bilby[gw]`); `shells` two thin shells in 2, 5 and 10 dimensions, whose evidence is known. A line for each sampler:
log evidence with its error, likelihoods asked for, seconds; then how far apart they are, in standard errors of both.
"""

import sys
import tempfile
import time

import numpy as np
import sterna


def line(name, sampler, log_z, error, calls, seconds):
    print(f"{name:15} {sampler:8} {log_z:10.3f} ± {error:.3f} {calls:10,} likelihoods {seconds:7.1f} s", flush=True)


def both(name, likelihood, priors):
    """A model of bilby with each sampler."""
    import bilby

    ways = {
        "dynesty": {"nlive": 500, "dlogz": 0.1, "check_point": False},
        "sterna": {"draws": 500, "seed": 1, "progress_bar": False},
    }
    found = {}
    for sampler, settings in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            result = bilby.run_sampler(
                likelihood, priors, sampler=sampler, outdir=folder, label="run", save=False, plot=False, **settings
            )
            seconds = time.perf_counter() - begin
        found[sampler] = result
        calls = int(result.num_likelihood_evaluations or 0)
        line(name, sampler, result.log_evidence, result.log_evidence_err, calls, seconds)
    ours, theirs = found["sterna"], found["dynesty"]
    z = (ours.log_evidence - theirs.log_evidence) / np.hypot(ours.log_evidence_err, theirs.log_evidence_err)
    print(f"{name:15} apart by {z:+.2f} standard errors")
    for key in ours.search_parameter_keys:
        a, b = ours.posterior[key], theirs.posterior[key]
        apart = (a.mean() - b.mean()) / b.std()
        print(f"{name:15} {key:12} {a.mean():.6g} ± {a.std():.2g} beside {b.mean():.6g} ± {b.std():.2g}: {apart:+.3f} sd")


def gaussian():
    import bilby

    data = np.random.default_rng(1).normal(3.0, 4.0, 100)

    class Normal(bilby.Likelihood):
        """Independent normal data."""

        def log_likelihood(self, parameters=None):
            mu, sigma = (parameters or self.parameters)["mu"], (parameters or self.parameters)["sigma"]
            return float(-0.5 * (((data - mu) / sigma) ** 2).sum() - len(data) * np.log(sigma * np.sqrt(2 * np.pi)))

    priors = {"mu": bilby.core.prior.Uniform(0, 5, "mu"), "sigma": bilby.core.prior.Uniform(0, 10, "sigma")}
    both("gaussian", Normal(parameters={"mu": None, "sigma": None}), priors)


def sine_gaussian():
    import bilby

    bilby.core.utils.random.seed(1)
    injected = {
        "hrss": 1e-22, "Q": 5.0, "frequency": 200.0, "ra": 1.375, "dec": -1.2108, "geocent_time": 1126259642.413, "psi": 2.659,
    }  # fmt: skip
    waveform = bilby.gw.waveform_generator.WaveformGenerator(
        duration=1, sampling_frequency=2048, frequency_domain_source_model=bilby.gw.source.sinegaussian
    )
    detectors = bilby.gw.detector.InterferometerList(["H1", "L1"])
    detectors.set_strain_data_from_power_spectral_densities(
        sampling_frequency=2048, duration=1, start_time=injected["geocent_time"] - 0.5
    )
    detectors.inject_signal(waveform_generator=waveform, parameters=injected, raise_error=False)
    priors = bilby.core.prior.PriorDict({key: injected[key] for key in ("psi", "ra", "dec", "geocent_time")})
    priors["Q"] = bilby.core.prior.Uniform(2, 50, "Q")
    priors["frequency"] = bilby.core.prior.Uniform(30, 1000, "frequency")
    priors["hrss"] = bilby.core.prior.Uniform(1e-23, 1e-21, "hrss")
    likelihood = bilby.gw.likelihood.GravitationalWaveTransient(interferometers=detectors, waveform_generator=waveform)
    both("sine-gaussian", likelihood, priors)


def shells():
    """dynesty's example; its page has the evidence: -1.75, -5.67 and -14.59 in 2, 5 and 10 dimensions."""
    import dynesty
    from scipy.integrate import quad
    from scipy.special import gammaln

    radius, width, side = 2.0, 0.1, 12.0
    for dim in (2, 5, 10):
        centre = np.zeros(dim)
        centre[0] = 3.5
        norm = -0.5 * np.log(2 * np.pi * width**2)

        def log_likelihood(v, centre=centre, norm=norm):
            shell = lambda c: norm - 0.5 * ((np.linalg.norm(v - c) - radius) / width) ** 2
            return np.logaddexp(shell(centre), shell(-centre))

        transform = lambda u: side * u - side / 2
        # A shell's volume, over its radius: the surface of a sphere times a normal across it.
        surface = np.log(2) + dim / 2 * np.log(np.pi) - gammaln(dim / 2)
        across = quad(lambda r: r ** (dim - 1) * np.exp(norm - 0.5 * ((r - radius) / width) ** 2), 1.0, 3.0)[0]
        exact = np.log(2) + surface + np.log(across) - dim * np.log(side)
        begin = time.perf_counter()
        run = sterna.sample(sterna.from_likelihood(log_likelihood, transform, dim), seed=1, progress_bar=False)
        asked = run.summary["evaluations"]["target"]
        line(f"shells, d = {dim}", "sterna", run.log_z, run.log_z_error, asked, time.perf_counter() - begin)
        begin = time.perf_counter()
        nested = dynesty.NestedSampler(log_likelihood, transform, dim, nlive=500, rstate=np.random.default_rng(1))
        nested.run_nested(print_progress=False)
        found = nested.results
        seconds = time.perf_counter() - begin
        line(f"shells, d = {dim}", "dynesty", found.logz[-1], found.logzerr[-1], int(np.sum(found.ncall)), seconds)
        z = (run.log_z - exact) / run.log_z_error
        print(f"shells, d = {dim}   exactly {exact:.3f}; sterna off by {z:+.2f} standard errors, {run.verdict}", flush=True)


WAYS = {"gaussian": gaussian, "sine-gaussian": sine_gaussian, "shells": shells}

if __name__ == "__main__":
    for name in sys.argv[1:] or WAYS:
        WAYS[name]()
