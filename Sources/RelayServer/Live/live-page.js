// A page that shows a window of records as they change. `belfry dev` prints its address with everything that it
// needs in the fragment, which browsers do not send.
import { LiveClient, recordKey } from "./client.js";

// The policy of the relay's own pages forbids inline styles, and this needs no further file.
const style = new CSSStyleSheet();
style.replaceSync(`
  :root { color-scheme: light dark; --line: #8884; --dim: #666; --accent: #0a7d5a; --flash: #ffd54a; --bad: #b3261e;
    font: 16px/1.45 system-ui, sans-serif; }
  @media (prefers-color-scheme: dark) {
    :root { --dim: #aaa; --accent: #4cc79b; --flash: #7a6200; --bad: #ff8a80; }
  }
  body { max-width: 70rem; margin: 0 auto; padding: 1rem; }
  header { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; }
  h1 { font-size: 1.25rem; margin: 0; }
  #state { margin: .25rem 0; color: var(--dim); }
  #state::before { content: "●"; margin-right: .4em; color: var(--dim); }
  #state[data-state=current]::before { color: var(--accent); }
  #state[data-state=offline]::before, #state[data-state=closed]::before { color: var(--bad); }
  form { display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); gap: .6rem; margin: 1rem 0; }
  label { display: grid; gap: .15rem; font-size: .85rem; color: var(--dim); }
  input, select, button { font: inherit; padding: .4rem .5rem; min-width: 0; width: 100%; box-sizing: border-box;
    border: 1px solid var(--line); border-radius: .35rem; background: Canvas; color: CanvasText; }
  .buttons { display: flex; gap: .5rem; align-items: end; }
  button { cursor: pointer; }
  button:disabled { cursor: default; opacity: .5; }
  #error { color: var(--bad); overflow-wrap: anywhere; }
  #count { color: var(--dim); min-height: 1.45em; margin: .5rem 0; }
  .table { overflow-x: auto; }
  table { border-collapse: collapse; width: 100%; font-size: .95rem; }
  th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
    max-width: 18rem; overflow-wrap: anywhere; }
  th { color: var(--dim); font-weight: 500; white-space: nowrap; }
  tr.added, tr.changed { animation: flash 1.6s ease-out; }
  tr.added td:first-child { box-shadow: inset 3px 0 var(--accent); }
  @keyframes flash { from { background: var(--flash); } }
  @media (prefers-reduced-motion: reduce) {
    tr.added, tr.changed { animation: none; outline: 2px solid var(--flash); outline-offset: -2px; }
  }
`);
document.adoptedStyleSheets = [style];

const element = (id) => document.getElementById(id);
const form = element("form");
const given = new URLSearchParams(location.hash.slice(1));
const pace = 50; // Milliseconds between two drawings; more would not be noticed.
let client;
let results;
let drawing; // The timer of the next drawing.

// MARK: What is shown

