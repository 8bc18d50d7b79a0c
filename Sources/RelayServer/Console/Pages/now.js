// The Now page: the last hour, and what needs attention first.
import { pause } from "./api.js";
import { code, fill, h, link, refill, said, when } from "./dom.js";
import { badge, button, empty, folded, head, problem, section, tell } from "./parts.js";
import { TimePlot } from "./plot.js";
import { address, path } from "./route.js";
import { count, counted, milliseconds, storeSize, visible } from "./text.js";

const each = "/s";
const plots = [
  { title: "Changes", lines: ["changes"], unit: each },
  { title: "Matches", lines: ["matches"], unit: each },
  { title: "Pushes tried", lines: ["pushes"], unit: each },
  { title: "Pushes accepted", lines: ["accepted"], unit: each, tone: "good" },
  { title: "Retries", lines: ["retries"], unit: each, tone: "warn" },
  { title: "Dead letters", lines: ["deadLetters"], unit: each, tone: "bad" },
  { title: "Lag: not settled", lines: ["behind"], form: count },
  { title: "Window: in flight", lines: ["inFlight"], form: count },
  { title: "Waiting", lines: ["waiting"], form: count, tone: "warn" },
  { title: "Gateway's answer, p99", lines: ["latencyMedian", "latencyHigh"], form: milliseconds },
  { title: "Change to yes, p99", lines: ["delayMedian", "delayHigh"], form: milliseconds },
  { title: "Halts", lines: ["halts"], form: count, tone: "bad" },
];

export async function show(host, context) {
  const { session } = context;
  const verdict = h("div", null, h("div", { class: "verdict unknown" }, h("p", { class: "dim" }, "Looking …")));
  // The numbers in the checks always change. A screen reader reads only the verdict, and only if it changes.
  const spoken = h("p", { class: "away", role: "status" });
  const halts = h("div");
  const elements = plots.map((settings) => new TimePlot(settings));
  const grid = h("div", { class: "plots" }, elements);
  const rest = h("div", { class: "stack" });
  const state = h("span", { class: "live", role: "status" }, "…");
  fill(host, head("Now", session.container ? `What ${session.container} is doing, and what needs your attention.`
    : "What the relay is doing, and what needs your attention.", state), h("div", null, verdict, spoken), halts, grid, rest);
  const jobs = [attention(verdict, spoken, context), session.container ? undefined : overview(halts, rest, context)];
  if (!session.container) jobs.push(series(elements, grid, state, context));
  else grid.remove();
  await Promise.all(jobs);
}

/** Repeats `work` while the page is shown, except in a hidden tab. */
function repeat(work, seconds, { signal }, trouble) {
  const round = async () => {
    for (;;) {
      await pause(seconds * 1000, signal);
      if (document.hidden) continue;
      await work().catch(trouble);
    }
  };
  round().catch(() => {});
}

// MARK: What needs attention

async function attention(place, spoken, context) {
  const { relay, signal, session, base } = context;
  const target = session.container ? `${base}/attention` : "/admin/1/attention";
  const look = async () => {
    const found = await relay.get(target, {}, signal);
    const drawn = JSON.stringify(found);
    if (place.drawn === drawn) return;
    place.drawn = drawn;
    refill(place, shown(found, context, place.querySelector("details")?.open));
    const [first] = sorted(found.checks);
    const isFine = found.state === "ok" || !first;
    if (spoken.about === (isFine ? "" : first.check)) return;
    spoken.about = isFine ? "" : first.check;
    spoken.textContent = isFine ? "Nothing needs your attention." : visible(`${first.check}: ${first.text}`);
  };
  await look().catch((error) => {
    if (error.name !== "AbortError") fill(place, problem(error));
  });
  repeat(look, 15, context, () => {});
}

const states = { fail: ["bad", "fails"], warn: ["warn", "look"], ok: ["good", "fine"], unknown: ["note", "unknown"] };

const order = ["fail", "warn", "unknown", "ok"];
const sorted = (checks) => [...checks].sort((one, other) => order.indexOf(one.state) - order.indexOf(other.state));

function shown({ state, checks }, context, isOpen) {
  const all = sorted(checks);
  const [first] = all;
  const isFine = state === "ok" || !first;
  const others = all.filter((check) => check !== first && check.state !== "ok").length;
  const title = isFine ? "Nothing needs your attention." : h("span", null, said(first.check, 120), ": ", said(first.text, 300));
  return h("div", { class: `verdict ${isFine ? "ok" : first.state}` },
    badge(...(isFine ? ["fine", "good"] : [states[first.state]?.[1] ?? first.state, states[first.state]?.[0]])),
    h("p", { class: "verdict-title" }, title), !isFine && next(first, context),
    h("div", { class: "dim small" }, isFine ? counted(checks.length, "check is", "checks are") + " fine."
      : others ? `${counted(others, "more check")} to look at.` : ""),
    h("div", null, folded(`All ${checks.length} checks`, () => h("ul", { class: "checks" }, all.map((check) =>
      h("li", null, badge(states[check.state]?.[1] ?? check.state, states[check.state]?.[0]),
        h("span", null, h("b", null, said(check.check, 120)), " ", said(check.text, 400)),
        check.state !== "ok" && h("div", { class: "next" }, next(check, context))))), { open: isOpen })));
}

function next(check, context) {
  const where = { container: check.container ?? context.container, environment: check.environment ?? context.environment };
  const places = {
    gateway: ["containers", "Open its gateway", { tab: "gateway" }], credential: ["containers", "Open its credential", { tab: "gateway" }],
    source: ["containers", "Open its sources", { tab: "sources", source: check.source }],
    leftovers: ["deadletters", "Open dead letters", {}],
  };
  const [page, word, more] = places[check.kind] ?? [];
  return h("p", { class: "row" }, page && where.container && link(address(page, { ...where, ...more }), word),
    check.kind === "leftovers" && where.container && link(address("parked", where), "Open parked changes"),
    check.next && h("span", { class: "dim small" }, "or run ", code(check.next, 200)));
}

