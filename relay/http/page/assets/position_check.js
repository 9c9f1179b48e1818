// May a replica start here? If not: where else.

import { Refused, ask } from "./answers.js";
import { make, replaceChanged } from "./elements.js";
import { place } from "./words.js";

function lines(found) {
  const made = [make("p", { class: found.verdict === "boundary" ? "good" : "bad" }, `${place(found.file, found.offset)}: ${found.text}.`)];
  if (found.transaction) made.push(make("p", {}, `The transaction around it: ${place(found.file, found.transaction.start)} to ${found.transaction.end ?? "beyond the end"}.`));
  const near = [];
  if (found.before !== null) near.push(`${place(found.file, found.before)} (before)`);
  if (found.after !== null) near.push(`${place(found.file, found.after)} (after)`);
  if (found.verdict !== "boundary" && near.length) made.push(make("p", {}, "Good places near it: ", make("code", {}, near.join(", ")), "."));
  return made;
}

export function beginPositionCheck() {
  const form = document.getElementById("check"), answer = document.getElementById("check-answer");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      replaceChanged(answer, lines(await ask("positions", { file: form.elements.file.value.trim(), offset: form.elements.offset.value })));
    } catch (error) {
      const text = error instanceof Refused ? error.message : `The relay does not answer: ${error.message}`;
      replaceChanged(answer, [make("p", { class: "bad" }, text)]);
    }
  });
}
