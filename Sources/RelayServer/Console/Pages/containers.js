// The Containers page: keys, sources with the setup of their senders, the gateway, schema, limits.
import { code, fill, h, link, said, when } from "./dom.js";
import { haltLine } from "./now.js";
import { ask, askFor, badge, button, choice, copyButton, dialog, empty, facts, field, folded, head, input, json, load, section, snippet, tell } from "./parts.js";
import { path } from "./route.js";
import { table } from "./table.js";
import { bytes, count, counted, followed, measure, parseJSON, span, taken, toJSON, words } from "./text.js";

const presets = ["belfry", "airtable", "appwrite", "cloudevents", "cloudkit", "custom", "debezium", "directus", "dynamodb", "hasura", "minapp", "mongodb", "parse", "postgres", "strapi", "supabase", "wal2json"];
const tabs = { sources: "Sources", keys: "Keys", gateway: "Gateway", schema: "Schema", limits: "Limits and retention" };

/** Shows what to do if there is no container. */
export function noContainer(context) {
  return h("div", { class: "page" }, head("Welcome to Belfry"), empty("No container yet", "A container holds one application's data and settings: who may call, what posts changes, and which credential sends pushes. Its name is as in CloudKit.",
    context.isMain ? button("Create a container", () => create(context), { kind: "primary" }) : "Only the holder of the configuration's token can create one."));
}

function create(context) {
  return askFor({
    title: "Create a container", word: "Create", fields: [
      field("Name", input("container", "iCloud.com.example.Art", { required: true })), field("Environment", choice("environment", ["development", "production"])),
      field("Topics", input("topics", "com.example.Art", { required: true }), "The application's bundle IDs, separated by commas."),
    ],
    act: async ({ container, environment, topics }) => {
      await context.relay.call("PUT", path`/admin/1/containers/${container}/${environment}`, { body: { topics: listOf(topics) } });
      await context.reread();
      context.go("containers", { container, environment, tab: "keys" });
    },
  });
}

const listOf = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

export async function show(host, context) {
  const { current, params, signal, isMain } = context;
  if (!current) return void fill(host, noContainer(context));
  const tab = Object.hasOwn(tabs, params.tab ?? "") ? params.tab : "sources";
  const place = h("div", { class: "stack" });
  fill(host, head(said(current.container, 100), `${current.environment}. Who may call, what posts changes, and which credential sends pushes.`, isMain && button("Create another", () => create(context))),
    h("nav", { class: "tabs", "aria-label": "Parts" }, Object.entries(tabs).map(([name, title]) => h("a", { href: context.to("containers", { tab: name }), "aria-current": name === tab ? "page" : undefined }, title))), place);
  const again = () => load(place, () => ({ sources, keys, gateway, schema, limits })[tab](context, again), signal);
  await again();
}

// MARK: Sources

async function sources(context, again) {
  const { relay, base, signal, params, mayChange } = context;
  const [{ sources: rows }, { refusals }] = await Promise.all([relay.get(`${base}/sources`, {}, signal), relay.get(`${base}/refusedWebhooks`, {}, signal)]);
  const add = mayChange && button("Add a source", () => setSource(context, again, undefined, rows), { kind: "small primary" });
  if (!rows.length) return empty("No source yet", "A source posts changes: your database, something that follows it, or your own program.", mayChange && button("Add a source", () => setSource(context, again), { kind: "primary" }));
  const opened = params.source ?? (rows.length === 1 ? rows[0].name : undefined);
  const detail = h("div", { class: "stack" });
  if (opened) load(detail, () => sourceDetail(context, opened, again), signal);
  return [section(counted(rows.length, "source"), table({
    label: "Sources", rows, actions: [add], columns: [
      { title: "Source", value: (row) => row.name, cell: (row) => link(context.to("containers", { tab: "sources", source: row.name }), said(row.name)) },
      { title: "Preset", value: (row) => row.preset }, { title: "Verified by", value: (row) => row.verification?.scheme },
      { title: "Database", value: (row) => row.following?.state ?? "", cell: (row) => (row.following ? standing(row.following) : "–") },
      { title: "Accepted", align: "end", value: (row) => row.webhooks.accepted, cell: (row) => count(row.webhooks.accepted) },
      { title: "Refused", align: "end", value: (row) => row.webhooks.refused, cell: (row) => (row.webhooks.refused ? badge(count(row.webhooks.refused), "warn") : "0") },
      { title: "Last accepted", value: (row) => row.webhooks.lastAccepted ?? "", cell: (row) => when(row.webhooks.lastAccepted) }, { title: "If unmappable", value: (row) => row.onUnmappable },
    ],
  })), detail, refusals.length > 0 && section("Recently refused webhooks", table({
    label: "Refused webhooks", rows: refusals, columns: [
      { title: "When", value: (row) => row.at, cell: (row) => when(row.at) }, { title: "Source", value: (row) => row.source }, { title: "Status", align: "end", value: (row) => row.status },
      { title: "Reason", value: (row) => row.reason, cell: (row) => said(row.reason, 120) }, { title: "From", value: (row) => row.address ?? "" }, { title: "Request", value: (row) => row.requestID, cell: (row) => code(row.requestID, 13) },
    ],
  }))];
}

