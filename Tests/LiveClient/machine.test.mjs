// The decisions of the client's state machine, against transcripts.
import assert from "node:assert/strict";
import test from "node:test";
import { recordKey } from "./client.mjs";
import {
  Drive, art, at, definition, delivered, names, opened, result, sent, state, told, watching, welcome,
} from "./drive.mjs";

test("a connection says hello with its set, and shows what an `at` closes", () => {
  const drive = new Drive();
  const open = opened(drive.step("declare", { id: "q1", definition }));
  assert.equal(open.transport, "websocket");
  assert.deepEqual(open.hello.set, {
    version: 1, queries: [{ id: "q1", ...definition, since: undefined, fingerprint: undefined }],
  });
  assert.equal(open.hello.ckAPIToken, "k");
  drive.step("opened");
  const early = drive.frames(
    welcome, state(1, "bootstrapping", [told("q1", 7)], { progress: 0.5 }),
    result(7, [art("a", 1)], { isLast: false }), result(7, [art("b", 2)], { part: 1 }));
  assert.deepEqual(delivered(early), []);
  assert.equal(drive.machine.connection.progress, 0.5);
  assert.deepEqual(names(drive.frames(state(1, "complete"), at("t1"))), ["a", "b"]);
  assert.deepEqual(drive.said, ["connecting", "catchingUp", "current"]);
  assert.equal(drive.machine.connection.asOf, 0);
});

test("how far a set is counts for that set alone", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  drive.frames(state(2, "bootstrapping", [told("q2", 8)], { progress: 0.75 }), state(2, "complete"), at("t2"));
  drive.step("declare", { id: "q3", definition });
  drive.frames(state(3, "bootstrapping", [told("q3", 9)]));
  assert.equal(drive.machine.connection.progress, 0);
  drive.frames(result(9, []), state(3, "complete"));
  assert.equal(drive.machine.connection.progress, 1);
});

test("a result of more records than a call has arguments is shown", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  drive.step("opened");
  drive.frames(welcome, state(1, "bootstrapping", [told("q1", 7)]));
  const [parts, size] = [100, 2000]; // As many as `live.resultRecords` allows in a result.
  for (let part = 0; part < parts; part += 1) {
    const records = Array.from({ length: size }, (_, index) => art(`${part}-${index}`, index));
    drive.frames(result(7, records, { part, isLast: part === parts - 1 }));
  }
  const [{ items, records }] = delivered(drive.frames(state(1, "complete"), at("t1")));
  assert.deepEqual([items.length, records.length], [parts * size, parts * size]);
});

test("edits of one turn are one set, and edits while one is under way become one more", () => {
  const drive = Drive.current();
  drive.machine.handle({ type: "declare", id: "q2", definition: watching }, 0);
  drive.machine.handle({ type: "declare", id: "q3", definition: watching }, 0);
  drive.machine.handle({ type: "undeclare", id: "q3" }, 0);
  const [set] = sent(drive.step("flush"));
  assert.equal(set.base, 1);
  assert.deepEqual(set.add.map((query) => query.id), ["q2"]);
  assert.deepEqual(set.remove, []);
  assert.equal(drive.state, "catchingUp");
  assert.deepEqual(sent(drive.step("declare", { id: "q4", definition })), []);
  assert.deepEqual(sent(drive.step("undeclare", { id: "q1" })), []);
  const [next] = sent(drive.frames(state(2, "bootstrapping", [told("q2", 8)])));
  assert.deepEqual([next.version, next.base, next.add.map((query) => query.id), next.remove], [3, 2, ["q4"], ["q1"]]);
  drive.frames(state(2, "complete"), at("t2"));
  assert.equal(drive.state, "catchingUp", "a later version is under way");
  drive.frames(state(3, "bootstrapping", [told("q4", 7)]), result(7, []), state(3, "complete"), at("t3"));
  assert.equal(drive.state, "current");
});

test("edits without a connection are merged into the set of the next hello", () => {
  const drive = Drive.current();
  drive.step("lost", { code: 1006 });
  assert.equal(drive.state, "offline");
  assert.deepEqual(drive.step("declare", { id: "q2", definition: watching }), []);
  assert.deepEqual(drive.step("undeclare", { id: "q1" }), []);
  assert.deepEqual(drive.step("declare", { id: "q3", definition }), []);
  const { hello } = opened(drive.pass(1000));
  assert.deepEqual(hello.set.queries.map((query) => query.id), ["q2", "q3"]);
});

const cases = [
  ["an addition at the front", [{ op: "added", previous: null, record: art("d", 0) }], ["d", "a", "b", "c"]],
  ["an addition at the end", [{ op: "added", previous: "c", record: art("d", 9) }], ["a", "b", "c", "d"]],
  ["a removal", [{ op: "removed", record: { recordName: "b" } }], ["a", "c"]],
  ["a move", [{ op: "changed", moved: true, previous: null, record: art("c", 0) }], ["c", "a", "b"]],
  ["a change in its place", [{ op: "changed", previous: "a", record: art("b", 2, "b'") }], ["a", "b", "c"]],
  ["a window that slides",
    [{ op: "removed", why: "windowed", record: { recordName: "c" } },
      { op: "added", why: "created", previous: "a", record: art("d", 1.5) }], ["a", "d", "b"]],
  ["neighbours that move together",
    [{ op: "added", previous: "c", record: art("d", 4) },
      { op: "changed", moved: true, previous: "b", record: art("a", 2.5) }], ["b", "a", "c", "d"]],
  ["all of them turned round",
    [{ op: "changed", previous: null, record: art("c", 0) }, { op: "changed", previous: "c", record: art("b", 1, "b'") },
      { op: "changed", previous: "b", record: art("a", 2) }], ["c", "b", "a"]],
  ["a neighbour that is not there", [{ op: "added", previous: "nobody", record: art("d", 4) }], ["a", "b", "c", "d"]],
];
for (const [what, items, expected] of cases) {
  test(`items: ${what}`, () => {
    const drive = Drive.current();
    assert.deepEqual(delivered(drive.frames({ type: "items", group: 7, items })), []);
    assert.deepEqual(names(drive.frames(at("t2"))), expected);
  });
}

test("items of an unordered result have no `previous`, and stay where they came", () => {
  const drive = Drive.current();
  drive.frames({ type: "items", group: 7, items: [
    { op: "added", record: art("d", 0) }, { op: "changed", record: art("a", 9) }] });
  assert.deepEqual(names(drive.frames(at("t2"))), ["a", "b", "c", "d"]);
});

test("items that were seen change nothing", () => {
  const drive = Drive.current();
  const effects = drive.frames({ type: "items", group: 7, items: [
    { op: "added", previous: null, record: art("b", 2) }, { op: "removed", record: { recordName: "z" } }] }, at("t2"));
  assert.deepEqual(effects, []);
});

