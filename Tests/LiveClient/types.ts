// The web client in TypeScript: what pages write must compile, and mistakes must be found. This code is never
// run; `run` only compiles it.
import {
  LiveClient, LiveError, LiveMachine, recordKey,
  type Change, type Connection, type Gap, type Item, type LiveRecord, type LiveResults,
} from "../../Sources/RelayServer/Live/belfry-live.js";

interface Art {
  price: number;
  name?: string;
}

const client = new LiveClient({
  url: "https://relay.example", container: "c", apiToken: "k", environment: "production", deviceID: "tab",
  credentials: async (why: "start" | "expires" | "refused") => (why === "start" ? { ckWebAuthToken: "t" } : null),
});
client.onConnection = ({ state, retryAt, error }: Connection) =>
  console.log(state === "offline", retryAt?.toFixed(), error?.reason);
client.onError = (error) => error.reason.length;

const cheap: LiveResults<Art> = client.results<Art>({
  recordType: "Art", predicate: "price < %@", predicateArguments: [100], sortBy: "price", limit: 20,
});
cheap.onValue = (records) => records.map((record) => record.fields.price + 1);
cheap.onError = (error: LiveError) => [error.serverErrorCode, error.liveError, error.retryAfter];
cheap.onItems = (items: Item<Art>[], records) => {
  for (const { op, key, why, before, previous, moved, changedKeys, isMine, record } of items) {
    if (op === "changed") console.log(key, why, before?.fields.price, previous, moved, changedKeys, isMine);
    console.log(record.recordName, records[0]?.fields.name?.length);
  }
  for (const item of items) {
    const price: number = item.op === "removed" ? item.before.fields.price : item.record.fields.price;
    // @ts-expect-error A removed record has only its name.
    console.log(price, item.record.fields);
  }
};
client.results<Art>({
  recordType: "Art", query: { rql: "a == $0", rqlArguments: [1] }, zoneID: "gallery", once: true,
  sortBy: ["a", { fieldName: "b", ascending: false }], limit: { last: 3 },
});
client.results({
  recordType: "Art", orderBy: { child: "a/b" }, rules: "wilddog", start: { value: 1, key: "k", isIncluded: false },
  end: { value: null }, database: "private", desiredKeys: ["a"], before: true, initial: "none", coalesce: true,
});

export async function read() {
  for await (const records of cheap) {
    const all: LiveRecord<Art>[] = records;
    console.log(all);
  }
  for await (const items of cheap.items()) console.log(items[0]?.op);
  const changes = client.changes<Art>({
    recordType: "Art", firesOn: ["create"], firesWhen: "entered", changedKeys: ["price"], suppress: "user", once: true,
  });
  for await (const change of changes) {
    if (change.gap) {
      const gap: Gap = change.gap;
      console.log(gap.from);
    } else {
      const whole: Change<Art> = change;
      console.log(whole.operation, whole.record.recordName, whole.before?.fields.price, whole.position);
      if (whole.operation !== "delete") console.log(whole.record.fields.price, whole.record.recordChangeTag);
      // @ts-expect-error A deleted record has only its name.
      else console.log(whole.record.fields.price);
    }
  }
  for await (const told of client.notifications({ since: "t" })) {
    if ("gap" in told) console.log(told.gap);
    else console.log(told.notificationID);
  }
  const [first] = await client.get<Art>({ recordType: "Art" }, { timeout: 5 });
  console.log(first?.fields.price);
  await client.fence();
  await client.set.update((editor) => {
    editor.add("art", { recordType: "Art" });
    editor.add({ recordType: "Art", kind: "changes", firesOn: ["create"] });
    editor.add("inbox", { kind: "notifications" });
    editor.put("art", { recordType: "Art", rql: "price > 3" });
    const was: boolean = editor.remove("art");
    if (was) editor.removeAll("Art");
    editor.removeAll();
  });
  await client.set.add({ recordType: "Art" });
  await client.set.waitForComplete({ timeout: 1 });
  client.set.named("art")?.close();
  const { time, mine, ckWebAuthToken, limits } = client.welcome ?? {};
  console.log(time?.toFixed(), mine, ckWebAuthToken, limits?.queries);
  throw new LiveError({ reason: recordKey({ recordName: "a", recordType: "Art" }, "me") });
}

const machine = new LiveMachine({ random: () => 1 });
console.log(machine.handle({ type: "tick" }, 1)[0]?.do, machine.handle({ type: "tick" }, 1, 2), machine.wakeAt);

// @ts-expect-error A query that is no result must name its kind; the relay would refuse this one.
client.set.add("created", { recordType: "Art", firesOn: ["create"] });
// @ts-expect-error The inbox must name its kind too.
client.set.add({ database: "private" });
// @ts-expect-error Only results have limits, in a set too.
client.set.add("few", { kind: "changes", recordType: "Art", limit: 3 });
client.set.add("few", { recordType: "Art", sortBy: "price", limit: 3, predicate: "price < 3" });
client.results({ recordType: "Art", sortBy: "made", start: { value: new Date() }, end: { value: 3 } });
// @ts-expect-error A query needs a record type.
client.results({ predicate: "price < 100" });
// @ts-expect-error Only queries of changes have operations.
client.results({ recordType: "Art", firesOn: ["create"] });
// @ts-expect-error Only results have limits.
client.changes({ recordType: "Art", limit: 3 });
// @ts-expect-error An operation is a create, update or delete.
client.changes({ recordType: "Art", firesOn: ["created"] });
// @ts-expect-error A limit is a number.
client.results({ recordType: "Art", limit: "3" });
// @ts-expect-error The records are read-only.
cheap.records = [];
