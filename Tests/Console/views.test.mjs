import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { cut, mistake, outcomeOf, placeOf } from "../../Sources/RelayServer/Console/Pages/condition.js";
import { added, curlOf, draftOf, shownAs, valueOf } from "../../Sources/RelayServer/Console/Pages/drafts.js";
import { Journal, mostChanges, standingOf, tally } from "../../Sources/RelayServer/Console/Pages/journal.js";
import { line, roundUp, thinned } from "../../Sources/RelayServer/Console/Pages/numbers.js";
import { formatted, seen } from "../../Sources/RelayServer/Console/Pages/pushes.js";
import { address, pages, path, read } from "../../Sources/RelayServer/Console/Pages/route.js";

// MARK: What is loaded

test("Opening a page loads at most 150,000 bytes", () => {
  const text = (name) => readFileSync(new URL(`../../Sources/RelayServer/Console/Pages/${name}`, import.meta.url), "utf8");
  const loaded = (name, all = new Set()) => {
    if (all.has(name)) return all;
    all.add(name);
    for (const [, other] of text(name).matchAll(/from "\.\/([a-z-]+\.js)"/g)) loaded(other, all);
    return all;
  };
  for (const [name, { module }] of Object.entries(pages)) {
    const files = new Set(["index.html", "console.css", "icon.svg", ...loaded("console.js"), ...loaded(`${module ?? name}.js`)]);
    const size = [...files].reduce((sum, file) => sum + Buffer.byteLength(text(file)), 0);
    assert.ok(size <= 150_000, `${name} loads ${size} bytes`);
  }
});

// MARK: Addresses

test("A view has an address, and the address is read back", () => {
  const params = { container: "iCloud.com.example.Art", environment: "development", user: "a&b=c/ü<>", empty: "" };
  const at = address("users", params);
  assert.deepEqual(read(at), { page: "users", params: { container: params.container, environment: params.environment, user: params.user } });
  for (const page of Object.keys(pages)) assert.equal(read(address(page)).page, page);
  assert.equal(read("/console/").page, "now");
  assert.equal(read("/console/constructor").page, "now");
  assert.equal(read("/elsewhere/tail").page, "now");
});

test("Variable parts of a path stay one part", () => {
  assert.equal(path`/admin/1/containers/${"a/b"}/${"../c?"}`, "/admin/1/containers/a%2Fb/..%2Fc%3F");
});

// MARK: Conditions

test("A place in bytes is found in the text", () => {
  const text = 'é = "👩" AND price < 3';
  const bytes = new TextEncoder().encode(text);
  for (let at = 0, place = 0; place <= text.length; place += 1) {
    if (text.charCodeAt(place) >= 0xdc00 && text.charCodeAt(place) < 0xe000) continue;
    at = new TextEncoder().encode(text.slice(0, place)).length;
    assert.equal(placeOf(text, at), place);
  }
  assert.equal(placeOf(text, bytes.length + 10), text.length);
});

test("A condition is cut at its comparisons, and nothing of it is lost", () => {
  const text = 'é == "x" AND price < 3';
  const spans = [{ offset: 0, length: 9 }, { offset: 14, length: 9 }, undefined, { offset: 2, length: 4 }];
  const parts = cut(text, spans);
  assert.deepEqual(parts, [{ text: 'é == "x"', index: 0 }, { text: " AND " }, { text: "price < 3", index: 1 }]);
  assert.equal(cut(text, []).map(({ text }) => text).join(""), text);
});

test("What a comparison came to, in a word", () => {
  const comparisons = [{ outcome: true }, { outcome: false }, { error: "x" }];
  assert.deepEqual(comparisons.map((one) => outcomeOf(one)[1]), ["true", "false", "error"]);
});

test("A mistake in a draft is at least one character wide", () => {
  assert.deepEqual(mistake("price <", { offset: 7, length: 0 }), { from: 6, to: 7 });
  assert.deepEqual(mistake("prise < 1", { offset: 0, length: 5 }), { from: 0, to: 5 });
  assert.deepEqual(mistake("", { offset: 0, length: 0 }), { from: 0, to: 0 });
  assert.deepEqual(mistake("a👩b", { offset: 1, length: 0 }), { from: 1, to: 3 });
});

// MARK: Drafts

