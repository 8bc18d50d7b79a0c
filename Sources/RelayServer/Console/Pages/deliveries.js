// The Deliveries pages: the outcomes of pushes, and dead letters.
import { code, fill, h, link, said, when } from "./dom.js";
import { ask, badge, button, choice, dialog, empty, facts, field, filters, head, input, json, load, section, tell } from "./parts.js";
import { table } from "./table.js";
import { tones } from "./tail.js";
import { chunks, count, counted, words } from "./text.js";

export async function show(host, context) {
  await (context.page === "deadletters" ? showDead : showAll)(host, context);
}

const filtersOf = (params, names) => Object.fromEntries(names.map((name) => [name, params[name]]));

// MARK: Deliveries

async function showAll(host, context) {
  const { relay, signal, params, keep, base } = context;
  if (params.delivery) return showOne(host, context);
  const names = ["state", "user", "subscription", "device", "position"];
  const place = h("div");
  const form = filters((values) => {
    keep(values);
    look();
  }, field("State", choice("state", [["", "all"], "delivered", "waiting", "dead", "seen", ["folded", "in a digest"]], params.state)),
  field("User", input("user", params.user)), field("Subscription", input("subscription", params.subscription, { title: "Only with a user" })),
  field("Device", input("device", params.device, { title: "Only with a user" })), field("Change at position", input("position", params.position, { inputmode: "numeric" })),
  h("button", null, "Filter"));
  fill(host, head("Deliveries", "What happened to pushes, the newest first.",
    link(context.to("deadletters"), "Dead letters")), form, waitingPart(context), place);

  function look() {
    return load(place, async () => {
      const query = filtersOf(params, names);
      const list = await relay.list(`${base}/deliveries`, query, "deliveries", signal);
      if (!list.rows.length) {
        return names.some((name) => params[name]) ? empty("No delivery matches", "Nothing that is kept matches these filters.",
          button("Show all", () => context.go("deliveries", context.current)))
          : empty("No delivery yet", "A delivery is one push to one device. It appears when a change fires a subscription of a user who has a device.",
            link(context.to("tail"), "Watch changes as they arrive"));
      }
      return table({
        label: "Deliveries", ...list, columns: columns(context),
      });
    }, signal);
  }
  await look();
}

function columns(context) {
  return [
    { title: "When", value: (row) => row.at, cell: (row) => when(row.at) },
    { title: "State", value: (row) => row.state, cell: (row) => [badge(row.state, tones[row.state]), row.deliveredAt && [" ", badge(row.openedAt ? "opened" : "came", "good")]] },
    { title: "Arrived on the device", hidden: true, value: (row) => row.deliveredAt ?? "" }, { title: "Opened", hidden: true, value: (row) => row.openedAt ?? "" },
    { title: "Device", value: (row) => row.deviceID ?? row.deviceSerial, cell: (row) => row.deviceID ? said(row.deviceID, 40) : h("span", { class: "dim" }, `#${row.deviceSerial}`) },
    {
      title: "User", value: (row) => row.userRecordName ?? "",
      cell: (row) => row.userRecordName ? link(context.to("users", { user: row.userRecordName }), said(row.userRecordName, 40)) : "–",
    },
    { title: "Subscription", value: (row) => row.subscriptionID ?? row.subscriptionSerial, cell: (row) => row.subscriptionID ? said(row.subscriptionID, 40) : h("span", { class: "dim" }, `#${row.subscriptionSerial}`) },
    { title: "Tries", align: "end", value: (row) => row.attempts },
    { title: "Position", hidden: true, value: (row) => row.position },
    { title: "Status", hidden: true, value: (row) => row.status },
    { title: "Answer", value: (row) => row.reason, cell: (row) => h("span", null, row.status || "", " ", said(row.reason, 60)) },
    {
      title: "apns-id", value: (row) => row.deliveryID,
      cell: (row) => link(context.to("deliveries", { delivery: row.deliveryID }), code(row.deliveryID.slice(0, 8))),
    },
    { title: "", cell: (row) => link(context.to("explain", { delivery: row.deliveryID, position: row.position }), "Why?") },
  ];
}

