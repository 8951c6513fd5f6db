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
