"""The compiled half of the package; not for direct use."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

class ConfigError(ValueError):
    """What was asked for is impossible; nothing was run."""

class RunError(RuntimeError):
    """A run came to no good end; what was checkpointed is safe."""

_Described = tuple[str, list[int], str | None, str | None]

class Problem:
    """A target with what is known of it."""

    dim: int
    has_score: bool
    names: list[str]
    is_own: bool
    @staticmethod
    def configured(text: str, overrides: Sequence[tuple[str, str]]) -> Problem: ...
    @staticmethod
    def callback(function: Callable[..., Any], dim: int, has_score: bool, parameters: list[_Described], name: str) -> Problem: ...
    @staticmethod
    def address(address: int, dim: int, has_score: bool, parameters: list[_Described], name: str, keep: object) -> Problem: ...
    @staticmethod
    def likelihood(
        log_likelihood: Callable[..., Any],
        prior_transform: Callable[..., Any],
        dim: int,
        vectorized: bool,
        parameters: list[_Described],
        name: str,
    ) -> Problem: ...
    def speaking_of(self, function: Callable[..., Any], parameters: list[_Described]) -> Problem: ...
    def evaluate(self, points: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
    def values(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...

class Handle:
    """A run that has been started."""

    folder: Path
    is_over: bool
    @staticmethod
    def start(problem: Problem, text: str, overrides: Sequence[tuple[str, str]], folder: str) -> Handle: ...
    @staticmethod
    def resume(
        problem: Problem | None,
        folder: str,
        iterations: int | None = None,
        ess: float | None = None,
        log_z_error: float | None = None,
        minutes: float | None = None,
        evaluations: int | None = None,
        threads: int | None = None,
    ) -> Handle: ...
    def wait(self, seconds: float) -> bool: ...
    def check(self) -> None: ...
    def stop(self) -> None: ...
    def pause(self, paused: bool) -> None: ...
    def write_files(self, seconds: float) -> bool: ...
    def progress(self) -> dict[str, Any] | None: ...

def ranks() -> tuple[int, int]: ...
def of_first(own: str) -> str: ...
def leave() -> None: ...
def read_draws(path: str) -> dict[str, dict[str, npt.NDArray[Any]]]: ...
def report_page(folder: str) -> str: ...
def report_view(folder: str) -> str: ...
def report_chart(folder: str, name: str) -> str: ...
def target_kinds() -> list[tuple[str, str, str]]: ...
