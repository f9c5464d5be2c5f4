import { Chart } from "./chart.mjs";
import { STOPPED, TABLES, loadEngine } from "./engine.mjs";
import { CHOICES, bdps, bitsPerSec, commandOf, flowsOf, flowsText, percent, readFragment, scenarioOf, refusedHere, seconds, warmupOf, writeFragment } from "./scenario.mjs";
import { Series, indexAt } from "./series.mjs";

const $ = (id) => document.getElementById(id);
const known = JSON.parse($("known").textContent);

// How long the page computes between two frames, ms.
const SLICE_MS = 12;
// Payload of a packet of 1500 bytes with timestamps.
const PAYLOAD = 1448 / 1500;
const MTU_BITS = 1500 * 8;
const YOUR_ALGORITHM = "reno";

let engine = null;
let choices = { ...CHOICES };
let run = null;
let mode = "paused";
let unknown = [];
let last = 0;
let waits = false;
let hovered = null;

// ---- one run

function isYours() {
  return choices.you === "yes";
}

function chosen() {
  return isYours() ? { ...choices, flows: `${YOUR_ALGORITHM},${choices.flows}` } : choices;
}

function begin(how) {
  const asked = chosen();
  const error = refusedHere(choices, known) || engine.open(scenarioOf(asked, known), 0, isYours() ? 0 : -1);
  const also = unknown.length ? `The link also says ${unknown.map((key) => `“${key}”`).join(", ")}, which is no choice of this page. Known: ${Object.keys(CHOICES).join(", ")}.` : "";
  problem([error, also].filter((text) => text).join("\n"));
  // What is refused here may be a file of the reader's own to the command.
  for (const button of document.querySelectorAll(".take button")) button.disabled = error !== "";
  show();
  if (error) {
    run = null;
    mode = "paused";
    $("answer").textContent = "Nothing to run yet.";
    $("also").textContent = "";
    return draw();
  }
  const flows = flowsOf(asked);
  const base = seconds(asked.rtt) ?? 0;
  run = {
    flows: looksOf(flows), series: new Series(flows.length, base), now: 0, chunk: 0.1, computing: 0, over: false,
    lasts: seconds(asked.duration), warmup: seconds(warmupOf(asked)) ?? 0, base, rate: bitsPerSec(asked.rate), measured: measuredOf(asked),
  };
  mode = how;
  tell();
  steer();
  wake();
}

// To that time, in one go.
function advance(until) {
  const { over, tables } = engine.step(Math.round(until * 1e9));
  const isLast = over || until >= run.lasts;
  const rest = isLast ? engine.finish().tables : {};
  if (engine.hasStopped()) {
    problem(STOPPED);
    mode = "paused";
    return;
  }
  run.series.add(tables);
  run.series.add(rest);
  run.now = isLast ? run.lasts : until;
  if (isLast) {
    run.over = true;
    mode = "paused";
  }
}

function frame(time) {
  waits = false;
  const passed = Math.max(0, Math.min(100, time - last)) / 1000;
  last = time;
  if (mode === "rush") rush();
  if (mode === "play") advance(run.now + passed * Number($("speed").value));
  draw();
  if (mode !== "paused") next();
}

function next() {
  if (!waits) requestAnimationFrame(frame);
  waits = true;
}

// As far as it gets within a slice of time.
function rush() {
  const start = performance.now();
  let now = start;
  while (mode === "rush" && now - start < SLICE_MS) {
    advance(run.now + run.chunk);
    const took = performance.now() - now;
    now += took;
    if (took > SLICE_MS / 2) run.chunk = Math.max(0.001, run.chunk / 2);
    else if (took < SLICE_MS / 8) run.chunk = Math.min(2, run.chunk * 2);
  }
  run.computing += now - start;
}

function wake() {
  last = performance.now();
  next();
}

// ---- what the flows look like

function looksOf(flows) {
  const taken = new Map();
  return flows.map(({ algorithm, start }, i) => {
    const yours = isYours() && i === 0;
    const name = yours ? "you" : algorithm;
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    return { name: count > 1 ? `${name} (${count})` : name, start: seconds(start) ?? 0, ink: yours ? "var(--ink)" : Object.hasOwn(known.inks, algorithm) ? known.inks[algorithm] : "var(--soft)" };
  }).map((look, i, all) => ({ ...look, dash: dashOf(all, i) }));
}

