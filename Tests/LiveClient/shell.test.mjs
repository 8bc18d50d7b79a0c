// The client as pages use it, against a miniature relay: sockets, streams and polls over real connections.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { LiveClient } from "./client.mjs";
import { Relay } from "./relay.mjs";
import { TinyWebSocket } from "./websocket.mjs";

async function world(body, prepare = () => {}, options = {}) {
  const relay = await new Relay().start();
  relay.change("a", 1);
  relay.change("b", 2);
  prepare(relay);
  const client = new LiveClient({
    url: relay.url, container: "iCloud.art", apiToken: "k", WebSocket: TinyWebSocket, random: () => 0.01, ...options,
  });
  try {
    await body(relay, client);
  } finally {
    client.close();
    await relay.stop();
  }
}

const query = { recordType: "Art", sortBy: "price" };
const namesOf = (records) => records.map((record) => record.recordName);

/** Returns the next result of an iterator that satisfies `wanted`. */
async function until(values, wanted) {
  for (;;) {
    const { value, done } = await values.next();
    assert.ok(!done, "it ended");
    if (wanted(value)) return value;
  }
}

const has = (...wanted) => (records) => namesOf(records).join() === wanted.join();

test("results as callbacks and as iterators, and what changes", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results(query);
  const [values, batches] = [art[Symbol.asyncIterator](), []];
  art.onItems = (items) => batches.push(items.map((item) => `${item.op} ${item.key}`).join());
  await until(values, has("a", "b"));
  relay.change("c", 1.5);
  await until(values, has("a", "c", "b"));
  relay.change("a", 9);
  await until(values, has("c", "b", "a"));
  relay.change("b");
  await until(values, has("c", "a"));
  assert.deepEqual(batches, ["added a,added b", "added c", "changed a", "removed b"]);
  assert.equal(client.connection.state, "current");
  assert.equal(client.connection.transport, "websocket");
  const { set: { queries: [told] }, format } = relay.hellos[0];
  assert.deepEqual([told.recordType, told.sortBy, format], ["Art", [{ fieldName: "price" }], "plain"]);
}));

test("who asks the same shares one query, and has the result at once", { timeout: 10_000 }, () => world(async (relay, client) => {
  const first = client.results(query);
  await until(first[Symbol.asyncIterator](), has("a", "b"));
  const second = client.results(query);
  assert.deepEqual((await second.items().next()).value.map((item) => item.key), ["a", "b"]);
  first.close();
  relay.change("c", 3);
  await until(second[Symbol.asyncIterator](), has("a", "b", "c"));
  // A page that renders again releases the query and declares it again.
  second.close();
  await until(client.results(query)[Symbol.asyncIterator](), has("a", "b", "c"));
  assert.equal(relay.frames.filter((frame) => frame.type === "set").length, 0);
}));

test("a cut connection loses nothing and repeats nothing", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results(query);
  const changes = client.changes({ recordType: "Art" });
  const seen = [];
  changes.onChange = (change) => seen.push(change.position);
  const values = art[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  await client.fence();
  for (let round = 0; round < 5; round += 1) {
    for (const { channel } of relay.connections) channel.cut();
    relay.change(`c${round}`, 10 + round);
    relay.change("a", 1 + round / 10);
  }
  await until(values, has("a", "b", "c0", "c1", "c2", "c3", "c4"));
  await client.fence();
  assert.deepEqual(seen, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
}));

test("a clock that is set back holds nothing up", { timeout: 10_000 }, () => world(async (relay, client) => {
  const clock = Date.now;
  const values = client.results(query)[Symbol.asyncIterator]();
  try {
    await until(values, has("a", "b"));
    client.onConnection = ({ state }) => {
      if (state === "offline") Date.now = () => clock() - 3_600_000;
    };
    for (const { channel } of relay.connections) channel.cut();
    relay.change("c", 3);
    await until(values, has("a", "b", "c"));
    assert.ok(Math.abs(client.connection.asOf - Date.now()) < 60_000);
  } finally {
    Date.now = clock;
  }
}));

test("notifications come once each, cut off or not", { timeout: 10_000 }, () => world(async (relay, client) => {
  relay.notify("before");
  const inbox = client.notifications();
  const seen = [];
  inbox.onNotification = ({ payload }) => seen.push(payload.text);
  const values = inbox[Symbol.asyncIterator]();
  assert.equal((await values.next()).value.notificationID, "n1");
  for (const text of ["one", "two", "three"]) {
    for (const { channel } of relay.connections) channel.cut();
    relay.notify(text);
    assert.equal((await values.next()).value.payload.text, text);
  }
  assert.deepEqual(seen, ["before", "one", "two", "three"]);
  assert.equal(inbox.syncToken, "s4");
  await client.fence();
  assert.equal(inbox.state, "live");
  await client.set.add("inbox", { kind: "notifications", since: "s3" });
  assert.notEqual(client.set.named("inbox"), inbox);
  inbox.close();
  assert.equal((await values.next()).done, true);
}));

