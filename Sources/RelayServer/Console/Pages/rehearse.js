// The Rehearse page: what a draft would have done with the changes that came, and how it differs from a saved subscription.
import { mistake } from "./condition.js";
import { code, fill, h, link, said, when } from "./dom.js";
import { added, draftOf, operations } from "./drafts.js";
import { subscriptionField, userField } from "./explain.js";
import { badge, button, choice, empty, facts, field, folded, head, input, json, problem, section, suggested, tell } from "./parts.js";
import { table } from "./table.js";
import { brief, count, counted, happened, measure } from "./text.js";

const moments = { matches: "whenever it matches after the change", entered: "when it begins to match", left: "when it stops matching", stayed: "when it matched and still matches" };
const spans = { 10000: "the last 10,000 changes", 100000: "the last 100,000 changes", 1000000: "the last 1,000,000 changes" };

export async function show(host, context) {
  const { params, relay, base, signal } = context;
  const answer = h("div", { class: "stack", "aria-live": "polite" });
  const editor = new DraftEditor(context, params.predicate ?? "");
  const recordType = suggested("recordType", params.recordType, [], { required: true });
  relay.get(`${base}/schema`, {}, signal).then(({ recordTypes }) => recordType.suggest(recordTypes.map(({ name }) => name))).catch(() => {});
  const user = userField(context, { required: true });
  const userInput = user.querySelector("input");
  let saved = [];
  let basis; // The saved subscription that filled the form.
  const subscription = subscriptionField(context, () => userInput.value, { label: "Compare with a saved one", tell: (list) => (saved = list) });
  const savedInput = subscription.querySelector("input");
  const boxes = operations.map((word) => h("span", { class: "check" }, h("input", { type: "checkbox", name: "on", value: word, id: `on-${word}`, props: { checked: !params.on || params.on.split(" ").includes(word) } }),
    h("label", { for: `on-${word}` }, happened(word))));
  // Subscriptions to a zone or database do not have these fields.
  const ofQueries = [editor.element, h("fieldset", { class: "fieldset" }, h("legend", { class: "small dim" }, "Fires when a record is"), h("div", { class: "row" }, boxes)),
    h("div", { class: "grid" }, field("For updates", choice("firesWhen", Object.entries(moments), params.firesWhen)),
      field("Only if one of these fields changed", input("changedKeys", params.changedKeys, { placeholder: "price, title" })))];
  const form = h("form", { class: "card" },
    h("div", { class: "grid" }, user, subscription, field("Database", choice("database", ["public", "private", "shared"], params.database)),
      field("Record type", recordType)), ofQueries,
    h("div", { class: "grid" }, field("Text of the push", input("alertBody", params.alertBody ?? "")), field("Maximum number of pushes", input("pushes", params.pushes, { inputmode: "numeric", placeholder: "any number" })),
      field("within this many seconds", input("seconds", params.seconds, { inputmode: "numeric" })), field("Digest: seconds after the first push", input("digest", params.digest, { inputmode: "numeric", placeholder: "at once" })), field("Judged on", choice("changes", Object.entries(spans), params.changes ?? "10000"))),
    h("div", { class: "actions" }, h("button", { class: "primary" }, "Rehearse"), h("span", { class: "dim small" }, "Nothing is saved or sent.")));

  const read = () => {
    const data = new FormData(form);
    const values = Object.fromEntries(data);
    return { ...values, on: data.getAll("on").join(" "), predicate: editor.text };
  };
  const draft = () => draftOf(read(), savedInput.value === basis?.subscriptionID ? basis : undefined);
  const check = () => editor.check(draft());
  form.addEventListener("input", check);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = read();
    context.keep({ ...values, way: undefined, run: 1 });
    rehearse(answer, values, draft(), context);
  });
  userInput.addEventListener("change", async () => {
    // Another user's subscription of the same name is a different one.
    saved = [];
    startFrom(undefined);
    if (savedInput.value && userInput.value) {
      await readSaved(userInput.value);
      startFrom(known(savedInput.value));
    }
    check();
  });
  savedInput.addEventListener("change", async () => {
    const name = savedInput.value;
    // A user who types quickly or pastes may be faster than the list of suggestions.
    if (name && userInput.value && !known(name)) await readSaved(userInput.value);
    if (name !== savedInput.value) return;
    const one = known(name);
    startFrom(one);
    if (one) take(one);
    else check();
  });

  async function readSaved(user) {
    const { subscriptions } = await relay.get(`${base}/subscriptions`, { user, limit: 1000 }, signal).catch(() => ({ subscriptions: [] }));
    if (user === userInput.value) saved = subscriptions;
  }

  /** Returns the saved subscription of a name, preferably in the selected database. */
  function known(name) {
    const all = saved.filter(({ subscriptionID }) => subscriptionID === name);
    return all.find(({ database }) => database === form.elements.database.value) ?? all[0];
  }

  /** Sets the saved subscription that the draft changes, and hides the fields that it cannot have. */
  function startFrom(one) {
    basis = one;
    const isZone = one?.subscriptionType === "zone";
    for (const part of ofQueries) part.hidden = isZone;
    recordType.required = !isZone;
  }

  function take(one) {
    const { elements } = form;
    recordType.value = one.query?.recordType ?? one.recordType ?? "";
    elements.database.value = one.database ?? "public";
    editor.text = one.query?.canonicalPredicate ?? "";
    elements.firesWhen.value = one.firesWhen ?? "matches";
    elements.changedKeys.value = (one.changedKeys ?? []).join(", ");
    elements.alertBody.value = one.notificationInfo?.alertBody ?? "";
    elements.pushes.value = one.throttle?.pushes ?? "";
    elements.seconds.value = one.throttle?.seconds ?? "";
    elements.digest.value = one.digest?.seconds ?? "";
    for (const box of form.querySelectorAll("[name=on]")) box.checked = !one.firesOn || one.firesOn.includes(box.value);
    check();
  }

  fill(host, head("Rehearse", "Test a subscription on past changes: how often it would have fired, with which pushes and at what cost."), form, answer);
  if (params.subscription && params.user) {
    await readSaved(params.user);
    const one = known(params.subscription);
    startFrom(one);
    if (one && !params.run && params.predicate === undefined) take(one);
    else if (!one) tell(`There is no subscription ${params.subscription} of ${params.user} now.`, "bad");
  }
  if (params.run) await rehearse(answer, read(), draft(), context);
  else fill(answer, empty("Nothing rehearsed yet", "Enter the user, the record type and the condition of the subscription. An empty condition matches every record.",
    context.mayChange && link(context.to("send"), "Send a change to test it")));
  check();
}

