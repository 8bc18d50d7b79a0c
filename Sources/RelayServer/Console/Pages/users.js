// The Users page: their devices, their subscriptions with their health, their inbox.
import { code, fill, h, link, said, when } from "./dom.js";
import { ask, badge, button, dialog, empty, facts, field, filters, head, input, json, load, section, tell } from "./parts.js";
import { path } from "./route.js";
import { table } from "./table.js";
import { count, counted } from "./text.js";

export async function show(host, context) {
  await (context.params.user ? showUser(host, context) : showList(host, context));
}

async function showList(host, context) {
  const { relay, base, signal, params, keep } = context;
  const place = h("div");
  const form = filters((values) => {
    keep(values);
    look();
  }, field("Name begins with", input("prefix", params.prefix)), h("button", null, "Find"));
  fill(host, head("Users", "All users who have a device or a subscription in this container."), form, place);
  const look = () => load(place, async () => {
    const list = await relay.list(`${base}/users`, { prefix: params.prefix }, "users", signal);
    if (!list.rows.length) {
      return params.prefix ? empty("No user has this name", "Names are compared exactly, including upper and lower case.")
        : empty("No user yet", "A user appears as soon as an application registers a device or saves a subscription for them.", link(context.to("containers", { tab: "keys" }), "See the keys that applications use"));
    }
    return table({
      label: "Users", ...list,
      columns: [
        { title: "User", value: (row) => row.userRecordName, cell: (row) => link(context.to("users", { user: row.userRecordName }), said(row.userRecordName, 100)) },
        { title: "Devices", align: "end", value: (row) => row.devices }, { title: "Subscriptions", align: "end", value: (row) => row.subscriptions },
      ],
    });
  }, signal);
  await look();
}

async function showUser(host, context) {
  const { params: { user }, signal } = context;
  const parts = { devices, subscriptions, inbox, sessions };
  const places = Object.keys(parts).map(() => h("div", { class: "stack" }));
  fill(host, head(said(user, 200), "A user's devices, subscriptions, inbox and sessions.", link(context.to("users"), "All users"),
    link(context.to("deliveries", { user }), "Deliveries"), link(context.to("explain", { user }), "Explain")), places);
  await Promise.all(Object.values(parts).map((part, index) => {
    const again = () => load(places[index], () => part(context, user, again), signal);
    return again();
  }));
}

const quiet = ({ quietHours }) => (quietHours ? `${quietHours.from} to ${quietHours.until}, ${quietHours.timeZone}` : "");

async function devices({ relay, base, signal, mayChange }, user, again) {
  const { rows } = await relay.list(`${base}/devices`, { user }, "devices", signal);
  const forget = (row) => ask({
    title: `Forget ${row.deviceID}?`, word: "Forget",
    says: `This device of ${user} gets no more pushes until its application registers it again. Waiting pushes become dead letters.`,
    act: async () => {
      await relay.call("DELETE", `${base}/devices/${encodeURIComponent(row.deviceID)}`, { query: { user } });
      tell("The device is forgotten.");
      await again();
    },
  });
  return section(counted(rows.length, "device"), rows.length ? table({
    label: "Devices", rows, columns: [
      { title: "Device", value: (row) => row.deviceID }, { title: "Gateway", value: (row) => (row.gateway === "apns" ? `APNs ${row.apnsEnvironment}` : row.gateway) },
      { title: "Topic", value: (row) => row.topic ?? "" }, { title: "Token", value: (row) => row.apnsToken, cell: (row) => code(row.apnsToken) },
      { title: "Registered", value: (row) => row.registeredAt, cell: (row) => when(row.registeredAt) },
      { title: "Quiet hours", value: quiet }, { title: "Held back", align: "end", value: (row) => row.held ?? 0, cell: (row) => (row.held ? badge(count(row.held), "warn") : "–") },
      ...(mayChange ? [{ title: "", cell: (row) => button("Forget", () => forget(row), { kind: "small quiet", "aria-label": `Forget ${row.deviceID}` }) }] : []),
    ],
  }) : h("p", { class: "dim" }, "None: this user gets no push. The application registers a device with tokens/register."));
}

/** Returns what a subscription watches, in one line. */
export function watches(one) {
  return one.query?.canonicalPredicate || (one.subscriptionType === "zone" ? (one.zoneWide ? "the whole database" : `zone ${one.zoneID?.zoneName ?? one.zoneID ?? ""}`) : "every record");
}

/** Returns the health of a subscription in one word. */
function healthOf({ disabled, health }) {
  if (disabled) return badge("disabled", "bad");
  if (!health) return "–";
  if (health.errors) return badge(counted(health.errors.count, "error"), "warn");
  if (health.undelivered) return badge(`${count(health.undelivered.count)} not delivered`, "warn");
  return health.fired ? badge(`fired ${count(health.fired)}`, "good") : badge("never fired");
}

/** Returns the health of a subscription in full. */
function healthFacts({ health }) {
  const last = (event, more) => event && h("span", null, when(event.at), more && [": ", said(more, 400)]);
  return facts(["Fired", `${count(health.fired)} times`], ["Last fired", last(health.lastFired)],
    health.errors && ["Errors of its condition", count(health.errors.count)], health.errors && ["Last error", last(health.errors.last, health.errors.last?.says)],
    health.unreached && ["Reached no device", count(health.unreached.count)], health.unreached && ["Last time it reached no device", last(health.unreached.last, health.unreached.last?.says)],
    health.undelivered && ["Not delivered", count(health.undelivered.count)], health.undelivered && ["Last not delivered", last(health.undelivered.last, health.undelivered.last?.reason)]);
}

