// One word for the night, and why.

import { make, replaceChanged, setText } from "./elements.js";
import { span, when } from "./words.js";

const DISK_WARNING_S = 3 * 86400;

function problems(overview) {
  const bad = overview.reasons.map((reason) => reason.text);
  const warnings = [];
  const { archive, source, disk } = overview;
  if (archive.failure) bad.push(`The archive does not take anything: ${archive.failure}`);
  if (archive.damaged_files) bad.push(`${archive.damaged_files} archived files are damaged`);
  for (const view of overview.views) {
    if (view.stop) bad.push(`View ${view.name} has stopped: ${view.stop_text || view.stop}`);
    else if (!view.is_open) bad.push(`View ${view.name} is not open`);
  }
  if (disk.full_in_s !== null && disk.full_in_s < DISK_WARNING_S) warnings.push(`The disk is full in ${span(disk.full_in_s)} at this rate`);
  const gone = overview.replicas.states.gone || 0;
  if (gone) warnings.push(gone === 1 ? "1 replica has left within the last day" : `${gone} replicas have left within the last day`);
  const far = overview.replicas.items.filter((one) => one.state !== "gone" && one.behind_s !== null && one.behind_s >= 60);
  for (const one of far.slice(0, 5)) warnings.push(`Replica ${one.server_id} (${one.host}) is ${span(one.behind_s)} behind`);
  const applied = [...overview.replicas.items.map((one) => one.applied), ...overview.replicas.applied_elsewhere];
  const doubtful = applied.filter((one) => one && (!one.known || !one.applies || one.error || (one.behind_s || 0) >= 60));
  for (const one of doubtful.slice(0, 5)) warnings.push(`What replica ${one.replica} has applied: ${one.text}`);
  if (source.error && source.running !== "Yes" && !bad.length) bad.push(source.error.text);
  return { bad: [...new Set(bad)], warnings };
}

export function showVerdict(overview) {
  const { bad, warnings } = problems(overview);
  const level = bad.length ? "bad" : warnings.length ? "warn" : "good";
  const words = { good: "Quiet: everything runs", warn: "Running, with something to look at", bad: "Something is wrong" };
  show(level, words[level], [...bad, ...warnings]);
  document.title = `${{ good: "Quiet", warn: "Look", bad: "WRONG" }[level]} – binlog-relay`;
  return level;
}

export function showUnreachable(why, since) {
  show("bad", "The relay does not answer", [`Nothing new since ${when(since)}. What stands below is of then.`, why]);
  document.title = "NO ANSWER – binlog-relay";
}

function show(level, word, reasons) {
  const verdict = document.getElementById("verdict");
  if (verdict.className !== level) verdict.className = level;
  setText("verdict-word", word);
  replaceChanged(document.getElementById("verdict-reasons"), reasons.map((text) => make("li", {}, text)));
}
