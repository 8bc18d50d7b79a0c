// The types of belfry-live.js.
//
//   const client = new LiveClient({ url, container, apiToken, credentials });
//   const cheap = client.results<Art>({ recordType: "Art", predicate: "price < 100", sortBy: "price", limit: 20 });
//   cheap.onValue = (records) => draw(records);
//   for await (const records of cheap) draw(records); // or so

/** A value of a field, as JSON: dates are milliseconds, bytes base64, references and places objects. */
export type FieldValue = string | number | boolean | null | FieldValue[] | { [name: string]: FieldValue };

export interface ZoneID {
  zoneName: string;
  ownerRecordName?: string;
}

export interface Stamp {
  timestamp: number;
  userRecordName: string;
  deviceID: string;
}

/** A record as `records/lookup` answers it; with the format `plain` its fields are bare values. */
export interface LiveRecord<Fields = Record<string, FieldValue>> {
  recordName: string;
  recordType: string;
  zoneID?: ZoneID;
  fields: Fields;
  recordChangeTag: string;
  created?: Stamp;
  modified?: Stamp;
}

/** A record as it was; which version that was is not always known. */
export type FormerRecord<Fields> = Omit<LiveRecord<Fields>, "recordChangeTag"> & { recordChangeTag?: string };

/** What names a record; of a removed one there is no more. */
export type Identity = Pick<LiveRecord, "recordName" | "recordType" | "zoneID">;

/** A condition in one of the relay's languages; at most one of them. */
export interface Condition {
  /** NSPredicate's text, with its arguments for `%@` and `%K`; a `Date` is a date, its milliseconds are a number. */
  predicate?: string;
  predicateArguments?: unknown[];
  /** Realm Query Language, with its arguments for `$0`. */
  rql?: string;
  rqlArguments?: unknown[];
  /** A Minapp condition. */
  where?: object;
  /** CloudKit's filters. */
  filterBy?: object[];
}

export interface SortKey {
  fieldName: string;
  /** True unless given. */
  ascending?: boolean;
}

interface Query extends Condition {
  recordType: string;
  /** The condition as a subscription has it; or its members beside. */
  query?: Condition & { recordType?: string };
  /** `public` unless given; the shared one has no queries, as in CloudKit. */
  database?: "public" | "private";
  /** Every zone unless given. */
  zoneID?: ZoneID | string;
  /** Only these fields travel, and only what touches them is told. */
  desiredKeys?: string[];
  /** Whether the record before a change comes too. */
  before?: boolean;
  /**
   * `none` tells what comes from now on, and not what there is: of a result what was there before has been added
   * once it changes, `why` says `created` of what is new alone, and what goes unseen is not told.
   */
  initial?: "current" | "none";
  /** Of several changes of one record that are read together tells the last. */
  coalesce?: boolean;
  /** Ends after the first result, or the first change. */
  once?: boolean;
}

export interface Bound {
  /** Among dates a `Date`: its milliseconds are a number, which stands before all dates. */
  value: FieldValue | Date;
  /** Of `orderBy`: where among the records with this value. */
  key?: string;
  isIncluded?: boolean;
}

export interface ResultQuery extends Query {
  kind?: "result";
  /** Up to three keys; a name sorts ascending. */
  sortBy?: string | SortKey | (string | SortKey)[];
  /** A number is that of the first ones; at most 1,000. */
  limit?: number | { first: number } | { last: number };
  orderBy?: { child: string } | "key" | "value" | "priority";
  rules?: "firebase" | "wilddog";
  start?: Bound;
  end?: Bound;
}

export type Operation = "create" | "update" | "delete";

export interface ChangesQuery extends Query {
  kind?: "changes";
  /** All three unless given. */
  firesOn?: Operation[];
  firesWhen?: "matches" | "entered" | "left" | "stayed";
  changedKeys?: string[];
  /** Whose own changes are left out; `none` unless given. */
  suppress?: "none" | "device" | "user";
}

/** What the user's saved subscriptions fired, where the container keeps it; a client has one at a time. */
export interface NotificationsQuery {
  kind?: "notifications";
  /** Of the subscriptions of this database; of all unless given. */
  database?: "public" | "private" | "shared";
  /** `none` tells what comes from now on, and not what there is. */
  initial?: "current" | "none";
  /** Goes on after this notification: the `syncToken` of one, or of `notifications/list`. */
  since?: string;
}

/** A query of a set: one that is no result says its kind. */
export type SetQuery =
  | (ResultQuery & { [Member in Exclude<keyof ChangesQuery, keyof ResultQuery>]?: undefined })
  | (ChangesQuery & { kind: "changes" })
  | (NotificationsQuery & { kind: "notifications" });

