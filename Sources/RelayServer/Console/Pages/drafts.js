// Converts forms to what the relay accepts: changes, drafts of subscriptions, and rehearsals. Pure.
import { parseJSON, quoted, toJSON } from "./text.js";

// MARK: Changes

/** The kinds of field values. */
export const kinds = ["text", "number", "true/false", "date", "reference", "place", "JSON"];

/** Returns the value that a field's text means, in the relay's notation. */
export function valueOf(kind, text) {
  switch (kind) {
    case "number":
      if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim())) throw new Error(`“${text}” is not a number`);
      return parseJSON(text.trim());
    case "true/false":
      if (!/^(true|false)$/.test(text.trim())) throw new Error(`“${text}” is neither true nor false`);
      return text.trim() === "true";
    case "date": {
      const time = Date.parse(text.trim());
      if (Number.isNaN(time)) throw new Error(`“${text}” is not a time such as 2026-11-24T12:00:00Z`);
      return { $date: time / 1000 };
    }
    case "reference": return { $ref: text.trim() };
    case "place": {
      const numbers = text.split(",").map(Number);
      if (numbers.length !== 2 || numbers.some(Number.isNaN)) throw new Error(`“${text}” is not latitude,longitude`);
      return { $geo: numbers };
    }
    case "JSON": return parseJSON(text);
    default: return text;
  }
}

/** Returns the kind and text that show a value in the form; as JSON if the input cannot represent it exactly. */
export function shownAs(value) {
  // A text input has only one line, and an empty one means no value.
  if (typeof value === "string" && value && !/[\r\n]/.test(value)) return ["text", value];
  if (typeof value === "number" || typeof value === "bigint") return ["number", String(value)];
  if (typeof value === "boolean") return ["true/false", String(value)];
  if (value && typeof value === "object") {
    const is = (...names) => Object.keys(value).join() === names.join();
    if (is("$ref") && typeof value.$ref === "string" && value.$ref === value.$ref.trim()) return ["reference", value.$ref];
    if (is("$geo") && Array.isArray(value.$geo) && value.$geo.length === 2) return ["place", value.$geo.join(",")];
    // A date in the form has the precision of a double in seconds; dates in the log have nanoseconds and any year.
    const seconds = is("$date") ? value.$date : is("$ts") && value.$ts?.[1] === 0 ? value.$ts[0] : undefined;
    if (Number.isInteger(seconds) && Math.abs(seconds) <= 8.64e12) return ["date", new Date(seconds * 1000).toISOString()];
  }
  return ["JSON", toJSON(value)];
}

/** Returns a curl command that posts to a source; the secret is a variable. */
export function curlOf({ url, verification }, text) {
  const scheme = verification?.scheme;
  const header = scheme === "bearer" ? [`-H "Authorization: Bearer $BELFRY_SOURCE_SECRET"`]
    : scheme === "header" ? [`-H ${beginning(verification.header ?? "X-Webhook-Secret")}: $BELFRY_SOURCE_SECRET"`] : [];
  const line = ["curl -sS", quoted(url), "-H 'Content-Type: application/json'", ...header, "--data-binary", quoted(text)].join(" ");
  return header.length || scheme === "none" ? line
    : `${line}\n# This source verifies a signature (${scheme}): Containers, Sources has a program that signs.`;
}

/** Returns the beginning of a double-quoted shell word with a header field's name, which may contain special characters. */
const beginning = (name) => (/^[\w-]+$/.test(name) ? `"${name}` : `${quoted(name)}"`);

// MARK: Subscriptions

/** The operations on a record. */
export const operations = ["create", "update", "delete"];

