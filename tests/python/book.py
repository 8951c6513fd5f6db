"""Pages of the book, followed as a reader does: files are written as the page has them, commands are typed."""

import os
import re
import subprocess

from sterna_cli import PROGRAM, ROOT

NAMED = re.compile(r"(?:#|//|/\*) (\w+\.(?:toml|c|stan))\b")


def blocks(page):
    """Language and text of each block of a page."""
    text = (ROOT / "docs" / "book" / page).read_text()
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def write_files(page, folder):
    """Writes each block whose first line is its name, and JSON as the page's Stan model wants it; returns the commands."""
    commands = []
    for language, text in blocks(page):
        name = NAMED.match(text)
        if language == "sh":
            commands += text.strip().splitlines()
        elif name:
            (folder / name[1]).write_text(text)
        elif language == "json":
            (folder / "schools.json").write_text(text)
    # A page's commands are typed where the project's folders are.
    for name in ("include", "examples"):
        (folder / name).symlink_to(ROOT / name)
    return commands


def follow(commands, folder):
    """Types commands, with the program on the path."""
    path = folder / "bin"
    path.mkdir()
    (path / "sterna").symlink_to(PROGRAM)
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
