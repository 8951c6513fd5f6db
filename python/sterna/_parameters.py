"""Named parameters: a dictionary of names to shapes, supports and priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._config import literal
from ._core import ConfigError

Described = tuple[str, list[int], "str | None", "str | None"]
Parameters = Mapping[str, Any] | Sequence[str]


def _shape(value: Any) -> list[int] | None:
    if isinstance(value, bool):
        return None
    if hasattr(value, "__index__"):
        return [int(value)]
    if isinstance(value, (tuple, list)) and all(hasattr(n, "__index__") and not isinstance(n, bool) for n in value):
        return [int(n) for n in value]
    return None


def _support(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, tuple) and len(value) == 2:
        lower = "-inf" if value[0] is None else float(value[0])
        upper = "inf" if value[1] is None else float(value[1])
        return f"interval({lower}, {upper})"
    raise ConfigError(f"parameters[{name!r}]: {value!r} is no support; a word such as 'positive', or (lower, upper), is")


def describe(parameters: Parameters | None) -> list[Described]:
    """Name, shape, support and prior of each.

    A value is a shape (``3``, ``(2, 3)``, ``()``), a support (``"positive"``, ``"interval(0, 1)"``), both
    (``(3, "simplex")``), or a dictionary with ``shape``, ``support`` and ``prior``; None says nothing but the name.
    """
    if parameters is None:
        return []
    if isinstance(parameters, str):
        raise ConfigError("parameters is one word: give a list of names, or a dictionary of names")
    if not isinstance(parameters, Mapping):
        return [(str(name), [], None, None) for name in parameters]
    out: list[Described] = []
    for name, value in parameters.items():
        shape: list[int] = []
        support: str | None = None
        prior: str | None = None
        if isinstance(value, Mapping):
            unknown = set(value) - {"shape", "support", "prior"}
            if unknown:
                raise ConfigError(f"parameters[{name!r}]: {sorted(unknown)} are not known; shape, support and prior are")
            shape = _shape(value.get("shape", ())) or []
            support = None if value.get("support") is None else _support(name, value["support"])
            prior = value.get("prior")
        elif value is None:
            pass
        elif isinstance(value, str):
            support = value
        elif (only := _shape(value)) is not None:
            shape = only
        elif isinstance(value, (tuple, list)) and len(value) == 2 and (first := _shape(value[0])) is not None:
            shape, support = first, _support(name, value[1])
        else:
            raise ConfigError(f"parameters[{name!r}] = {value!r}: a shape, a support, (shape, support) or a dictionary is needed")
        whole = support is not None and support.split("(")[0] in ("simplex", "ordered", "unit-vector")
        if whole and len(shape) != 1:
            raise ConfigError(f"parameters[{name!r}]: {support} has one axis, so a shape of one number is needed")
        out.append((str(name), shape, support, prior))
    return out


def as_toml(described: list[Described]) -> str:
    """As ``[[parameters]]`` of a config."""
    text = ""
    for name, shape, support, prior in described:
        size = 1
        for n in shape:
            size *= n
        text += f"[[parameters]]\nname = {literal(name)}\nsize = {size}\n"
        text += f"support = {literal(support)}\n" if support else ""
        text += f"prior = {literal(prior)}\n" if prior else ""
    return text
