"""What is sampled, for programs in Python: log likelihoods on a box, posteriors and physics, written once for numpy and JAX.

Each is a function of (xp, x) with x of shape (…, d). `python densities.py` prints the truths that the library's tests hold log Z against.
"""

import math
import pathlib
import re

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG_TAU = math.log(2 * math.pi)


def log_sum(xp, parts):
    """log Σ exp over the last axis."""
    top = parts.max(axis=-1)
    return top + xp.log(xp.exp(parts - top[..., None]).sum(axis=-1))


def shells(xp, x):
    rest = (x[..., 1:] ** 2).sum(axis=-1)
    away = xp.stack([(xp.sqrt((x[..., 0] - c) ** 2 + rest) - 2.0) / 0.1 for c in (-3.5, 3.5)], axis=-1)
    return log_sum(xp, -0.5 * away**2) - math.log(0.1) - 0.5 * LOG_TAU


def eggbox(xp, x):
    return (2.0 + xp.cos(0.5 * x[..., 0]) * xp.cos(0.5 * x[..., 1])) ** 5


def log_gamma(xp, x):
    def skewed(x, at):
        z = 30.0 * (x - at)
        return z - xp.exp(z) + math.log(30.0)

    def normal(x, at):
        return -0.5 * (30.0 * (x - at)) ** 2 + math.log(30.0) - 0.5 * LOG_TAU

    def two(law, x):
        return log_sum(xp, xp.stack([law(x, 2 / 3), law(x, 1 / 3)], axis=-1)) - math.log(2)

    dim = x.shape[-1]
    first_normal = (dim + 2) // 2
    total = two(skewed, x[..., 0]) + two(normal, x[..., 1])
    return total + skewed(x[..., 2:first_normal], 2 / 3).sum(axis=-1) + normal(x[..., first_normal:], 2 / 3).sum(axis=-1)


def rosenbrock(xp, x):
    even, odd = x[..., 0::2], x[..., 1::2]
    return -(10.0 * (even**2 - odd) ** 2 + (even - 1.0) ** 2).sum(axis=-1)


def correlated_normal(xp, x):
    dim, rho = x.shape[-1], 0.4
    log_det = (dim - 1) * math.log(1 - rho) + math.log(1 + (dim - 1) * rho)
    along = x.sum(axis=-1) ** 2 * rho / (1 + (dim - 1) * rho)
    return -0.5 * (((x**2).sum(axis=-1) - along) / (1 - rho) + dim * LOG_TAU + log_det)


def spike_slab(xp, x):
    def bell(mean, width):
        return -0.5 * (((x - mean) / width) ** 2).sum(axis=-1) - x.shape[-1] * (math.log(width) + 0.5 * LOG_TAU)

    return log_sum(xp, xp.stack([bell(0.25, 0.02), bell(-0.25, 0.2)], axis=-1)) - math.log(2)


def numbers_of(file, name):
    """A list of numbers in one of the library's sources."""
    text = (ROOT / "crates" / "sterna" / "src" / "targets" / file).read_text()
    found = re.search(rf"{name}: \[f64; \d+\] = \[(.*?)\]", text, re.S)
    return np.array([float(word) for word in found[1].replace("_", "").split(",") if word.strip()])


def numbers_of_pairs(file, name):
    """The same of a list of pairs."""
    text = (ROOT / "crates" / "sterna" / "src" / "targets" / file).read_text()
    found = re.search(rf"{name}: \[\[f64; 2\]; \d+\] = \[(.*?)\];", text, re.S)[1]
    return np.array([float(word) for word in re.findall(r"-?[\d.]+", found)]).reshape(-1, 2)


FLUORESCENCE = numbers_of("mrna.rs", "FLUORESCENCE")
VELOCITIES = numbers_of("galaxies.rs", "VELOCITIES")
MRNA_BOUNDS = np.array([[-2.0, 1.0], [-5.0, 5.0], [-5.0, 5.0], [-5.0, 5.0], [-2.0, 2.0]])


def mrna(xp, x):
    """log likelihood of log₁₀ of t₀, k m₀, β, δ, σ."""
    start, scale, beta, delta, sigma = (10.0 ** x[..., j, None] for j in range(5))
    since = xp.asarray(0.2 * np.arange(51)) - start
    after = xp.where(since > 0, since, 0.0)
    gap = delta - beta
    close = xp.abs(gap) < 1e-7 * (beta + delta)
    safe = xp.where(close, 1.0, gap)
    shape = xp.where(close, after * xp.exp(-beta * after), (xp.exp(-beta * after) - xp.exp(-delta * after)) / safe)
    off = (xp.asarray(FLUORESCENCE) - scale * shape) / sigma
    return -(0.5 * off**2 + xp.log(sigma) + 0.5 * LOG_TAU).sum(axis=-1)


