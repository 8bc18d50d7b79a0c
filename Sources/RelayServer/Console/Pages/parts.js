// The parts that pages are put together from.
import { Unreachable } from "./api.js";
import { fill, freshID, h, lines, said } from "./dom.js";
import { toJSON } from "./text.js";

/** The beginning of a page: its title, a sentence, and what can be done. */
export function head(title, sentence, ...actions) {
  return h("div", { class: "head" },
    h("div", null, h("h1", { tabindex: -1 }, title), sentence && h("p", { class: "lead" }, sentence)),
    actions.flat().some(Boolean) && h("div", { class: "actions" }, actions));
}

/** A part of a page with a heading. */
export function section(title, ...children) {
  const id = freshID("section");
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), children);
}

/** What there is to do where nothing is. */
export function empty(title, sentence, ...actions) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title),
    sentence && h("p", null, sentence), actions.flat().some(Boolean) && h("div", { class: "actions" }, actions));
}

/** A word with a tone: good, warn, bad, note. */
export function badge(text, tone = "note") {
  return h("span", { class: `badge ${tone}` }, text);
}

/** A button that does something; while it does, it cannot be pressed again. */
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

/** A button that copies a text, and says so. */
export function copyButton(label, text, { name, kind = "small quiet" } = {}) {
  return button(label, async (element) => {
    await copy(await text());
    element.textContent = "Copied";
    setTimeout(() => (element.textContent = label), 1500);
  }, { kind, "aria-label": name });
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without TLS, and not on this machine, browsers have no clipboard but this one.
  const area = h("textarea", { class: "away", readonly: true, props: { value: text } });
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// MARK: What is said

/** What went wrong, in the relay's words, with the request's ID. */
export function wordsOf(error) {
  return error.requestID ? `${error.message} (request ${error.requestID})` : error.message;
}

/** A refusal as a part of a page. */
export function problem(error, again) {
  const isAway = error instanceof Unreachable;
  const title = isAway ? "The relay cannot be reached" : error.code ? `The relay refused: ${error.code}` : "Something went wrong";
  return h("div", { class: "problem", role: "alert" }, h("p", { class: "problem-title" }, title),
    h("p", null, said(error.message, 2000)), error.requestID && h("p", { class: "dim small" }, "Request ", h("code", null, error.requestID)),
    again && button("Try again", again, { kind: "small" }));
}

/** Says something for some seconds, to screen readers too. */
export function tell(text, tone = "note") {
  const place = document.getElementById("said");
  if (!place) return;
  const note = h("div", { class: `toast ${tone}` }, said(text, 600));
  place.append(note);
  setTimeout(() => note.remove(), tone === "bad" ? 12_000 : 5000);
}

/** Shows that something is under way. */
export function waiting(text = "Loading …") {
  return h("p", { class: "waiting dim", role: "status" }, text);
}

const rounds = new WeakMap(); // How often each part of a page was filled.

/**
 * Fills a part of a page with what a call answers; while it waits it says so, and what it refuses is shown.
 *
 * What was asked last is what is shown, whichever answer comes last: filters and what stands under them agree.
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
 * A dialog; `build` makes its content and gets what closes it. Answers what it was closed with.
 *
 * One with what is shown `once` is closed by whoever reads it alone.
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
      // Whoever uses the keyboard goes on where the dialog was opened.
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

/** Closes the dialogs of a page that is left; of one that somebody else may come back to, `all`. */
export function closeDialogs({ all = false } = {}) {
  for (const element of document.querySelectorAll(all ? "dialog[open]" : "dialog[open]:not([data-once])")) element.close();
}

/** Shows in a dialog what it came to; whoever has closed it meanwhile is told beside the page. */
function refused(error, trouble) {
  if (trouble.isConnected) fill(trouble, problem(error));
  else if (error.name !== "AbortError") tell(wordsOf(error), "bad");
}

/**
 * Asks before something that cannot be taken back. `act` is done while the dialog stands; what it refuses is shown there.
 *
 * What takes many calls asks what it is given whether the dialog stands still: whoever closes it means the rest.
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

/** A form in a dialog; `act` gets its values, and what it refuses is shown there. */
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

/** A labelled input. */
export function field(label, input, hint) {
  const id = (input.id ||= freshID("field"));
  const about = hint && h("p", { class: "hint", id: `${id}-hint` }, hint);
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return h("div", { class: "field" }, h("label", { for: id }, label), input, input.suggestions, about);
}

/** A text input; programs' words are not corrected. */
export function input(name, value = "", attributes = {}) {
  return h("input", { name, autocomplete: "off", spellcheck: "false", autocapitalize: "off", ...attributes, props: { value: value ?? "" } });
}

/** A choice among words; an option is a word, or a value and its word. */
export function choice(name, options, value = "", attributes = {}) {
  const element = h("select", { name, ...attributes }, options.map((option) => {
    const [worth, word] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: worth }, word);
  }));
  element.value = value ?? "";
  if (element.selectedIndex < 0) element.selectedIndex = 0;
  return element;
}

/** An input with suggestions, which may be anything else too. */
export function suggested(name, value, options, attributes = {}) {
  const id = freshID("list");
  const list = h("datalist", { id }, options.map((option) => h("option", { value: option })));
  const element = input(name, value, { list: id, ...attributes });
  element.suggest = (others) => fill(list, others.map((option) => h("option", { value: option })));
  element.suggestions = list;
  return element;
}

/** A row of filters; `act` gets their values whenever they are settled. */
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

/** Names and what they are; entries without a value are left out. */
export function facts(...entries) {
  return h("dl", { class: "facts" }, entries.filter(Boolean).filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

/** JSON to read and to copy. */
export function json(value, label = "JSON") {
  const text = toJSON(value, 2);
  return h("div", { class: "json" }, h("pre", { tabindex: 0, "aria-label": label }, text), copyButton("Copy", () => text, { name: `Copy ${label}` }));
}

/** A text for a shell or another program, to read and to copy: as it is by the button. */
export function snippet(text, label) {
  return h("div", { class: "json" }, h("pre", { tabindex: 0, "aria-label": label }, lines(text)), copyButton("Copy", () => text, { name: `Copy: ${label}` }));
}

/** Something that unfolds. */
export function folded(summary, content, { open = false } = {}) {
  const element = h("details", { open }, h("summary", null, summary));
  const grow = () => {
    if (element.open && element.childElementCount === 1) element.append(typeof content === "function" ? content() : content);
  };
  element.addEventListener("toggle", grow);
  grow();
  return element;
}
