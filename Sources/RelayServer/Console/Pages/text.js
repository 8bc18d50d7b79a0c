// Formats values as texts. All functions are pure.

// Joiners combine emoji into one picture, and select letter forms in some scripts. There they are visible.
const joining = ["Arabic", "Syriac", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala"]
  .map((script) => `\\p{Script=${script}}`).join("");
const joiners = `(?!(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})|(?<=[${joining}])[\\u200c\\u200d](?=[${joining}]))`;

// Variation selectors change the form of the character before them, in a few scripts and for emoji. Elsewhere they are invisible.
const selectors = "(?!(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]|(?<=[#*0-9])\\ufe0f(?=\\u20e3)|(?<=\\p{Script=Han})[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]|(?<=\\p{Script=Mongolian})[\\u180b-\\u180d\\u180f]|(?<=[\\u2801-\\u28ff])\\u2800)";

// Characters that are invisible or change the direction of the text around them: controls, direction marks, and others.
const hidden = new RegExp(
  `${joiners}${selectors}[\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u2800\\ufff9-\\ufffb\\p{Default_Ignorable_Code_Point}]`, "gu");
const marks = { "\n": "↵", "\t": "⇥", "\r": "␍" };

/** Splits a text into pieces: visible text as it is, and a mark for each hidden character. */
export function pieces(text) {
  const found = [];
  let from = 0;
  for (const match of text.matchAll(hidden)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index) });
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    found.push({ mark: marks[match[0]] ?? `U+${code}` });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from) });
  return found;
}

/** Returns a text with marks for hidden characters, for places that allow only text. */
export function visible(text) {
  return pieces(text).map(({ text, mark }) => text ?? mark).join("");
}

/** Shortens a long text in its middle, without splitting characters. */
export function shorten(text, limit = 80) {
  if (text.length <= limit) return text;
  const head = Math.ceil((limit - 1) * 0.7);
  const whole = (part) => part.replace(/[\ud800-\udbff]$/, "").replace(/^[\udc00-\udfff]/, "");
  return `${whole(text.slice(0, head))}…${whole(text.slice(text.length - (limit - 1 - head)))}`;
}

// MARK: JSON

/** Parses JSON and keeps large whole numbers exact if the browser supports it. */
export function parseJSON(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) => {
    const source = context?.source;
    const isExact = typeof value !== "number" || Number.isSafeInteger(value) || !source || !/^-?\d+$/.test(source);
    return isExact ? value : BigInt(source);
  });
}

/** Returns JSON to read or to send; hidden characters are escaped. */
export function toJSON(value, indent) {
  const raw = (key, part) => (typeof part === "bigint" ? JSON.rawJSON?.(String(part)) ?? String(part) : part);
  const text = JSON.stringify(value, raw, indent) ?? "";
  const escaped = (found) => found.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return text.replace(hidden, (found) => (indent && found === "\n" ? found : escaped(found)));
}

/** Returns a short text for a value: a text as it is, everything else as JSON. */
export function brief(value) {
  return value === undefined ? "" : typeof value === "string" ? value : toJSON(value);
}

// MARK: Tables as files

