"""The long runs use the same helper as the short ones."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
