// Computes how a device shows a push to its user, from the APNs payload. Pure.

/** Fills in a format of the application's strings: %@, %1$@, %d and %% as on iOS. */
export function formatted(format, values = []) {
  let place = 0;
  return format.replace(/%(?:(\d+)\$)?(?:@|l{0,2}[diuf])|%%/g, (found, number) => {
    if (found === "%%") return "%";
    const index = number ? Number(number) - 1 : place++;
    return values[index] === undefined ? "" : String(values[index]);
  });
}

/** Returns a text given directly or by its key; without the application's strings, iOS falls back to the key itself. */
function text(plain, key, values) {
  if (key === undefined) return plain;
  const whole = formatted(String(key), values);
  return whole === String(key) && values?.length ? `${key} (${values.join(", ")})` : whole;
}

/** Returns what the user sees and hears of a payload. */
export function seen(payload, pushType) {
  const aps = payload?.aps ?? {};
  const alert = typeof aps.alert === "string" ? { body: aps.alert } : aps.alert ?? {};
  const title = text(alert.title, alert["title-loc-key"], alert["title-loc-args"]);
  const subtitle = text(alert.subtitle, alert["subtitle-loc-key"], alert["subtitle-loc-args"]);
  const body = text(alert.body, alert["loc-key"], alert["loc-args"]);
  const sound = typeof aps.sound === "object" && aps.sound !== null ? aps.sound.name : aps.sound;
  const badge = typeof aps.badge === "number" ? aps.badge : undefined;
  const isSilent = pushType === "background" || !(title || subtitle || body || sound || badge !== undefined);
  return {
    title, subtitle, body: body ?? (title || isSilent ? "" : badge === undefined ? "" : "Only the badge number changes"), sound, badge, isSilent,
    isCritical: typeof aps.sound === "object" && Boolean(aps.sound?.critical), isLocalised: [alert["loc-key"], alert["title-loc-key"], alert["subtitle-loc-key"]].some((key) => key !== undefined),
    spoken: isSilent ? "a silent push" : [title, subtitle, body].filter(Boolean).join(". ") || `badge ${badge}`,
  };
}