test("A field's text is read as its kind, or refused with what is allowed", () => {
  assert.deepEqual([valueOf("text", "1"), valueOf("number", "-1.5e3"), valueOf("true/false", "true"), valueOf("reference", "a"), valueOf("place", "1, 2"), valueOf("JSON", '{"$map":{}}')],
    ["1", -1500, true, { $ref: "a" }, { $geo: [1, 2] }, { $map: {} }]);
  assert.deepEqual(valueOf("date", "2026-11-24T12:00:00Z"), { $date: 1795521600 });
  for (const [kind, text] of [["number", "1x"], ["number", ""], ["true/false", "yes"], ["date", "soon"], ["place", "1"], ["JSON", "{"]]) assert.throws(() => valueOf(kind, text), Error, `${kind} ${text}`);
  for (const value of ["a", 1.5, false, { $ref: "a" }, { $geo: [1, 2] }, { $map: { a: [1] } }, [1], null]) assert.deepEqual(valueOf(...shownAs(value)), value);
});

test("A value of a change is in the form exactly what it is, or stands there as JSON", () => {
  for (const value of ["", "two\nlines", "a\r", " a ", { $ref: "a", $zone: "b" }, { $ref: " a" }, { $ts: [1795521600, 500] }, { $ts: [10 ** 15, 0] }, { $date: 1e300 }, { $date: 0.1 }, { $ts: 5 }, { $geo: [1] },
    { $geo: [1, 2], more: 1 }, { $map: { $ref: "a" } }]) assert.deepEqual(valueOf(...shownAs(value)), value);
  assert.deepEqual(shownAs({ $ts: [1795521600, 0] }), ["date", "2026-11-24T12:00:00.000Z"]);
});

test("A draft has what the form says and nothing else", () => {
  const form = { recordType: "Artwork", predicate: " price < 3 ", on: "create delete", firesWhen: "matches", changedKeys: "", alertBody: "" };
  assert.deepEqual(draftOf(form), { subscriptionType: "query", query: { recordType: "Artwork", predicate: " price < 3 " }, firesOn: ["create", "delete"], notificationInfo: { shouldSendContentAvailable: true } });
  assert.deepEqual(draftOf({ ...form, predicate: "", firesWhen: "entered", changedKeys: "a, b,", alertBody: "x" }),
    { subscriptionType: "query", query: { recordType: "Artwork" }, firesOn: ["create", "delete"], firesWhen: "entered", changedKeys: ["a", "b"], notificationInfo: { alertBody: "x" } });
  const kind = draftOf({ ...form, pushes: "3", seconds: "3600", digest: "60" });
  assert.deepEqual([kind.throttle, kind.digest], [{ pushes: 3, seconds: 3600 }, { seconds: 60 }]);
  assert.deepEqual(draftOf({ ...form, pushes: "some", seconds: "" }).throttle, { pushes: "some", seconds: undefined }, "the relay refuses it at its place");
});

test("A draft of a saved subscription differs from it by what the form says alone", () => {
  const saved = {
    subscriptionID: "s", userRecordName: "ann", database: "public", serial: "7", activationPosition: "9", health: { fired: 1 }, held: 2, subscriptionType: "query",
    query: { recordType: "Artwork", rql: "lt(price,3)", canonicalPredicate: "price < 3" }, firesOn: ["create"], firesOnce: false, zoneID: { zoneName: "hall" }, suppress: "user",
    urgent: true, expiresAt: 1000, notificationInfo: { alertBody: "x", title: "t" }, digest: { seconds: 60, title: "{count} new" },
  };
  const form = { recordType: "Artwork", predicate: "price < 3", on: "create", firesWhen: "matches", alertBody: "x", digest: "60" };
  const { subscriptionType, query, firesOn, firesOnce, zoneID, suppress, urgent, notificationInfo, digest } = saved;
  const same = { subscriptionType, query, firesOn, firesOnce, zoneID, suppress, urgent, notificationInfo, digest };
  assert.deepEqual(draftOf(form, saved), same, "what has expired is rehearsed as if it had not");
  assert.deepEqual(draftOf({ ...form, predicate: "price < 4", alertBody: "", digest: "" }, saved),
    { subscriptionType, query: { recordType: "Artwork", predicate: "price < 4" }, firesOn, firesOnce, zoneID, suppress, urgent, notificationInfo: { title: "t" } });
  const zone = { subscriptionID: "z", subscriptionType: "zone", zoneWide: true, recordType: "Artwork", notificationInfo: { shouldSendContentAvailable: true } };
  assert.deepEqual(draftOf({ ...form, recordType: "Artwork", alertBody: "", digest: "" }, zone),
    { subscriptionType: "zone", zoneWide: true, recordType: "Artwork", notificationInfo: { shouldSendContentAvailable: true } });
});

