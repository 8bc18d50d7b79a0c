// Creates elements from names, attributes and texts. Nothing is ever parsed as HTML.
import { ago, clock, pieces, shorten, visible } from "./text.js";

const svgNames = new Set(["svg", "path", "line", "circle", "rect", "text", "g"]);

/** Creates an element. `on…` attributes are listeners, `style` sets properties; children are texts, nodes, lists of them, or nothing. */
export function h(name, attributes, ...children) {
  const element = svgNames.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else if (key === "props") Object.assign(element, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

/** Adds children to an element. */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Returns an element for a text from outside: its direction is isolated from the surrounding text, and hidden characters are marked. */
export function said(text, limit = 80) {
  const whole = String(text ?? "");
  const short = shorten(whole, limit);
  const element = document.createElement("bdi");
  for (const { text, mark } of pieces(short)) {
    element.append(mark === undefined ? text : h("span", { class: "mark" }, mark));
  }
  if (short !== whole) element.title = visible(shorten(whole, 1000));
  return element;
}

/** Returns a complete text of several lines; hidden characters are marked. */
export const lines = (text) => text.split(/([\n\t])/).map((part) => (part === "\n" || part === "\t" ? part
  : pieces(part).map(({ text, mark }) => (mark === undefined ? text : h("span", { class: "mark" }, mark)))));

/** Like `said`, in the font of code. */
export function code(text, limit) {
  return h("code", null, said(text, limit));
}

/** Returns an element for a time, with the full time as its tooltip. */
export function when(moment, { relative = false } = {}) {
  if (!moment) return "–";
  return h("time", { datetime: moment, title: moment }, relative ? ago(moment) : clock(moment));
}

/** Returns a link within the console. */
export function link(href, ...children) {
  return h("a", { href }, ...children);
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Like `fill`, for an element that the user looks at: the keyboard focus stays at its place. */
export function refill(element, ...children) {
  const all = () => [...element.querySelectorAll("a, button, summary")];
  const before = all();
  const place = before.indexOf(document.activeElement);
  fill(element, ...children);
  const after = all();
  // If the number of elements changed, another one may be at that place, so the focus is not moved.
  if (place >= 0 && after.length === before.length) after[place].focus({ preventScroll: true });
}

let serial = 0;

/** Returns an ID that no other element of the page has. */
export const freshID = (prefix = "id") => `${prefix}-${(serial += 1)}`;
