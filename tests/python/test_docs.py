"""The documentation as people use it: every code block holds what it says, every link leads somewhere, and the site finds words offline."""

import ast
import functools
import html.parser
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.parse

import pytest

from sterna_cli import PROGRAM, ROOT, sterna

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Blocks that another test types, compiles or runs, page by page.
FOLLOWED = {
    "book/parameters.md": "tests/python/test_book.py",
    "book/likelihood.md": "tests/python/test_book.py",
    "book/stan.md": "tests/python/test_stan_models.py",
    "book/python.md": "python/tests/test_book.py",
    "book/clusters.md": "python/tests/test_mpi.py",
}
TUTORIALS = "book/tutorial"


def name(page):
    return str(page.relative_to(ROOT / "docs")) if ROOT / "docs" in page.parents else page.name


def blocks(language):
    """Blocks of a language: page, and text."""
    fence = re.compile(rf"^```{language}\b[^\n]*\n(.*?)^```$", re.M | re.S)
    return [(name(page), text) for page in PAGES for text in fence.findall(page.read_text())]


def test_every_language_is_looked_at():
    languages = {language for page in PAGES for language in re.findall(r"^```(\w+)", page.read_text(), re.M)}
    assert languages <= {"sh", "toml", "rust", "c", "stan", "json", "python", "text"}, languages
    # A block that says nothing of its language is looked at by nobody.
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(), re.M)
        assert all(opening for opening in fences[::2]) and len(fences) % 2 == 0, page
    for page, test in FOLLOWED.items():
        assert pathlib.Path(page).name in (ROOT / test).read_text(), f"{test} follows {page} no more"


@pytest.mark.parametrize("page, text", blocks("toml"))
def test_configs_are_read(page, text, tmp_path):
    if "[dependencies]" in text:
        paths = [entry["path"] for entry in tomllib.loads(text)["dependencies"].values()]
        assert all((ROOT / pathlib.PurePath(path).relative_to("../sterna") / "Cargo.toml").exists() for path in paths)
        return
    config = tmp_path / "config.toml"
    config.write_text(text)
    done = sterna("evaluate", config, tmp_path / "points.json")
    # Whatever file is missing: the config itself was read first.
    assert done.returncode == 2 and "points.json" in done.stderr, done.stderr


@functools.cache
def knows(command):
    return sterna(command, "--help").stdout