/** Returns a table as CSV (RFC 4180). An apostrophe precedes a text that a spreadsheet would take for a formula. */
export function toCSV(columns, rows) {
  const field = (value) => {
    let text = value === undefined || value === null ? "" : typeof value === "object" ? toJSON(value) : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map(({ title }) => field(title))];
  for (const row of rows) lines.push(columns.map(({ value }) => field(value(row))));
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

// MARK: Commands

/** Returns a text as one shell word. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// MARK: Numbers and times

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** Formats a count. */
export function count(number) {
  return typeof number === "number" || typeof number === "bigint" ? whole.format(number) : "–";
}

/** Formats a count with its word: 1 push, 2 pushes. */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Returns a sentence about what was left out: changes of one subscription, or subscriptions of one user. */
export const rest = (number, way) => (way === "subscription" ? `${counted(number, "other change")} did not fire it and came less close.`
  : `${counted(number, "other")} of the user's subscriptions did not fire and came less close.`);

/** Formats a measurement with few digits: 0.04, 1.2, 340. */
export function measure(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  const size = Math.abs(number);
  if (size === 0) return "0";
  if (size < 0.01) return number < 0 ? "> -0.01" : "< 0.01";
  return size >= 100 ? whole.format(number) : String(Number(number.toFixed(size < 1 ? 2 : 1)));
}

/** Formats milliseconds. */
export function milliseconds(number) {
  if (number === null || number === undefined) return "–";
  return number < 1000 ? `${measure(number)} ms` : `${measure(number / 1000)} s`;
}

/** Formats a number of bytes. */
export function bytes(number) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let size = Number(number);
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${measure(size)} ${units[unit]}`;
}

/** Returns the size of a store, and the free space if it is known; that of a server's disk is not. */
export function storeSize({ fileBytes, walBytes, freeBytes }) {
  const free = freeBytes === undefined || freeBytes === null ? "" : `, ${bytes(freeBytes)} free`;
  return `${bytes(fileBytes + walBytes)}${free}`;
}

/** Formats a duration in seconds in its largest suitable unit. */
export function span(seconds) {
  const units = [[86_400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, word] = units.find(([size]) => seconds >= size && (seconds % size === 0 || seconds > size * 3)) ??
    units.at(-1);
  return counted(Math.round(seconds / size), word);
}

/** Returns how long ago a time was, or how soon it will be. */
export function ago(moment, now = Date.now()) {
  const seconds = Math.round((now - new Date(moment).getTime()) / 1000);
  if (!Number.isFinite(seconds)) return "";
  const size = Math.abs(seconds);
  if (size < 5) return "now";
  const [divisor, unit] = size < 90 ? [1, "s"] : size < 5400 ? [60, "min"] : size < 129_600 ? [3600, "h"] : [86_400, "d"];
  const amount = `${Math.round(size / divisor)} ${unit}`;
  return seconds > 0 ? `${amount} ago` : `in ${amount}`;
}

/** Formats a time; a time of another day has its date. */
export function clock(moment, now = new Date()) {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return "";
  const two = (number) => String(number).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  if (date.toDateString() === now.toDateString()) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

// MARK: Words

const operations = { create: "created", update: "updated", delete: "deleted" };

/** Returns the past participle of an operation. */
export const happened = (operation) => operations[operation] ?? operation ?? "changed";

/** Returns `gatewayHalted` as words: gateway halted. */
export const words = (name) => String(name ?? "").replace(/([a-z])([A-Z])/g, (all, one, other) =>
  `${one} ${other.toLowerCase()}`);

/** Returns the state of following a database as a word with a tone; nothing if there is none. */
export function followed(following) {
  return following && { word: words(following.state), tone: { well: "good", waiting: "warn", broken: "bad" }[following.verdict] ?? "note" };
}

/** Returns why a name cannot be used; nothing if it is free. */
export function taken(name, rows) {
  return rows.some((row) => row.name === name) ? `A source ${name} already exists: change that one, or choose another name.` : undefined;
}

// MARK: What tables show

/** Splits a list into parts of the given size. */
export function chunks(list, size) {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) => list.slice(index * size, (index + 1) * size));
}

/** Returns the state of a token in one word. */
export function tokenStanding({ revokedAt, endsAt }, now = Date.now()) {
  if (revokedAt) return "revoked";
  return endsAt && new Date(endsAt).getTime() <= now ? "ended" : "good";
}

/** Returns whether an entry of the audit log contains all the words, regardless of case. */
export function fits(entry, words) {
  const text = `${entry.caller} ${entry.method} ${entry.path} ${entry.status ?? ""} ${entry.code ?? ""}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
