"""Runs on their way: looked at, paused, stopped, interrupted, and begun from threads and forks."""

import concurrent.futures
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import sterna
from conftest import SHORT, humps, same_draws

LONG = {**SHORT, "iterations": 10_000_000}


def until(holds, seconds=60.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def sampling(run):
    until(lambda: run.progress is not None and run.progress["stage"] == "sampling")


def test_a_run_in_the_background():
    run = sterna.sample(sterna.from_pyfunc(2, humps), **LONG, blocking=False)
    sampling(run)
    with pytest.raises(sterna.RunError, match="on its way"):
        run.log_z
    assert "on its way" in repr(run) and run._repr_html_() is None
    assert not run.wait(0.01)
    seen = run.inspect()
    assert not seen.finished and seen.draws["x"].shape[1] > 0
    run.pause()
    time.sleep(0.3)
    before = run.progress["done"]
    time.sleep(0.3)
    assert run.progress["done"] == before
    later = run.inspect()
    assert later.draws["x"].shape[1] >= seen.draws["x"].shape[1]
    run.resume()
    until(lambda: run.progress["done"] > before)
    run.abort()
    assert run.wait() and not run.finished and run.progress is None
    count = run.draws["x"].shape[1]
    np.testing.assert_array_equal(run.draws["x"][:, : seen.draws["x"].shape[1]], seen.draws["x"])
    # What was sampled is what a run of that length has.
    same_draws(run, sterna.sample(sterna.from_pyfunc(2, humps), **{**SHORT, "iterations": count}))


def test_waiting_to_the_end_and_errors_in_the_background():
    run = sterna.sample(sterna.from_pyfunc(2, humps), **SHORT, blocking=False)
    assert run.wait(120) and run.finished

    def raises(x):
        raise LookupError("gone")

    run = sterna.sample(sterna.from_pyfunc(2, raises, score=True), **SHORT, blocking=False)
    for _ in range(2):
        with pytest.raises(LookupError, match="gone"):
            run.wait(120)
    with pytest.raises(LookupError):
        run.summary


INTERRUPTED = """
import sys, time, signal, os, threading
sys.path.insert(0, {tests!r})
import sterna
from conftest import humps, SHORT
target = sterna.from_pyfunc(2, humps)
try:
    threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    sterna.sample(target, **{{**SHORT, "iterations": 10_000_000, "store": sys.argv[1]}})
except KeyboardInterrupt as error:
    print("interrupted", hasattr(error, "sterna_run"), *getattr(error, "__notes__", []))
"""


@pytest.mark.parametrize("seconds", [0.0, 0.05, 1.0])
def test_an_interrupt_at_any_moment_leaves_a_run_to_go_on_with(seconds, tmp_path):
    code = INTERRUPTED.format(tests=os.path.dirname(__file__))
    out = tmp_path / "run"
    done = subprocess.run([sys.executable, "-c", code, out, str(seconds)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "interrupted" in done.stdout
    target = sterna.from_pyfunc(2, humps)
    if not (out / "config.toml").exists():
        return  # before it began
    if "resume" in done.stdout:
        assert repr(str(out)) in done.stdout
    seen = sterna.load(out).draws["x"].shape[1] if (out / "draws.nc").exists() else 0
    run = sterna.resume(out, model=target, blocking=False, progress_bar=False)
    until(lambda: run.progress and run.progress["stage"] == "sampling" and run.progress["done"] > seen)
    run.abort()
    count = run.draws["x"].shape[1]
    same_draws(run, sterna.sample(target, **{**SHORT, "iterations": count}))


# Python drops what is raised in a finalizer, and says so on stderr.
DROPPED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import sterna
from conftest import humps, SHORT

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(1000))

def drops(*_):
    Finalized()

target = sterna.from_pyfunc(2, humps)
drops()
print("dropped", flush=True)
sterna._run.Bar.show = drops
try:
    sterna.sample(target, **{{**SHORT, "iterations": 10_000_000, "store": sys.argv[1]}})
except KeyboardInterrupt as error:
    print("interrupted", hasattr(error, "sterna_run"))
"""


def test_an_interrupt_that_python_drops_is_heard_all_the_same(tmp_path):
    code = DROPPED.format(tests=os.path.dirname(__file__))
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "run"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.split() == ["dropped", "interrupted", "True"], done.stdout + done.stderr
    assert done.stderr.count("KeyboardInterrupt") == 1, done.stderr


# Ctrl-C comes as the run ends: nobody looks at the run once more.
AT_THE_END = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import sterna
from conftest import humps, SHORT

class Handle:
    def __init__(self, handle):
        self.handle = handle

    def __getattr__(self, name):
        return getattr(self.handle, name)

    def wait(self, _):
        self.handle.wait(60.0)
        os.kill(os.getpid(), signal.SIGINT)
        return True

active = sterna.Run._active
sterna.Run._active = lambda run: active(run) and Handle(active(run))
try:
    sterna.sample(sterna.from_pyfunc(2, humps), **SHORT)
except KeyboardInterrupt as error:
    sterna.Run._active = active
    print(error.sterna_run.finished)
"""


def test_an_interrupt_that_comes_with_the_end_leaves_the_results():
    code = AT_THE_END.format(tests=os.path.dirname(__file__))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.split() == ["True"], done.stdout + done.stderr


WAITS = """
import os, signal, sys, threading, time
sys.path.insert(0, {tests!r})
import sterna
from conftest import humps, SHORT
run = sterna.sample(sterna.from_pyfunc(2, humps), **{{**SHORT, "iterations": 10_000_000}}, blocking=False)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    run.wait({seconds})
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 20, run.abort().finished)
"""


@pytest.mark.parametrize("seconds", ["60.0", ""])
def test_waiting_is_interrupted(seconds):
    code = WAITS.format(tests=os.path.dirname(__file__), seconds=seconds)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.split() == ["interrupted", "True", "False"], done.stdout + done.stderr


# What says when it can be interrupted, and when it has been.
INTERRUPTED_FROM_OUTSIDE = """
import sys
sys.path.insert(0, {tests!r})
import sterna
from conftest import humps, SHORT
target = sterna.from_pyfunc(2, humps)
print("begins", flush=True)
try:
    sterna.sample(target, **{{**SHORT, "iterations": 10_000_000, "store": sys.argv[1]}})
except KeyboardInterrupt as error:
    print("interrupted")
"""


def test_no_interrupt_is_lost(tmp_path):
    """As many as STERNA_INTERRUPTS says, at random moments of a run's first second; the time before is Python's own business."""
    code, moments = INTERRUPTED_FROM_OUTSIDE.format(tests=os.path.dirname(__file__)), random.Random(21)

    def one(number_and_seconds):
        number, seconds = number_and_seconds
        command = [sys.executable, "-c", code, tmp_path / str(number)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "begins\n", process.communicate()
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            said, errors = process.communicate(timeout=60)
            assert process.returncode == 0 and said == "interrupted\n", (seconds, said, errors)
        finally:
            process.kill()

    tries = [(number, moments.uniform(0.0, 1.0)) for number in range(int(os.environ.get("STERNA_INTERRUPTS", "8")))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, tries))


def test_a_program_that_ends_leaves_a_checkpoint(tmp_path):
    code = (
        "import sys, time, sterna\n"
        "run = sterna.sample(sterna.targets.banana(), blocking=False, store=sys.argv[1], iterations=10**8)\n"
        "while not (run.progress and run.progress['stage'] == 'sampling' and run.progress['done']): time.sleep(0.01)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "run"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not sterna.load(tmp_path / "run").finished


def test_sampling_from_a_thread():
    found = []

    def work():
        found.append(sterna.sample(sterna.from_pyfunc(2, humps), **SHORT))

    threads = [threading.Thread(target=work) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join(120) for thread in threads]
    same_draws(*found)


FORK = """
import os, sys
sys.path.insert(0, sys.argv[1])
import sterna
from conftest import SHORT, humps
sterna.sample(sterna.targets.banana(), **SHORT)
child = os.fork()
if child == 0:
    os._exit(0 if sterna.sample(sterna.from_pyfunc(2, humps), **SHORT).finished else 2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

FORK_IN_THE_MIDST = """
import os, sys
sys.path.insert(0, sys.argv[1])
import sterna
from conftest import SHORT, humps
run = sterna.sample(sterna.from_pyfunc(2, humps), **{**SHORT, "iterations": 10_000_000}, blocking=False)
child = os.fork()
if child == 0:
    try:
        run.wait()
    except sterna.RunError as error:
        os._exit(0 if "forked" in str(error) else 2)
    os._exit(3)
run.abort()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.parametrize("code", [FORK, FORK_IN_THE_MIDST], ids=["after the import", "in the midst of a run"])
def test_a_fork_samples_too_and_leaves_its_parents_run_alone(code):
    # In a process of its own: threads of other packages do not survive a fork.
    here = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code, here], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_progress_in_a_terminal(capfd):
    from sterna._progress import Bar, line

    progress = {"stage": "sampling", "done": 5, "total": 10, "details": "3 round trips"}
    assert "50%" in line(progress) and "3 round trips" in line(progress)
    assert "5 iterations" in line({**progress, "total": 0})
    bar = Bar(True)
    bar._kind = "terminal"
    bar.show(progress)
    bar.close()
    assert "sampling" in capfd.readouterr().err
    Bar(False).show(progress)
    assert capfd.readouterr().err == ""
