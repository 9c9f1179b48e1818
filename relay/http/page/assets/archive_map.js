// Each piece is one binlog, or some that stand side by side. Arrow keys go from piece to piece.

import { make, replaceChanged, setText } from "./elements.js";
import { bytes, counted, when } from "./words.js";

let selected = null;

function state(piece) {
  if (piece.damaged) return "damaged";
  if (piece.cut) return "cut";
  return piece.is_open ? "open" : "complete";
}

const STATES = {
  damaged: "damaged", cut: "cut by a crash of the source", open: "being written", complete: "complete", offloaded: "in the bucket",
};

function named(piece) {
  return piece.files === 1 ? piece.first_file : `${piece.first_file} to ${piece.last_file}`;
}

function told(piece) {
  const damaged = piece.damaged && piece.files > 1 ? ` (${piece.damaged} of ${piece.files} files)` : "";
  return `${named(piece)}: ${STATES[state(piece)]}${damaged}, ${counted(piece.files, "file", "files")}, ${bytes(piece.bytes)}, `
    + `${when(piece.first_event_at)} to ${when(piece.last_event_at)}`;
}

function button(piece) {
  const key = `${piece.generation}/${piece.first_file}`;
  return make("button", {
    type: "button", role: "option", class: state(piece), "data-key": key, "aria-label": told(piece),
    "aria-selected": key === selected ? "true" : "false", tabindex: "-1", title: named(piece),
  });
}

function select(element) {
  selected = element.dataset.key;
  for (const one of document.querySelectorAll("#map button")) {
    one.setAttribute("aria-selected", one === element ? "true" : "false");
    one.tabIndex = one === element ? 0 : -1;
  }
  setText("map-piece", element.getAttribute("aria-label"));
}

export function beginMap() {
  const map = document.getElementById("map");
  map.setAttribute("role", "listbox");
  map.setAttribute("aria-orientation", "horizontal");
  map.setAttribute("aria-labelledby", "map-title");
  map.addEventListener("click", (event) => { if (event.target.matches("button")) select(event.target); });
  map.addEventListener("keydown", (event) => {
    const all = [...map.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined || !all[to]) return;
    event.preventDefault();
    select(all[to]);
    all[to].focus();
  });
}

export function showMap(answer) {
  const map = document.getElementById("map");
  const pieces = answer.pieces;
  const bad = pieces.filter((piece) => piece.damaged || piece.cut);
  const each = answer.files_per_piece > 1 ? ` Each piece is ${answer.files_per_piece} files.` : "";
  const first = pieces[0], last = pieces[pieces.length - 1];
  const of = first ? `${counted(answer.files, "file", "files")}, ${when(first.first_event_at)} to ${when(last.last_event_at)}.` : "No file yet.";
  const judged = !first ? "" : bad.length || answer.gaps.length ? " Not all of it is there: see below." : " All of it is there.";
  setText("map-note", of + each + judged);
  map.classList.toggle("dense", pieces.length > 120);
  const holes = new Set(answer.gaps.map((gap) => `${gap.generation}/${gap.before}`));
  const made = pieces.flatMap((piece) => {
    const hole = holes.has(`${piece.generation}/${piece.first_file}`) ? [make("span", { class: "hole", title: "missing" })] : [];
    return [...hole, button(piece)];
  });
  const focus = document.activeElement?.dataset?.key;
  const chosen = made.find((one) => one.dataset.key === selected) || made.find((one) => one.matches("button"));
  if (chosen) chosen.tabIndex = 0;
  replaceChanged(map, made);
  if (focus) map.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  replaceChanged(document.getElementById("map-faults"), [
    ...bad.slice(0, 50).map((piece) => make("li", { class: piece.damaged ? "bad" : "warn" }, told(piece))),
    ...answer.gaps.slice(0, 50).map((gap) => make("li", { class: "bad" }, `Missing before ${gap.before || "the next file"}${gap.after ? `, after ${gap.after}` : ""}: ${gap.text}`)),
  ]);
}