test("What an input cannot hold of a saved subscription is not changed by it", () => {
  const saved = { subscriptionType: "query", query: { recordType: "Artwork", predicate: "a", canonicalPredicate: "title == \"a\rb\"" }, changedKeys: ["a,b", "c"], notificationInfo: { alertBody: "two\nlines" } };
  const form = { recordType: "Artwork", predicate: "title == \"a\nb\"", on: "create", changedKeys: "a,b, c", alertBody: "twolines" };
  const draft = draftOf(form, saved);
  assert.deepEqual([draft.query, draft.changedKeys, draft.notificationInfo], [saved.query, ["a,b", "c"], { alertBody: "two\nlines" }]);
  assert.deepEqual(draftOf({ ...form, changedKeys: "a, d", alertBody: "other" }, saved).changedKeys, ["a", "d"]);
});

test("The line for the shell has the URL and the body, and never a secret", () => {
  const url = "http://127.0.0.1:8080/changes/1/c/development/s";
  assert.equal(curlOf({ url, verification: { scheme: "bearer" } }, `{"a":"it's"}`),
    `curl -sS ${url} -H 'Content-Type: application/json' -H "Authorization: Bearer $BELFRY_SOURCE_SECRET" --data-binary '{"a":"it'\\''s"}'`);
  assert.ok(curlOf({ url, verification: { scheme: "standardWebhooks" } }, "{}").includes("verifies a signature"));
  assert.ok(!curlOf({ url, verification: { scheme: "none" } }, "{}").includes("Bearer"));
});

test("The name of a source's header says nothing to the shell", () => {
  const header = (name) => curlOf({ url: "http://relay/s", verification: { scheme: "header", header: name } }, "{}").split(" -H ")[2];
  assert.equal(header("X-Secret"), '"X-Secret: $BELFRY_SOURCE_SECRET" --data-binary \'{}\'');
  assert.equal(header("X-`id`$HOME"), '\'X-`id`$HOME\'": $BELFRY_SOURCE_SECRET" --data-binary \'{}\'');
  assert.equal(header("X-'"), '\'X-\'\\\'\'\'": $BELFRY_SOURCE_SECRET" --data-binary \'{}\'');
});

test("The calls of one rehearsal add up", () => {
  const part = (fired, changes, hour, before) => ({
    sentence: "s", fired, pushes: 2 * fired, devices: 2, lookedAt: { changes, before, from: { position: "1" }, to: { position: "9" } }, byOperation: { create: fired, update: 0, delete: 0 },
    byDay: [{ day: "2026-11-24", fired }], byHour: [{ hour, fired }], errors: { count: 1 }, examples: [fired], nearMisses: {}, change: { firedBefore: 1, added: fired, removed: 0, addedExamples: [], removedExamples: [] },
  });
  const sum = added(added(undefined, part(2, 10, "T10", "5")), part(3, 20, "T09"));
  assert.deepEqual([sum.fired, sum.pushes, sum.lookedAt.changes, sum.byOperation.create, sum.change.added, sum.errors.count], [5, 10, 30, 5, 5, 2]);
  assert.deepEqual(sum.byDay, [{ day: "2026-11-24", fired: 5 }]);
  assert.deepEqual(sum.byHour, [{ hour: "T09", fired: 3 }, { hour: "T10", fired: 2 }]);
});

// MARK: The tail

const event = (kind, position, more) => ({ kind, position: String(position), at: "2026-11-24T12:00:00Z", ...more });

test("Events become changes with what they fired, and to whom it went", () => {
  const journal = new Journal();
  const first = journal.take([
    event("change", 5, { operation: "create", recordType: "Art", recordName: "a", outcome: "judged", fired: 1, leftOut: ["phone"] }),
    event("match", 5, { userRecordName: "u", subscriptionID: "s" }),
    event("push", 5, { userRecordName: "u", subscriptionID: "s", deviceID: "tablet", deliveryID: "d-1", notification: {} }),
  ]);
  assert.deepEqual(first, { added: ["5"], changed: [] });
  assert.equal(standingOf(journal.get("5").pushes[0]), "sent");
  const second = journal.take([event("answer", 5, { deliveryID: "d-1", answer: { outcome: "accepted", status: 200, becomes: "accepted" } }), event("answer", 4, { deliveryID: "long ago", answer: {} })]);
  assert.deepEqual(second, { added: [], changed: ["5"] });
  assert.deepEqual(tally(journal.get("5")), { delivered: 1 });
  // A push that is handed over again is the same delivery.
  journal.take([event("push", 5, { deliveryID: "d-1" })]);
  assert.equal(journal.get("5").pushes.length, 1);
});