/** What went wrong: `serverErrorCode` and `liveError` for programs, `reason` for people. */
export declare class LiveError extends Error {
  constructor(error?: Partial<ErrorMembers> & { message?: string });
  /** One of CloudKit's fourteen; absent where there was no answer. */
  readonly serverErrorCode?: string;
  readonly reason: string;
  /** Such as `unknownType`, `tooManyMatches`, `tokenExpired`; `connection` and `timeout` are the client's own. */
  readonly liveError?: string;
  readonly retryAfter?: number;
  readonly predicateError?: object;
}

export interface ErrorMembers {
  serverErrorCode?: string;
  reason?: string;
  liveError?: string;
  retryAfter?: number;
  predicateError?: object;
}

interface ItemMembers {
  /** `created`, `entered`, `windowed`, `readable`, `loaded`; `deleted`, `left`, `unreadable`, `forgotten`. */
  why?: string;
  /** Names the record within its result. */
  key: string;
  /** Whether this device made the change. */
  isMine?: boolean;
}

interface Shown<Fields> extends ItemMembers {
  record: LiveRecord<Fields>;
  /** In ordered results the key of the neighbour before; `null` is the first place. */
  previous?: string | null;
}

/** What one change did to a result; `before` is the record as it was shown before. */
export type Item<Fields> =
  | (Shown<Fields> & { op: "added"; before?: FormerRecord<Fields>; moved?: undefined; changedKeys?: undefined })
  | (Shown<Fields> & {
    op: "changed";
    before: FormerRecord<Fields>;
    /** Whether its order value changed. */
    moved?: boolean;
    changedKeys?: string[];
  })
  | (ItemMembers & {
    op: "removed";
    /** What names it; there is no more of it. */
    record: Identity;
    before: FormerRecord<Fields>;
    previous?: undefined;
    moved?: undefined;
    changedKeys?: undefined;
  });

interface ChangeMembers<Fields> {
  gap?: undefined;
  position: number;
  before?: FormerRecord<Fields>;
  changedKeys?: string[];
  occurredAt?: number;
  isMine: boolean;
}

/** A change that fits; of a deletion `record` says only what was deleted. */
export type Change<Fields> =
  | (ChangeMembers<Fields> & {
    operation: "create" | "update";
    /** Of an update: whether the record fitted before; `left` where `firesWhen` asks for that. */
    transition?: "stayed" | "entered" | "left" | "unknown";
    record: LiveRecord<Fields>;
  })
  | (ChangeMembers<Fields> & { operation: "delete"; transition?: undefined; record: Identity });

export interface Gap {
  /** `foreign`, `expired`, `tooFar`, `changed`. */
  reason: string;
  from?: number;
  to?: number;
}

interface Handle {
  /** `loading` until the first result is whole. */
  readonly state: "loading" | "live" | "ended";
  /** Why it ended, if the application did not end it. */
  readonly error?: LiveError;
  /** Called once, if the relay ends the query, or refuses it. */
  onError?: (error: LiveError) => void;
  /** Shows no more; iterators end. */
  close(): void;
}

/** A result that stays right. Whoever asks for the same shares one query. */
export interface LiveResults<Fields> extends Handle, AsyncIterable<LiveRecord<Fields>[]> {
  /** The records, in order. Do not change them: they are the client's. */
  readonly records: LiveRecord<Fields>[];
  /** Whether a window is short for a moment, because the next records are being read. */
  readonly isFilling: boolean;
  /** What changed (removed, added, changed, change by change), and the result after it. */
  onItems?: (items: Item<Fields>[], records: LiveRecord<Fields>[]) => void;
  /** The whole result, whenever it changed. */
  onValue?: (records: LiveRecord<Fields>[]) => void;
  /** Iterates over what changed. Iterating over the handle itself gives whole results, the latest to a slow reader. */
  items(): AsyncIterableIterator<Item<Fields>[]>;
}

/** Each change once. A reader 10,000 behind gets an error. */
export interface LiveChanges<Fields> extends Handle, AsyncIterable<Change<Fields> | { gap: Gap }> {
  onChange?: (change: Change<Fields>) => void;
  onGap?: (gap: Gap) => void;
}

/** An entry of the inbox, as `notifications/list` has it; it comes again when it is marked read. */
export interface LiveNotification {
  notificationID: string;
  isRead?: boolean;
  payload: object;
  [member: string]: unknown;
}

/** Each notification once, after an interruption too; who joins late has those before. 10,000 behind is an error. */
export interface LiveNotifications extends Handle, AsyncIterable<LiveNotification | { gap: { reason: string } }> {
  /** Where the last one stands: a page that keeps it goes on there with `since`. */
  readonly syncToken?: string;
  onNotification?: (notification: LiveNotification, syncToken: string) => void;
  /** Some are kept no longer: it begins with the oldest that is kept. */
  onGap?: (gap: { reason: string }) => void;
}