test("edits while there is no relay arrive as one set once there is", { timeout: 10_000 }, async () => {
  const relay = await new Relay().start();
  relay.change("a", 1);
  const port = new URL(relay.url).port;
  const client = new LiveClient({ url: relay.url, container: "c", WebSocket: TinyWebSocket, random: () => 0.02 });
  const art = client.results(query);
  await until(art[Symbol.asyncIterator](), has("a"));
  await relay.stop();
  while (client.connection.state !== "offline") await new Promise((resolve) => setTimeout(resolve, 2));
  art.close();
  client.set.add("cheap", { ...query, predicate: "price < 100" });
  client.set.add("all", query);
  client.set.remove("cheap");
  assert.notEqual(client.set.state, "complete");
  const hellos = relay.hellos.length;
  await relay.start(port);
  await client.set.waitForComplete({ timeout: 5_000 });
  const { set } = relay.hellos[hellos];
  assert.deepEqual(set.queries.map((its) => its.query), [undefined]);
  assert.deepEqual(namesOf(client.set.named("all").records), ["a"]);
  client.close();
  await relay.stop();
});

test("get and fence", { timeout: 10_000 }, () => world(async (relay, client) => {
  assert.deepEqual(namesOf(await client.get(query)), ["a", "b"]);
  await client.fence();
  client.close();
  await assert.rejects(client.get(query), { liveError: "connection" });
}));

test("no answer in time says whether there was a connection", { timeout: 10_000 }, async () => {
  const client = new LiveClient({ url: "http://127.0.0.1:9", container: "c", WebSocket: TinyWebSocket });
  await assert.rejects(client.get(query, { timeout: 30 }), { liveError: "connection" });
  client.close();
});

test("a program that waits for its relay does not end before it has closed its client", { timeout: 20_000 }, async () => {
  const relay = await new Relay().start();
  relay.change("a", 1);
  const port = new URL(relay.url).port;
  await relay.stop();
  const child = spawn(process.execPath, ["--input-type=module", "--eval", `
    import { LiveClient } from "./client.mjs";
    import { TinyWebSocket } from "./websocket.mjs";
    const client = new LiveClient({ url: "${relay.url}", container: "c", WebSocket: TinyWebSocket });
    client.onConnection = ({ state }) => console.log(state);
    for await (const records of client.results({ recordType: "Art" })) {
      console.log(records[0].recordName);
      break;
    }
    client.close();
  `], { cwd: fileURLToPath(new URL(".", import.meta.url)), stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  let isStarted = false;
  for await (const text of child.stdout) {
    said += text;
    if (!isStarted && /connecting\s+offline/.test(said)) {
      isStarted = true;
      await relay.start(port);
    }
  }
  await relay.stop();
  assert.match(said, /offline[^]*current[^]*^a$[^]*closed/m);
});

test("a set is taken whole or not at all", { timeout: 10_000 }, () => world(async (relay, client) => {
  const states = [];
  client.set.onState = (state) => states.push(state);
  await client.set.add("all", query);
  assert.equal(client.set.state, "complete");
  const update = client.set.update((editor) => {
    editor.add("wrong", { recordType: "Atr" });
    editor.add("changes", { kind: "changes", recordType: "Art" });
    editor.remove("all");
  });
  await assert.rejects(update, { serverErrorCode: "NOT_FOUND", liveError: "unknownType" });
  assert.equal(client.set.state, "error");
  assert.equal(client.set.errors.wrong.liveError, "unknownType");
  assert.deepEqual(client.set.names, ["all"]);
  await assert.rejects(client.set.add("all", { recordType: "Art" }), { liveError: "duplicateQuery" });
  await client.set.update((editor) => editor.put("all", { recordType: "Art" }));
  assert.equal(client.set.state, "complete");
  assert.ok(states.includes("bootstrapping"));
  await client.set.update((editor) => editor.removeAll("Art"));
  assert.deepEqual(client.set.names, []);
}));

test("one bad query does not take the others with it", { timeout: 10_000 }, () => world(async (relay, client) => {
  const bad = client.results({ recordType: "Atr" });
  const good = client.results(query);
  await assert.rejects(bad[Symbol.asyncIterator]().next(), { liveError: "unknownType" });
  await until(good[Symbol.asyncIterator](), has("a", "b"));
  assert.equal(bad.state, "ended");
}));

test("where upgrades fail a stream carries everything", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results(query);
  const values = art[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  assert.equal(client.connection.transport, "stream");
  relay.change("c", 3);
  await until(values, has("a", "b", "c"));
  assert.deepEqual(namesOf(await client.get({ recordType: "Art" })), ["a", "b", "c"]);
  await client.fence();
  relay.change("d", 4);
  await until(values, has("a", "b", "c", "d"));
}, (relay) => (relay.refusesUpgrades = true)));

test("where streams fail too polls do", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results(query);
  const values = art[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  assert.equal(client.connection.transport, "poll");
  for (const [index, name] of ["c", "d", "e"].entries()) {
    relay.change(name, 3 + index);
    await until(values, (records) => records.length === 3 + index);
  }
  const changes = client.changes({ recordType: "Art" });
  const next = changes[Symbol.asyncIterator]().next();
  await client.fence();
  relay.change("a");
  assert.equal((await next).value.operation, "delete");
}, (relay) => (relay.refusesUpgrades = relay.refusesStreams = true)));

