"""The report as people meet it: in a browser, light, dark, on a phone, on paper; and `watch` from another shell."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest

from sterna_cli import PROGRAM, sterna, summary

BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars""".split()

SMALL = dict(schedule__rounds=4, schedule__iterations=300, run__iterations=3000, run__burn_in=100)
RUNS = {
    "plain": dict(SMALL, target__kind="gmm", target__dim=4, chains__count=8, chains__ensembles=2),
    "affine": dict(SMALL, target__kind="normal", target__dim=3, chains__count=4, accelerator__kind="affine"),
    "trained": dict(SMALL, target__kind="dw4", chains__count=4, accelerator__kind="cmcd",
                    accelerator__steps=2, network__width=16, network__layers=1, training__collect=300,
                    training__steps=40, training__batch=32),
    "fitted": dict(target__kind="gmm", target__dim=2, reference__kind="fitted", run__until__ess=200),
}
CHARTS = """traces autocorrelations index-process round-trips rejection-rates log-z log-z-growing overlap works
pair-plot marginal-0 local-barrier schedule energies tuning-barrier tuning-steps acceptance step-sizes cost-time cost-evaluations""".split()
MORE = {"plain": ["pair-plot-exact", "ranks"], "affine": ["pair-plot-exact"], "trained": ["training-loss", "training-gain"],
        "fitted": ["pair-plot-exact", "ranks", "legs", "components", "optima"]}
ONE_MAY_DO = ["rejection-rates", "overlap", "training-gain"]
# Where the number of chains changed from round to round, a line for each means nothing.
LESS = {"fitted": ["tuning-steps"]}
# What a person has for a page with very many parameters, on a machine that does other things as well.
PATIENCE_S = 2.0

# Put into a copy of the page: gathers errors from the beginning, and at the end looks around and leaves a note.
LISTEN = """<script>window.seen = []; addEventListener("error", (e) => seen.push(String(e.message)));
addEventListener("securitypolicyviolation", (e) => seen.push("blocked: " + e.blockedURI));</script>"""
LOOK = """<script>addEventListener("load", () => {
  const note = {errors: seen, charts: {}, tips: 0};
  for (const figure of document.querySelectorAll("figure.chart")) {
    const svg = [...figure.querySelectorAll("svg[role=img]")].find((s) => s.getBoundingClientRect().width > 0);
    const box = svg.querySelector(".marks").getBBox();
    const ticks = [...svg.querySelectorAll("text.tick")].map((t) => Number(t.getAttribute("y")));
    const along = svg.viewBox.baseVal.height - 27, edge = svg.getBoundingClientRect();
    const cut = [...svg.querySelectorAll(".frame text")].filter((t) => { const r = t.getBoundingClientRect();
      return r.left < edge.left - 1 || r.right > edge.right + 1 || r.top < edge.top - 1 || r.bottom > edge.bottom + 1; });
    note.charts[figure.id] = {width: box.width, height: box.height, title: svg.querySelector("title").textContent,
      description: svg.querySelector("desc").textContent, labels: svg.querySelectorAll("text").length,
      across: ticks.filter((y) => Math.abs(y - along) < 1).length, up: ticks.filter((y) => Math.abs(y - along) >= 1).length,
      cut: cut.map((t) => t.textContent), legend: [...figure.querySelectorAll(".legend li")].map((li) => li.textContent)};
    const [x, y] = JSON.parse(svg.dataset.points)[0];
    const frame = svg.getBoundingClientRect(), scale = frame.width / svg.viewBox.baseVal.width;
    svg.dispatchEvent(new PointerEvent("pointermove", {clientX: frame.left + x * scale, clientY: frame.top + y * scale}));
    const tip = document.getElementById("tip");
    if (!tip.hidden && tip.textContent.length > 3) note.tips += 1;
    svg.dispatchEvent(new PointerEvent("pointerleave"));
  }
  const select = document.querySelector("#works select");
  select.value = "0";
  select.dispatchEvent(new Event("change"));
  note.panels = [...document.querySelectorAll("#works .panel")].filter((p) => !p.hidden).length;
  const heading = [...document.querySelectorAll(".quantities th button")].find((b) => b.textContent === "mean");
  const means = () => [...document.querySelectorAll(".quantities tbody tr")].map((row) => Number(row.cells[1].dataset.v));
  note.means = [means()];
  for (let i = 0; i < 3; i += 1) { heading.click(); note.means.push(means()); }
  const paper = () => getComputedStyle(document.body).backgroundColor;
  note.paper = paper();
  document.getElementById("theme").click();
  note.other = paper();
  note.asked = performance.getEntriesByType("resource").map((r) => r.name);
  note.wider = document.documentElement.scrollWidth - innerWidth;
  const left = document.createElement("pre");
  left.id = "note";
  left.textContent = JSON.stringify(note);
  document.body.append(left);
});</script>"""


