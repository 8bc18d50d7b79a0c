// A condition with its comparisons: where each stands in the text, and what it came to. Pure.

/** Where a byte of the text's UTF-8 stands in the text. */
export function placeOf(text, offset) {
  let bytes = 0;
  let place = 0;
  for (const character of text) {
    if (bytes >= offset) break;
    const code = character.codePointAt(0);
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    place += character.length;
  }
  return place;
}

/** A text cut at spans `{ offset, length }` in bytes; a piece that a span covers has its `index`. */
export function cut(text, spans) {
  const places = spans.map((span, index) => span && {
    index, from: placeOf(text, span.offset), to: placeOf(text, span.offset + span.length),
  }).filter((span) => span && span.to > span.from).sort((one, other) => one.from - other.from || one.to - other.to);
  const found = [];
  let at = 0;
  for (const { index, from, to } of places) {
    if (from < at) continue; // Comparisons do not overlap; whatever does is not marked twice.
    if (from > at) found.push({ text: text.slice(at, from) });
    found.push({ text: text.slice(from, to), index });
    at = to;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

/** What a comparison came to, as a class and a word. */
export function outcomeOf({ outcome, unknown }) {
  if (outcome === true) return ["true", "true"];
  if (outcome === false) return ["false", "false"];
  return ["error", unknown ? "unknown" : "error"];
}

/** The place of a refusal in the text of a draft, or that of a warning: from and to, at least one character wide. */
export function mistake(text, { offset, length }) {
  const from = placeOf(text, offset);
  const to = placeOf(text, offset + Math.max(length ?? 0, 0));
  if (to > from) return { from, to };
  return from < text.length ? { from, to: from + (text.codePointAt(from) > 0xffff ? 2 : 1) } : { from: Math.max(0, from - 1), to: from };
}