// MARK: The relay's numbers

async function overview(halts, rest, context) {
  const { relay, signal } = context;
  const [containers, numbers] = [h("div"), h("div")];
  fill(rest, containers, numbers);
  /** Draws a part again only if its data changed, so that the user can press and select what does not change. */
  const draw = (place, data, make) => {
    const drawn = JSON.stringify(data);
    if (place.drawn === drawn) return;
    place.drawn = drawn;
    refill(place, make());
  };
  const look = async () => {
    const found = await relay.get("/admin/1/overview", {}, signal);
    if (signal.aborted) return;
    draw(halts, found.halts, () => found.halts.length > 0 && section(found.halts.length === 1 ? "Pushes are halted" : `${found.halts.length} halts`,
      h("ul", { class: "stack" }, found.halts.map((halt) => haltLine(halt, context)))));
    draw(containers, found.containers, () => (found.containers.length ? section("Containers", containersOf(found)) : empty("No container yet",
      "A container holds one application's data and settings: its keys, its change sources and its gateway credential.",
      context.isMain && link(address("containers"), "Create one"))));
    draw(numbers, { ...found, containers: undefined, halts: undefined }, () => relaySection(found));
  };
  await look();
  repeat(look, 5, context, () => {});
}

/** Returns the line of a halt, with a button that ends it. */
export function haltLine(halt, { relay, mayChange, recount }) {
  const base = path`/admin/1/containers/${halt.container}/${halt.environment}`;
  return h("li", { class: "row" }, badge(halt.scope, "bad"), h("b", null, said(halt.container), `/${halt.environment}`),
    halt.topic && code(halt.topic), h("span", null, said(halt.reason, 300)),
    h("span", { class: "dim" }, "since ", when(halt.since), ", tried again ", when(halt.until)),
    mayChange && button("Try now", async () => {
      const { ended } = await relay.post(`${base}/resume`, {});
      tell(`${counted(ended, "halt")} ended: the waiting pushes are sent.`);
      recount();
    }, { kind: "small" }));
}

const sending = { yes: ["can send", "good"], no: ["cannot send", "bad"], untried: ["untried", "note"], noCredential: ["no credential", "warn"] };

function containersOf({ containers, countLimit }) {
  const number = (amount) => (amount >= countLimit ? `${count(countLimit)} or more` : count(amount));
  return h("ul", { class: "checks" }, containers.map((one) => {
    const where = { container: one.container, environment: one.environment };
    return h("li", null, badge(...(sending[one.canSend] ?? [one.canSend])), h("div", null,
      h("b", null, link(address("containers", where), said(one.container), `/${one.environment}`)),
      h("div", { class: "row dim small" }, h("span", null, `${number(one.devices)} devices`),
        h("span", null, `${count(one.webhooks.accepted)} webhooks`, one.webhooks.refused ? `, ${count(one.webhooks.refused)} refused` : ""),
        one.retries > 0 && h("span", null, `${number(one.retries)} waiting`),
        one.deadLetters > 0 && link(address("deadletters", where), `${number(one.deadLetters)} dead letters`),
        one.parked > 0 && link(address("parked", where), `${number(one.parked)} parked`),
        one.gateway.last && h("span", null, "last answer: ", said(one.gateway.last.reason, 80), " ", when(one.gateway.last.at)))));
  }));
}

function relaySection({ head: last, progress, behind, disk, startedAt, quarantined, rangeSubscriptions, refusing }) {
  const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));
  return section("Relay", h("dl", { class: "facts" }, fact("Started", when(startedAt)), fact("Log's head", count(Number(last))),
    fact("Settled up to", `${count(Number(progress))}${behind === "0" ? "" : `, ${count(Number(behind))} behind`}`),
    disk && fact("Store", storeSize(disk)),
    quarantined > 0 && fact("Set aside", badge(count(quarantined), "bad")),
    rangeSubscriptions > 0 && fact("In ranges", counted(rangeSubscriptions, "subscription")),
    Object.entries(refusing).map(([bound, text]) => fact("Refuses changes", h("span", null, badge(bound, "bad"), " ", said(text, 200))))));
}

// MARK: Plots

async function series(elements, grid, state, { relay, signal }) {
  let after;
  let rows = [];
  let isOff = false;
  const look = async () => {
    const answer = await relay.get("/admin/1/series", { after }, signal);
    if (signal.aborted) return;
    rows = after === undefined || answer.restarted ? answer.rows : [...rows, ...answer.rows];
    after = answer.after;
    const slots = Math.round(3600 / answer.stepSeconds);
    rows = rows.slice(-slots);
    state.className = "live on";
    state.textContent = `the last hour, every ${answer.stepSeconds} s`;
    isOff = false;
    const column = (name) => answer.columns.indexOf(name);
    const moments = rows.map((row) => row[column("at")]);
    for (const element of elements) {
      element.draw(Object.fromEntries(element.lines.map((name) => [name, rows.map((row) => row[column(name)] ?? null)])), moments, slots);
    }
  };
  const trouble = (error) => {
    if (isOff || error.name === "AbortError") return;
    isOff = true;
    state.className = "live off";
    state.textContent = "the relay does not answer";
  };
  await look().catch((error) => {
    if (error.name === "AbortError") return;
    fill(grid, problem(error));
    trouble(error);
  });
  repeat(look, 5, { signal }, trouble);
}
