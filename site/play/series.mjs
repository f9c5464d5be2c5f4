import { joined } from "./engine.mjs";

// What the tables say of each flow and of the bottleneck, as lines over time.

const SAMPLES = { snd_cwnd: 1, inflight: 1, srtt_us: 1e-3, bytes_read: 1, total_retrans: 1, bbr_bw_bits_per_sec: 1e-6, bbr_min_rtt_us: 1e-3 };
const QUEUE = { queue_pkts: 1, queue_delay_us: 1e-3, dropped_pkts: 1, marked_pkts: 1, lost_pkts: 1 };

// The goodput of an instant is that of the time before it, this long at least.
const LEAST_WINDOW_S = 0.2;

export class Series {
  constructor(flows, rttSeconds) {
    this.flows = Array.from({ length: flows }, () => ({ t: [], phase: "", goodput: [], ...columns(SAMPLES) }));
    this.queue = { t: [], ...columns(QUEUE) };
    this.window = Math.max(LEAST_WINDOW_S, 2 * rttSeconds);
    this.csv = { flows: "", samples: "", queue: "", events: "" };
    this.totals = [];
  }

  // Rows of a step, behind those of the steps before.
  add(tables) {
    for (const [name, text] of Object.entries(tables)) {
      this.csv[name] = joined(this.csv[name], text);
      if (text.indexOf("\n") < text.length - 1) this[`add_${name}`]?.(text);
    }
  }

  add_samples(text) {
    each(text, ["t_ns", "flow", "cc_phase", ...Object.keys(SAMPLES)], (cells) => {
      const flow = this.flows[Number(cells.flow)];
      if (!flow) return;
      flow.t.push(Number(cells.t_ns) / 1e9);
      flow.phase = (cells.cc_phase ?? "").replaceAll('"', "");
      push(flow, cells, SAMPLES);
      flow.goodput.push(this.rate(flow));
    });
  }

  add_queue(text) {
    each(text, ["t_ns", ...Object.keys(QUEUE)], (cells) => {
      this.queue.t.push(Number(cells.t_ns) / 1e9);
      push(this.queue, cells, QUEUE);
    });
  }

  add_flows(text) {
    each(text, ["flow", "goodput_bits_per_sec"], (cells) => (this.totals[Number(cells.flow)] = cells));
  }

  // Mbit/s of what the far end has read in the window before the last sample.
  rate(flow) {
    const last = flow.t.length - 1;
    let first = last;
    while (first > 0 && flow.t[last] - flow.t[first - 1] <= this.window) first--;
    const time = flow.t[last] - flow.t[first];
    return time > 0 ? ((flow.bytes_read[last] - flow.bytes_read[first]) * 8) / time / 1e6 : 0;
  }
}

const columns = (names) => Object.fromEntries(Object.keys(names).map((name) => [name, []]));

function push(into, cells, scales) {
  for (const [name, scale] of Object.entries(scales)) {
    const text = cells[name];
    into[name].push(text === "" || text === undefined ? NaN : Number(text) * scale);
  }
}

// Calls for each row with the wanted cells of it. No cell has a comma: names are the page's own.
function each(text, wanted, call) {
  const lines = text.split("\n");
  const places = lines[0].split(",");
  const at = wanted.map((name) => [name, places.indexOf(name)]).filter(([, place]) => place >= 0);
  for (let i = 1; i < lines.length; i++) {
    if (lines[i] === "") continue;
    const cells = lines[i].split(",");
    const row = {};
    for (const [name, place] of at) row[name] = cells[place];
    call(row);
  }
}

// The last index whose time is not after `time`; -1: none.
export function indexAt(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
