"""One program on one case, in a process of its own: rivals.py PROGRAM CASE SEED OUT.json

Each function returns evaluations (with a gradient or without), log Z where the program has one, draws with weights, and effective draws.
Settings are the programs' documented defaults, or what their documentation recommends for such a case, which then stands beside it.
"""

import json
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "measure" / "posteriors"))

import cases  # noqa: E402
import database  # noqa: E402
import densities  # noqa: E402
import draws as judged  # noqa: E402


class Counted:
    """A function of one point or of many that counts points."""

    def __init__(self, f):
        self.f, self.count = f, 0

    def __call__(self, x):
        x = np.asarray(x, float)
        self.count += 1 if x.ndim == 1 else len(x)
        with np.errstate(all="ignore"):
            return np.nan_to_num(self.f(np, x), nan=-1e300, neginf=-1e300)


def kish(weights):
    return float(weights.sum() ** 2 / (weights**2).sum())


def weighted(case, x, log_weights):
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    if case.group == "database":
        _, draw, _ = database.PRIORS[case.target["name"]]()
        even = np.array([draw(u) for u in x[np.random.default_rng(0).choice(len(x), 20_000, p=weights)]])
        values = dict(zip(database.Model(case.target["name"]).names, even.T[:, None], strict=True))
        return {"ess": kish(weights)} | database.judged_against(case.target["name"], values)
    return {"ess": kish(weights)} | modes(case, x, weights)


def modes(case, x, weights=None):
    if case.modes is None:
        return {}
    weights = np.full(len(x), 1 / len(x)) if weights is None else weights
    found = np.bincount(case.modes(x), weights, minlength=len(case.weights))
    return {"modes": found.tolist(), "mode_error": float(np.abs(found - case.weights).max())}


def of_chains(case, x):
    """x of shape (chains, draws, d)."""
    values = {j: x[:, :, j] for j in range(x.shape[2])}
    return {"ess": judged.smallest_bulk_ess(values)} | modes(case, x.reshape(-1, x.shape[2]))


def to_box(case):
    low, high = case.box.T
    return lambda u: low + (high - low) * u


def galaxy_transform(u):
    from scipy.special import ndtri

    centre, wide = densities.GALAXY_PRIOR
    z = ndtri(u)
    z[..., :3] = centre + wide * z[..., :3]
    return z


def galaxy_likelihood(xp, x):
    centre, wide = densities.GALAXY_PRIOR
    squares = (((x[..., :3] - centre) / wide) ** 2).sum(axis=-1) + (x[..., 3:] ** 2).sum(axis=-1)
    return densities.galaxies(xp, x) + 0.5 * squares + 4.5 * densities.LOG_TAU + 3 * np.log(wide)


class LikelihoodOfStan:
    """What is left of a posterior without its prior, at a point of the cube."""

    def __init__(self, name):
        _, self.draw, self.log_prior = database.PRIORS[name]()
        self.model = database.Model(name)

    def __call__(self, u):
        x = self.draw(u)
        value = self.model.at(x)
        return value - self.log_prior(x) if value > -1e300 else value

    @property
    def count(self):
        return self.model.count


def nested(case):
    """Likelihood and prior transform, as nested samplers have them."""
    if case.group == "database":
        return LikelihoodOfStan(case.target["name"]), lambda u: u
    if case.name == "galaxies":
        return Counted(galaxy_likelihood), galaxy_transform
    return Counted(case.log_likelihood), to_box(case)


def dynesty(case, seed):
    """NestedSampler(nlive=500), its automatic choice of bounds and moves, dlogz=0.01 as for static runs in its documentation."""
    import dynesty as program

    likelihood, transform = nested(case)
    sampler = program.NestedSampler(likelihood, transform, case.dim, nlive=500, rstate=np.random.default_rng(seed))
    sampler.run_nested(dlogz=0.01, print_progress=False)
    found = sampler.results
    row = {"log_z": float(found.logz[-1]), "log_z_error": float(found.logzerr[-1]), "evaluations": likelihood.count}
    return row | weighted(case, found.samples, found.logwt - found.logz[-1])


def nautilus(case, seed):
    """Sampler(n_live=2000), its default, one process."""
    from nautilus import Sampler

    likelihood, transform = nested(case)
    sampler = Sampler(transform, likelihood, n_dim=case.dim, seed=seed, vectorized=True, pass_dict=False)
    sampler.run(verbose=False)
    x, log_weights, _ = sampler.posterior()
    row = {"log_z": float(sampler.log_z), "log_z_error": float(1 / np.sqrt(sampler.n_eff)), "evaluations": likelihood.count}
    return row | weighted(case, x, log_weights)