/** Shows the retries. */
function waitingPart({ relay, signal, base, ...context }) {
  const place = h("div");
  relay.list(`${base}/retries`, {}, "retries", signal).then((list) => {
    if (!list.rows.length) return;
    fill(place, section(`${list.hasMore || list.rows.length === 1000 ? "1,000 or more" : count(list.rows.length)} waiting to be tried again`, table({
      label: "Waiting deliveries", ...list, columns: [
        { title: "Due", value: (row) => row.pause.until, cell: (row) => when(row.pause.until) },
        { title: "Waits for", value: (row) => row.pause.kind, cell: (row) => badge(words(row.pause.kind), "warn") },
        { title: "Reason", value: (row) => row.pause.reason, cell: (row) => said(row.pause.reason, 80) },
        { title: "Device", value: (row) => row.deviceID }, { title: "User", value: (row) => row.userRecordName },
        { title: "Subscription", value: (row) => row.subscriptionID }, { title: "Attempts", align: "end", value: (row) => row.attempts },
        { title: "", cell: (row) => link(context.to("explain", { delivery: row.deliveryID, position: row.position }), "Why?") },
      ],
    })));
  }).catch(() => {});
  return place;
}

async function showOne(host, context) {
  const { relay, signal, params, base } = context;
  const place = h("div", { class: "stack" });
  fill(host, head("Delivery", null, link(context.to("deliveries"), "All deliveries"),
    link(context.to("explain", { delivery: params.delivery }), "Explain it")), place);
  await load(place, async () => {
    const one = await relay.get(`${base}/deliveries/${encodeURIComponent(params.delivery)}`, {}, signal);
    const held = one.deadLetter ?? one.retry;
    return [section("Details", facts(["State", badge(one.state, tones[one.state])], ["apns-id", code(one.deliveryID)],
      ["Change", link(context.to("explain", { delivery: one.deliveryID, position: one.position }), code(one.position))],
      ["Device", said(one.deviceID ?? held?.deviceID ?? `#${one.deviceSerial}`)], ["User", said(one.userRecordName ?? held?.userRecordName ?? "–")],
      ["Subscription", said(one.subscriptionID ?? held?.subscriptionID ?? `#${one.subscriptionSerial}`)],
      one.deliveredAt && ["Arrived on the device", when(one.deliveredAt)], one.openedAt && ["Opened", when(one.openedAt)],
      one.retry && ["Waits for", h("span", null, words(one.retry.pause.kind), " until ", when(one.retry.pause.until), ": ", said(one.retry.pause.reason, 200))],
      one.deadLetter && ["Ended because", said(one.deadLetter.reason, 200)])),
    section("Attempts", table({
      label: "Attempts", rows: one.receipts, columns: [
        { title: "Attempt", align: "end", value: (row) => row.attempt }, { title: "When", value: (row) => row.at, cell: (row) => when(row.at) },
        { title: "Outcome", value: (row) => row.outcome }, { title: "Status", align: "end", value: (row) => row.status, cell: (row) => row.status || "–" },
        { title: "Reason", value: (row) => row.reason, cell: (row) => said(row.reason || "–", 100) },
      ],
    })), held && section("Payload", json(held.payload, "payload"))];
  }, signal);
}

// MARK: Dead letters

function letterColumns(context, open) {
  return [
    { title: "Ended", value: (row) => row.at, cell: (row) => when(row.at) },
    { title: "Reason", value: (row) => row.reason, cell: (row) => badge(said(row.reason, 40), "bad") },
    { title: "Status", align: "end", value: (row) => row.status, cell: (row) => row.status || "–" },
    { title: "Device", value: (row) => row.deviceID, cell: (row) => said(row.deviceID, 40) },
    { title: "User", value: (row) => row.userRecordName, cell: (row) => link(context.to("users", { user: row.userRecordName }), said(row.userRecordName, 40)) },
    { title: "Subscription", value: (row) => row.subscriptionID, cell: (row) => said(row.subscriptionID, 40) },
    { title: "Attempts", align: "end", value: (row) => row.attempts },
    { title: "apns-id", value: (row) => row.deliveryID, cell: (row) => code(row.deliveryID.slice(0, 8)) },
    { title: "", cell: (row) => button("Open", () => open(row), { kind: "small quiet", "aria-label": `Open ${row.deliveryID}` }) },
  ];
}

