// The Explain page: why a change fired a subscription or did not, and what became of the push.
import { cut, outcomeOf } from "./condition.js";
import { code, fill, h, link, said } from "./dom.js";
import { badge, choice, empty, field, folded, head, input, json, load, suggested } from "./parts.js";
import { latest, tones } from "./tail.js";
import { brief, counted, happened, rest, shorten, visible, words } from "./text.js";

const asked = ["position", "recordType", "recordName", "source", "webhookID", "subscription", "user", "device", "delivery", "database", "limit"];
const ways = { change: "By a change", subscription: "By a subscription", delivery: "By a delivery" };

export async function show(host, context) {
  const { params } = context;
  const way = params.way ?? (params.delivery ? "delivery" : params.subscription && !params.position && !params.recordName ? "subscription" : "change");
  const answer = h("div", { class: "stack", "aria-live": "polite" });
  fill(host, head("Explain", "Why a push was or was not sent: step by step, as things were when the change was judged."),
    h("nav", { class: "tabs", "aria-label": "Ask by" }, Object.entries(ways).map(([name, title]) =>
      h("a", { href: context.to("explain", { ...kept(params), way: name }), "aria-current": name === way ? "page" : undefined }, title))),
    form(way, context, answer), answer);
  const isAsked = way === "delivery" ? params.delivery : way === "subscription" ? params.subscription && params.user
    : (params.position || params.recordName) && (params.user || params.device) || params.source && params.webhookID;
  if (isAsked) await explain(answer, way, context);
  else fill(answer, empty("Ask about a push", {
    change: "Name a change, by its record or its position in the log, and the user whose subscriptions you ask about.",
    subscription: "Name a subscription and its user: see which of the latest changes fired it and which nearly did.",
    delivery: "Name a delivery by its apns-id: see why this device got it and what happened to it.",
  }[way], link(context.to("tail"), "Pick a change in the tail"), link(context.to("deliveries"), "Pick a delivery")));
}

const kept = (params) => Object.fromEntries(asked.map((name) => [name, params[name]]));

// MARK: Asking

function form(way, context, answer) {
  const { params, keep } = context;
  const user = userField(context);
  const subscription = subscriptionField(context, () => user.querySelector("input").value);
  const fields = {
    change: () => [changeField(context), field("Record type", input("recordType", params.recordType)), field("Record name", input("recordName", params.recordName)),
      field("or position", input("position", params.position, { inputmode: "numeric", class: "mono" })), field("or source", input("source", params.source)),
      field("and its webhook-id", input("webhookID", params.webhookID, { class: "mono" })), user, subscription, field("Device", input("device", params.device))],
    subscription: () => [user, subscription, field("Changes", choice("limit", ["5", "20", "50"], params.limit ?? "20"))],
    delivery: () => [h("div", { class: "field wide" }, field("apns-id", input("delivery", params.delivery, { class: "mono", placeholder: "2aa5a5a5-bd81-83b4-84d9-464f85d1272c" }))),
      field("Position, if it is known", input("position", params.position, { inputmode: "numeric", class: "mono" }))],
  }[way]();
  const element = h("form", { class: "card" }, h("div", { class: "grid" }, fields), h("div", { class: "actions" }, h("button", { class: "primary" }, "Explain")));
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(element));
    delete values.pick;
    // A change is named in one way only; a position takes precedence.
    if (way === "change" && values.position) delete values.recordType, delete values.recordName;
    if (way === "change" && (values.position || values.recordName)) delete values.source, delete values.webhookID;
    const cleared = Object.fromEntries(asked.map((name) => [name, undefined]));
    keep({ ...cleared, ...Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim?.() === "" ? undefined : value])), way });
    explain(answer, way, context);
  });
  return element;
}

/** Returns a choice among the latest changes, which fills the other fields. */
export function changeField(context, pick) {
  const select = choice("pick", [["", "pick one"]], "");
  latest(context, 50).then((rows) => {
    for (const { position, change } of rows) {
      select.append(h("option", { value: position }, visible(shorten(`${position}: ${happened(change.op)} ${change.type} ${change.name}`, 100))));
    }
    select.rows = new Map(rows.map((row) => [row.position, row]));
  }).catch(() => {});
  select.addEventListener("change", (event) => {
    event.stopPropagation();
    const row = select.rows?.get(select.value);
    if (!row) return;
    if (pick) return pick(row);
    const { elements } = select.form;
    elements.position.value = row.position;
    elements.recordType.value = row.change.type;
    elements.recordName.value = row.change.name;
  });
  return field("One of the latest changes", select);
}

/** Returns an input for a user, with the existing users as suggestions. */
export function userField({ relay, base, params, signal }, { required = false, value = params.user } = {}) {
  const element = suggested("user", value, [], { required });
  let last;
  const look = async () => {
    const prefix = element.value;
    if (prefix === last) return;
    last = prefix;
    const { users } = await relay.get(`${base}/users`, { prefix, limit: 20 }, signal);
    if (prefix === element.value) element.suggest(users.map(({ userRecordName }) => userRecordName));
  };
  element.addEventListener("focus", () => look().catch(() => {}));
  element.addEventListener("input", () => look().catch(() => {}));
  return field("User", element);
}

