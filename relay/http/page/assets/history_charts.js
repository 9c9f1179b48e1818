// Lines over time, with their numbers beside them.

import { make, replaceChanged, setText, svg } from "./elements.js";
import { bytes, rate, span, when } from "./words.js";

const WIDTH = 400, HEIGHT = 120, TOP = 14, LEFT = 2;

const CHARTS = [
  { title: "Throughput", word: rate, least: 1024, lines: [["received_bytes_per_s", "from the source"], ["sent_bytes_per_s", "to replicas"]] },
  { title: "Lag in time", word: span, least: 10, lines: [["source_behind_s", "behind the source"], ["replicas_behind_s", "slowest replica"]] },
  { title: "Lag in bytes", word: bytes, least: 1024, lines: [["replicas_behind_bytes", "slowest replica"], ["views_behind_bytes", "slowest view"]] },
  { title: "Free space", word: bytes, least: 1024, lines: [["free_bytes", "on the archive's disk"]] },
];

function known(values) { return values.filter((value) => value !== null); }

function points(times, values, most, from, to) {
  const parts = [];
  let pen = "M";
  times.forEach((at, place) => {
    const value = values[place];
    if (value === null) { pen = "M"; return; }
    const x = LEFT + (WIDTH - 2 * LEFT) * (to > from ? (at - from) / (to - from) : 1);
    parts.push(`${pen}${x.toFixed(1)} ${(TOP + (HEIGHT - TOP - 2) * (1 - value / most)).toFixed(1)}`);
    pen = "L";
  });
  return parts.join("");
}

function chart(kind, times, columns) {
  const all = kind.lines.flatMap(([column]) => known(columns[column]));
  const most = all.reduce((greatest, value) => Math.max(greatest, value), kind.least);
  const from = times[0], to = times[times.length - 1];
  const told = kind.lines.map(([column, name]) => {
    const values = known(columns[column]);
    const greatest = values.reduce((one, value) => Math.max(one, value), 0);
    return values.length ? `${name}: now ${kind.word(values[values.length - 1])}, at most ${kind.word(greatest)}` : `${name}: not known`;
  });
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${kind.title}, ${when(from)} to ${when(to)}. ${told.join("; ")}` },
    svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }),
    svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: TOP, y2: TOP }),
    svg("text", { x: LEFT, y: TOP - 3 }, all.length ? kind.word(most) : ""),
    ...kind.lines.map(([column], place) => svg("path", { class: place ? "second" : "first", d: points(times, columns[column], most, from, to), "stroke-width": 1.5 })));
  const keys = told.map((text, place) => make("span", { class: place ? "key-second" : "key-first" }, text));
  return make("figure", {}, make("figcaption", {}, make("strong", {}, kind.title), ...keys), drawn);
}

export function showHistory(history) {
  const charts = document.getElementById("charts");
  if (history.at.length < 2) {
    setText("charts", "The first values are here in some seconds (last hour) or minutes (last day).");
    return;
  }
  if (!charts.firstElementChild) charts.textContent = "";
  replaceChanged(charts, CHARTS.map((kind) => chart(kind, history.at, history.columns)));
}

export function newestRates(history) {
  const last = (name) => known(history.columns[name]).pop() ?? null;
  return { received: last("received_bytes_per_s"), sent: last("sent_bytes_per_s") };
}
