// The console's frame: the session, the current container, and the current page.
import { Relay, Unreachable } from "./api.js";
import { fill, h, said } from "./dom.js";
import { badge, button, closeDialogs, field, input, problem, tell, waiting } from "./parts.js";
import { address, pages, path, read } from "./route.js";

const app = document.getElementById("app");
const relay = new Relay();
let session; // The session; undefined if nobody is signed in.
let about = {}; // The relay's description of itself.
let containers = [];
let frame; // The elements that stay when the page changes.
let leaving; // Aborts the current page's calls.

// MARK: Signing in

function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

async function signIn(token) {
  // A token copied from a chat or document may contain characters that cannot be sent.
  if (/[^\x20-\x7e]/.test(token)) throw new Error("A token may contain only ASCII characters, and this one has another character, possibly an invisible one. Copy it again.");
  session = await relay.call("POST", "/admin/1/session", { token });
}

/** Asks for a token; `refusal` is an error, or a text that says why the console asks. */
function showSignIn(refusal) {
  leaving?.abort();
  closeDialogs();
  session = frame = undefined;
  document.title = "Sign in · Belfry";
  const token = input("token", "", { type: "password", autocomplete: "current-password", required: true, autofocus: true });
  const trouble = h("div");
  const send = h("button", { class: "primary" }, "Sign in");
  const form = h("form", { class: "form" }, field("Administrative token", token,
    "The relay's setting admin.token, or a token made with belfry tokens create. A token that may only read signs in as a reader."),
  trouble, send);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    fill(trouble);
    try {
      await signIn(token.value.trim());
      await begin();
    } catch (error) {
      fill(trouble, problem(error));
      token.select();
    } finally {
      send.disabled = false;
    }
  });
  fill(app, h("main", { class: "sign-in" }, h("div", { class: "sign-in-card" }, brand(), h("h1", null, "Sign in"), form)));
  // If nobody was signed in before, no error is shown.
  if (refusal) fill(trouble, refusal instanceof Error ? problem(refusal) : h("p", { class: "problem", role: "alert" }, refusal));
  token.focus();
}

async function signOut() {
  await relay.call("DELETE", "/admin/1/session");
  showSignIn();
}

// MARK: The frame

const brand = () => h("span", { class: "brand" }, h("img", { src: "/console/icon.svg", alt: "", width: 22, height: 22 }), "Belfry");

function showFrame() {
  const menu = h("button", { type: "button", class: "menu small", "aria-expanded": "false", "aria-controls": "menu" }, "Menu");
  const nav = h("nav", { id: "menu", "aria-label": "Pages" });
  const side = h("div", { class: "side" });
  const main = h("main", { id: "main", tabindex: -1 });
  const open = (isOpen) => {
    menu.setAttribute("aria-expanded", String(isOpen));
    side.classList.toggle("open", isOpen);
  };
  menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
  side.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !side.classList.contains("open")) return;
    open(false);
    menu.focus();
  });
  const where = h("div", { class: "where" });
  const who = h("div", { class: "who" }, h("p", { class: "small" }, said(session.label, 40), " ",
    session.access === "read" ? badge("reader") : session.access === "change" ? badge("may change") : null),
  h("div", { class: "actions" }, themeButton(), button("Sign out", signOut, { kind: "small quiet" })));
  side.append(brand(), where, nav, who);
  fill(app, h("a", { class: "skip", href: "#main" }, "Skip to the page"),
    h("div", { class: "bar" }, h("a", { href: "/console/now", class: "brand-link", "aria-label": "Belfry, now" }, brand()), menu),
    h("div", { class: "frame" }, side, main), h("div", { id: "said", role: "status", "aria-live": "polite" }));
  frame = { nav, main, where, open, links: {} };
}

function themeButton() {
  const kinds = ["system", "light", "dark"];
  const kind = () => localStorage.getItem("belfry-theme") ?? "system";
  return button(`Theme: ${kind()}`, (element) => {
    const next = kinds[(kinds.indexOf(kind()) + 1) % kinds.length];
    localStorage.setItem("belfry-theme", next);
    element.textContent = `Theme: ${next}`;
    applyTheme();
  }, { kind: "small quiet" });
}

