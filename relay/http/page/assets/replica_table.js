// Who follows, and where each of them is.

import { make, replaceChanged, setText } from "./elements.js";
import { bytes, place, span, when } from "./words.js";

const STATES = {
  streaming: "reads", at_end: "has everything", waiting: "waits for the next binlog", registered: "has not asked yet", gone: "left",
};

function appliedLevel(applied) {
  const fine = applied && applied.known && applied.applies && !applied.error && (applied.behind_s || 0) < 60;
  return applied && !fine ? "warn" : "";
}

function made(cells) {
  return make("tr", {}, ...cells.map(([name, text, kind]) => make("td", { "data-name": name, class: kind || null }, text)));
}

function row(one) {
  const level = one.state === "gone" || (one.behind_s !== null && one.behind_s >= 60) ? "warn" : "";
  const state = one.state === "gone" ? `left ${when(one.last_seen)}` : STATES[one.state] || one.state;
  const behind = one.behind_bytes === null ? "not known" : `${span(one.behind_s)}, ${bytes(one.behind_bytes)}`;
  const cells = [
    ["Replica", `${one.server_id} at ${one.host}`], ["Account", one.account], ["Reads", one.view ? `view ${one.view}` : "the source's binlogs"],
    ["State", state, level], ["Behind", behind, "number"], ["Place", place(one.file, one.offset), "place"], ["Sent", bytes(one.sent_bytes), "number"],
    ["Applied", one.applied_text, appliedLevel(one.applied)],
  ];
  return made(cells);
}

// A replica of relay.toml that is none of the rows above.
function elsewhereRow(applied) {
  const name = applied.server_id === null ? applied.replica : `${applied.server_id} at ${applied.replica}`;
  return made([
    ["Replica", name], ["Account", "–"], ["Reads", "–"], ["State", "none of the above", "warn"], ["Behind", "not known", "number"],
    ["Place", applied.file ? place(applied.file, applied.offset) : "–", "place"], ["Sent", "–", "number"],
    ["Applied", applied.text, appliedLevel(applied)],
  ]);
}

export function showReplicas(replicas) {
  const shown = replicas.items.length;
  setText("replicas-note", !shown ? "No replica has asked for binlogs within the last day."
    : shown < replicas.total ? `The ${shown} that are furthest behind, of ${replicas.total}.` : "");
  document.getElementById("replicas-account").hidden = !replicas.items.some((one) => !one.applied);
  replaceChanged(document.querySelector("#replicas tbody"), [...replicas.items.map(row), ...replicas.applied_elsewhere.map(elsewhereRow)]);
}
