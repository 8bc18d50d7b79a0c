// A condition with its comparisons: their places in the text, and their outcomes. Pure.

/** Returns the index in `text` of the character at a UTF-8 byte offset. */
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

/** Cuts a text at spans `{ offset, length }` in bytes; a piece that a span covers has the span's `index`. */
export function cut(text, spans) {
  const places = spans.map((span, index) => span && {
    index, from: placeOf(text, span.offset), to: placeOf(text, span.offset + span.length),
  }).filter((span) => span && span.to > span.from).sort((one, other) => one.from - other.from || one.to - other.to);
  const found = [];
  let at = 0;
  for (const { index, from, to } of places) {
    if (from < at) continue; // Comparisons do not overlap; if spans do, only the first is marked.
    if (from > at) found.push({ text: text.slice(at, from) });
    found.push({ text: text.slice(from, to), index });
    at = to;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

/** Returns the outcome of a comparison as a class and a word. */
export function outcomeOf({ outcome, unknown }) {
  if (outcome === true) return ["true", "true"];
  if (outcome === false) return ["false", "false"];
  return ["error", unknown ? "unknown" : "error"];
}

/** Returns the place of a refusal or warning in the text of a draft: from and to, at least one character wide. */
export function mistake(text, { offset, length }) {
  const from = placeOf(text, offset);
  const to = placeOf(text, offset + Math.max(length ?? 0, 0));
  if (to > from) return { from, to };
  return from < text.length ? { from, to: from + (text.codePointAt(from) > 0xffff ? 2 : 1) } : { from: Math.max(0, from - 1), to: from };
}