test("an item says whose it is, what was before, and where the window is short", () => {
  const drive = Drive.current();
  drive.frames({ type: "items", group: 7, isFilling: true, items: [
    { op: "changed", previous: "a", by: "me", record: art("b", 2, "b'") }] });
  const [{ items, isFilling }] = delivered(drive.frames(at("t2")));
  assert.equal(isFilling, true);
  assert.deepEqual([items[0].key, items[0].isMine, items[0].before.recordChangeTag], ["b", true, "b2"]);
});

test("who was away resumes each query where it stood, and what was not closed is dropped", () => {
  const drive = Drive.current();
  drive.frames({ type: "items", group: 7, items: [{ op: "removed", record: { recordName: "a" } }] });
  drive.step("lost", { code: 1006 });
  const [query] = opened(drive.pass(500)).hello.set.queries;
  assert.deepEqual([query.since, query.fingerprint], ["t1", "f-q1"]);
  drive.step("opened");
  // The `at` of another query does not mean that this one has come so far.
  const early = drive.frames(
    welcome, state(2, "bootstrapping", [told("q1", 3, true)]),
    { type: "items", group: 3, items: [{ op: "removed", record: { recordName: "b" } }] }, at("t2"));
  assert.deepEqual(delivered(early), []);
  assert.deepEqual(names(drive.frames(state(2, "complete"), at("t3"))), ["a", "c"]);
  drive.step("lost", { code: 1006 });
  assert.equal(opened(drive.pass(2000)).hello.set.queries[0].since, "t3");
});

test("a resume that is cut off begins again where it began", () => {
  const drive = Drive.current();
  drive.step("lost", { code: 1006 });
  drive.pass(500);
  drive.frames(welcome, state(2, "bootstrapping", [told("q1", 3, true)]), at("t2"));
  drive.step("lost", { code: 1006 });
  assert.equal(opened(drive.pass(2000)).hello.set.queries[0].since, "t1");
});

test("a connection that lagged holds back until it has caught up", () => {
  const drive = Drive.current();
  drive.frames(state(1, "bootstrapping", [told("q1", 7, true)]));
  assert.equal(drive.state, "catchingUp");
  const early = drive.frames({ type: "items", group: 7, items: [{ op: "removed", record: { recordName: "a" } }] }, at("t5"));
  assert.deepEqual(delivered(early), []);
  assert.deepEqual(names(drive.frames(state(1, "complete"), at("t6"))), ["b", "c"]);
  assert.equal(drive.state, "current");
});

test("a reset keeps what is shown until the new result is whole, and tells only what differs", () => {
  const drive = Drive.current();
  drive.frames({ type: "reset", groups: [7], reason: "expired" }, at("t2"));
  drive.frames(result(7, [art("b", 2)], { isLast: false }), at("t3"));
  const [{ items, records }] = delivered(drive.frames(result(7, [art("d", 4)], { part: 1 }), at("t4")));
  assert.deepEqual(records.map((record) => record.recordName), ["b", "d"]);
  assert.deepEqual(items.map((item) => [item.op, item.key]), [["removed", "a"], ["removed", "c"], ["added", "d"]]);
});

test("what a new result has as it was stays the same object, and needs no drawing", () => {
  const drive = Drive.current();
  drive.frames({ type: "items", group: 7, items: [{ op: "removed", record: { recordName: "a" } }] });
  const [{ records: [before] }] = delivered(drive.frames(at("t2")));
  drive.frames(result(7, [art("b", 2), art("x", 9)]));
  const [{ records: [after] }] = delivered(drive.frames(at("t3")));
  assert.equal(after.recordName, "b");
  assert.equal(after, before);
});

test("a new fingerprint counts from the `at` on that has what belongs to it", () => {
  const drive = Drive.current();
  drive.step("lost", { code: 1006 });
  drive.pass(500);
  const anew = { id: "q1", group: 3, fingerprint: "other", isResumed: false };
  drive.frames(welcome, state(2, "bootstrapping", [anew]), { type: "reset", groups: [3], reason: "changed" });
  drive.step("lost", { code: 1006 });
  const [query] = opened(drive.pass(1000)).hello.set.queries;
  assert.deepEqual([query.since, query.fingerprint], ["t1", "f-q1"]);
});

test("a new group takes over where who looks decides", () => {
  const drive = Drive.current();
  drive.frames(
    { type: "reset", groups: [7], reason: "readers" }, state(1, "bootstrapping", [{ id: "q1", group: 9 }]), at("t2"),
    result(9, [art("c", 3)]), state(1, "complete"));
  assert.deepEqual(names(drive.frames(at("t3"))), ["c"]);
  assert.deepEqual(drive.frames({ type: "items", group: 7, items: [{ op: "removed", record: { recordName: "c" } }] }, at("t4")), []);
});

test("changes come once each, and a gap is told where it is", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition: watching });
  drive.frames(welcome, state(1, "bootstrapping", [told("q1", 2)]), state(1, "complete"), at("t0"));
  const change = (position) => ({ type: "change", group: 2, position, operation: "create", record: art("a", position) });
  const first = drive.frames(change(5), change(5), change(6), at("t1"));
  assert.deepEqual(delivered(first)[0].changes.map((one) => one.position), [5, 6]);
  assert.deepEqual(delivered(drive.frames(change(6), at("t2"))), []);
  const [{ changes }] = delivered(drive.frames(
    { type: "reset", groups: [2], reason: "tooFar", from: 6, to: 90 }, change(91), at("t3")));
  assert.deepEqual(changes.map((one) => one.gap ?? one.position), [{ reason: "tooFar", from: 6, to: 90 }, 91]);
  // Another store numbers its changes from the beginning.
  const foreign = drive.frames({ type: "reset", groups: [2], reason: "foreign" }, change(4), at("t4"));
  assert.equal(delivered(foreign)[0].changes[1].position, 4);
  // So does a restored store, and the schema may be another one by now.
  const restored = drive.frames(
    { type: "reset", groups: [2], reason: "changed", from: 4, to: 2 }, change(2), change(3), at("t5"));
  assert.deepEqual(delivered(restored)[0].changes.map((one) => one.gap?.to ?? one.position), [2, 3]);
});

const inbox = { kind: "notifications", initial: "none" };
const notification = (number, id = "q2") => ({
  type: "notification", id, notification: { notificationID: `n${number}` }, syncToken: `s${number}`,
});
const notified = (effects) => effects.filter((effect) => effect.do === "notify");