def ultranest(case, seed):
    """ReactiveNestedSampler; above 20 dimensions with its slice sampler of 2 d steps, as its documentation recommends there."""
    import ultranest as program
    import ultranest.stepsampler as steps

    np.random.seed(seed)
    likelihood, transform = nested(case)
    names = [f"x{j}" for j in range(case.dim)]
    sampler = program.ReactiveNestedSampler(names, likelihood, transform, vectorized=True, log_dir=None)
    if case.dim > 20:
        direction = steps.generate_mixture_random_direction
        sampler.stepsampler = steps.SliceSampler(nsteps=2 * case.dim, generate_direction=direction)
    found = sampler.run(show_status=False, viz_callback=None)
    points = found["weighted_samples"]
    row = {"log_z": found["logz"], "log_z_error": found["logzerr"], "evaluations": likelihood.count}
    return row | weighted(case, np.asarray(points["points"]), np.log(np.maximum(points["weights"], 1e-300)))


def unconstrained(case):
    """Log posterior and values in free coordinates, by the logistic function where there is a box, in JAX."""
    import jax.numpy as jnp
    from jax.nn import log_sigmoid, sigmoid

    if case.bounds is None:
        return (lambda y: case.log_likelihood(jnp, y)), (lambda y: y)
    low, high = (jnp.asarray(side) for side in case.box.T)

    def values(y):
        return low + (high - low) * sigmoid(y)

    def log_density(y):
        return case.log_likelihood(jnp, values(y)) + (log_sigmoid(y) + log_sigmoid(-y)).sum(axis=-1)

    return log_density, values


def with_jax():
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def blackjax_smc(case, seed):
    """adaptive_tempered_smc with HMC: 1,000 particles, target ESS ½, 10 steps of 10 leapfrogs a level; from level to level the mass matrix is that
    of the particles and the step goes to 65 % accepted, by its own functions for both; N(0, I) is the prior."""
    jax = with_jax()
    import blackjax
    import jax.numpy as jnp
    from blackjax.smc.tuning.from_kernel_info import update_scale_from_acceptance_rate
    from blackjax.smc.tuning.from_particles import inverse_mass_matrix_from_particles
    from jax.scipy.stats import norm

    low, high = (jnp.asarray(side) for side in case.box.T)
    particles, mcmc_steps, leapfrogs = 1000, 10, 10

    def one_level(key, state, size):
        smc = blackjax.adaptive_tempered_smc(
            lambda z: norm.logpdf(z).sum(),
            lambda z: case.log_likelihood(jnp, low + (high - low) * norm.cdf(z)),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            {
                "step_size": size,
                "inverse_mass_matrix": inverse_mass_matrix_from_particles(state.particles)[None],
                "num_integration_steps": jnp.array([leapfrogs]),
            },
            blackjax.smc.resampling.systematic,
            0.5,
            num_mcmc_steps=mcmc_steps,
        )
        state, info = smc.step(key, state)
        accepted = info.update_info.acceptance_rate.mean()
        return state, info.log_likelihood_increment, update_scale_from_acceptance_rate(size, accepted[None], 0.65)

    key = jax.random.key(seed)
    state = blackjax.smc.tempered.init(jax.random.normal(key, (particles, case.dim)))
    step, size, log_z, levels = jax.jit(one_level), jnp.array([0.2]), 0.0, 0
    while float(state.tempering_param) < 1:
        key, sub = jax.random.split(key)
        state, increment, size = step(sub, state, size)
        log_z += float(increment)
        levels += 1
    x = np.asarray(low + (high - low) * norm.cdf(state.particles))
    weights = np.asarray(state.weights)
    row = {"log_z": log_z, "evaluations": particles * mcmc_steps * leapfrogs * levels, "gradients": True, "levels": levels}
    return row | {"ess": kish(weights)} | modes(case, x, weights / weights.sum())


