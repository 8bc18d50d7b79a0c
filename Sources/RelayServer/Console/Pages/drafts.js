// What people make in forms, as the relay takes it: changes, drafts of subscriptions, and their rehearsals. Pure.
import { parseJSON, quoted, toJSON } from "./text.js";

// MARK: Changes

/** The kinds of a field's value. */
export const kinds = ["text", "number", "true/false", "date", "reference", "place", "JSON"];

/** What a field's text means, in the relay's notation. */
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
      if (Number.isNaN(time)) throw new Error(`“${text}” is not a moment, as 2026-11-24T12:00:00Z`);
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

/** How a value of a change is shown in the form: what its input cannot say exactly, as JSON. */
export function shownAs(value) {
  // An input has one line, and an empty one says nothing.
  if (typeof value === "string" && value && !/[\r\n]/.test(value)) return ["text", value];
  if (typeof value === "number" || typeof value === "bigint") return ["number", String(value)];
  if (typeof value === "boolean") return ["true/false", String(value)];
  if (value && typeof value === "object") {
    const is = (...names) => Object.keys(value).join() === names.join();
    if (is("$ref") && typeof value.$ref === "string" && value.$ref === value.$ref.trim()) return ["reference", value.$ref];
    if (is("$geo") && Array.isArray(value.$geo) && value.$geo.length === 2) return ["place", value.$geo.join(",")];
    // A form's date is as exact as a double of seconds; those of the log are to the nanosecond, of any year.
    const seconds = is("$date") ? value.$date : is("$ts") && value.$ts?.[1] === 0 ? value.$ts[0] : undefined;
    if (Number.isInteger(seconds) && Math.abs(seconds) <= 8.64e12) return ["date", new Date(seconds * 1000).toISOString()];
  }
  return ["JSON", toJSON(value)];
}

/** The call of a source as one line; the secret stays out of it. */
export function curlOf({ url, verification }, text) {
  const scheme = verification?.scheme;
  const header = scheme === "bearer" ? [`-H "Authorization: Bearer $BELFRY_SOURCE_SECRET"`]
    : scheme === "header" ? [`-H ${beginning(verification.header ?? "X-Webhook-Secret")}: $BELFRY_SOURCE_SECRET"`] : [];
  const line = ["curl -sS", quoted(url), "-H 'Content-Type: application/json'", ...header, "--data-binary", quoted(text)].join(" ");
  return header.length || scheme === "none" ? line
    : `${line}\n# This source verifies a signature (${scheme}): Containers, Sources has a program that signs.`;
}

/** A header field's name at the beginning of a word that ends in double quotes: it may have marks that a shell obeys. */
const beginning = (name) => (/^[\w-]+$/.test(name) ? `"${name}` : `${quoted(name)}"`);

// MARK: Subscriptions

/** What can happen to a record. */
export const operations = ["create", "update", "delete"];

/** The draft that a form describes; what it does not show is as in `saved`, the subscription that it was filled from. */
export function draftOf({ recordType, predicate, on, firesWhen, changedKeys, alertBody, pushes, seconds, digest }, saved) {
  const isZone = saved?.subscriptionType === "zone";
  // What an input makes of a saved one is that one.
  const isSavedKeys = saved?.changedKeys && saved.changedKeys.join(", ") === changedKeys;
  const keys = isSavedKeys ? saved.changedKeys : (changedKeys ?? "").split(",").map((key) => key.trim()).filter(Boolean);
  const draft = { subscriptionType: isZone ? "zone" : "query", notificationInfo: told(alertBody, saved?.notificationInfo) };
  for (const name of unshown) if (saved?.[name] !== undefined) draft[name] = saved[name];
  if (saved?.expiresAt > Date.now()) draft.expiresAt = saved.expiresAt;
  if (isZone && recordType) draft.recordType = recordType;
  if (!isZone) {
    // A condition in another dialect is sent as it was saved: its canonical text is there to be read.
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

/** What a draft keeps of the saved subscription, because the form does not show it. */
const unshown = ["zoneID", "zoneWide", "firesOnce", "suppress", "paused", "urgent", "unlessConnected"];

/** How a draft tells: as the saved one, but for the text that the form shows. */
function told(alertBody, saved) {
  const { alertBody: shown, ...rest } = saved ?? {};
  // An input has one line.
  if (alertBody) return { ...rest, alertBody: shown?.replace(/[\r\n]/g, "") === alertBody ? shown : alertBody };
  return Object.keys(rest).length ? rest : { shouldSendContentAvailable: true };
}

/** A number as it was typed; what is none is for the relay to refuse. */
const whole = (text) => (/^\d+$/.test(text ?? "") ? Number(text) : text || undefined);

/** Adds up what the calls of one rehearsal answered. */
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