test("notifications are told as they come, and each query goes on in its own feed", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: inbox });
  const early = drive.frames(
    state(2, "bootstrapping", [{ id: "q2", fingerprint: "f-q2", isResumed: false }]), notification(1));
  assert.deepEqual(notified(early).map((effect) => effect.syncToken), ["s1"], "no `at` closes them");
  drive.frames(state(2, "complete"), at("t2"));
  assert.equal(drive.state, "current");
  assert.deepEqual(notified(drive.frames(notification(2), notification(3, "q9"))).length, 1);
  drive.step("lost", { code: 1006 });
  const { queries } = opened(drive.pass(1000)).hello.set;
  assert.deepEqual(queries.map(({ id, since }) => [id, since]), [["q1", "t2"], ["q2", "s2"]]);
});

test("who wants the news alone goes on from where they began, if none has come", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q2", definition: inbox });
  drive.step("opened");
  const effects = drive.frames(
    welcome, state(1, "bootstrapping", [{ id: "q2", fingerprint: "f-q2", isResumed: false }]),
    { type: "place", id: "q2", syncToken: "s7" }, { type: "place", id: "q9", syncToken: "s8" },
    state(1, "complete"), at("t1"));
  assert.deepEqual(notified(effects), []);
  drive.step("lost", { code: 1006 });
  assert.equal(opened(drive.pass(1000)).hello.set.queries[0].since, "s7");
});

test("notifications begin where the application says, and say where some are kept no longer", () => {
  const drive = new Drive();
  const open = opened(drive.step("declare", { id: "q2", definition: { ...inbox, since: "s7" } }));
  assert.equal(open.hello.set.queries[0].since, "s7");
  drive.step("opened");
  const effects = drive.frames(
    welcome, state(1, "bootstrapping", [{ id: "q2", isResumed: false }]),
    { type: "reset", id: "q2", reason: "expired" }, notification(9), state(1, "complete"), at("t1"));
  assert.deepEqual(notified(effects).map(({ gap, syncToken }) => gap?.reason ?? syncToken), ["expired", "s9"]);
});

test("one position for all: queries are applied before anybody is told", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  drive.frames(state(2, "bootstrapping", [told("q2", 8)]), state(2, "complete"), at("t2"));
  const effects = drive.frames(
    { type: "items", group: 7, items: [{ op: "removed", record: { recordName: "a" } }] },
    { type: "change", group: 8, position: 9, operation: "delete", record: { recordName: "a" } }, at("t3"));
  assert.deepEqual(effects.map((effect) => [effect.do, effect.id]), [["deliver", "q1"], ["deliver", "q2"]]);
});

test("a query that is refused ends, and the others are declared again", () => {
  const drive = Drive.current();
  drive.machine.handle({ type: "declare", id: "q2", definition: watching }, 0);
  drive.machine.handle({ type: "declare", id: "q3", definition }, 0);
  drive.step("flush");
  const effects = drive.frames(state(2, "error", [{ id: "q2", error: { serverErrorCode: "NOT_FOUND", liveError: "unknownType" } }]));
  const failed = effects.filter((effect) => effect.do === "failed");
  assert.deepEqual(failed.map((effect) => [effect.id, effect.error.liveError]), [["q2", "unknownType"]]);
  assert.deepEqual(effects.find((effect) => effect.do === "refusedSet").errors.q2.serverErrorCode, "NOT_FOUND");
  const [set] = sent(effects);
  assert.deepEqual([set.version, set.base, set.add.map((query) => query.id)], [3, 1, ["q3"]]);
});

test("what is refused may be told with the version that stays in force, and with the errors as they are", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  const effects = drive.frames(state(1, "error", [{ id: "q2", serverErrorCode: "BAD_REQUEST", liveError: "notKept" }], { requested: 2 }));
  assert.deepEqual(effects.filter((effect) => effect.do === "failed").map((effect) => [effect.id, effect.error.liveError]), [["q2", "notKept"]]);
  assert.equal(drive.state, "current");
});

test("a set that is refused as a whole fails what it would have added", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  const effects = drive.frames(state(2, "error", [], { serverErrorCode: "QUOTA_EXCEEDED", reason: "too many" }));
  assert.deepEqual(effects.filter((effect) => effect.do === "failed").map((effect) => effect.id), ["q2"]);
  assert.deepEqual(sent(effects), []);
  assert.deepEqual(names(drive.frames({ type: "items", group: 7, items: [{ op: "removed", record: { recordName: "a" } }] }, at("t2"))), ["b", "c"]);
});

test("of a set of too many the newest are refused, wherever the others stood before", () => {
  const drive = new Drive();
  for (const id of ["q1", "q2", "q3"]) drive.machine.handle({ type: "declare", id, definition }, 0);
  drive.step("flush");
  drive.step("opened");
  const effects = drive.frames(
    { ...welcome, limits: { queries: 2 } }, state(1, "error", [], { serverErrorCode: "QUOTA_EXCEEDED", reason: "too many" }));
  assert.deepEqual(effects.filter((effect) => effect.do === "failed").map((effect) => effect.id), ["q3"]);
  assert.deepEqual(sent(effects)[0].queries.map((query) => query.id), ["q1", "q2"]);
});

test("a long set follows the welcome, before which the relay takes little", () => {
  const drive = new Drive();
  const long = { ...definition, query: { predicate: `name == "${"x".repeat(70_000)}"` } };
  const { hello } = opened(drive.step("declare", { id: "q1", definition: long }));
  assert.equal(hello.set, undefined);
  drive.step("opened");
  const [set] = sent(drive.frames(welcome));
  assert.deepEqual(set.queries.map((query) => query.id), ["q1"]);
  drive.frames(
    state(set.version, "bootstrapping", [told("q1", 7)]), result(7, []), state(set.version, "complete"), at("t1"));
  assert.equal(drive.state, "current");
});

test("an error of no query's own is the set's, which is not sent again as it is", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  const effects = drive.frames(
    state(2, "error", [{ error: { serverErrorCode: "QUOTA_EXCEEDED" } }], { serverErrorCode: "BAD_REQUEST" }));
  assert.deepEqual(effects.filter((effect) => effect.do === "failed").map((effect) => effect.id), ["q2"]);
  assert.deepEqual(sent(effects), []);
});

test("a conflict sends the whole set", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  const [set] = sent(drive.frames(state(2, "error", [], { serverErrorCode: "CONFLICT" })));
  assert.deepEqual([set.version, set.base, set.queries.map((query) => query.id)], [3, undefined, ["q1", "q2"]]);
});

test("a set that an edit of one's own supersedes is no conflict", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  assert.deepEqual(drive.frames(state(1, "superseded", [])), []);
});

