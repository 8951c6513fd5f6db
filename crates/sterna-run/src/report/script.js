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
  for (const table of document.querySelectorAll("table.quantities")) {
    const body = table.tBodies[0], original = [...body.rows], headings = [...table.tHead.rows[0].cells];
    const rows = original.filter((row) => !row.classList.contains("fold"));
    const number = (row, k) => k === 0 ? null : (row.cells[k].dataset.v === undefined ? -Infinity : Number(row.cells[k].dataset.v));
    const compare = (k) => k === 0 ? (a, b) => b.cells[0].textContent.localeCompare(a.cells[0].textContent, undefined, { numeric: true })
      : (a, b) => number(b, k) - number(a, k) || 0;
    headings.forEach((heading, k) => heading.querySelector("button")?.addEventListener("click", () => {
      const next = { none: "descending", descending: "ascending", ascending: "none" }[heading.getAttribute("aria-sort") ?? "none"];
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      rows.forEach((row) => row.classList.remove("shown"));
      if (next === "none") return body.replaceChildren(...original);
      heading.setAttribute("aria-sort", next);
      const sorted = [...rows].sort(compare(k));
      body.replaceChildren(...(next === "descending" ? sorted : sorted.reverse()));
      // What is largest or smallest may lie in a fold.
      [...body.rows].slice(0, 200).forEach((row) => row.classList.add("shown"));
    }));
    body.addEventListener("click", (event) => {
      const button = event.target.closest("tr.fold button");
      if (!button) return;
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      rows.filter((row) => row.dataset.of === button.dataset.of).forEach((row) => { row.hidden = !open; });
    });
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
