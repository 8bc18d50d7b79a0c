// The Send page: sends a change from a form or JSON, shows its outcome, and the same as a shell command.
import { code, fill, h, link, said } from "./dom.js";
import { curlOf, kinds, shownAs, valueOf } from "./drafts.js";
import { changeField, explanation } from "./explain.js";
import { badge, button, choice, empty, field, head, input, load, section, snippet, suggested } from "./parts.js";
import { counted, parseJSON, toJSON } from "./text.js";

export async function show(host, context) {
  const { relay, base, signal, params, mayChange } = context;
  const { sources } = await relay.get(`${base}/sources`, {}, signal);
  const own = sources.filter(({ preset }) => preset === "belfry");
  const top = head("Send a change", "Send a change by hand, as your database would post it, and see what it fires.");
  if (!sources.length) {
    fill(host, top, empty("No change source yet", "A change source may post changes to this container: your database, or your own program.",
      mayChange && link(context.to("containers", { tab: "sources", new: 1 }), "Create a source")));
    return;
  }
  const source = choice("source", sources.map(({ name, preset }) => [name, `${name} (${preset})`]), params.source ?? own[0]?.name);
  const presetOf = () => sources.find(({ name }) => name === source.value)?.preset;
  const form = new ChangeForm(context);
  const area = h("textarea", { rows: 12, spellcheck: "false", id: "body", "aria-describedby": "body-hint" });
  const isJSON = () => params.as === "json" || presetOf() !== "belfry";
  const place = h("div", { class: "stack", "aria-live": "polite" });
  const line = h("div");
  const editor = h("div", { class: "stack" });
  const trouble = h("p", { class: "hint", role: "status" });
  const tabs = h("div", { class: "actions" });

  const body = () => (isJSON() ? parseJSON(area.value) : form.change());
  const refresh = () => {
    try {
      const text = toJSON(body());
      fill(trouble);
      fill(line, snippet(curlOf(sources.find(({ name }) => name === source.value), text), "the same as a shell command"));
    } catch (error) {
      fill(trouble, badge("not yet", "warn"), " ", said(error.message, 300));
      fill(line);
    }
  };
  const layout = () => {
    fill(editor, isJSON() ? field(presetOf() === "belfry" ? "The change, or an array of changes" : `What ${presetOf()} posts`, area) : form.element);
    fill(tabs, ["form", "json"].map((kind) => h("button", {
      type: "button", class: "small", "aria-pressed": String((kind === "json") === isJSON()), disabled: kind === "form" && presetOf() !== "belfry",
      onclick: () => {
        if (kind === "json" && !isJSON()) {
          try {
            area.value = toJSON(form.change(), 2);
          } catch {}
        }
        context.keep({ as: kind });
        layout();
      },
    }, kind === "json" ? "As JSON" : "As a form")));
    if (isJSON() && !area.value && presetOf() === "belfry") area.value = toJSON({ operation: "create", recordType: "Artwork", recordName: "artwork-1", after: { title: "Nocturne", price: 120 } }, 2);
    refresh();
  };
  source.addEventListener("change", () => {
    context.keep({ source: source.value });
    layout();
  });
  editor.addEventListener("input", refresh);
  editor.addEventListener("click", () => setTimeout(refresh));
  fill(host, top, section("The change", h("div", { class: "grid" }, field("As the source", source), h("div", { class: "field" }, h("span", { class: "small dim" }, "Written"), tabs)), editor, trouble,
    h("div", { class: "actions" }, mayChange ? button("Send", () => send(), { kind: "primary" }) : h("p", { class: "dim" }, "A reader may not send changes; the command below works for anybody who has the source's secret."))),
  place, section("The same as a shell command", line));
  layout();

  async function send() {
    let value;
    try {
      value = body();
    } catch (error) {
      fill(trouble, badge("not yet", "bad"), " ", said(error.message, 300));
      return;
    }
    await load(place, async () => {
      const { results } = await relay.post(`${base}/sources/${encodeURIComponent(source.value)}/send`, value, signal);
      context.recount();
      return section("What happened to it", h("ul", { class: "stack" }, results.map((result) => new Outcome(result, context).element)));
    }, signal);
  }
}

// MARK: The form

class ChangeForm {
  rows = [];