test("a query that is gone ends with its reason, and leaves the set", () => {
  const drive = Drive.current();
  const effects = drive.frames({ type: "gone", group: 7, id: "q1", serverErrorCode: "QUOTA_EXCEEDED", liveError: "tooManyMatches" });
  assert.equal(effects[0].do, "failed");
  assert.equal(effects[0].error.liveError, "tooManyMatches");
  assert.deepEqual(sent(effects)[0].remove, ["q1"]);
});

test("frames of queries that were given up, and frames that nobody knows, are passed over", () => {
  const drive = Drive.current();
  assert.deepEqual(drive.frames(
    { type: "items", group: 99, items: [{ op: "added", record: art("x", 1) }] }, { type: "weather", sun: true },
    { type: "toString" }, { ...at("t2"), colour: "red" }), []);
});

test("a fence stands behind the queries that were asked for before it", () => {
  const drive = Drive.current();
  const said = (effects) => sent(effects).map((frame) => [frame.type, frame.id ?? frame.version]);
  drive.machine.handle({ type: "declare", id: "q2", definition: watching }, 0);
  drive.machine.handle({ type: "ask", id: "f1" }, 0);
  assert.deepEqual(said(drive.step("flush")), [["set", 2]]);
  // While a set is in progress, no other set is sent. Nor is a fence, because the relay would answer it even
  // if it refuses the set.
  drive.machine.handle({ type: "declare", id: "q3", definition }, 0);
  drive.machine.handle({ type: "ask", id: "f2" }, 0);
  drive.machine.handle({ type: "ask", id: "g1", query: definition }, 0);
  assert.deepEqual(said(drive.step("flush")), [["get", "g1"]]);
  assert.deepEqual(said(drive.frames(state(2, "bootstrapping", [told("q2", 8)]))), [["set", 3]]);
  assert.deepEqual(
    said(drive.frames(state(3, "bootstrapping", [told("q3", 9)]))), [["fence", "f1"], ["fence", "f2"]]);
});

test("a fence behind a set that is not taken yet is answered once that is", () => {
  const drive = Drive.current();
  drive.machine.handle({ type: "declare", id: "q2", definition: watching }, 0);
  drive.machine.handle({ type: "ask", id: "f1" }, 0);
  const answered = (effects) => effects.filter((effect) => effect.do === "answer").map(({ id }) => id);
  const fences = (effects) => sent(effects).filter(({ type }) => type === "fence");
  const effects = drive.step("flush");
  const throttled = { serverErrorCode: "THROTTLED", reason: "patterns", retryAfter: 2 };
  effects.push(...drive.frames(state(2, "error", undefined, throttled)));
  // The relay answers what was sent after the set.
  effects.push(...drive.frames(...fences(effects).map(({ id }) => ({ type: "fenced", id })), at("t2")));
  assert.deepEqual(answered(effects), []);
  const again = drive.pass(4_000);
  assert.deepEqual(sent(again).map(({ type }) => type), ["set"]);
  assert.deepEqual(fences(drive.frames(state(3, "bootstrapping", [told("q2", 8)]))).map(({ id }) => id), ["f1"]);
  assert.deepEqual(answered(drive.frames(state(3, "complete"), at("t3"))), []);
  assert.deepEqual(answered(drive.frames({ type: "fenced", id: "f1" }, at("t4"))), ["f1"]);
});

test("a set that is longer than a frame may be goes out in parts, and is whole with the last", () => {
  const drive = new Drive();
  const ids = ["q1", "q2", "q3", "q4", "q5"];
  const long = { ...definition, query: { recordType: "Art", predicate: "x".repeat(100_000) } };
  for (const id of ids) drive.machine.handle({ type: "declare", id, definition: long }, 0);
  assert.equal(opened(drive.step("flush")).hello.set, undefined);
  drive.step("opened");
  let [set] = sent(drive.frames(welcome));
  const parts = [];
  while (set) {
    const part = (set.queries ?? set.add).map(({ id }) => id);
    assert.equal(set.base, parts.length ? set.version - 1 : undefined);
    assert.equal(drive.state, "catchingUp");
    parts.push(part);
    const groups = part.map((id) => told(id, 7));
    [set] = sent(drive.frames(
      state(set.version, "bootstrapping", groups), result(7, []), state(set.version, "complete"), at("t1")));
  }
  assert.deepEqual(parts, [["q1", "q2"], ["q3", "q4"], ["q5"]]);
  assert.equal(drive.state, "current");
});

test("get and fence are answered, and asked again after a connection was lost", () => {
  const drive = Drive.current();
  const query = { kind: "result", recordType: "Art" };
  assert.deepEqual(sent(drive.step("ask", { id: "g1", query })), [{ type: "get", id: "g1", query }]);
  assert.equal(sent(drive.step("ask", { id: "f1" }))[0].type, "fence");
  drive.frames({ type: "result", id: "g1", part: 0, isLast: false, records: [art("a", 1)] });
  drive.step("lost", { code: 1006 });
  drive.pass(500);
  const again = sent(drive.frames(welcome));
  assert.deepEqual(again.map((frame) => [frame.type, frame.id]), [["get", "g1"]]);
  const [answer] = drive.frames({ type: "result", id: "g1", part: 0, isLast: true, records: [art("b", 1)] });
  assert.deepEqual(answer.records.map((record) => record.recordName), ["b"]);
  // The set that was sent with `hello` is accepted first.
  const [fence] = sent(drive.frames(state(2, "bootstrapping", [told("q1", 7, true)]), state(2, "complete")));
  assert.deepEqual([fence.type, fence.id], ["fence", "f1"]);
  assert.deepEqual(drive.frames({ type: "fenced", id: "f1" }), [], "what came before it is applied first");
  assert.deepEqual(drive.frames(at("t9")).map((effect) => [effect.do, effect.id]), [["answer", "f1"]]);
});

test("a get that is refused fails by itself", () => {
  const drive = Drive.current();
  drive.step("ask", { id: "g1", query: definition });
  const [failed] = drive.frames({ type: "refused", id: "g1", serverErrorCode: "BAD_REQUEST", reason: "no" });
  assert.deepEqual([failed.do, failed.id, failed.error.serverErrorCode], ["failed", "g1", "BAD_REQUEST"]);
});

test("a get, or a fence, that cannot be answered now is asked again", () => {
  const drive = Drive.current();
  drive.step("ask", { id: "g1", query: definition });
  drive.step("ask", { id: "f1" });
  const later = { serverErrorCode: "THROTTLED", reason: "too often" };
  assert.deepEqual(drive.frames({ type: "refused", id: "g1", ...later, retryAfter: 3 }, { type: "refused", id: "f1", ...later, retryAfter: 1 }), []);
  assert.equal(drive.state, "current");
  // Other frames are sent meanwhile.
  assert.deepEqual(sent(drive.step("ask", { id: "g2", query: definition })).map(({ id }) => id), ["g2"]);
  assert.deepEqual(sent(drive.pass(2_000)).map(({ id }) => id), ["f1"]);
  assert.deepEqual(sent(drive.pass(2_000)).map(({ id }) => id), ["g1"]);
  const [answer] = drive.frames({ type: "result", id: "g1", isLast: true, records: [art("a", 1)] });
  assert.deepEqual([answer.do, answer.id, answer.records.length], ["answer", "g1", 1]);
});

