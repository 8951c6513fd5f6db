"""Values that figures are compared with, computed by other means than the program's: quadrature and closed forms."""

import json
import math
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def results(budget):
    """What is kept of each run of a budget, by name."""
    lines = (ROOT / "docs" / "reproduction" / f"{budget}.jsonl").read_text().splitlines()
    read = [json.loads(line) for line in lines]
    return {r["cell"]["name"]: r for r in read if "cell" in r}


def plotted(budget):
    """What the page plots."""
    return json.loads((ROOT / "docs" / "reproduction" / budget / "data.json").read_text())


def chunk_means(series, chunks=20):
    """Mean of a correlated series, and its standard error from means of consecutive parts."""
    series = np.asarray(series, float)
    parts = series[: len(series) // chunks * chunks].reshape(chunks, -1).mean(1)
    return series.mean(), parts.std(ddof=1) / math.sqrt(chunks)


# ---- DW-4: −Σ b u² + c u⁴ over pairs, u = d − 4, b = −4, c = 0.9.


def _pair(d):
    u = d - 4.0
    return np.exp(4.0 * u**2 - 0.9 * u**4)


def dw4_distances(bins=50, longest=7.5, points=6, spacing=0.15):
    """log Z on the mean-free subspace, and the law of the distance of two of the four particles in bins.

    With the first particle at the origin and the second at (d, 0), what the other two add is gᵀFg on a grid of the
    plane, g the pull of the first two on one and F that of the two on each other: a convolution. The trapezoidal rule
    converges faster than any power, as the integrand vanishes where it is not smooth.
    """
    d = (np.arange(bins * points) + 0.5) * longest / (bins * points)
    x = np.arange(-7.5, 15.0, spacing)
    y = np.arange(-7.5, 7.5 + spacing / 2, spacing)
    first = _pair(np.hypot(x[:, None], y[None, :]))
    shape = (2 * len(x), 2 * len(y))
    offset = lambda n: np.fft.fftfreq(n, 1.0 / n) * spacing
    kernel = np.fft.rfft2(_pair(np.hypot(offset(shape[0])[:, None], offset(shape[1])[None, :])))
    inner = []
    for each in d:
        g = first * _pair(np.hypot(x[:, None] - each, y[None, :]))
        inner.append(np.sum(g * np.fft.irfft2(np.fft.rfft2(g, shape) * kernel, shape)[: len(x), : len(y)]))
    density = 2.0 * math.pi * d * _pair(d) * np.array(inner) * spacing**4
    # Relative positions are (√4)² = 4 times as large as mean-free coordinates.
    total = density.sum() * longest / len(d) / 4.0
    return math.log(total), density.reshape(bins, points).sum(1) / density.sum()


# ---- ManyWell: pairs of a double well and a standard normal.


def well_weight():
    """Share of the well at x > 0, and log Z of a pair of coordinates."""
    x = np.linspace(-6.0, 6.0, 24001)
    p = np.exp(-(x**4) + 6.0 * x**2 + 0.5 * x)
    z = p.sum() * (x[1] - x[0])
    return p[x > 0].sum() / p.sum(), math.log(z) + 0.5 * math.log(2.0 * math.pi)


# ---- GMM: 40 modes in the plane, everything divided by 40.


def gmm_means():
    source = (ROOT / "crates" / "sterna" / "src" / "targets" / "gmm.rs").read_text()
    table = source[source.index("MEANS: [[") :].split("= [", 1)[1].split("];")[0]
    numbers = re.findall(r"\[(-?[\d._]+), (-?[\d._]+)\]", table)
    return np.array([[float(a.replace("_", "")), float(b.replace("_", ""))] for a, b in numbers]) / 40.0


# ---- Ornstein–Uhlenbeck: dX = −X dt + dB on [0, 1] from its stationary law, and K Euler steps.


def _precision(keep, variance, steps):
    """Of X(0), …, X(1) when X(0) ~ N(0, ½) and each step keeps a share and adds noise."""
    out = np.zeros((steps + 1, steps + 1))
    out[0, 0] = 2.0
    for k in range(steps):
        out[k, k] += keep**2 / variance
        out[k + 1, k + 1] += 1.0 / variance
        out[k, k + 1] -= keep / variance
        out[k + 1, k] -= keep / variance
    return out


def _chi_square_above(weights, value):
    """P(Σ w z² > value) for independent standard normal z (Imhof 1961)."""
    scale = np.sqrt(2.0 * np.sum(weights**2))
    weights, value = weights / scale, value / scale
    # The characteristic function of many terms falls fast.
    u = np.arange(1, 400_001) * 1e-3 if len(weights) < 6 else np.arange(1, 24_001) * 2.5e-3
    angle = 0.5 * np.sum([np.arctan(w * u) for w in weights], axis=0) - 0.5 * value * u
    root = np.exp(0.25 * np.sum([np.log1p((w * u) ** 2) for w in weights], axis=0))
    ends = np.concatenate([[0.5 * (weights.sum() - value)], np.sin(angle) / (u * root)])
    return 0.5 + np.trapezoid(ends, dx=u[0]) / math.pi


def euler_distance(steps):
    """Total variation of the two laws, and KL(exact ‖ Euler)."""
    h = 1.0 / steps
    exact = _precision(math.exp(-h), 0.5 * (1.0 - math.exp(-2.0 * h)), steps)
    euler = _precision(1.0 - h, h, steps)
    log_det = np.linalg.slogdet(exact)[1] - np.linalg.slogdet(euler)[1]
    kl = 0.5 * (np.trace(euler @ np.linalg.inv(exact)) - (steps + 1) + log_det)
    above = []
    for law in (exact, euler):
        root = np.linalg.cholesky(np.linalg.inv(law))
        # Log-ratio ½ (log det + xᵀ(euler − exact)x) above zero, x = root z.
        weights = np.linalg.eigvalsh(root.T @ (euler - exact) @ root)
        weights = weights[np.abs(weights) > 1e-13 * np.abs(weights).max()]
        above.append(_chi_square_above(weights, -log_det))
    return above[0] - above[1], kl