test("tokens come from the hook, one call at a time", { timeout: 10_000 }, async () => {
  const asked = [];
  const credentials = async (why) => {
    asked.push(why);
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { ckWebAuthToken: `token-${asked.length}` };
  };
  await world(async (relay, client) => {
    const values = client.results(query)[Symbol.asyncIterator]();
    client.changes({ recordType: "Art" });
    await until(values, has("a", "b"));
    assert.equal(relay.hellos[0].ckWebAuthToken, "token-1");
    const [connection] = relay.connections;
    connection.send({ type: "tokenExpires", seconds: 60 });
    connection.send({ type: "tokenExpires", seconds: 30 });
    while (!relay.frames.some((frame) => frame.type === "token")) await client.fence();
    assert.deepEqual(asked, ["start", "expires"]);
    connection.send({ type: "bye", code: 4401, serverErrorCode: "AUTHENTICATION_REQUIRED", reconnect: true });
    connection.channel.close(4401);
    relay.change("c", 3);
    await until(values, has("a", "b", "c"));
    assert.equal(relay.hellos[1].ckWebAuthToken, "token-3");
    assert.equal(asked.length, 3);
  }, undefined, { credentials });
});

test("a hook that fails, with whatever, is asked again", { timeout: 10_000 }, async () => {
  const reasons = [null, undefined, "no network"];
  const told = [];
  const credentials = () => (reasons.length ? Promise.reject(reasons.shift()) : { ckWebAuthToken: "token" });
  await world(async (relay, client) => {
    client.onConnection = ({ error }) => told.push(error?.reason);
    await until(client.results(query)[Symbol.asyncIterator](), has("a", "b"));
    assert.ok(told.includes("no network"));
  }, undefined, { credentials, random: () => 0 });
});

test("signed out: each query is told once, and nothing is tried again", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results(query);
  const errors = [];
  art.onError = (error) => errors.push(error.liveError);
  const values = art[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  const [connection] = relay.connections;
  connection.send({ type: "bye", code: 4403, serverErrorCode: "AUTHENTICATION_FAILED", liveError: "revoked", reconnect: false });
  await assert.rejects(values.next(), { serverErrorCode: "AUTHENTICATION_FAILED" });
  assert.deepEqual(errors, ["revoked"]);
  assert.equal(client.connection.state, "closed");
  await assert.rejects(client.results(query)[Symbol.asyncIterator]().next(), { liveError: "revoked" });
  assert.equal(relay.hellos.length, 1);
}));

