"""Eight posteriors as PyMC has them: a function each of the data, by the folder's name. Names are those of the reference.

What Stan computes in loops is written as matrices here, as users of PyMC do.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt


def _flat(name, shape=()):
    """No prior: all that is said of it, the likelihood says."""
    return pm.Flat(name, shape=shape)


def _falling(ratio, length):
    """The lower triangle of ratio to the power of i - j."""
    lag = np.subtract.outer(np.arange(length), np.arange(length))
    return pt.where(lag >= 0, ratio ** np.maximum(lag, 0), 0.0)


def autoregression(data):
    """Five lags of a series."""
    lags, y = data["K"], np.array(data["y"])
    before = np.stack([y[lags - 1 - k : -1 - k] for k in range(lags)], axis=1)
    alpha = pm.Normal("alpha", 0, 10)
    beta = pm.Normal("beta", 0, 10, shape=lags)
    sigma = pm.HalfCauchy("sigma", 2.5)
    pm.Normal("y", alpha + before @ beta, sigma, observed=y[lags:])


def moving_average(data):
    """ARMA(1, 1): errors follow each other, so that they are a triangular system of what a lag alone leaves."""
    y = np.array(data["y"])
    mu = pm.Normal("mu", 0, 10)
    phi = pm.Normal("phi", 0, 2)
    theta = pm.Normal("theta", 0, 2)
    sigma = pm.HalfCauchy("sigma", 2.5)
    left = pt.concatenate([[y[0] - mu - phi * mu], y[1:] - mu - phi * y[:-1]])
    errors = _falling(-theta, len(y)) @ left
    pm.Potential("errors", pm.logp(pm.Normal.dist(0, sigma), errors).sum())


def eight_schools(data):
    """Centred, with its funnel."""
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    theta = pm.Normal("theta", mu, tau, shape=data["J"])
    pm.Normal("y", theta, np.array(data["sigma"], dtype=float), observed=np.array(data["y"], dtype=float))


def garch(data):
    """Variances that follow each other; beta1 lies between 0 and 1 - alpha1."""
    y = np.array(data["y"])
    mu = _flat("mu")
    alpha0 = pm.HalfFlat("alpha0")
    alpha1 = pm.Uniform("alpha1", 0, 1)
    share = pm.Uniform("share", 0, 1)
    beta1 = pm.Deterministic("beta1", share * (1 - alpha1))
    # Flat in beta1, so that the share has a volume.
    pm.Potential("volume", pt.log1p(-alpha1))
    inputs = pt.concatenate([[data["sigma1"] ** 2], alpha0 + alpha1 * (y[:-1] - mu) ** 2])
    variance = _falling(beta1, len(y)) @ inputs
    pm.Normal("y", mu, pt.sqrt(variance), observed=y)


def kidscore(data):
    """A regression with an interaction; coefficients have no prior."""
    score, iq, hs = (np.array(data[name], dtype=float) for name in ("kid_score", "mom_iq", "mom_hs"))
    beta = _flat("beta", 4)
    sigma = pm.HalfCauchy("sigma", 2.5)
    pm.Normal("score", beta[0] + beta[1] * hs + beta[2] * iq + beta[3] * hs * iq, sigma, observed=score)


def mixture(data):
    """Two normals, with their means in order."""
    y = np.array(data["y"])
    ordered = pm.distributions.transforms.ordered
    mu = pm.Normal("mu", 0, 2, shape=2, transform=ordered, initval=[-1.0, 1.0])
    sigma = pm.HalfNormal("sigma", 2, shape=2)
    theta = pm.Beta("theta", 5, 5)
    weights = pt.stack([theta, 1 - theta])
    pm.NormalMixture("y", weights, mu, sigma, observed=y)


def earnings(data):
    """A regression far from the origin, with neither priors nor scales."""
    earn, height = (np.array(data[name], dtype=float) for name in ("earn", "height"))
    beta = _flat("beta", 2)
    sigma = pm.HalfFlat("sigma")
    pm.Normal("earn", beta[0] + beta[1] * height, sigma, observed=earn)


def diamonds(data):
    """25 coefficients of 5,000 prices."""
    x, y = np.array(data["X"], dtype=float)[:, 1:], np.array(data["Y"])
    b = pm.Normal("b", 0, 1, shape=x.shape[1])
    intercept = pm.StudentT("Intercept", nu=3, mu=8, sigma=10)
    sigma = pm.HalfStudentT("sigma", nu=3, sigma=10)
    pm.Normal("y", intercept + (x - x.mean(0)) @ b, sigma, observed=y)


MODELS = {
    "arK-arK": autoregression,
    "arma-arma11": moving_average,
    "eight_schools-eight_schools_centered": eight_schools,
    "garch-garch11": garch,
    "kidiq-kidscore_interaction": kidscore,
    "low_dim_gauss_mix-low_dim_gauss_mix": mixture,
    "earnings-earn_height": earnings,
    "diamonds-diamonds": diamonds,
}


def model(name, data):
    """A model of PyMC."""
    with pm.Model() as made:
        MODELS[name](data)
    return made
