#!/usr/bin/env python3
"""Compares values, first and second derivatives of every network with JAX on the same weights, in f64.

    python crates/sterna-neural/tests/oracle.py

Needs `jax` in the Python that runs it. The networks are written here a second time, from their
formulas; the example `oracle` prints weights, inputs and our results.
"""
import json
import os
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
# Each function is called once: what XLA would spend on making it fast is not worth it.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np

TOLERANCE = 1e-10


def mlp(p, name, x):
    """Linear layers with silu between them."""
    layer = 0
    while f"{name}.{layer}.weight" in p:
        x = jax.nn.silu(x) if layer else x
        x = x @ p[f"{name}.{layer}.weight"] + p[f"{name}.{layer}.bias"]
        layer += 1
    return x


def waves(x, n):
    phase = x[:, None] * jnp.pi * 2.0 ** jnp.arange(n)
    return [jnp.sin(phase), jnp.cos(phase)]


def position(case, beta):
    return jnp.interp(beta, jnp.array(case["schedule"]), jnp.arange(len(case["schedule"]), dtype=float))


def pair_features(case, lower, upper, time):
    low = position(case, lower) / (len(case["schedule"]) - 1)
    span = position(case, upper) - position(case, lower)
    parts = [low[:, None], span[:, None], *waves(low, 6)]
    if time is not None:
        parts += [time[:, None], *waves(time, 4)]
    return jnp.concatenate(parts, axis=1), span[:, None]


def time_features(s, shortest):
    close = jnp.log(1 + shortest - s) / np.log(shortest)
    return jnp.concatenate([s[:, None], close[:, None], *waves(s, 4), *waves(close, 4)], axis=1)


HELMERT = np.array([[1, -1, 0, 0], [1, 1, -2, 0], [1, 1, 1, -3]]) / np.sqrt([[2], [6], [12]])


def particles(y):
    return jnp.einsum("ki,bka->bia", HELMERT, y.reshape(-1, 3, 2))


def egnn(p, name, features, y):
    linear = lambda part, x: x @ p[f"{name}.{part}.weight"] + p[f"{name}.{part}.bias"]
    start = x = particles(y)
    h = jnp.repeat(linear("embed", features)[:, None], 4, axis=1)
    off = (1 - jnp.eye(4))[None, :, :, None]
    layer = 0
    while f"{name}.{layer}.edge_to" in p:
        at = lambda part: f"{layer}.{part}"
        difference = x[:, :, None] - x[:, None, :]
        square = jnp.sum(difference**2, axis=-1, keepdims=True)
        edge = (
            linear(at("edge_from"), h)[:, :, None]
            + (h @ p[f"{name}.{layer}.edge_to"])[:, None, :]
            + square * p[f"{name}.{layer}.edge_distance"]
        )
        message = jax.nn.silu(linear(at("edge_second"), jax.nn.silu(edge)))
        strength = jax.nn.silu(linear(at("move_first"), message)) @ p[f"{name}.{layer}.move_last"]
        x = x + jnp.sum(off * difference / (jnp.sqrt(square + 1e-8) + 1) * strength, axis=2)
        received = jnp.sum(off * message, axis=2) @ p[f"{name}.{layer}.node_messages"]
        h = h + linear(at("node_last"), jax.nn.silu(linear(at("node_own"), h) + received))
        layer += 1
    return jnp.einsum("ki,bia->bka", HELMERT, x - start).reshape(-1, 6)