// Of several flows of one colour each has lines of its own.
function dashOf(all, i) {
  const before = all.slice(0, i).filter((look) => look.ink === all[i].ink).length;
  return [[], [10, 3], [3, 3], [10, 3, 3, 3]][before % 4];
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const solid = (ink) => (ink.startsWith("var(") ? css(ink.slice(4, -1)) : ink);

// ---- what was measured

// What a measured cell has that this run has not, as choices of the page, under the names of their controls.
const BESIDE = { kernel: "kernel rules", hosts: "hosts", duration: "duration", warmup: "warm-up" };

function beside(cell) {
  const here = { ...choices, warmup: warmupOf(choices) };
  const isSame = (key) => here[key] === cell[key] || (seconds(here[key]) !== null && seconds(here[key]) === seconds(cell[key]));
  return Object.keys(BESIDE).filter((key) => !isSame(key));
}

function measuredOf(asked) {
  const keys = ["rate", "rtt", "loss", "buffer", "queue", "flows"];
  if (isYours() || asked.ecn !== "off") return [];
  return known.measured.filter((cell) => keys.every((key) => cell[key] === asked[key]));
}

// ---- drawing

const charts = { goodput: new Chart($("goodput"), "Mbit/s"), window: new Chart($("window-chart"), "segments"), rtt: new Chart($("rtt-chart"), "ms"), queue: new Chart($("queue-chart"), "packets") };

// How it stands, for who looks from outside.
function tell() {
  document.body.dataset.run = run === null ? "none" : run.over ? "over" : mode;
}

function draw() {
  const lasts = run?.lasts ?? 20;
  const inks = { line: css("--line"), soft: css("--soft"), paper: css("--paper") };
  const common = { seconds: lasts, now: run?.now ?? 0, at: hovered, inks };
  tell();
  $("play").textContent = mode === "paused" ? "Play" : "Pause";
  $("clock").textContent = `${(hovered ?? run?.now ?? 0).toFixed(1)} s`;
  if (!run) {
    for (const chart of Object.values(charts)) chart.draw({ ...common, lines: [] });
    $("table").tBodies[0].replaceChildren();
    $("legend").replaceChildren();
    $("share").textContent = "";
    return measurements([]);
  }
  const { series, flows, rate, base } = run;
  const lines = (make) => flows.flatMap((look, i) => make(series.flows[i], { ink: solid(look.ink), dash: look.dash }));
  const mbit = rate === null ? null : (rate * PAYLOAD) / 1e6;
  const points = run.measured.flatMap((cell) => cell.results.map((result, i) => ({ ...result, kernel: cell.kernel, look: flows[i], warmup: seconds(cell.warmup) })));
  const measured = (pick) => points.filter(({ look }) => look).map((point) => ({ v: pick(point), name: `Linux ${point.kernel}`, ink: solid(point.look.ink), dash: [1, 4], from: Math.min(point.warmup, lasts), counts: true }));
  charts.goodput.draw({
    ...common,
    lines: lines(({ t, goodput, bbr_bw_bits_per_sec }, look) => [{ t, v: bbr_bw_bits_per_sec, ...look, dash: [4, 3], width: 1, spikes: true }, { t, v: goodput, ...look, spikes: true }]),
    levels: [...(mbit === null ? [] : [{ v: mbit, name: "the link", counts: true }]), ...measured((point) => point.goodput)],
  });
  charts.window.draw({
    ...common,
    lines: lines(({ t, snd_cwnd, inflight }, look) => [{ t, v: inflight, ...look, dash: [4, 3], width: 1 }, { t, v: snd_cwnd, ...look, spikes: true }]),
    levels: rate === null ? [] : [{ v: (rate * base) / MTU_BITS, name: "bandwidth-delay product", counts: true }],
  });
  const { queue } = series;
  charts.rtt.draw({
    ...common,
    lines: [
      { t: queue.t, v: queue.queue_delay_us.map((delay) => delay + base * 1e3), ink: css("--truth"), fill: true },
      ...lines(({ t, srtt_us, bbr_min_rtt_us }, look) => [{ t, v: bbr_min_rtt_us, ...look, dash: [4, 3], width: 1 }, { t, v: srtt_us.map((v) => v || NaN), ...look, spikes: true }]),
    ],
    levels: [{ v: base * 1e3, name: "without queue", counts: true }, ...measured((point) => point.srtt)],
  });
  const buffer = bdps(choices.buffer);
  charts.queue.draw({
    ...common,
    lines: [{ t: queue.t, v: queue.queue_pkts, ink: css("--soft"), width: 1.25 }],
    levels: buffer === null || rate === null ? [] : [{ v: (buffer * rate * base) / MTU_BITS, name: "the buffer" }],
    marks: [{ t: rises(queue, "marked_pkts"), ink: css("--accent") }, { t: [...rises(queue, "dropped_pkts"), ...rises(queue, "lost_pkts")], ink: css("--bad") }],
  });
  legend();
  table(mbit);
  say();
}

function rises(queue, name) {
  return queue.t.filter((_, i) => i > 0 && queue[name][i] > queue[name][i - 1]);
}

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function swatch(ink) {
  const dot = element("span", null, { class: "swatch" });
  dot.style.background = ink;
  return dot;
}

function legend() {
  const parts = run.flows.map((look) => {
    const part = element("span", null);
    part.append(swatch(look.ink), look.name);
    return part;
  });
  if (run.measured.length) parts.push(element("span", "dotted: measured on Linux", { class: "note" }));
  $("legend").replaceChildren(...parts);
}

// A small screen has them beside each cell.
const HEADS = [...$("table").tHead.rows[0].cells].slice(1).map((cell) => [...cell.childNodes].map((node) => node.textContent).filter((text) => text).join(", "));

const digits = (value, places) => (value === undefined || value === null || Number.isNaN(value) ? "–" : value.toFixed(places));

function row(name, ink, cells, kind) {
  const made = element("tr", null, kind ? { class: kind } : {});
  const head = element("th", null, { scope: "row" });
  if (ink) head.append(swatch(ink));
  head.append(name);
  made.append(head);
  cells.forEach((text, i) => made.append(element("td", text, { "data-head": HEADS[i], ...(i === 5 ? {} : { class: "number" }) })));
  return made;
}

// At the time under the mouse, or the last.
function table(mbit) {
  const { series, flows, rate, base } = run;
  const at = hovered ?? run.now;
  const rows = flows.map((look, i) => {
    const flow = series.flows[i];
    const k = indexAt(flow.t, at);
    const total = series.totals[i];
    return row(look.name, look.ink, [
      digits(flow.goodput[k], 1), digits(flow.snd_cwnd[k], 0), digits(flow.srtt_us[k] || NaN, 1), digits(flow.bbr_bw_bits_per_sec[k], 1),
      digits(flow.bbr_min_rtt_us[k], 1), (k >= 0 && k === flow.t.length - 1 ? flow.phase : "") || "–", digits(flow.total_retrans[k], 0),
      total ? digits(Number(total.goodput_bits_per_sec) / 1e6, 2) : "–",
    ]);
  });
  const k = indexAt(series.queue.t, at);
  const wait = series.queue.queue_delay_us[k];
  const so = [digits(mbit, 1), digits(rate === null ? null : (rate * base) / MTU_BITS, 0), digits(wait === undefined ? NaN : wait + base * 1e3, 1), digits(mbit, 1), digits(base * 1e3, 1), "", "", ""];
  rows.push(row("what is so", "", so, "so"));
  $("table").tBodies[0].replaceChildren(...rows);
  $("share").textContent = mbit === null ? "" : `An equal share of the link is ${digits(mbit / flows.length, 1)} Mbit/s.`;
}

function say() {
  const { series, flows, over, now, computing, warmup, lasts, base } = run;
  if (isYours()) scores();
  if (now === 0) {
    $("answer").textContent = isYours() ? "You set the window. Play begins." : "Play begins.";
    $("also").textContent = "";
    return measurements([]);
  }
  const rate = (i) => (over && series.totals[i] ? Number(series.totals[i].goodput_bits_per_sec) / 1e6 : series.flows[i].goodput.at(-1) ?? 0);
  const parts = flows.map((look, i) => `${look.name} ${rate(i).toFixed(1)}`);
  $("answer").textContent = `${parts.slice(0, 4).join(", ")}${parts.length > 4 ? ", …" : ""} Mbit/s`;
  const waits = series.queue.queue_delay_us.filter((_, i) => series.queue.t[i] >= warmup);
  const mean = waits.length ? waits.reduce((sum, wait) => sum + wait, 0) / waits.length : NaN;
  const dropped = series.queue.dropped_pkts.at(-1) ?? 0;
  const wait = Number.isNaN(mean) ? "" : `The queue adds ${mean.toFixed(mean < 10 ? 1 : 0)} ms on average to ${digits(base * 1e3, base < 0.01 ? 1 : 0)} ms, and dropped ${dropped} packets. `;
  $("also").textContent = over
    ? `${wait}Steady part from ${warmup.toFixed(1)} s.${computing ? ` ${lasts.toFixed(0)} s simulated in ${(computing / 1000).toFixed(2)} s.` : ""}`
    : `${wait}At ${now.toFixed(1)} s of ${lasts.toFixed(0)} s.`;
  measurements(run.measured);
}

// A sentence for each, and a button where it was measured otherwise than this runs.
function measurements(cells) {
  const key = JSON.stringify([choices, cells.map((cell) => cell.kernel)]);
  if ($("measured").dataset.key === key) return;
  $("measured").dataset.key = key;
  $("measured").replaceChildren(
    ...cells.map((cell) => {
      const part = element("p", sentence(cell), { class: "note" });
      if (beside(cell).length) {
        const button = element("button", `Set what Linux ${cell.kernel} had`, { type: "button" });
        button.addEventListener("click", () => change(Object.fromEntries(Object.keys(BESIDE).map((name) => [name, cell[name]]))));
        part.append(" ", button);
      }
      return part;
    }),
  );
}

function sentence(cell) {
  const entrants = cell.flows.split(",");
  const results = cell.results.map(({ goodput, srtt }, i) => `${entrants[i]} ${goodput.toFixed(1)} Mbit/s at ${srtt.toFixed(0)} ms`);
  const here = { ...choices, warmup: warmupOf(choices) };
  const names = { hosts: known.hostNames };
  const said = (key, value) => (Object.hasOwn(names, key) ? names[key][value] : value);
  const others = beside(cell).map((key) => `${BESIDE[key]} ${said(key, cell[key])} (here ${said(key, here[key])})`);
  return `Measured on Linux ${cell.kernel}: ${results.join(", ")}.${others.length ? ` What differs there: ${others.join(", ")}.` : ""}`;
}

// Goodput up to an equal share, times the RTT without queue over the RTT: the mean over time, of a hundred.
function scores() {
  const { series, flows, base, rate } = run;
  const fair = rate === null ? Infinity : (rate * PAYLOAD) / 1e6 / flows.length;
  const of = flows.map((look, i) => {
    const { t, goodput, srtt_us } = series.flows[i];
    let [sum, count] = [0, 0];
    for (let k = 0; k < t.length; k++) {
      if (t[k] < look.start + 1 || !(srtt_us[k] > 0)) continue;
      sum += Math.min(1, goodput[k] / fair) * Math.min(1, (base * 1e3) / srtt_us[k]);
      count++;
    }
    return `${look.name} ${count ? Math.round((100 * sum) / count) : "–"}`;
  });
  $("score").textContent = `Score: ${of.join(" · ")}. Of 100: goodput up to an equal share, times RTT without queue over RTT.`;
}

function problem(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

// ---- the controls

const significant = (value) => `${+value.toPrecision(value < 10 ? 2 : 3)}`;
const log = (low, high) => ({ from: (k) => low * (high / low) ** (k / 1000), to: (v) => (1000 * Math.log(v / low)) / Math.log(high / low) });
const DIALS = {
  rate: { ...log(1e5, 1e9), read: bitsPerSec, write: (v) => (v >= 1e6 ? `${significant(v / 1e6)}Mbit/s` : `${significant(v / 1e3)}kbit/s`) },
  rtt: { ...log(1e-3, 0.5), read: seconds, write: (v) => `${significant(v * 1e3)}ms` },
  loss: { from: (k) => (k === 0 ? 0 : log(1e-3, 20).from(k)), to: (v) => (v === 0 ? 0 : log(1e-3, 20).to(v)), read: percent, write: (v) => `${significant(v)}%` },
  buffer: { ...log(0.05, 20), read: bdps, write: (v) => `${significant(v)}bdp` },
};
const WINDOW = log(1, 20000);

function change(changes) {
  choices = { ...choices, ...changes };
  unknown = [];
  begin(isYours() ? "paused" : "rush");
}

// The controls and the fragment say what is chosen.
function show() {
  history.replaceState(null, "", writeFragment(choices));
  for (const [key, dial] of Object.entries(DIALS)) {
    write($(key), choices[key]);
    const value = dial.read(choices[key]);
    if (value !== null) $(`${key}-dial`).value = dial.to(value);
    $(`${key}-dial`).setAttribute("aria-valuetext", choices[key]);
  }
  for (const key of ["duration", "warmup", "seed"]) write($(key), choices[key]);
  for (const key of ["queue", "kernel", "hosts", "ecn", "you"]) select($(key), choices[key]);
  const queue = known.queues.find(({ name }) => name === choices.queue);
  $("queue-note").textContent = queue ? queue.summary : "";
  $("seat").hidden = !isYours();
  showFlows();
  $("scenario").textContent = scenarioOf(chosen(), known);
}

function write(input, text) {
  if (input.value !== text) input.value = text;
}

// Also what is no choice of the page: the engine says what is wrong with it.
function select(input, value) {
  if (![...input.options].some((option) => option.value === value)) input.append(new Option(value, value));
  input.value = value;
}

function showFlows() {
  const flows = flowsOf(choices);
  const key = JSON.stringify([choices.flows, isYours()]);
  if ($("flows").dataset.key === key) return;
  $("flows").dataset.key = key;
  const looks = looksOf(flowsOf(chosen()));
  const put = (i, part) => change({ flows: flowsText(flows.map((flow, k) => (k === i ? { ...flow, ...part } : flow))) });
  $("flows").replaceChildren(
    ...flows.map((flow, i) => {
      const item = element("li", null);
      const algorithm = element("select", null, { "aria-label": `Algorithm of flow ${i + 1}` });
      for (const { name, summary } of known.algorithms) algorithm.append(new Option(name, name)), (algorithm.lastChild.title = summary);
      select(algorithm, flow.algorithm);
      algorithm.addEventListener("change", () => put(i, { algorithm: algorithm.value }));
      const start = element("input", null, { type: "text", "aria-label": `Start of flow ${i + 1}`, spellcheck: "false" });
      start.value = flow.start;
      start.addEventListener("change", () => put(i, { start: start.value.replaceAll(",", "") || "0s" }));
      const remove = element("button", "×", { type: "button", "aria-label": `Remove flow ${i + 1}` });
      remove.disabled = flows.length === 1;
      remove.addEventListener("click", () => change({ flows: flowsText(flows.filter((_, k) => k !== i)) }));
      item.append(swatch(looks[i + (isYours() ? 1 : 0)].ink), algorithm, start, remove);
      return item;
    }),
  );
}

function steer(segments = Math.round(WINDOW.from(Number($("window").value)))) {
  const window = Math.max(1, Math.min(20000, segments));
  $("window-text").textContent = `${window} segments`;
  $("window").setAttribute("aria-valuetext", `${window} segments`);
  $("window").dataset.segments = window;
  engine.steer(window);
}

function listen() {
  for (const [key, dial] of Object.entries(DIALS)) {
    Object.assign($(`${key}-dial`), { min: 0, max: 1000, step: 1 });
    $(`${key}-dial`).addEventListener("input", (event) => change({ [key]: dial.write(dial.from(Number(event.target.value))) }));
  }
  for (const key of ["rate", "rtt", "loss", "buffer", "duration", "warmup", "seed"]) $(key).addEventListener("change", (event) => change({ [key]: event.target.value.trim() }));
  for (const key of ["queue", "kernel", "hosts", "ecn", "you"]) $(key).addEventListener("change", (event) => change({ [key]: event.target.value }));
  $("add").addEventListener("click", () => change({ flows: `${choices.flows},cubic` }));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  for (const { name, fragment } of known.presets) {
    const button = element("button", name, { type: "button" });
    button.addEventListener("click", () => change(readFragment(fragment).choices));
    $("presets").append(button);
  }
  $("play").addEventListener("click", toggle);
  $("step").addEventListener("click", () => move(() => advance(run.now + 0.1)));
  $("end").addEventListener("click", () => {
    if (!run || run.over) begin("rush");
    else (mode = "rush"), wake();
  });
  $("again").addEventListener("click", () => begin("paused"));
  $("window").addEventListener("input", () => steer());
  $("window").addEventListener("keydown", (event) => {
    const now = Number($("window").dataset.segments);
    const tenth = Math.max(1, Math.round(now / 10));
    const to = { ArrowUp: now + tenth, ArrowDown: now - tenth, ArrowRight: now + 1, ArrowLeft: now - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    $("window").value = Math.round(WINDOW.to(Math.max(1, to)));
    steer(to);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input[type=text], select, button, summary, a");
    if (event.key !== " " || typing) return;
    event.preventDefault();
    toggle();
  });
  for (const chart of Object.values(charts)) {
    chart.canvas.addEventListener("pointermove", (event) => hover(run ? chart.timeAt(event, run.lasts) : null));
    chart.canvas.addEventListener("pointerleave", () => hover(null));
  }
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("hashchange", fromFragment);
  $("copy-link").addEventListener("click", () => copy(location.href, "link"));
  $("copy-command").addEventListener("click", () => copy(commandOf(chosen(), known), "command"));
  $("copy-scenario").addEventListener("click", () => copy(scenarioOf(chosen(), known), "scenario"));
  for (const name of TABLES) {
    const button = element("button", `Save ${name}.csv`, { type: "button" });
    button.addEventListener("click", () => save(name));
    $("save").append(button);
  }
}

function hover(time) {
  if (time === hovered) return;
  hovered = time;
  if (mode === "paused") draw();
}

function toggle() {
  if (mode !== "paused") {
    mode = "paused";
    return draw();
  }
  if (!run || run.over) return begin("play");
  mode = "play";
  wake();
}

// A step from where it is; a run that is over begins anew.
function move(act) {
  if (!run || run.over) begin("paused");
  if (!run) return;
  mode = "paused";
  act();
  draw();
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = `The ${what} is copied.`;
  } catch {
    $("scenario").textContent = text;
    $("text-box").open = true;
    getSelection().selectAllChildren($("scenario"));
    $("copied").textContent = `The ${what} stands below, selected.`;
  }
}

function save(name) {
  if (!run) return;
  const link = element("a", null, { download: `${name}.csv` });
  link.href = URL.createObjectURL(new Blob([run.series.csv[name]], { type: "text/csv" }));
  link.click();
  URL.revokeObjectURL(link.href);
}

function fromFragment() {
  const found = readFragment(location.hash);
  if (JSON.stringify(found.choices) === JSON.stringify(choices) && run) return;
  ({ choices, unknown } = found);
  begin(isYours() ? "paused" : "rush");
}

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// What is chosen seldom does not stand between the charts and the choices of a small screen.
$("hosts-box").open = !window.matchMedia("(max-width: 900px)").matches;
for (const { name, summary } of known.queues) $("queue").append(new Option(name, name)), ($("queue").lastChild.title = summary);
for (const kernel of known.kernels) $("kernel").append(new Option(`Linux ${kernel}`, kernel));
for (const [name, text] of Object.entries(known.hostNames)) $("hosts").append(new Option(text, name));
try {
  engine = await loadEngine(await unpacked($("wasm").textContent));
  // Without an engine no control acts.
  listen();
  fromFragment();
} catch (error) {
  $("answer").textContent = "The simulator could not be loaded.";
  problem(`${error}. This page needs a browser with WebAssembly and DecompressionStream: Chromium 80, Firefox 113, Safari 16.4 or later.`);
}