// MARK: The editor of a condition

/** An editor of a condition, which the relay checks while the user types; refused places are marked. */
class DraftEditor {
  #timer;
  #asked = 0;

  constructor(context, text) {
    this.context = context;
    this.area = h("textarea", { name: "predicate", spellcheck: "false", autocapitalize: "off", rows: 3, placeholder: "price < 100 AND artist BEGINSWITH \"A\"", "aria-describedby": "draft-state", id: "draft", props: { value: text } });
    this.under = h("div", { class: "under", "aria-hidden": "true" });
    this.state = h("div", { class: "draft-state small", id: "draft-state", role: "status" });
    this.element = h("div", { class: "field" }, h("label", { for: "draft" }, "Condition"), h("div", { class: "draft" }, this.under, this.area), this.state);
    this.area.addEventListener("input", () => this.#mark());
    this.area.addEventListener("scroll", () => (this.under.scrollTop = this.area.scrollTop));
    this.#mark();
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.#mark();
  }

  #mark(spans = []) {
    const { value } = this.area;
    let at = 0;
    const parts = [];
    for (const { from, to, tone } of spans.sort((one, other) => one.from - other.from)) {
      if (from < at || to <= from) continue;
      parts.push(value.slice(at, from), h("mark", { class: tone }, value.slice(from, to)));
      at = to;
    }
    fill(this.under, parts, value.slice(at), "\u200b");
  }