/** Returns the parameters that name a subscription; another database may have one of the same name. */
const asked = ({ subscriptionID: subscription, database }, user) => ({ subscription, user, database });

async function subscriptions(context, user, again) {
  const { relay, base, signal, mayChange } = context;
  const list = await relay.list(`${base}/subscriptions`, { user }, "subscriptions", signal);
  const { rows } = list;
  const remove = (row) => ask({
    title: `Delete ${row.subscriptionID}?`, word: "Delete",
    says: `${user} no longer gets its pushes. The application can save it again; pushes for changes until then are not sent later.`,
    act: async () => {
      await relay.call("DELETE", `${base}${path`/subscriptions/${row.database}/${user}/${row.subscriptionID}`}`);
      tell("The subscription is deleted.");
      await again();
    },
  });
  const open = (row) => dialog(row.subscriptionID, (close) => h("div", { class: "stack" }, row.disabled && h("p", null, badge("disabled", "bad"), " ", said(row.disabled.reason, 400)),
    row.health && section("Health", healthFacts(row)), json(row, "subscription"), h("div", { class: "actions end" },
      link(context.to("explain", asked(row, user)), "What fired it?"), link(context.to("rehearse", asked(row, user)), "Rehearse a changed version"),
      button("Close", () => close()))), { wide: true });
  return section(counted(rows.length, "subscription"), rows.length ? table({
    label: "Subscriptions", ...list, columns: [
      { title: "Subscription", value: (row) => row.subscriptionID, cell: (row) => button(said(row.subscriptionID, 50), () => open(row), { kind: "link" }) },
      { title: "Database", value: (row) => row.database }, { title: "Record type", value: (row) => row.query?.recordType ?? row.recordType ?? "" },
      { title: "Watches", value: watches, cell: (row) => code(watches(row), 70) }, { title: "Fires on", value: (row) => (row.firesOn ?? []).join(", ") },
      { title: "Health", value: (row) => row.disabled?.reason ?? row.health ?? "", cell: healthOf },
      { title: "Held back", align: "end", value: (row) => row.held ?? 0, cell: (row) => (row.held ? badge(count(row.held), "warn") : "–") },
      { title: "", cell: (row) => link(context.to("explain", asked(row, user)), "Explain") },
      ...(mayChange ? [{ title: "", cell: (row) => button("Delete", () => remove(row), { kind: "small quiet", "aria-label": `Delete ${row.subscriptionID}` }) }] : []),
    ],
  }) : h("p", { class: "dim" }, "None. The application saves them with subscriptions/modify; ", link(context.to("rehearse", { user }), "rehearse one"), " before."));
}

async function inbox(context, user) {
  const { relay, base, signal } = context;
  const list = await relay.list(`${base}/notifications/${encodeURIComponent(user)}`, {}, "notifications", signal);
  const { rows, hasMore } = list;
  if (!rows.length) return section("Inbox", h("p", { class: "dim" }, "Empty. Notifications are kept only if the container's setting keepsInbox is on."));
  return section(`Inbox, ${counted(rows.length, "notification")}${hasMore ? " and more" : ""}`, table({
    label: "Inbox", ...list, columns: [
      { title: "Created", value: (row) => row.createdAt, cell: (row) => when(row.createdAt) }, { title: "Subscription", value: (row) => row.subscriptionID },
      { title: "Type", value: (row) => row.notificationType }, { title: "Read", value: (row) => row.readAt ?? "", cell: (row) => when(row.readAt) },
      { title: "Notification", value: (row) => row.notificationID, cell: (row) => button("Open", () => dialog("Notification", () => json(row, "notification"), { wide: true }), { kind: "small quiet" }) },
      { title: "", cell: (row) => link(context.to("explain", { position: row.position, user, subscription: row.subscriptionID }), "Why?") },
    ],
  }));
}

async function sessions({ relay, base, signal, mayChange }, user, again) {
  const { sessions: rows } = await relay.get(`${base}/sessions`, { user, limit: 1000 }, signal);
  if (!rows.length) return null;
  const end = button("End all", () => ask({
    title: `End every session of ${user}?`, word: "End them", says: "Tokens of these sessions are refused from now on; the user has to sign in again. Devices stay registered.",
    act: async () => {
      const { revoked } = await relay.call("DELETE", `${base}/sessions/${encodeURIComponent(user)}`);
      tell(`${counted(revoked, "session")} ended.`);
      await again();
    },
  }), { kind: "small" });
  return section(counted(rows.length, "session"), table({
    label: "Sessions", rows, actions: mayChange ? [end] : [], columns: [
      { title: "Session", value: (row) => row.session, cell: (row) => code(row.session, 20) }, { title: "Started", value: (row) => row.startedAt, cell: (row) => when(row.startedAt) },
      { title: "Ends", value: (row) => row.endsAt, cell: (row) => when(row.endsAt) }, { title: "Revoked", value: (row) => row.revokedAt ?? "", cell: (row) => when(row.revokedAt) },
    ],
  }));
}
