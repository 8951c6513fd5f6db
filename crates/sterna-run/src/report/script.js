(() => {
  "use strict";
  const root = document.documentElement;
  // Files opened from disk may not be allowed to remember.
  const remember = (value) => { try { value ? localStorage.setItem("sterna-theme", value) : 0; return localStorage.getItem("sterna-theme"); } catch { return null; } };
  const kept = remember();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember(root.dataset.theme);
  });

  for (const choice of document.querySelectorAll(".choice")) {
    const select = choice.querySelector("select");
    const show = () => choice.querySelectorAll(":scope > .panel").forEach((panel) => { panel.hidden = panel.dataset.panel !== select.value; });
    select.addEventListener("change", show);
    show();
  }

  // Tables: a heading sorts, first by the largest, then by the smallest, then as it was; long vectors unfold.
  const MOST = 200, HEIGHTS = "▁▂▃▄▅▆▇█";
  const element = (name, attributes, ...content) => {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...content);
    return made;
  };
  const shape = (text) => {
    const names = [...text].map((letter) => HEIGHTS.indexOf(letter)).filter((height) => height >= 0);
    const path = names.map((height) => `V${(18 * (1 - (height + 1) / HEIGHTS.length)).toFixed(1)}h4`).join("");
    return names.length ? `<svg class="spark" viewBox="0 0 ${4 * names.length} 18" aria-hidden="true"><path class="area c1" d="M0 18${path}V18Z"/></svg>` : "";
  };
  // Numbers as people read them: −1,234 and 3.2×10⁻⁷.
  const DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const value = (text) => {
    const plain = text.replace("!", "").replace(/,/g, "").replace(/−/g, "-").replace("×10", "e")
      .replace("⁻", "-").replace(/[⁰¹²³⁴-⁹]/g, (digit) => DIGITS.indexOf(digit));
    return Number.isFinite(Number(plain)) && plain !== "" ? Number(plain) : -Infinity;
  };
  const safe = (text) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const cell = (text) => text.startsWith("!") ? `<td class="suspect">${safe(text.slice(1))}</td>` : `<td>${safe(text)}</td>`;
  const row = (texts) => `<tr><th scope="row">${safe(texts[0])}</th>${texts.slice(1, -1).map(cell).join("")}<td>${shape(texts.at(-1))}</td></tr>`;
  // All at once: thousands one by one take seconds.
  const made = (all) => { const body = element("tbody", {}); body.innerHTML = all.map(row).join(""); return [...body.rows]; };
  for (const table of document.querySelectorAll("table.quantities")) {
    const body = table.tBodies[0], original = [...body.rows], headings = [...table.tHead.rows[0].cells];
    const folds = original.filter((row) => row.classList.contains("fold"));
    const data = new Map(folds.map((fold) => [fold, JSON.parse(fold.querySelector("script").textContent)]));
    const unfolded = new Map();
    const entries = [
      ...original.filter((row) => !data.has(row)).map((row) => ({
        name: row.cells[0].textContent, key: (k) => row.cells[k].dataset.v === undefined ? -Infinity : Number(row.cells[k].dataset.v), row: () => row,
      })),
      ...[...data.values()].flat().map((texts) => ({ name: texts[0], key: (k) => value(texts[k]), row: () => made([texts])[0] })),
    ];
    const names = new Intl.Collator(undefined, { numeric: true });
    const compare = (k) => k === 0 ? (a, b) => names.compare(b.name, a.name) : (a, b) => b.key(k) - a.key(k) || 0;
    headings.forEach((heading, k) => heading.querySelector("button")?.addEventListener("click", () => {
      const next = { none: "descending", descending: "ascending", ascending: "none" }[heading.getAttribute("aria-sort") ?? "none"];
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      if (next === "none") return body.replaceChildren(...original.flatMap((row) => [row, ...(unfolded.get(row) ?? [])]));
      heading.setAttribute("aria-sort", next);
      const sorted = [...entries].sort(compare(k));
      if (next === "ascending") sorted.reverse();
      const rows = sorted.slice(0, MOST).map((entry) => entry.row());
      const left = sorted.length - rows.length;
      if (left > 0) rows.push(element("tr", {}, element("td", { colspan: headings.length, class: "left" }, `${MOST} of ${sorted.length} shown`)));
      body.replaceChildren(...rows);
    }));
    for (const fold of folds) {
      const button = fold.querySelector("button");
      button.addEventListener("click", () => {
        const open = button.getAttribute("aria-expanded") !== "true";
        button.setAttribute("aria-expanded", String(open));
        if (open) {
          unfolded.set(fold, made(data.get(fold)));
          fold.after(...unfolded.get(fold));
        } else {
          unfolded.get(fold).forEach((row) => row.remove());
          unfolded.delete(fold);
        }
      });
      // Paper does not unfold.
      let forPaper = false;
      const turn = () => { forPaper = !forPaper; button.click(); };
      addEventListener("beforeprint", () => { if (fold.isConnected && !unfolded.has(fold) && data.get(fold).length <= MOST) turn(); });
      addEventListener("afterprint", () => { if (forPaper) turn(); });
    }
  }

  // Values appear beside the nearest mark.
  const tip = document.getElementById("tip");
  for (const svg of document.querySelectorAll("svg[data-points]")) {
    let points = null;
    const dot = document.createElementNS(svg.namespaceURI, "circle");
    dot.setAttribute("class", "hover");
    dot.setAttribute("r", "4");
    const hide = () => { tip.hidden = true; dot.remove(); };
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointermove", (event) => {
      points ??= JSON.parse(svg.dataset.points);
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      let best = null, least = 60 * 60;
      for (const point of points) {
        const distance = (point[0] - x) ** 2 + 0.35 * (point[1] - y) ** 2;
        if (distance < least) { least = distance; best = point; }
      }
      if (!best) return hide();
      dot.setAttribute("cx", best[0]);
      dot.setAttribute("cy", best[1]);
      svg.append(dot);
      tip.textContent = best[2];
      tip.hidden = false;
      const left = box.left + best[0] / scale, top = box.top + best[1] / scale;
      tip.style.left = Math.max(6, Math.min(left + 12, innerWidth - tip.offsetWidth - 6)) + "px";
      tip.style.top = Math.max(6, top - tip.offsetHeight - 10) + "px";
    });
  }
})();
