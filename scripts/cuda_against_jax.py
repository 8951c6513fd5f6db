"""The computations of `sterna bench --device cuda`, written in JAX, measured on the same GPU.

    python3 scripts/cuda_against_jax.py [--sterna path/to/sterna] [--only NAME]

With --sterna the program's own figures are printed first, in the same run. JAX gets what its users would give it:
one jitted scan over steps, batches drawn inside it, donated state. f32 is matmul precision "highest".
"""

import argparse
import functools
import math
import subprocess
import time

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
F = jnp.float32
DIM, ROWS, CHAINS = 10, 512, 10
# Any 40 means do for timing.
MEANS = jax.random.uniform(jax.random.key(0), (40, 2), minval=-1.0, maxval=1.0)
BETAS = jnp.asarray([(n / (CHAINS - 1)) ** 3 for n in range(CHAINS)])


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b), F) / math.sqrt(a), jnp.zeros(b, F)) for k, a, b in zip(keys, sizes, sizes[1:])]


def mlp(weights, x):
    for i, (w, b) in enumerate(weights):
        x = (jax.nn.silu(x) if i else x) @ w + b
    return x


def adam_step(loss, state, key):
    p, m, v, a, t = state
    value, g = jax.value_and_grad(loss)(p, key)
    norm = jnp.sqrt(sum(jnp.sum(x * x) for x in jax.tree.leaves(g)))
    g = jax.tree.map(lambda x: x * jnp.minimum(1.0, 1.0 / norm).astype(F), g)
    t = t + 1
    m = jax.tree.map(lambda m, g: F(0.9) * m + F(0.1) * g, m, g)
    v = jax.tree.map(lambda v, g: F(0.999) * v + F(0.001) * g * g, v, g)
    c1, c2 = (1 - 0.9**t).astype(F), (1 - 0.999**t).astype(F)
    p = jax.tree.map(lambda p, m, v: p - F(1e-4) * (m / c1) / (jnp.sqrt(v / c2) + F(1e-8)), p, m, v)
    a = jax.tree.map(lambda a, p: F(0.99) * a + F(0.01) * p, a, p)
    return (p, m, v, a, t), value


def steps_per_second(loss, params, length):
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = (params, zeros, jax.tree.map(jnp.copy, zeros), jax.tree.map(jnp.copy, params), jnp.asarray(0.0, F))

    @functools.partial(jax.jit, donate_argnums=0)
    def burst(state, key):
        return jax.lax.scan(lambda s, k: adam_step(loss, s, k), state, jax.random.split(key, length))

    state, _ = jax.block_until_ready(burst(state, jax.random.key(1)))
    times = []
    for k in range(5):
        begin = time.perf_counter()
        state, _ = jax.block_until_ready(burst(state, jax.random.key(2 + k)))
        times.append((time.perf_counter() - begin) / length)
    return 1 / sorted(times)[2]


def step_mlp():
    def loss(p, key):
        return jnp.mean(jnp.sum(mlp(p, jax.random.normal(key, (ROWS, DIM), F)) ** 2, 1))

    return 1e6 / steps_per_second(loss, init(jax.random.key(0), [DIM] + 4 * [512] + [DIM]), 1000)


def step_score():
    def loss(p, key):
        z = jax.random.normal(key, (ROWS, 2 * DIM), F)
        score = jax.grad(lambda x: jnp.sum(mlp(p, x)))(z[:, :DIM])
        return jnp.mean(jnp.sum((score - z[:, DIM:]) ** 2, 1))

    return 1e6 / steps_per_second(loss, init(jax.random.key(0), [DIM] + 3 * [128] + [1]), 1000)


def log_target(x):
    d = x[:, :1] - MEANS[:, 0].astype(x.dtype), x[:, 1:2] - MEANS[:, 1].astype(x.dtype)
    mixture = jax.nn.logsumexp(-800.0 * (d[0] ** 2 + d[1] ** 2), axis=1)
    return mixture - 800.0 * jnp.sum(x[:, 2:] ** 2, 1) + 0.5 * DIM * math.log(1600 / (2 * math.pi)) - math.log(40)


def log_path(beta, x):
    reference = -0.5 * jnp.sum(x * x, 1) - 0.5 * DIM * math.log(2 * math.pi)
    return reference + beta * (log_target(x) - reference)


def score_path(beta, x):
    return jax.grad(lambda x: jnp.sum(log_path(beta, x)))(x)


def position(beta):
    return jnp.interp(beta, BETAS.astype(beta.dtype), jnp.arange(CHAINS, dtype=beta.dtype))