function standing(following) {
  const { word, tone } = followed(following);
  return badge(word, tone);
}

async function sourceDetail(context, name, again) {
  const { relay, base, signal, mayChange } = context;
  const target = `${base}/sources/${encodeURIComponent(name)}`;
  const read = () => relay.get(target, {}, signal);
  const one = await read();
  const { sender, url, webhooks, savedAt, following, ...definition } = one;
  return section(h("span", null, "Source ", said(name)), following && [h("h3", null, "Its database"), h("p", null, standing(following), following.since && [" since ", when(following.since), ":"], " ", said(following.sentence, 1000))],
  h("h3", null, "It posts to"), snippet(url, "the URL"), facts(["Preset", one.preset], ["Verified by", words(one.verification?.scheme)], ["Saved", when(savedAt)],
    ["Webhooks", `${count(webhooks.accepted)} accepted, ${count(webhooks.refused)} refused`]),
  sender?.setup && [h("h3", null, "The sender's settings"), snippet(sender.setup, "the sender's settings")], sender?.trial && [h("h3", null, "A change to test it with"), snippet(sender.trial, "a change to test")],
  folded("Its definition", () => json(definition, "definition")),
  h("div", { class: "actions" }, link(context.to("send", { source: name }), "Send a change as this source"), mayChange && [button("Change", async () => setSource(context, again, await read()), { kind: "small" }),
    button("New secret", () => rotate(), { kind: "small" }), button("Delete", () => remove(), { kind: "small" })]));

  function rotate() {
    return askFor({
      title: `New secret for ${name}`, says: "The old secret is accepted for a while, so that you can change the sender without losing webhooks.", word: "Create it",
      fields: field("The old one is accepted for", choice("graceSeconds", [["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"], ["0", "no longer"]], "86400")),
      act: async ({ graceSeconds }) => {
        const answer = await relay.post(`${target}/rotate`, { graceSeconds: Number(graceSeconds) });
        setTimeout(() => secret(answer, again));
      },
    });
  }

  function remove() {
    return ask({
      title: `Delete the source ${name}?`, word: "Delete", says: "Its webhooks are refused from now on. Changes that it posted stay in the log; its parked changes can no longer be replayed.",
      act: async () => {
        const { left } = await relay.call("DELETE", target);
        tell("The source is deleted.");
        const go = () => context.go("containers", { ...context.current, tab: "sources" });
        // What the server keeps for a follower grows until somebody removes it, so the user is told.
        setTimeout(() => (left ? remains(left, go) : go()));
      },
    });
  }
}