test("the heartbeat's watchdog: silence ends the connection", () => {
  const drive = Drive.current();
  drive.pass(34_000);
  drive.frames(at("t2"));
  drive.pass(34_000);
  assert.equal(drive.state, "current");
  assert.equal(drive.machine.connection.asOf, 34_000);
  drive.random = 0.999;
  const effects = drive.pass(1_000);
  assert.equal(effects[0].do, "drop");
  assert.equal(drive.state, "offline");
});

test("a frame that is none ends the connection, and what was applied in part comes anew", () => {
  const drive = Drive.current();
  const items = [{ op: "removed", record: { recordName: "a" } }, null];
  const effects = drive.frames({ type: "items", group: 7, items }, at("t2"));
  assert.deepEqual([effects.at(-1).do, drive.state], ["drop", "offline"]);
  assert.equal(opened(drive.retry()).hello.set.queries[0].since, undefined);
  drive.frames(welcome, state(2, "bootstrapping", [told("q1", 1)]), result(1, [art("b", 2), art("c", 3)]));
  // These records were in the result already, but were never reported.
  assert.deepEqual(names(drive.frames(state(2, "complete"), at("t3"))), ["b", "c"]);
});

test("a frame that is none takes nothing from changes", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  drive.frames(state(2, "bootstrapping", [told("q2", 8)]), state(2, "complete"), at("t2"));
  const change = { type: "change", group: 8, position: 5, operation: "create", record: art("a", 5) };
  drive.frames(change, null);
  assert.deepEqual(opened(drive.retry()).hello.set.queries.map((query) => query.since), ["t2", "t2"]);
});

test("a goodbye is the last word", () => {
  const drive = Drive.current();
  drive.frames({ type: "bye", code: 4403, serverErrorCode: "AUTHENTICATION_FAILED" }, welcome);
  assert.equal(drive.state, "closed");
});

test("what names no time is waited for as ever", () => {
  const drive = Drive.current();
  drive.frames({ type: "bye", code: 1001, retryAfter: "soon" });
  assert.equal(drive.machine.wakeAt - drive.now, 250);
  // Nor is a set that cannot be accepted now sent again at once after each answer.
  const other = new Drive();
  other.step("declare", { id: "q1", definition });
  other.step("opened");
  const later = { serverErrorCode: "TRY_AGAIN_LATER", reason: "not now", retryAfter: "soon" };
  assert.deepEqual(sent(other.frames(welcome, state(1, "error", undefined, later))), []);
  const [again] = sent(other.pass(1_000));
  assert.deepEqual([again.type, again.version], ["set", 2]);
});

test("a stream whose set is never the one in force is not opened again at once", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  for (let times = 0; times < 2; times += 1) {
    drive.step("lost");
    drive.retry();
  }
  assert.equal(drive.machine.connection.state, "connecting");
  drive.step("opened");
  const effects = drive.frames(welcome, state(3, "error", [], { serverErrorCode: "CONFLICT" }));
  assert.deepEqual([opened(effects), drive.state], [undefined, "offline"]);
});

test("delays: drawn from a step that doubles up to 30 s, and small again after a calm time", () => {
  const drive = Drive.current();
  drive.random = 1;
  const waits = [];
  for (let attempt = 0; attempt < 9; attempt += 1) {
    drive.step("lost", { code: 1006, error: { serverErrorCode: "TRY_AGAIN_LATER" } });
    waits.push(drive.machine.connection.retryAt - drive.now);
    drive.pass(waits.at(-1));
  }
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
  drive.frames(welcome, state(10, "bootstrapping", [told("q1", 1, true)]), state(10, "complete"), at("t9"));
  drive.pass(29_000);
  drive.frames(at("t10"));
  drive.pass(1_000);
  drive.step("lost", { code: 1006 });
  assert.equal(drive.machine.connection.retryAt - drive.now, 500);
});

test("the relay's word on waiting is kept, when the network returns too", () => {
  const drive = Drive.current();
  drive.frames({ type: "bye", code: 4503, serverErrorCode: "TRY_AGAIN_LATER", reconnect: true, retryAfter: 4 });
  assert.equal(drive.machine.connection.retryAt, 4000);
  assert.deepEqual(drive.step("returned"), []);
  assert.equal(drive.machine.connection.retryAt, 4000);
});

test("when the network returns, or the page is shown, a second is the most", () => {
  const drive = Drive.current();
  drive.random = 1;
  for (let attempt = 0; attempt < 7; attempt += 1) {
    drive.step("lost", { error: { serverErrorCode: "TRY_AGAIN_LATER" } });
    if (attempt < 6) drive.pass(30_000);
  }
  assert.equal(drive.machine.connection.retryAt - drive.now, 30_000);
  drive.step("returned");
  assert.equal(drive.machine.connection.retryAt - drive.now, 1_000);
});

test("a socket that died while the page slept is found out", () => {
  const drive = Drive.current();
  drive.random = 1;
  drive.now = 20_000;
  assert.deepEqual(sent(drive.step("returned")), [{ type: "fence", id: "ping" }]);
  drive.pass(9_000);
  assert.equal(drive.state, "current");
  drive.pass(1_000);
  assert.equal(drive.state, "offline");
  // A connection whose time is over is given up at once.
  const slept = Drive.current();
  slept.random = 1;
  slept.now = 600_000;
  slept.step("returned");
  assert.equal(slept.state, "offline");
});

test("a stream that was silent while the page slept is opened anew", () => {
  const [drive] = fallen("stream");
  drive.step("opened");
  drive.frames(welcome, state(3, "bootstrapping", [told("q1", 1)]), result(1, []), state(3, "complete"), at("t1"));
  drive.now += 5_000;
  assert.deepEqual(drive.step("returned"), []);
  drive.now += 6_000;
  const { hello } = opened(drive.step("returned"));
  assert.equal(hello.set.queries[0].since, "t1");
  drive.random = 1;
  drive.pass(10_000);
  assert.equal(drive.state, "offline");
});

for (const [code, comesBack] of [
  [4400, false], [4401, false], [4403, false], [4408, true], [4409, false], [4413, false], [4429, true], [4500, true],
  [4503, true], [4508, true], [1000, false], [1001, true], [1002, false], [1006, true], [1008, false], [1011, true],
  [1012, true], [1013, true]]) {
  test(`close code ${code}: ${comesBack ? "again" : "the end"}`, () => {
    const drive = Drive.current();
    const effects = drive.step("lost", { code });
    assert.equal(drive.state, comesBack ? "offline" : "closed");
    assert.equal(effects.filter((effect) => effect.do === "failed").length, comesBack ? 0 : 1);
  });
}