def settings_dim(name):
    return {"plain": 4, "affine": 3, "trained": 6, "fitted": 2}[name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, settings in RUNS.items():
        summary(folder / name, **settings)
    return folder


def browse(page, tmp_path, *flags, width=1200, height=2400):
    """Opens a page with a fresh profile; the finished process."""
    command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},{height}", *flags]
    command += ["--enable-logging=stderr", "--virtual-time-budget=3000", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("name", RUNS)
def test_a_browser_shows_every_chart_and_asks_for_nothing(runs, tmp_path, name, width):
    text = (runs / name / "report.html").read_text()
    assert len(text) < 2e6
    page = tmp_path / "page.html"
    page.write_text(text.replace("<head>", "<head>" + LISTEN).replace("</body>", LOOK + "</body>"))
    done = browse(page, tmp_path, "--dump-dom", width=width)
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    note = json.loads(re.search(r'<pre id="note">(.*?)</pre>', done.stdout, re.S)[1].replace("&amp;", "&")
                      .replace("&lt;", "<").replace("&gt;", ">"))
    assert note["errors"] == [] and note["asked"] == []
    missing = [chart for chart in CHARTS + MORE[name] if chart not in note["charts"]]
    assert missing == LESS.get(name, [])
    for chart, found in note["charts"].items():
        assert found["width"] > 50 and found["height"] > 5, (chart, found)
        assert found["title"] and len(found["description"]) > 15 and found["labels"] >= 4, (chart, found)
        # Pairs, normals and legs may be one alone.
        assert found["across"] >= (1 if chart in ONE_MAY_DO else 2) and found["up"] >= 2, (chart, found)
        assert found["cut"] == [] and len(set(found["legend"])) == len(found["legend"]), (chart, found)
    assert note["tips"] == len(note["charts"]) and note["panels"] == 1
    given, largest, smallest, again = note["means"]
    assert len(given) == settings_dim(name) and again == given
    assert largest == sorted(given, reverse=True) and smallest == sorted(given)
    assert note["paper"] != note["other"]
    assert note["wider"] <= 0, "the page is wider than the window"


MANY = 5000
UNFOLD = """<script>addEventListener("load", () => {
  const note = {}, rows = () => document.querySelectorAll(".quantities tbody tr").length;
  const timed = (name, what) => { const begin = performance.now(); what(); note[name] = [rows(), (performance.now() - begin) / 1000]; };
  note.begin = rows();
  const heading = [...document.querySelectorAll(".quantities th button")].find((b) => b.textContent === "mean");
  timed("sorted", () => heading.click());
  note.means = [...document.querySelectorAll(".quantities tbody tr")].slice(0, 200).map((row) => row.cells[1].textContent);
  heading.click(); heading.click();
  const fold = document.querySelector(".fold button");
  timed("unfolded", () => fold.click());
  note.last = [...document.querySelectorAll(".quantities tbody tr")].at(-1).cells[0].textContent;
  timed("folded", () => fold.click());
  const left = document.createElement("pre");
  left.id = "note";
  left.textContent = JSON.stringify(note);
  document.body.append(left);
});</script>"""


def test_thousands_of_parameters_stay_fast(tmp_path):
    settings = dict(target__kind="normal", target__dim=MANY, chains__count=3, schedule__rounds=1, schedule__iterations=110, run__iterations=200)
    found = summary(tmp_path / "many", **settings)
    text = (tmp_path / "many" / "report.html").read_text()
    assert len(text) < 2e6
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", UNFOLD + "</body>"))
    shown = browse(page, tmp_path, "--dump-dom").stdout
    note = json.loads(re.search(r'<pre id="note">(.*?)</pre>', shown, re.S)[1])
    assert note["begin"] == 6 and note["sorted"][0] == 201 and note["folded"][0] == 6
    assert note["unfolded"][0] == MANY + 1 and note["last"] == f"x[{MANY - 1}]"
    assert max(seconds for _, seconds in (note["sorted"], note["unfolded"], note["folded"])) < PATIENCE_S, note
    means = [float(mean.replace("\u2212", "-")) for mean in note["means"]]
    assert means == sorted(means, reverse=True)
    largest = max(parameter["mean"] for parameter in found["parameters"])
    assert means[0] == pytest.approx(largest, abs=0.01)


def test_the_page_says_what_the_terminal_says(runs, tmp_path):
    said = sterna("resume", runs / "fitted", seconds=60).stdout
    page = (runs / "fitted" / "report.html").read_text()
    tiles = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page))
    for name in ("round trips", "efficiency", "barrier Λ", "log Z", "smallest ESS"):
        line = next(line for line in said.splitlines() if line.strip().startswith(name))
        assert tiles[name] in line, (name, tiles[name], line)
    rows = re.findall(r'<th scope="row">([^<]+)</th>((?:<td[^>]*>[^<]*</td>){9})', page)
    for name, cells in rows:
        mean, sd, low, _, high, error, bulk, _, r_hat = re.findall(r">([^<]*)</td>", cells)
        line = next(line.split() for line in said.splitlines() if line.split()[:1] == [name])
        assert line == [name, mean, error, sd, low, high, bulk, r_hat]


