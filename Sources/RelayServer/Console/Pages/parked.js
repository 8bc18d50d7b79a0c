// The Parked page: changes that a source sent and that could not be mapped. The user can correct, replay or drop them.
import { code, fill, h, link, said, when } from "./dom.js";
import { ask, button, dialog, empty, field, head, load, problem, tell } from "./parts.js";
import { table } from "./table.js";
import { counted, parseJSON, toJSON } from "./text.js";

export async function show(host, context) {
  const { relay, base, signal, mayChange, params } = context;
  const place = h("div");
  fill(host, head("Parked changes", "Changes that sources sent and that could not be mapped. Fix the source's mapping or the change itself, then replay it: it is appended at the end of the log."), place);
  const look = () => load(place, async () => {
    const list = await relay.list(`${base}/changes/parked`, { limit: 200 }, "parked", signal);
    if (!list.rows.length) {
      return empty("Nothing is parked", "Changes that cannot be mapped are kept here if their source is set to park them.", link(context.to("containers", { tab: "sources" }), "See the sources"));
    }
    const all = table({
      label: "Parked changes", ...list,
      actions: mayChange ? [button("Replay all", () => replayAll(all), { kind: "small primary" })] : [],
      columns: [
        { title: "Number", align: "end", value: (row) => row.number }, { title: "Received", value: (row) => row.receivedAt, cell: (row) => when(row.receivedAt) },
        { title: "Source", value: (row) => row.source, cell: (row) => link(context.to("containers", { tab: "sources", source: row.source }), said(row.source)) },
        { title: "At", value: (row) => row.path, cell: (row) => code(row.path || "–", 40) }, { title: "Reason", value: (row) => row.reason, cell: (row) => said(row.reason, 80) },
        { title: "", cell: (row) => button("Open", () => open(row), { kind: "small", "aria-label": `Open parked change ${row.number}` }) },
      ],
    });
    return all;
  }, signal);

  const replay = (number, body) => relay.post(`${base}/changes/parked/${number}/replay`, body === undefined ? undefined : { body }, signal);
  const done = async (results) => {
    tell(`Replayed: ${(results ?? []).map(({ status, position }) => (position ? `${status} at ${position}` : status)).join(", ") || "no result"}.`);
    context.recount();
    await look();
  };

  function replayAll(rows) {
    const bar = h("progress", { max: rows.rows.length, value: 0, "aria-label": "Replayed" });
    return ask({
      title: `Replay ${counted(rows.rows.length, "parked change")}?`, danger: false, word: "Replay",
      says: h("div", { class: "stack" }, h("p", null, "Each is mapped again with the source's current settings and appended at the end of the log. Changes that still cannot be mapped stay parked."), bar),
      act: async (goesOn) => {
        let taken = 0;
        let first;
        for (const { number } of rows.rows) {
          if (!goesOn()) break;
          try {
            await replay(number);
            taken += 1;
          } catch (error) {
            if (!error.status || error.status === 401 || error.status === 403) throw error;
            first ??= error;
          }
          bar.value += 1;
        }
        tell(`${counted(taken, "change")} replayed${first ? `; others stay parked: ${first.message}` : ""}.`, first ? "bad" : "note");
        context.recount();
        await look();
      },
    });
  }

  function open(row) {
    return dialog(`Parked change ${row.number}`, (close) => {
      const text = toJSON(row.body, 2);
      const area = h("textarea", { rows: 14, spellcheck: "false", readonly: !mayChange, props: { value: text } });
      const trouble = h("div");
      const act = async () => {
        try {
          const isMended = area.value !== text;
          const { results } = await replay(row.number, isMended ? parseJSON(area.value) : undefined);
          close();
          await done(results);
        } catch (error) {
          fill(trouble, problem(error));
        }
      };
      return h("div", { class: "stack" }, h("p", null, row.path && [code(row.path), ": "], said(row.reason, 600)),
        field("What was received", area, mayChange ? "Fix it here, or fix the source's mapping and replay it unchanged." : undefined), trouble,
        h("div", { class: "actions end" }, mayChange && button("Drop", () => {
          close();
          return ask({
            title: `Drop parked change ${row.number}?`, word: "Drop", says: "It is deleted permanently and never becomes a change.",
            act: async () => {
              await relay.call("DELETE", `${base}/changes/parked/${row.number}`);
              tell("Dropped.");
              context.recount();
              await look();
            },
          });
        }), button("Close", () => close()), mayChange && button("Replay", act, { kind: "primary" })));
    }, { wide: true });
  }
  await look();
  if (params.number) {
    const row = host.querySelector("data-table")?.rows.find(({ number }) => String(number) === params.number);
    if (row) open(row);
  }
}
