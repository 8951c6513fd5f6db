"""What is compared: a case has a density, a truth, what Sterna is told, and who else can do it."""

import dataclasses
import math

import database
import densities as of
import numpy as np

# Programs that are run, in the order of the tables.
EVIDENCE = ("sterna", "sterna fitted", "sterna ais", "sterna smc", "dynesty", "nautilus", "ultranest", "blackjax smc", "reddemcee")
POSTERIOR = ("sterna", "stan nuts", "nutpie", "numpyro nuts", "blackjax nuts", "dynesty", "nautilus", "emcee")
# Sterna where a user knows about where to look.
TOLD = "sterna told"
# Why a program is not asked.
NO_EVIDENCE = "samples alone: no log Z"


@dataclasses.dataclass(frozen=True)
class Case:
    """One density."""

    name: str
    group: str
    dim: int
    target: dict
    log_likelihood: object = None
    bounds: object = None
    truth: float | None = None
    # Mode of each draw, and what modes weigh.
    modes: object = None
    weights: tuple = ()
    programs: tuple = EVIDENCE
    # Program: why it has no number.
    dashes: dict = dataclasses.field(default_factory=dict)
    # What Sterna is told beyond the target; transports and swaps add to it.
    settings: tuple = ()

    @property
    def box(self):
        bounds = np.asarray(self.bounds, float)
        return np.tile(bounds, (self.dim, 1)) if bounds.ndim == 1 else bounds


def side(column, at):
    return lambda x: (x[:, column] > at).astype(int)


def boxed(name, kind, dim, likelihood, bounds, truth, **more):
    target = {"kind": kind} | ({} if kind == "eggbox" else {"dim": dim})
    return Case(name, "evidence", dim, target, likelihood, bounds, truth, **more)


def log_gamma_modes(x):
    return 2 * (x[:, 0] > 0.5) + (x[:, 1] > 0.5)


def permutations(x):
    order = x[:, :3].argsort(axis=1) @ [9, 3, 1]
    codes = [9 * a + 3 * b + c for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))]
    return np.searchsorted(codes, order)


HALVES = {"weights": (0.5, 0.5)}
NUTS_ALONE = dict.fromkeys(("stan nuts", "nutpie", "numpyro nuts", "blackjax nuts", "emcee"), NO_EVIDENCE)
# Volume of the bounds: the library's log Z of mRNA is over a prior density of one.
MRNA_VOLUME = math.log(3 * 10 * 10 * 10 * 4)