/** Returns the draft that a form describes; members that the form does not show come from `saved`, the subscription that filled it. */
export function draftOf({ recordType, predicate, on, firesWhen, changedKeys, alertBody, pushes, seconds, digest }, saved) {
  const isZone = saved?.subscriptionType === "zone";
  // An unchanged input keeps the saved keys exactly.
  const isSavedKeys = saved?.changedKeys && saved.changedKeys.join(", ") === changedKeys;
  const keys = isSavedKeys ? saved.changedKeys : (changedKeys ?? "").split(",").map((key) => key.trim()).filter(Boolean);
  const draft = { subscriptionType: isZone ? "zone" : "query", notificationInfo: told(alertBody, saved?.notificationInfo) };
  for (const name of unshown) if (saved?.[name] !== undefined) draft[name] = saved[name];
  if (saved?.expiresAt > Date.now()) draft.expiresAt = saved.expiresAt;
  if (isZone && recordType) draft.recordType = recordType;
  if (!isZone) {
    // An unchanged condition is sent as it was saved, because the form shows only its canonical text.
    const isAsSaved = saved && recordType === saved.query?.recordType && predicate === (saved.query.canonicalPredicate ?? "").replace(/\r\n?/g, "\n");
    draft.query = isAsSaved ? saved.query : { recordType, ...(predicate.trim() ? { predicate } : {}) };
    draft.firesOn = on ? on.split(" ") : [];
    if (firesWhen && firesWhen !== "matches") draft.firesWhen = firesWhen;
    if (keys.length) draft.changedKeys = keys;
  }
  if (pushes || seconds) draft.throttle = { pushes: whole(pushes), seconds: whole(seconds) };
  if (digest) draft.digest = { ...saved?.digest, seconds: whole(digest) };
  return draft;
}

/** The members of a saved subscription that the form does not show. */
const unshown = ["zoneID", "zoneWide", "firesOnce", "suppress", "paused", "urgent", "unlessConnected"];

/** Returns the notification info: that of the saved subscription, with the text of the form. */
function told(alertBody, saved) {
  const { alertBody: shown, ...rest } = saved ?? {};
  // An input has only one line, so a saved text may have lost its line breaks.
  if (alertBody) return { ...rest, alertBody: shown?.replace(/[\r\n]/g, "") === alertBody ? shown : alertBody };
  return Object.keys(rest).length ? rest : { shouldSendContentAvailable: true };
}

/** Returns the number in a text; the relay refuses a text that is not a number. */
const whole = (text) => (/^\d+$/.test(text ?? "") ? Number(text) : text || undefined);

/** Adds up the answers of one rehearsal's calls. */
export function added(sum, next) {
  if (!sum) return next;
  const put = (one, other, key) => {
    const counts = new Map(one.map((entry) => [entry[key], entry.fired]));
    for (const entry of other) counts.set(entry[key], (counts.get(entry[key]) ?? 0) + entry.fired);
    return [...counts].sort().map(([name, fired]) => ({ [key]: name, fired }));
  };
  return {
    ...sum, kindness: sum.kindness && { ...sum.kindness, ...Object.fromEntries(["pushes", "together", "waiting"].map((name) => [name, sum.kindness[name] + (next.kindness?.[name] ?? 0)])) },
    sentence: next.sentence, fired: sum.fired + next.fired, pushes: sum.pushes + next.pushes, once: next.once ?? sum.once,
    lookedAt: { ...next.lookedAt, changes: sum.lookedAt.changes + next.lookedAt.changes, to: sum.lookedAt.to ?? next.lookedAt.to, from: next.lookedAt.from ?? sum.lookedAt.from },
    byOperation: Object.fromEntries(operations.map((word) => [word, sum.byOperation[word] + next.byOperation[word]])),
    byDay: put(sum.byDay, next.byDay, "day"), byHour: put(sum.byHour, next.byHour, "hour"),
    errors: { count: sum.errors.count + next.errors.count, example: sum.errors.example ?? next.errors.example },
    examples: [...sum.examples, ...next.examples].slice(0, 5), isSum: true,
    change: sum.change && { ...sum.change, firedBefore: sum.change.firedBefore + next.change.firedBefore, added: sum.change.added + next.change.added, removed: sum.change.removed + next.change.removed,
      addedExamples: [...sum.change.addedExamples, ...next.change.addedExamples].slice(0, 5), removedExamples: [...sum.change.removedExamples, ...next.change.removedExamples].slice(0, 5) },
  };
}
