// The data of plots. Pure.

/** The size of a plot in its own units. */
export const plotWidth = 300;
export const plotHeight = 64;

/** Reduces numbers to at most `most` points: each is the highest of its range, and gaps stay gaps. */
export function thinned(values, most) {
  if (values.length <= most) return values.map((value, index) => ({ value, from: index, to: index }));
  return Array.from({ length: most }, (_, place) => {
    const from = Math.floor((place * values.length) / most);
    const to = Math.floor(((place + 1) * values.length) / most) - 1;
    let highest = null;
    for (let index = from; index <= to; index += 1) {
      if (values[index] !== null && (highest === null || values[index] > highest)) highest = values[index];
    }
    return { value: highest, from, to };
  });
}

/** Returns a round number that is at least `value`, for the top of a scale. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * size).find((step) => step >= value * (1 - 1e-9));
}

/** Returns the path of a line through points, with a gap where there is no number. */
export function line(points, top, slots) {
  let path = "";
  let isDown = false;
  points.forEach(({ value }, index) => {
    if (value === null || value === undefined) {
      isDown = false;
      return;
    }
    const x = slots > 1 ? (index / (slots - 1)) * plotWidth : plotWidth;
    const y = plotHeight - 1 - (Math.min(value, top) / top) * (plotHeight - 4);
    path += `${isDown ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  });
  return path;
}
