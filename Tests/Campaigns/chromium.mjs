// Drives the system's headless Chromium over the DevTools protocol, for campaigns that look at pages.
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { TinyWebSocket } from "../LiveClient/websocket.mjs";

const patience = 60_000; // Far more than anything here needs: a slow machine is no fault.

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Waits until `look` finds something, and returns it. */
export async function until(what, look, limit = patience) {
  const end = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not in ${limit / 1000} s`);
    await sleep(50);
  }
}

/** Returns Chromium's command; undefined without Chromium. */
export const chromium = () => ["chromium", "chromium-browser", "google-chrome"]
  .find((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status === 0);

export class Browser {
  #socket;
  #serial = 0;
  #waiting = new Map();
  #tabs = new Map();

  /** Starts Chromium with a profile in `folder`. */
  async start(binary, folder) {
    this.output = "";
    this.process = spawn(binary, [
      "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
      "--disable-background-networking", "--remote-debugging-port=0", `--user-data-dir=${path.join(folder, "browser")}`, "about:blank",
    ], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream.on("data", (data) => (this.output = (this.output + data).slice(-20_000)));
    }
    const [, url] = await until("Chromium says where it is", () => {
      if (this.process.exitCode !== null) throw new Error(`Chromium ended: ${this.output.slice(-2000)}`);
      return /DevTools listening on (ws:\S+)/.exec(this.output);
    });
    this.#socket = new TinyWebSocket(url);
    await new Promise((resolve) => (this.#socket.onopen = resolve));
    this.#socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
  }

  #take({ id, result, error, method, params, sessionId }) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (waiting) error ? waiting.reject(new Error(error.message)) : waiting.resolve(result);
    else this.#tabs.get(sessionId)?.note(method, params);
  }

  send(method, params = {}, sessionId) {
    const id = ++this.#serial;
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Opens a new tab of a class that knows its page. */
  async open(url, Kind = Tab) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Kind(this, sessionId, targetId);
    this.#tabs.set(sessionId, tab);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await tab.send(`${domain}.enable`);
    if (url) await tab.go(url);
    return tab;
  }

  /** Sends a signal to all of its processes, as a sleeping laptop stops them. */
  signal(name) {
    process.kill(-this.process.pid, name);
  }

  stop() {
    try {
      this.signal("SIGKILL");
    } catch {}
  }
}

export class Tab {
  /** The page's complaints: exceptions, console errors, violations of its policy. */
  faults = [];
  /** The size of each response in bytes, by address. */
  loaded = new Map();
  #addresses = new Map();

  constructor(browser, sessionId, targetId) {
    Object.assign(this, { browser, sessionId, targetId });
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  note(method, params) {
    if (method === "Runtime.exceptionThrown") {
      const { text, exception } = params.exceptionDetails;
      this.faults.push(exception?.description ?? text);
    } else if (method === "Log.entryAdded" && params.entry.level === "error" && params.entry.source !== "network") {
      this.faults.push(params.entry.text);
    } else if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) {
      this.faults.push(params.args.map((argument) => argument.value ?? argument.description).join(" "));
    } else if (method === "Network.responseReceived") {
      this.#addresses.set(params.requestId, params.response.url);
    } else if (method === "Network.loadingFinished") {
      this.loaded.set(this.#addresses.get(params.requestId), params.encodedDataLength);
    }
  }

  go(url) {
    return this.send("Page.navigate", { url });
  }

  /** Evaluates an expression; for a promise, returns its result. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until an expression is true; `what` describes it for people. */
  async sees(what, expression, limit) {
    // While a page is being replaced there is nothing to evaluate in.
    return until(`the page shows ${what}`, () => this.evaluate(expression).catch(() => false), limit).catch(async (error) => {
      const shown = await this.evaluate("document.body?.innerText.slice(0, 2000)").catch(() => "");
      throw new Error(`${error.message}; it shows:\n${shown}`);
    });
  }

  /** Waits until the page's text contains this. */
  says(text, limit) {
    return this.sees(`“${text}”`, `document.body.innerText.replace(/\\s+/g, " ").includes(${JSON.stringify(text)})`, limit);
  }

  size(width, height = 900, isPhone = false) {
    return this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: isPhone });
  }

  media(features) {
    return this.send("Emulation.setEmulatedMedia", { features: Object.entries(features).map(([name, value]) => ({ name, value })) });
  }

  async picture(file) {
    const { data } = await this.send("Page.captureScreenshot", { captureBeyondViewport: false });
    writeFileSync(file, Buffer.from(data, "base64"));
  }

  close() {
    return this.browser.send("Target.closeTarget", { targetId: this.targetId });
  }
}