def realnvp(case, p, lower, upper, x):
    features, span = pair_features(case, lower, upper, None)
    dim, log_det, layer = case["dim"], 0.0, 0
    j = np.arange(dim)
    masks = [j % 2 == 0, j % 2 == 1, j < dim // 2, j >= dim // 2]
    while f"net.{layer}.0.weight" in p:
        kept = masks[layer % 4].astype(float)
        raw = mlp(p, f"net.{layer}", jnp.concatenate([x * kept, features], axis=1))
        scale = 2 * jnp.tanh(raw[:, :dim] / 2) * (1 - kept) * span
        x = x * jnp.exp(scale) + raw[:, dim:] * (1 - kept) * span
        log_det = log_det + scale.sum(axis=1)
        layer += 1
    return x, log_det


def gmm(x):
    means = jnp.array([[0.5, 0.2, 0, 0], [-0.4, 0.3, 0, 0]])
    q = -0.5 * jnp.sum((x[:, None] - means) ** 2, axis=-1) / 0.25
    return jax.nn.logsumexp(q, axis=1) - jnp.log(2.0) - 2 * jnp.log(2 * jnp.pi * 0.25)


def many_well(x):
    a, b = x[:, ::2], x[:, 1::2]
    return jnp.sum(-(a**4) + 6 * a**2 + 0.5 * a - 0.5 * b**2, axis=1)


def dw4(y):
    x = particles(y)
    i, j = np.triu_indices(4, 1)
    u = jnp.sqrt(jnp.sum((x[:, i] - x[:, j]) ** 2, axis=-1)) - 4
    return -jnp.sum(-4 * u**2 + 0.9 * u**4, axis=1)


TARGETS = {"energy-gmm": gmm, "energy-many-well": many_well, "energy-dw4": dw4}


LOG_PRECISION = {"energy-gmm": np.array([2.0, 1.0, 0.5, -0.3])}


def energy(name, p, s, x):
    start = LOG_PRECISION.get(name, np.array([1.0]))
    norm = lambda k: jnp.sum(jnp.exp(8 * k), axis=-1, keepdims=True) ** 0.125
    # A plain number: it decides about the features.
    largest = float(np.sum(np.exp(8 * start)) ** 0.125)
    features = time_features(s, min(max(0.1 / largest, 1e-6), 0.1))
    scalars = mlp(p, "net.scalar", features)
    precision = jnp.exp(scalars[:, :-2] + start)
    common, retreat, s = norm(scalars[:, :-2] + start), jax.nn.softplus(scalars[:, -2:-1]), s[:, None]
    share = (1 + (1 - s) * common) ** -retreat / (s + (1 - s) * common)
    pull = precision * (1 / (s + (1 - s) * precision) - s * share)
    if name == "energy-dw4":
        raw = egnn(p, "net.vector", features, x)
    else:
        frequencies = [np.pi / 2, np.pi] if name == "energy-gmm" else []
        extra = [f(k * x) for k in frequencies for f in (jnp.sin, jnp.cos)]
        raw = mlp(p, "net.vector", jnp.concatenate([x, *extra, features], axis=1))
    vector = raw / jnp.sqrt(1 + jnp.sum(raw**2, axis=1, keepdims=True) / 30.0**2)
    weight = s * (1 - s) / (1 - s + s * np.exp(-start)) ** 2
    learned = jnp.sum(weight * vector * x, axis=1)
    return learned + share[:, 0] * TARGETS[name](jnp.sqrt(s) * x) - 0.5 * jnp.sum(pull * x**2, axis=1)


def loss(case, arguments):
    p, (time, x) = arguments, (arguments["time"], arguments["x"])
    lower, upper = (jnp.array(case["inputs"][k]) for k in ("lower", "upper"))
    name = case["name"]
    if name == "mlp":
        features, span = pair_features(case, lower, upper, time)
        return jnp.sum((mlp(p, "net", jnp.concatenate([x, features], axis=1)) * span) ** 2)
    if name == "egnn":
        features, span = pair_features(case, lower, upper, time)
        return jnp.sum((egnn(p, "net", features, x) * span) ** 2)
    if name == "realnvp":
        y, log_det = realnvp(case, p, lower, upper, x)
        return jnp.sum(y**2) + jnp.sum(log_det**2)
    log_density, pull = jax.vjp(lambda x: energy(name, p, time, x), x)
    score = pull(jnp.ones_like(log_density))[0]
    return jnp.sum((0.1 * score) ** 2) + 0.01 * jnp.sum(log_density)


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    built = os.environ.get("STERNA_EXAMPLE")
    command = [built] if built else ["cargo", "run", "-q", "-p", "sterna-neural", "--example", "oracle"]
    cases = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)
    failed = 0
    for case in cases:
        arguments = {k: jnp.array(w["values"]).reshape(w["shape"]) for k, w in case["weights"].items()}
        arguments["time"] = jnp.array(case["inputs"]["time"])
        arguments["x"] = jnp.array(case["inputs"]["x"]).reshape(-1, case["dim"])
        f = lambda a: loss(case, a)
        value, first = jax.jit(jax.value_and_grad(f))(arguments)
        directions = {
            k: jnp.broadcast_to(jnp.array(case["directions"][k]).reshape(1, -1) if a.ndim == 2 else jnp.array(case["directions"][k]), a.shape)
            for k, a in arguments.items()
        }
        second = jax.jit(lambda a: jax.jvp(jax.grad(f), (a,), (directions,))[1])(arguments)

        def error(ours, theirs):
            theirs = np.asarray(theirs).ravel()
            return np.max(np.abs(np.asarray(ours) - theirs)) / max(np.max(np.abs(theirs)), 1e-6)

        errors = [abs(case["loss"] - float(value)) / abs(float(value))]
        errors.append(max(error(case["first"][k], first[k]) for k in arguments))
        errors.append(max(error(case["second"][k], second[k]) for k in arguments))
        good = max(errors) < TOLERANCE
        failed += not good
        print(f"{case['name']:<18} value {errors[0]:.1e}  first {errors[1]:.1e}  second {errors[2]:.1e}  {'ok' if good else 'FAILED'}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(failed > 0 or not cases)


if __name__ == "__main__":
    main()
