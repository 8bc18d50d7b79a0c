// A browser that shows live records: headless Chromium with the page and the client that the relay serves,
// over a network path that can be cut, delayed, or closed to upgrades. After each fault the page must show
// exactly what is true.
//
//   node Tests/Campaigns/live-browser.mjs [--binary .build/debug/belfry] [--rehearse] [--pictures FOLDER]
//
// --rehearse uses the miniature relay of Tests/LiveClient instead of a built one. Without Chromium it says so
// and succeeds; it ends by itself in any case.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Relay } from "../LiveClient/relay.mjs";
import { Browser, chromium, sleep, Tab, until } from "./chromium.mjs";

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const option = (name) => {
  const place = process.argv.indexOf(`--${name}`);
  return place < 0 ? undefined : process.argv[place + 1];
};
const folder = mkdtempSync(path.join(os.tmpdir(), "belfry-live-"));
const running = new Set();

function start(command, args, options) {
  const process = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  process.output = "";
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("data", (data) => (process.output = (process.output + data).slice(-200_000)));
  }
  running.add(process);
  process.on("exit", () => running.delete(process));
  return process;
}

// MARK: The relay

/** `belfry dev` in a folder that is kept across a kill. */
class BuiltRelay {
  recordType = "Art";

  constructor(binary) {
    this.binary = binary;
  }

  async start(port = 0) {
    this.process = start(
      this.binary, ["dev", "--port", `${port}`, "--folder", path.join(folder, "dev")],
      { env: { ...process.env, HOME: folder, XDG_RUNTIME_DIR: folder, TMPDIR: folder } });
    const printed = await until("belfry dev prints its commands", () => {
      if (this.process.exitCode !== null) throw new Error(`belfry dev ended: ${this.process.output}`);
      return /(http:\S+)\/database\/1\/([^/]+)\/development\S*ckAPIToken=(\w+)&ckWebAuthToken=([\w.-]+)/
        .exec(this.process.output);
    });
    [, this.url, this.container, this.apiToken, this.token] = printed;
  }

  async kill() {
    const ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
  }

  async change(recordName, price) {
    const record = { recordName, recordType: this.recordType, fields: { price: { value: price, type: "DOUBLE" } } };
    const operation = price === undefined
      ? { operationType: "forceDelete", record: { recordName } }
      : { operationType: "forceUpdate", record };
    const response = await fetch(
      `${this.url}/database/1/${this.container}/development/public/records/modify` +
        `?ckAPIToken=${this.apiToken}&ckWebAuthToken=${this.token}`,
      { method: "POST", body: JSON.stringify({ operations: [operation] }) });
    const answer = await response.json();
    if (!response.ok || answer.records[0].serverErrorCode) throw new Error(JSON.stringify(answer));
  }
}

/** The miniature relay. */
class SmallRelay {
  recordType = "Art";
  container = "iCloud.art";
  relay = new Relay();

  async start(port = 0) {
    await this.relay.start(port);
    this.url = this.relay.url;
  }

  async kill() {
    await this.relay.stop();
  }

  async change(recordName, price) {
    this.relay.change(recordName, price);
  }
}

// MARK: The path

/** A network path to the relay that can be disturbed. */
class Path {
  connections = new Set();
  isCut = false;
  closed = []; // Requests whose first bytes contain one of these are refused.
  buffered = []; // Requests that contain one of these are answered only when the response has ended.

  async start(target) {
    this.target = target;
    this.server = net.createServer((near) => this.#join(near));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  #join(near) {
    near.on("error", () => {});
    if (this.isCut) return near.destroy();
    const far = net.connect(Number(new URL(this.target).port), "127.0.0.1");
    const connection = { near, far, isHeld: false };
    this.connections.add(connection);
    const end = () => {
      this.connections.delete(connection);
      near.destroy();
      far.destroy();
    };
    far.on("error", end);
    for (const socket of [near, far]) socket.on("close", end);
    near.on("data", (data) => {
      if (connection.isHeld) return;
      if (this.closed.some((word) => data.includes(word))) return end();
      if (this.buffered.some((word) => data.includes(word))) connection.isBuffered = true;
      far.write(data);
    });
    far.on("data", (data) => connection.isHeld || connection.isBuffered || near.write(data));
  }

  /** Ends all connections, and accepts none until the path is repaired. */
  cut() {
    this.isCut = true;
    for (const { near } of this.connections) near.destroy();
  }

  /** Existing connections stay, but nothing passes any more: half-open. */
  hold() {
    for (const connection of this.connections) connection.isHeld = true;
  }

  mend() {
    this.isCut = false;
    this.closed = this.buffered = [];
  }
}

// MARK: The browser

/** The page with live records. */
class LivePage extends Tab {
  // A failed connection is no fault here; any other complaint of the page is.
  note(method, params) {
    if (method === "Log.entryAdded" && /WebSocket connection|ERR_/.test(params.entry.text)) return;
    super.note(method, params);
  }

