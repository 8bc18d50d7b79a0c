// The console in a browser: headless Chromium opens every page on a relay with data and does what the page is
// for. The effects are checked over HTTP. No page may complain, violate its policy, treat a stranger's text
// as markup, show a reader what only others may press, or fail a serious check of axe-core.
//
//   node Tests/Campaigns/console-browser.mjs [--binary .build/release/belfry] [--pictures FOLDER] [--only WORD]
//
// Without Chromium it says so and succeeds; without axe-core (from PyPI) those checks are left out. It ends
// by itself.
import { spawn, spawnSync } from "node:child_process";
import { createHmac, generateKeyPairSync } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Browser, chromium, until } from "./chromium.mjs";

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const option = (name) => {
  const place = process.argv.indexOf(`--${name}`);
  return place < 0 ? undefined : process.argv[place + 1];
};
const folder = mkdtempSync(path.join(os.tmpdir(), "belfry-console-"));
const running = new Set();
const container = "iCloud.com.example.Art";
const adminToken = "admin-token-of-the-campaigns";
const userSecret = "a shared secret of at least 32 bytes";
const most = 150_000; // The number of bytes of the console's files that may be loaded by opening every page once.

function start(command, args, environment = {}) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, HOME: folder, XDG_RUNTIME_DIR: folder, TMPDIR: folder, ...environment } });
  child.output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (child.output = (child.output + data).slice(-100_000)));
  running.add(child);
  child.on("exit", () => running.delete(child));
  return child;
}