def commands(text):
    """Commands of a block: words, for each that the program is called with."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list = [[]]
        for word in lexer:
            if set(word) <= set("();<>|&"):
                words.append([])
            else:
                words[-1].append(word)
        for command in words:
            if "sterna" in command and command[0] not in ("cargo", "podman"):
                yield command[command.index("sterna") + 1 :]


@pytest.mark.parametrize("page, text", blocks("sh"))
def test_commands_are_the_programs(page, text):
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    for path in re.findall(r"(?:^|\s)((?:scripts|examples|crates|docs)/[\w./-]+\w)", text):
        exists = (ROOT / path).exists() or page.startswith("trust/")
        assert exists or ">" in text or "out" in text, f"{page} speaks of {path}"
    for words in commands(text):
        if not words:
            continue
        command, flags = words[0], [word for word in words[1:] if word.startswith("--")]
        assert all(flag.split("=")[0] in knows(command) for flag in flags), (page, words)
        settings = [part for word, value in zip(words, words[1:]) if word == "--set" for part in ("--set", value)]
        if command == "run" and settings and "$" not in "".join(settings):
            # A field that there is not, or a value that cannot be, is told before the folder.
            done = sterna("run", *settings, "--out", "/proc/nowhere")
            last = ("/proc/nowhere", "this program was built without CUDA", "no NVIDIA driver")
            assert done.returncode == 2 and any(part in done.stderr for part in last), done.stderr


@functools.cache
def plain(text):
    """Code without what documents hide of it, and without its shape."""
    lines = [re.sub(r"^\s*//[/!] ?", "", line) for line in text.splitlines()]
    return re.sub(r"\s+", "", "".join(line for line in lines if not line.startswith("# ")))


@pytest.mark.parametrize("page, text", blocks("rust"))
def test_rust_is_compiled_elsewhere(page, text):
    """Blocks of Rust are parts of examples, or of the documentation of a crate, which are built and run."""
    sources = [*(ROOT / "crates").rglob("*.rs")]
    block = plain(text)
    assert any(block in plain(source.read_text()) for source in sources), f"{page}:\n{text}"


@pytest.mark.parametrize("page, text", blocks("python"))
def test_python_is_python(page, text):
    compile(text, page, "exec")
    assert page in FOLLOWED or page.startswith(TUTORIALS) or len(text.splitlines()) <= 2, f"{page}: what follows it?"


@pytest.mark.parametrize("page, text", [*blocks("c"), *blocks("stan"), *blocks("json")])
def test_what_is_compiled_is_followed(page, text):
    declared = "".join((ROOT / "include" / "sterna.h").read_text().split())
    known = page in FOLLOWED or page.startswith(TUTORIALS) or "".join(text.split()) in declared
    assert known, f"{page}: what follows it?\n{text}"


class Links(html.parser.HTMLParser):
    """Where a page leads, what it loads, and the names on it."""

    def __init__(self, text):
        super().__init__()
        self.leads, self.loads, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found.get("id"), found.get("name")}
        if tag == "a" and "href" in found:
            self.leads.append(found["href"])
        elif tag in ("script", "img", "iframe") and "src" in found:
            self.loads.append(found["src"])
        elif tag == "link" and "href" in found:
            self.loads.append(found["href"])


SHOWN = ["mixture", "unsound"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    # Two of the gallery's reports, which take seconds; its other commands are looked at above.
    maker = [sys.executable, ROOT / "scripts" / "site.py", "--out", out, "--program", PROGRAM, "--reports", *SHOWN]
    done = subprocess.run([str(part) for part in maker], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARN" not in done.stderr and "ERROR" not in done.stderr, done.stderr
    return out


def test_the_site_is_whole(site):
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html") if "gallery" not in path.parts and path.name != "toc.html"}
    assert len(pages) > 25
    wrong = []
    for path, links in pages.items():
        for link in links.leads + links.loads:
            to, _, anchor = link.partition("#")
            if to.startswith("data:"):
                continue
            if "://" in to:
                if link in links.loads:
                    wrong.append(f"{path.name} loads {link}")
                continue
            # 404.html speaks from the root, wherever it is shown.
            target = (path.parent / urllib.parse.unquote(to)).resolve() if to else path
            if not target.exists() and path.name != "404.html":
                wrong.append(f"{path.relative_to(site)} leads to {link}")
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].names:
                wrong.append(f"{path.relative_to(site)} leads to {link}, which has no such part")
    assert wrong == []


def test_the_gallery_has_its_reports(site):
    page = (site / "book" / "gallery.html").read_text()
    names = re.findall(r'href="gallery/([\w-]+)\.html"', page)
    assert sorted(names) == sorted(2 * SHOWN)
    for one in set(names):
        report = (site / "book" / "gallery" / f"{one}.html").read_text()
        assert "Sterna report" in report and (site / "book" / "gallery" / f"{one}.svg").stat().st_size > 3000
        assert ("Unsound" in report.split("</strong>")[0]) == (one == "unsound"), one


BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)


@pytest.mark.parametrize("words, page", [("round trips", "alarms.html"), ("simplex", "book/parameters.html")])
def test_words_are_found_offline(site, tmp_path, words, page):
    """The search of the site, opened from a disk."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--virtual-time-budget=6000", "--dump-dom"]
    shown = subprocess.run([BROWSER, *flags, f"{(site / 'index.html').as_uri()}?search={urllib.parse.quote(words)}"], capture_output=True, text=True)
    found = re.findall(r'<a href="([^"?#]*)\?highlight', shown.stdout)
    assert page in found, shown.stdout[-2000:]


def test_the_bill_of_materials_names_every_part(tmp_path):
    made = subprocess.run([sys.executable, ROOT / "scripts" / "sbom.py", "sterna-cli"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    bill = json.loads(made.stdout)
    parts = {part["name"]: part for part in bill["components"]}
    assert {"sterna", "sterna-run", "rayon", "rust-hdf5", "clap", "rust-std"} <= set(parts)
    # What only tests need, and what runs while it is built, is no part of it.
    assert not {"proptest", "syn", "serde_derive", "pyo3"} & set(parts)
    ours = {name for name in parts if name.startswith("sterna")}
    assert all("hashes" in part for name, part in parts.items() if name not in ours | {"rust-std"})
    assert all(part["licenses"][0]["expression"] for part in parts.values())
    references = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert all({entry["ref"], *entry["dependsOn"]} <= references for entry in bill["dependencies"])


def test_programs_of_a_release_can_be_compared(tmp_path):
    """The runs whose draws must be the same bytes from all programs: each has some."""
    script = f"import sys; sys.path.insert(0, 'scripts'); import pathlib, release; print(release.draws_of({str(PROGRAM)!r}, [], pathlib.Path({str(tmp_path)!r})))"
    made = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0 and len(set(ast.literal_eval(made.stdout).values())) == 5, made.stderr


def test_the_container_is_made_of_what_is_there():
    """No engine is at hand: its file is held against the few rules that it needs."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert {word for word, _ in lines} <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"} and lines[0][0] == "FROM"
    stages = [rest.split()[2] for word, rest in lines if word == "FROM" and " AS " in rest]
    for word, rest in lines:
        if word == "COPY":
            *sources, _ = [part for part in rest.split() if not part.startswith("--")]
            stage = re.search(r"--from=(\w+)", rest)
            assert stage[1] in stages if stage else all((ROOT / source).exists() for source in sources), rest
        if word == "RUN":
            assert subprocess.run(["sh", "-n", "-c", rest]).returncode == 0, rest
        if word in ("ENTRYPOINT", "CMD"):
            assert all(isinstance(part, str) for part in json.loads(rest))
    rust = re.search(r'^rust-version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    assert f"FROM rust:{rust}-" in text
