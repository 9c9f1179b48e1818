// Questions to /api/v1/. Raises: Refused, where the relay answers with an error; Unreachable, where it does not answer.

const LONGEST_MS = 10000;

export class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

export class Unreachable extends Error {}

// Of this tab only, and gone with it.
let token = sessionStorage.getItem("binlog-relay-token") || "";

export function useToken(text) {
  token = text;
  sessionStorage.setItem("binlog-relay-token", text);
}

export async function ask(path, values = {}) {
  const query = new URLSearchParams(values).toString();
  let response, answer;
  try {
    response = await fetch(`api/v1/${path}${query ? `?${query}` : ""}`, {
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      signal: AbortSignal.timeout(LONGEST_MS),
      cache: "no-store",
    });
    answer = await response.json();
  } catch (error) {
    throw new Unreachable(String(error.message || error));
  }
  if (!response.ok) throw new Refused(response.status, answer.error ? answer.error.text : `HTTP ${response.status}`);
  return answer;
}