async function showDead(host, context) {
  const { relay, signal, params, keep, base, mayChange } = context;
  const place = h("div", { class: "stack" });
  const names = ["reason", "user", "subscription", "device", "recordType", "record"];
  const form = filters((values) => {
    keep(values);
    look();
  }, field("Reason", input("reason", params.reason, { placeholder: "any, such as BadTopic" })), field("User", input("user", params.user)), field("Subscription", input("subscription", params.subscription, { title: "Only with a user" })),
  field("Device", input("device", params.device, { title: "Only with a user" })), field("Record type", input("recordType", params.recordType)), field("Record", input("record", params.record, { title: "Only with a record type" })),
  h("button", null, "Filter"));
  fill(host, head("Dead letters", "Deliveries that ended without success. Fix the cause, then redrive them: they are sent again with the same apns-id.",
    link(context.to("deliveries"), "All deliveries")), form, place);

  /** Asks, and then redrives or drops. `choices` are the arguments of successive calls: all, a reason, or the IDs of the shown letters. */
  function act(kind, choices, what, number) {
    const isDrop = kind === "drop";
    return ask({
      title: isDrop ? `Drop ${what}?` : `Redrive ${what}?`, danger: isDrop, word: isDrop ? "Drop" : "Redrive",
      says: isDrop ? `${number} will be deleted for good. Nobody gets these pushes, and they cannot be redriven.`
        : `${number} will be tried again within a minute. Those that have expired stay dead letters.`,
      act: async (goesOn) => {
        const answer = { dropped: 0, redriven: 0, expired: 0 };
        for (const choiceOf of choices) {
          if (!goesOn()) break;
          for (const [name, found] of Object.entries(await relay.post(`${base}/deadLetters/${kind}`, choiceOf, signal))) answer[name] += found;
        }
        tell(isDrop ? `${counted(answer.dropped, "dead letter")} dropped.`
          : `${counted(answer.redriven, "delivery", "deliveries")} will be tried again${answer.expired ? `; ${count(answer.expired)} had expired and stay` : ""}.`);
        context.recount();
        await look();
      },
    });
  }

  function look() {
    // The filters may change before the user presses a button of this table.
    const asked = filtersOf(params, names);
    return load(place, async () => {
      const list = await relay.list(`${base}/deadLetters`, asked, "deadLetters", signal);
      const { rows } = list;
      if (!rows.length) {
        return names.some((name) => asked[name]) ? empty("No dead letter matches", "Nothing that is kept matches these filters.",
          button("Show all", () => context.go("deadletters", context.current)))
          : empty("No dead letters", "Every push was accepted or is still being retried.", link(context.to("deliveries"), "See deliveries"));
      }
      const isAll = !list.hasMore && rows.length < 1000;
      // The calls accept a reason or IDs; for other filters, the IDs of the loaded rows are used.
      const isNarrow = names.some((name) => name !== "reason" && asked[name]);
      const which = isNarrow ? "those that match the filters" : asked.reason ? `all with the reason ${asked.reason}` : "all dead letters";
      // If the table shows all dead letters, the buttons mean these, and not later ones.
      const choicesOf = () => (isNarrow || isAll ? chunks(letters.rows.map(({ deliveryID }) => deliveryID), 500).map((ids) => ({ ids })) : [asked.reason ? { reason: asked.reason } : { all: true }]);
      const number = () => (isNarrow ? `${counted(letters.rows.length, "dead letter")} that ${letters.rows.length === 1 ? "is" : "are"} loaded` : isAll ? counted(rows.length, "dead letter") : "All of them, including those that are not shown,");
      const byReason = [...Map.groupBy(rows, (row) => row.reason)].sort(([, one], [, other]) => other.length - one.length);
      const word = isNarrow || asked.reason ? "these" : "all";
      const letters = table({
        label: "Dead letters", ...list,
        actions: mayChange ? [button(`Redrive ${word}`, () => act("redrive", choicesOf(), which, number()), { kind: "small primary" }),
          button(`Drop ${word}`, () => act("drop", choicesOf(), which, number()), { kind: "small" })] : [],
        columns: letterColumns(context, openLetter),
      });
      return [byReason.length > 1 && h("div", { class: "pill-list" }, byReason.slice(0, 12).map(([reason, list]) =>
        button(h("span", null, said(reason, 60), ` ${count(list.length)}${isAll ? "" : "+"}`), () => context.go("deadletters", { ...context.current, ...asked, reason }), { kind: "small" }))), letters];
    }, signal);
  }

  function openLetter(row) {
    return dialog("Dead letter", (close) => h("div", { class: "stack" },
      facts(["Reason", said(row.reason, 300)], ["Ended", when(row.at)], ["Device", said(row.deviceID)], ["User", said(row.userRecordName)],
        ["Subscription", said(row.subscriptionID)], ["apns-id", code(row.deliveryID)], ["Topic", code(row.topic)], ["Attempts", row.attempts]),
      json(row.payload, "payload"), h("div", { class: "actions end" },
        link(context.to("explain", { delivery: row.deliveryID, position: row.position }), "Why?"),
        mayChange && button("Drop", () => {
          close();
          return act("drop", [{ ids: [row.deliveryID] }], "this one", "1 dead letter");
        }), mayChange && button("Redrive", () => {
          close();
          return act("redrive", [{ ids: [row.deliveryID] }], "this one", "1 dead letter");
        }, { kind: "primary" }), button("Close", () => close()))), { wide: true });
  }
  await look();
}
