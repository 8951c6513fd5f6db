"""What a target in Python costs beside the same one in Rust: 10 chains x 4 ladders of a normal, d = 10, on one thread.

    python scripts/measure/python_overhead.py [iterations]

Prints processor time per iteration and its ratio to Rust's, of whole runs with all they end with (a long run less a short one)
and of sampling alone; how many calls an iteration makes, of 40 rows each; calls of JAX by themselves; and how the sampling of
numba targets scales over threads, as far as there are cores: by the clock, the fastest of several tries beside the median, since
a busy machine only ever makes them slower.
"""

import os
import sys
import time

import numpy as np

import sterna

DIM, CHAINS, LADDERS = 10, 10, 4
BURN_IN = 100


def run(target, iterations, threads=1):
    return sterna.sample(
        target, reference="standard-normal", chains=CHAINS, ensembles=LADDERS, explorer="hmc", threads=threads,
        schedule={"rounds": 2, "iterations": 200}, burn_in=BURN_IN, iterations=iterations, progress_bar=False, seed=1,
    )  # fmt: skip


def of_runs(target, iterations):
    """Microseconds of the processor for an iteration: a long run less a short one."""
    taken = []
    for count in (iterations // 10, iterations):
        begin = time.process_time()
        run(target, count)
        taken.append(time.process_time() - begin)
    return 1e6 * (taken[1] - taken[0]) / (iterations - iterations // 10)


def of_sampling(target, iterations, threads=1):
    """Microseconds for an iteration of sampling: of the processor, and by the clock."""
    times = run(target, iterations, threads).summary["time"]
    return [1e6 * seconds / (iterations + BURN_IN) for seconds in (times["processor"]["sampling_s"], times["sampling_s"])]


calls = 0


def in_numpy():
    def density(x):
        global calls
        calls += 1
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


def calls_of_jax():
    try:
        target = in_jax()
    except ImportError:
        print("JAX is not installed")
        return
    x = np.random.default_rng(1).normal(size=(CHAINS * LADDERS, DIM))
    target(x)
    blocks, count = [], 25
    for _ in range(200):
        begin = time.perf_counter()
        for _ in range(count):
            target(x)
        blocks.append(1e6 * (time.perf_counter() - begin) / count)
    fastest, median = np.quantile(blocks, [0.05, 0.5])
    print(f"JAX    {fastest:8.1f} us/call of {len(x)} rows, the fastest of 20 blocks of {count}; {median:.1f} in the median")


def over_threads(iterations):
    tries = 5
    for name, work, count in (("cheap", 0, 2 * iterations), ("dear", 100, iterations // 2)):
        target = in_numba(work)
        one = sorted(of_sampling(target, count)[1] for _ in range(tries))
        print(f"a {name} target in numba, {one[0]:.0f} us/iteration; as fast as on one thread, by the fastest and the median of {tries}:")
        for threads in (2, 4):
            if threads > (os.cpu_count() or 1):
                break
            more = sorted(of_sampling(target, count, threads)[1] for _ in range(tries))
            print(f"  {threads} threads {one[0] / more[0]:.2f} and {one[tries // 2] / more[tries // 2]:.2f} times")


def main():
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rust = sterna.targets.normal(DIM)
    whole, alone = of_runs(rust, iterations), of_sampling(rust, iterations)[0]
    print(f"Rust   {whole:8.1f} us/iteration of a run, {alone:.1f} of sampling alone")
    for name, make in (("numba", in_numba), ("numpy", in_numpy)):
        target = make()
        mine = of_runs(target, iterations), of_sampling(target, iterations)[0]
        print(f"{name}  {mine[0]:8.1f} us, {mine[0] / whole:.2f} times Rust's; {mine[1]:.1f} of sampling alone, {mine[1] / alone:.2f} times Rust's")
    before = calls
    run(target, iterations)
    print(f"{(calls - before) / (iterations + BURN_IN):.1f} calls of {CHAINS * LADDERS} rows an iteration, tuning and the end among them")
    calls_of_jax()
    over_threads(iterations)


if __name__ == "__main__":
    main()
