// The choices of the page, the fragment that keeps them, and the scenario that they are.
// What a fragment says is foreign: it becomes text of a scenario, which the engine's own reader checks.

export const CHOICES = {
  rate: "50Mbit/s",
  rtt: "40ms",
  loss: "0%",
  buffer: "1bdp",
  queue: "fifo",
  ecn: "off",
  kernel: "6.18",
  hosts: "usual",
  duration: "20s",
  warmup: "auto",
  flows: "cubic,bbr1",
  seed: "1",
  you: "no",
};

// What both ends' tcp_ecn is.
const ECN = new Map([["on", 1], ["accurate", 3]]);

export const MOST_FLOWS = 8;
const MOST_SECONDS = 300;

// The choices of a fragment, and what of it is no choice.
export function readFragment(fragment) {
  const choices = { ...CHOICES };
  const unknown = [];
  for (const [key, value] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (Object.hasOwn(CHOICES, key)) choices[key] = value.slice(0, 200);
    else unknown.push(key.slice(0, 40));
  }
  return { choices, unknown };
}

// Only what differs from the usual, in words that a person can read and change.
export function writeFragment(choices) {
  const parts = [];
  for (const [key, value] of Object.entries(choices)) {
    if (value === CHOICES[key] && key !== "flows") continue;
    const text = encodeURIComponent(value).replace(/%(2F|2C|40|3A)/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
    parts.push(`${key}=${text}`);
  }
  return `#${parts.join("&")}`;
}

// "cubic,bbr1@5s": each flow's algorithm, and when it starts.
export function flowsOf(choices) {
  return choices.flows
    .split(",")
    .filter((text) => text !== "")
    .map((text) => {
      const [algorithm, start = "0s"] = text.split("@");
      return { algorithm: algorithm.trim(), start: start.trim() };
    });
}

export function flowsText(flows) {
  return flows.map(({ algorithm, start }) => (amount(start, TIMES) === 0 ? algorithm : `${algorithm}@${start}`)).join(",");
}

const TIMES = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const RATES = { "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9 };

// A number with its unit, or null where the text is no such thing. The engine reads it again, and has the last word.
function amount(text, units) {
  const parts = /^\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]+)\s*$/.exec(text);
  return parts && Object.hasOwn(units, parts[2]) ? Number(parts[1]) * units[parts[2]] : null;
}

export const seconds = (text) => amount(text, TIMES);
export const bitsPerSec = (text) => amount(text, RATES);
export const percent = (text) => amount(text.replace("%", " pct"), { pct: 1 });
export const bdps = (text) => amount(text, { bdp: 1 });

// What is too much for a page, or no choice of its own, as a sentence; "": nothing.
export function refusedHere(choices, known) {
  for (const [key, names] of [["hosts", Object.keys(known.hostNames)], ["ecn", ["off", ...ECN.keys()]], ["you", ["no", "yes"]]]) {
    if (!names.includes(choices[key])) return `${key}: got ${choices[key]}; expected ${names.join(", ")}`;
  }
  const flows = flowsOf(choices);
  if (flows.length === 0) return "flows: got none; expected an algorithm, as in flows=cubic";
  if (flows.length > MOST_FLOWS) return `flows: got ${flows.length}; a page takes ${MOST_FLOWS}. Use the command for more.`;
  const lasts = seconds(choices.duration);
  if (lasts === null) return `duration: got ${choices.duration}; expected a time such as 20s`;
  if (lasts > MOST_SECONDS) return `duration: got ${choices.duration}; a page takes ${MOST_SECONDS}s. Use the command for more.`;
  return "";
}

// Letters that a reader would not see, or that turn the line around them, stand as their numbers.
const quoted = (text) => JSON.stringify(text).replace(/[^\x20-\x7e]/gu, (letter) => `\\U${letter.codePointAt(0).toString(16).padStart(8, "0")}`);

// As the command's default: a sixth of the duration, at most 5 s.
export function warmupOf(choices) {
  if (choices.warmup !== CHOICES.warmup) return choices.warmup;
  const lasts = seconds(choices.duration) ?? 0;
  return `${Math.min(5000, Math.floor((lasts * 1000) / 6))}ms`;
}

// The scenario file of the choices. `queues` says which queues have a parameter `ecn`, `hosts` the keys of other hosts.
export function scenarioOf(choices, known) {
  const lines = [`duration = ${quoted(choices.duration)}`, `warmup = ${quoted(warmupOf(choices))}`];
  const seed = /^[0-9]{1,15}$/.test(choices.seed) ? choices.seed : quoted(choices.seed);
  lines.push(`seed = ${seed}`);
  if (choices.kernel !== CHOICES.kernel) lines.push(`kernel = ${quoted(choices.kernel)}`);
  const hosts = Object.hasOwn(known.hosts, choices.hosts) ? known.hosts[choices.hosts] : {};
  const section = (name, keys) => {
    const all = { ...keys, ...hosts[name] };
    if (Object.keys(all).length) lines.push("", `[${name}]`);
    for (const [key, value] of Object.entries(all)) lines.push(`${key} = ${value}`);
  };
  const path = {};
  for (const key of ["rate", "rtt", "loss", "buffer", "queue"]) path[key] = quoted(choices[key]);
  const ecn = ECN.has(choices.ecn) ? { tcp_ecn: ECN.get(choices.ecn) } : {};
  if (ecn.tcp_ecn && known.queues.some((queue) => queue.name === choices.queue && queue.ecn)) path[`${choices.queue}.ecn`] = "true";
  section("path", path);
  section("sender", ecn);
  section("receiver", ecn);
  for (const { algorithm, start } of flowsOf(choices)) {
    lines.push("", "[[flow]]", `algorithm = ${quoted(algorithm)}`);
    if (amount(start, TIMES) !== 0) lines.push(`start = ${quoted(start)}`);
    for (const [key, value] of Object.entries(hosts.flow ?? {})) lines.push(`${key} = ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

// For a shell: the scenario on standard input, so that nothing of it is read by the shell.
export function commandOf(choices, known) {
  return `knee run - --report <<'SCENARIO'\n${scenarioOf(choices, known)}SCENARIO\n`;
}
