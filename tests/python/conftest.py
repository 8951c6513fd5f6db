"""Files are shared out over processes whole, since tests of a file share expensive fixtures; the longest begin first."""

import signal

# Shells start what goes on in the background deaf to Ctrl-C, and so would be all programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = ["test_reproduce.py", "test_stan_models.py", "test_mpi.py", "test_oracles.py", "test_library.py", "test_resume.py"]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