  /** Makes the relay check the draft when the user pauses. */
  check(draft) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(draft), 250);
  }

  async #check({ query, firesOn, firesWhen, changedKeys }) {
    const { relay, base, signal } = this.context;
    if (!query) return fill(this.state);
    if (!query.recordType) return fill(this.state, h("span", { class: "dim" }, "Enter a record type first."));
    const round = (this.#asked += 1);
    const text = this.text;
    const isOld = () => signal.aborted || round !== this.#asked || text !== this.text;
    try {
      const { canonical, predicateCost, warnings } = await relay.post(`${base}/subscriptions/check`, { query, firesOn, firesWhen, changedKeys }, signal);
      if (isOld()) return;
      this.area.removeAttribute("aria-invalid");
      // The places refer to the text that was sent, which may be in another dialect than the shown text.
      const isShown = query.predicate === text;
      this.#mark(warnings.filter(({ offset }) => offset !== undefined && text && isShown).map((warning) => ({ ...mistake(text, warning), tone: "warn" })));
      fill(this.state, h("div", null, badge(warnings.length ? "can be saved, but is doubtful" : "fine", warnings.length ? "warn" : "good"), " ",
        h("span", { class: "dim" }, costOf(predicateCost))), canonical && canonical !== text && h("div", null, "Read as ", code(canonical, 500)),
      warnings.map(({ reason, hint }) => h("div", null, said(reason, 300), hint && [": ", said(hint, 200)])));
    } catch (error) {
      if (isOld()) return;
      const { predicateError } = error.answer ?? {};
      this.area.setAttribute("aria-invalid", "true");
      this.#mark(predicateError && !predicateError.path ? [{ ...mistake(text, predicateError), tone: "" }] : []);
      fill(this.state, h("div", null, badge("refused", "bad"), " ", said(predicateError?.reason ?? error.message, 400)),
        predicateError?.expected && h("div", { class: "dim" }, "found ", said(predicateError.found ?? "nothing", 100), "; expected ", said(predicateError.expected, 200)),
        predicateError?.hint && h("div", null, said(predicateError.hint, 200)));
    }
  }
}

const costOf = (cost) => cost && `checked for ${measure(cost.candidatesPerChange * 100)} % of the changes, ${measure(cost.comparisonsPerChange)} comparisons each`;

// MARK: The rehearsal

const running = new WeakMap(); // The rehearsal that fills each part of the page.

async function rehearse(place, values, draft, { relay, base, signal, ...context }) {
  const most = Number(values.changes);
  const bar = h("progress", { max: most, value: 0, "aria-label": "Changes checked" });
  const said_ = h("span", { class: "dim" }, "Judging …");
  const stopper = new AbortController();
  signal.addEventListener("abort", () => stopper.abort());
  // The former rehearsal judges another draft, so it must stop and show nothing.
  running.get(place)?.abort();
  running.set(place, stopper);
  const isOld = () => signal.aborted || running.get(place) !== stopper;
  let isStopped = false;
  const stop = button("Stop", () => {
    isStopped = true;
    stopper.abort();
  }, { kind: "small" });
  fill(place, h("div", { class: "stack" }, h("div", { class: "row" }, said_, stop), bar));
  let sum;
  let before;
  try {
    do {
      const next = await relay.post(`${base}/rehearse`, {
        user: values.user, database: values.database, subscription: draft, subscriptionID: values.subscription || undefined, before,
        changes: Math.min(100_000, most - (sum?.lookedAt.changes ?? 0)), examples: 5,
      }, stopper.signal);
      sum = added(sum, next);
      ({ before } = next.lookedAt);
      bar.value = sum.lookedAt.changes;
      said_.textContent = `${counted(sum.lookedAt.changes, "change")} judged, fired ${count(sum.fired)} times …`;
      // Without this, an answer that looked at no change and has no end would be requested forever.
      if (next.lookedAt.changes === 0) break;
    } while (before !== undefined && sum.lookedAt.changes < most);
  } catch (error) {
    if (isOld()) return;
    if (!isStopped) return void fill(place, problem(error, () => rehearse(place, values, draft, { relay, base, signal, ...context })), sum && result(sum, values, context));
  }
  if (!isOld()) fill(place, sum ? result(sum, values, context) : h("p", { class: "dim" }, "Stopped before any change was judged."));
}