CASES = [
    boxed("shells-2", "shells", 2, of.shells, (-6, 6), -1.745642, modes=side(0, 0), **HALVES),
    boxed("shells-10", "shells", 10, of.shells, (-6, 6), -14.590491, modes=side(0, 0), **HALVES),
    boxed("shells-30", "shells", 30, of.shells, (-6, 6), -60.127767, modes=side(0, 0), **HALVES),
    boxed("log-gamma-10", "log-gamma", 10, of.log_gamma, (0, 1), -0.000023, modes=log_gamma_modes, weights=(0.25,) * 4),
    boxed("rosenbrock-10", "rosenbrock", 10, of.rosenbrock, (-10, 10), -29.995788),
    boxed("eggbox", "eggbox", 2, of.eggbox, (0, 10 * math.pi), 235.855940, modes=side(0, 5 * math.pi), **HALVES),
    boxed("correlated-normal-25", "correlated-normal", 25, of.correlated_normal, (-5, 5), -57.564642),
    boxed(
        "spike-slab-10", "spike-slab", 10, of.spike_slab, (-1, 1), -6.931914, modes=side(0, 0.15), weights=(0.4884, 0.5116),
        programs=(*EVIDENCE[:2], TOLD, *EVIDENCE[2:]),
    ),
    Case(
        "mrna",
        "posterior",
        5,
        {"kind": "mrna"},
        of.mrna,
        of.MRNA_BOUNDS,
        19.530 - MRNA_VOLUME,
        programs=POSTERIOR,
        modes=lambda x: (x[:, 2] > x[:, 3]).astype(int),
        **HALVES,
    ),
    Case(
        "galaxies",
        "posterior",
        9,
        {"kind": "galaxies"},
        of.galaxies,
        None,
        None,
        programs=POSTERIOR,
        modes=permutations,
        weights=(1 / 6,) * 6,
        dashes={"nautilus": "a prior that is no box: not written for it here"},
    ),
]
# How many effective draws a lattice is run to: fewer where each is dear.
LATTICE_DRAWS = {6: 4000, 12: 2000, 20: 1000, 32: 400}
# Where 55 particles are drawn as close together as the trap alone would have them, all overlap: the path begins three times as wide, with shares of
# rejected swaps to tune by, since slopes are beyond all bounds there.
LARGE = (
    "run.memory_gib=32",
    "reference.kind=standard-normal",
    "reference.scale=3.0",
    "chains.count=40",
    "chains.ensembles=2",
    "explorer.kind=auto",
    "schedule.criterion=rejection",
    "schedule.rounds=8",
    "schedule.iterations=120",
    "schedule.burn_in=20",
    "run.iterations=15000",
)
# Another ladder to the same cluster, whose draws have nothing in common with the first one's.
PATHS = {
    # What targets of users have whose prior is not told apart.
    "sterna fitted": ("reference.kind=fitted",),
    # Climbs and the anchor begin about x = 0.25, which is 0.3186 as the normal's distribution function has it.
    TOLD: ("reference.kind=fitted", "reference.mean=0.3186", "reference.scale=0.1"),
    "sterna wide": (
        "chains.count=16", "chains.ensembles=4", "reference.kind=standard-normal", "reference.scale=2.0", "explorer.kind=auto",
        "schedule.criterion=rejection", "schedule.rounds=8", "schedule.iterations=100", "schedule.burn_in=20", "run.iterations=26599",
    ),
    "sterna affine": ("accelerator.kind=affine",),
}  # fmt: skip
# Far enough below the usual coupling of an edge of 12.
TWO_PHASES = 3.8
# (length, coupling if it is not the usual one). The last has two phases: the field keeps its sign.
LATTICES = {"6": (6, None), "12": (12, None), "20": (20, None), "32": (32, None), "12-two-phases": (12, TWO_PHASES)}
CASES += [
    Case(
        f"phi4-{name}",
        "lattice",
        length**2,
        {"kind": "phi4", "length": length} | ({"coupling": coupling} if coupling else {}),
        of.phi4(length, coupling or of.numbers_of_couplings()[length]),
        programs=("sterna", "hmc", "hmc in modes"),
        settings=(f"run.until.ess={LATTICE_DRAWS[length]}", "run.memory_gib=32"),
    )
    for name, (length, coupling) in LATTICES.items()
]
CASES += [
    Case(
        f"lj-{n}",
        "cluster",
        3 * (n - 1),
        {"kind": "lennard-jones", "particles": n},
        programs=("sterna", *(["sterna wide"] if n == 13 else []), "sterna affine", "sterna smc", "hmc"),
        settings=said,
    )
    for n, said in ((13, ()), (55, LARGE))
]
# As the book's tutorial runs it, and with the closed-form transport.
MOLECULE = (
    "chains.count=6",
    "chains.ensembles=2",
    "explorer.torsion_moves=4",
    "run.iterations=20000",
)
CASES += [
    Case(
        "alanine",
        "molecule",
        66,
        {"kind": "alanine-dipeptide"},
        programs=("sterna", "sterna affine", "openmm replica exchange"),
        settings=MOLECULE,
    )
]
# What sterna and Stan's NUTS make of them stands in docs/posteriors.
DATABASE = ("nutpie", "dynesty")
CASES += [
    Case(
        name.partition("-")[0],
        "database",
        dim,
        {"name": name},
        programs=DATABASE,
        dashes={"dynesty": database.NO_CUBE[name]} if name in database.NO_CUBE else {},
    )
    for name, dim in database.DIMENSIONS.items()
]


def components(x):
    """GMM-10: the nearest of the 40 means, which differ in the first two coordinates."""
    means = of.numbers_of_pairs("gmm.rs", "MEANS") / 40
    return ((x[:, None, :2] - means) ** 2).sum(axis=-1).argmin(axis=1)


def wells(x):
    """Many wells: how many of the draws lie in the right one, well by well."""
    return (x[:, 0::2] > 0).mean(axis=0)


# How long runs of the paper's targets are: what they ask of the target differs, and is counted.
PAPER = ("chains.count=10", "chains.ensembles=4", "run.iterations=10000", "schedule.criterion=barrier")
TRANSPORTS = {
    "plain": (),
    "affine": ("accelerator.kind=affine",),
    "flow": ("accelerator.kind=flow",),
    "cmcd": ("accelerator.kind=cmcd", "accelerator.steps=2"),
    "diffusion": ("accelerator.kind=diffusion", "accelerator.steps=2"),
}
SWAPS = {f"{steps} moves a swap": (f"explorer.steps={steps}", f"run.iterations={40000 // steps}") for steps in (1, 2, 4, 8, 16)}
CASES += [
    Case(
        "gmm-10",
        "paper",
        10,
        {"kind": "gmm", "dim": 10},
        truth=0.0,
        modes=components,
        weights=(1 / 40,) * 40,
        programs=(*TRANSPORTS, "sterna ais", "sterna smc", *SWAPS),
        settings=PAPER,
    ),
    Case(
        "many-well-32",
        "paper",
        32,
        {"kind": "many-well"},
        truth=164.695675,
        programs=(*TRANSPORTS, "sterna ais", "sterna smc", *SWAPS),
        settings=PAPER,
    ),
]
BY_NAME = {case.name: case for case in CASES}


def spike_share():
    """What the spike weighs in the box, above and below x₀ = 0.15 (`weights` of spike-slab-10)."""
    from scipy import stats

    spike, slab = stats.norm(0.25, 0.02), stats.norm(-0.25, 0.2)
    inside = [law.cdf(1) - law.cdf(-1) for law in (spike, slab)]
    mass = [share**10 for share in inside]
    above = [(law.cdf(1) - law.cdf(0.15)) / share for law, share in zip((spike, slab), inside, strict=True)]
    return sum(m * a for m, a in zip(mass, above, strict=True)) / sum(mass)