function setSource(context, again, former, rows = []) {
  const { relay, base } = context;
  const name = input("name", former?.name ?? (taken("database", rows) ? "" : "database"), { required: true, readonly: Boolean(former) });
  const preset = choice("preset", former ? [former.preset] : presets, former?.preset ?? "belfry");
  const definition = former && toJSON({ onUnmappable: former.onUnmappable, mapping: former.mapping, maximumBodyBytes: former.maximumBodyBytes, contentWindowSeconds: former.contentWindowSeconds }, 2);
  return askFor({
    title: former ? `Change ${former.name}` : "Add a source", wide: Boolean(former), word: former ? "Save" : "Add", fields: [h("div", { class: "grid" }, field("Name", name, "It becomes part of the URL to which the source posts."), field("Preset", preset, "The format of what it posts.")),
      former ? field("Settings", h("textarea", { name: "definition", rows: 14, spellcheck: "false", props: { value: definition } }), "Members that you leave out stay as they are, and so do secrets.")
        : field("Changes that cannot be mapped", choice("onUnmappable", [["", "as in the preset"], ["reject", "are refused"], ["park", "are parked"]]))],
    act: async (values) => {
      // The call would change an existing source of this name and keep its secret.
      const trouble = !former && taken(values.name, rows);
      if (trouble) throw new Error(trouble);
      const body = former ? parseJSON(values.definition) : { preset: values.preset, ...(values.onUnmappable && { onUnmappable: values.onUnmappable }) };
      const answer = await relay.call("PUT", `${base}/sources/${encodeURIComponent(values.name)}`, { body });
      const after = answer.secret ? () => context.go("containers", { ...context.current, tab: "sources", source: values.name }) : again;
      const rest = () => (answer.left ? remains(answer.left, after, "Saved; one more step is needed") : after());
      setTimeout(() => (answer.secret ? secret(answer, rest) : rest()));
    },
  });
}

/** Shows what the user must do elsewhere. */
async function remains(left, after, title = "The source is deleted; one more step is needed") {
  await dialog(title, (close) => h("div", { class: "stack" }, h("p", null, said(left, 1000)), copyButton("Copy", () => left, { name: "Copy the remaining step" }),
    h("div", { class: "actions end" }, button("Close", () => close(), { kind: "primary" }))), { once: true });
  await after();
}

/** Shows a new secret; the relay never shows it again. */
async function secret({ secret: text, sender, id }, after) {
  await dialog("Copy it now: it is not shown again", (close) => h("div", { class: "stack" }, id && facts(["ID", code(id)]), snippet(text, "the secret"), sender?.setup && [h("h3", null, "The sender's settings"), snippet(sender.setup, "the sender's settings")],
    sender?.trial && [h("h3", null, "A change to test it with"), snippet(sender.trial, "a change to test")], h("div", { class: "actions end" }, button("I have it", () => close(), { kind: "primary" }))), { wide: Boolean(sender), once: true });
  await after();
}

// MARK: Keys

const kinds = { apiToken: "API token: an application's clients", bearer: "bearer key: your servers, for users", serverToServer: "server-to-server key: CloudKit's signature" };

async function keys(context, again) {
  const { relay, base, signal, mayChange } = context;
  const { keys: rows } = await relay.get(`${base}/keys`, {}, signal);
  const add = () => {
    const publicKey = h("textarea", { name: "publicKey", rows: 4, spellcheck: "false" });
    const place = field("Public key", publicKey, "PEM of an ECDSA P-256 key.");
    place.hidden = true;
    const kind = choice("kind", Object.entries(kinds), "apiToken", { onchange: () => (place.hidden = kind.value !== "serverToServer") });
    return askFor({
      title: "Create a key", word: "Create", fields: [field("Kind", kind), field("Label", input("label", "", { required: true }), "For your own use: what the key is for."), place],
      act: async (values) => {
        const answer = await relay.post(`${base}/keys`, { kind: values.kind, label: values.label, ...(values.kind === "serverToServer" && { publicKey: values.publicKey }) });
        setTimeout(() => (answer.secret ? secret(answer, again) : again()));
      },
    });
  };
  const revoke = (row) => ask({
    title: `Revoke ${row.label || row.id}?`, word: "Revoke", says: "Calls with this key are refused from now on. This cannot be undone.",
    act: async () => {
      await relay.call("DELETE", `${base}/keys/${encodeURIComponent(row.id)}`);
      tell("The key is revoked.");
      await again();
    },
  });
  if (!rows.length) return empty("No key yet", "Applications call with an API token, servers with their own key.", mayChange && button("Create a key", add, { kind: "primary" }));
  return section(counted(rows.length, "key"), table({
    label: "Keys", rows, actions: mayChange ? [button("Create a key", add, { kind: "small primary" })] : [], columns: [
      { title: "Label", value: (row) => row.label }, { title: "Kind", value: (row) => row.kind, cell: (row) => words(row.kind) }, { title: "ID", value: (row) => row.id, cell: (row) => code(row.id, 40) },
      { title: "Created", value: (row) => row.createdAt, cell: (row) => when(row.createdAt) }, { title: "Revoked", value: (row) => row.revokedAt ?? "", cell: (row) => (row.revokedAt ? badge("revoked") : "–") },
      ...(mayChange ? [{ title: "", cell: (row) => !row.revokedAt && button("Revoke", () => revoke(row), { kind: "small quiet", "aria-label": `Revoke ${row.label || row.id}` }) }] : []),
    ],
  }));
}