test("an application that throws does not stop the client", { timeout: 10_000 }, () => world(async (relay, client) => {
  const reported = [];
  globalThis.reportError = (error) => reported.push(error.message);
  const art = client.results(query);
  art.onValue = () => {
    throw new Error("mine");
  };
  const values = art[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  relay.change("c", 3);
  await until(values, has("a", "b", "c"));
  assert.deepEqual(reported, ["mine", "mine"]);
}));

test("what cannot be read ends the connection, and the client resumes", { timeout: 10_000 }, () => world(async (relay, client) => {
  const values = client.results(query)[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  const [connection] = relay.connections;
  connection.channel.send("{");
  while (relay.hellos.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  relay.change("c", 3);
  await until(values, has("a", "b", "c"));
  assert.equal(relay.hellos[1].set.queries[0].since, "t2");
}));

test("a connection that was given up is not heard any more", { timeout: 10_000 }, async () => {
  const sockets = [];
  class Socket {
    readyState = 1;
    sent = [];
    constructor() {
      sockets.push(this);
      queueMicrotask(() => this.onopen());
    }
    send(text) {
      this.sent.push(JSON.parse(text));
    }
    close() {
      this.isClosed = true;
    }
    tell(...frames) {
      for (const frame of frames) this.onmessage({ data: JSON.stringify(frame) });
    }
  }
  const client = new LiveClient({ url: "http://relay.example", container: "c", WebSocket: Socket, random: () => 0 });
  const art = client.results(query);
  const shown = (socket, name) => socket.tell(
    { type: "welcome" },
    { type: "state", version: socket.sent[0].set.version, state: "bootstrapping", queries: [{ id: "q1", group: 1 }] },
    { type: "result", group: 1, part: 0, isLast: true, records: [{ recordName: name, recordChangeTag: name, fields: {} }] },
    { type: "state", version: socket.sent[0].set.version, state: "complete" }, { type: "at", at: name });
  const opening = async (count) => {
    while ((sockets[count - 1]?.sent.length ?? 0) === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  await opening(1);
  shown(sockets[0], "first");
  sockets[0].onclose({ code: 1006 });
  sockets[0].tell({ type: "items", group: 1, items: [{ op: "removed", record: { recordName: "first" } }] }, { type: "at", at: "late" });
  assert.equal(sockets[0].isClosed, true);
  await opening(2);
  assert.equal(sockets[1].sent[0].set.queries[0].since, "first");
  shown(sockets[0], "ghost");
  shown(sockets[1], "second");
  assert.deepEqual(namesOf(art.records), ["second"]);
  client.close();
});

test("a slow reader gets the latest result, and each change", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results(query);
  const changes = client.changes({ recordType: "Art" });
  const [values, each] = [art[Symbol.asyncIterator](), changes[Symbol.asyncIterator]()];
  await until(values, has("a", "b"));
  await client.fence();
  for (let round = 0; round < 20; round += 1) relay.change("a", round / 100);
  await client.fence();
  assert.equal((await values.next()).value[0].fields.price, 0.19);
  for (let position = 3; position < 23; position += 1) assert.equal((await each.next()).value.position, position);
  await each.return();
  assert.equal((await each.next()).done, true);
}));

test("a loop that is left ends, and `close` ends the loop", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results(query);
  for await (const records of art) if (records.length === 2) break;
  setTimeout(() => art.close(), 20);
  let count = 0;
  for await (const records of art) count += records.length;
  assert.equal(count, 2);
}));

test("what is wanted once is told once, whatever is lost and comes back", { timeout: 10_000 }, () => world(async (relay, client) => {
  const [art, change] = [client.results({ ...query, once: true }), client.changes({ recordType: "Art", once: true })];
  const seen = [];
  art.onValue = (records) => seen.push(namesOf(records).join());
  change.onChange = ({ position }) => seen.push(position);
  const kept = client.results(query);
  await until(kept[Symbol.asyncIterator](), has("a", "b"));
  await client.fence();
  assert.deepEqual([art.state, change.state, seen], ["ended", "live", ["a,b"]]);
  relay.change("c", 3);
  relay.change("d", 4);
  await until(kept[Symbol.asyncIterator](), has("a", "b", "c", "d"));
  for (const { channel } of relay.connections) channel.cut();
  relay.change("e", 5);
  await until(kept[Symbol.asyncIterator](), has("a", "b", "c", "d", "e"));
  assert.deepEqual([change.state, seen], ["ended", ["a,b", 3]]);
  assert.deepEqual(relay.hellos.at(-1).set.queries.map(({ once }) => once), [undefined]);
}));

test("a set says after the end that it is not complete, and refuses at once", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.add("art", query);
  assert.equal(client.set.state, "complete");
  client.close();
  assert.equal(client.set.state, "pending");
  await assert.rejects(client.set.add("more", { ...query, limit: 3 }), { liveError: "connection" });
  await assert.rejects(client.set.waitForComplete(), { liveError: "connection" });
}));

test("a set that is emptied without a connection waits for none", { timeout: 10_000 }, async () => {
  const client = new LiveClient({
    url: "http://127.0.0.1:9", container: "c", WebSocket: TinyWebSocket, random: () => 0.9,
  });
  const added = client.set.add("art", query);
  await new Promise((resolve) => {
    client.onConnection = ({ state, error }) => state === "offline" && error && resolve();
  });
  await client.set.remove("art");
  await added;
  assert.equal(client.set.state, "pending", "nothing is said to be complete");
  client.close();
});

