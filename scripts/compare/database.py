"""Posteriors of Stan's database, compiled by BridgeStan: what a sampler in Python is given, and where their priors are a transform of a
cube, what a nested sampler is given.

STERNA_POSTERIORS is a folder of folders with data.json and reference.json, STERNA_MODELS one with NAME/model.so, as `measure.py` has them.
"""

import ctypes
import json
import math
import os
import pathlib

import numpy as np

LOG_TAU = math.log(2 * math.pi)
POINTER = ctypes.POINTER(ctypes.c_double)


def folder(variable):
    place = os.environ.get(variable)
    if not place:
        raise SystemExit(f"{variable} is not set: the folder of posteriors or of their compiled models")
    return pathlib.Path(place)


class Model:
    """A compiled posterior. `count` has the evaluations that were asked for, with a gradient or without."""

    def __init__(self, name):
        lib = ctypes.CDLL(str(folder("STERNA_MODELS") / name / "model.so"))
        lib.bs_model_construct.restype = ctypes.c_void_p
        lib.bs_param_names.restype = ctypes.c_char_p
        lib.bs_param_names.argtypes = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool]
        lib.bs_param_unc_num.argtypes = lib.bs_name.argtypes = [ctypes.c_void_p]
        arrays, error = [POINTER, POINTER], [ctypes.c_void_p]
        lib.bs_param_constrain.argtypes = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, *arrays, ctypes.c_void_p, *error]
        lib.bs_param_unconstrain.argtypes = [ctypes.c_void_p, *arrays, *error]
        lib.bs_log_density.argtypes = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, *arrays, *error]
        lib.bs_log_density_gradient.argtypes = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, POINTER, POINTER, POINTER, *error]
        data = (folder("STERNA_POSTERIORS") / name / "data.json").read_bytes()
        self.lib, self.count = lib, 0
        self.model = lib.bs_model_construct(ctypes.c_char_p(data), ctypes.c_uint(1), None)
        if not self.model:
            raise SystemExit(f"{name}: the model refused its data")
        self.dim = lib.bs_param_unc_num(self.model)
        names = lib.bs_param_names(self.model, False, False).decode().split(",")
        # Stan calls beta.1.2 what people call beta[1,2].
        self.names = [f"{name}[{','.join(places)}]" if places else name for name, *places in (n.split(".") for n in names)]
        self.value, self.slope = np.zeros(1), np.zeros(self.dim)
        self.free, self.bound = np.zeros(self.dim), np.zeros(len(self.names))

    def with_gradient(self, y):
        """log density in free coordinates with its Jacobian, and its gradient; −∞ where Stan refuses."""
        self.count += 1
        self.free[:] = y
        value, slope = self.value, self.slope
        failed = self.lib.bs_log_density_gradient(
            self.model, True, True, *(x.ctypes.data_as(POINTER) for x in (self.free, value, slope)), None
        )
        return (-math.inf, np.zeros(self.dim)) if failed else (float(value[0]), slope.copy())

    def at(self, theta):
        """log density of the parameters themselves, without a Jacobian and the constants that Stan drops, as sterna has it."""
        self.count += 1
        self.bound[:] = theta
        points = [x.ctypes.data_as(POINTER) for x in (self.bound, self.free, self.value)]
        if self.lib.bs_param_unconstrain(self.model, *points[:2], None):
            return -1e300
        failed = self.lib.bs_log_density(self.model, True, False, *points[1:], None)
        return float(self.value[0]) if not failed and math.isfinite(self.value[0]) else -1e300

    def constrained(self, y):
        self.free[:] = y
        out = np.zeros(len(self.names))
        arrays = self.free.ctypes.data_as(POINTER), out.ctypes.data_as(POINTER)
        self.lib.bs_param_constrain(self.model, False, False, *arrays, None, None)
        return out


class Laws:
    """Independent laws of numbers: from a cube to numbers, and their log density."""

    def __init__(self, *each):
        self.each = each

    def draw(self, u):
        return np.array([law[0](v) for law, v in zip(self.each, u, strict=True)])

    def log_density(self, x):
        return sum(law[1](v) for law, v in zip(self.each, x, strict=True))


def normal(mean, width):
    from scipy.special import ndtri

    log_width = math.log(width) + 0.5 * LOG_TAU
    return lambda u: mean + width * ndtri(u), lambda x: -0.5 * ((x - mean) / width) ** 2 - log_width