function result(found, values, context) {
  const number = (amount, word, one = word) => h("div", null, h("span", { class: "big" }, count(amount)), h("span", { class: "dim small" }, amount === 1 ? one : word));
  const { change, examples, nearMisses, errors, byHour, byDay, kindness } = found;
  const isDaily = byDay.length > 3;
  return [section(found.isSum ? `Would have fired ${counted(found.fired, "time")} in ${counted(found.lookedAt.changes, "change")}.` : said(found.sentence, 1000),
    h("div", { class: "numbers" }, number(found.fired, "times fired", "time fired"), number(found.pushes, "pushes", "push"), number(found.devices, "devices", "device"),
      number(found.lookedAt.changes, "changes judged", "change judged"),
      kindness && [number(kindness.pushes, "would have been sent"), number(kindness.together, "in a digest"), kindness.waiting > 0 && number(kindness.waiting, "would still wait")],
      change && [number(change.firedBefore, "times, as saved", "time, as saved"), number(change.added, "added"), number(change.removed, "removed")]),
    h("p", { class: "dim" }, operations.filter((word) => found.byOperation[word]).map((word) => `${happened(word)} ${count(found.byOperation[word])}`).join(", "), found.predicateCost && ` · ${costOf(found.predicateCost)}`),
    found.fired > 0 && bars(isDaily ? byDay : byHour, isDaily ? "day" : "hour"),
    (found.warnings ?? []).map(({ reason, hint }) => h("p", null, badge("doubtful", "warn"), " ", said(reason, 300), hint && [": ", said(hint, 200)])),
    errors.count > 0 && h("p", null, badge(counted(errors.count, "error"), "warn"), " ", errors.example && said(errors.example.says, 300))),
  change && (change.added > 0 || change.removed > 0) && section("What the draft would change", changesTable("Added", change.addedExamples, values, context, "good"), changesTable("Removed", change.removedExamples, values, context, "bad")),
  section("Examples", examples.length ? examples.map((example) => h("article", { class: "stack" }, h("p", { class: "row" }, h("span", { class: "dim" }, when(example.at)), happened(example.operation), h("b", null, said(example.recordType), " ", said(example.recordName)),
    "change ", code(example.position)), h("ul", { class: "tree" }, example.devices.map((device) => h("li", null, h("b", null, said(device.deviceID)), " ", device.leftOut ? h("span", { class: "dim" }, said(device.leftOut, 200))
    : [h("span", null, alertOf(device.payload)), folded("the push", () => [facts(["Type", device.pushType], ["Priority", device.priority], ["Topic", code(device.topic)], device.standsFor && ["Stands for", `${count(device.standsFor)} deliveries of a digest`], device.pruned && ["Left out to fit the size limit", device.pruned.join(", ")]), json(device.payload, "payload")])]))))) : h("p", { class: "dim" }, "None of them would have fired it.")),
  nearMisses?.examples.length > 0 && section("Nearly", h("p", { class: "dim" }, `Of the last ${counted(nearMisses.among, "change")} that did not fire it, ${count(nearMisses.count)} missed by one comparison.`),
    changesTable("Near misses", nearMisses.examples, values, context, "warn"))];
}

function alertOf(payload) {
  const alert = payload?.aps?.alert;
  const text = typeof alert === "string" ? alert : alert?.body ?? alert?.["loc-key"] ?? alert?.title;
  return text ? h("span", null, "“", said(text, 300), "”") : h("span", { class: "dim" }, "silent");
}

function bars(entries, key) {
  const highest = Math.max(...entries.map(({ fired }) => fired));
  const shown = entries.slice(-120);
  return h("div", null, h("div", { class: "bars", role: "img", "aria-label": `Fired by ${key}: ${shown.slice(-12).map((entry) => `${entry[key]} ${entry.fired}`).join(", ")}` },
    shown.map((entry) => h("i", { title: `${entry[key]}: ${entry.fired}`, style: { height: `${Math.max(2, (entry.fired / highest) * 100)}%` } }))),
  h("div", { class: "row dim small" }, h("span", null, shown[0][key]), shown.length > 1 && h("span", null, `to ${shown.at(-1)[key]}`), h("span", null, `by ${key}, UTC`)));
}

function changesTable(label, rows, values, context, tone) {
  if (!rows.length) return null;
  return h("div", null, h("h3", null, badge(label, tone)), table({
    label, rows, columns: [
      { title: "When", value: (row) => row.at, cell: (row) => when(row.at) }, { title: "Operation", value: (row) => row.operation },
      { title: "Record type", value: (row) => row.recordType }, { title: "Record", value: (row) => row.recordName },
      ...(rows.some(({ says }) => says) ? [{ title: "Why not", value: (row) => row.says, cell: (row) => said(brief(row.says), 160) }] : []),
      { title: "Position", value: (row) => row.position, cell: (row) => link(context.to("explain", { position: row.position, user: values.user }), code(row.position)) },
    ],
  }));
}