for (const refusesStreams of [false, true]) {
  const door = refusesStreams ? "poll" : "stream";
  test(`before a long set of a ${door} the head says who asks`, { timeout: 10_000 }, () => world(async (relay, client) => {
    const credentials = () => {
      const { ckapitoken, authorization } = relay.heads.at(-1);
      return [ckapitoken, authorization];
    };
    const short = client.results(query);
    await until(short[Symbol.asyncIterator](), has("a", "b"));
    assert.deepEqual(credentials(), [undefined, undefined]);
    // From an unknown client the relay accepts 256 KiB.
    const long = client.results({ ...query, predicate: "x".repeat(90_000) });
    await until(long[Symbol.asyncIterator](), has("a", "b"));
    assert.deepEqual(credentials(), ["k", "Bearer t"]);
  }, (relay) => Object.assign(relay, { refusesUpgrades: true, refusesStreams }),
  { credentials: async () => ({ ckWebAuthToken: "t" }) }));
}

test("a socket that only says `error` is lost", { timeout: 10_000 }, async () => {
  let count = 0;
  class Socket {
    constructor() {
      count += 1;
      queueMicrotask(() => this.onerror?.({}));
    }
    close() {}
  }
  const client = new LiveClient({
    url: "http://127.0.0.1:1", container: "c", WebSocket: Socket, random: () => 0,
    fetch: () => Promise.reject(new Error("nobody answers")),
  });
  client.results(query);
  while (count < 2) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.equal(client.connection.error.liveError, "connection");
  client.close();
});

test("a date of JavaScript's is one for the relay", { timeout: 10_000 }, () => world(async (relay, client) => {
  const day = new Date(1_700_000_000_000);
  const date = { value: 1_700_000_000_000, type: "TIMESTAMP" };
  client.results({ ...query, predicate: "made IN %@", predicateArguments: [[day]], start: { value: day, isIncluded: false } });
  client.results({ ...query, query: { rql: "made > $0", rqlArguments: [day] } });
  await client.set.add("where", { ...query, where: { made: { $gt: day } }, end: { value: 3 } });
  const [first, second, third] = relay.hellos.flatMap(({ set }) => set.queries);
  assert.deepEqual([first.query.predicateArguments, first.start], [[[date]], { value: date, isIncluded: false }]);
  assert.deepEqual(second.query.rqlArguments, [date]);
  // In `where`, a date is a string.
  assert.deepEqual([third.query.where.made.$gt, third.end], [day.toISOString(), { value: 3 }]);
}));

test("a proxy that says when to come back is heeded", { timeout: 10_000 }, async () => {
  class Socket {
    constructor() {
      queueMicrotask(() => this.onerror({}));
    }
    close() {}
  }
  const asked = [];
  const client = new LiveClient({
    url: "http://relay.example", container: "c", WebSocket: Socket, random: () => 0,
    fetch: async (url) => {
      asked.push(url);
      return new Response("<html>", { status: 503, headers: { "Retry-After": "3600" } });
    },
  });
  client.results(query);
  while (!asked.length || client.connection.state !== "offline") await new Promise((resolve) => setTimeout(resolve, 2));
  assert.ok(client.connection.retryAt - Date.now() > 1_800_000);
  assert.equal(asked.length, 1);
  client.close();
});

test("a client that ended keeps no listeners", { timeout: 10_000 }, async () => {
  const listening = new Set();
  const add = globalThis.addEventListener;
  globalThis.addEventListener = (type, act, { signal }) => {
    listening.add(act);
    signal.addEventListener("abort", () => listening.delete(act));
  };
  try {
    await world(async (relay, client) => {
      await client.fence();
      assert.equal(listening.size, 1);
      for (const { send } of relay.connections) {
        send({ type: "bye", code: 4403, serverErrorCode: "AUTHENTICATION_FAILED", reason: "signed out" });
      }
      while (client.connection.state !== "closed") await new Promise((resolve) => setTimeout(resolve, 2));
      assert.equal(listening.size, 0);
    });
  } finally {
    globalThis.addEventListener = add;
  }
});

test("a query in whose place a refused one was goes on, by the same handle", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.add("art", query);
  const handle = client.set.named("art");
  const seen = [];
  handle.onValue = (records) => seen.push(namesOf(records).join());
  const values = handle[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  await assert.rejects(
    client.set.update((editor) => editor.put("art", { recordType: "Atr" })), { liveError: "unknownType" });
  assert.equal(client.set.named("art"), handle);
  relay.change("c", 3);
  await until(values, has("a", "b", "c"));
  assert.equal(seen.at(-1), "a,b,c");
  // An update that is accepted ends the handle.
  await client.set.update((editor) => editor.put("art", { ...query, limit: 5 }));
  assert.equal(handle.state, "ended");
  assert.notEqual(client.set.named("art"), handle);
  assert.equal((await values.next()).done, true);
  // Closing the client ends it too.
  const last = client.set.named("art");
  const told = [];
  last.onError = (error) => told.push(error.liveError);
  client.set.update((editor) => editor.put("art", { ...query, limit: 6 })).catch(() => {});
  client.close();
  assert.deepEqual([last.state, told], ["ended", []]);
}));