def features(low, high, time=None):
    lower = position(low) / (CHAINS - 1)
    parts = [lower, position(high) - position(low)]
    for x, n in [(lower, 6)] + ([(time, 4)] if time is not None else []):
        phases = [math.pi * 2**j * x for j in range(n)]
        parts += ([x] if x is time else []) + [jnp.sin(p) for p in phases] + [jnp.cos(p) for p in phases]
    return jnp.stack(parts, 1), parts[1]


def drift(p, low, high, time, x):
    f, span = features(low, high, time)
    return mlp(p, jnp.concatenate([x, f], 1)) * span[:, None]


def samples():
    x = jax.random.normal(jax.random.key(3), (CHAINS, 17_500, DIM), F)
    return x * (1 - BETAS.astype(F))[:, None, None] * 0.5


def train_cmcd(steps):
    table, betas = samples(), BETAS.astype(F)

    def loss(p, key):
        rows = 2 * ROWS
        k1, k2, k3 = jax.random.split(key, 3)
        pair = jax.random.randint(k1, (rows,), 0, CHAINS - 1)
        forward = (jnp.arange(rows) % 2 == 0)
        x = table[jnp.where(forward, pair, pair + 1), jax.random.randint(k2, (rows,), 0, table.shape[1])]
        z = jax.random.normal(k3, (steps, rows, DIM), F)
        low, high = betas[pair], betas[pair + 1]
        way = forward.astype(F)
        shares = jnp.exp(p["phi"][pair])
        phi = jnp.concatenate([jnp.zeros((rows, 1), F), jnp.cumsum(shares, 1) / jnp.sum(shares, 1, keepdims=True)], 1)
        vp, vq = jnp.exp(p["p"][pair] - 4), jnp.exp(p["q"][pair] - 4)

        def beta(n):
            there, back = phi[:, n], phi[:, steps - n]
            return low + jnp.where(forward, there, back) * (high - low)

        def look(n, x):
            s = n / steps
            b = drift(p["net"], low, high, way * (2 * s - 1) + (1 - s), x)
            return score_path(beta(n), x), b * jnp.where(forward, 1.0, -1.0).astype(F)[:, None] / steps

        start, ratio = log_path(beta(0), x), jnp.zeros(rows, F)
        score, b = look(0, x)
        for n in range(1, steps + 1):
            v = jnp.where(forward, vp[:, n - 1], vq[:, steps - n])[:, None]
            u = jnp.where(forward, vq[:, n - 1], vp[:, steps - n])[:, None]
            y = x + 0.5 * v * score + b + jnp.sqrt(v) * z[n - 1]
            score, b = look(n, y)
            miss = x - (y + 0.5 * u * score - b)
            ratio += 0.5 * (jnp.sum(z[n - 1] ** 2, 1) - jnp.sum(miss**2 / u, 1) + DIM * jnp.log(v / u)[:, 0])
            x = y
        return 2 * jnp.mean(start - (log_path(beta(steps), x) + ratio))

    zeros = lambda: jnp.zeros((CHAINS - 1, steps), F)
    params = {"net": init(jax.random.key(0), [DIM + 23] + 4 * [512] + [DIM]), "p": zeros(), "q": zeros(), "phi": zeros()}
    return steps_per_second(loss, params, 500 if steps == 1 else 200)