def test_what_does_not_apply_is_left_out(runs):
    pages = {name: (runs / name / "report.html").read_text() for name in RUNS}
    assert 'id="training"' in pages["trained"] and 'id="training"' not in pages["plain"]
    assert 'id="reference"' in pages["fitted"] and 'id="reference"' not in pages["plain"]
    assert ">anchor<" in pages["fitted"] and ">anchor<" not in pages["plain"]
    assert 'id="pair-plot-exact"' not in pages["trained"]
    for text in pages.values():
        # The names of SVG's own world are no addresses.
        assert "://" not in text and "Content-Security-Policy" in text and "NaN" not in text and "{{" not in text
        assert "sterna run" in text and "[target]" in text


def test_pictures(runs, tmp_path):
    """Screenshots to look at: light, dark, narrow, and a PDF as printed."""
    page = runs / "plain" / "report.html"
    for name, width, flags in [("light", 1200, []), ("dark", 1200, ["--blink-settings=preferredColorScheme=0"]),
                               ("narrow", 390, [])]:
        picture = tmp_path / f"{name}.png"
        browse(page, tmp_path, f"--screenshot={picture}", *flags, width=width, height=5200)
        assert picture.stat().st_size > 50_000
    paper = tmp_path / "paper.pdf"
    browse(page, tmp_path, f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
    light, dark = ((tmp_path / f"{n}.png").read_bytes() for n in ("light", "dark"))
    assert light != dark


def test_the_report_is_made_from_the_folder_alone(runs, tmp_path):
    folder = tmp_path / "plain"
    shutil.copytree(runs / "plain", folder)
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    done = sterna("report", folder)
    assert done.returncode == 0 and done.stdout.strip() == str(folder / "report.html")
    assert (folder / "report.html").read_bytes() == before
    # Less to read is less to show, not an error.
    for name in ("traces.json", "draws.nc", "log.jsonl"):
        (folder / name).unlink()
    assert sterna("report", folder).returncode == 0
    text = (folder / "report.html").read_text()
    assert 'id="rejection-rates"' in text and 'id="index-process"' not in text and 'id="pair-plot"' not in text


def test_old_and_new_summaries(runs, tmp_path):
    """What a version before schemas wrote is shown as far as it goes; what a newer one wrote is refused by name."""
    folder = tmp_path / "plain"
    shutil.copytree(runs / "plain", folder)
    file = folder / "summary.json"
    found = json.loads(file.read_text())
    assert found["schema"] == 1
    del found["schema"]
    file.write_text(json.dumps(found))
    assert sterna("report", folder).returncode == 0
    assert "sterna 0.1.0 left none" in (folder / "report.html").read_text()
    file.write_text(json.dumps(found | {"schema": 7, "sterna": "3.2.1"}))
    done = sterna("report", folder)
    assert done.returncode == 2 and "sterna 3.2.1" in done.stderr and "schema 7" in done.stderr
    file.write_text(json.dumps(found)[:1000])
    done = sterna("report", folder)
    assert done.returncode == 2 and "sterna resume" in done.stderr


def spoilt(value, change):
    if isinstance(value, dict):
        return {key: spoilt(inner, change) for key, inner in value.items()}
    return [spoilt(inner, change) for inner in value] if isinstance(value, list) else change(value)


@pytest.mark.parametrize("name", RUNS)
def test_bad_files_are_no_reason_to_fall_over(runs, tmp_path, name):
    """Files cut short, and every number missing, zero or absurd: a page or a message, never a panic."""
    folder = tmp_path / name
    shutil.copytree(runs / name, folder)
    keep = {file: (folder / file).read_bytes() for file in ("summary.json", "traces.json", "draws.nc", "log.jsonl")}
    for file, content in keep.items():
        spoilts = [content[: len(content) * part // 7] for part in range(7)]
        if file.endswith(".json"):
            whole = json.loads(content)
            for change in (lambda x: None if isinstance(x, float) else x, lambda x: 0.0 if isinstance(x, float) else x,
                           lambda x: 1e308 if isinstance(x, float) else x, lambda x: 0 if type(x) is int else x):
                # The schema is what it is.
                spoilts.append(json.dumps(spoilt(whole, change) | {"schema": 1}).encode())
        for bad in spoilts:
            (folder / file).write_bytes(bad)
            done = sterna("report", folder)
            assert done.returncode in (0, 2) and "panicked" not in done.stderr, (file, bad[:80], done.stderr)
            if done.returncode == 0:
                assert "NaN" not in (folder / "report.html").read_text()
        (folder / file).write_bytes(content)


def test_runs_side_by_side(runs, tmp_path):
    page = tmp_path / "compare.html"
    done = sterna("compare", *(runs / name for name in RUNS), "--out", page)
    assert done.returncode == 0 and all(name in done.stdout for name in RUNS), done.stderr
    text = page.read_text()
    assert "different targets" in text and "://" not in text and "NaN" not in text and "{{" not in text
    shown = browse(page, tmp_path, "--dump-dom", width=390)
    assert "CONSOLE" not in shown.stderr and all(f'id="{chart}"' in shown.stdout for chart in ("log-z", "efficiency", "barriers"))
    done = sterna("compare", runs / "plain", tmp_path, "--out", page)
    assert done.returncode == 2 and "summary.json" in done.stderr


def test_an_unsound_run_is_not_told_to_be_more_of_the_same(tmp_path):
    found = summary(tmp_path / "far", **dict(SMALL, target__kind="gmm", target__dim=10, chains__count=3, chains__ensembles=2))
    assert found["verdict"] == "unsound"
    # Ladders that each sit in a mode of their own are no evidence that its mean is that of all.
    assert all(row["mcse"] >= 0.999 * row["sd"] / row["ess"] ** 0.5 for row in found["parameters"])
    page = (tmp_path / "far" / "report.html").read_text()
    alarms = {alarm["code"]: alarm["message"] for alarm in found["alarms"]}
    wanted = re.search(r"set chains.count = (\d+)", alarms["too-few-chains"])[1]
    advice = re.search(r'<li class="hint">.*?</li>', page, re.S)[0]
    assert f"about {wanted} (chains.count)" in advice and "halves" not in advice
    # The gravest are marked as such, and coordinates are called as in the table.
    assert '<dt class="bad"><code>no-round-trip' in page and '<dt class="doubtful"><code>too-few-chains' in page
    assert re.search(r"have x\[\d\] below", alarms["missed-mode"]), alarms["missed-mode"]
    assert re.search(r"sum of rejections; λ\(β\) says \d", page)


def test_stages_add_up_to_what_the_terminal_says(runs):
    found = json.loads((runs / "fitted" / "summary.json").read_text())["evaluations"]["target"]
    page = (runs / "fitted" / "report.html").read_text()
    chart = re.search(r'<desc id="cost-evaluations-desc">(.*?)</desc>', page)[1]
    assert sum(int(n.replace(",", "")) for n in re.findall(r"target, [\w, ]+: ([\d,]+)", chart)) == found
    assert f"{found:,} of the target" in page


PAPER = """<script>addEventListener("load", () => {
  const rows = () => [...document.querySelectorAll(".quantities tbody tr")].filter((row) => row.getBoundingClientRect().height > 0).length;
  const note = [rows()];
  for (const event of ["beforeprint", "afterprint"]) { dispatchEvent(new Event(event)); note.push(rows()); }
  const left = document.createElement("pre");
  left.id = "note";
  left.textContent = JSON.stringify(note);
  document.body.append(left);
});</script>"""


def test_paper_unfolds(tmp_path):
    summary(tmp_path / "ten", **dict(SMALL, target__kind="normal", target__dim=10, chains__count=3))
    page = tmp_path / "page.html"
    page.write_text((tmp_path / "ten" / "report.html").read_text().replace("</body>", PAPER + "</body>"))
    shown = browse(page, tmp_path, "--dump-dom").stdout
    # Five rows and one that unfolds the other five.
    assert json.loads(re.search(r'<pre id="note">(.*?)</pre>', shown, re.S)[1]) == [6, 11, 6]


def test_report_of_nothing_is_an_error(tmp_path):
    done = sterna("report", tmp_path)
    assert done.returncode == 2 and str(tmp_path) in done.stderr and "summary.json" in done.stderr
    assert sterna("report", tmp_path / "nowhere").returncode == 2


def test_a_chart_by_itself_is_an_svg_file(runs):
    for chart in CHARTS:
        done = sterna("report", runs / "plain", "--chart", chart)
        assert done.returncode == 0, done.stderr
        root = xml.fromstring(done.stdout)
        assert root.tag.endswith("svg") and len(root.findall(".//{*}path")) > 1
    done = sterna("report", runs / "plain", "--chart", "works-of-art")
    assert done.returncode == 2 and "works" in done.stderr


LONG = ["--set", "run.iterations=50000000", "--set", "run.thin=100000", "--set", "schedule.rounds=1",
        "--set", "schedule.iterations=102", "--set", "chains.count=4", "--set", "target.dim=2"]


def start(out):
    run = subprocess.Popen([PROGRAM, "run", "--out", out, *LONG], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    for _ in range(100):
        time.sleep(0.2)
        file = out / "progress.json"
        if file.exists() and json.loads(file.read_text())["snapshot"]["stage"] == "sampling":
            return run
    run.kill()
    raise AssertionError("sampling did not begin")


def test_watch_sees_a_run_to_its_end(tmp_path):
    out = tmp_path / "out"
    run = start(out)
    watcher = subprocess.Popen([PROGRAM, "watch", out], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(7)
    assert watcher.poll() is None
    os.kill(run.pid, signal.SIGINT)
    run.communicate(timeout=60)
    said, progress = watcher.communicate(timeout=30)
    assert watcher.returncode == 0 and "stopped on request" in said and "report.html" in said
    lines = progress.splitlines()
    assert len(lines) >= 2
    for part in ("sampling ", "% · ", "/s", "left in all", "round trip", "Λ", "worst pair"):
        assert part in lines[-1], lines
    assert "not finished" in (out / "report.html").read_text()
    # Later watchers are told the same at once.
    assert "stopped on request" in sterna("watch", out).stdout


def test_watch_says_when_nothing_runs(tmp_path, runs):
    done = sterna("watch", tmp_path)
    assert done.returncode == 2 and "nothing runs" in done.stderr
    assert sterna("watch", tmp_path / "nowhere").returncode == 2
    done = sterna("watch", runs / "plain")
    assert done.returncode == 0 and "finished" in done.stdout
    found = json.loads((runs / "plain" / "summary.json").read_text())
    trips = found["round_trips"]
    assert f"{trips if trips < 10_000 else format(trips, ',')} round trips, log Z " in done.stdout
    out = tmp_path / "out"
    run = start(out)
    run.kill()
    run.communicate()
    done = sterna("watch", out)
    assert done.returncode == 1 and "nothing runs" in done.stderr and str(run.pid) in done.stderr