test("a client that is closed ends its loops, and tells of no fault", { timeout: 10_000 }, () => world(async (relay, client) => {
  const [art, changes, told] = [client.results(query), client.changes({ recordType: "Art" }), []];
  art.onError = changes.onError = (error) => told.push(error.reason);
  const loops = [art, art.items(), changes].map(async (values) => {
    for await (const value of values) void value;
  });
  await client.fence();
  const answer = assert.rejects(client.get({ ...query, limit: 1 }), { liveError: "connection" });
  client.close();
  await Promise.all([...loops, answer]);
  assert.deepEqual([art.state, art.error, changes.error, told], ["ended", undefined, undefined, []]);
  // Questions asked after that are answered with an error that says why.
  const late = client.results(query);
  await assert.rejects(late[Symbol.asyncIterator]().next(), { liveError: "connection" });
}));

test("who closes a handle while being told is told no more", { timeout: 10_000 }, () => world(async (relay, client) => {
  const [art, changes] = [client.results(query), client.changes({ recordType: "Art" })];
  const seen = [];
  await until(art[Symbol.asyncIterator](), has("a", "b"));
  await client.fence();
  art.onItems = () => {
    seen.push("items");
    art.close();
  };
  art.onValue = () => seen.push("value");
  changes.onChange = ({ position }) => {
    seen.push(position);
    changes.close();
  };
  const values = changes[Symbol.asyncIterator]();
  for (const { channel } of relay.connections) channel.cut();
  for (let round = 0; round < 3; round += 1) relay.change("a", 5 + round);
  await client.fence();
  assert.deepEqual(seen, ["items", 3]);
  assert.equal((await values.next()).done, true);
}));

test("who asks for changes beside another is told what comes from then on", { timeout: 10_000 }, () => world(async (relay, client) => {
  const first = client.changes({ recordType: "Art" });
  const values = first[Symbol.asyncIterator]();
  await client.fence();
  relay.change("c", 3);
  assert.equal((await values.next()).value.position, 3);
  const second = client.changes({ recordType: "Art" });
  const seen = [];
  second.onChange = ({ position }) => seen.push(position);
  await client.fence();
  assert.equal(second.state, "live");
  relay.change("d", 4);
  assert.equal((await values.next()).value.position, 4);
  assert.deepEqual(seen, [4]);
}));

test("what has ended of a set is not asked for again by the next update", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.update((editor) => {
    editor.add("once", { ...query, once: true });
    editor.add("closed", { ...query, limit: 3 });
    editor.add("kept", query);
  });
  const { set } = client;
  assert.equal(set.named("once").state, "ended");
  set.named("closed").close();
  await set.add("more", { ...query, limit: 4 });
  assert.deepEqual(set.names, ["kept", "more"]);
  assert.equal(set.named("closed"), undefined);
  // Nor does an update that is rolled back bring them back.
  await assert.rejects(set.add("wrong", { recordType: "Atr" }), { liveError: "unknownType" });
  assert.deepEqual(set.names, ["kept", "more"]);
  // A query that has ended comes back when it is added again.
  await set.add("once", { ...query, once: true });
  assert.deepEqual(namesOf(set.named("once").records), ["a", "b"]);
  assert.equal(relay.frames.filter(({ type }) => type === "set").flatMap(({ add }) => add)
    .filter(({ limit }) => limit?.first === 3).length, 0);
}));

test("an edit that cannot be is a rejection, and changes nothing", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.add("all", query);
  const handle = client.set.named("all");
  await assert.rejects(client.set.add("all", { recordType: "Art" }), { liveError: "duplicateQuery" });
  await assert.rejects(client.set.add("odd", { kind: "change", recordType: "Art" }), /kind: "change" is none of result,changes,/);
  await assert.rejects(client.set.update(() => {
    throw new Error("mine");
  }), { message: "mine" });
  assert.equal(client.set.named("all"), handle);
  assert.deepEqual([client.set.state, handle.state, client.set.names], ["complete", "live", ["all"]]);
}));

test("queries have the client's names, whatever they bring", { timeout: 10_000 }, () => world(async (relay, client) => {
  const art = client.results({ ...query, id: "mine" });
  await until(art[Symbol.asyncIterator](), has("a", "b"));
  assert.deepEqual(namesOf(await client.get({ ...query, id: "mine" })), ["a", "b"]);
}));

