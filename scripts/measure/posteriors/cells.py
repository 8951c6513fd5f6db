"""What is measured: a cell is a run of `sterna run` with nothing but [target] in its config, or of Stan's NUTS.

Posteriors lie in a folder of folders with model.stan, data.json and reference.json; their compiled models in another.
"""

import pathlib
from dataclasses import dataclass, field

import numpy as np

GOALS = (1000, 5000)
CALIBRATED = {
    "gmm-10": {"kind": "gmm", "dim": 10},
    "dw4": {"kind": "dw4"},
    "many-well": {"kind": "many-well"},
    "funnel": {"kind": "funnel", "dim": 10},
    "banana": {"kind": "banana"},
}
# Where a thousand effective draws would take too long for so many seeds; nothing else is asked for then.
FEWER = {"many-well": ("run.until.ess=100",)}
# log Z and its standard error, from ladders that began from a fit to the database's own draws, which no cell here sees.
LOG_Z = {
    "arK-arK": (258.474, 0.002),
    "arma-arma11": (248.841, 0.005),
    "diamonds-diamonds": (3190.600, 0.006),
    "earnings-earn_height": (-12310.343, 0.003),
    "eight_schools-eight_schools_centered": (7.91, 0.08),
    "garch-garch11": (-267.217, 0.010),
    "gp_pois_regr-gp_pois_regr": (969.478, 0.067),
    "hmm_example-hmm_example": (-172.710, 0.003),
    "hudson_lynx_hare-lotka_volterra": (-23.711, 0.007),
    "kidiq-kidscore_interaction": (-1472.629, 0.002),
    "low_dim_gauss_mix-low_dim_gauss_mix": (-2117.066, 0.001),
    "one_comp_mm_elim_abs-one_comp_mm_elim_abs": (8.486, 0.014),
}
# Of targets with several modes: closed forms, and importance sampling of one mode of the mRNA model.
LOG_Z_OF_MODES = {"mrna": (19.530, 0.002), "two normals": (0.0, 0.0), "cube": (0.0, 0.0)}
MOST_EVALUATIONS = 2_000_000


@dataclass
class Cell:
    """One measurement."""

    group: str
    name: str
    target: dict = field(default_factory=dict)
    seed: int = 1
    goal: int = GOALS[0]
    # Where the built-in default is another: what a user's target has by itself.
    settings: tuple = ()
    # A function of the draws by name, for what the summary does not say.
    look: object = None

    @property
    def key(self):
        return f"{self.group}/{self.name}/{self.goal}/{self.seed}"

    def all_settings(self):
        goal = () if self.goal == GOALS[0] else (f"run.until.ess={self.goal}",)
        return self.settings + goal

    def config(self):
        def text(value):
            return f'"{value}"' if isinstance(value, str) else str(value)

        return "[target]\n" + "".join(f"{name} = {text(value)}\n" for name, value in self.target.items())


def stacked(values):
    """Draws × coordinates, in the order of coordinates."""
    return np.stack([x.ravel() for x in values.values()], axis=1)


def shares(labels, count):
    return (np.bincount(labels, minlength=count) / labels.size).tolist()


def halves(values):
    """Two normals at 0 and 10: which one is nearer."""
    return {"weights": shares((stacked(values).mean(axis=1) > 5).astype(int), 2), "of": "1/2"}


def corners(values):
    x = stacked(values)
    return {"weights": shares(((x > 0) * [1, 2, 4]).sum(axis=1), 8), "of": "1/8"}


def exchanged(values):
    """mRNA: which of the two rates is the larger."""
    return {"weights": shares((values["lbeta"] > values["ldelta"]).ravel().astype(int), 2), "of": "1/2"}


def permutations(values):
    """Galaxies: the order of the three means."""
    means = np.stack([values[f"mu[{k}]"].ravel() for k in (1, 2, 3)], axis=1)
    order = means.argsort(axis=1) @ [9, 3, 1]
    codes = [9 * a + 3 * b + c for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))]
    return {"weights": [float((order == code).mean()) for code in codes], "of": "1/6"}


def neck(values):
    """Funnel: the share of draws below exact quantiles of the first coordinate, N(0, 3²)."""
    first = stacked(values)[:, 0]
    exact = {0.05: -4.934561, 0.25: -2.023469, 0.5: 0.0, 0.75: 2.023469, 0.95: 4.934561}
    return {"quantiles": {level: float((first < at).mean()) for level, at in exact.items()}}


def moments(mean, deviation):
    def look(values):
        x = stacked(values)
        off = np.abs(x.mean(axis=0) - mean) / deviation
        return {"mean_off": float(off.max()), "sd_off": float(np.abs(x.std(axis=0) / deviation - 1).max())}

    return look


def tilted_moments(values):
    """Ill-conditioned normal: along its own axes."""
    x = stacked(values)
    dim = x.shape[1]
    along = x - 2 * x.mean(axis=1, keepdims=True)
    return moments(0.0, 10.0 ** (-3 * np.arange(dim) / (dim - 1)))(dict(enumerate(along.T)))


def posteriors(folder, models, seeds):
    found = sorted(p.parent for p in pathlib.Path(folder).glob("*/reference.json"))
    cells = []
    for place in found:
        target = {"kind": "stan", "model": str(pathlib.Path(models) / place.name / "model.so")}
        target["data"] = str(place / "data.json")
        cells += [Cell("posteriors", place.name, target, seed, goal) for goal in GOALS for seed in range(1, seeds + 1)]
    return cells


def nuts(folder):
    return [Cell("nuts", p.parent.name, goal=max(GOALS)) for p in sorted(pathlib.Path(folder).glob("*/reference.json"))]


def modes(library):
    def own(symbol, dim):
        return {"kind": "library", "library": str(library), "symbol": symbol, "dim": dim}

    cells = []
    for goal in GOALS:
        for seed in (1, 2):
            cells.append(Cell("modes", "mrna", {"kind": "mrna"}, seed, goal, look=exchanged))
            cells.append(Cell("modes", "galaxies", {"kind": "galaxies"}, seed, goal, look=permutations))
            cells.append(Cell("modes", "two normals", own("two_normals", 5), seed, goal, look=halves))
            cells.append(Cell("modes", "cube", own("cube", 3), seed, goal, look=corners))
    return cells


def places(library):
    def own(symbol, dim):
        return {"kind": "library", "library": str(library), "symbol": symbol, "dim": dim}

    return [
        Cell("places", "width 1000", own("wide", 10), look=moments(0.0, 1000.0)),
        Cell("places", "mean 10⁴, width 10⁻³", own("far", 10), look=moments(1e4, 1e-3)),
        Cell("places", "d = 500, condition 10⁶", own("ill_conditioned", 500), look=tilted_moments),
    ]


def calibration(seeds):
    found = []
    for name, target in CALIBRATED.items():
        settings, look = ("reference.kind=fitted", *FEWER.get(name, ())), neck if name == "funnel" else None
        found += [Cell("calibration", name, target, seed, settings=settings, look=look) for seed in range(1, seeds + 1)]
    return found
