// The types of belfry-live.js.
//
//   const client = new LiveClient({ url, container, apiToken, credentials });
//   const cheap = client.results<Art>({ recordType: "Art", predicate: "price < 100", sortBy: "price", limit: 20 });
//   cheap.onValue = (records) => draw(records);
//   for await (const records of cheap) draw(records); // the same as a loop

/** A value of a field as JSON: dates are milliseconds, bytes are base64, references and locations are objects. */
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

/** A record as in answers of `records/lookup`; in the format `plain` its fields are bare values. */
export interface LiveRecord<Fields = Record<string, FieldValue>> {
  recordName: string;
  recordType: string;
  zoneID?: ZoneID;
  fields: Fields;
  recordChangeTag: string;
  created?: Stamp;
  modified?: Stamp;
}

/** An earlier state of a record; its version is not always known. */
export type FormerRecord<Fields> = Omit<LiveRecord<Fields>, "recordChangeTag"> & { recordChangeTag?: string };

/** The members that identify a record; a removed record has only these. */
export type Identity = Pick<LiveRecord, "recordName" | "recordType" | "zoneID">;

/** A condition in at most one of the relay's languages. */
export interface Condition {
  /** An NSPredicate format, with arguments for `%@` and `%K`; pass dates as `Date`, as milliseconds are a number. */
  predicate?: string;
  predicateArguments?: unknown[];
  /** Realm Query Language, with arguments for `$0` and so on. */
  rql?: string;
  rqlArguments?: unknown[];
  /** A Minapp condition. */
  where?: object;
  /** CloudKit's filters. */
  filterBy?: object[];
}

export interface SortKey {
  fieldName: string;
  /** The default is true. */
  ascending?: boolean;
}

interface Query extends Condition {
  recordType: string;
  /** The condition as in a subscription; its members may also be given directly, as above. */
  query?: Condition & { recordType?: string };
  /** The default is `public`; the shared database has no queries, as in CloudKit. */
  database?: "public" | "private";
  /** The default is every zone. */
  zoneID?: ZoneID | string;
  /** The fields that are sent; only changes of these fields are reported. */
  desiredKeys?: string[];
  /** Whether the record before a change is sent too. */
  before?: boolean;
  /**
   * `none` leaves out what exists now. In a result, an existing record then counts as added when it changes (`why` is
   * `created` only for new records), and the removal of a record that was not shown is not reported.
   */
  initial?: "current" | "none";
  /** Whether only the last of several changes of one record is reported, if the relay reads them together. */
  coalesce?: boolean;
  /** Whether the query ends after the first result, or the first change. */
  once?: boolean;
}

export interface Bound {
  /** For dates, pass a `Date`: milliseconds are a number, which comes before all dates. */
  value: FieldValue | Date;
  /** With `orderBy`: the key among the records with this value. */
  key?: string;
  isIncluded?: boolean;
}

export interface ResultQuery extends Query {
  kind?: "result";
  /** Up to three keys; a bare name sorts ascending. */
  sortBy?: string | SortKey | (string | SortKey)[];
  /** At most 1,000; a number means the first ones. */
  limit?: number | { first: number } | { last: number };
  orderBy?: { child: string } | "key" | "value" | "priority";
  rules?: "firebase" | "wilddog";
  start?: Bound;
  end?: Bound;
}

export type Operation = "create" | "update" | "delete";

export interface ChangesQuery extends Query {
  kind?: "changes";
  /** The default is all three. */
  firesOn?: Operation[];
  firesWhen?: "matches" | "entered" | "left" | "stayed";
  changedKeys?: string[];
  /** Leaves out the device's own changes, or the user's; the default is `none`. */
  suppress?: "none" | "device" | "user";
}

/** What the user's saved subscriptions fired, if the container keeps it; a client has one such query at a time. */
export interface NotificationsQuery {
  kind?: "notifications";
  /** Only subscriptions of this database; the default is all. */
  database?: "public" | "private" | "shared";
  /** `none` leaves out what exists now. */
  initial?: "current" | "none";
  /** Continues after a notification, by its `syncToken`, or after that of `notifications/list`. */
  since?: string;
}

/** A query of a set; `kind` is required unless it is a result. */
export type SetQuery =
  | (ResultQuery & { [Member in Exclude<keyof ChangesQuery, keyof ResultQuery>]?: undefined })
  | (ChangesQuery & { kind: "changes" })
  | (NotificationsQuery & { kind: "notifications" });

