// The Access page: the tokens of the administrative surface, and the audit log.
import { code, fill, h, said, when } from "./dom.js";
import { ask, askFor, badge, button, choice, dialog, empty, field, filters, head, input, load, section, snippet, tell } from "./parts.js";
import { table } from "./table.js";
import { counted, fits, tokenStanding } from "./text.js";

export async function show(host, context) {
  await (context.page === "audit" ? showAudit : showTokens)(host, context);
}

// MARK: Tokens

const kinds = { read: "read: can see everything, but change nothing", change: "change: can change what belongs to containers" };

async function showTokens(host, context) {
  const { relay, signal, isMain } = context;
  const place = h("div");
  const again = () => load(place, list, signal);
  const add = () => askFor({
    title: "Create a token", word: "Create", fields: [
      field("Label", input("label", "", { required: true, maxlength: 100 }), "For your own use: who has the token. The audit log shows it."), field("May", choice("access", Object.entries(kinds))),
      field("For", choice("of", [["", "all containers"], ...context.containers.map(({ container, environment }) => [`${container}/${environment}`, `${container}, ${environment}`])])),
      field("Hours", input("hours", "", { type: "number", min: 1, max: 876_000, placeholder: "until it is revoked" })),
    ],
    act: async ({ label, access, of, hours }) => {
      const at = of.lastIndexOf("/");
      const made = await relay.post("/admin/1/tokens", {
        label, access, ...(of && { container: of.slice(0, at), environment: of.slice(at + 1) }), ...(hours && { hours: Number(hours) }),
      });
      setTimeout(() => shown(made).then(again));
    },
  });
  /** Shows a new token; the relay never shows it again. */
  const shown = ({ secret }) => dialog("Copy it now: it is not shown again", (close) => h("div", { class: "stack" }, snippet(secret, "the token"),
    h("div", { class: "actions end" }, button("I have it", () => close(), { kind: "primary" }))), { once: true });
  const revoke = (row) => ask({
    title: `Revoke ${row.label}?`, word: "Revoke", says: "Calls with this token are refused from now on, and its console sessions end. This cannot be undone.",
    act: async () => {
      await relay.call("DELETE", `/admin/1/tokens/${encodeURIComponent(row.id)}`);
      tell("The token is revoked.");
      await again();
    },
  });

  async function list() {
    const { tokens: rows } = await relay.get("/admin/1/tokens", {}, signal);
    if (!rows.length) {
      return empty("No token besides that of the configuration", "Give every person and every program their own token with no more rights than they need: the audit log names each token, and each can be revoked separately.",
        isMain && button("Create a token", add, { kind: "primary" }));
    }
    return section(counted(rows.length, "token"), table({
      label: "Tokens", rows, actions: isMain ? [button("Create a token", add, { kind: "small primary" })] : [], columns: [
        { title: "Label", value: (row) => row.label, cell: (row) => said(row.label, 60) }, { title: "May", value: (row) => row.access },
        { title: "For", value: (row) => (row.container ? `${row.container}, ${row.environment}` : "all containers"), cell: (row) => (row.container ? said(`${row.container}, ${row.environment}`, 60) : "all containers") },
        { title: "Standing", value: (row) => tokenStanding(row), cell: (row) => badge(tokenStanding(row), tokenStanding(row) === "good" ? "good" : "note") },
        { title: "Created", value: (row) => row.createdAt, cell: (row) => when(row.createdAt) }, { title: "Ends", value: (row) => row.endsAt ?? "", cell: (row) => when(row.endsAt) },
        { title: "Revoked", value: (row) => row.revokedAt ?? "", cell: (row) => when(row.revokedAt) }, { title: "ID", value: (row) => row.id, cell: (row) => code(row.id, 40) },
        ...(isMain ? [{ title: "", cell: (row) => tokenStanding(row) === "good" && button("Revoke", () => revoke(row), { kind: "small quiet", "aria-label": `Revoke ${row.label}` }) }] : []),
      ],
    }));
  }

  fill(host, head("Tokens", isMain ? "Who may make administrative calls, besides the holder of the configuration's token."
    : "Who may make administrative calls. Only the holder of the configuration's token can create and revoke these tokens."), place);
  await again();
}

// MARK: The audit log

async function showAudit(host, context) {
  const { relay, signal, params, keep } = context;
  const place = h("div");
  const form = filters((values) => {
    keep(values);
    look();
  }, field("Contains", input("words", params.words, { placeholder: "a caller, a path, a status" })), h("button", null, "Filter"));
  fill(host, head("Audit log", "Administrative calls that changed something or were refused, the newest first. Entries are kept as long as the retention settings say."), form, place);

  const look = () => load(place, async () => {
    const words = params.words ?? "";
    const list = await relay.list("/admin/1/audit", {}, "entries", signal);
    const chosen = (page) => ({ ...page, rows: page.rows.filter((row) => fits(row, words)) });
    if (!list.rows.length) return empty("No entry yet", "A call appears here when it changes something or is refused.");
    const first = chosen(list);
    // This reads further pages until one has a row, so that the table is never empty while there is more.
    const more = async () => {
      for (;;) {
        const next = chosen(await list.more());
        if (next.rows.length || !next.hasMore) return next;
      }
    };
    const { rows, hasMore } = first.rows.length || !first.hasMore ? first : await more();
    if (!rows.length) return empty("No entry matches", "No kept entry contains these words.", button("Show all", () => context.go("audit")));
    return table({
      label: "Audit log", rows, hasMore, more, columns: [
        { title: "When", value: (row) => row.at, cell: (row) => when(row.at) }, { title: "Caller", value: (row) => row.caller, cell: (row) => said(row.caller, 60) },
        { title: "Call", value: (row) => row.method }, { title: "Path", value: (row) => row.path, cell: (row) => code(row.path, 100) },
        { title: "Result", value: (row) => [row.status, row.code].filter(Boolean).join(" "), cell: (row) => (row.status ? badge([row.status, row.code].filter(Boolean).join(" "), row.status < 300 ? "good" : "bad") : badge("not answered", "warn")) },
        { title: "Number", hidden: true, value: (row) => row.id },
      ],
    });
  }, signal);
  await look();
}
