"""Draws of a run folder or of Stan, and what is said of them: bulk ESS by ranks, means, standard deviations.

Both programs are judged by the same functions. Arrays have a row for each chain (ArviZ's chain: one ladder of sterna).
"""

import pathlib
from functools import lru_cache
from statistics import NormalDist

import netcdf
import numpy as np


def read(folder):
    """The values of draws.nc by name, `beta[1]` where several have one name; each chains × draws."""
    values = {}
    for name, array in netcdf.posterior(pathlib.Path(folder) / "draws.nc").items():
        if array.ndim < 2 or name in ("chain", "draw"):
            continue
        array = array.astype(float)
        for place in np.ndindex(array.shape[2:]):
            label = name + ("[" + ",".join(str(i + 1) for i in place) + "]" if place else "")
            values[label] = array[(slice(None), slice(None), *place)]
    return values


@lru_cache(maxsize=4)
def scores(count):
    """Normal scores of ranks 1, 1.5, 2, … of `count` values (Blom's)."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((1 + half / 2 - 0.375) / (count + 0.25)) for half in range(2 * count - 1)])


def ranked(x):
    """Normal scores of the values; ties share the mean of their ranks."""
    flat = x.ravel()
    _, place, counts = np.unique(flat, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    doubled = 2 * last - counts + 1  # twice the mean rank
    return scores(flat.size)[doubled[place] - 2].reshape(x.shape)


def ess(x):
    """Effective draws of chains × draws, by Geyer's initial monotone sequence over all chains."""
    chains, draws = x.shape
    if draws < 4:
        return float("nan")
    centred = x - x.mean(axis=1, keepdims=True)
    size = 1 << (2 * draws - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, :draws].mean(axis=0) / draws
    within = covariance[0] * draws / (draws - 1)
    between = x.mean(axis=1).var(ddof=1) if chains > 1 else 0.0
    total = within * (draws - 1) / draws + between
    if not total > 0:
        return float("nan")
    rho = 1 - (within - covariance * draws / (draws - 1)) / total
    rho[0] = 1.0
    pairs = rho[: draws // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if negative.size else None])
    time = max(2 * pairs.sum() - 1, 1 / np.log10(chains * draws))
    return chains * draws / time


def bulk_ess(x):
    """Rank-normalised effective draws of chains cut in halves (Vehtari et al. 2021)."""
    half = x.shape[1] // 2
    return ess(ranked(np.concatenate([x[:, :half], x[:, -half:]])))


def smallest_bulk_ess(values):
    """Over all values; one that never changes, as a sum of one, says nothing and is left out."""
    found = [bulk_ess(x) for x in values.values() if np.ptp(x) > 0]
    return min(found) if found else float("nan")


def against(values, reference):
    """Farthest mean in standard deviations of the reference, farthest relative standard deviation, farthest share of
    draws below a quantile of the reference, which heavy tails leave alone."""
    common = [name for name in reference if name in values and reference[name]["sd"] > 0]
    mean = {n: abs(values[n].mean() - reference[n]["mean"]) / reference[n]["sd"] for n in common}
    width = {n: abs(values[n].std() / reference[n]["sd"] - 1) for n in common}
    levels = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
    shares = [abs((values[n] < reference[n][q]).mean() - at) for n in common for q, at in levels.items()]
    worst, widest = max(mean, key=mean.get), max(width, key=width.get)
    return {
        "mean_off": mean[worst],
        "mean_of": worst,
        "sd_off": width[widest],
        "sd_of": widest,
        "share_off": float(max(shares)),
        "compared": len(common),
    }
