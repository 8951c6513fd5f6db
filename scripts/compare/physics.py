"""Physics in numpy: plain Hamiltonian Monte Carlo, observables of lattices, distances of energies, autocorrelation times."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "measure" / "posteriors"))

import densities  # noqa: E402
import draws as judged  # noqa: E402

CHAINS, LEAPFROGS, BURN_IN = 32, 10, 500


def distance(a, b):
    """Wasserstein-2 of two sets of as many energies."""
    return float(np.sqrt(np.mean((np.sort(a) - np.sort(b)) ** 2)))


def mean_with_error(x):
    """Mean of chains × draws, with the error that its effective draws leave."""
    effective = judged.ess(x)
    return float(x.mean()), float(x.std() / np.sqrt(effective)), effective


def of_lattice(field, evaluations):
    """⟨|M|⟩, susceptibility, ⟨sign M⟩ and energy of fields of shape (chains, draws, L, L), with errors, and evaluations for an
    effective draw."""
    sites = field.shape[-1] ** 2
    m = field.mean(axis=(-1, -2))
    row = {}
    for name, x in {"|M|": np.abs(m), "sign M": np.sign(m), "M²": m**2, "M": m}.items():
        mean, error, effective = mean_with_error(x)
        row[name] = {"mean": mean, "error": error, "ess": effective, "evaluations": evaluations / effective}
        # Draws of a chain to one that is effective.
        row[name]["time"] = m.size / effective
    # χ = V (⟨M²⟩ − ⟨|M|⟩²), its error by blocks of draws.
    blocks = np.array_split(np.arange(m.shape[1]), min(20, m.shape[1]))
    each = [sites * ((m[:, b] ** 2).mean() - np.abs(m[:, b]).mean() ** 2) for b in blocks]
    whole = sites * ((m**2).mean() - np.abs(m).mean() ** 2)
    row["susceptibility"] = {"mean": float(whole), "error": float(np.std(each, ddof=1) / np.sqrt(len(each)))}
    return row


def coupling_of(case):
    return case.target.get("coupling", densities.numbers_of_couplings()[case.target["length"]])


def lattice_model(case):
    length, coupling = case.target["length"], coupling_of(case)

    def score(x):
        return densities.phi4_score(x.reshape(-1, length, length), coupling).reshape(x.shape)

    def log_density(x):
        return case.log_likelihood(np, x)

    return log_density, score


def in_modes(case):
    """The same for modes of the free field that comes nearest; fields of modes."""
    log_density, score = lattice_model(case)
    field, slopes, _ = densities.phi4_modes(case.target["length"], coupling_of(case))
    return (lambda z: log_density(field(z))), (lambda z: slopes(score(field(z)))), field


def cluster_model(case):
    n = case.target["particles"]

    def both(x):
        energy, force = densities.lennard_jones(x.reshape(-1, n, 3))
        return -energy, force.reshape(x.shape)

    return (lambda x: both(x)[0]), (lambda x: both(x)[1])


def start(case, rng):
    if case.group == "lattice":
        return rng.normal(size=(CHAINS, case.dim)) * 0.5
    n = case.target["particles"]
    # A grid with the distance of a bond: no two particles overlap.
    edge = int(np.ceil(n ** (1 / 3)))
    grid = 1.1 * np.stack(np.meshgrid(*[np.arange(edge)] * 3), axis=-1).reshape(-1, 3)
    near = np.argsort(((grid - grid.mean(axis=0)) ** 2).sum(axis=1))[:n]
    return (grid[near] + 0.01 * rng.normal(size=(CHAINS, n, 3))).reshape(CHAINS, -1)


def hmc(case, seed, draws=None, modes=False):
    """Draws, and what they are worth."""
    rng = np.random.default_rng(seed)
    log_density, score, *field = in_modes(case) if modes else lattice_model(case) if case.group == "lattice" else cluster_model(case)
    draws = draws or (2000 if case.group == "lattice" else 600)
    x, step, kept, accepted_so_far = start(case, rng), 0.02, [], []
    here, slope = log_density(x), score(x)
    for t in range(BURN_IN + draws):
        length = step * rng.uniform(0.8, 1.2)
        momentum = rng.normal(size=x.shape)
        y, there_slope, p = x, slope, momentum
        for _ in range(LEAPFROGS):
            p = p + 0.5 * length * there_slope
            y = y + length * p
            there_slope = score(y)
            p = p + 0.5 * length * there_slope
        there = log_density(y)
        log_ratio = np.nan_to_num(there - here + 0.5 * ((momentum**2).sum(1) - (p**2).sum(1)), nan=-np.inf)
        accepted = np.log(rng.uniform(size=CHAINS)) < log_ratio
        x, slope = np.where(accepted[:, None], y, x), np.where(accepted[:, None], there_slope, slope)
        here = np.where(accepted, there, here)
        if t < BURN_IN:
            step *= np.exp(0.1 * (np.minimum(1, np.exp(np.minimum(log_ratio, 0))).mean() - 0.8))
        else:
            kept.append(field[0](x) if modes else x.copy())
            accepted_so_far.append(accepted.mean())
    x = np.stack(kept, axis=1)
    evaluations = CHAINS * LEAPFROGS * (BURN_IN + draws)
    row = {"evaluations": evaluations, "gradients": True, "acceptance": float(np.mean(accepted_so_far)), "step": float(step)}
    return row | observed(case, x, evaluations)


def observed(case, x, evaluations):
    """What a case is about, from draws of shape (chains, draws, d)."""
    if case.group == "lattice":
        length = case.target["length"]
        return {"observables": of_lattice(x.reshape(*x.shape[:2], length, length), evaluations)}
    n = case.target["particles"]
    energies = np.stack([densities.lennard_jones(chain.reshape(-1, n, 3))[0] for chain in x])
    return of_energies(energies, evaluations)


def of_energies(energies, evaluations):
    """1,000 energies evenly spread over all chains and draws, and how many would be independent."""
    mean, error, effective = mean_with_error(energies)
    flat = energies.ravel()
    picked = flat[np.linspace(0, flat.size - 1, 1000).astype(int)]
    row = {"mean": mean, "error": error, "ess": effective, "evaluations": evaluations / effective}
    rng = np.random.default_rng(0)

    def some():
        return rng.choice(flat, 1000, replace=flat.size < 1000)

    row["floor"] = float(np.mean([distance(some(), some()) for _ in range(50)]))
    return {"energy": row, "energies": [round(float(e), 4) for e in picked]}
