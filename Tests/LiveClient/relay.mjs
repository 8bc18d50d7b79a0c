// A miniature relay: the three live calls over one list of records. It knows one query, "all Art by price",
// and tells a reconnecting client what it has missed. It also serves the page.
import { readFile } from "node:fs/promises";
import http from "node:http";
import { accept } from "./websocket.mjs";

const files = {
  "/live/": ["live.html", "text/html; charset=utf-8"],
  "/live/live-page.js": ["live-page.js", "text/javascript; charset=utf-8"],
  "/live/client.js": ["belfry-live.js", "text/javascript; charset=utf-8"],
};

export class Relay {
  records = new Map();
  position = 0;
  log = []; // The changes, by position.
  inbox = [];
  connections = new Set();
  hellos = [];
  heads = []; // The headers of the requests that were posted.
  frames = []; // The frames that clients sent over sockets.
  refusesUpgrades = false;
  refusesStreams = false;
  isSlow = false; // Whether an accepted set is complete only when `finish` is called.

  async start(port = 0) {
    this.server = http.createServer((request, response) => this.#serve(request, response));
    this.server.on("upgrade", (request, socket, head) => {
      if (this.refusesUpgrades) return socket.end("HTTP/1.1 503 Service Unavailable\r\n\r\n");
      const channel = accept(request, socket, head, "belfry.live.v1");
      const connection = { send: (frame) => channel.send(JSON.stringify(frame)), channel, groups: new Map() };
      channel.ontext = (text) => this.#take(connection, JSON.parse(text));
      channel.onclose = () => this.connections.delete(connection);
      this.connections.add(connection);
    });
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  async stop() {
    for (const { channel } of this.connections) channel?.cut();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Saves or deletes a record, and tells all clients. */
  change(recordName, price) {
    this.position += 1;
    const record = { recordName, recordType: "Art", fields: { price }, recordChangeTag: `${this.position}` };
    const op = price === undefined ? "removed" : this.records.has(recordName) ? "changed" : "added";
    if (price === undefined) this.records.delete(recordName);
    else this.records.set(recordName, record);
    const item = { op, record: op === "removed" ? { recordName } : record };
    if (op !== "removed") item.previous = this.#previous(recordName);
    this.log.push({ item, operation: { added: "create", changed: "update", removed: "delete" }[op], record });
    for (const connection of this.connections) {
      for (const [group, kind] of connection.groups) connection.send(this.#frame(kind, group, this.position));
      connection.send(this.#at());
    }
  }

  /** Adds an entry to the inbox, and tells the clients that ask for it. */
  notify(text) {
    this.inbox.push(text);
    for (const { feed, send } of this.connections) if (feed) send(this.#notification(feed, this.inbox.length));
  }

  #notification(id, number) {
    const notification = { notificationID: `n${number}`, payload: { text: this.inbox[number - 1] } };
    return { type: "notification", id, notification, syncToken: `s${number}` };
  }

  #frame(kind, group, position) {
    const { item, operation, record } = this.log[position - 1];
    return kind === "changes"
      ? { type: "change", group, position, operation, record }
      : { type: "items", group, items: [item] };
  }

  get #sorted() {
    return [...this.records.values()].sort((one, other) =>
      one.fields.price - other.fields.price || (one.recordName < other.recordName ? -1 : 1));
  }

  #previous(recordName) {
    const names = this.#sorted.map((record) => record.recordName);
    return names[names.indexOf(recordName) - 1] ?? null;
  }

  #at() {
    return { type: "at", at: `t${this.position}` };
  }

  #take(connection, frame) {
    this.frames.push(frame);
    if (frame.type === "hello") this.#greet(connection, frame);
    else if (frame.type === "set") this.#set(connection, frame);
    else if (frame.type === "get") {
      connection.send({ type: "result", id: frame.id, part: 0, isLast: true, records: this.#sorted });
    } else if (frame.type === "fence") {
      connection.send({ type: "fenced", id: frame.id });
      connection.send(this.#at());
    }
  }

  #greet(connection, hello) {
    this.hellos.push(hello);
    connection.send({ type: "welcome", userRecordName: "_ann", mine: "me", heartbeat: 25, time: Date.now() });
    this.#set(connection, hello.set);
  }

  #set(connection, set) {
    const queries = set.queries ?? set.add ?? [];
    const bad = queries.filter((query) => query.recordType !== "Art" && query.kind !== "notifications");
    if (bad.length) {
      const error = { serverErrorCode: "NOT_FOUND", liveError: "unknownType", reason: "no such type" };
      return connection.send({
        type: "state", version: set.version, state: "error", queries: bad.map(({ id }) => ({ id, error })),
      });
    }
    if (set.queries) connection.groups.clear();
    connection.next ??= 1;
    const named = queries.map((query) => ({ query, group: connection.next++ }));
    for (const id of set.remove ?? []) connection.groups.delete(connection.named?.get(id));
    connection.named = new Map([...(connection.named ?? []), ...named.map(({ query, group }) => [query.id, group])]);
    connection.send({
      type: "state", version: set.version, state: "bootstrapping",
      queries: named.map(({ query, group }) => ({
        id: query.id, group: query.kind === "notifications" ? undefined : group, fingerprint: "f",
        isResumed: query.since !== undefined })),
    });
    for (const { query, group } of named) {
      if (query.kind === "notifications") {
        connection.feed = query.id;
        const known = Number(query.since?.slice(1) ?? 0);
        for (let number = known + 1; number <= this.inbox.length; number += 1) {
          connection.send(this.#notification(query.id, number));
        }
        continue;
      }
      const since = query.since && Number(query.since.slice(1));
      for (let position = (since ?? this.position) + 1; position <= this.position; position += 1) {
        connection.send(this.#frame(query.kind, group, position));
      }
      if (query.kind === "result" && since === undefined) {
        connection.send({ type: "result", group, part: 0, isLast: true, records: this.#sorted });
      }
      if (!query.once || query.kind === "changes") connection.groups.set(group, query.kind);
    }
    const finish = () => {
      connection.send({ type: "state", version: set.version, state: "complete" });
      connection.send(this.#at());
    };
    if (this.isSlow) this.finish = finish;
    else finish();
  }

  async #serve(request, response) {
    const file = files[request.url];
    if (file) {
      const [name, type] = file;
      const text = await readFile(new URL(`../../Sources/RelayServer/Live/${name}`, import.meta.url));
      return response
        .writeHead(200, { "content-type": type, "content-security-policy": "default-src 'self'" }).end(text);
    }
    if (request.method !== "POST") return response.writeHead(404).end();
    let body = "";
    for await (const part of request) body += part;
    const hello = JSON.parse(body);
    this.heads.push(request.headers);
    const door = request.url.split("/").at(-1);
    if (door === "stream") {
      if (this.refusesStreams) return response.writeHead(502).end("<html>");
      response.writeHead(200, { "content-type": "text/event-stream" });
      const connection = { groups: new Map(), send: (frame) => response.write(`data: ${JSON.stringify(frame)}\n\n`) };
      this.connections.add(connection);
      response.on("close", () => this.connections.delete(connection));
      response.write(": keep\n\n");
      return this.#greet(connection, hello);
    }
    const frames = [];
    const connection = { groups: new Map(), send: (frame) => frames.push(frame) };
    const isWaiting = hello.wait > 0 && hello.set.queries.every((query) => query.since === `t${this.position}`);
    if (isWaiting) {
      await new Promise((resolve) => {
        const looking = setInterval(() => {
          if (hello.set.queries.some((query) => query.since !== `t${this.position}`)) finish();
        }, 5);
        const finish = () => resolve(clearInterval(looking));
        response.on("close", finish);
      });
    }
    this.#greet(connection, hello);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ frames, at: `t${this.position}` }));
  }
}
