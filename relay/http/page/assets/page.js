// Asks again and again, and shows what is new. Nothing here changes anything at the relay.

import { beginMap, showMap } from "./archive_map.js";
import { Refused, Unreachable, ask, useToken } from "./answers.js";
import { setText } from "./elements.js";
import { newestRates, showHistory } from "./history_charts.js";
import { showLedger } from "./ledger.js";
import { showPath } from "./path_picture.js";
import { beginPositionCheck } from "./position_check.js";
import { showReplicas } from "./replica_table.js";
import { showUnreachable, showVerdict } from "./verdict.js";
import { when } from "./words.js";

const EVERY_MS = { overview: 2000, history: 5000, map: 20000, ledger: 10000 };

let lastAnswer = null;
let rates = { received: null, sent: null };

function chosenSpan() { return document.querySelector("input[name=span]:checked").value; }

const SHOWN = {
  overview: async () => {
    const overview = await ask("overview");
    lastAnswer = overview.at;
    setText("version", overview.version);
    setText("as-of", `as of ${when(overview.at)}`);
    showVerdict(overview);
    showPath(overview, rates);
    showReplicas(overview.replicas);
  },
  history: async () => {
    const fine = await ask("history", { resolution: "fine" });
    rates = newestRates(fine);
    showHistory(chosenSpan() === "fine" ? fine : await ask("history", { resolution: "coarse" }));
  },
  map: async () => showMap(await ask("map")),
  ledger: async () => showLedger(await ask("ledger", { limit: 50 })),
};

async function show(name) {
  try {
    await SHOWN[name]();
    document.getElementById("token-form").hidden = true;
  } catch (error) {
    if (error instanceof Refused && error.status === 401) askForToken();
    else if (error instanceof Unreachable || name === "overview") showUnreachable(error.message, lastAnswer);
  }
}

function askForToken() {
  const form = document.getElementById("token-form");
  setText("token-wrong", sessionStorage.getItem("binlog-relay-token") ? "This token is not the relay's." : "");
  if (form.hidden) {
    form.hidden = false;
    document.getElementById("token").focus();
  }
}

async function keepShowing(name) {
  for (;;) {
    // A tab that nobody looks at asks for nothing.
    if (document.visibilityState === "visible") await show(name);
    await new Promise((resume) => setTimeout(resume, EVERY_MS[name]));
  }
}

async function showAll() {
  await show("history");
  await Promise.all(["overview", "map", "ledger"].map(show));
}

document.getElementById("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(document.getElementById("token").value);
  showAll();
});
document.getElementById("history-span").addEventListener("change", () => show("history"));
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") showAll(); });
beginMap();
beginPositionCheck();
for (const name of ["history", "overview", "map", "ledger"]) keepShowing(name);