test("`bye` says whether to come back; the end is told to each query once", () => {
  const drive = Drive.current();
  const effects = drive.frames({ type: "bye", code: 4403, serverErrorCode: "AUTHENTICATION_FAILED", liveError: "revoked", reconnect: false });
  assert.deepEqual(effects.filter((effect) => effect.do === "failed").map((effect) => [effect.id, effect.error.liveError]), [["q1", "revoked"]]);
  assert.equal(drive.state, "closed");
  assert.deepEqual(drive.step("lost", { code: 4403 }), []);
});

test("tokens: asked for at the start, one call at a time, renewed on the same connection", () => {
  const drive = new Drive({ hasCredentials: true });
  assert.deepEqual(drive.step("declare", { id: "q1", definition }), [{ do: "credentials", why: "start" }]);
  assert.deepEqual(drive.step("declare", { id: "q2", definition: watching }), []);
  assert.equal(opened(drive.step("credentials", { ckWebAuthToken: "one" })).hello.ckWebAuthToken, "one");
  drive.frames({ ...welcome, ckWebAuthToken: "session" });
  assert.deepEqual(drive.frames({ type: "tokenExpires", seconds: 60 }, { type: "tokenExpires", seconds: 50 }), [{ do: "credentials", why: "expires" }]);
  assert.deepEqual(sent(drive.step("credentials", { ckWebAuthToken: "two" })), [{ type: "token", ckWebAuthToken: "two" }]);
  drive.step("lost", { code: 1006 });
  assert.equal(opened(drive.pass(500)).hello.ckWebAuthToken, "two", "a lost connection needs no other token");
  drive.frames({ type: "bye", code: 4401, serverErrorCode: "AUTHENTICATION_REQUIRED", liveError: "tokenExpired", reconnect: true });
  assert.deepEqual(drive.pass(1000), [{ do: "credentials", why: "refused" }]);
});

test("the session's own token is used when there is no other need", () => {
  const drive = new Drive({ hasCredentials: true });
  drive.step("declare", { id: "q1", definition });
  drive.step("credentials", { ckWebAuthToken: "one" });
  drive.frames({ ...welcome, ckWebAuthToken: "session" });
  drive.step("lost", { code: 1006 });
  assert.equal(opened(drive.pass(500)).hello.ckWebAuthToken, "session");
  // An empty token is ignored.
  drive.step("opened");
  drive.frames(welcome, { type: "tokenExpires", seconds: 60 });
  assert.deepEqual(sent(drive.step("credentials", { ckWebAuthToken: "" })), []);
  drive.step("lost", { code: 1006 });
  assert.equal(opened(drive.pass(1000)).hello.ckWebAuthToken, "session");
});

test("a hook that fails is asked again; one that has nobody ends it before anything is sent", () => {
  const drive = new Drive({ hasCredentials: true });
  drive.step("declare", { id: "q1", definition });
  drive.step("credentials", { error: { reason: "no network" } });
  assert.equal(drive.state, "offline");
  assert.deepEqual(drive.pass(500), [{ do: "credentials", why: "start" }]);
  const effects = drive.step("credentials", {});
  assert.equal(effects.find((effect) => effect.do === "failed").error.serverErrorCode, "AUTHENTICATION_REQUIRED");
  assert.equal(drive.state, "closed");
});

test("a token that ends for a client that has no other is the end", () => {
  const drive = Drive.current();
  drive.frames({ type: "bye", code: 4401, serverErrorCode: "AUTHENTICATION_REQUIRED", reconnect: true });
  assert.equal(drive.state, "closed");
});

test("after two failed upgrades come streams, then polls, then sockets again", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  const kinds = [];
  for (let attempt = 0; attempt < 7; attempt += 1) {
    drive.step("lost", { code: 1006 });
    kinds.push(opened(drive.retry()).transport);
  }
  assert.deepEqual(kinds, ["websocket", "stream", "stream", "poll", "poll", "websocket", "websocket"]);
});

test("what the relay refuses with a reason is no failed upgrade, and a proven kind gets patience", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  for (let attempt = 0; attempt < 5; attempt += 1) {
    drive.step("lost", { error: { serverErrorCode: "TRY_AGAIN_LATER" }, reconnect: true });
    assert.equal(opened(drive.retry()).transport, "websocket");
  }
  drive.frames(welcome);
  for (let attempt = 0; attempt < 7; attempt += 1) {
    drive.step("lost", { code: 1006 });
    assert.equal(opened(drive.retry()).transport, "websocket");
  }
});

/** A client that has fallen back to streams or to polls. */
function fallen(kind) {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  for (;;) {
    drive.step("lost", { code: 1006 });
    const open = opened(drive.retry());
    if (open.transport === kind) return [drive, open];
  }
}

test("a stream cannot be told: edits, gets and fences open another that goes on", () => {
  const [drive] = fallen("stream");
  drive.step("opened");
  drive.frames(welcome, state(3, "bootstrapping", [told("q1", 1)]), result(1, [art("a", 1)]), state(3, "complete"), at("t1"));
  assert.equal(drive.state, "current");
  const effects = drive.step("ask", { id: "g1", query: definition });
  assert.equal(effects[0].do, "drop");
  const { hello } = opened(effects);
  assert.deepEqual(hello.set.queries.map(({ id, since, once }) => [id, since, once]), [["q1", "t1", undefined], ["g1", undefined, true]]);
  drive.step("opened");
  const { version } = hello.set;
  drive.frames(welcome, state(version, "bootstrapping", [told("q1", 1, true), told("g1", 2)]));
  const answers = drive.frames(result(2, [art("z", 1)]), state(version, "complete"), at("t2"));
  assert.deepEqual(answers.map((effect) => [effect.do, effect.id]), [["answer", "g1"]]);
  assert.equal(drive.state, "current");
  // An edit is sent at once, together with the pending questions.
  drive.step("ask", { id: "g2", query: definition });
  assert.deepEqual(drive.step("ask", { id: "f1" }), []);
  const edited = opened(drive.step("declare", { id: "q2", definition: watching })).hello.set;
  assert.deepEqual(edited.queries.map(({ id }) => id), ["q1", "q2", "g2"]);
  drive.frames(
    welcome, state(edited.version, "bootstrapping", [told("q1", 1, true), told("q2", 2), told("g2", 3)]), result(3, []));
  const fenced = drive.frames(state(edited.version, "complete"), at("t3")).filter((effect) => effect.do === "answer");
  assert.deepEqual(fenced.map(({ id }) => id), ["f1"]);
});

