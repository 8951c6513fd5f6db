"""Files are shared out over processes whole, since tests of a file share expensive fixtures; the longest begin first."""

LONGEST = ["test_reproduce.py", "test_oracles.py", "test_resume.py"]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