  rows() {
    return this.evaluate(
      "[...document.querySelectorAll('#rows tr')].map((row) => `${row.dataset.key} ${row.cells[1]?.textContent}`).join()");
  }

  state() {
    // A tab that was just opened may have no text yet.
    return this.evaluate("['state', 'error'].map((name) => document.getElementById(name)?.textContent ?? '').join(' ')");
  }

  async says(wanted, limit) {
    let last;
    await until(`the page says "${wanted}"`, async () => (last = await this.state()).includes(wanted), limit)
      .catch((error) => {
        throw new Error(`${error.message}; it says "${last}"`);
      });
  }

  async shows(wanted, limit) {
    let last;
    await until(`the page shows ${wanted}`, async () => (last = await this.rows()) === wanted, limit)
      .catch(async (error) => {
        throw new Error(`${error.message}; it shows ${last}, and says "${await this.state()}"`);
      });
  }

  async picture(name) {
    if (option("pictures")) await super.picture(path.join(option("pictures"), `${name}.png`));
  }
}

// MARK: The campaign

async function campaign(relay, command) {
  await relay.start();
  const truth = new Map();
  const change = async (name, price) => {
    await relay.change(name, price);
    if (price === undefined) truth.delete(name);
    else truth.set(name, price);
  };
  const limit = isRehearsal ? 1000 : 20; // The miniature relay has no windows.
  const expected = () => [...truth].sort(([a, one], [b, other]) => one - other || (a < b ? -1 : 1)).slice(0, limit)
    .map(([name, price]) => `${name} ${price}`).join();
  for (let index = 0; index < 5; index += 1) await change(`art-${index}`, 10 * (index + 1));

  const way = new Path();
  await way.start(relay.url);
  await browser.start(command, folder);
  const address = `${way.url}/live/#${new URLSearchParams(Object.entries({
    container: relay.container, environment: "development", apiToken: relay.apiToken, recordType: relay.recordType,
    sortBy: "price", limit, token: relay.token,
  }).filter(([, value]) => value !== undefined))}`;
  const tabs = [];
  const open = async () => {
    const tab = await browser.open(address, LivePage);
    tabs.push(tab);
    return tab;
  };
  const step = async (what, act) => {
    const began = Date.now();
    await act();
    for (const tab of tabs) if (tab.faults.length) throw new Error(`${what}: ${tab.faults.join("; ")}`);
    console.log(`${what} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  };
  const rightIn = async (...all) => {
    for (const tab of all) await tab.shows(expected());
  };
  const busy = async (name) => {
    for (let round = 0; round < 5; round += 1) await change(`${name}-${round}`, 5 + 7 * round);
    await change(`${name}-0`);
    await change("art-4", 1 + truth.size / 100);
  };
  let first;
  let second;

  await step("The page shows what is there", async () => {
    first = await open();
    await rightIn(first);
    await first.says("Current, over WebSocket");
  });
  await step("Changes over HTTP appear, move and go", async () => {
    await change("new", 25);
    await rightIn(first);
    await until("the row flashes", () => first.evaluate("document.querySelector('tr.added')?.dataset.key === 'new'"));
    await change("new", 5);
    await rightIn(first);
    await change("new");
    await rightIn(first);
    await first.picture("wide");
  });
  await step("What did not change stays, and what is read aloud does not change each second", async () => {
    await first.evaluate("{ globalThis.kept = document.querySelector('#rows tr'); globalThis.aloud = 0; new MutationObserver(() => (aloud += 1)).observe(document.getElementById('standing'), { childList: true, characterData: true, subtree: true }); }");
    const before = await first.evaluate("document.getElementById('times').textContent");
    for (let round = 0; round < 50; round += 1) await change("art-4", 50 + round / 100);
    await rightIn(first);
    await until("its times are others", async () => (await first.evaluate("document.getElementById('times').textContent")) !== before);
    if (!(await first.evaluate("kept.isConnected && kept === document.querySelector('#rows tr')"))) throw new Error("a row that did not change was made anew");
    if (await first.evaluate("aloud")) throw new Error("the state is read aloud where it is the same");
  });
  await step("A window slides", async () => {
    for (let index = 0; index < 20; index += 1) await change(`many-${index}`, 30 + index / 100);
    await rightIn(first);
    await change("art-0");
    await rightIn(first);
  });
  await step("A second tab sees the same", async () => {
    second = await open();
    await rightIn(second);
    await change("both", 2);
    await rightIn(first, second);
  });
  await step("The browser goes offline and comes back", async () => {
    const conditions = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
    await first.send("Network.emulateNetworkConditions", { ...conditions, offline: true });
    for (const { near } of way.connections) near.destroy(); // Chromium's network emulation leaves sockets as they are.
    await first.says("Offline");
    await busy("offline");
    await rightIn(second);
    if ((await first.rows()) === expected()) throw new Error("offline, and still told");
    await first.send("Network.emulateNetworkConditions", { ...conditions, offline: false });
    await rightIn(first);
    await first.says("Current");
  });
  await step("The path is cut, and mended", async () => {
    way.cut();
    await first.says("Offline");
    await busy("cut");
    way.mend();
    await rightIn(first, second);
  });
  await step("The path is half open, and found out when the page is shown", async () => {
    way.hold();
    await busy("held");
    for (const tab of [first, second]) await tab.evaluate("dispatchEvent(new Event('online'))");
    await rightIn(first, second);
  });
  await step("The relay is killed, and comes back", async () => {
    const { port } = new URL(relay.url);
    await relay.kill();
    await first.says("Offline");
    await relay.start(port);
    await busy("killed");
    await rightIn(first, second);
  });
  await step("The browser sleeps for a while", async () => {
    browser.signal("SIGSTOP");
    await busy("asleep");
    await sleep(3000);
    browser.signal("SIGCONT");
    await rightIn(first, second);
  });
  await step("A tab is frozen in the background for a while", async () => {
    await first.send("Page.setWebLifecycleState", { state: "frozen" });
    await busy("frozen");
    await rightIn(second);
    await sleep(1000);
    await first.send("Page.setWebLifecycleState", { state: "active" });
    await rightIn(first);
  });
  await step("Where no upgrade comes through, a stream carries it", async () => {
    way.closed = ["pgrade: websocket"];
    const third = await open();
    await third.says("event stream, as of");
    await busy("stream");
    await rightIn(first, second, third);
    await third.close();
  });
  await step("Where no stream comes through, polls do", async () => {
    way.closed = ["pgrade: websocket", "/stream"];
    const third = await open();
    await third.says("Current, over polls");
    await busy("polls");
    await rightIn(third);
    way.mend();
    await third.close();
  });
  await step("Where a proxy holds streams back, polls do", async () => {
    way.closed = ["pgrade: websocket"];
    way.buffered = ["/stream"];
    const third = await open();
    await third.says("Current, over polls");
    await busy("buffered");
    await rightIn(third);
    way.mend();
    await third.close();
  });
  await step("It fits a phone, in the dark too", async () => {
    await first.send("Emulation.setDeviceMetricsOverride", { width: 390, height: 844, deviceScaleFactor: 2, mobile: true });
    const width = await first.evaluate("document.documentElement.scrollWidth");
    if (width > 390) throw new Error(`the page is ${width} pixels wide`);
    await first.picture("phone");
    await first.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "dark" }] });
    await first.picture("phone-dark");
  });
  way.server.close();
  console.log("The browser saw everything, each time.");
}

// MARK: Begin and end

const browser = new Browser();

function clean() {
  browser.stop();
  for (const process of running) process.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

function end(code, word) {
  if (word) console[code ? "error" : "log"](word);
  clean();
  process.exit(code);
}

const command = chromium();
if (!command) end(0, "Chromium is not there, and the browser is left out.");
const isRehearsal = process.argv.includes("--rehearse");
const binary = isRehearsal ? undefined
  : [option("binary"), ...["release", "debug"].map((kind) => path.join(root, ".build", kind, "belfry"))]
    .find((place) => place && existsSync(place));
if (!isRehearsal && !binary) end(1, "build belfry first: swift build -c release --product belfry");
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => end(1, `ended by ${name}`));
setTimeout(() => end(1, "the campaign took more than ten minutes"), 600_000).unref();
const relay = isRehearsal ? new SmallRelay() : new BuiltRelay(path.resolve(binary));
try {
  await campaign(relay, command);
  end(0);
} catch (error) {
  console.error(relay.process?.output?.slice(-3000) ?? "");
  end(1, `failed: ${error.stack}`);
}
