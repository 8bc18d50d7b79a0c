// Collects the changes of a tail: events in, one entry for each change out. Pure.

/** The maximum number of changes that are kept, the newest first. */
export const mostChanges = 300;

export class Journal {
  entries = [];
  #byPosition = new Map();
  #byDelivery = new Map();

  /** Adds events in their order; returns the positions of new entries and of changed ones. */
  take(events) {
    const added = new Set();
    const changed = new Set();
    for (const event of events) {
      const isKnown = this.#byPosition.has(event.position);
      // The change of an answer to an old push may no longer be shown.
      if (!isKnown && event.kind === "answer") continue;
      const entry = this.#entry(event.position, event);
      if (isKnown) changed.add(event.position);
      else added.add(event.position);
      this.#put(entry, event);
    }
    this.#forget();
    for (const position of added) changed.delete(position);
    return { added: [...added].filter((position) => this.#byPosition.has(position)), changed: [...changed] };
  }

  /** Adds changes of the log from before the tail began. */
  recall(rows) {
    for (const { position, appendedAt, change, source, stale } of rows) {
      if (this.#byPosition.has(position)) continue;
      const entry = this.#entry(position, { at: appendedAt });
      Object.assign(entry, {
        operation: change.op, recordType: change.type, recordName: change.name, outcome: stale ? "stale" : "judged", isPast: true, source, change,
      });
    }
    this.#forget();
  }

  get(position) {
    return this.#byPosition.get(position);
  }

  #entry(position, { at }) {
    let entry = this.#byPosition.get(position);
    if (!entry) {
      entry = { position, at, matches: [], pushes: [], leftOut: [] };
      this.#byPosition.set(position, entry);
      const number = BigInt(position);
      const place = this.entries.findIndex((other) => BigInt(other.position) < number);
      this.entries.splice(place < 0 ? this.entries.length : place, 0, entry);
    }
    return entry;
  }

  #put(entry, event) {
    entry.operation ??= event.operation;
    entry.recordType ??= event.recordType;
    entry.recordName ??= event.recordName;
    if (event.kind === "change") {
      Object.assign(entry, { at: event.at, outcome: event.outcome, fired: event.fired, leftOut: event.leftOut ?? [], isPast: false });
    } else if (event.kind === "match") {
      entry.matches.push({ user: event.userRecordName, subscription: event.subscriptionID });
    } else if (event.kind === "push") {
      const known = this.#byDelivery.get(event.deliveryID);
      if (known) return;
      const push = {
        delivery: event.deliveryID, user: event.userRecordName, subscription: event.subscriptionID, device: event.deviceID,
        notification: event.notification, at: event.at, answers: [],
      };
      this.#byDelivery.set(event.deliveryID, push);
      entry.pushes.push(push);
    } else if (event.kind === "answer") {
      this.#byDelivery.get(event.deliveryID)?.answers.push({ at: event.at, ...event.answer });
    }
  }

  #forget() {
    for (const entry of this.entries.splice(mostChanges)) {
      this.#byPosition.delete(entry.position);
      for (const { delivery } of entry.pushes) this.#byDelivery.delete(delivery);
    }
  }
}

/** The states of a push, in the order in which they are shown. */
export const standings = ["delivered", "seen", "sent", "held", "waiting", "dead"];

// The state of a push that follows from each ending of an attempt.
const endings = { accepted: "delivered", seen: "seen", held: "held", retried: "waiting", waiting: "waiting", adopted: "waiting" };

/** Returns the state of a push by its last answer. */
export function standingOf({ answers }) {
  const last = answers.at(-1);
  return last ? endings[last.becomes] ?? (last.outcome === "accepted" ? "delivered" : "dead") : "sent";
}

/** Returns the number of a change's pushes in each state. */
export function tally({ pushes }) {
  const counts = {};
  for (const push of pushes) counts[standingOf(push)] = (counts[standingOf(push)] ?? 0) + 1;
  return counts;
}
