// Phones: the sandbox's devices as screens, showing pushes as their users would see them.
import { pause } from "./api.js";
import { fill, h, link, said } from "./dom.js";
import { empty, head, problem, snippet } from "./parts.js";
import { seen } from "./pushes.js";

const most = 20;

export async function show(host, context) {
  const { relay, signal } = context;
  const state = h("span", { class: "live", role: "status" }, "…");
  const grid = h("div", { class: "phones" });
  const said_ = h("p", { class: "away", "aria-live": "polite" });
  fill(host, head("Phones", "The sandbox's devices. A push that the simulated gateway accepts appears here as its user would see it.", state, context.current && link(context.to("send"), "Send a change")), grid, said_);
  const screens = new Map();
  let after;
  const take = ({ phones, pushes, after: next, restarted }, isFirst) => {
    if (restarted) {
      screens.clear();
      fill(grid);
    }
    for (const phone of phones) {
      const key = `${phone.userRecordName}\n${phone.deviceID}`;
      if (screens.has(key)) continue;
      const screen = new Phone(phone, context, screens.size);
      screens.set(key, screen);
      grid.append(screen.element);
    }
    for (const push of pushes) {
      screens.get(`${push.userRecordName}\n${push.deviceID}`)?.take(push, !isFirst);
      if (!isFirst) said_.textContent = `${push.deviceID}: ${seen(push.payload).spoken}`;
    }
    if (!screens.size) fill(grid, empty("No device", "The sandbox's devices are gone: start the sandbox with a new folder to get them back."));
    after = next;
  };
  try {
    take(await relay.get("/admin/1/phones", {}, signal), true);
  } catch (error) {
    if (error.status !== 404) throw error;
    fill(grid, h("div", null, empty("Only the sandbox has phones", "belfry dev runs a relay with simulated devices. A real relay's pushes go to real devices.", link(context.to("tail"), "See pushes in the tail")), snippet("belfry dev", "starting the sandbox")));
    return;
  }
  (async () => {
    for (;;) {
      try {
        state.className = "live on";
        state.textContent = "listening";
        take(await relay.get("/admin/1/phones", { after, hold: 25 }, signal), false);
      } catch (error) {
        if (signal.aborted) return;
        state.className = "live off";
        state.textContent = error.status ? error.message : "the relay does not answer";
        if (error.status && error.status < 500 && error.status !== 429) return void grid.prepend(problem(error));
        await pause((error.retryAfter ?? 3) * 1000, signal).catch(() => {});
      }
    }
  })();
}

class Phone {
  badge = 0;

  constructor({ deviceID, userRecordName }, context, place) {
    this.context = context;
    this.badgePlace = h("span");
    this.app = h("div", { class: "screen-app" }, h("span", { class: "app-icon" }, "A", this.badgePlace));
    this.list = h("div", { class: "stack" });
    this.none = h("p", { class: "screen-empty" }, "Nothing yet");
    this.time = h("div", { class: "screen-time" });
    this.tick();
    const isTablet = /tablet|ipad/i.test(deviceID);
    this.element = h("section", { class: `phone ${isTablet ? "tablet" : ""} ${place > 1 ? "other" : ""}`, "aria-label": `${deviceID} of ${userRecordName}` },
      h("div", { class: "phone-frame" }, h("div", { class: "screen", tabindex: 0, role: "group", "aria-label": `Screen of ${deviceID}` }, this.time, this.app, this.none, this.list)),
      h("p", { class: "row" }, h("b", null, said(deviceID, 60)), h("span", { class: "dim" }, "of ", said(userRecordName, 60))));
    const timer = setInterval(() => this.tick(), 10_000);
    context.signal.addEventListener("abort", () => clearInterval(timer));
  }

  tick() {
    this.time.textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }

  take(push, isFresh) {
    const shown = seen(push.payload, push.pushType);
    this.none.remove();
    if (shown.badge !== undefined) {
      fill(this.badgePlace, shown.badge > 0 ? h("span", { class: "app-badge", "aria-label": `badge ${shown.badge}` }, shown.badge) : null);
    }
    const marks = [shown.sound && "♪ sound", shown.isCritical && "critical", shown.badge !== undefined && `badge ${shown.badge}`].filter(Boolean).join(" · ");
    this.list.prepend(h("article", { class: `push ${shown.isSilent ? "silent" : ""} ${isFresh ? "fresh" : ""}` },
      h("div", { class: "push-top" }, h("span", null, said(push.topic?.split(".").at(-1) ?? "", 30)), h("time", { datetime: push.at }, new Date(push.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" }))),
      shown.isSilent ? h("p", null, "Silent: the application is woken and shows nothing") : [shown.title && h("p", { class: "push-title" }, said(shown.title, 300)), shown.subtitle && h("p", null, said(shown.subtitle, 300)), h("p", null, said(shown.body, 600))],
      shown.isLocalised && h("p", { class: "small" }, "Text from the application's own localized strings"),
      h("div", { class: "push-top" }, h("span", null, marks), link(this.context.to("explain", { delivery: push.deliveryID }), "Why?"))));
    while (this.list.childElementCount > most) this.list.lastElementChild.remove();
  }
}
