"""Keywords as fields of the config: the same names, and a few short ones."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ._core import ConfigError

Overrides = list[tuple[str, str]]

# Sections of the config, with the field that a plain value stands for.
SECTIONS = {
    "chains": "count",
    "reference": "kind",
    "explorer": "kind",
    "accelerator": "kind",
    "schedule": "rounds",
    "network": "preset",
    "training": "steps",
    "run": None,
    "output": None,
}

# Fields that have a keyword of their own.
SHORT = {
    "seed": "seed",
    "threads": "threads",
    "ensembles": "chains.ensembles",
    "steps": "accelerator.steps",
    "iterations": "run.iterations",
    "burn_in": "run.burn_in",
    "thin": "run.thin",
    "draws": "run.until.ess",
    "log_z_error": "run.until.log_z_error",
    "minutes": "run.until.minutes",
    "evaluations": "run.until.evaluations",
}

# Words of other samplers, and what says the same here.
ELSEWHERE = {
    "random_seed": "seed",
    "progressbar": "progress_bar",
    "cores": "threads",
    "n_chains": "ensembles (ladders, which are what others call chains; chains are temperatures)",
    "num_chains": "ensembles (ladders, which are what others call chains; chains are temperatures)",
    "tune": "schedule={'rounds': ...}; tuning ends by itself where draws= says how many are enough",
    "warmup": "schedule={'rounds': ...}; tuning ends by itself where draws= says how many are enough",
    "num_warmup": "schedule={'rounds': ...}; tuning ends by itself where draws= says how many are enough",
    "target_accept": "explorer={'acceptance': ...}",
    "num_samples": "draws (effective ones) or iterations",
    "dlogz": "log_z_error",
}


def literal(value: Any) -> str:
    """A value as TOML."""
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            text = repr(value)
            return text if any(c in text for c in ".e") else text + ".0"
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(one) for one in value) + "]"
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        # What JSON escapes, TOML reads in the same way.
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    raise ConfigError(f"{value!r} is no value of a config: numbers, words, lists and dictionaries are")


def flat(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Leaves of nested tables, with dots in their names."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(f"{prefix}.{key}", value)
        elif value is not None:
            yield f"{prefix}.{key}", literal(value)


def overrides(settings: Mapping[str, Any]) -> Overrides:
    """Keywords as `key.path`, `value`; what is None was not said."""
    out: Overrides = []
    for name, value in settings.items():
        if value is None:
            continue
        if name in SHORT:
            out.append((SHORT[name], literal(float(value) if name == "draws" else value)))
        elif name == "until" and isinstance(value, Mapping):
            out.extend(flat("run.until", value))
        elif name in SECTIONS and isinstance(value, Mapping):
            out.extend(flat(name, value))
        elif SECTIONS.get(name):
            out.append((f"{name}.{SECTIONS[name]}", literal(value)))
        elif "__" in name and name.split("__")[0] in SECTIONS:
            out.append((name.replace("__", "."), literal(value)))
        elif name in SECTIONS or name == "until":
            raise ConfigError(f"{name} = {value!r} is impossible: give a dictionary of its fields")
        else:
            known = [*SECTIONS, *SHORT, "until", "store", "progress_bar", "blocking"]
            near = difflib.get_close_matches(name, known, 1)
            if name in ELSEWHERE:
                hint = f" Say {ELSEWHERE[name]}."
            else:
                hint = f" Did you mean {near[0]!r}?" if near else f" Known are {', '.join(sorted(known))}."
            raise ConfigError(f"{name!r} is no keyword of sample.{hint}")
    return out