const words = {
  offline: "Offline", connecting: "Connecting …", catchingUp: "Catching up", current: "Current", closed: "Closed",
};
const ways = { websocket: "WebSocket", stream: "an event stream", poll: "polls" };
const span = (milliseconds) => {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  return seconds < 2 ? "a moment" : seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`;
};

function showState() {
  if (!client) return;
  const { state, asOf, retryAt, transport, progress, error } = client.connection;
  const standing = [words[state]];
  if (transport) standing.push(`over ${ways[transport]}`);
  if (state === "offline" && error?.reason) standing.push(error.reason);
  // What changes each second is shown, but not read aloud.
  const times = [""];
  if (progress > 0 && progress < 1) times.push(`${Math.round(progress * 100)} %`);
  if (asOf !== undefined) times.push(`as of ${span(Date.now() - asOf)} ago`);
  if (state === "offline" && retryAt) times.push(`next attempt in ${span(retryAt - Date.now())}`);
  sayState(state, standing.join(", "), `${times.join(", ")}.`);
}

function sayState(state, standing, times) {
  element("state").dataset.state = state;
  for (const [name, text] of [["standing", standing], ["times", times]]) {
    if (element(name).textContent !== text) element(name).textContent = text;
  }
}

function showError(error) {
  element("error").hidden = !error;
  element("error").textContent = error
    ? [error.serverErrorCode, error.liveError, error.reason].filter(Boolean).join(" · ") : "";
}

const text = (value) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));

let rows = new Map(); // The row of each shown record, with the data it was made of.

function showRecords(records, touched) {
  const names = [...new Set(records.flatMap((record) => Object.keys(record.fields)))].sort();
  const cells = (kind, values) => values.map((value) => {
    const cell = document.createElement(kind);
    cell.textContent = value;
    return cell;
  });
  const columns = JSON.stringify(names);
  if (element("head").dataset.columns !== columns) {
    element("head").dataset.columns = columns;
    element("head").replaceChildren(...cells("th", ["Record", ...names, "Modified"]));
    rows.clear();
  }
  // Few of thousands change: unchanged rows stay, and so does a selection in them.
  const before = rows;
  rows = new Map();
  element("rows").replaceChildren(...records.map((record) => {
    const key = recordKey(record, client.welcome?.userRecordName);
    const former = before.get(key);
    const isSame = former?.record === record && !touched.has(key);
    const row = isSame ? former.row : document.createElement("tr");
    rows.set(key, { record, row });
    row.className = touched.get(key) ?? "";
    if (isSame) return row;
    row.dataset.key = key;
    const modified = record.modified && new Date(record.modified.timestamp).toLocaleTimeString();
    row.append(...cells("td", [key, ...names.map((name) => text(record.fields[name])), modified ?? ""]));
    return row;
  }));
  element("empty").hidden = records.length > 0;
  showCount();
}

function showCount() {
  const text = `${rows.size} ${rows.size === 1 ? "record" : "records"}${results?.isFilling ? ", reading more" : ""}`;
  if (element("count").textContent !== text) element("count").textContent = text;
}

// MARK: What is asked for

function stop() {
  client?.close();
  client = results = undefined;
  clearTimeout(drawing);
  drawing = undefined;
  element("stop").disabled = true;
  sayState("", "Not connected.", "");
}

/** What was shown before is no answer to what is asked now. */
function clear() {
  rows.clear();
  for (const name of ["head", "rows", "count"]) element(name).replaceChildren();
  delete element("head").dataset.columns;
  element("empty").hidden = true;
}

function show() {
  stop();
  const values = Object.fromEntries(new FormData(form));
  const { container, environment, apiToken, recordType, predicate, sortBy, limit, token } = values;
  showError();
  clear();
  client = new LiveClient({
    url: location.origin, container, environment, apiToken: apiToken || undefined,
    credentials: token ? () => ({ ckWebAuthToken: token }) : undefined,
  });
  client.onConnection = showState;
  client.onError = showError;
  const key = sortBy && { fieldName: sortBy.replace(/^-/, ""), ascending: !sortBy.startsWith("-") };
  results = client.results({
    recordType, predicate: predicate || undefined, sortBy: key || undefined,
    // A window needs an order; without one, all records are shown, up to the relay's limit.
    limit: key ? Number(limit) || 20 : undefined,
  });
  let touched = new Map();
  let isFirst = true;
  results.onItems = (items) => {
    if (isFirst) return;
    // A record that was added and changed since the last drawing counts as added.
    for (const { key, op } of items) touched.set(key, touched.get(key) === "added" && op === "changed" ? "added" : op);
  };
  results.onValue = () => {
    isFirst = false;
    drawing ??= setTimeout(() => {
      drawing = undefined;
      showRecords(results.records, touched);
      touched = new Map();
    }, pace);
  };
  results.onError = showError;
  element("stop").disabled = false;
  // A reload then shows the same. A token that was typed in is left out, because it would stay in the history.
  const kept = Object.entries(values).filter(([name, value]) => value && (name !== "token" || given.has(name)));
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
  showState();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
element("stop").addEventListener("click", stop);
setInterval(() => {
  showState();
  // The end of filling may come without a record.
  if (element("count").textContent) showCount();
}, 1000);

addEventListener("hashchange", () => location.reload());
for (const [name, value] of given) if (form.elements[name]) form.elements[name].value = value;
if (given.get("container") && given.get("recordType")) show();
