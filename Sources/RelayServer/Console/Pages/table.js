// A table of any length: only the visible rows are elements. On a narrow screen each row is a card.
import { fill, h, said } from "./dom.js";
import { button, copyButton } from "./parts.js";
import { brief, count, counted, toCSV, toJSON } from "./text.js";

const beyond = 12; // The number of rows rendered above and below the visible ones, so that a quick scroll shows no gap.
const narrow = matchMedia("(max-width: 640px)");

/**
 * `columns` have a `title`; the `value` of a row, which is for files and is shown if there is no `cell`; optionally a `cell`,
 * which returns a node; and an `align`. Columns that are `hidden` are only in files.
 */
export class DataTable extends HTMLElement {
  #rows = [];
  #columns = [];
  #shown = [];
  #rowHeight = 37;
  #drawn = "";
  #asked = false;

  constructor({ label, columns, rows = [], more, hasMore = false, actions = [] } = {}) {
    super();
    this.#columns = columns ?? [];
    this.#shown = this.#columns.filter(({ hidden }) => !hidden);
    this.#rows = rows;
    this.label = label;
    /** Returns the next rows as `{ rows, hasMore }`. */
    this.more = more;
    this.hasMore = hasMore;
    this.actions = actions;
  }

  connectedCallback() {
    if (this.body) return;
    this.status = h("span", { class: "dim", role: "status" });
    this.all = button("Load all", () => this.#loadAll(), { kind: "small quiet" });
    const titles = this.#shown.map(({ title, align }) => h("th", { scope: "col", role: "columnheader", class: align }, title));
    this.top = h("tbody", { "aria-hidden": "true" }, h("tr", null, h("td", { colspan: this.#shown.length })));
    this.bottom = this.top.cloneNode(true);
    this.body = h("tbody", { role: "rowgroup" });
    this.table = h("table", { role: "table", "aria-label": this.label },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, titles)), this.top, this.body, this.bottom);
    this.box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${this.label}, scrollable` }, this.table);
    this.box.addEventListener("scroll", () => this.#soon(), { passive: true });
    const files = ["CSV", "JSON"].map((kind) => copyButton(kind, () => this.text(kind), { name: `Copy ${this.label} as ${kind}` }));
    this.append(h("div", { class: "table-bar" }, this.status, h("div", { class: "actions" }, this.actions, this.all,
      h("span", { class: "dim small" }, "Copy as"), files)), this.box);
    this.observer = new ResizeObserver(() => this.#redraw());
    this.observer.observe(this.box);
    this.onNarrow = () => this.#redraw();
    narrow.addEventListener("change", this.onNarrow);
    this.#redraw();
  }

  disconnectedCallback() {
    this.observer?.disconnect();
    narrow.removeEventListener("change", this.onNarrow);
  }

  get rows() {
    return this.#rows;
  }

  set rows(rows) {
    this.#rows = rows;
    if (this.body) this.#redraw();
  }

  /** Appends rows. */
  extend(rows, hasMore) {
    this.#rows.push(...rows);
    this.hasMore = hasMore;
    this.#redraw();
  }

  /** Returns the loaded rows as the text of a file. */
  text(kind) {
    return kind === "CSV" ? toCSV(this.#columns.filter(({ value }) => value), this.#rows) : toJSON(this.#rows, 2);
  }

  #redraw() {
    this.#drawn = "";
    this.classList.toggle("cards", narrow.matches);
    this.#draw();
  }

  #soon() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      this.#draw();
    });
  }

  #draw() {
    const total = this.#rows.length;
    this.status.textContent = this.hasMore ? `${count(total)} loaded, there are more` : counted(total, "row");
    this.all.hidden = !this.hasMore;
    // All rows have the same height, which is measured from one of them.
    if (total && this.#drawn === "") {
      this.#show(0, 1);
      this.#rowHeight = this.body.firstElementChild.getBoundingClientRect().height || this.#rowHeight;
    }
    const height = this.#rowHeight;
    const seen = Math.ceil((this.box.clientHeight || 600) / height);
    const first = Math.max(0, Math.min(total, Math.floor(this.box.scrollTop / height)) - beyond);
    const last = Math.min(total, first + seen + 2 * beyond);
    const drawn = `${first}-${last}-${total}`;
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    this.#show(first, last);
    this.#space(this.top, first * height);
    this.#space(this.bottom, (total - last) * height);
    this.table.setAttribute("aria-rowcount", this.hasMore ? -1 : total + 1);
    if (this.hasMore && last > total - 200) this.#load();
  }

  #space(body, height) {
    body.hidden = height <= 0;
    body.firstElementChild.firstElementChild.style.height = `${height}px`;
  }

  #show(first, last) {
    const pressable = (row) => [...(row?.querySelectorAll("a, button") ?? [])];
    const holder = this.body.contains(document.activeElement) ? document.activeElement.closest("tr") : undefined;
    const focused = holder?.dataset.index;
    const place = holder && pressable(holder).indexOf(document.activeElement);
    fill(this.body, this.#rows.slice(first, last).map((row, place) => {
      const index = first + place;
      const cells = this.#shown.map(({ title, value, cell, align }) => {
        const shown = cell ? cell(row) : said(brief(value(row)));
        return h("td", { role: "cell", class: align, "data-title": title }, shown ?? "");
      });
      return h("tr", { role: "row", "aria-rowindex": index + 2, "data-index": index }, cells);
    }));
    if (focused !== undefined) pressable(this.body.querySelector(`[data-index="${focused}"]`))[place]?.focus({ preventScroll: true });
  }

  async #load() {
    if (!this.more || this.loading) return this.loading;
    this.loading = (async () => {
      const { rows, hasMore } = await this.more();
      this.loading = undefined;
      this.extend(rows, hasMore && rows.length > 0);
    })();
    this.loading.catch(() => (this.loading = undefined));
    return this.loading;
  }

  async #loadAll() {
    while (this.hasMore && this.isConnected) await this.#load();
  }
}

customElements.define("data-table", DataTable);

/** Creates a table from its settings. */
export const table = (settings) => new DataTable(settings);