  constructor(context) {
    const { params } = context;
    this.operation = choice("operation", ["create", "update", "delete"], params.operation);
    this.recordType = suggested("recordType", params.recordType ?? "", [], { required: true });
    this.recordName = input("recordName", params.recordName ?? `trial-${Date.now().toString(36).slice(-4)}`, { required: true });
    this.database = choice("database", ["public", "private", "shared"]);
    this.owner = input("owner", "");
    this.zone = input("zone", "", { placeholder: "_defaultZone" });
    this.device = input("device", "");
    this.user = input("user", "");
    this.list = h("div", { class: "stack" });
    this.fieldsOf = new Map();
    context.relay.get(`${context.base}/schema`, {}, context.signal).then(({ recordTypes }) => {
      this.recordType.suggest(recordTypes.map(({ name }) => name));
      this.fieldsOf = new Map(recordTypes.map(({ name, fields }) => [name, fields]));
      if (!this.recordType.value && recordTypes.length) this.recordType.value = recordTypes[0].name;
      if (!this.rows.length) this.#propose();
      this.element.dispatchEvent(new Event("input", { bubbles: true }));
    }).catch(() => this.#add());
    this.recordType.addEventListener("change", () => this.rows.every(({ value }) => !value.value) && this.#propose());
    const add = button("Add a field", () => this.#add(), { kind: "small" });
    const pick = context.session.container && !context.base ? null : changeField(context, (row) => this.take(row.change));
    this.element = h("form", { class: "stack", onsubmit: (event) => event.preventDefault() },
      h("div", { class: "grid" }, field("What happened", this.operation), field("Record type", this.recordType), field("Record name", this.recordName), pick),
      h("fieldset", { class: "fieldset" }, h("legend", { class: "small dim" }, "Fields after the change"), this.list, h("div", null, add)),
      h("details", null, h("summary", null, "Its place and its author"), h("div", { class: "grid" }, field("Database", this.database),
        field("Owner", this.owner, "Required unless the database is public."), field("Zone", this.zone), field("Made on the device", this.device, "This device gets no push for the change."), field("Made by the user", this.user))));
  }

  #propose() {
    this.rows = [];
    fill(this.list);
    const kindOf = { INT64: "number", DOUBLE: "number", TIMESTAMP: "date", REFERENCE: "reference", LOCATION: "place", STRING: "text" };
    for (const { name, type } of (this.fieldsOf.get(this.recordType.value) ?? []).filter(({ name }) => !name.startsWith("___")).slice(0, 12)) this.#add(name, kindOf[type] ?? "JSON");
    if (!this.rows.length) this.#add();
  }

  #add(name = "", kind = "text", text = "") {
    const row = { name: input("", name, { placeholder: "field", "aria-label": "Field" }), kind: choice("", kinds, kind, { "aria-label": "Kind" }), value: input("", text, { placeholder: "value", "aria-label": "Value" }) };
    row.element = h("div", { class: "fields-row" }, row.name, row.kind, row.value, button("Remove", () => {
      row.element.remove();
      this.rows = this.rows.filter((other) => other !== row);
    }, { kind: "small quiet" }));
    this.rows.push(row);
    this.list.append(row.element);
  }

  /** Fills the form from a change of the log. */
  take(change) {
    this.operation.value = "update";
    this.recordType.value = change.type;
    this.recordName.value = change.name;
    this.database.value = change.db ?? "public";
    this.owner.value = change.owner ?? "";
    this.taken = change.zone;
    this.zone.value = change.zone?.zoneName ?? "";
    this.rows = [];
    fill(this.list);
    const fields = Object.values(change.after ?? change.before ?? {})[0] ?? {};
    for (const [name, value] of Object.entries(fields)) this.#add(name, ...shownAs(value));
    if (!this.rows.length) this.#add();
    this.element.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Returns the change, in the relay's own format. */
  change() {
    const typed = this.recordType.value;
    const recordType = this.fieldsOf.has(typed) ? typed : typed.trim();
    const recordName = this.recordName.value;
    if (!recordType || !recordName) throw new Error("Enter the record's type and name.");
    const change = { operation: this.operation.value, recordType, recordName };
    if (this.database.value !== "public") change.database = this.database.value;
    if (this.owner.value) change.owner = this.owner.value;
    // The zone of another user has an owner, which the input does not show.
    if (this.zone.value) change.zoneID = this.zone.value === this.taken?.zoneName ? this.taken : this.zone.value;
    const origin = { ...(this.device.value && { deviceID: this.device.value }), ...(this.user.value && { userRecordName: this.user.value }) };
    if (Object.keys(origin).length) change.origin = origin;
    if (change.operation !== "delete") {
      // A proposed field without a value is left out; an empty text must be given as JSON: "".
      change.after = Object.fromEntries(this.rows.filter(({ name, value }) => name.value && value.value !== "").map(({ name, kind, value }) => [name.value, valueOf(kind.value, value.value)]));
    }
    return change;
  }
}

// MARK: What comes of it

/** The number of users in one call, and the number after which the user must ask for more. */
const [usersAtOnce, usersPerLook] = [20, 100];

const tones = { appended: "good", duplicate: "note", stale: "warn", parked: "warn", refused: "bad", conflict: "bad", ignored: "note" };

/** One result, with what the change fired as soon as that is known. */
class Outcome {
  constructor({ status, position, reason, path, number }, context) {
    this.context = context;
    this.fired = h("div", { class: "stack" });
    this.element = h("li", { class: "stack" }, h("div", { class: "row" }, badge(status, tones[status]), position && h("span", null, "at position ", code(position)), path && code(path), reason && said(reason, 400),
      number !== undefined && link(context.to("parked"), `parked as ${number}`), status === "appended" && link(context.to("tail"), "See it in the tail")), this.fired);
    if (status === "appended") this.watch(position);
  }

  async watch(position) {
    const { relay, base, signal } = this.context;
    const state = h("div", { class: "row" });
    const found = h("div", { class: "stack" });
    fill(this.fired, state, found);
    fill(state, h("p", { class: "dim" }, "Waiting for what it fires …"));
    try {
      const list = await relay.list(`${base}/users`, { limit: usersAtOnce }, "users", signal);
      await this.look(position, list, { state, found, near: [], asked: 0, fired: 0 });
    } catch (error) {
      if (!signal.aborted) fill(state, h("p", { class: "dim" }, said(error.message, 300)));
    }
  }

  /** Asks for the outcome of the change for pages of users, about a hundred users at a time. */
  async look(position, page, so) {
    const { signal } = this.context;
    const end = so.asked + usersPerLook;
    if (!so.fired) fill(so.found);
    for (;;) {
      const users = page.rows.filter(({ subscriptions }) => subscriptions > 0);
      for (const one of await this.explained(position, users, so.asked === 0)) {
        if (one.verdict === "fired") {
          so.fired += 1;
          so.found.append(explanation(one, this.context));
        } else if (one.missedBy === 1 && so.near.length < 5) so.near.push(one);
      }
      so.asked += users.length;
      if (signal.aborted || !page.hasMore || so.asked >= end) break;
      fill(so.state, h("p", { class: "dim" }, `Asked about ${counted(so.asked, "user")} with subscriptions, continuing …`));
      page = { ...(await page.more()), more: page.more };
    }
    const sentence = so.asked ? `It fired ${so.fired || "no"} ${so.fired === 1 ? "subscription" : "subscriptions"} of ${counted(so.asked, "user")}.` : "No user has a subscription yet.";
    fill(so.state, h("p", null, sentence, page.hasMore && " There are more users."), page.hasMore && button("Ask about more", async () => {
      await this.look(position, { ...(await page.more()), more: page.more }, so);
    }, { kind: "small" }));
    if (!so.fired) fill(so.found, so.near.map((one) => explanation(one, this.context)));
  }

  /** Returns the outcome of the change for these users. The walk takes milliseconds, so a call that is too early is repeated. */
  async explained(position, users, isFirst) {
    const { relay, base, signal } = this.context;
    let answers = [];
    for (const wait of isFirst ? [150, 400, 1200] : [0, 400]) {
      if (wait) await new Promise((resolve) => setTimeout(resolve, wait));
      answers = await Promise.all(users.map(({ userRecordName }) =>
        relay.get(`${base}/explain`, { position, user: userRecordName }, signal).catch((error) => {
          if (signal.aborted) throw error;
          return { explanations: [] };
        })));
      if (!answers.some(({ explanations }) => explanations.some(({ devices }) => devices?.some(({ standing }) => standing === "owed")))) break;
    }
    return answers.flatMap(({ explanations }) => explanations);
  }
}