// MARK: Gateway

async function gateway(context, again) {
  const { relay, base, signal, mayChange } = context;
  const summary = await relay.get(`${base}/summary`, {}, signal);
  const { settings, credential, canSend, gateway: answers, halts } = summary;
  const days = credential?.expiresAt ? Math.floor((new Date(credential.expiresAt) - Date.now()) / 86_400_000) : undefined;
  const set = () => askFor({
    title: "Set the signing key of APNs", word: "Save", says: "The relay keeps the key and never shows it again. Pushes that wait for it are sent at once.", fields: [
      field("Team ID", input("teamID", settings.apns?.teamID, { required: true })), field("Key ID", input("keyID", settings.apns?.keyID, { required: true })),
      field("Private key", h("textarea", { name: "privateKey", required: true, rows: 6, spellcheck: "false" }), "The .p8 file that Apple gave you."),
    ],
    act: async (apns) => {
      await relay.call("PATCH", base, { body: { apns } });
      tell("The credential is saved.");
      await again();
    },
  });
  return [halts.length > 0 && section(counted(halts.length, "halt"), h("ul", { class: "stack" }, halts.map((halt) => haltLine(halt, { ...context, recount: again })))),
    section("Credential", facts(["Can send", badge(words(canSend), { yes: "good", no: "bad", noCredential: "warn" }[canSend] ?? "note")], ["Kind", credential ? { key: "signing key (.p8)", certificate: "certificate" }[credential.kind] ?? credential.kind : "none"],
      settings.apns?.keyID && ["Key", code(settings.apns.keyID)], settings.apns?.teamID && ["Team", code(settings.apns.teamID)],
      credential && ["Valid", days === undefined ? "until it is revoked" : h("span", null, "until ", when(credential.expiresAt), " ", badge(days < 0 ? "ended" : `${counted(days, "day")} left`, days < 0 ? "bad" : days < 30 ? "warn" : "good"))],
      ["Topics", settings.topics.join(", ")]), mayChange && h("div", { class: "actions" }, button(credential ? "Replace the key" : "Set the key", set, { kind: credential ? "" : "primary" }))),
    section("The gateway's answers since the relay was started", facts(["Accepted", count(answers.accepted)], ["Refused pushes", count(answers.refused)], ["Refused the container", count(answers.failed)], ["Last accepted", when(answers.lastAccepted)],
      answers.last && ["Last answer", h("span", null, answers.last.status, " ", said(answers.last.reason, 100), " ", when(answers.last.at))]), answers.last?.meaning && h("p", { class: "dim" }, said(answers.last.meaning, 300)))];
}

// MARK: Schema