def train_flow():
    table, betas, layers = samples(), BETAS.astype(F), 20

    def kept(i):
        j = jnp.arange(DIM)
        return [j % 2 == 0, j % 2 == 1, j < DIM // 2, j >= DIM // 2][i % 4].astype(F)

    def couple(p, i, f, span, x):
        raw = mlp(p[i], jnp.concatenate([x * kept(i), f], 1))
        moved = (1 - kept(i)) * span[:, None]
        return jnp.tanh(raw[:, :DIM] / 2) * 2 * moved, raw[:, DIM:] * moved

    def loss(p, key):
        k1, k2, k3 = jax.random.split(key, 3)
        pair = jax.random.randint(k1, (ROWS,), 0, CHAINS - 1)
        low, high = betas[pair], betas[pair + 1]
        f, span = features(low, high)
        x = a = table[pair, jax.random.randint(k2, (ROWS,), 0, table.shape[1])]
        y = b = table[pair + 1, jax.random.randint(k3, (ROWS,), 0, table.shape[1])]
        up = down = jnp.zeros(ROWS, F)
        for i in range(layers):
            s, t = couple(p, i, f, span, x)
            x, up = x * jnp.exp(s) + t, up + jnp.sum(s, 1)
        for i in reversed(range(layers)):
            s, t = couple(p, i, f, span, y)
            y, down = (y - t) * jnp.exp(-s), down - jnp.sum(s, 1)
        return jnp.mean(log_path(low, a) - log_path(high, x) - up + log_path(high, b) - log_path(low, y) - down)

    keys = jax.random.split(jax.random.key(0), layers)
    return steps_per_second(loss, [init(k, [DIM + 14, 128, 128, 2 * DIM]) for k in keys], 200)


def train_diffusion():
    """Score matching of an energy model on noised samples, and of its slope in s."""
    table, precision = samples()[-1], jnp.full(DIM, 1600.0, F)
    order, bound, shortest = 8.0, 30.0, 0.1 / 1600
    start = jnp.log(precision)

    def waves(x, frequencies):
        phases = jnp.concatenate([x * f for f in frequencies], 1)
        return [jnp.sin(phases), jnp.cos(phases)]

    def of_time(s):
        closeness = jnp.log(1 + shortest - s) / math.log(shortest)
        frequencies = [math.pi * 2**j for j in range(4)]
        return jnp.concatenate([s, closeness, *waves(s, frequencies), *waves(closeness, frequencies)], 1)

    def shares(p, s):
        scalars = mlp(p["scalar"], of_time(s))
        log_each = scalars[:, :DIM] + start
        largest = jnp.exp(jax.nn.logsumexp(order * log_each, axis=1, keepdims=True) / order)
        rest, each = 1 - s, jnp.exp(log_each)
        kept = jnp.exp(-jax.nn.softplus(scalars[:, DIM : DIM + 1]) * jnp.log1p(rest * largest))
        share = kept / (s + rest * largest)
        return share, each * (1 / (s + rest * each) - s * share), scalars[:, DIM + 1 :]

    def learned(p, s, x):
        inputs = [x, *waves(x, [math.pi / 2 * 2**k for k in range(3)]), of_time(s)]
        raw = mlp(p["vector"], jnp.concatenate(inputs, 1))
        vector = raw / jnp.sqrt(1 + jnp.sum(raw**2, 1, keepdims=True) / bound**2)
        weight = s * (1 - s) / (1 - s + s / precision) ** 2
        return jnp.sum(weight * vector * x, 1)

    def score(x):
        return jax.grad(lambda x: jnp.sum(log_target(x)))(x)

    def loss(p, key):
        k1, k2, k3 = jax.random.split(key, 3)
        s = jax.random.uniform(k1, (ROWS, 1), F, shortest, 1 - shortest)
        a = table[jax.random.randint(k2, (ROWS,), 0, table.shape[0])]
        z = jax.random.normal(k3, (ROWS, DIM), F)
        root, width, rest = jnp.sqrt(s), jnp.sqrt(1 - s), 1 - s
        x = root * a + width * z
        place = root * x
        clean, noised, level = score(a), score(place), log_target(place)[:, None]
        unit = 1 / (s + rest * precision)
        wanted = unit * (root * clean - width * precision * z)
        across = jnp.sum(z * a, 1, keepdims=True) / (root * width)
        wanted_slope = 0.5 * ((DIM - jnp.sum(z * z, 1, keepdims=True)) / rest + across)
        slope_scale = rest**2 / (rest + s * 10 * shortest) * root
        share, pull, growth = shares(p, s)
        of_x, of_s = jax.grad(lambda x, s: jnp.sum(learned(p, s, x)), (0, 1))(x, s)
        model = of_x + share * root * noised - pull * x
        rise = jax.grad(lambda s: jnp.sum(shares(p, s)[0] * level - 0.5 * jnp.sum(shares(p, s)[1] * x * x, 1, keepdims=True)))(s)
        slope = of_s + rise + share * jnp.sum(x * noised, 1, keepdims=True) / (2 * root)
        off = jnp.sum(((model - wanted) * jnp.sqrt(1 / (unit * precision))) ** 2, 1)
        off_slope = jnp.sum(((slope - wanted_slope) * slope_scale - growth) ** 2, 1)
        return jnp.mean(off + off_slope) / DIM

    keys = jax.random.split(jax.random.key(0))
    params = {
        "vector": init(keys[0], [DIM * 7 + 18, 128, 128, 128, DIM]),
        "scalar": init(keys[1], [18, 64, 64, DIM + 2]),
    }
    return steps_per_second(loss, params, 500)


def sample(ensembles=1024, iterations=100):
    """Ladder iterations a second: Algorithm 1 with HMC (5 leapfrogs) and CMCD K = 1; densities f64, drift f32."""
    net = init(jax.random.key(0), [DIM + 23] + 4 * [512] + [DIM])
    sigma2 = 0.01
    rows = ensembles * CHAINS
    step = jnp.tile(0.05 / (1 + 10 * BETAS), ensembles)[:, None]

    def evaluate(beta, x):
        value, pull = jax.vjp(lambda x: log_path(beta, x), x)
        return value, pull(jnp.ones_like(value))[0]

    def hmc(beta, x, key):
        k1, k2 = jax.random.split(key)
        v = jax.random.normal(k1, x.shape)
        h, score = evaluate(beta, x)
        y, start = x, h - 0.5 * jnp.sum(v * v, 1)
        for leap in range(5):
            v = v + (0.5 if leap == 0 else 1.0) * step * score
            y = y + step * v
            h, score = evaluate(beta, y)
        v = v + 0.5 * step * score
        accept = jnp.log(jax.random.uniform(k2, (rows,))) < h - 0.5 * jnp.sum(v * v, 1) - start
        return jnp.where(accept[:, None], y, x)

    def iteration(x, key, first):
        keys = jax.random.split(key, 4)
        fresh = jax.random.normal(keys[0], (ensembles, DIM))
        x = hmc(jnp.tile(BETAS, ensembles), x, keys[1]).reshape(ensembles, CHAINS, DIM).at[:, 0].set(fresh)
        chain = jnp.arange(first, CHAINS - 1, 2)
        pairs = len(chain)
        low, high = jnp.tile(BETAS[chain], 2 * ensembles), jnp.tile(BETAS[chain + 1], 2 * ensembles)
        forward = jnp.arange(2 * ensembles * pairs) < ensembles * pairs
        start = jnp.concatenate([x[:, chain].reshape(-1, DIM), x[:, chain + 1].reshape(-1, DIM)])
        sign = jnp.where(forward, 1.0, -1.0)[:, None]
        z = jax.random.normal(keys[2], start.shape)

        def look(beta, time, x):
            value, score = evaluate(beta, x)
            b = drift(net, low.astype(F), high.astype(F), time.astype(F), x.astype(F)).astype(jnp.float64)
            return value, score, sign * b

        begin, s0, b0 = look(jnp.where(forward, low, high), jnp.where(forward, 0.0, 1.0), start)
        end = start + sigma2 * s0 + b0 + math.sqrt(2 * sigma2) * z
        final, s1, b1 = look(jnp.where(forward, high, low), jnp.where(forward, 1.0, 0.0), end)
        miss = start - (end + sigma2 * s1 - b1)
        gain = final + 0.5 * (jnp.sum(z * z, 1) - jnp.sum(miss * miss, 1) / (2 * sigma2)) - begin
        half = ensembles * pairs
        swap = (jnp.log(jax.random.uniform(keys[3], (half,))) < gain[:half] + gain[half:]).reshape(ensembles, pairs, 1)
        up, down = end[:half].reshape(ensembles, pairs, DIM), end[half:].reshape(ensembles, pairs, DIM)
        x = x.at[:, chain].set(jnp.where(swap, down, x[:, chain])).at[:, chain + 1].set(jnp.where(swap, up, x[:, chain + 1]))
        return x.reshape(rows, DIM)

    @functools.partial(jax.jit, donate_argnums=0)
    def burst(x, key):
        # Odd pairs, then even ones.
        both = lambda x, keys: (iteration(iteration(x, keys[0], 0), keys[1], 1), None)
        return jax.lax.scan(both, x, jax.random.split(key, (iterations // 2, 2)))

    x, _ = jax.block_until_ready(burst(jax.random.normal(jax.random.key(5), (rows, DIM)), jax.random.key(6)))
    times = []
    for k in range(5):
        begin = time.perf_counter()
        x, _ = jax.block_until_ready(burst(x, jax.random.key(7 + k)))
        times.append(time.perf_counter() - begin)
    return ensembles * iterations / sorted(times)[2]


MEASURES = {
    "step-mlp": step_mlp,
    "step-score": step_score,
    "train-cmcd1": lambda: train_cmcd(1),
    "train-cmcd5": lambda: train_cmcd(5),
    "train-flow": train_flow,
    "train-diffusion": train_diffusion,
    "sample-cmcd1": sample,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sterna")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.sterna:
        only = ["--only", arguments.only] if arguments.only else []
        subprocess.run([arguments.sterna, "bench", "--device", "cuda", *only], check=True)
    print(f"JAX {jax.__version__}, {jax.devices()[0].device_kind}", flush=True)
    for name, measure in MEASURES.items():
        if name.startswith(arguments.only):
            values = []
            for precision in ["highest", "tensorfloat32"]:
                with jax.default_matmul_precision(precision):
                    values.append(measure())
            print(f"{name:<14} f32 {values[0]:12.1f}  TF32 {values[1]:12.1f}", flush=True)


if __name__ == "__main__":
    main()
