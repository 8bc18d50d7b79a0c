// The calls of the console's pages to the relay.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay, Unreachable } from "../../Sources/RelayServer/Console/Pages/api.js";

/** Answers calls like a relay at which `label` is signed in, or nobody is; returns the calls made. */
function relayOf(label) {
  const calls = [];
  globalThis.fetch = async (target, { method, headers }) => {
    calls.push(`${method} ${target} ${headers.Authorization ?? "-"}`);
    if (method === "GET" && !label) return Response.json({ reason: "Authorization: Bearer is missing" }, { status: 401 });
    return Response.json({ label: method === "GET" ? label : "another" });
  };
  return calls;
}

test("an address with a code signs in whoever is not signed in", async () => {
  const calls = relayOf(undefined);
  assert.equal((await new Relay().enter("c0de")).label, "another");
  assert.deepEqual(calls, ["GET /admin/1/session -", "POST /admin/1/session Bearer c0de"]);
});

test("an address with a code makes nobody somebody else", async () => {
  const calls = relayOf("admin.token");
  assert.equal((await new Relay().enter("c0de")).label, "admin.token");
  assert.deepEqual(calls, ["GET /admin/1/session -"]);
});

test("a name that browsers take for a way to other calls is asked for nowhere", async () => {
  const calls = relayOf("admin.token");
  const path = (name) => `/admin/1/containers/c/development/sessions/${encodeURIComponent(name)}`;
  for (const name of [".", ".."]) await assert.rejects(new Relay().call("DELETE", path(name)), /command belfry/);
  await assert.rejects(new Relay().get("/admin/1/containers/../production/users"), /command belfry/);
  assert.deepEqual(calls, []);
  for (const name of ["...", "..a", "/.."]) await new Relay().call("DELETE", path(name));
  await new Relay().get("/admin/1/containers/c/development/devices", { user: ".." });
  assert.equal(calls.length, 4);
});

test("a list is read on until there is something, or its end", async () => {
  const pages = [{ rows: [], before: "3" }, { rows: [], before: "2" }, { rows: [1], before: "1" }, { rows: [], before: "0" }, { rows: [] }];
  const asked = [];
  globalThis.fetch = async (target) => {
    asked.push(new URL(target, "http://relay").searchParams.get("before"));
    return Response.json(pages.shift());
  };
  const list = await new Relay().list("/list", {}, "rows");
  assert.deepEqual([list.rows, list.hasMore, asked], [[1], true, [null, "3", "2"]]);
  const { rows, hasMore } = await list.more();
  assert.deepEqual([rows, hasMore, asked.slice(3)], [[], false, ["1", "0"]]);
});

test("no code is used where the relay does not answer", async () => {
  globalThis.fetch = async () => { throw new TypeError("fetch failed"); };
  await assert.rejects(new Relay().enter("c0de"), Unreachable);
});