/** Returns an input for a subscription of a user, with the existing ones as suggestions. */
export function subscriptionField({ relay, base, params, signal }, user, { name = "subscription", label = "Subscription", tell } = {}) {
  const element = suggested(name, params.subscription, []);
  element.addEventListener("focus", async () => {
    if (!user()) return;
    const { subscriptions } = await relay.get(`${base}/subscriptions`, { user: user(), limit: 1000 }, signal).catch(() => ({ subscriptions: [] }));
    element.suggest(subscriptions.map(({ subscriptionID }) => subscriptionID));
    tell?.(subscriptions);
  });
  return field(label, element);
}

async function explain(place, way, context) {
  const { relay, base, params, signal } = context;
  await load(place, async () => {
    const query = Object.fromEntries(asked.map((name) => [name, params[name]]));
    // A position beside an apns-id tells the relay where to search for it.
    const found = await relay.get(`${base}/explain`, query, signal);
    const isOne = found.explanations.length === 1;
    // For one subscription, the sentence says more than its only explanation.
    return [(!isOne || found.known || found.lookedThrough) && h("p", { class: "lead" }, said(found.sentence, 1000)),
      found.known && h("p", { class: "dim" }, "Appended at ", found.known.map(({ position }, index) => [index > 0 && ", ", link(context.to("explain", { position, user: params.user, way: "change" }), code(position))]), "."),
      found.explanations.length === 0 && !found.known && empty("Nothing to explain", "No change and no subscription of this user matches the question."),
      found.explanations.map((one) => explanation(one, context, isOne)),
      found.others > 0 && h("p", { class: "dim" }, rest(found.others, way)),
      found.parked?.length > 0 && h("p", null, "Parked changes that may be related: ", link(context.to("parked"), found.parked.join(", "))),
      found.cut && h("p", { class: "dim" }, "The time limit was reached before everything was checked.")];
  }, signal);
}

// MARK: The answer

const verdicts = { fired: ["fired", "good"], didNotFire: ["did not fire", "bad"], cannotTell: ["cannot tell", "warn"] };

/** Returns one explanation. */
export function explanation(one, context, isOpen = false) {
  const predicate = one.steps.find(({ facts }) => facts?.canonicalPredicate && facts.comparisons);
  const subscription = { subscription: one.subscriptionID, user: one.userRecordName, database: one.steps.find(({ step, outcome }) => step === "database" && outcome === "passed")?.facts.database };
  return h("article", { class: "explanation" },
    h("header", null, h("div", { class: "row dim small" }, badge(...verdicts[one.verdict]),
      h("span", null, "change ", link(context.to("explain", { position: one.position, user: one.userRecordName, way: "change" }), code(one.position))),
      one.subscriptionID && h("span", null, link(context.to("explain", subscription), said(one.subscriptionID)),
        " of ", link(context.to("users", { user: one.userRecordName }), said(one.userRecordName))),
      one.subscriptionID && link(context.to("rehearse", subscription), "Rehearse")),
    h("p", { class: "sentence" }, said(one.sentence, 1000)), predicate && condition(predicate.facts)),
    folded(counted(one.steps.length, "step"), () => steps(one.steps), { open: isOpen }),
    (one.devices ?? []).map((device) => folded(h("span", null, badge(words(device.standing), tones[device.standing]), " ", h("b", null, said(device.deviceID)), " ",
      said(device.sentence, 300)), () => deviceDetails(device), { open: isOpen && one.devices.length < 4 })));
}

function deviceDetails(device) {
  return h("div", { class: "stack" }, device.deliveryID && h("p", { class: "small dim" }, "apns-id ", code(device.deliveryID)),
    steps(device.steps), device.payload && json(device.payload, "payload"));
}

/** Returns a condition whose deciding comparisons are underlined by outcome, with their values beside it. */
export function condition({ canonicalPredicate: text, comparisons }) {
  const isDeciding = comparisons.map(({ decides }) => decides === true);
  const parts = cut(text, comparisons.map(({ place }) => place));
  const shown = comparisons.map((comparison, index) => [comparison, index]).filter(([, index]) => isDeciding[index]);
  return h("div", { class: "stack" },
    h("div", { class: "condition", "aria-label": "condition" }, parts.map(({ text, index }) => index === undefined ? said(text, 2000)
      : h("u", { class: isDeciding[index] ? outcomeOf(comparisons[index])[0] : "" }, said(text, 2000)))),
    h("ul", { class: "comparisons small" }, (shown.length ? shown : comparisons.map((one, index) => [one, index])).slice(0, 20).map(([comparison]) => {
      const [tone, word] = outcomeOf(comparison);
      return h("li", null, badge(word, { true: "good", false: "bad", error: "warn" }[tone]), h("span", null, code(comparison.comparison, 300), " ",
        h("span", { class: "dim" }, said(comparison.error ?? comparison.reason ?? `${brief(comparison.left)}, ${brief(comparison.right)}`, 400))));
    })));
}

const signs = { passed: ["✓", "passed"], failed: ["✕", "failed"], unknown: ["?", "unknown"], noted: ["·", "noted"] };

function steps(all) {
  return h("ol", { class: "steps" }, all.map(({ step, outcome, says, facts }) => {
    const [sign, word] = signs[outcome] ?? signs.noted;
    const detail = () => h("div", { class: "stack" }, facts.before?.comparisons && [h("span", { class: "dim small" }, "The record before:"), condition(facts.before)],
      json(facts, `details of ${step}`));
    return h("li", { class: outcome }, h("span", { class: "outcome", role: "img", "aria-label": word }, sign), h("span", { class: "name" }, words(step)),
      h("div", { class: "says" }, facts ? folded(said(says, 1000), detail) : said(says, 1000)));
  }));
}
