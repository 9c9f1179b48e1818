// What must be known in a year: what each row means, and what to do.

import { make, replaceChanged, setText } from "./elements.js";
import { place, when } from "./words.js";

let meanings = null;

async function loadMeanings() {
  if (meanings === null) meanings = await (await fetch("ledger_meanings.json")).json();
}

function entry(row, isOpen) {
  const meaning = meanings[row.kind] || { means: "", do: "" };
  return make("details", { "data-key": `${row.at}/${row.kind}/${row.file}/${row.offset}`, open: isOpen },
    make("summary", {}, `${when(row.at)} `, make("strong", {}, row.kind.replaceAll("_", " ")), row.file ? " " : "",
      row.file ? make("span", { class: "place" }, row.offset === null ? row.file : place(row.file, row.offset)) : null),
    make("p", {}, row.text),
    meaning.means ? make("p", {}, make("strong", {}, "What it means: "), meaning.means) : null,
    meaning.do ? make("p", {}, make("strong", {}, "What to do: "), meaning.do) : null,
    meaning.runbook ? make("p", {}, make("strong", {}, "Step by step: "), meaning.runbook) : null);
}

export async function showLedger(answer) {
  await loadMeanings();
  const open = new Set([...document.querySelectorAll("#ledger details[open]")].map((one) => one.dataset.key));
  setText("ledger-note", answer.items.length ? (answer.next_offset === null ? "" : "The newest rows.") : "Nothing has happened that must be known in a year.");
  replaceChanged(document.getElementById("ledger"), answer.items.map((row) => entry(row, open.has(`${row.at}/${row.kind}/${row.file}/${row.offset}`))));
}