def half_normal(width):
    from scipy.special import ndtri

    log_width = math.log(width) + 0.5 * LOG_TAU - math.log(2)
    return lambda u: width * ndtri(0.5 + 0.5 * u), lambda x: -0.5 * (x / width) ** 2 - log_width


def half_cauchy(width):
    return (
        lambda u: width * math.tan(0.5 * math.pi * u),
        lambda x: math.log(2 / (math.pi * width)) - math.log1p((x / width) ** 2),
    )


def gamma(shape, rate):
    from scipy.special import gammaincinv, gammaln

    constant = shape * math.log(rate) - gammaln(shape)
    return lambda u: gammaincinv(shape, u) / rate, lambda x: constant + (shape - 1) * math.log(x) - rate * x


def beta(a, b):
    from scipy.special import betaincinv, betaln

    return lambda u: betaincinv(a, b, u), lambda x: (a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - betaln(a, b)


def uniform():
    return lambda u: u, lambda x: 0.0


def eight_schools():
    """Effects about a mean that is drawn before them."""
    hyper = Laws(normal(0, 5), half_cauchy(5))
    effects = Laws(*[normal(0, 1)] * 8)

    def draw(u):
        mu, tau = hyper.draw(u[8:])
        return np.array([*(mu + tau * effects.draw(u[:8])), mu, tau])

    def log_density(x):
        mu, tau = x[8:]
        return hyper.log_density(x[8:]) + effects.log_density((x[:8] - mu) / tau) - 8 * math.log(tau)

    return 10, draw, log_density


def mixture():
    """Two means in order: two draws, sorted, of twice the density."""
    means = Laws(normal(0, 2), normal(0, 2))
    rest = Laws(half_normal(2), half_normal(2), beta(5, 5))

    def draw(u):
        return np.array([*np.sort(means.draw(u[:2])), *rest.draw(u[2:])])

    return 5, draw, lambda x: means.log_density(x[:2]) + math.log(2) + rest.log_density(x[2:])


def markov():
    """Two rows of a transition matrix, each known by its first entry, and two means that are in order all but always."""
    laws = Laws(uniform(), uniform(), normal(3, 1), normal(10, 1))

    def draw(u):
        first, second, *means = laws.draw(u)
        return np.array([first, 1 - first, second, 1 - second, *means])

    return 4, draw, lambda x: laws.log_density([x[0], x[2], x[4], x[5]])


def of(*laws):
    every = Laws(*laws)
    return len(laws), every.draw, every.log_density


# How many numbers a cube has, from it to parameters, log density of the prior.
PRIORS = {
    "arK-arK": lambda: of(*[normal(0, 10)] * 6, half_cauchy(2.5)),
    "arma-arma11": lambda: of(normal(0, 10), normal(0, 2), normal(0, 2), half_cauchy(2.5)),
    "eight_schools-eight_schools_centered": eight_schools,
    "gp_pois_regr-gp_pois_regr": lambda: of(gamma(25, 4), half_normal(2), *[normal(0, 1)] * 11),
    "hmm_example-hmm_example": markov,
    "low_dim_gauss_mix-low_dim_gauss_mix": mixture,
    "one_comp_mm_elim_abs-one_comp_mm_elim_abs": lambda: of(*[half_cauchy(1)] * 4),
}
# Why a nested sampler has no number.
NO_CUBE = {
    "earnings-earn_height": "flat priors on the whole line: no evidence",
    "garch-garch11": "flat priors without bounds: no evidence",
    "kidiq-kidscore_interaction": "flat priors on the whole line: no evidence",
    "diamonds-diamonds": "26 dimensions: not written here",
    "hudson_lynx_hare-lotka_volterra": "its differential equation fails over most of the prior: not written here",
}
# Free coordinates of each.
DIMENSIONS = {
    "arK-arK": 7,
    "arma-arma11": 4,
    "diamonds-diamonds": 26,
    "earnings-earn_height": 3,
    "eight_schools-eight_schools_centered": 10,
    "garch-garch11": 4,
    "gp_pois_regr-gp_pois_regr": 13,
    "hmm_example-hmm_example": 4,
    "hudson_lynx_hare-lotka_volterra": 8,
    "kidiq-kidscore_interaction": 5,
    "low_dim_gauss_mix-low_dim_gauss_mix": 5,
    "one_comp_mm_elim_abs-one_comp_mm_elim_abs": 4,
}


def judged_against(name, values):
    import draws

    reference = json.loads((folder("STERNA_POSTERIORS") / name / "reference.json").read_text())
    return draws.against(values, reference)