def galaxies(xp, x):
    """Log posterior in free coordinates: three means, log widths and logits, with normal priors."""
    mean, log_width, logit = x[..., 0:3], x[..., 3:6], x[..., 6:9]
    log_weight = logit - log_sum(xp, logit)[..., None]
    away = (xp.asarray(VELOCITIES)[:, None] - mean[..., None, :]) * xp.exp(-log_width[..., None, :])
    parts = log_weight[..., None, :] - log_width[..., None, :] - 0.5 * away**2
    likelihood = log_sum(xp, parts).sum(axis=-1) - 0.5 * len(VELOCITIES) * LOG_TAU
    centre, wide = GALAXY_PRIOR
    prior = (
        -0.5 * (((mean - centre) / wide) ** 2).sum(axis=-1) - 0.5 * (log_width**2).sum(axis=-1) - 0.5 * (logit**2).sum(axis=-1)
    )
    return likelihood + prior - 4.5 * LOG_TAU - 3 * math.log(wide)


def galaxy_prior():
    text = (ROOT / "crates" / "sterna" / "src" / "targets" / "galaxies.rs").read_text()
    found = re.search(r"PRIOR: \(f64, f64\) = \(([\d.]+), ([\d.]+)\)", text)
    return float(found[1]), float(found[2])


GALAXY_PRIOR = galaxy_prior()


def numbers_of_couplings():
    """λ of each length, as the library has them."""
    text = (ROOT / "crates" / "sterna-run" / "src" / "targets" / "phi4.rs").read_text()
    found = re.search(r"COUPLINGS: .*? = \[(.*?)\];", text)[1]
    return {int(length): float(coupling) for length, coupling in re.findall(r"\((\d+), ([\d.]+)\)", found)}


def phi4(length, coupling, mass_squared=-4.0):
    def log_density(xp, x):
        field = x.reshape(*x.shape[:-1], length, length)
        links = (field - xp.roll(field, 1, -1)) ** 2 + (field - xp.roll(field, 1, -2)) ** 2
        return -(links + mass_squared * field**2 + coupling * field**4).sum(axis=(-1, -2))

    return log_density


def phi4_modes(length, coupling, mass_squared=-4.0):
    """Fields of the modes that the program samples, slopes by modes of slopes by sites, and log |∂field/∂modes|: by Fourier transforms, and its gap
    equation by SciPy."""
    from scipy import optimize

    edge = 2 - 2 * np.cos(2 * np.pi * np.arange(length) / length)
    waves = 2 * (edge[:, None] + edge)
    mu = optimize.brentq(lambda mu: mu - 2 * mass_squared - 12 * coupling * (1 / (waves + mu)).mean(), 1e-9, 1e3, xtol=1e-14)
    widths = (waves + mu) ** -0.5

    def along(x, axis):
        turned = np.fft.fft(x, axis=axis, norm="ortho")
        return turned.real - turned.imag

    def turned(x):
        return along(along(x, 1), 2)

    def field(modes):
        return turned(modes.reshape(-1, length, length) * widths).reshape(modes.shape)

    def slopes(of_sites):
        return (turned(of_sites.reshape(-1, length, length)) * widths).reshape(of_sites.shape)

    return field, slopes, np.log(widths).sum()


def phi4_score(field, coupling, mass_squared=-4.0):
    """∂ log π̃ / ∂φ of fields of shape (…, L, L)."""
    around = sum(np.roll(field, by, axis) for by in (1, -1) for axis in (-1, -2))
    return -2 * (4 * field - around) - 2 * mass_squared * field - 4 * coupling * field**3


def lennard_jones(positions):
    """E and −∂E/∂x of clusters of shape (…, n, 3), pairs counted twice, with the trap about the centre."""
    n = positions.shape[-2]
    centred = positions - positions.mean(axis=-2, keepdims=True)
    apart = positions[..., :, None, :] - positions[..., None, :, :]
    square = (apart**2).sum(axis=-1)
    square[..., np.arange(n), np.arange(n)] = np.inf
    sixth = square**-3
    energy = (sixth * (sixth - 2)).sum(axis=(-1, -2)) + 0.5 * (centred**2).sum(axis=(-1, -2))
    push = 24 * sixth * (sixth - 1) / square
    return energy, (push[..., None] * apart).sum(axis=-2) - centred


