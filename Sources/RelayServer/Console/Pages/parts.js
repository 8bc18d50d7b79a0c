// The building blocks of pages.
import { Unreachable } from "./api.js";
import { fill, freshID, h, lines, said } from "./dom.js";
import { toJSON } from "./text.js";

/** Returns the head of a page: its title, a sentence, and actions. */
export function head(title, sentence, ...actions) {
  return h("div", { class: "head" },
    h("div", null, h("h1", { tabindex: -1 }, title), sentence && h("p", { class: "lead" }, sentence)),
    actions.flat().some(Boolean) && h("div", { class: "actions" }, actions));
}

/** Returns a section of a page with a heading. */
export function section(title, ...children) {
  const id = freshID("section");
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), children);
}

/** Returns a placeholder for an empty list, with what to do. */
export function empty(title, sentence, ...actions) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title),
    sentence && h("p", null, sentence), actions.flat().some(Boolean) && h("div", { class: "actions" }, actions));
}

/** Returns a word with a tone: good, warn, bad, note. */
export function badge(text, tone = "note") {
  return h("span", { class: `badge ${tone}` }, text);
}

/** Returns a button with an action; while the action runs, the button cannot be pressed again. */
export function button(label, act, { kind = "", ...attributes } = {}) {
  const element = h("button", { type: "button", class: kind, ...attributes }, label);
  element.addEventListener("click", async () => {
    if (element.getAttribute("aria-disabled") === "true") return;
    element.setAttribute("aria-disabled", "true");
    try {
      await act(element);
    } catch (error) {
      if (error.name !== "AbortError") tell(wordsOf(error), "bad");
    } finally {
      element.removeAttribute("aria-disabled");
    }
  });
  return element;
}

/** Returns a button that copies a text, and says so. */
export function copyButton(label, text, { name, kind = "small quiet" } = {}) {
  return button(label, async (element) => {
    await copy(await text());
    element.textContent = "Copied";
    setTimeout(() => (element.textContent = label), 1500);
  }, { kind, "aria-label": name });
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without TLS on another machine, browsers offer only this way to the clipboard.
  const area = h("textarea", { class: "away", readonly: true, props: { value: text } });
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// MARK: What is said

/** Returns the message of an error, with the request's ID. */
export function wordsOf(error) {
  return error.requestID ? `${error.message} (request ${error.requestID})` : error.message;
}

/** Returns an error as a part of a page. */
export function problem(error, again) {
  const isAway = error instanceof Unreachable;
  const title = isAway ? "The relay cannot be reached" : error.code ? `The relay refused: ${error.code}` : "Something went wrong";
  return h("div", { class: "problem", role: "alert" }, h("p", { class: "problem-title" }, title),
    h("p", null, said(error.message, 2000)), error.requestID && h("p", { class: "dim small" }, "Request ", h("code", null, error.requestID)),
    again && button("Try again", again, { kind: "small" }));
}

/** Shows a message for some seconds, also to screen readers. */
export function tell(text, tone = "note") {
  const place = document.getElementById("said");
  if (!place) return;
  const note = h("div", { class: `toast ${tone}` }, said(text, 600));
  place.append(note);
  setTimeout(() => note.remove(), tone === "bad" ? 12_000 : 5000);
}

/** Returns a message that something is loading. */
export function waiting(text = "Loading …") {
  return h("p", { class: "waiting dim", role: "status" }, text);
}

const rounds = new WeakMap(); // The number of times that each part of a page was filled.

/**
 * Fills a part of a page with the result of a call. It shows that the call is running, and its error.
 *
 * Only the result of the last call is shown, in whatever order the answers come, so that filters and results agree.
 */
export async function load(place, work, signal) {
  const round = (rounds.get(place) ?? 0) + 1;
  rounds.set(place, round);
  const isOld = () => signal?.aborted || rounds.get(place) !== round;
  const timer = setTimeout(() => isOld() || fill(place, waiting()), place.childElementCount ? 400 : 120);
  try {
    const content = await work();
    if (!isOld()) fill(place, content);
  } catch (error) {
    if (!isOld() && error.name !== "AbortError") fill(place, problem(error, () => load(place, work, signal)));
  } finally {
    clearTimeout(timer);
  }
}

// MARK: Dialogs

/**
 * Shows a dialog; `build` creates its content and receives a function that closes it. Returns the value with which it was closed.
 *
 * A dialog with `once` shows something that is shown only once, so only the user closes it.
 */
export function dialog(title, build, { wide = false, once = false } = {}) {
  return new Promise((resolve) => {
    const id = freshID("dialog");
    const element = h("dialog", { "aria-labelledby": id, class: wide ? "wide" : "", "data-once": once });
    const opener = document.activeElement;
    let isOpen = true;
    const close = (answer) => {
      if (!isOpen) return;
      isOpen = false;
      element.remove();
      // The keyboard focus returns to where the dialog was opened.
      (opener?.isConnected && opener !== document.body ? opener : document.getElementById("main"))?.focus({ preventScroll: true });
      resolve(answer);
    };
    element.addEventListener("cancel", () => close());
    element.addEventListener("close", () => close());
    element.append(h("h2", { id }, typeof title === "string" ? said(title, 200) : title), build(close, element));
    document.body.append(element);
    element.showModal();
  });
}

/** Closes the dialogs of the page that the user leaves; with `all`, also those that are shown only once. */
export function closeDialogs({ all = false } = {}) {
  for (const element of document.querySelectorAll(all ? "dialog[open]" : "dialog[open]:not([data-once])")) element.close();
}

/** Shows an error in a dialog; if the user has closed it meanwhile, beside the page. */
function refused(error, trouble) {
  if (trouble.isConnected) fill(trouble, problem(error));
  else if (error.name !== "AbortError") tell(wordsOf(error), "bad");
}

/**
 * Asks before an action that cannot be undone. `act` runs while the dialog is open, and its error is shown there.
 *
 * An action of many calls receives a function that says whether the dialog is still open; if the user closes it, the remaining calls are skipped.
 */
export function ask({ title, says, word, danger = true, act }) {
  return dialog(title, (close, element) => {
    const trouble = h("div");
    return h("div", null, h("div", { class: "says" }, typeof says === "string" ? h("p", null, said(says, 1000)) : says), trouble,
      h("div", { class: "actions end" }, h("button", { type: "button", autofocus: true, onclick: () => close() }, "Cancel"),
        button(word, async () => {
          try {
            close({ done: await act(() => element.isConnected) });
          } catch (error) {
            refused(error, trouble);
          }
        }, { kind: danger ? "danger" : "primary" })));
  });
}

/** Shows a form in a dialog; `act` receives its values, and its error is shown there. */
export function askFor({ title, says, fields, word = "Save", act, wide }) {
  return dialog(title, (close) => {
    const trouble = h("div");
    const send = h("button", { class: "primary" }, word);
    const form = h("form", { class: "form" }, says && h("p", { class: "dim" }, says), fields, trouble,
      h("div", { class: "actions end" }, h("button", { type: "button", onclick: () => close() }, "Cancel"), send));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (send.disabled) return;
      send.disabled = true;
      try {
        close({ done: await act(Object.fromEntries(new FormData(form)), form) });
      } catch (error) {
        refused(error, trouble);
      } finally {
        send.disabled = false;
      }
    });
    return form;
  }, { wide });
}