test("The newest change stands first, and the oldest go", () => {
  const journal = new Journal();
  journal.take(Array.from({ length: mostChanges + 20 }, (_, index) => event("change", index + 1, { fired: 0 })));
  journal.take([event("change", 9999, { fired: 0 })]);
  assert.equal(journal.entries.length, mostChanges);
  assert.equal(journal.entries[0].position, "9999");
  assert.equal(journal.get("1"), undefined);
  journal.recall([{ position: "100000000000000000001", appendedAt: "x", change: { op: "create", type: "t", name: "n" } }]);
  assert.equal(journal.entries[0].position, "100000000000000000001");
});

test("A push stands where its last answer leaves it", () => {
  const standing = (...answers) => standingOf({ answers });
  assert.equal(standing({ becomes: "retried", outcome: "refused" }), "waiting");
  assert.equal(standing({ becomes: "held", outcome: "notSent" }), "held");
  assert.equal(standing({ becomes: "held", outcome: "notSent" }, { becomes: "seen", outcome: "notSent" }), "seen");
  // Every other end is one without success, including ends that this page does not know.
  for (const becomes of ["refused", "unregistered", "exhausted", "expired", "superseded", "deadToken", "withdrawn"]) assert.equal(standing({ becomes: "retried" }, { becomes }), "dead");
  assert.equal(standing({ outcome: "accepted" }), "delivered");
});

// MARK: Plots

test("Many numbers become few, none of the highest is lost, and gaps stay gaps", () => {
  const values = Array.from({ length: 720 }, (_, index) => (index < 100 ? null : index === 333 ? 50 : 1));
  const thin = thinned(values, 240);
  assert.equal(thin.length, 240);
  assert.equal(thin[0].value, null);
  assert.equal(Math.max(...thin.map(({ value }) => value ?? 0)), 50);
  assert.equal(thin.at(-1).to, 719);
  assert.deepEqual(thinned([1, null], 10), [{ value: 1, from: 0, to: 0 }, { value: null, from: 1, to: 1 }]);
});

test("The top of a scale is round, and the line has a gap where nothing is known", () => {
  assert.deepEqual([0, 0.3, 1, 1.1, 37, 50, 9999].map(roundUp), [1, 0.5, 1, 2, 50, 50, 10000]);
  assert.equal(line([{ value: 1 }, { value: null }, { value: 0 }, { value: 1 }], 1, 4).match(/M/g).length, 2);
  assert.equal(line([], 1, 0), "");
});

// MARK: Phones

test("A format of an application's strings is filled in as iOS does", () => {
  assert.equal(formatted("%2$@ by %1$@ for %d %%", ["Ann", "Sea", 3]), "Sea by Ann for Ann %");
  assert.equal(formatted("%@ %@", ["a"]), "a ");
});

test("A push is seen as its user sees it", () => {
  assert.deepEqual(seen({ aps: { alert: "Hello", sound: "default", badge: 3 } }, "alert"),
    { title: undefined, subtitle: undefined, body: "Hello", sound: "default", badge: 3, isSilent: false, isCritical: false, isLocalised: false, spoken: "Hello" });
  assert.equal(seen({ aps: { "content-available": 1 } }, "background").isSilent, true);
  assert.equal(seen({ aps: { "content-available": 1 } }).spoken, "a silent push");
  assert.equal(seen({ aps: { alert: { "loc-key": "NEW %@", "loc-args": ["Sea"] } } }).body, "NEW Sea");
  assert.equal(seen({ aps: { alert: { "loc-key": "NEW", "loc-args": ["Sea"] } } }).body, "NEW (Sea)");
  assert.equal(seen({ aps: { badge: 0 } }).body, "Only the badge number changes");
  assert.equal(seen({}).isSilent, true);
  assert.equal(seen(undefined).isSilent, true);
});