test("a get that cannot be said is refused at once, and takes nothing with it", { timeout: 10_000 }, () => world(async (relay, client) => {
  await until(client.results(query)[Symbol.asyncIterator](), has("a", "b"));
  await assert.rejects(client.get({ ...query, predicate: "price = %@", predicateArguments: [1n] }), TypeError);
  assert.equal(client.connection.state, "current");
  assert.deepEqual(namesOf(await client.get(query, { timeout: Infinity })), ["a", "b"]);
}));

for (const door of ["websocket", "stream", "poll"]) {
  test(`by ${door} a text that was cut within a letter ends nothing`, { timeout: 10_000 }, () => world(async (relay, client) => {
    const texts = ["cut \ud83c", "\udf4b", "whole \ud83c\udf4b", "\\ud83c", "\\\ud83c\n"];
    client.results({ ...query, predicate: "name IN %@", predicateArguments: [texts] });
    await until(client.results(query)[Symbol.asyncIterator](), has("a", "b"));
    assert.equal(client.connection.transport, door);
    const [sent] = relay.hellos.at(-1).set.queries;
    assert.deepEqual(
      sent.query.predicateArguments, [["cut \ufffd", "\ufffd", "whole \ud83c\udf4b", "\\ud83c", "\\\ufffd\n"]]);
  }, (relay) => {
    relay.refusesUpgrades = door !== "websocket";
    relay.refusesStreams = door === "poll";
  }));
}

test("a loop that is left keeps nothing for later", { timeout: 10_000 }, () => world(async (relay, client) => {
  const changes = client.changes({ recordType: "Art" });
  const values = changes[Symbol.asyncIterator]();
  await client.fence();
  for (let round = 0; round < 3; round += 1) relay.change("a", round);
  await client.fence();
  assert.equal((await values.next()).value.position, 3);
  assert.deepEqual(await values.return("left"), { done: true, value: "left" });
  assert.equal((await values.next()).done, true);
}));

test("who shows an inbox late has what it has told, once", { timeout: 10_000 }, () => world(async (relay, client) => {
  relay.notify("one");
  relay.notify("two");
  const first = client.notifications();
  const values = first[Symbol.asyncIterator]();
  await values.next();
  await values.next();
  const seen = [];
  const join = () => {
    const inbox = client.notifications();
    inbox.onNotification = ({ payload }, syncToken) => seen.push(`${payload.text} ${syncToken}`);
    return inbox;
  };
  // A page that renders again gets the same as one that renders for the first time.
  first.close();
  const second = join();
  assert.equal(second.syncToken, undefined);
  await client.fence();
  assert.deepEqual([seen.splice(0), second.syncToken], [["one s1", "two s2"], "s2"]);
  // A listener that begins during a notification gets it once.
  const told = new Promise((resolve) => {
    second.onNotification = () => resolve(join());
  });
  relay.notify("three");
  await told;
  await client.fence();
  assert.deepEqual(seen, ["one s1", "two s2", "three s3"]);
  assert.equal(relay.frames.filter(({ type }) => type === "set").length, 0);
}));

test("a query that was to go with a refused one goes on, by the same handle", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.add("art", query);
  const handle = client.set.named("art");
  const values = handle[Symbol.asyncIterator]();
  await until(values, has("a", "b"));
  const swap = (recordType) => client.set.update((editor) => {
    editor.remove("art");
    editor.add("other", { ...query, recordType, limit: 5 });
  });
  await assert.rejects(swap("Atr"), { liveError: "unknownType" });
  assert.deepEqual([client.set.names, client.set.named("art")], [["art"], handle]);
  relay.change("c", 3);
  await until(values, has("a", "b", "c"));
  // It also continues if its own removal was sent after the refused update.
  const refused = assert.rejects(client.set.add("other", { recordType: "Atr" }));
  client.set.remove("art").catch(() => {});
  await refused;
  assert.equal(client.set.named("art"), handle);
  await swap("Art");
  assert.deepEqual([client.set.names, handle.state], [["other"], "ended"]);
  assert.equal((await values.next()).done, true);
}));