// MARK: Forms

/** Returns a labelled input. */
export function field(label, input, hint) {
  const id = (input.id ||= freshID("field"));
  const about = hint && h("p", { class: "hint", id: `${id}-hint` }, hint);
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return h("div", { class: "field" }, h("label", { for: id }, label), input, input.suggestions, about);
}

/** Returns a text input without spelling correction and autocompletion. */
export function input(name, value = "", attributes = {}) {
  return h("input", { name, autocomplete: "off", spellcheck: "false", autocapitalize: "off", ...attributes, props: { value: value ?? "" } });
}

/** Returns a selection; an option is a word, or a value with its word. */
export function choice(name, options, value = "", attributes = {}) {
  const element = h("select", { name, ...attributes }, options.map((option) => {
    const [worth, word] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: worth }, word);
  }));
  element.value = value ?? "";
  if (element.selectedIndex < 0) element.selectedIndex = 0;
  return element;
}

/** Returns an input with suggestions that also accepts other values. */
export function suggested(name, value, options, attributes = {}) {
  const id = freshID("list");
  const list = h("datalist", { id }, options.map((option) => h("option", { value: option })));
  const element = input(name, value, { list: id, ...attributes });
  element.suggest = (others) => fill(list, others.map((option) => h("option", { value: option })));
  element.suggestions = list;
  return element;
}

/** Returns a row of filters; `act` receives their values when the user has finished a change. */
export function filters(act, ...fields) {
  const form = h("form", { class: "filters", role: "search" }, fields);
  const read = () => Object.fromEntries(new FormData(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(read());
  });
  form.addEventListener("change", () => act(read()));
  return form;
}

// MARK: Facts

/** Returns a list of names and values; entries without a value are left out. */
export function facts(...entries) {
  return h("dl", { class: "facts" }, entries.filter(Boolean).filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

/** Returns JSON to read and to copy. */
export function json(value, label = "JSON") {
  const text = toJSON(value, 2);
  return h("div", { class: "json" }, h("pre", { tabindex: 0, "aria-label": label }, text), copyButton("Copy", () => text, { name: `Copy ${label}` }));
}

/** Returns a text for a shell or another program, to read and to copy; the button copies it unchanged. */
export function snippet(text, label) {
  return h("div", { class: "json" }, h("pre", { tabindex: 0, "aria-label": label }, lines(text)), copyButton("Copy", () => text, { name: `Copy: ${label}` }));
}

/** Returns an element that unfolds. */
export function folded(summary, content, { open = false } = {}) {
  const element = h("details", { open }, h("summary", null, summary));
  const grow = () => {
    if (element.open && element.childElementCount === 1) element.append(typeof content === "function" ? content() : content);
  };
  element.addEventListener("toggle", grow);
  grow();
  return element;
}