def reddemcee(case, seed):
    """PTSampler with its adaptation, 12 temperatures, 4 d walkers, evidence by its stepping stones and thermodynamic integration."""
    import reddemcee as program

    np.random.seed(seed)
    likelihood, _ = nested(case)
    low, high = case.box.T
    log_volume = np.log(high - low).sum()

    def log_prior(x):
        return -log_volume if np.all((x >= low) & (x <= high)) else -np.inf

    walkers, temperatures, sweeps, steps = max(4 * case.dim, 32), 12, 1000, 2
    sampler = program.PTSampler(walkers, case.dim, likelihood, log_prior, ntemps=temperatures)
    start = np.random.uniform(low, high, (temperatures, walkers, case.dim))
    sampler.run_mcmc(start, sweeps, steps, progress=False)
    found = sampler.get_evidence_hybrid(discard=sweeps // 2)
    row = {"log_z": float(found[0]), "log_z_error": float(found[1]), "evaluations": likelihood.count}
    # Temperatures × draws × walkers × d, the coldest first.
    cold = sampler.get_chain(discard=sweeps * steps // 2)[0]
    return row | of_chains(case, np.moveaxis(cold, 1, 0))


CHAINS, WARM_UP, DRAWS = 4, 1000, 1000


def starts(case, seed, chains=CHAINS):
    """Stan's: uniform within ±2 in free coordinates."""
    return np.random.default_rng(seed).uniform(-2, 2, (chains, case.dim))


def blackjax_nuts(case, seed):
    """window_adaptation, then nuts: 4 chains of 1,000 after 1,000, from Stan's starts."""
    jax = with_jax()
    import blackjax

    log_density, values = unconstrained(case)

    def chain(key, start):
        first, second = jax.random.split(key)
        warm_up = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, parameters), info = warm_up.run(first, start, num_steps=WARM_UP)
        kernel = blackjax.nuts(log_density, **parameters).step

        def one(state, key):
            state, info = kernel(key, state)
            return state, (state.position, info.num_integration_steps)

        _, (x, steps) = jax.lax.scan(one, state, jax.random.split(second, DRAWS))
        return values(x), steps.sum() + info.info.num_integration_steps.sum()

    keys = jax.random.split(jax.random.key(seed), CHAINS)
    found = [jax.jit(chain)(key, start) for key, start in zip(keys, starts(case, seed), strict=True)]
    x, steps = np.stack([x for x, _ in found]), sum(int(steps) for _, steps in found)
    return {"evaluations": steps, "gradients": True} | of_chains(case, x)


def numpyro_nuts(case, seed):
    """NUTS of a potential: 4 chains of 1,000 after 1,000, from Stan's starts."""
    jax = with_jax()
    import jax.numpy as jnp
    from numpyro.infer import MCMC, NUTS

    log_density, values = unconstrained(case)
    mcmc = MCMC(
        NUTS(potential_fn=lambda y: -log_density(y)),
        num_warmup=WARM_UP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    start, key, fields = jnp.asarray(starts(case, seed)), jax.random.key(seed), ("num_steps",)
    mcmc.warmup(key, init_params=start, extra_fields=fields, collect_warmup=True)
    steps = int(mcmc.get_extra_fields()["num_steps"].sum())
    mcmc.run(mcmc.post_warmup_state.rng_key, extra_fields=fields)
    steps += int(mcmc.get_extra_fields()["num_steps"].sum())
    x = np.asarray(values(mcmc.get_samples(group_by_chain=True)))
    return {"evaluations": steps, "gradients": True} | of_chains(case, x)


def nutpie(case, seed):
    """sample() of a function with its gradient (by JAX, or Stan's model compiled): 4 chains of 1,000 after its default warm-up, from Stan's starts."""
    return nutpie_of_stan(case, seed) if case.group == "database" else nutpie_of_jax(case, seed)


def nutpie_of_stan(case, seed):
    import nuts

    model = database.Model(case.target["name"])
    x, steps, warm_up = by_nutpie(case.dim, lambda: model.with_gradient, model.constrained, len(model.names), seed)
    values = {name: x[:, :, j] for j, name in enumerate(model.names)}
    row = {"evaluations": warm_up + int(steps.sum()), "gradients": True, "ess": judged.smallest_bulk_ess(values)}
    at = nuts.reached(values, 1000)
    row["to_1000"] = warm_up + int(steps[:, : at[0]].sum()) if at else None
    return row | database.judged_against(case.target["name"], values)


def nutpie_of_jax(case, seed):
    jax = with_jax()
    log_density, values = unconstrained(case)
    both = jax.jit(jax.value_and_grad(log_density))

    def make_logp():
        def logp(y):
            value, slope = both(y)
            return float(value), np.asarray(slope)

        return logp

    x, steps, warm_up = by_nutpie(case.dim, make_logp, lambda y: np.asarray(values(y)), case.dim, seed)
    return {"evaluations": warm_up + int(steps.sum()), "gradients": True} | of_chains(case, x)


def by_nutpie(dim, make_logp, values, count, seed):
    """Draws (chains × draws × values), leapfrog steps of each, and those of the warm-up."""
    import nutpie as program
    from nutpie.compiled_pyfunc import from_pyfunc

    def make_expand(*_):
        return lambda y: {"x": values(y)}

    def start(seed):
        return np.random.default_rng(seed).uniform(-2, 2, dim)

    model = from_pyfunc(dim, make_logp, make_expand, [np.dtype("float64")], [(count,)], ["x"], make_initial_point_fn=start)
    found = program.sample(
        model, draws=DRAWS, chains=CHAINS, cores=1, seed=seed, progress_bar=False, save_warmup=True, store_divergences=False
    )
    steps, warm_up = (np.asarray(found[group]["n_steps"]) for group in ("sample_stats", "warmup_sample_stats"))
    return np.asarray(found["posterior"]["x"]), steps, int(warm_up.sum())


def stan_nuts(case, seed):
    """pystan: 4 chains of 1,000 after 1,000, all at its defaults."""
    import nuts
    import stan
    import stan_code

    code = getattr(stan_code, case.name.upper())
    data = {"mrna": {"y": densities.FLUORESCENCE.tolist()}, "galaxies": {"y": densities.VELOCITIES.tolist()}}[case.name]
    model = stan.build(code, data=data, random_seed=seed)
    clock = nuts.processor()
    fit = model.sample(num_chains=CHAINS, num_warmup=WARM_UP, num_samples=DRAWS, save_warmup=True)
    of_chain = {name: fit[name].reshape(-1, WARM_UP + DRAWS, CHAINS) for name in ("x", "n_leapfrog__")}
    x = np.moveaxis(of_chain["x"][:, WARM_UP:], [0, 1, 2], [2, 1, 0])
    row = {"evaluations": int(of_chain["n_leapfrog__"].sum()), "gradients": True}
    return row | {"processor_s": nuts.processor() - clock} | of_chains(case, x)


def emcee(case, seed):
    """EnsembleSampler: 4 d walkers over the prior, 5,000 steps, half of them discarded."""
    import emcee as program

    rng = np.random.default_rng(seed)
    likelihood, transform = nested(case)
    walkers, steps = max(4 * case.dim, 32), 5000
    if case.bounds is None:
        log_density = Counted(densities.galaxies)
    else:
        low, high = case.box.T
        log_density = likelihood

        def inside(x):
            return np.all((x >= low) & (x <= high), axis=-1)

    def posterior(x):
        value = log_density(x)
        return value if case.bounds is None else np.where(inside(x), value, -np.inf)

    np.random.seed(seed)
    sampler = program.EnsembleSampler(walkers, case.dim, posterior, vectorize=True)
    sampler.run_mcmc(transform(rng.uniform(size=(walkers, case.dim))), steps)
    x = np.moveaxis(sampler.get_chain(discard=steps // 2), 1, 0)
    return {"evaluations": log_density.count} | of_chains(case, x)


def hmc(case, seed):
    """Plain Hamiltonian Monte Carlo: 32 chains side by side, ten leapfrogs, a step that 80 % accept, 500 iterations of burn-in."""
    import physics

    return physics.hmc(case, seed)


def hmc_in_modes(case, seed):
    """The same in the modes of the free field that comes nearest, in which sterna samples a lattice: Fourier acceleration."""
    import physics

    return physics.hmc(case, seed, modes=True)


def openmm_replica_exchange(case, seed):
    """ParallelTemperingSampler of openmmtools: 6 temperatures from 300 to 1200 K, evenly spaced in logarithm, swaps among all (its default)
    every 500 steps of Langevin dynamics of 1 fs (no constraints) and friction 1/ps, Reference platform; the first tenth is discarded."""
    import molecule

    return molecule.replica_exchange(seed)


def main():
    program, name, seed, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])
    function = globals()[program.replace(" ", "_")]
    clock = time.process_time()
    row = function(cases.BY_NAME[name], seed)
    row.setdefault("processor_s", time.process_time() - clock)
    row["settings"] = " ".join(function.__doc__.split())
    out.write_text(json.dumps(row))


if __name__ == "__main__":
    main()
