#!/usr/bin/env python3
"""Compares the speed of sterna-neural with JAX in the same minute and prints the ratios.

    python crates/sterna-neural/benches/against_jax.py [--rounds 20] [--only NAME]

Needs `jax` in the Python that runs it. Both programs stand ready and take turns in bursts of some
50 ms, so that whatever else runs on the machine hits both alike; a ratio is the median over the
rounds of JAX's time by ours in the same tenth of a second.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

CASES = [  # name, threads, ratio that we aim for
    ("forward-4x512", 1, 1.15),
    ("gradient-4x512", 1, 1.0),
    ("gradient-4x512", 2, 1.0),
    ("forward-3x128", 1, 1.8),
    ("score-3x128", 1, 1.0),
    ("score-4x512", 1, None),
    ("score-4x512", 2, None),
]
BURST = 50_000  # microseconds


def serve_jax(name):
    """Runs in a child process: reads numbers of calls, prints the time of one."""
    import jax
    import jax.numpy as jnp

    dim = 10
    kind, size = name.split("-")
    layers, width = map(int, size.split("x"))
    out = 1 if kind == "score" else dim
    sizes = [dim] + [width] * layers + [out]
    keys = jax.random.split(jax.random.PRNGKey(0), len(sizes))
    weights = [
        (jax.random.normal(k, (a, b), jnp.float32) / a**0.5, jnp.zeros(b, jnp.float32))
        for k, a, b in zip(keys, sizes, sizes[1:])
    ]
    rows = 31 if kind == "forward" else 512
    x = jax.random.normal(keys[-1], (rows, dim), jnp.float32)
    v = 0.5 * x

    def network(weights, x):
        for w, b in weights[:-1]:
            x = jax.nn.silu(x @ w + b)
        w, b = weights[-1]
        return x @ w + b

    def squares(weights, x):
        return jnp.mean(jnp.sum(network(weights, x) ** 2, axis=1))

    def score_matching(weights, x, v):
        score = jax.grad(lambda x: network(weights, x).sum())(x)
        return jnp.mean(jnp.sum((score - v) ** 2, axis=1))

    if kind == "forward":
        f, args = jax.jit(network), (weights, x)
    elif kind == "gradient":
        f, args = jax.jit(jax.value_and_grad(squares)), (weights, x)
    else:
        f, args = jax.jit(jax.value_and_grad(score_matching)), (weights, x, v)
    jax.block_until_ready(f(*args))
    for line in sys.stdin:
        n = int(line)
        start = time.perf_counter()
        for _ in range(n):
            jax.block_until_ready(f(*args))
        print((time.perf_counter() - start) * 1e6 / n, flush=True)


class Server:
    """A program that times bursts of calls."""

    def __init__(self, command, threads):
        env = dict(os.environ, JAX_PLATFORMS="cpu")
        if threads == 1:
            command = ["taskset", "-c", "0"] + command
            env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True)
        self.burst(3)
        self.calls = max(1, round(BURST / self.burst(3)))

    def burst(self, n=None):
        self.process.stdin.write(f"{n or self.calls}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def turns(first, second, rounds):
    """Times of both, taken in turns."""
    times = [(first.burst(), second.burst()) for _ in range(rounds)]
    first.close(), second.close()
    return [statistics.median(t) for t in zip(*times)], statistics.median(b / a for a, b in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--jax", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    if args.jax:
        return serve_jax(args.jax)

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    build = subprocess.run(
        ["cargo", "bench", "-p", "sterna-neural", "--bench", "speed", "--no-run"],
        cwd=root, check=True, capture_output=True, text=True,
    )
    binary = os.path.join(root, re.search(r"Executable benches/speed\.rs \((.*)\)", build.stderr).group(1))
    ours = lambda name, threads: Server([binary, "--case", name, "--threads", str(threads)], threads)
    theirs = lambda name, threads: Server([sys.executable, __file__, "--jax", name], threads)

    print(f"{'f32':<16}{'threads':>8}{'ours µs':>12}{'JAX µs':>12}{'ratio':>8}{'goal':>8}")
    missed = 0
    for name, threads, goal in CASES:
        if args.only in name:
            (a, b), ratio = turns(ours(name, threads), theirs(name, threads), args.rounds)
            missed += goal is not None and ratio < goal
            goal = f"{goal:.2f}" if goal else ""
            print(f"{name:<16}{threads:>8}{a:>12.1f}{b:>12.1f}{ratio:>8.2f}{goal:>8}", flush=True)
    if args.only in "gradient-4x512":
        (two, one), gain = turns(ours("gradient-4x512", 2), ours("gradient-4x512", 1), args.rounds)
        missed += gain < 1.7
        print(f"two threads against one on gradient-4x512: {gain:.2f} (goal 1.70)")
    print("every goal reached" if missed == 0 else f"{missed} goals missed")


if __name__ == "__main__":
    main()
