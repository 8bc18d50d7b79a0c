// A small plot of the last hour: one or two lines over time, usable by pointer, keyboard and screen reader.
import { fill, h } from "./dom.js";
import { line, plotHeight as height, plotWidth as width, roundUp, thinned } from "./numbers.js";
import { clock, measure } from "./text.js";

export class TimePlot extends HTMLElement {
  #points = [];

  /** `unit` follows each number; `lines` are names of columns, the first of which is the main one. */
  constructor({ title, unit = "", form = measure, lines, says, tone = "" } = {}) {
    super();
    Object.assign(this, { heading: title, unit, form, lines: lines ?? [], says, tone });
  }

  connectedCallback() {
    if (this.now) return;
    this.now = h("span", { class: "plot-now" }, "–");
    this.at = h("span", { class: "plot-at dim small" });
    this.mark = h("line", { class: "plot-mark", y1: 0, y2: height, visibility: "hidden" });
    this.svg = h("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.frame = h("div", {
      class: `plot ${this.tone}`, tabindex: 0, role: "img", onpointermove: (event) => this.#point(event),
      onpointerleave: () => this.#look(), onblur: () => this.#look(), onkeydown: (event) => this.#key(event),
    }, h("div", { class: "plot-head" }, h("span", { class: "plot-title" }, this.heading), this.at, this.now), this.svg,
    h("div", { class: "plot-foot dim small" }, (this.foot = h("span")), (this.peak = h("span"))));
    this.append(this.frame);
  }

  /** Draws columns: lists of numbers, with the ends of their steps. `slots` is the number of steps of an hour. */
  draw(columns, moments, slots) {
    const most = 240;
    const lists = this.lines.map((name) => columns[name] ?? []);
    const room = Math.max(slots, moments.length, 2);
    // Missing values at the beginning are from before the relay's start.
    const lead = Array.from({ length: room - moments.length }, () => null);
    const thin = lists.map((list) => thinned([...lead, ...list], most));
    const known = thin[0].map(({ value, to }, index) => ({
      value, moment: moments[to - lead.length], others: thin.slice(1).map((list) => list[index].value),
    }));
    const highest = Math.max(0, ...thin.flat().map(({ value }) => value ?? 0));
    const top = roundUp(highest);
    const paths = thin.map((points, place) => ({ place, path: line(points, top, points.length) }));
    const area = paths[0].path && !paths[0].path.slice(1).includes("M")
      ? `${paths[0].path}L${width} ${height}L${/^M([\d.]+)/.exec(paths[0].path)[1]} ${height}Z` : undefined;
    this.#points = known;
    fill(this.svg, area && h("path", { class: "plot-area", d: area }),
      h("line", { class: "plot-base", x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5 }),
      paths.reverse().map(({ place, path }) => path && h("path", { class: `plot-line line-${place}`, d: path })), this.mark);
    this.foot.textContent = this.says?.(columns) ?? "";
    this.peak.textContent = highest > 0 ? `highest ${this.#say(highest)}` : "";
    this.#look(this.looked);
  }

  #say(value) {
    return value === null || value === undefined ? "–" : `${this.form(value)}${this.unit}`;
  }

  #look(index) {
    this.looked = index;
    const last = this.#points.findLast(({ value }) => value !== null);
    const point = index === undefined ? last : this.#points[index];
    this.now.textContent = this.#say(point?.value);
    this.at.textContent = index === undefined ? "" : point?.moment ? clock(point.moment) : "not known";
    this.mark.setAttribute("visibility", index === undefined ? "hidden" : "visible");
    if (index !== undefined) {
      const x = (index / Math.max(1, this.#points.length - 1)) * width;
      for (const name of ["x1", "x2"]) this.mark.setAttribute(name, x);
    }
    this.frame.setAttribute("aria-label", [`${this.heading}: ${this.#say(point?.value)}`,
      index === undefined ? "now" : this.at.textContent, this.peak.textContent].filter(Boolean).join(", "));
  }

  #point(event) {
    const { left, width: room } = this.svg.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - left) / room));
    if (this.#points.length) this.#look(Math.round(share * (this.#points.length - 1)));
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !this.#points.length) return;
    event.preventDefault();
    const last = this.#points.length - 1;
    this.#look(Math.max(0, Math.min(last, (this.looked ?? last) + step)));
  }
}

customElements.define("time-plot", TimePlot);