test("a refused update takes back nothing of what was taken before it and is not complete yet", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.add("art", query);
  const whileSlow = async (edit) => {
    [relay.isSlow, relay.finish] = [true, undefined];
    const update = client.set.update(edit);
    while (!relay.finish) await new Promise((resolve) => setTimeout(resolve, 2));
    await assert.rejects(client.set.add("bad", { recordType: "Atr" }), { liveError: "unknownType" });
    const names = client.set.names;
    relay.isSlow = false;
    relay.finish();
    await update;
    return names;
  };
  assert.deepEqual(await whileSlow((editor) => editor.add("few", { ...query, limit: 5 })), ["art", "few"]);
  const few = client.set.named("few");
  assert.equal(few.state, "live");
  // A query removed by the failed update does not come back, and neither does one removed by itself.
  assert.deepEqual(await whileSlow((editor) => {
    editor.remove("few");
    editor.add("fewer", { ...query, limit: 3 });
  }), ["art", "fewer"]);
  assert.equal(few.state, "ended");
  assert.deepEqual(await whileSlow((editor) => editor.remove("art")), ["fewer"]);
  assert.deepEqual(client.set.names, ["fewer"]);
}));

test("an update that only removes is complete once the relay has taken it", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.update((editor) => {
    editor.add("art", query);
    editor.add("few", { ...query, limit: 1 });
  });
  const few = client.set.named("few");
  const removed = client.set.remove("few");
  assert.deepEqual([few.state, client.set.state], ["ended", "bootstrapping"]);
  await removed;
  assert.equal(client.set.state, "complete");
  assert.equal(relay.frames.filter(({ type, remove }) => type === "set" && remove.length).length, 1);
  // A query that is added again in the same turn continues.
  client.set.remove("art");
  await client.set.add("art", query);
  assert.deepEqual(namesOf(client.set.named("art").records), ["a", "b"]);
  relay.change("c", 3);
  await client.fence();
  assert.deepEqual(namesOf(client.set.named("art").records), ["a", "b", "c"]);
  await client.set.update((editor) => editor.removeAll());
  assert.equal(client.set.state, "complete");
}));

test("a set that is emptied on a stream is complete", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.add("art", query);
  assert.equal(client.connection.transport, "stream");
  await client.set.remove("art");
  await new Promise((resolve) => setTimeout(resolve, 20));
  await client.set.waitForComplete({ timeout: 2_000 });
  assert.equal(client.set.state, "complete");
  // A set that shows something again is complete too.
  await client.set.add("art", query);
  assert.deepEqual(namesOf(client.set.named("art").records), ["a", "b"]);
}, (relay) => (relay.refusesUpgrades = true)));

test("a query in whose place a refused one was has missed nothing, and is told nothing twice", { timeout: 10_000 }, () => world(async (relay, client) => {
  await client.set.update((editor) => {
    editor.add("art", query);
    editor.add("changes", { kind: "changes", recordType: "Art" });
  });
  const seen = [];
  client.set.named("art").onItems = (items) => seen.push(...items.map(({ op, key }) => `${op} ${key}`));
  client.set.named("changes").onChange = ({ position }) => seen.push(position);
  const update = client.set.update((editor) => {
    editor.put("art", { recordType: "Atr" });
    editor.put("changes", { kind: "changes", recordType: "Atr" });
  });
  relay.change("c", 3); // This happens before the edit arrives.
  await assert.rejects(update, { liveError: "unknownType" });
  relay.change("d", 4);
  await client.fence();
  assert.deepEqual(seen.sort(), [3, 4, "added c", "added d"]);
  assert.deepEqual(namesOf(client.set.named("art").records), ["a", "b", "c", "d"]);
  assert.equal(client.set.named("changes").state, "live");
  assert.equal(client.connection.state, "current");
  // Nor is anything missed if the connection is lost before the outcome is known.
  client.set.update((editor) => editor.put("changes", { kind: "changes", recordType: "Atr" })).catch(() => {});
  for (const { channel } of relay.connections) channel.cut();
  relay.change("e", 5);
  while (client.set.state !== "error") await new Promise((resolve) => setTimeout(resolve, 5));
  await client.fence();
  assert.deepEqual(seen.splice(4).sort(), [5, "added e"]);
  // Another handle of the same query continues where the former one ends.
  const beside = client.results(query);
  await client.set.update((editor) => editor.put("art", { ...query, limit: 5 }));
  relay.change("f", 6);
  await until(beside[Symbol.asyncIterator](), has("a", "b", "c", "d", "e", "f"));
}));

test("what is there at first says where it stands, if there is an order", { timeout: 10_000 }, () => world(async (relay, client) => {
  const places = ({ value }) => value.map(({ key, previous }) => `${key} after ${previous}`);
  const art = client.results(query);
  assert.deepEqual(places(await art.items().next()), ["a after null", "b after a"]);
  assert.deepEqual(places(await client.results(query).items().next()), ["a after null", "b after a"]);
  const heap = client.results({ recordType: "Art" });
  assert.deepEqual(places(await heap.items().next()), ["a after undefined", "b after undefined"]);
}));
