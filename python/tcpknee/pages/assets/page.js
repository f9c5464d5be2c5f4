"use strict";
// Draws the figures of the page from the data that stands in it. Fetches nothing.
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = { condition: 0, flow: "", logarithmic: false };
  const views = {};

  // A column is [low, step, base64 of little-endian 16-bit levels]; see encode.py.
  function column([low, step, text]) {
    const bytes = atob(text);
    const values = new Float64Array(bytes.length / 2);
    for (let i = 0; i < values.length; i++) {
      values[i] = low + step * (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1));
    }
    return values;
  }

  // Of each column the least and the greatest: what axes and legends follow from.
  function extremes(columns) {
    const found = new Set();
    for (const values of columns) {
      let least = 0, greatest = 0;
      for (let i = 1; i < values.length; i++) {
        if (values[i] < values[least]) least = i;
        if (values[i] > values[greatest]) greatest = i;
      }
      found.add(least).add(greatest);
    }
    return [...found].sort((a, b) => a - b);
  }

  function rows(blocks, sketched) {
    const out = [];
    for (const block of blocks) {
      const names = Object.keys(block.v);
      const columns = names.map((name) => column(block.v[name]));
      const count = columns.length ? columns[0].length : 0;
      for (const i of sketched && count ? extremes(columns) : Array(count).keys()) {
        const row = { ...block.c };
        for (let k = 0; k < names.length; k++) row[names[k]] = columns[k][i];
        out.push(row);
      }
    }
    return out;
  }

  // Among bands only the flow that the reader called up is drawn; the queue always is.
  function setsOf(condition, sketched) {
    const out = {};
    for (const [name, blocks] of Object.entries(page.conditions[condition].sets)) {
      const single = page.bands && name.startsWith("lines_") && name !== "lines_queue";
      out[name] = rows(single ? blocks.filter((block) => block.c.series === state.flow) : blocks, sketched);
    }
    return out;
  }

  function namesIn(spec, found = new Set()) {
    if (Array.isArray(spec)) spec.forEach((part) => namesIn(part, found));
    else if (spec && typeof spec === "object") {
      if (spec.data && spec.data.name) found.add(spec.data.name);
      Object.values(spec).forEach((part) => namesIn(part, found));
    }
    return found;
  }

  function withWidths(spec, factor) {
    if (Array.isArray(spec)) return spec.map((part) => withWidths(part, factor));
    if (!spec || typeof spec !== "object") return spec;
    const out = {};
    for (const [key, value] of Object.entries(spec)) {
      out[key] = key === "width" && typeof value === "number" ? Math.max(60, value * factor) : withWidths(value, factor);
    }
    return out;
  }

  // Values of very different size share a panel: the reader may ask for a logarithmic axis (linear about 0).
  // Panels that do not begin at 0 have no such spread.
  function withScale(spec) {
    if (Array.isArray(spec)) return spec.map(withScale);
    if (!spec || typeof spec !== "object") return spec;
    const out = {};
    for (const [key, value] of Object.entries(spec)) {
      const numbers = key === "y" && value && value.type === "quantitative" && value.scale && value.scale.zero;
      out[key] = !numbers ? withScale(value) : {
        ...value,
        scale: { ...value.scale, type: "symlog" },
        axis: { ...value.axis, values: [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6] },
      };
    }
    return out;
  }

  const widthOf = (box) => {
    const drawn = box.querySelector(".marks");
    return drawn ? drawn.getBoundingClientRect().width : 0;
  };

  // The widest layout that the room allows, or the narrowest of all.
  const layoutFor = (room) => page.layouts.find((layout) => room >= layout.from) || page.layouts[page.layouts.length - 1];

  async function embed(box, entry, layout, factor, datasets) {
    const logarithmic = state.logarithmic && entry.timed;
    const laidOut = entry.specs[layout.name];
    const spec = withWidths(logarithmic ? withScale(laidOut) : laidOut, factor);
    spec.datasets = datasets;
    spec.config = layout.config[dark.matches ? "dark" : "light"];
    spec.config.background = "transparent";
    const count = Object.values(datasets).reduce((sum, set) => sum + set.length, 0);
    if (views[entry.name]) views[entry.name].finalize();
    const result = await vegaEmbed(box, spec, {
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: entry.name,
      renderer: count > 20000 ? "canvas" : "svg",
      ast: true, // interpreted, not compiled: the page's policy lets no text become a script
      logLevel: 1, // errors; an empty panel is no cause for a warning
      tooltip: { theme: dark.matches ? "dark" : "light" },
    });
    views[entry.name] = result;
  }

  // Labels take room that is known only once drawn, so a figure is drawn until it fits.
  async function fit(box, entry, layout, datasets) {
    const room = box.clientWidth - 2;
    let factor = entry.factor || Math.max(0.2, (room - 110) / layout.width);
    let inner = layout.width;
    await embed(box, entry, layout, factor, datasets);
    for (let turn = 0; turn < 3; turn++) {
      const now = widthOf(box);
      if (!now || (now <= room && now > room - 12)) break;
      const next = Math.max(0.2, factor + (room - 4 - now) / inner);
      await embed(box, entry, layout, next, datasets);
      if (Math.abs(next - factor) > 0.02) inner = (widthOf(box) - now) / (next - factor) || layout.width;
      factor = next;
    }
    entry.factor = factor;
  }

  async function draw(entry) {
    const box = document.querySelector(`[data-figure="${entry.name}"]`);
    const layout = layoutFor(box.clientWidth - 2);
    const names = [...namesIn(entry.specs[layout.name])];
    const datasetsOf = (sets) => Object.fromEntries(
      names.map((name) => [name, sets[name] || page.shared[name] || []]));
    try {
      // Thousands of rows are drawn once, at the width that their extremes fit.
      if (entry.timed && !entry.factor) await fit(box, entry, layout, datasetsOf(setsOf(state.condition, true)));
      await fit(box, entry, layout, datasetsOf(entry.timed ? setsOf(state.condition, false) : page.shared));
      box.dataset.times = Number(box.dataset.times || 0) + 1;
    } catch (error) {
      console.error(entry.name, error);
      box.innerHTML = "";
      const note = document.createElement("p");
      note.className = "failed";
      note.textContent = `This figure could not be drawn: ${error.message}`;
      box.append(note);
    }
  }

  function choice(form, label, options, change) {
    const wrap = document.createElement("label");
    const select = document.createElement("select");
    for (const [value, text] of options) select.add(new Option(text, value));
    select.addEventListener("change", () => change(select.value));
    wrap.append(label, select);
    form.append(wrap);
    form.hidden = false;
  }

  function controls() {
    const form = document.getElementById("controls");
    if (!form || !page.conditions.length) return;
    const redraw = () => page.specs.filter((entry) => entry.timed).forEach(draw);
    form.addEventListener("submit", (event) => event.preventDefault());
    if (page.conditions.length > 1) {
      choice(form, "Condition", page.conditions.map((c, k) => [k, c.label]), (value) => {
        state.condition = Number(value);
        redraw();
      });
    }
    if (page.bands) {
      const names = new Set();
      for (const condition of page.conditions) {
        for (const block of condition.sets.lines_cwnd || []) names.add(block.c.series);
      }
      choice(form, "Single flow", [["", "none"], ...[...names].map((name) => [name, name])], (value) => {
        state.flow = value;
        redraw();
      });
    }
    choice(form, "Values", [["", "linear"], ["log", "logarithmic"]], (value) => {
      state.logarithmic = value === "log";
      redraw();
    });
  }

  async function drawAll() {
    for (const entry of page.specs) {
      delete entry.factor;
      await draw(entry);
    }
    document.body.dataset.drawn = "yes";
  }

  let wait = 0, width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(wait);
    wait = setTimeout(drawAll, 200);
  });
  dark.addEventListener("change", drawAll);
  controls();
  drawAll();
})();
