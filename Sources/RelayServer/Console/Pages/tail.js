// The Tail page: changes as they come, each with what it fired and where the pushes went.
import { pause } from "./api.js";
import { code, fill, h, link, said, when } from "./dom.js";
import { Journal, standingOf, standings, tally } from "./journal.js";
import { badge, button, empty, field, filters, head, input, json, load, problem } from "./parts.js";
import { counted, happened } from "./text.js";

const past = 40; // The number of earlier changes that are shown at the beginning.
export const tones = { delivered: "good", sent: "accent", waiting: "warn", held: "warn", dead: "bad", leftOut: "note", owed: "accent", cannotTell: "note", seen: "good", folded: "note" };

export async function show(host, context) {
  const { relay, signal, base, params, keep } = context;
  const state = h("span", { class: "live", role: "status" }, "…");
  const note = h("p", { class: "dim small", role: "status" });
  const list = h("ol", { class: "tail", "aria-label": "Changes, the newest first" });
  const place = h("div");
  const items = new Map();
  let journal = new Journal();
  let isPaused = false;
  let held = [];

  const hold = button("Pause", () => {
    isPaused = !isPaused;
    hold.textContent = isPaused ? "Go on" : "Pause";
    hold.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) take(held.splice(0));
    tellHeld();
  }, { "aria-pressed": "false" });
  const clear = button("Clear", () => {
    journal = new Journal();
    items.clear();
    fill(list);
    showEmpty();
  }, { kind: "quiet" });
  const form = filters((values) => {
    keep(values);
    context.again();
  }, field("Record type", input("recordType", params.recordType)), field("User", input("user", params.user)),
  field("Subscription", input("subscription", params.subscription)), h("button", null, "Filter"));

  function tellHeld() {
    note.textContent = isPaused ? `Paused. ${counted(new Set(held.map(({ position }) => position)).size, "change")} came since.` : "";
  }

  function showEmpty() {
    fill(place, items.size ? list : empty("No change yet", "Changes appear here as your database posts them, with everything they fire.",
      context.mayChange && link(context.to("send"), "Send one by hand"), link(context.to("containers", { tab: "sources" }), "Show how to post")));
  }

  function take(events) {
    const { added, changed } = journal.take(events);
    for (const position of changed) items.get(position)?.refresh();
    for (const position of added) add(journal.get(position), true);
    for (const position of [...items.keys()]) {
      if (journal.get(position)) continue;
      items.get(position).element.remove();
      items.delete(position);
    }
    if (!list.isConnected && items.size) showEmpty();
  }

  function add(entry, isFresh) {
    const item = new Item(entry, context, isFresh);
    items.set(entry.position, item);
    const next = journal.entries[journal.entries.indexOf(entry) + 1];
    list.insertBefore(item.element, items.get(next?.position)?.element ?? null);
  }

  fill(host, head("Tail", "Changes as they arrive. Expand one to see what it fired, who got a push and what the gateway answered.",
    state, hold, clear), form, note, place);
  const wanted = { recordType: params.recordType, user: params.user, subscription: params.subscription };
  let after = (await relay.get(`${base}/events`, wanted, signal)).after;
  state.className = "live on";
  state.textContent = "listening";
  if (!params.user && !params.subscription) {
    const rows = await latest(context, past, { recordType: params.recordType });
    journal.recall(rows.filter(({ change }) => !params.recordType || change.type === params.recordType));
    for (const entry of journal.entries) add(entry, false);
  }
  showEmpty();
  listen().catch((error) => {
    if (!signal.aborted) fill(place, problem(error, context.again));
  });

  async function listen() {
    for (;;) {
      try {
        const answer = await relay.get(`${base}/events`, { ...wanted, only: "change,match,push,answer", after, hold: 25, limit: 1000 }, signal);
        state.className = "live on";
        state.textContent = "listening";
        if (answer.restarted) note.textContent = "The relay was restarted; what happened in between is not shown.";
        else if (answer.missed) note.textContent = `${counted(answer.missed, "event")} came too fast to be shown.`;
        after = answer.after;
        if (!isPaused) take(answer.events);
        else {
          held = [...held, ...answer.events].slice(-5000);
          tellHeld();
        }
        // Frequent events are shown only a few times a second.
        if (answer.events.length) await pause(150, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error.status && error.status !== 429 && error.status < 500) throw error;
        state.className = "live off";
        state.textContent = error.status ? error.message : "the relay does not answer";
        await pause((error.retryAfter ?? 3) * 1000, signal);
      }
    }
  }
}

/** Returns the latest changes of the container, the newest first. */
export async function latest({ relay, signal, base }, limit, query) {
  const { changes } = await relay.get(`${base}/changes`, { ...query, limit }, signal);
  return changes.sort((one, other) => (BigInt(one.position) < BigInt(other.position) ? 1 : -1));
}

// MARK: One change

class Item {
  constructor(entry, context, isFresh) {
    Object.assign(this, { entry, context });
    this.summary = h("summary");
    this.body = h("div", { class: "unfolded" });
    this.details = h("details", null, this.summary);
    this.details.addEventListener("toggle", () => {
      if (!this.details.open) return;
      this.details.append(this.body);
      this.refresh();
    });
    this.element = h("li", { class: isFresh ? "fresh" : "" }, this.details);
    this.refresh();
  }

