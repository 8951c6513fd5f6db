"""How much the long runs run: what an afternoon bears (`./check --full`), or the counts that the pages have (`./check --deep`)."""

import os

DEEP = os.environ.get("STERNA_DEEP") == "1"


def count(name, full, deep):
    """What the variable of this name says, or one of two."""
    return int(os.environ.get(name, deep if DEEP else full))
