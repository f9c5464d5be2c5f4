// A chart of lines over time on a canvas: drawn anew as rows come, sixty times a second where it must.

const LEFT = 62;
const RIGHT = 14;
const TOP = 10;
const BOTTOM = 22;

// Steps of 1, 2 or 5, about so many of them.
function ticks(most, about) {
  if (!(most > 0)) return [0];
  const rough = most / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
  const out = [];
  for (let k = 0; k * step <= most * 1.0001; k++) out.push(k * step);
  return out;
}

const short = (value) => (value >= 1e6 ? `${+(value / 1e6).toPrecision(3)}M` : value >= 1e4 ? `${+(value / 1e3).toPrecision(3)}k` : `${+value.toPrecision(3)}`);

export class Chart {
  // `unit` stands at the axis. Lines are {t, v, ink, width, dash, fill}; levels {v, name, ink} are drawn across.
  constructor(canvas, unit) {
    this.canvas = canvas;
    this.unit = unit;
    this.most = 1;
  }

  draw({ lines, levels = [], marks = [], seconds, now, at, inks }) {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0) return;
    if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
    if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
    const g = this.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const [w, h] = [width - LEFT - RIGHT, height - TOP - BOTTOM];
    let most = 0;
    for (const { v, spikes } of lines) most = Math.max(most, spikes ? largest(v, 0.98) : largest(v, 1));
    for (const level of levels) if (level.counts) most = Math.max(most, level.v);
    this.most = (most || 1) * 1.08;
    const x = (t) => LEFT + (t / seconds) * w;
    const y = (v) => TOP + h - (Math.min(v, this.most) / this.most) * h;

    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    g.lineWidth = 1;
    for (const value of ticks(this.most, 4)) {
      g.strokeStyle = inks.line;
      stroke(g, [[LEFT, Math.round(y(value)) + 0.5], [LEFT + w, Math.round(y(value)) + 0.5]]);
      g.fillStyle = inks.soft;
      g.textAlign = "right";
      g.fillText(short(value), LEFT - 8, y(value));
    }
    g.textAlign = "center";
    for (const value of ticks(seconds, w < 400 ? 4 : 8)) g.fillText(`${short(value)}${value === 0 ? " s" : ""}`, x(value), height - 9);
    g.save();
    g.translate(11, TOP + h / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(this.unit, 0, 0);
    g.restore();

    for (const { t, ink } of marks) {
      g.strokeStyle = ink;
      for (const time of t) stroke(g, [[x(time), TOP + h - 5], [x(time), TOP + h]]);
    }
    for (const line of lines) this.line(g, line, x, y, TOP + h, w);
    g.textAlign = "left";
    for (const level of levels) {
      if (level.v > this.most) continue;
      g.strokeStyle = level.ink ?? inks.soft;
      g.setLineDash(level.dash ?? [2, 4]);
      g.lineWidth = level.ink ? 2 : 1;
      stroke(g, [[x(level.from ?? 0), y(level.v)], [LEFT + w, y(level.v)]]);
      g.setLineDash([]);
      if (level.name) {
        g.textAlign = level.ink ? "right" : "left";
        const below = y(level.v) < TOP + 14 ? 9 : -8;
        halo(g, level.name, level.ink ? LEFT + w - 2 : LEFT + 6, y(level.v) + below, level.ink ?? inks.soft, inks.paper);
      }
    }
    g.lineWidth = 1;
    for (const time of [now < seconds ? now : null, at]) {
      if (time === null || time === undefined) continue;
      g.strokeStyle = inks.soft;
      stroke(g, [[x(time), TOP], [x(time), TOP + h]]);
    }
  }

  // Where many samples fall into one pixel, their least and most stand for them.
  line(g, { t, v, ink, width = 1.75, dash = [], fill }, x, y, floor, w) {
    const points = [];
    const every = Math.max(1, Math.floor(t.length / (2 * w)));
    for (let i = 0; i < t.length; i += every) {
      let [least, most] = [v[i], v[i]];
      for (let k = i + 1; k < Math.min(i + every, t.length); k++) {
        if (v[k] < least) least = v[k];
        if (v[k] > most) most = v[k];
      }
      if (Number.isNaN(least)) points.push(null);
      else if (every === 1) points.push([x(t[i]), y(v[i])]);
      else points.push([x(t[i]), y(least)], [x(t[i]), y(most)]);
    }
    if (points.length === 0) return;
    if (fill) {
      const solid = points.filter((point) => point !== null);
      if (solid.length === 0) return;
      g.fillStyle = ink;
      g.beginPath();
      g.moveTo(solid[0][0], floor);
      for (const [px, py] of solid) g.lineTo(px, py);
      g.lineTo(solid[solid.length - 1][0], floor);
      g.fill();
      return;
    }
    g.strokeStyle = ink;
    g.lineWidth = width;
    g.lineJoin = "round";
    g.setLineDash(dash);
    stroke(g, points);
    g.setLineDash([]);
  }

  // The time under a place of the mouse.
  timeAt(event, seconds) {
    const box = this.canvas.getBoundingClientRect();
    const t = ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * seconds;
    return t >= 0 && t <= seconds ? t : null;
  }
}

function largest(values, share) {
  if (share < 1 && values.length > 50) {
    const sorted = Float64Array.from(values.filter((value) => !Number.isNaN(value))).sort();
    return sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  }
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

function stroke(g, points) {
  g.beginPath();
  let up = true;
  for (const point of points) {
    if (point === null) {
      up = true;
      continue;
    }
    if (up) g.moveTo(point[0], point[1]);
    else g.lineTo(point[0], point[1]);
    up = false;
  }
  g.stroke();
}

function halo(g, text, x, y, ink, paper) {
  g.strokeStyle = paper;
  g.lineWidth = 3;
  g.strokeText(text, x, y);
  g.fillStyle = ink;
  g.fillText(text, x, y);
}