function applyTheme() {
  const kind = localStorage.getItem("belfry-theme");
  document.documentElement.style.colorScheme = kind === "light" || kind === "dark" ? kind : "";
}

/** Returns the container of an address: the one in its parameters, else the one that was used last. */
function containerOf(params) {
  if (session.container) return { container: session.container, environment: session.environment };
  if (params.container) return { container: params.container, environment: params.environment ?? "production" };
  const last = JSON.parse(localStorage.getItem("belfry-container") ?? "null");
  const known = containers.find(({ container, environment }) => container === last?.container && environment === last?.environment);
  const { container, environment } = known ?? containers[0] ?? {};
  return container ? { container, environment } : undefined;
}

function showWhere(current, page, params) {
  const key = ({ container, environment }) => `${container}/${environment}`;
  if (!current) return fill(frame.where, h("p", { class: "small dim" }, "No container yet"));
  const all = containers.some((one) => key(one) === key(current)) ? containers : [current, ...containers];
  const choose = h("select", { id: "container" }, all.map((one) => h("option", { value: key(one) }, `${one.container.replace(/^iCloud\./, "")} (${one.environment === "production" ? "prod" : "dev"})`)));
  choose.value = key(current);
  choose.addEventListener("change", () => {
    const place = choose.value.lastIndexOf("/");
    go(page, { container: choose.value.slice(0, place), environment: choose.value.slice(place + 1) });
  });
  const isHeld = frame.where.contains(document.activeElement);
  fill(frame.where, h("label", { for: "container", class: "small dim" }, "Container"), choose);
  // The selection keeps the focus, so that a user can continue with the arrow keys.
  if (isHeld) choose.focus();
}

function showMenu(page, current) {
  const groups = new Map();
  for (const [name, { title, group, onlySandbox, ofAll }] of Object.entries(pages)) {
    if ((onlySandbox && !about.phones) || (ofAll && session.container)) continue;
    const item = h("a", { href: address(name, name === "now" ? {} : current), "aria-current": name === page ? "page" : undefined },
      title, h("span", { class: "count" }));
    frame.links[name] = item;
    groups.set(group, [...(groups.get(group) ?? []), h("li", null, item)]);
  }
  fill(frame.nav, [...groups].map(([group, items]) => [h("p", { class: "group small" }, group), h("ul", null, items)]));
  showCounts(current);
}

let counts = {};

/** Shows the numbers of dead letters and parked changes in the menu. */
function showCounts(current) {
  const found = counts[`${current?.container}/${current?.environment}`];
  for (const [name, number] of [["deadletters", found?.deadLetters], ["parked", found?.parked]]) {
    const place = frame?.links[name]?.querySelector(".count");
    if (place) fill(place, number ? `${number >= 1000 ? "1000+" : number}` : "");
  }
}

async function readCounts(current) {
  if (!session || session.container) return;
  const overview = await relay.get("/admin/1/overview");
  counts = Object.fromEntries(overview.containers.map((one) => [`${one.container}/${one.environment}`, one]));
  showCounts(current);
}

// MARK: Pages

/** Shows a page with parameters. */
function go(page, params) {
  const target = address(page, params);
  hasMoved = true;
  if (target !== location.pathname + location.search) history.pushState(null, "", target);
  show();
}

