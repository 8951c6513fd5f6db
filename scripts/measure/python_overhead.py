"""What a target in Python costs beside the same one in Rust: processor time of one process, 10 chains x 4 ladders, d = 10.

    python scripts/measure/python_overhead.py [iterations]

Prints time per iteration and its ratio to Rust's for a normal that all languages compute alike; calls of JAX for 40 rows; and how a
numba target scales over two threads. The last two go by the clock, the fastest of several tries, since a busy machine only ever
makes them slower.
"""

import sys
import time

import numpy as np

import sterna

DIM, CHAINS, LADDERS = 10, 10, 4


def settings(iterations, threads=1):
    return {
        "reference": "standard-normal", "chains": CHAINS, "ensembles": LADDERS, "explorer": "hmc", "threads": threads,
        "schedule": {"rounds": 2, "iterations": 200}, "burn_in": 100, "iterations": iterations, "progress_bar": False, "seed": 1,
    }  # fmt: skip


def seconds(target, iterations, clock=time.process_time, threads=1):
    """Of an iteration: a long run less a short one."""
    taken = []
    for count in (iterations // 10, iterations):
        begin = clock()
        sterna.sample(target, **settings(count, threads))
        taken.append(clock() - begin)
    return (taken[1] - taken[0]) / (iterations - iterations // 10)


def in_numpy():
    def density(x):
        return -5.0 * np.einsum("ij,ij->i", x, x), -10.0 * x

    return sterna.from_pyfunc(DIM, density)


def in_numba(work=0):
    """The same, with so many exponentials for each coordinate besides, which change no bit."""
    import numba

    @numba.cfunc(sterna.numba_signature())
    def density(rows, dim, points, log_density, score):
        for i in range(rows):
            total, idle = 0.0, 0.0
            for j in range(dim):
                x = points[i * dim + j]
                for k in range(work):
                    idle += np.exp(-x * x - k)
                total += x * x
                score[i * dim + j] = -10.0 * x
            log_density[i] = -5.0 * total + 0.0 * idle
        return 0

    return sterna.from_numba(density, DIM)


def in_jax():
    import jax.numpy as jnp

    return sterna.from_jax(lambda x: -5.0 * jnp.sum(x * x), DIM)


def main():
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    rust = seconds(sterna.targets.normal(DIM), iterations)
    print(f"Rust   {1e6 * rust:8.1f} us/iteration")
    for name, make in (("numba", in_numba), ("numpy", in_numpy)):
        target = make()
        taken = seconds(target, iterations)
        print(f"{name}  {1e6 * taken:8.1f} us/iteration, {taken / rust:.2f} times Rust's")
    try:
        target = in_jax()
    except ImportError:
        print("JAX is not installed")
    else:
        x = np.random.default_rng(1).normal(size=(CHAINS * LADDERS, DIM))
        target(x)
        blocks, calls = [], 25
        for _ in range(200):
            begin = time.perf_counter()
            for _ in range(calls):
                target(x)
            blocks.append(1e6 * (time.perf_counter() - begin) / calls)
        fastest, median = np.quantile(blocks, [0.05, 0.5])
        print(f"JAX    {fastest:8.1f} us/call of {len(x)} rows, the fastest of 20 blocks of {calls}; {median:.1f} in the median")
    tries = 6
    for name, work, count in (("cheap", 0, iterations // 2), ("dear", 100, iterations // 25)):
        target = in_numba(work)
        one, two = (min(seconds(target, count, time.perf_counter, threads) for _ in range(tries)) for threads in (1, 2))
        processor = seconds(target, count, threads=2) / seconds(target, count)
        print(
            f"a {name} target in numba, {1e6 * one:.0f} us/iteration, on two threads: {one / two:.2f} times as fast as on one, the fastest "
            f"of {tries} runs each; {processor:.2f} times the processor time"
        )


if __name__ == "__main__":
    main()