/** An error: `serverErrorCode` and `liveError` are for programs, `reason` is for people. */
export declare class LiveError extends Error {
  constructor(error?: Partial<ErrorMembers> & { message?: string });
  /** One of CloudKit's fourteen codes; absent if there was no answer. */
  readonly serverErrorCode?: string;
  readonly reason: string;
  /** For example `unknownType`, `tooManyMatches`, `tokenExpired`; `connection` and `timeout` come from the client. */
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
  /**
   * If added: `created`, `entered`, `windowed`, `readable`, `loaded`. If removed: `deleted`, `left`, `windowed`,
   * `unreadable`, `forgotten`.
   */
  why?: string;
  /** The name of the record within its result. */
  key: string;
  /** Whether this device made the change. */
  isMine?: boolean;
}

interface Shown<Fields> extends ItemMembers {
  record: LiveRecord<Fields>;
  /** In ordered results, the key of the preceding record; `null` means the first place. */
  previous?: string | null;
}

/** The effect of a change on a result; `before` is the record as it was shown before. */
export type Item<Fields> =
  | (Shown<Fields> & { op: "added"; before?: FormerRecord<Fields>; moved?: undefined; changedKeys?: undefined })
  | (Shown<Fields> & {
    op: "changed";
    before: FormerRecord<Fields>;
    /** Whether its sort value changed. */
    moved?: boolean;
    changedKeys?: string[];
  })
  | (ItemMembers & {
    op: "removed";
    /** Only the members that identify it. */
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

/** A change that fits the query; for a deletion, `record` only identifies the record. */
export type Change<Fields> =
  | (ChangeMembers<Fields> & {
    operation: "create" | "update";
    /** For an update: whether the record fitted before; `left` only if `firesWhen` asks for it. */
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
  /** `loading` until the first result is complete. */
  readonly state: "loading" | "live" | "ended";
  /** Why the query ended, unless the application closed it. */
  readonly error?: LiveError;
  /** Called once if the relay ends or refuses the query. */
  onError?: (error: LiveError) => void;
  /** Ends the query and its iterators. */
  close(): void;
}

/** A result that is kept up to date. Equal queries of a client share one query to the relay. */
export interface LiveResults<Fields> extends Handle, AsyncIterable<LiveRecord<Fields>[]> {
  /** The records, in order. Do not modify them: they belong to the client. */
  readonly records: LiveRecord<Fields>[];
  /** Whether a limited result is short for a moment, while the next records are being read. */
  readonly isFilling: boolean;
  /** Called with what changed (removed, added and changed records, change by change) and the result after it. */
  onItems?: (items: Item<Fields>[], records: LiveRecord<Fields>[]) => void;
  /** Called with the whole result whenever it has changed. */
  onValue?: (records: LiveRecord<Fields>[]) => void;
  /** Iterates over what changes. The handle itself iterates over whole results; a slow reader gets the latest. */
  items(): AsyncIterableIterator<Item<Fields>[]>;
}

/** Reports each change once. A reader that is 10,000 changes behind gets an error. */
export interface LiveChanges<Fields> extends Handle, AsyncIterable<Change<Fields> | { gap: Gap }> {
  onChange?: (change: Change<Fields>) => void;
  onGap?: (gap: Gap) => void;
}

/** An entry of the inbox, as in `notifications/list`; it is reported again when it is marked read. */
export interface LiveNotification {
  notificationID: string;
  isRead?: boolean;
  payload: object;
  [member: string]: unknown;
}

/**
 * Reports each notification once, even after an interruption. A handle that is added later gets the earlier ones. A
 * reader that is 10,000 notifications behind gets an error.
 */
export interface LiveNotifications extends Handle, AsyncIterable<LiveNotification | { gap: { reason: string } }> {
  /** The place of the last notification: a page can store it, and continue from there with `since`. */
  readonly syncToken?: string;
  onNotification?: (notification: LiveNotification, syncToken: string) => void;
  /** Called if some notifications are no longer kept; it continues with the oldest that is kept. */
  onGap?: (gap: { reason: string }) => void;
}

export interface Connection {
  /** `current` means that the data was right at `asOf`; `closed` is final. */
  state: "offline" | "connecting" | "catchingUp" | "current" | "closed";
  /** The last time at which the data was right, in milliseconds; it does not change while offline. */
  asOf?: number;
  /** The progress of catching up, from 0 to 1. */
  progress?: number;
  /** While offline, the time of the next attempt, in milliseconds. */
  retryAt?: number;
  /** Why there is no connection. */
  error?: ErrorMembers;
  transport?: "websocket" | "stream" | "poll";
}

export interface Welcome {
  userRecordName?: string;
  /** The name of this device in `by`. */
  mine?: string;
  /** A fresh token of the user; pass it to sign out. */
  ckWebAuthToken?: string;
  /** The relay's time, in milliseconds. */
  time?: number;
  /** The interval of the relay's heartbeat, in seconds. */
  heartbeat?: number;
  limits?: { queries?: number; frameBytes?: number };
}

export interface SetEditor {
  /** Adds a query. An equal one changes nothing; another one of this name throws `EXISTS`, and cancels the edit. */
  add(name: string, query: SetQuery): void;
  /** Adds a query without a name; equal queries count as one. */
  add(query: SetQuery): void;
  /** Adds a query, or replaces the one of this name, which continues if the new one is refused. */
  put(name: string, query: SetQuery): void;
  /** Removes a query; returns whether there was one. Beside new queries, it ends once they are accepted. */
  remove(name: string): boolean;
  removeAll(recordType?: string): void;
}

/** Named queries; an update of them is applied completely or not at all. */
export interface LiveSet {
  /** The names of the queries that have not ended; closed queries and completed `once` queries free their names. */
  readonly names: string[];
  /** `pending` while there is no connection; it is never `complete` while offline. */
  readonly state: "pending" | "bootstrapping" | "complete" | "error" | "superseded";
  /** The errors of a refused update, by the names of its queries; the set is as it was before. */
  readonly errors: { [name: string]: LiveError };
  onState?: (state: LiveSet["state"]) => void;
  named(name: string): LiveResults<any> | LiveChanges<any> | LiveNotifications | undefined;
  /** Resolves when the set is complete; rejects if the update is refused or `edit` throws. */
  update(edit: (editor: SetEditor) => void): Promise<void>;
  add(name: string, query: SetQuery): Promise<void>;
  /** Adds a query without a name; equal queries count as one. */
  add(query: SetQuery): Promise<void>;
  remove(name: string): Promise<void>;
  waitForComplete(options?: { timeout?: number }): Promise<void>;
}

export interface LiveOptions {
  /** The relay, such as `https://relay.example`; the default is the page's own origin. */
  url?: string;
  container: string;
  /** The default is `development`. */
  environment?: "development" | "production";
  apiToken?: string;
  /** Returns the user token. Called once at a time: at the start, before a token ends, and after a refusal. */
  credentials?: (why: "start" | "expires" | "refused") =>
    Promise<{ ckWebAuthToken: string } | null | undefined> | { ckWebAuthToken: string } | null | undefined;
  /** The name of this installation, by which its own changes are distinguished from others. */
  deviceID?: string;
  /** In `plain`, the default, fields are bare values; in `typed`, they are `{ value, type }`. */
  format?: "plain" | "typed";
  numbersAsStrings?: boolean;
  /** A replacement for the browser's own, as are the next two. */
  WebSocket?: new (url: string, protocol: string) => object;
  fetch?: typeof fetch;
  random?: () => number;
}

/** A client of the relay; one is enough for a page. It connects when the first query is made. */
export declare class LiveClient {
  constructor(options: LiveOptions);
  readonly connection: Connection;
  /** Called when the connection changes, except for `asOf`. */
  onConnection?: (connection: Connection) => void;
  /** Called with errors that concern no single query. */
  onError?: (error: LiveError) => void;
  /** The relay's first answer, about itself and the user. */
  readonly welcome?: Welcome;
  readonly set: LiveSet;
  results<Fields = Record<string, FieldValue>>(query: ResultQuery): LiveResults<Fields>;
  changes<Fields = Record<string, FieldValue>>(query: ChangesQuery): LiveChanges<Fields>;
  notifications(query?: NotificationsQuery): LiveNotifications;
  /** Returns the records that fit, once; rejects without an answer after 30 seconds, or `timeout` milliseconds. */
  get<Fields = Record<string, FieldValue>>(
    query: ResultQuery, options?: { timeout?: number }): Promise<LiveRecord<Fields>[]>;
  /** Resolves once all queries so far have been sent everything that was durable when this was called. */
  fence(options?: { timeout?: number }): Promise<void>;
  /** Closes the client for good: loops end without an error, and pending promises are rejected. */
  close(): void;
}

/** Returns the name of a record within a result, as in `previous`; `me` is the user's record name. */
export declare function recordKey(record: Identity, me?: string): string;

/** The client's logic without any effects; for tests. */
export declare class LiveMachine {
  constructor(options: { greeting?: object; hasCredentials?: boolean; random?: () => number });
  readonly connection: Connection;
  readonly wakeAt: number;
  handle(
    event: { type: string; [member: string]: unknown }, now: number, moment?: number,
  ): { do: string; [member: string]: unknown }[];
}
