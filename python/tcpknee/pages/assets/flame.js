// Draws a flame graph: boxes of functions, as wide as their share of the samples, of one graph or of one beside another. Names
// come from whoever named a program: they become text of the page and never markup.
"use strict";

(() => {
  const place = document.getElementById("flame");
  if (!place) return;
  const data = JSON.parse(document.getElementById("data").textContent).flame;
  const told = document.getElementById("told");
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 18, LETTER = 6.6, LEAST = 0.5;

  // A function where it was called from: samples of this graph and of the other, and its samples of each class.
  const node = (name, above) => ({ name, above, samples: 0, other: 0, classes: new Map(), below: new Map() });
  let root = node("all", null), shown = root, wanted = "", beside = data.beside;

  const add = (stacks, key) => {
    for (const [folded, samples, kind] of stacks) {
      let at = root;
      const count = (one) => {
        one[key] += samples;
        if (key === "samples") one.classes.set(kind, (one.classes.get(kind) || 0) + samples);
      };
      count(at);
      for (const name of folded.split(";")) {
        if (!at.below.has(name)) at.below.set(name, node(name, at));
        at = at.below.get(name);
        count(at);
      }
    }
  };
  const build = (number) => {
    shown = root = node("all", null);
    add(data.graphs[number].stacks, "samples");
    if (beside !== null) add(data.graphs[beside].stacks, "other");
    told.textContent = "";
    explain(data.graphs[number].stacks);
  };

  const share = (samples) => `${(100 * samples / (root.samples || 1)).toPrecision(3)} %`;
  const most = (one) => [...one.classes].sort((a, b) => b[1] - a[1])[0]?.[0] || "other";

  // Of two graphs: how much more or less, up to a tenth of all samples.
  const change = (one) => {
    const part = Math.max(-1, Math.min(1, 10 * (one.samples - one.other) / (root.samples || 1)));
    const pale = Math.round(96 - 46 * Math.sqrt(Math.abs(part)));
    return part > 0 ? `hsl(8 80% ${pale}%)` : part < 0 ? `hsl(215 75% ${pale}%)` : "hsl(0 0% 92%)";
  };
  const colour = (one) => (beside !== null ? change(one) : data.classes[most(one)]);

  const words = (one) => {
    const parts = [`${one.name}: ${Math.round(one.samples)} samples, ${share(one.samples)}`];
    if (beside !== null) parts.push(`the other ${share(one.other)}`);
    else if (one !== root) parts.push(most(one));
    return parts.join("; ");
  };

  const matches = (one) => wanted && one.name.toLowerCase().includes(wanted);

  // Samples below a match count once, however often it calls itself.
  const matched = (one) => {
    if (matches(one)) return one.samples;
    let sum = 0;
    for (const below of one.below.values()) sum += matched(below);
    return sum;
  };

  const draw = () => {
    const width = place.clientWidth || 900;
    const boxes = [];
    const lay = (one, x, w, depth) => {
      boxes.push([one, x, w, depth]);
      let left = x;
      const whole = Math.max(one.samples, [...one.below.values()].reduce((sum, b) => sum + size(b), 0));
      for (const below of [...one.below.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const part = whole ? (w * size(below)) / whole : 0;
        if (part >= LEAST) lay(below, left, part, depth + 1);
        left += part;
      }
    };
    // What only the other has keeps a place, so that it can be seen to be gone.
    const size = (one) => Math.max(one.samples, one.other);
    let depth = 0;
    for (let one = shown.above; one; one = one.above) depth++;
    const under = [];
    for (let one = shown.above; one; one = one.above) under.unshift(one);
    under.forEach((one, k) => boxes.push([one, 0, width, k]));
    lay(shown, 0, width, depth);

    const rows = Math.max(...boxes.map((box) => box[3])) + 1;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("width", width);
    svg.setAttribute("height", rows * ROW);
    svg.setAttribute("role", "tree");
    svg.setAttribute("aria-label", "Functions by their share of the samples");
    for (const [one, x, w, level] of boxes) svg.append(box(one, x, w, (rows - 1 - level) * ROW));
    place.replaceChildren(svg);
  };

  const box = (one, x, w, y) => {
    const group = document.createElementNS(SVG, "g");
    const set = (element, values) => Object.entries(values).forEach(([key, value]) => element.setAttribute(key, value));
    set(group, { tabindex: "0", role: "treeitem", "aria-label": words(one) });
    const rect = document.createElementNS(SVG, "rect");
    set(rect, { x, y, width: Math.max(w - 0.5, LEAST), height: ROW - 1, rx: 1, fill: colour(one) });
    if (matches(one)) rect.classList.add("found");
    const title = document.createElementNS(SVG, "title");
    title.textContent = words(one);
    group.append(rect, title);
    const letters = Math.floor((w - 6) / LETTER);
    if (letters > 2) {
      const text = document.createElementNS(SVG, "text");
      set(text, { x: x + 3, y: y + ROW - 5 });
      text.textContent = one.name.length > letters ? `${one.name.slice(0, letters - 1)}…` : one.name;
      group.append(text);
    }
    const zoom = () => {
      shown = one;
      told.textContent = words(one);
      draw();
    };
    group.addEventListener("click", zoom);
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        zoom();
      }
    });
    return group;
  };

  const search = document.getElementById("search");
  search.addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", () => {
    const { graph, beside: other, wanted: words } = search.elements;
    wanted = words.value.trim().toLowerCase();
    if (graph && (Number(graph.value) !== number || other.value !== String(beside ?? ""))) {
      number = Number(graph.value);
      beside = other.value === "" ? null : Number(other.value);
      build(number);
    }
    document.getElementById("matched").textContent = wanted ? `${share(matched(root))} of the samples` : "";
    draw();
  });

  // The classes by their colours; beside another graph colours mean something else.
  const explain = (stacks) => {
    const legend = document.getElementById("legend");
    legend.replaceChildren();
    if (beside !== null) return;
    const used = new Set(stacks.map((stack) => stack[2]));
    for (const [name, ink] of Object.entries(data.classes)) {
      if (!used.has(name)) continue;
      const entry = document.createElement("span");
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = ink;
      entry.append(swatch, ` ${name}  `);
      legend.append(entry);
    }
  };
  window.addEventListener("resize", draw);
  let number = 0;
  build(number);
  draw();
})();