test("what is asked on a stream while something is asked waits for that, and is answered", () => {
  const [drive] = fallen("stream");
  drive.frames(welcome, state(3, "bootstrapping", [told("q1", 1)]), result(1, []), state(3, "complete"), at("t1"));
  const first = opened(drive.step("ask", { id: "g0", query: definition })).hello.set;
  for (let count = 1; count < 10; count += 1) {
    assert.deepEqual(drive.step("ask", { id: `g${count}`, query: definition }), []);
  }
  drive.frames(welcome, state(first.version, "bootstrapping", [told("q1", 1, true), told("g0", 2)]));
  const effects = drive.frames(result(2, []), state(first.version, "complete"), at("t2"));
  assert.equal(effects.find((effect) => effect.do === "answer").id, "g0");
  assert.equal(opened(effects).hello.set.queries.length, 1 + 9);
});

test("a stream that carried for long gives the socket another try", () => {
  const [drive] = fallen("stream");
  drive.frames(welcome, state(3, "bootstrapping", [told("q1", 1)]), result(1, []), state(3, "complete"), at("t1"));
  for (let beat = 0; beat < 2; beat += 1) {
    drive.pass(20_000);
    drive.frames(at(`u${beat}`));
  }
  drive.step("lost", { code: 1006 });
  assert.equal(opened(drive.retry()).transport, "websocket");
});

test("polls follow each other without an interruption, and an edit cuts the one that waits", () => {
  const [drive, open] = fallen("poll");
  assert.equal(open.hello.wait, 0);
  drive.said.length = 0;
  const answer = (version, isResumed, ...frames) => {
    drive.step("opened");
    const shown = drive.frames(welcome, state(version, "bootstrapping", [told("q1", version, isResumed)]), ...frames, state(version, "complete"), at(`t${version}`));
    return [shown, drive.step("finished")];
  };
  const [first, next] = answer(open.hello.set.version, false, result(5, [art("a", 1)]));
  assert.deepEqual(names(first), ["a"]);
  const { hello } = opened(next);
  assert.deepEqual([hello.wait, hello.set.queries[0].since], [25, `t${open.hello.set.version}`]);
  drive.pass(25_000);
  const [second] = answer(hello.set.version, true, { type: "items", group: hello.set.version, items: [{ op: "added", previous: "a", record: art("b", 2) }] });
  assert.deepEqual(names(second), ["a", "b"]);
  assert.deepEqual(drive.said, ["current"], "nothing flickers");
  const edit = drive.step("declare", { id: "q2", definition: watching });
  assert.equal(edit[0].do, "drop");
  assert.deepEqual([opened(edit).hello.wait, opened(edit).hello.set.queries.length], [0, 2]);
});

test("who polls after the relay was away tries the socket that went before, once", () => {
  const drive = Drive.current();
  const fall = () => {
    const kinds = [];
    for (;;) {
      drive.step("lost", { code: 1006 });
      const open = opened(drive.retry());
      if (open.transport === "poll") return [kinds, open];
      kinds.push(open.transport);
    }
  };
  const answer = ({ hello: { set: { version } } }) => {
    drive.step("opened");
    drive.frames(
      welcome, state(version, "bootstrapping", [told("q1", version, true)]), state(version, "complete"), at(`t${version}`));
    return opened(drive.step("finished"));
  };
  const [, open] = fall();
  const again = answer(open);
  assert.equal(again.transport, "websocket");
  assert.equal(again.hello.set.queries[0].since, `t${open.hello.set.version}`);
  const [kinds, poll] = fall();
  assert.deepEqual(kinds, ["websocket", "stream", "stream"], "the way is barred now");
  const next = answer(poll);
  assert.deepEqual([next.transport, next.hello.wait], ["poll", 25]);
});

test("a connection that nobody needs is closed after five seconds, and taken up again", () => {
  const drive = Drive.current();
  drive.step("undeclare", { id: "q1" });
  drive.frames(state(2, "complete", [], { isEmpty: true }), at("t2"));
  assert.deepEqual(drive.pass(4_000), []);
  assert.deepEqual(drive.pass(1_000).map((effect) => effect.do), ["send", "drop"]);
  assert.equal(drive.state, "offline");
  assert.ok(opened(drive.step("declare", { id: "q2", definition })));
});

test("a connection that does not get through in ten seconds is given up", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  drive.step("opened");
  drive.random = 0.999;
  drive.pass(9_999);
  assert.equal(drive.state, "connecting");
  drive.pass(1);
  assert.equal(drive.state, "offline");
});

test("a poll is answered once all has been read and has come, which may take a while", () => {
  const [drive] = fallen("poll");
  assert.deepEqual(drive.pass(30_000), []);
  assert.equal(drive.state, "connecting");
  assert.deepEqual(drive.step("returned").map((effect) => effect.do), ["drop", "open"], "it may be dead");
  drive.step("opened");
  drive.random = 0.999;
  drive.pass(59_999);
  assert.equal(drive.state, "connecting");
  drive.pass(1);
  assert.equal(drive.state, "offline");
});

test("what is shown is as of when all of it was right, and not of what came while catching up", () => {
  const drive = Drive.current();
  drive.step("lost", { code: 1006 });
  const { hello } = opened(drive.retry());
  drive.step("opened");
  drive.frames(welcome, state(hello.set.version, "bootstrapping", [told("q1", 9, true)]));
  drive.pass(5_000);
  drive.frames(at("t2"));
  assert.deepEqual([drive.state, drive.machine.connection.asOf], ["catchingUp", 0]);
  drive.frames(state(hello.set.version, "complete"), at("t3"));
  assert.deepEqual([drive.state, drive.machine.connection.asOf], ["current", drive.now]);
});

test("never complete while offline", () => {
  const drive = Drive.current();
  drive.pass(3_000);
  drive.step("lost", { code: 1006 });
  const { state, asOf } = drive.machine.connection;
  assert.deepEqual([state, asOf], ["offline", 0]);
});

test("closing says goodbye, and nothing more happens", () => {
  const drive = Drive.current();
  assert.deepEqual(drive.step("close").map((effect) => effect.frame?.type ?? effect.do), ["bye", "drop"]);
  assert.equal(drive.state, "closed");
  assert.deepEqual(drive.step("declare", { id: "q9", definition }), []);
  assert.equal(drive.machine.wakeAt, Infinity);
});

