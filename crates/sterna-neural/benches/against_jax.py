#!/usr/bin/env python3
"""Compares the speed of sterna-neural with JAX in the same minute and prints the ratios.

    python crates/sterna-neural/benches/against_jax.py [--seconds 1] [--rounds 5]

Needs `jax` in the Python that runs it. Each round times both, one after the other, so that noise
from other programs hits both alike; the printed ratio is the median of the rounds' ratios. One thread
is judged by processor time, two by the fastest tenth of the calls: what other programs take from us
then counts least.
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


def jax_median(name, seconds):
    """Runs inside a child process whose processors and flags are set by `timed_jax`."""
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
    times = []
    begin, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds or len(times) < 10:
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        times.append((time.perf_counter() - start) * 1e6)
    cpu = (time.process_time() - cpu) * 1e6 / len(times)
    times.sort()
    print(times[len(times) // 2], times[len(times) // 10], cpu)


def pinned(threads):
    return ["taskset", "-c", "0"] if threads == 1 else []


def judged(threads, printed):
    median, fast, cpu = map(float, printed.split()[-3:])
    return cpu if threads == 1 else fast


def timed_jax(name, threads, seconds):
    env = dict(os.environ, JAX_PLATFORMS="cpu")
    if threads == 1:
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    command = pinned(threads) + [sys.executable, __file__, "--jax", name, "--seconds", str(seconds)]
    return judged(threads, subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)


def timed_ours(binary, name, threads, seconds):
    command = pinned(threads) + [binary, "--case", name, "--threads", str(threads), "--seconds", str(seconds)]
    return judged(threads, subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jax", help=argparse.SUPPRESS)
    parser.add_argument("--only", help="cases whose name contains this")
    args = parser.parse_args()
    if args.jax:
        return jax_median(args.jax, args.seconds)

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    build = subprocess.run(
        ["cargo", "bench", "-p", "sterna-neural", "--bench", "speed", "--no-run"],
        cwd=root, check=True, capture_output=True, text=True,
    )
    binary = os.path.join(root, re.search(r"Executable benches/speed\.rs \((.*)\)", build.stderr).group(1))

    print(f"{'f32':<16}{'threads':>8}{'ours µs':>12}{'JAX µs':>12}{'ratio':>8}{'goal':>8}")
    short, one = 0, {}
    for name, threads, goal in CASES:
        if args.only and args.only not in name:
            continue
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(timed_ours(binary, name, threads, args.seconds))
            theirs.append(timed_jax(name, threads, args.seconds))
        ratio = statistics.median(t / o for o, t in zip(ours, theirs))
        short += goal is not None and ratio < goal
        one[name, threads] = statistics.median(ours)
        goal = f"{goal:.2f}" if goal else ""
        print(f"{name:<16}{threads:>8}{statistics.median(ours):>12.1f}{statistics.median(theirs):>12.1f}{ratio:>8.2f}{goal:>8}", flush=True)
    if ("gradient-4x512", 1) in one and ("gradient-4x512", 2) in one:
        pairs = [
            timed_ours(binary, "gradient-4x512", 1, args.seconds) / timed_ours(binary, "gradient-4x512", 2, args.seconds)
            for _ in range(args.rounds)
        ]
        gain = statistics.median(pairs)
        short += gain < 1.7
        print(f"two threads against one, gradient-4x512: {gain:.2f} (goal 1.70)")
    if not args.only:
        print("every goal reached" if short == 0 else f"{short} goals missed")


if __name__ == "__main__":
    main()