const freePort = () => new Promise((resolve) => {
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

// MARK: A relay with data

const deviceToken = (name) => Buffer.from(name).toString("hex").padEnd(64, "0");

function userToken(user) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const body = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub: user, exp: 4102444800 })}`;
  return `${body}.${createHmac("sha256", userSecret).update(body).digest("base64url")}`;
}

/** `belfry serve` with a push gateway whose answers are scripted. */
class BuiltRelay {
  base = `/admin/1/containers/${container}/development`;

  async start(binary) {
    // The first pushes to one device become dead letters; later ones are accepted.
    const script = path.join(folder, "script.json");
    writeFileSync(script, JSON.stringify({ rules: [{ for: { device: deviceToken("dead-phone") }, answers: [{ do: "refuse", status: 400, reason: "BadCollapseId", times: 4 }] }] }));
    const authority = path.join(folder, "ca.pem");
    const gatewayPort = await freePort();
    const gateway = start(binary, ["gateway", "--port", `${gatewayPort}`, "--ca-file", authority, "--environment", "development", "--script", script]);
    await until("the gateway is there", () => existsSync(authority) && gateway.output.length > 0);
    const [port, admin] = [await freePort(), await freePort()];
    [this.url, this.admin] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${admin}`];
    this.process = start(binary, ["serve", "--storage-path", path.join(folder, "relay.sqlite"), "--storage-create", "whenMissing", "--http-port", `${port}`, "--admin-port", `${admin}`,
      "--storage-disk-reserve-megabytes", "0", "--apns-url", `https://127.0.0.1:${gatewayPort}`, "--apns-ca-file", authority, "--log-level", "warning"], { BELFRY_ADMIN_TOKEN: adminToken });
    await until("the relay is ready", async () => {
      if (this.process.exitCode !== null) throw new Error(`belfry serve ended: ${this.process.output}`);
      return (await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok;
    });
  }

  async ask(method, target, body) {
    const response = await fetch(`${this.admin}${target}`, { method, headers: { Authorization: `Bearer ${adminToken}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${target}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  }

  get(target) {
    return this.ask("GET", `${this.base}${target}`);
  }

  async client(action, body, user, database) {
    const place = database ? `database/1/${container}/development/${database}` : `device/1/${container}/development`;
    const response = await fetch(`${this.url}/${place}/${action}?ckAPIToken=${this.apiToken}&ckWebAuthToken=${userToken(user)}`, { method: "POST", body: JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok || JSON.stringify(answer).includes("serverErrorCode")) throw new Error(`${action}: ${JSON.stringify(answer)}`);
    return answer;
  }

  async post(source, body) {
    const response = await fetch(`${this.url}/changes/1/${container}/development/${source}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${source}: ${JSON.stringify(answer)}`);
    return answer;
  }

  save(user, subscriptionID, predicate, alertBody = "New") {
    return this.client("subscriptions/modify", { operations: [{ operationType: "create", subscription: {
      subscriptionID, subscriptionType: "query", query: { recordType: "Artwork", predicate }, firesOn: ["create", "update"], notificationInfo: { alertBody } } }] }, user, "public");
  }

  async furnish() {
    const privateKey = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" });
    await this.ask("PUT", this.base, { topics: ["com.example.Art"], keepsInbox: true, apns: { teamID: "TEAM123456", keyID: "KEY1234567", privateKey }, userTokens: { sharedSecret: userSecret } });
    this.apiToken = (await this.ask("POST", `${this.base}/keys`, { kind: "apiToken", label: "app" })).secret;
    await this.ask("POST", `${this.base}/keys`, { kind: "bearer", label: hostile.text });
    await this.ask("PUT", `${this.base}/sources/database`, { preset: "belfry", verification: { scheme: "none" } });
    await this.ask("PUT", `${this.base}/sources/shop`, { preset: "debezium", verification: { scheme: "none" }, onUnmappable: "park" });
    this.readerToken = (await this.ask("POST", "/admin/1/tokens", { label: "dashboard", access: "read" })).secret;
    await this.ask("POST", "/admin/1/tokens", { label: hostile.text, access: "read" });
    for (const [user, device] of [["ann", "anns-phone"], ["ann", "anns-tablet"], ["bob", "bobs-phone"], ["dora", "dead-phone"], [hostile.user, hostile.device]]) {
      await this.client("tokens/register", { apnsEnvironment: "development", deviceID: device, apnsToken: deviceToken(device) }, user);
    }
    await this.save("ann", "cheap", "price < 100", "A cheap one");
    await this.save("bob", "by-monet", 'artist == "Monet" AND price < 50');
    await this.save("dora", "doomed", "doomed == 1");
    await this.save(hostile.user, hostile.subscription, `title == "${hostile.text}"`, hostile.alert);
    const make = (recordName, after) => ({ operation: "create", recordType: "Artwork", recordName, after });
    await this.post("database", [make("sea", { title: "Sea", artist: "Monet", price: 40 }), make("sky", { title: "Sky", artist: "Turner", price: 120 }),
      make(hostile.record, { title: hostile.text, price: 300, note: "x".repeat(10_000), big: 1 }), make("reeds", { title: "Reeds", artist: "Monet", price: 70 }),
      ...[1, 2, 3, 4].map((number) => make(`doomed-${number}`, { title: "Doomed", doomed: 1, price: 900 }))]);
    for (const number of [1, 2]) await this.post("shop", { before: null, after: { title: `Parked ${number}`, [hostile.text]: hostile.record }, source: { connector: "postgresql", name: "shop", schema: "public", table: "Artwork", lsn: 100 + number, txId: 7 }, op: "c" });
    await until("everything is settled", async () => {
      const overview = await this.ask("GET", "/admin/1/overview");
      return overview.behind === "0" && overview.retries === 0;
    });
    const { deadLetters } = await this.get("/deadLetters");
    if (deadLetters.length !== 4) throw new Error(`${deadLetters.length} dead letters in place of 4`);
    const { parked } = await this.get("/changes/parked");
    if (parked.length !== 2) throw new Error(`${parked.length} parked changes in place of 2`);
  }
}

/** Texts that strangers may write. */
const hostile = {
  user: "<b onmouseover=hit()>u\u202eser",
  record: '"><img src=x onerror=hit()>\u202egpj',
  device: "<img src=x onerror=hit()>",
  subscription: "\"><svg onload=hit()>",
  name: "<svg/onload=hit()>",
  text: "</script><script>hit()</script>${hit()}{{hit()}}",
  alert: "<svg onload=hit()>\nline\u0007 \u200f" + "long ".repeat(300),
};

// MARK: The campaign

class Campaign {
  constructor(relay, browser, axe, binary) {
    Object.assign(this, { relay, browser, axe, binary });
    this.pictures = option("pictures");
    if (this.pictures) mkdirSync(this.pictures, { recursive: true });
  }

  address(page, params = {}) {
    return `${this.relay.admin}/console/${page}?${new URLSearchParams({ container, environment: "development", ...params })}`;
  }

  async open(page, params) {
    await this.tab.go(this.address(page, params));
    await this.tab.sees(`the page ${page}`, "!!document.querySelector('main h1') && !document.querySelector('main .waiting')");
  }

  async step(what, act) {
    if (option("only") && !/sign/i.test(what) && !what.toLowerCase().includes(option("only"))) return;
    const began = Date.now();
    await act();
    this.quiet(what);
    console.log(`${what} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  }

  quiet(what) {
    const faults = this.tab.faults.splice(0);
    if (faults.length) throw new Error(`${what}: the page complains: ${faults.join("; ")}`);
  }

  /** Presses the element with these words: in the open dialog, else on the page, else beside it. */
  async press(words) {
    const find = `[document.querySelector('dialog[open]'), document.querySelector('main'), document].filter(Boolean)
      .flatMap((place) => [...place.querySelectorAll('button, summary, a')]).find((one) => one.textContent.trim() === ${JSON.stringify(words)})`;
    await this.tab.sees(`something to press: ${words}`, `(() => { const one = ${find}; one?.click(); return !!one; })()`);
  }

  /** Fills inputs by their names, as a user would. */
  async fill(values) {
    for (const [name, value] of Object.entries(values)) {
      const find = `(document.querySelector('dialog[open]') ?? document).querySelector('[name="${name}"]')`;
      await this.tab.sees(`the input ${name}`, `!!${find}`);
      await this.tab.evaluate(`{ const one = ${find}; one.value = ${JSON.stringify(value)}; for (const kind of ["input", "change"]) one.dispatchEvent(new Event(kind, { bubbles: true })); }`);
    }
  }

  equal(what, found, wanted) {
    if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)} in place of ${JSON.stringify(wanted)}`);
  }

  text() {
    return this.tab.evaluate("document.querySelector('main').innerText");
  }

  async signIn(token) {
    await this.tab.sees("the token's input", "!!document.querySelector('input[name=token]')");
    await this.fill({ token });
    await this.press("Sign in");
  }

  async run() {
    const { relay } = this;
    this.tab = await this.browser.open();
    await this.tab.size(1280);
    await this.step("Signing in", () => this.signingIn());
    await this.step("Now shows the last hour and what needs attention", () => this.now());
    await this.step("The tail shows a change, what it fired and to whom it went", () => this.tail());
    await this.step("Explain says what the relay says", () => this.explain());
    await this.step("Rehearse checks a draft as one types, and judges it", () => this.rehearse());
    await this.step("A change is sent by the form and as JSON", () => this.send());
    await this.step("Users: a device is forgotten, a subscription deleted", () => this.users());
    await this.step("Deliveries are listed, filtered and opened", () => this.deliveries());
    await this.step("An answer that comes late changes nothing, and a dialog goes with its page", () => this.late());
    await this.step("Dead letters are dropped and redriven", () => this.deadLetters());
    await this.step("A parked change is mended and replayed, another dropped", () => this.parked());
    await this.step("Containers: a source, a key, the schema", () => this.containers());
    await this.step("A token is created and revoked, and the audit log has it", () => this.access());
    await this.step("What strangers wrote is text everywhere", () => this.strangers());
    await this.step("Tables of 100,000 rows scroll, and are copied", () => this.manyRows());
    await this.step("Every page fits 390 pixels, in light and in the dark, and axe-core finds nothing serious", () => this.looks());
    await this.step("Opening a page loads little", () => this.small());
    await this.step("A reader sees nothing that a reader may not press", () => this.reader());
    await this.step("Signing out, and a session that ended", () => this.signingOut());
    await this.step("Phones show pushes as their users see them", () => this.phones());
  }

  async signingIn() {
    await this.tab.go(this.address("deliveries"));
    await this.signIn("not the token");
    await this.tab.says("it is not a token of this relay");
    await this.signIn("a token out of a chat\u200b");
    await this.tab.says("A token may contain only ASCII");
    await this.signIn(adminToken);
    await this.tab.sees("the page that was asked for", "document.querySelector('main h1')?.textContent === 'Deliveries'");
    if (await this.tab.evaluate("document.cookie")) throw new Error("the page can read the session's cookie");
  }

  async now() {
    await this.open("now");
    await this.tab.sees("plots", "document.querySelectorAll('time-plot').length === 12");
    await this.tab.sees("a line in a plot", "!!document.querySelector('time-plot .plot-line')?.getAttribute('d')");
    await this.tab.sees("the verdict", "!!document.querySelector('.verdict .verdict-title')");
    await this.tab.says("4 dead letters");
    const { paints, lasted } = await this.tab.evaluate("({ paints: performance.getEntriesByType('paint').map(({ name, startTime }) => [name, Math.round(startTime)]), lasted: Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd) })");
    console.log(`  first paint after ${paints.map(([name, time]) => `${time} ms (${name})`).join(", ")}; loaded after ${lasted} ms`);
  }

  async tail() {
    await this.open("tail");
    await this.tab.sees("that it listens, and the changes before", "document.querySelectorAll('.tail > li').length >= 4");
    const { results: [{ position }] } = await this.relay.post("database", { operation: "create", recordType: "Artwork", recordName: "new-one", after: { title: "New", price: 5 }, origin: { deviceID: "anns-phone" } });
    await this.tab.sees("the change", "document.querySelector('.tail > li summary')?.innerText.includes('new-one')");
    await this.tab.evaluate("document.querySelector('.tail > li summary').click()");
    await this.tab.sees("the push and its answer", "/delivered\\s+anns-tablet/.test(document.querySelector('.tail > li').innerText)");
    const { deliveries } = await this.relay.ask("GET", `/admin/1/deliveries?position=${position}`);
    this.equal("deliveries of the change", deliveries.map(({ state }) => state), ["delivered"]);
    await this.press("Pause");
    await this.relay.post("database", { operation: "create", recordType: "Artwork", recordName: "while-paused", after: { title: "Later", price: 500 } });
    await this.tab.says("1 change came since");
    if ((await this.text()).includes("while-paused")) throw new Error("paused, and still shown");
    await this.press("Go on");
    await this.tab.says("while-paused");
    await this.tab.evaluate("document.querySelector('[name=recordType]').focus()");
    await this.fill({ recordType: "Nothing" });
    await this.tab.sees("the filter in the address", "location.search.includes('recordType=Nothing')");
    await this.tab.says("No change yet");
  }

  async explain() {
    await this.open("explain");
    await this.fill({ recordType: "Artwork", recordName: "sky", user: "ann" });
    await this.press("Explain");
    const { explanations: [one] } = await this.relay.get("/explain?recordType=Artwork&recordName=sky&user=ann");
    await this.tab.says(one.sentence);
    await this.tab.sees("the comparison that decided", "document.querySelector('.condition u.false')?.textContent === 'price < 100'");
    await this.tab.says("price is 120");
    // The address contains the question.
    const address = await this.tab.evaluate("location.href");
    await this.tab.go(address);
    await this.tab.says(one.sentence);
    const { deliveries: [delivery] } = await this.relay.ask("GET", "/admin/1/deliveries?state=delivered");
    await this.open("explain", { delivery: delivery.deliveryID, position: delivery.position });
    await this.tab.says("Fired.");
    await this.open("explain", { subscription: "cheap", user: "ann" });
    await this.tab.says("did not fire");
    await this.tab.says("changes that it could watch");
  }

  async rehearse() {
    await this.open("rehearse");
    await this.fill({ user: "ann", recordType: "Artwork", predicate: "price < 100 AND" });
    await this.tab.sees("the refusal, and its place", "!!document.querySelector('.draft mark') && document.querySelector('#draft-state').innerText.includes('refused')");
    await this.fill({ predicate: "prise < 100" });
    await this.tab.says("did you mean price?");
    await this.fill({ predicate: "price < 1000" });
    await this.tab.sees("that the draft is fine", "document.querySelector('#draft-state').innerText.startsWith('fine')");
    await this.press("Rehearse");
    const found = await this.relay.ask("POST", `${this.relay.base}/rehearse`, { user: "ann", subscription: { subscriptionType: "query", query: { recordType: "Artwork", predicate: "price < 1000" }, firesOn: ["create", "update", "delete"], notificationInfo: { shouldSendContentAvailable: true } } });
    await this.tab.says(found.sentence);
    this.equal("how often it would have fired", await this.tab.evaluate("document.querySelector('.numbers .big').textContent"), String(found.fired));
    await this.open("rehearse", { user: "ann", subscription: "cheap" });
    await this.tab.sees("the saved condition", "document.querySelector('#draft').value === 'price < 100'");
    // Parts that the form does not show stay as saved: the zone, the dialect and the database.
    const told = { notificationInfo: { alertBody: "Yours", title: "Own" } };
    await this.relay.client("subscriptions/modify", { operations: [
      { ...told, subscriptionID: "hall", subscriptionType: "query", query: { recordType: "Artwork", rql: "price < 1000" }, zoneID: { zoneName: "hall" }, firesOn: ["create"], suppress: "none" },
      { ...told, subscriptionID: "all", subscriptionType: "zone", zoneWide: true },
    ].map((subscription) => ({ operationType: "create", subscription })) }, "eve", "private");
    await this.relay.post("database", ["hall", "_defaultZone"].map((zoneName) => ({ operation: "create", recordType: "Artwork", recordName: "of-eve", database: "private", owner: "eve", zoneID: { zoneName }, after: { price: 5 } })));
    await this.open("users", { user: "eve" });
    await this.tab.sees("both subscriptions", "[...document.querySelectorAll('data-table a')].filter((one) => one.textContent === 'Explain').length === 2");
    await this.tab.evaluate("[...document.querySelectorAll('data-table tr')].find((row) => row.innerText.includes('hall')).querySelector('a').click()");
    await this.tab.says("Of the last 2 changes that it could watch, 1 fired it");
    for (const [subscription, fired] of [["hall", 1], ["all", 2]]) {
      await this.open("rehearse", { user: "eve", subscription, database: "private" });
      await this.tab.sees("the saved subscription in the form", "document.querySelector('[name=alertBody]')?.value === 'Yours'");
      await this.press("Rehearse");
      await this.tab.says(`As it is saved it would have fired ${fired === 1 ? "once" : `${fired} times`}: none is added, none is removed.`);
    }
  }

  async send() {
    await this.open("send", { source: "database" });
    await this.tab.sees("the fields that are known", "[...document.querySelectorAll('[aria-label=Field]')].some(({ value }) => value === 'price')");
    await this.fill({ operation: "create", recordType: "Artwork", recordName: "sent-by-hand" });
    await this.tab.evaluate(`for (const row of document.querySelectorAll('.fields-row')) {
      const value = { title: "By hand", price: "12" }[row.querySelector("[aria-label=Field]").value];
      const input = row.querySelector("[aria-label=Value]");
      if (value) { input.value = value; input.dispatchEvent(new Event("input", { bubbles: true })); }
    }`);
    await this.tab.says("curl -sS");
    await this.press("Send");
    await this.tab.says("appended");
    await this.tab.says("cheap");
    const { changes } = await this.relay.get("/changes?limit=1000");
    const sent = changes.find(({ change }) => change.name === "sent-by-hand");
    this.equal("the change in the log", sent?.change.after, { full: { price: 12, title: "By hand" } });
    // Explain also works for the last of many users.
    for (let number = 0; number < 24; number += 1) await this.relay.save(`reader-${String(number).padStart(2, "0")}`, "none", "price < 0");
    await this.relay.save("zoe", "the-last", "price == 13");
    await this.press("As JSON");
    await this.fillArea({ operation: "update", recordType: "Artwork", recordName: "sent-by-hand", after: { title: "As JSON", price: 13 } });
    await this.press("Send");
    await this.tab.sees("that it was appended", "/appended/.test(document.querySelector('main').innerText)");
    await this.tab.says("the-last");
    await until("the update is in the log", async () => (await this.relay.get("/changes?limit=1000")).changes.some(({ change }) => change.name === "sent-by-hand" && change.op === "update"));
    await this.fillArea({ operation: "upgrade" });
    await this.press("Send");
    await this.tab.says("operation");
  }

  fillArea(value) {
    return this.tab.evaluate(`{ const area = document.querySelector("#body"); area.value = ${JSON.stringify(JSON.stringify(value))}; area.dispatchEvent(new Event("input", { bubbles: true })); }`);
  }

  async users() {
    await this.open("users");
    await this.tab.says("ann");
    await this.press("ann");
    await this.tab.says("anns-tablet");
    await this.tab.says("price < 100");
    await this.tab.evaluate("[...document.querySelectorAll('data-table tr')].find((row) => row.innerText.includes('anns-tablet')).querySelector('button').click()");
    await this.tab.says("Forget anns-tablet?");
    await this.press("Cancel");
    this.equal("devices after thinking again", (await this.relay.get("/devices?user=ann")).devices.length, 2);
    await this.tab.evaluate("[...document.querySelectorAll('data-table tr')].find((row) => row.innerText.includes('anns-tablet')).querySelector('button').click()");
    await this.press("Forget");
    await until("the device is forgotten", async () => (await this.relay.get("/devices?user=ann")).devices.length === 1);
    await this.tab.says("1 device");
    await this.open("users", { user: "bob" });
    await this.press("Delete");
    await this.tab.says("Delete by-monet?");
    await this.press("Delete");
    await until("the subscription is deleted", async () => (await this.relay.get("/subscriptions?user=bob")).subscriptions.length === 0);
  }

  async deliveries() {
    await this.open("deliveries");
    await this.tab.sees("rows", "document.querySelectorAll('data-table tbody[role] tr').length > 3");
    await this.fill({ state: "dead" });
    await this.tab.sees("dead ones alone", "[...document.querySelectorAll('data-table:last-of-type tbody[role] tr')].every((row) => row.innerText.includes('dead'))");
    await this.fill({ user: "ann", state: "" });
    await this.tab.sees("ann's alone", "[...document.querySelectorAll('data-table tbody[role] tr')].length > 0 && [...document.querySelectorAll('data-table tbody[role] tr')].every((row) => row.innerText.includes('ann'))");
    await this.tab.evaluate("document.querySelector('data-table a[href*=\"delivery=\"] code').closest('a').click()");
    await this.tab.says("Attempts");
    await this.tab.says("200");
  }

  /** Delays the calls whose address matches, as on a slow network. */
  slow(pattern, milliseconds, method = "GET") {
    return this.tab.evaluate(`{ const fetched = globalThis.fetch; globalThis.calls = 0; globalThis.fetch = async (target, options) => {
      if (${pattern}.test(target) && options.method === "${method}") { calls += 1; await new Promise((resolve) => setTimeout(resolve, ${milliseconds})); }
      return fetched(target, options); }; }`);
  }

  async late() {
    await this.open("deadletters");
    await this.tab.says("BadCollapseId");
    // The answer to the first question comes last; the page must still show and drop what the filters say.
    await this.slow("/deadLetters\\?(?!.*user=ann)/", 1500);
    await this.fill({ reason: "BadCollapseId" });
    await this.fill({ user: "ann" });
    await this.tab.says("No dead letter matches");
    await this.tab.evaluate("new Promise((resolve) => setTimeout(resolve, 2000))");
    await this.tab.says("No dead letter matches");
    await this.open("rehearse", { user: "ann", recordType: "Artwork", predicate: "price < 100", on: "create" });
    await this.tab.evaluate(`{ const fetched = globalThis.fetch; globalThis.fetch = async (target, options) => {
      const answer = await fetched(target, options);
      if (/rehearse/.test(target) && options.body.includes("price < 100")) await new Promise((resolve) => setTimeout(resolve, 1500));
      return answer; }; }`);
    await this.press("Rehearse");
    await this.fill({ predicate: "price < 0" });
    await this.press("Rehearse");
    await this.tab.says("None of them would have fired it");
    await this.tab.evaluate("new Promise((resolve) => setTimeout(resolve, 2000))");
    await this.tab.says("None of them would have fired it");
    await this.open("deadletters");
    await this.tab.sees("a letter to open", "(() => { const one = document.querySelector('[aria-label^=\"Open \"]'); one?.click(); return !!one; })()");
    await this.press("Why?");
    await this.tab.sees("the page without the dialog", "document.querySelector('main h1')?.textContent === 'Explain' && !document.querySelector('dialog')");
    // Closing a dialog cancels its remaining calls, and refusals are still reported.
    await this.open("parked");
    await this.slow("/replay/", 700, "POST");
    await this.press("Replay all");
    await this.press("Replay");
    await this.tab.sees("the first call", "calls === 1");
    await this.press("Cancel");
    await this.tab.says("0 changes replayed; others stay parked");
    this.equal("calls of what was to be replayed", await this.tab.evaluate("calls"), 1);
    // A list that is unfolded stays so while numbers change.
    await this.open("now");
    await this.tab.sees("the checks", "!!document.querySelector('.verdict details')");
    await this.tab.evaluate("document.querySelector('.verdict details').open = true");
    await this.relay.ask("PUT", `${this.relay.base}/sources/late`, { preset: "belfry", verification: { scheme: "none" } });
    await this.tab.sees("another check, and the list open still", "document.querySelector('.verdict').textContent.includes('source late') && document.querySelector('.verdict details').open");
    await this.relay.ask("DELETE", `${this.relay.base}/sources/late`);
  }

  async deadLetters() {
    const before = (await this.relay.get("/deadLetters")).deadLetters;
    await this.open("deadletters");
    await this.tab.says("BadCollapseId");
    // A closed dialog returns the focus, for keyboard users.
    const opener = "document.querySelector('[aria-label^=\"Open \"]')";
    await this.tab.evaluate(`{ ${opener}.focus(); ${opener}.click(); }`);
    await this.press("Close");
    await this.tab.sees("the focus where it was", `document.activeElement === ${opener}`);
    await this.tab.evaluate(`${opener}.click()`);
    await this.press("Drop");
    await this.tab.says("1 dead letter will be deleted for good");
    await this.press("Drop");
    await until("one is dropped", async () => (await this.relay.get("/deadLetters")).deadLetters.length === before.length - 1);
    await this.tab.says("dead letter dropped");
    // A filter limits what is shown and what is acted on.
    await this.fill({ user: "ann" });
    await this.tab.says("No dead letter matches");
    const [narrow] = (await this.relay.get("/deadLetters")).deadLetters;
    const { recordType, recordName } = (await this.relay.get("/changes?limit=1000")).changes.map(({ position, change }) => ({ position, recordType: change.type, recordName: change.name })).find(({ position }) => position === narrow.position);
    await this.fill({ user: "dora", recordType, record: recordName });
    await this.tab.sees("one row", "document.querySelectorAll('data-table tbody[role] tr').length === 1");
    await this.press("Drop these");
    await this.tab.says("1 dead letter that is loaded will be deleted for good");
    await this.press("Cancel");
    await this.open("deadletters");
    await this.press("Redrive all");
    await this.tab.says("will be tried again within a minute");
    await this.press("Redrive");
    await this.tab.says("No dead letters");
    await until("they are sent anew and taken", async () => {
      const { deliveries } = await this.relay.get("/deliveries?user=dora");
      return deliveries.filter(({ state }) => state === "delivered").length === before.length - 1;
    });
  }

  async parked() {
    await this.open("parked");
    await this.tab.sees("two of them", "document.querySelectorAll('data-table tbody[role] tr').length === 2");
    const { parked: [one, other] } = await this.relay.get("/changes/parked");
    await this.tab.evaluate(`document.querySelector('[aria-label="Open parked change ${one.number}"]').click()`);
    await this.press("Replay");
    await this.tab.says("it still cannot be mapped");
    await this.tab.evaluate(`{ const area = document.querySelector("dialog textarea"); area.value = area.value.replace('"title"', '"id": 4711, "title"'); }`);
    await this.press("Replay");
    await this.tab.says("Replayed: appended");
    this.equal("what is parked still", (await this.relay.get("/changes/parked")).parked.map(({ number }) => number), [other.number]);
    await until("the mended change is in the log", async () => (await this.relay.get("/changes?limit=1000")).changes.some(({ change }) => change.name === "4711"));
    await this.tab.evaluate(`document.querySelector('[aria-label="Open parked change ${other.number}"]').click()`);
    await this.press("Drop");
    await this.press("Drop");
    await this.tab.says("Nothing is parked");
    this.equal("what is parked still", (await this.relay.get("/changes/parked")).parked, []);
  }

  async containers() {
    await this.open("containers", { tab: "sources" });
    await this.press("Add a source");
    await this.fill({ name: "warehouse", preset: "supabase" });
    await this.press("Add");
    await this.tab.says("Copy it now: it is not shown again");
    await this.press("I have it");
    await this.tab.says("warehouse");
    if (!(await this.relay.get("/sources")).sources.some(({ name }) => name === "warehouse")) throw new Error("the source is not there");
    await this.tab.says("/changes/1/");
    await this.open("containers", { tab: "keys" });
    await this.press("Create a key");
    await this.fill({ kind: "bearer", label: "made by hand" });
    await this.press("Create");
    await this.press("I have it");
    await this.tab.says("made by hand");
    await this.tab.evaluate("document.querySelector('[aria-label=\"Revoke made by hand\"]').click()");
    await this.press("Revoke");
    await until("the key is revoked", async () => (await this.relay.get("/keys")).keys.find(({ label }) => label === "made by hand")?.revokedAt);
    await this.open("containers", { tab: "gateway" });
    await this.tab.says("until it is revoked");
    await this.open("containers", { tab: "limits" });
    await this.tab.says("subscriptions");
    await this.open("containers", { tab: "schema" });
    await this.tab.says("Artwork");
  }

  async access() {
    await this.open("tokens");
    await this.tab.says("dashboard");
    await this.press("Create a token");
    await this.fill({ label: "by hand", access: "change", of: `${container}/development`, hours: "2" });
    await this.press("Create");
    await this.tab.says("Copy it now: it is not shown again");
    const secret = await this.tab.evaluate("document.querySelector('dialog[open] pre').innerText.trim()");
    await this.press("I have it");
    await this.tab.says("by hand");
    const use = () => fetch(`${this.relay.admin}${this.relay.base}/deadLetters`, { headers: { Authorization: `Bearer ${secret}` } });
    this.equal("a call with the token", (await use()).status, 200);
    const of = async () => (await this.relay.ask("GET", "/admin/1/tokens")).tokens.find(({ label }) => label === "by hand");
    const { access, container: name, environment } = await of();
    this.equal("what it may", [access, name, environment], ["change", container, "development"]);
    await this.tab.evaluate("document.querySelector('[aria-label=\"Revoke by hand\"]').click()");
    await this.press("Revoke");
    await until("the token is revoked", async () => (await of()).revokedAt);
    this.equal("a call with it then", (await use()).status, 401);
    await this.open("audit");
    await this.fill({ words: "delete tokens" });
    await this.tab.sees("the call alone", "[...document.querySelectorAll('data-table tbody[role] tr')].length === 1 && document.querySelector('data-table tbody[role] tr').innerText.includes('DELETE')");
    await this.fill({ words: "nothing has this" });
    await this.tab.says("No entry matches");
  }

  async strangers() {
    await this.relay.post("database", { operation: "create", recordType: "Artwork", recordName: hostile.record, after: { title: hostile.text, price: 1 } });
    await this.relay.post("database", { operation: "create", recordType: hostile.name, recordName: hostile.name, zoneID: { zoneName: hostile.name }, after: { [hostile.name]: hostile.text } });
    const { deliveries: [delivery] } = await this.relay.get(`/deliveries?user=${encodeURIComponent(hostile.user)}`);
    const views = [["now"], ["tail"], ["users"], ["users", { user: hostile.user }], ["deliveries"], ["deliveries", { delivery: delivery.deliveryID, position: delivery.position }], ["deadletters"],
      ["explain", { recordType: "Artwork", recordName: hostile.record, user: hostile.user }], ["explain", { delivery: delivery.deliveryID, position: delivery.position }], ["explain", { subscription: hostile.subscription, user: hostile.user }],
      ["explain", { recordType: hostile.name, recordName: hostile.name, user: hostile.user }], ["rehearse", { user: hostile.user, subscription: hostile.subscription, recordType: "Artwork", predicate: `title == "${hostile.text}"`, run: 1 }],
      ["send", { source: "database" }], ["parked"], ["containers", { tab: "schema" }], ["containers", { tab: "keys" }], ["tokens"], ["audit"]];
    for (const [page, params] of views) {
      await this.open(page, params);
      await this.tab.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true");
      await this.tab.evaluate("new Promise((resolve) => setTimeout(resolve, 300))");
      const found = await this.tab.evaluate(`({ made: document.querySelectorAll('main img, main script, main b[onmouseover], main svg[onload]').length,
        raw: /[\\u202e\\u0007\\u200f]/.test([...document.querySelectorAll('main bdi')].map((one) => one.textContent).join("")), wide: document.documentElement.scrollWidth > innerWidth })`);
      this.equal(`${page} with what strangers wrote`, found, { made: 0, raw: false, wide: false });
      this.quiet(page);
    }
    await this.open("users", { user: hostile.user });
    await this.tab.says("<b onmouseover=hit()>u");
    await this.tab.says("U+202E");
  }

  async manyRows() {
    await this.open("users");
    const found = await this.tab.evaluate(`(async () => {
      const { table } = await import("/console/table.js");
      const rows = Array.from({ length: 100_000 }, (_, index) => ({ name: "row " + index, number: index }));
      const element = table({ label: "Many", rows, columns: [{ title: "Name", value: (row) => row.name }, { title: "Number", value: (row) => row.number }] });
      document.querySelector("main").replaceChildren(element);
      const frame = () => new Promise(requestAnimationFrame);
      await frame();
      const box = element.querySelector(".scroll");
      let most = 0, slowest = 0;
      for (let step = 0; step <= 60; step += 1) {
        box.scrollTop = (step / 60) * box.scrollHeight;
        const began = performance.now();
        await frame(); await frame();
        slowest = Math.max(slowest, performance.now() - began);
        most = Math.max(most, element.querySelectorAll("tbody[role] tr").length);
      }
      const last = element.querySelector("tbody[role] tr:last-child").innerText;
      return { most, slowest: Math.round(slowest), last, csv: element.text("CSV").split("\\r\\n").length, json: JSON.parse(element.text("JSON")).length };
    })()`);
    if (found.most > 200) throw new Error(`${found.most} rows are elements`);
    this.equal("the last row, and the copies", [found.last.replace(/\s+/g, " "), found.csv, found.json], ["row 99999 99999", 100_002, 100_000]);
    console.log(`  at most ${found.most} rows are elements; the slowest two frames took ${found.slowest} ms`);
  }

  views() {
    return [["now"], ["tail"], ["explain", { recordType: "Artwork", recordName: "sky", user: "ann" }], ["rehearse", { user: "ann", subscription: "cheap", recordType: "Artwork", predicate: "price < 1000", run: 1 }],
      ["send", { source: "database" }], ["users"], ["users", { user: "ann" }], ["deliveries"], ["deadletters"], ["parked"], ["tokens"], ["audit"], ...["sources", "keys", "gateway", "schema", "limits"].map((tab) => ["containers", { tab }])];
  }

  async looks() {
    const problems = [];
    for (const [page, params] of this.views()) {
      // Without pictures two combinations are enough: each width and each scheme once.
      for (const [width, scheme] of [[1280, "light"], [390, "dark"], ...(this.pictures ? [[390, "light"], [1280, "dark"]] : [])]) {
        await this.tab.size(width, 900, width === 390);
        await this.tab.media({ "prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce" });
        await this.look(page, params, `${page}${params?.tab ?? (params?.user && page === "users" ? "-one" : "")}`, width, scheme, problems);
      }
    }
    await this.tab.size(1280);
    await this.tab.media({ "prefers-color-scheme": "light" });
    if (problems.length) throw new Error(problems.join("\n"));
  }

  async look(page, params, name, width, scheme, problems) {
    await this.open(page, params);
    await this.tab.evaluate("new Promise((resolve) => setTimeout(resolve, 400))");
    const wide = await this.tab.evaluate("document.documentElement.scrollWidth");
    if (wide > width) problems.push(`${name} at ${width} is ${wide} pixels wide`);
    if (this.pictures) await this.tab.picture(path.join(this.pictures, `${name}-${width}-${scheme}.png`));
    if (!this.axe) return;
    await this.tab.evaluate(`if (!globalThis.axe) { ${this.axe} }; undefined`);
    const found = await this.tab.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
      violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 160) + " " + failureSummary.slice(0, 240)).join(" | ")))`);
    for (const one of found) problems.push(`${name} at ${width} in ${scheme}: ${one}`);
  }

  /** Opening every page once, with an empty cache that keeps what it gets, must load little. */
  async small() {
    await this.tab.send("Network.setCacheDisabled", { cacheDisabled: true });
    const all = new Map();
    let largest = ["", 0];
    for (const [page, params] of this.views()) {
      this.tab.loaded.clear();
      await this.open(page, params);
      const files = [...this.tab.loaded].filter(([address]) => address && /^\/console\//.test(new URL(address).pathname));
      const size = files.reduce((sum, [, bytes]) => sum + bytes, 0);
      if (size > largest[1]) largest = [page, size];
      for (const [address, bytes] of files) {
        // All pages are one file.
        const { pathname } = new URL(address);
        all.set(/\.[a-z]+$/.test(pathname) ? pathname : "page", bytes);
      }
    }
    await this.tab.send("Network.setCacheDisabled", { cacheDisabled: false });
    const total = [...all.values()].reduce((sum, bytes) => sum + bytes, 0);
    console.log(`  all pages load ${total} bytes in ${all.size} answers, heads counted; the largest is ${largest[0]}, which loads ${largest[1]}`);
    if (total > most || largest[1] === 0) throw new Error(`all pages load ${total} bytes; ${most} are allowed`);
  }

  async reader() {
    await this.press("Sign out");
    await this.signIn(this.relay.readerToken);
    await this.tab.sees("the badge of a reader", "document.querySelector('.who')?.innerText.includes('reader')");
    const forbidden = /^(Redrive|Drop|Forget|Delete|Send|Replay|Revoke|Create|Add|Change|New secret|Set|Replace|Edit|Keep|Stop keeping|Try now|End all)/;
    for (const [page, params] of this.views()) {
      await this.open(page, params);
      await this.tab.evaluate("new Promise((resolve) => setTimeout(resolve, 300))");
      const buttons = await this.tab.evaluate("[...document.querySelectorAll('main button')].filter((one) => one.offsetParent).map((one) => one.textContent.trim())");
      const found = buttons.filter((words) => forbidden.test(words) && words !== "Add a field");
      if (found.length) throw new Error(`a reader sees ${found.join(", ")} on ${page}`);
      this.quiet(`${page} for a reader`);
    }
    await this.open("rehearse", { user: "ann", recordType: "Artwork", predicate: "price < 1000", run: 1 });
    await this.tab.says("Would have fired");
    await this.tab.sees("that a reader's draft is checked", "document.querySelector('#draft-state').innerText.startsWith('fine')");
  }

  async signingOut() {
    await this.press("Sign out");
    await this.tab.sees("the token's input", "!!document.querySelector('input[name=token]')");
    await this.tab.go(this.address("users"));
    await this.signIn(adminToken);
    await this.tab.sees("the page", "document.querySelector('main h1')?.textContent === 'Users'");
    // Waits for the page's own calls, so that none of them discovers the end of the session.
    await this.tab.says("ann");
    // The session ends elsewhere: the next call shows the sign-in, and after it the same page.
    const { cookies } = await this.tab.send("Network.getCookies", { urls: [`${this.relay.admin}/admin/1/session`] });
    const [cookie] = cookies.filter(({ name }) => name.startsWith("belfry-console"));
    this.equal("the cookie", [cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
    await this.tab.send("Network.deleteCookies", { name: cookie.name, url: `${this.relay.admin}/admin/1/session` });
    await this.press("Deliveries");
    await this.tab.says("Your session has ended");
    await this.signIn(adminToken);
    await this.tab.sees("the page", "document.querySelector('main h1')?.textContent === 'Deliveries'");
    const foreign = await fetch(`${this.relay.admin}${this.relay.base}/deadLetters/drop`, { method: "POST", headers: { Cookie: `${cookie.name}=${cookie.value}`, Origin: "http://elsewhere.example" }, body: "{}" });
    this.equal("a call from another site's page", [foreign.status, (await foreign.json()).reason], [403, "sessions are only for the console's own pages, and this request comes from another page"]);
    // Cached content of a page is not shown after its session has ended in another tab.
    await this.tab.says("anns-phone");
    // Nor is a secret that was shown once.
    await this.tab.evaluate("{ const once = document.createElement('dialog'); once.dataset.once = 'true'; once.textContent = 'a-secret'; document.body.append(once); once.showModal(); }");
    await this.tab.go("about:blank");
    const other = await this.browser.open(this.address("users"));
    await other.sees("the button", "!![...document.querySelectorAll('button')].find((one) => one.textContent === 'Sign out')");
    await other.evaluate("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Sign out').click()");
    await other.sees("the token's input", "!!document.querySelector('input[name=token]')");
    await other.close();
    await this.tab.evaluate("history.back()").catch(() => {});
    await this.tab.sees("the token's input, and nothing that was", "!!document.querySelector('input[name=token]') && !document.body.innerText.includes('anns-phone') && !document.body.innerText.includes('a-secret')");
  }

  async phones() {
    const relay = start(this.binary, ["dev", "--port", "0", "--admin-port", "0", "--folder", path.join(folder, "dev")]);
    const [, address] = await until("belfry dev says where its console is", () => {
      if (relay.exitCode !== null) throw new Error(`belfry dev ended: ${relay.output}`);
      return /(http:\/\/\S+\/console\/\S*#code=\S+)/.exec(relay.output);
    });
    const printed = relay.output.match(/curl -sS '[^\n]*changes\/1[\s\S]*?\}\}'/)[0];
    const subscribe = relay.output.match(/curl -sS '[^\n]*subscriptions\/modify[\s\S]*?\]\}'/)[0];
    const tab = await this.browser.open(address);
    await tab.size(1280, 900);
    await tab.sees("that one is signed in", "!!document.querySelector('nav a')");
    if ((await tab.evaluate("location.href")).includes("code=")) throw new Error("the code stays in the address");
    await tab.evaluate("[...document.querySelectorAll('nav a')].find((one) => one.textContent === 'Phones').click()");
    await tab.sees("three devices", "document.querySelectorAll('.phone').length === 3");
    for (const command of [subscribe, printed]) spawnSync("bash", ["-c", command]);
    await tab.sees("the push on alice's tablet alone", "[...document.querySelectorAll('.phone')].map((one) => one.querySelectorAll('.push').length).join() === '0,1,0'");
    await tab.says("A new artwork by your favourite artist");
    if (this.pictures) {
      await tab.picture(path.join(this.pictures, "phones-1280-light.png"));
      await tab.size(390, 900, true);
      await tab.picture(path.join(this.pictures, "phones-390-light.png"));
    }
    if (tab.faults.length) throw new Error(`the page complains: ${tab.faults.join("; ")}`);
    relay.kill("SIGTERM");
  }
}

// MARK: Begin and end

/** Returns the script of axe-core from its wheel; undefined if it is not available. */
function axeCore() {
  const place = path.join(folder, "axe");
  const got = spawnSync("python3", ["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", place, "axe-core-python==0.1.0"], { timeout: 60_000 });
  const wheel = got.status === 0 && readdirSync(place).find((name) => name.endsWith(".whl"));
  if (!wheel) return console.log("axe-core cannot be had here, and is left out.");
  spawnSync("python3", ["-m", "zipfile", "-e", path.join(place, wheel), place]);
  const found = spawnSync("find", [place, "-name", "axe.min.js"]).stdout.toString().trim().split("\n")[0];
  return found ? readFileSync(found, "utf8") : console.log("axe-core has no script in its wheel, and is left out.");
}

const browser = new Browser();

function end(code, word) {
  if (word) console[code ? "error" : "log"](word);
  browser.stop();
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  process.exit(code);
}

const command = chromium();
if (!command) end(0, "Chromium is not there, and the console in a browser is left out.");
const binary = [option("binary"), ...["release", "debug"].map((kind) => path.join(root, ".build", kind, "belfry"))].find((place) => place && existsSync(place));
if (!binary) end(1, "build belfry first: swift build -c release --product belfry");
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => end(1, `ended by ${name}`));
setTimeout(() => end(1, "the campaign took more than ten minutes"), 600_000).unref();
const relay = new BuiltRelay();
let campaign;
try {
  await relay.start(path.resolve(binary));
  await relay.furnish();
  await browser.start(command, folder);
  campaign = new Campaign(relay, browser, axeCore(), path.resolve(binary));
  await campaign.run();
  console.log("The console did what it says, on every page.");
  end(0);
} catch (error) {
  console.error(relay.process?.output?.slice(-2000) ?? "");
  if (relay.process && (relay.process.exitCode ?? relay.process.signalCode) !== null) console.error(`the relay had ended: ${relay.process.exitCode ?? relay.process.signalCode}`);
  if (campaign?.tab && option("pictures")) await campaign.tab.picture(path.join(option("pictures"), "failed.png")).catch(() => {});
  end(1, `failed: ${error.stack}`);
}