for (const [record, key] of [
  [{ recordName: "a" }, "a"],
  [{ recordName: "a", zoneID: { zoneName: "_defaultZone", ownerRecordName: "_defaultOwner" } }, "a"],
  [{ recordName: "a", zoneID: { zoneName: "_defaultZone", ownerRecordName: "_ann" } }, "a"],
  [{ recordName: "a", zoneID: { zoneName: "home", ownerRecordName: "_ann" } }, "/home/a"],
  [{ recordName: "a", zoneID: { zoneName: "home", ownerRecordName: "_bob" } }, "_bob/home/a"],
  [{ recordName: "a", zoneID: { zoneName: "_defaultZone", ownerRecordName: "_bob" } }, "_bob/_defaultZone/a"]]) {
  test(`the key of a record in ${JSON.stringify(record.zoneID ?? "no zone")}`, () => assert.equal(recordKey(record, "_ann"), key));
}

test("what is asked in a loop waits its turn, below what the relay takes of a client", () => {
  const drive = Drive.current();
  const said = [];
  const note = (effects) => sent(effects).forEach((frame) => {
    said.push([drive.now, frame.type]);
    // The relay accepts the set at once, and what waits for it is sent.
    if (frame.type === "set") note(drive.frames(state(frame.version, "bootstrapping", [told("q2", 8)])));
  });
  for (let number = 0; number < 200; number += 1) drive.machine.handle({ type: "ask", id: `a${number}` }, drive.now);
  note(drive.step("flush"));
  note(drive.step("declare", { id: "q2", definition: watching }));
  assert.ok(said.length < 90, `${said.length} at once`);
  while (said.length < 201 && drive.now < 30_000) {
    drive.step("heard");
    note(drive.pass(10));
  }
  assert.equal(said.length, 201, "each is said, and the set too");
  // The relay's own limit: 100 at once, and 20 in a second.
  let left = 100;
  for (const [index, [moment]] of said.entries()) {
    if (index) left = Math.min(100, left + (moment - said[index - 1][0]) / 50);
    left -= 1;
    assert.ok(left >= 0, `frame ${index} is one too many`);
  }
  // The limit starts anew for another connection.
  drive.step("lost", { code: 1006 });
  assert.ok(opened(drive.retry()));
});

test("a set that cannot be taken now is sent again, and nothing fails", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  drive.step("opened");
  const later = { serverErrorCode: "TRY_AGAIN_LATER", reason: "the schema was changed", retryAfter: 3 };
  assert.deepEqual(sent(drive.frames(welcome, state(1, "error", undefined, later))), []);
  assert.equal(drive.state, "catchingUp");
  assert.deepEqual(sent(drive.pass(3_000)), []);
  const [again] = sent(drive.pass(1_000));
  assert.deepEqual([again.type, again.version, again.queries.map(({ id }) => id)], ["set", 2, ["q1"]]);
  drive.frames(state(2, "bootstrapping", [told("q1", 7)]), result(7, [art("a", 1)]), state(2, "complete"), at("t1"));
  assert.equal(drive.state, "current");
  // A refused edit fails neither: the present set stays, and questions are sent meanwhile.
  drive.step("declare", { id: "q2", definition: watching });
  const throttled = { serverErrorCode: "THROTTLED", reason: "patterns", retryAfter: 2 };
  drive.frames(state(3, "error", [{ id: "q2", error: throttled }], { serverErrorCode: "BAD_REQUEST" }));
  assert.deepEqual(sent(drive.step("ask", { id: "a1", query: definition })), [{ type: "get", id: "a1", query: definition }]);
  // A fence must still wait for the edit.
  assert.deepEqual(sent(drive.step("ask", { id: "a2" })), []);
  assert.deepEqual(names(drive.frames({ type: "items", group: 7, items: [{ op: "added", previous: "a", record: art("b", 2) }] }, at("t2"))), ["a", "b"]);
  const [edit, ...others] = sent(drive.pass(3_000));
  assert.deepEqual([edit.base, edit.add.map(({ id }) => id), others], [2, ["q2"], []]);
  const [fence] = sent(drive.frames(state(4, "bootstrapping", [told("q2", 8)]), state(4, "complete"), at("t3")));
  assert.equal(fence.id, "a2");
  assert.equal(drive.state, "current");
});

test("a query that cannot be read now goes on from where it was", () => {
  const drive = Drive.current();
  const gone = { type: "gone", group: 7, id: "q1", serverErrorCode: "TRY_AGAIN_LATER", reason: "not now", retryAfter: 5 };
  assert.deepEqual(sent(drive.frames(gone, at("t2"))), []);
  assert.equal(drive.state, "catchingUp");
  const [edit] = sent(drive.pass(6_000));
  assert.deepEqual(edit.remove, ["q1"]);
  assert.deepEqual(edit.add.map(({ id, since }) => [id, since]), [["q1", "t1"]]);
  assert.deepEqual(
    names(drive.frames(
      state(2, "bootstrapping", [told("q1", 9, true)]), { type: "items", group: 9, items: [{ op: "removed", record: { recordName: "a" } }] },
      state(2, "complete"), at("t3"))),
    ["b", "c"]);
  assert.equal(drive.state, "current");
});

test("on a stream what is not taken now is asked for by another one", () => {
  const drive = new Drive();
  drive.step("declare", { id: "q1", definition });
  for (let round = 0; round < 2; round += 1) {
    drive.step("lost");
    drive.retry();
  }
  drive.step("opened");
  const later = { serverErrorCode: "TRY_AGAIN_LATER", reason: "not now", retryAfter: 4 };
  const effects = drive.frames(welcome, state(3, "error", undefined, later));
  assert.deepEqual(effects.filter((effect) => effect.do === "failed"), []);
  assert.equal(drive.state, "offline");
  assert.equal(opened(drive.pass(3_000)), undefined);
  assert.deepEqual(opened(drive.pass(2_000)).hello.set.queries.map(({ id }) => id), ["q1"]);
});

test("a fence of who lags is answered once all has been told", () => {
  const drive = Drive.current();
  drive.step("declare", { id: "q2", definition: watching });
  drive.frames(state(2, "bootstrapping", [told("q2", 8)]), state(2, "complete"), at("t2"));
  drive.step("ask", { id: "a1" });
  const answered = (effects) => effects.filter((effect) => effect.do === "answer").map(({ id }) => id);
  // The fence was sent while nothing was reported: it is answered once the client has caught up.
  assert.deepEqual(answered(drive.frames(
    { type: "fenced", id: "a1" }, state(2, "bootstrapping", [told("q1", 7, true), told("q2", 8, true)]),
    { type: "items", group: 7, items: [{ op: "removed", record: { recordName: "a" } }] }, at("t3"))), []);
  const change = { type: "change", group: 8, position: 4, operation: "create", record: art("d", 4) };
  const effects = drive.frames(change, state(2, "complete"), at("t4"));
  assert.deepEqual([answered(effects), delivered(effects, "q2").length, names(effects)], [["a1"], 1, ["b", "c"]]);
});