export interface Connection {
  /** `current` is said only of what is so at `asOf`; `closed` is the end. */
  state: "offline" | "connecting" | "catchingUp" | "current" | "closed";
  /** When the data was right for the last time, in milliseconds. While offline it stays where it was. */
  asOf?: number;
  /** While catching up, 0 to 1. */
  progress?: number;
  /** While offline, when the next attempt is made, in milliseconds. */
  retryAt?: number;
  /** Why there is no connection. */
  error?: ErrorMembers;
  transport?: "websocket" | "stream" | "poll";
}

export interface Welcome {
  userRecordName?: string;
  /** How `by` names this device. */
  mine?: string;
  /** A fresh token of the user's; what signs out names it. */
  ckWebAuthToken?: string;
  /** The relay's time, in milliseconds. */
  time?: number;
  /** Seconds. */
  heartbeat?: number;
  limits?: { queries?: number; frameBytes?: number };
}

export interface SetEditor {
  /** Adds a query; the same again changes nothing, another of this name throws `EXISTS`, and nothing is edited. */
  add(name: string, query: SetQuery): void;
  /** Adds a query that is named by what it is. */
  add(query: SetQuery): void;
  /** Adds a query, or puts it in the place of the one of this name, which goes on if this one is refused. */
  put(name: string, query: SetQuery): void;
  /** Whether there was one. Beside queries that may be refused it ends once they are taken, and goes on if not. */
  remove(name: string): boolean;
  removeAll(recordType?: string): void;
}

/** Named queries; an update of them is taken whole or not at all. */
export interface LiveSet {
  /** Of those that have not ended: what is closed, or was wanted `once`, leaves its name free. */
  readonly names: string[];
  /** `pending` while there is no connection; `complete` is never said while offline. */
  readonly state: "pending" | "bootstrapping" | "complete" | "error" | "superseded";
  /** Of a refused update each query's error, by name; the set is as it was before. */
  readonly errors: { [name: string]: LiveError };
  onState?: (state: LiveSet["state"]) => void;
  named(name: string): LiveResults<any> | LiveChanges<any> | LiveNotifications | undefined;
  /** Resolves when the set is complete, rejects when the update is refused, or `edit` throws. */
  update(edit: (editor: SetEditor) => void): Promise<void>;
  add(name: string, query: SetQuery): Promise<void>;
  /** Adds a query that is named by what it is. */
  add(query: SetQuery): Promise<void>;
  remove(name: string): Promise<void>;
  waitForComplete(options?: { timeout?: number }): Promise<void>;
}

export interface LiveOptions {
  /** The relay, such as `https://relay.example`; the page's own origin unless given. */
  url?: string;
  container: string;
  /** `development` unless given. */
  environment?: "development" | "production";
  apiToken?: string;
  /** Gives the user token. One call at a time: at the start, before a token ends, and when one was refused. */
  credentials?: (why: "start" | "expires" | "refused") =>
    Promise<{ ckWebAuthToken: string } | null | undefined> | { ckWebAuthToken: string } | null | undefined;
  /** Names this installation, so that its own changes can be told from others'. */
  deviceID?: string;
  /** `plain` unless given: fields are bare values. `typed`: `{ value, type }`. */
  format?: "plain" | "typed";
  numbersAsStrings?: boolean;
  /** In place of the browser's own. */
  WebSocket?: new (url: string, protocol: string) => object;
  fetch?: typeof fetch;
  random?: () => number;
}

/** A connected client; one is enough for a page. It connects with its first query. */
export declare class LiveClient {
  constructor(options: LiveOptions);
  readonly connection: Connection;
  /** Called when the connection changes, not for each `asOf`. */
  onConnection?: (connection: Connection) => void;
  /** Called with what concerns no single query. */
  onError?: (error: LiveError) => void;
  /** What the relay said of itself and of the user. */
  readonly welcome?: Welcome;
  readonly set: LiveSet;
  results<Fields = Record<string, FieldValue>>(query: ResultQuery): LiveResults<Fields>;
  changes<Fields = Record<string, FieldValue>>(query: ChangesQuery): LiveChanges<Fields>;
  notifications(query?: NotificationsQuery): LiveNotifications;
  /** The records that fit, once; after 30 seconds without an answer it fails. */
  get<Fields = Record<string, FieldValue>>(
    query: ResultQuery, options?: { timeout?: number }): Promise<LiveRecord<Fields>[]>;
  /** Resolves once everything has been told that was durable when this was called, to all queries until then. */
  fence(options?: { timeout?: number }): Promise<void>;
  /** Ends everything, for good: loops end without an error, and what waits for an answer is rejected. */
  close(): void;
}

/** Names a record within a result, as `previous` does; `me` is the user's record name. */
export declare function recordKey(record: Identity, me?: string): string;

/** What the client does, without doing it; for tests. */
export declare class LiveMachine {
  constructor(options: { greeting?: object; hasCredentials?: boolean; random?: () => number });
  readonly connection: Connection;
  readonly wakeAt: number;
  handle(
    event: { type: string; [member: string]: unknown }, now: number, moment?: number,
  ): { do: string; [member: string]: unknown }[];
}
