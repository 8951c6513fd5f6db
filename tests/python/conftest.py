"""How tests are shared out over processes: those that share an expensive fixture stay together, the longest begin first."""

import pytest

LONGEST = ["test_reproduce.py", "test_oracles.py", "test_resume.py"]


def pytest_collection_modifyitems(items):
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        if any(definitions[-1].scope == "module" for definitions in fixtures):
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    items.sort(key=lambda item: item.path.name not in LONGEST)
