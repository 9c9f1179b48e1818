// Source, archive, views, replicas: what each of them does now.

import { make, replaceChanged } from "./elements.js";
import { bytes, counted, place, rate, span, when } from "./words.js";

function box(name, level, state, facts) {
  const pairs = facts.filter(([, value]) => value !== null).flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]);
  return make("li", { class: level }, make("h3", {}, name), make("p", { class: "state" }, state), make("dl", {}, ...pairs));
}

function sourceBox(source, rates) {
  const states = { Yes: ["good", "attached"], Connecting: ["bad", "cannot be reached, tried again"], No: ["bad", "not followed"] };
  const [level, state] = source.stopped_by_operator ? ["warn", "stopped by a person"] : states[source.running];
  return box(`Source ${source.host}${source.port ? `:${source.port}` : ""}`, level, state, [
    ["Server", source.version ? `${source.flavour} ${source.version}` : "never reached"],
    ["Receives", rate(rates.received)],
    ["Behind", source.running === "Yes" ? `${span(source.behind_s)}, ${bytes(source.behind_bytes)}` : "not known"],
    ["Last word", when(Math.max(source.last_received_at || 0, source.last_heartbeat_at || 0))],
  ]);
}

function archiveBox(archive, disk, source) {
  const level = archive.failure || archive.damaged_files ? "bad" : "good";
  const state = archive.failure ? "takes nothing" : archive.damaged_files ? "has damaged files" : "complete";
  return box("Archive", level, state, [
    ["Holds", `${counted(archive.files, "file", "files")}, ${bytes(archive.bytes)}`],
    ["End", source.archived ? place(source.archived.file, source.archived.offset) : "empty"],
    ["Disk", disk.free_bytes === null ? "not known" : `${bytes(disk.free_bytes)} free`],
    ["Full in", disk.full_in_s === null ? null : span(disk.full_in_s)],
  ]);
}

function viewBox(view) {
  const [level, state] = view.stop ? ["bad", `stopped: ${view.stop}`] : view.is_open ? ["good", "made"] : ["bad", "not open"];
  return box(`View ${view.name}`, level, state, [
    ["For", view.target], ["GTIDs", view.gtids], ["Behind", bytes(view.behind_bytes)],
    ["Made up to", place(view.source_file, view.source_offset)],
  ]);
}

function replicasBox(replicas, rates) {
  const { states } = replicas;
  const here = replicas.total - (states.gone || 0);
  const worst = Math.max(0, ...replicas.items.filter((one) => one.state !== "gone").map((one) => one.behind_s || 0));
  const level = states.gone || worst >= 60 ? "warn" : "good";
  return box("Replicas", level, here ? counted(here, "is attached", "are attached") : "none is attached", [
    ["Sends", rate(rates.sent)],
    ["At the end", String(states.at_end || 0)],
    ["Furthest behind", here ? span(worst) : null],
    ["Left today", states.gone ? String(states.gone) : null],
  ]);
}

export function showPath(overview, rates) {
  replaceChanged(document.getElementById("path"), [
    sourceBox(overview.source, rates),
    archiveBox(overview.archive, overview.disk, overview.source),
    ...overview.views.map(viewBox),
    replicasBox(overview.replicas, rates),
  ]);
}