async function show() {
  if (!frame) return;
  leaving?.abort();
  // Dialogs and their links belong to the page that the user leaves.
  closeDialogs();
  leaving = new AbortController();
  const { signal } = leaving;
  const { page, params } = read(location.href);
  const current = containerOf(params);
  const settings = pages[page];
  document.title = `${settings.title} · Belfry`;
  frame.open(false);
  showWhere(current, page === "now" ? "now" : page, params);
  showMenu(page, current);
  if (current) localStorage.setItem("belfry-container", JSON.stringify(current));
  const { main } = frame;
  const host = h("div", { class: `page page-${page}` });
  const context = {
    relay, session, about, containers, params, signal, go, page, ...current, current,
    base: current && path`/admin/1/containers/${current.container}/${current.environment}`,
    mayChange: session.access !== "read", isMain: session.access === "main",
    /** Returns the address of a page for the same container. */
    to: (name, more) => address(name, { ...current, ...more }),
    /** Stores parameters in the address without rendering the page again. */
    keep: (more) => {
      Object.assign(params, more);
      history.replaceState(null, "", address(page, { ...current, ...params }));
    },
    again: show,
    /** Reads the list of containers again after it has changed. */
    reread: async () => {
      containers = (await relay.get("/admin/1/containers")).containers;
    },
    /** Reads the counts in the menu again. */
    recount: () => readCounts(current).catch(() => {}),
  };
  fill(main, waiting());
  try {
    if (settings.ofContainer && !current) {
      const { noContainer } = await import("./containers.js");
      fill(main, noContainer(context));
      return;
    }
    const module = await import(`./${settings.module ?? page}.js`);
    if (signal.aborted) return;
    fill(main, host);
    await module.show(host, context);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(main, problem(error, show));
  }
  // If the user has begun to type, the focus must stay there.
  const isBusy = (main.contains(document.activeElement) && document.activeElement !== main) || frame?.where.contains(document.activeElement);
  if (!signal.aborted && hasMoved && !isBusy) main.querySelector("h1")?.focus({ preventScroll: true });
}

let hasMoved = false;

addEventListener("popstate", () => {
  hasMoved = true;
  show();
});

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (anchor.origin !== location.origin || anchor.target || anchor.hasAttribute("download")) return;
  if (anchor.hash === "#main") {
    event.preventDefault();
    frame.main.focus();
    return;
  }
  if (!anchor.pathname.startsWith("/console/") || anchor.pathname.includes(".")) return;
  event.preventDefault();
  hasMoved = true;
  history.pushState(null, "", anchor.href);
  scrollTo(0, 0);
  show();
});

// MARK: Begin

async function begin() {
  session ??= await relay.get("/admin/1/session");
  // A token of one container may not list the others.
  const lists = session.container ? [session] : relay.get("/admin/1/containers").then((answer) => answer.containers);
  [about, containers] = await Promise.all([relay.get("/admin/1/console"), lists]);
  showFrame();
  await show();
  if (!frame) return;
  const recount = () => readCounts(containerOf(read(location.href).params)).catch(() => {});
  recount();
  clearInterval(begin.timer);
  begin.timer = setInterval(() => document.hidden || !frame || recount(), 20_000);
}

relay.onSignedOut = () => {
  if (frame) showSignIn("Your session has ended, or its token was revoked. Sign in to continue where you were.");
};

/**
 * Reloads the page if another session is in force now, because another tab shares the cookie. Returns whether it does.
 *
 * An open dialog prevents this, unless the page comes from the browser's cache (`kept`). Such a page is also reloaded if the session is unknown.
 */
async function lookAgain(kept = false) {
  if (!frame) return false;
  // If there is no session, the failed call itself shows the sign-in page.
  const found = await relay.get("/admin/1/session").catch(() => undefined);
  const isOther = found && session ? ["label", "access", "container", "environment"].some((name) => found[name] !== session[name]) : kept;
  if (!frame || !isOther || (!kept && document.querySelector("dialog[open]"))) return false;
  location.reload();
  return true;
}

document.addEventListener("visibilitychange", () => document.hidden || lookAgain());

// A page from the browser's cache stays hidden until the session is known. Dialogs are outside of the page's frame and may show a secret.
addEventListener("pageshow", async ({ persisted }) => {
  if (!persisted) return;
  document.body.hidden = true;
  if (await lookAgain(true)) return;
  if (!frame) closeDialogs({ all: true });
  document.body.hidden = false;
});

async function start() {
  applyTheme();
  const code = takeCode();
  if (code) {
    try {
      session = await relay.enter(code);
    } catch (error) {
      return showSignIn(error.status === 401 ? "That sign-in address works only once and for ten minutes; it was already used or is too old. Sign in with a token." : error);
    }
  }
  try {
    await begin();
  } catch (error) {
    if (error instanceof Unreachable) return fill(app, h("main", { class: "sign-in" }, problem(error, start)));
    if (error.status === 401) return showSignIn();
    fill(app, h("main", { class: "sign-in" }, problem(error, start)));
  }
}

addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") event.preventDefault();
  else if (event.reason?.code || event.reason instanceof Unreachable) {
    event.preventDefault();
    tell(event.reason.message, "bad");
  }
});

start();