  refresh() {
    const { entry, context } = this;
    const counts = tally(entry);
    fill(this.summary, when(entry.at), h("span", { class: "dim" }, happened(entry.operation)),
      h("span", { class: "record" }, h("b", null, said(entry.recordType ?? "?", 40)), " ", said(entry.recordName ?? "", 80)),
      h("span", { class: "row" }, this.#outcome(counts)));
    if (!this.details.open) return;
    if (!this.record) {
      this.record = h("div");
      load(this.record, async () => this.#change(), context.signal);
    }
    fill(this.body, this.#fired(), this.record);
  }

  #outcome(counts) {
    const { entry } = this;
    if (entry.outcome && entry.outcome !== "judged") return badge({ snapshot: "snapshot row", stale: "too late", setAside: "set aside" }[entry.outcome] ?? entry.outcome, entry.outcome === "setAside" ? "bad" : "note");
    if (entry.isPast) return null;
    if (!entry.fired && !entry.pushes.length) return h("span", { class: "dim" }, "fired none");
    return [h("span", null, entry.fired === undefined ? "fired" : `fired ${entry.fired}`),
      standings.filter((word) => counts[word]).map((word) => badge(`${counts[word]} ${word}`, tones[word]))];
  }

  #fired() {
    const { entry, context } = this;
    if (entry.isPast) {
      const place = h("div");
      if (!this.settled) {
        this.settled = place;
        load(place, async () => this.#deliveries(), context.signal);
      }
      return this.settled;
    }
    const bySubscription = new Map(entry.matches.map((match) => [`${match.user}\n${match.subscription}`, { ...match, pushes: [] }]));
    for (const push of entry.pushes) {
      const key = `${push.user}\n${push.subscription}`;
      if (!bySubscription.has(key)) bySubscription.set(key, { user: push.user, subscription: push.subscription, pushes: [] });
      bySubscription.get(key).pushes.push(push);
    }
    const rest = (entry.fired ?? 0) - bySubscription.size;
    if (!bySubscription.size) {
      return h("p", null, entry.outcome === "judged" || !entry.outcome ? "It fired no subscription. " : "It fires nothing. ",
        link(context.to("explain", { position: entry.position }), "Ask why for a user"));
    }
    return h("ul", { class: "tree" }, [...bySubscription.values()].map(({ user, subscription, pushes }) =>
      h("li", null, h("b", null, said(subscription, 60)), " of ", link(context.to("users", { user }), said(user, 60)), " ",
        link(context.to("explain", { position: entry.position, user, subscription }), "Why?"),
        h("ul", null, pushes.map((push) => this.#push(push)), entry.leftOut.length > 0 && !pushes.length &&
          h("li", { class: "dim" }, "no push to: ", entry.leftOut.map((device) => [said(device, 40), " "]), "made the change")))),
    rest > 0 && h("li", { class: "dim" }, `and ${counted(rest, "other")}`));
  }

  #push(push) {
    const { context, entry } = this;
    const standing = standingOf(push);
    const last = push.answers.at(-1);
    const alert = push.notification?.payload?.aps?.alert;
    const text = typeof alert === "string" ? alert : alert?.body ?? alert?.title;
    return h("li", null, h("div", { class: "row" }, badge(standing, tones[standing]), said(push.device, 60),
      last && h("span", { class: "dim small" }, last.status ? `${last.status} ` : "", said(last.reason || last.outcome, 100),
        last.milliseconds !== undefined ? `, ${Math.round(last.milliseconds)} ms` : ""),
      link(context.to("explain", { delivery: push.delivery, position: entry.position }), "Why?")),
    h("div", { class: "dim" }, text ? h("span", null, "“", said(text, 200), "”") : push.notification?.pushType === "background" ? "silent" : ""));
  }

  async #deliveries() {
    const { relay, signal, base } = this.context;
    const intro = h("p", { class: "dim" }, "It arrived before this page was opened. ",
      link(this.context.to("explain", { position: this.entry.position }), "Explain it"));
    const { deliveries } = await relay.get(`${base}/deliveries`, { position: this.entry.position, limit: 100 }, signal);
    return [intro, deliveries.length ? h("ul", { class: "tree" }, deliveries.map((one) => h("li", { class: "row" }, badge(one.state, tones[one.state]),
      one.deviceID && said(one.deviceID, 60), one.userRecordName && h("span", null, "of ", said(one.userRecordName, 60)),
      !one.deviceID && h("span", null, "device ", code(one.deviceSerial)), when(one.at),
      link(this.context.to("explain", { delivery: one.deliveryID, position: one.position }), "Why?")))) : h("p", null, "It caused no push.")];
  }

  async #change() {
    const { relay, signal, base } = this.context;
    let { change } = this.entry;
    if (!change) {
      const { changes } = await relay.get(`${base}/changes`, { after: String(BigInt(this.entry.position) - 1n), limit: 1 }, signal);
      change = changes.find(({ position }) => position === this.entry.position)?.change;
    }
    if (!change) return h("p", { class: "dim" }, "The log no longer has it.");
    return h("div", { class: "stack" }, h("h3", null, "The change at ", code(this.entry.position)), json(change, "change"));
  }
}