async function schema(context, again) {
  const { relay, base, signal, mayChange } = context;
  const read = () => Promise.all([relay.get(`${base}/schema`, {}, signal), relay.get(`${base}/schema`, { format: "text" }, signal)]);
  const [found, { text }] = await read();
  const edit = async () => {
    // The page may have been open for hours, so the editor begins with the current schema.
    const [, { text: begun }] = await read();
    const area = h("textarea", { name: "text", rows: 18, spellcheck: "false", props: { value: begun } });
    return askFor({
      title: "The schema, in CloudKit's language", wide: true, fields: field("Schema", area), word: "Review the changes",
      act: async (values) => {
        const [now, { text: latest }] = await read();
        const gone = now.recordTypes.map(({ name }) => name).filter((name) => !new RegExp(`RECORD TYPE "?${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}"?[\\s(]`).test(values.text));
        setTimeout(() => ask({
          title: "Replace the schema with this one?", word: "Replace", danger: gone.length > 0 || latest !== begun,
          says: (latest === begun ? "" : "The schema was changed since you began, by somebody else or by incoming changes; those changes will be lost. ") + (gone.length ? `These record types are no longer in it: ${gone.join(", ")}. Who may read records follows the new schema at once.` : "Conditions of new subscriptions, and who may read records, follow the new schema at once."),
          act: async () => {
            await relay.call("PUT", `${base}/schema`, { body: { text: values.text } });
            tell("The schema is saved.");
            await again();
          },
        }));
      },
    });
  };
  const keep = (row) => relay.post(`${base}/schema/recordTypes/${encodeURIComponent(row.name)}`, { shadow: !row.shadow }).then(() => again());
  if (!found.recordTypes.length) return empty("No schema yet", "The relay learns it from incoming changes, or you can write it in CloudKit's schema language.", mayChange && button("Write it", edit));
  return [section(counted(found.recordTypes.length, "record type"), table({
    label: "Record types", rows: found.recordTypes, actions: mayChange ? [button("Edit", edit, { kind: "small" })] : [], columns: [
      { title: "Record type", value: (row) => row.name }, { title: "Defined by", value: (row) => (row.inferred ? "changes" : "the schema") }, { title: "Fields", value: (row) => row.fields.map(({ name, type }) => `${name} ${type}`).join(", "), cell: (row) => said(row.fields.map(({ name }) => name).join(", "), 90) },
      { title: "Records", value: (row) => (row.shadow ? "kept" : "not kept"), cell: (row) => badge(row.shadow ? "kept" : "not kept") },
      ...(mayChange ? [{ title: "", cell: (row) => button(row.shadow ? "Stop keeping" : "Keep", () => (row.shadow ? ask({ title: `Stop keeping records of ${row.name}?`, word: "Stop", says: "Queries and live results of this type end, and updates no longer have the record before the change unless the source sends it.", act: () => keep(row) }) : keep(row)), { kind: "small quiet" }) }] : []),
    ],
  })), section("In CloudKit's schema language", snippet(text, "the schema"))];
}

// MARK: Limits

async function limits({ relay, base, signal, mayChange, isMain }, again) {
  const { use, settings, retention } = await relay.get(`${base}/summary`, {}, signal);
  const rows = Object.entries(use).filter(([, value]) => typeof value === "object").map(([name, value]) => ({ name, ...value }));
  const shown = (name, value) => (/bytes/i.test(name) ? bytes(value) : count(value));
  const set = async () => {
    const { settings: { quotas = {}, rates = {}, costLimits = {}, expirationSeconds, keepsInbox } } = await relay.get(`${base}/summary`, {}, signal);
    return askFor({
      title: "Set the container's limits", fields: field("Settings", h("textarea", { name: "text", rows: 12, spellcheck: "false", props: { value: toJSON({ quotas, rates, costLimits, expirationSeconds, keepsInbox }, 2) } }),
        "null uses the relay's own limit."), act: async ({ text }) => {
        await relay.call("PATCH", base, { body: parseJSON(text) });
        tell("The settings are saved.");
        await again();
      },
    });
  };
  return [section("Usage and limits", table({
    label: "Limits", rows, actions: mayChange && isMain ? [button("Set limits", set, { kind: "small" })] : [], columns: [
      { title: "Of", value: (row) => row.name, cell: (row) => words(row.name) }, { title: "In use", align: "end", value: (row) => row.use, cell: (row) => shown(row.name, row.use) },
      { title: "Limit", align: "end", value: (row) => row.limit, cell: (row) => shown(row.name, row.limit) },
      { title: "Used", align: "end", value: (row) => row.use / row.limit, cell: (row) => `${measure(row.limit ? (row.use / row.limit) * 100 : 0)} %` },
    ],
  })), retention && section("What is kept and for how long", facts(...Object.entries(retention).map(([name, value]) => [words(name.replace(/Seconds$/, "").replace(/Bytes$/, "AtMost")), typeof value !== "number" ? said(toJSON(value)) : /seconds$/i.test(name) ? span(value) : /bytes$/i.test(name) ? bytes(value) : count(value)]))),
  section("Settings", facts(["A push expires after", span(settings.expirationSeconds)], ["Inbox", settings.keepsInbox ? "kept" : "not kept"], ["Sign-in", settings.userTokens ? "set" : badge("nobody can sign in", "warn")]), folded("All settings", () => json(settings, "settings")))];
}