def truths():
    """log Z of the likelihoods on boxes, by adaptive quadrature and SciPy's laws."""
    from scipy import integrate, special, stats

    def shells_of(d):
        def radial(r):
            return math.exp((d - 1) * math.log(r) - 0.5 * ((r - 2) / 0.1) ** 2) / (0.1 * math.sqrt(2 * math.pi))

        inner = integrate.quad(radial, 1.0, 3.0, epsabs=0, epsrel=1e-12, points=[2.0])[0]
        surface = math.log(2) + 0.5 * d * math.log(math.pi) - special.gammaln(0.5 * d)
        return math.log(2) + surface + math.log(inner) - d * math.log(12)

    def eggbox_truth():
        def inside(a, b):
            return math.exp((2 + math.cos(a) * math.cos(b)) ** 5 - 243)

        # One period of the pattern in both directions has the mean of all.
        options = {"epsabs": 1e-14, "limit": 200}
        return 243 + math.log(integrate.nquad(inside, [[0, 2 * math.pi]] * 2, opts=[options] * 2)[0] / (4 * math.pi**2))

    def log_gamma_of(d):
        def skewed(at):
            law = stats.loggamma(1.0, loc=at, scale=1 / 30)
            return law.cdf(1) - law.cdf(0)

        def normal(at):
            law = stats.norm(at, 1 / 30)
            return law.cdf(1) - law.cdf(0)

        first_normal = (d + 2) // 2
        both = sum(math.log(0.5 * (law(2 / 3) + law(1 / 3))) for law in (skewed, normal))
        return both + (first_normal - 2) * math.log(skewed(2 / 3)) + (d - first_normal) * math.log(normal(2 / 3))

    def rosenbrock_of(d):
        def along(x):
            law = stats.norm(x * x, 1 / math.sqrt(20))
            return math.exp(-((x - 1) ** 2)) * (law.cdf(10) - law.cdf(-10))

        pair = math.sqrt(math.pi / 10) * integrate.quad(along, -10, 10, epsabs=1e-14, limit=400, points=[-3.2, 1, 3.2])[0]
        return 0.5 * d * math.log(pair / 400)

    def spike_of(d):
        def inside(mean, width):
            law = stats.norm(mean, width)
            return d * math.log(law.cdf(1) - law.cdf(-1))

        return np.logaddexp(inside(0.25, 0.02), inside(-0.25, 0.2)) - math.log(2) - d * math.log(2)

    def correlated_of(d):
        # Given what all share, coordinates are independent.
        def given(z):
            law = stats.norm(math.sqrt(0.4) * z, math.sqrt(0.6))
            return math.exp(d * math.log(law.cdf(5) - law.cdf(-5))) * stats.norm.pdf(z)

        return math.log(integrate.quad(given, -12, 12, epsabs=1e-14)[0]) - d * math.log(10)

    return {
        "shells-2": shells_of(2),
        "shells-10": shells_of(10),
        "shells-30": shells_of(30),
        "eggbox": eggbox_truth(),
        "log-gamma-10": log_gamma_of(10),
        "rosenbrock-10": rosenbrock_of(10),
        "correlated-normal-25": correlated_of(25),
        "spike-slab-10": spike_of(10),
    }


def spike_share_of_box(d):
    """Share of the box in which the spike outweighs the slab: from elsewhere nothing, no slope either, tells of it. A ball about the point
    where the logarithm of their ratio is highest, Σ q(xⱼ) + d log 10 with q(x) = ((x + ¼)/0.2)²/2 − ((x − ¼)/0.02)²/2."""
    narrow, wide = 0.5 / 0.02**2, 0.5 / 0.2**2
    curvature = narrow - wide
    at = 0.25 * (narrow + wide) / curvature
    highest = wide * (at + 0.25) ** 2 - narrow * (at - 0.25) ** 2
    squared = d * (highest + math.log(10)) / curvature
    return math.exp(0.5 * d * math.log(math.pi * squared) - math.lgamma(0.5 * d + 1) - d * math.log(2))


if __name__ == "__main__":
    for name, value in truths().items():
        print(f"{name:24} {value:.6f}")
    print(f"the spike of spike-slab-10 outweighs the slab in {spike_share_of_box(10):.1e} of the box")
