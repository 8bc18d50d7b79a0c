// Belfry's live client for web pages: one ES module without dependencies. belfry-live.d.ts documents its use,
// and docs/live-frames.md the frames.
//
// LiveMachine is pure: events and times go in, effects come out, so that every case can be tested without
// waiting. LiveClient is the shell around it.

export class LiveError extends Error {
  constructor({ serverErrorCode, reason, message, liveError, retryAfter, predicateError } = {}) {
    super(reason ?? message ?? serverErrorCode ?? "the relay gave no reason");
    this.name = "LiveError";
    Object.assign(this, { serverErrorCode, reason: this.message, liveError, retryAfter, predicateError });
  }
}

// Returns the name of a record within a result, as `previous` has it; zones of the user `me` need no owner.
export function recordKey(record, me) {
  const { zoneName = "_defaultZone", ownerRecordName = "" } = record.zoneID ?? {};
  const owner = ownerRecordName === "_defaultOwner" || ownerRecordName === me ? "" : ownerRecordName;
  if (!owner && zoneName === "_defaultZone") return record.recordName;
  return `${owner}/${zoneName}/${record.recordName}`;
}

const isOrdered = ({ sortBy, orderBy }) => (sortBy ?? orderBy) !== undefined;

// Returns items that add each of these records.
function additions(records, me, definition) {
  let previous = isOrdered(definition) ? null : undefined;
  return records.map((record) => {
    const item = { op: "added", key: recordKey(record, me), record, previous };
    if (previous !== undefined) previous = item.key;
    return item;
  });
}

class ResultView {
  // In the result's order; a map keeps the order of insertion, which suffices for an unordered result.
  records = new Map();

  // Replaces everything by a whole result; records that the client has seen give no items.
  replace(records, me, definition) {
    const former = this.records;
    this.records = new Map(records.map((record) => [recordKey(record, me), record]));
    const [removed, added, changed] = [[], [], []];
    for (const [key, before] of former) {
      if (!this.records.has(key)) removed.push({ op: "removed", key, record: before, before });
    }
    for (const item of additions(records, me, definition)) {
      const { key, record } = item;
      const before = former.get(key);
      if (!before) added.push(item);
      else if (!isSeen(before, record)) changed.push({ ...item, op: "changed", before });
      // Keeps the same object, so that a page need not draw the record again.
      else this.records.set(key, before);
    }
    return [...removed, ...added, ...changed];
  }

  apply(items, me, mine) {
    const told = [];
    const placed = new Set();
    // From a key to the one that follows it now.
    const followers = new Map();
    for (const item of items) {
      const key = recordKey(item.record, me);
      const before = this.records.get(key);
      if (item.op === "removed" ? !before : before && isSeen(before, item.record)) continue;
      if (item.op === "removed") this.records.delete(key);
      else {
        this.records.set(key, item.record);
        if (item.previous !== undefined) {
          placed.add(key);
          followers.set(item.previous, key);
        }
      }
      const op = item.op === "removed" ? item.op : before ? "changed" : "added";
      told.push({ before, ...item, op, key, isMine: isBy(item, mine) });
    }
    if (placed.size) this.#order(placed, followers);
    return told;
  }

  // `previous` refers to the result after the whole frame, in which the neighbour may have moved too. So each
  // record is placed behind its neighbour once that one has its place.
  #order(placed, followers) {
    const ordered = new Map();
    const put = (key) => {
      for (; key !== undefined && !ordered.has(key); key = followers.get(key)) {
        ordered.set(key, this.records.get(key));
      }
    };
    put(followers.get(null));
    for (const key of this.records.keys()) if (!placed.has(key)) put(key);
    // A missing neighbour would be an error of the relay; no record is lost because of it.
    for (const key of placed) put(key);
    this.records = ordered;
  }
}

const isBy = ({ by }, mine) => by !== undefined && by === mine;
const isSeen = (before, record) =>
  record.recordChangeTag !== undefined && before.recordChangeTag === record.recordChangeTag;

const transports = ["websocket", "stream", "poll"];
// How often opening may fail before the next transport is tried.
const patience = 2;
// A transport that has worked gets more attempts: then the relay is probably away.
const provenPatience = 8;
const connectTimeout = 10_000;
// A poll is answered only after everything has been read and sent.
const pollTimeout = 60_000;
const silence = 10_000; // A heartbeat's allowed delay.
const idleTime = 5_000; // Until an unused connection closes.
// After this time of being current, earlier failures do not count.
const calm = 30_000;
// The relay accepts 20 frames a second, and 100 at once. Requests in a loop wait for their turn, and some
// frames remain for what cannot wait.
const frameTime = 66;
const burst = 60 * frameTime;
const longSet = 60_000; // In characters of up to three bytes.

const states = {
  idle: "offline", waiting: "offline", bootstrapping: "catchingUp", current: "current", closed: "closed",
};

// Refused for now, but perhaps not later, and so not the application's fault.
const passes = ({ serverErrorCode }) => /THROTTLED|LATER/.test(serverErrorCode);

const comesBack = (code) =>
  [4401, 4408, 4429, 1001, 1005, 1006, 1011, 1012, 1013].includes(code) || code >= 4500;

// `handle` takes an event and the time in milliseconds, which never goes back, and returns effects in order.
// `moment` is the time of the page's clock, which may go back. Events are the methods with `_`, and frames
// those with `$`.
export class LiveMachine {
  #greeting;
  #hasCredentials;
  #random;
  #now = 0;
  #moment = 0;
  #effects = [];

  // Also: waiting, authorizing, opening, greeting, bootstrapping, current, closed.
  #phase = "idle";
  #queries = new Map();
  // Gets, which have a query, and fences.
  #asks = new Map();
  #isFlushing = false;
  #isEdited = false; // Since the last set was made.

  #token;
  #isAskingToken = false;

  #transport;
  #failures = {};
  #proven = new Set();
  #attempt = 0;
  #notBefore = 0;
  #error;

  #hasWelcome = false;
  #me;
  #mine;
  #heartbeat;
  #most; // How many queries a set may have.
  #version = 0;
  // The set that waits for an answer. There is one at a time, so that edits meanwhile become one.
  #sent;
  #accepted = { ids: new Set() };
  #isComplete = false;
  #isClosed = false; // By an `at` since it was complete.
  #progress = 0;

  // Its members: opened, heard, retry, idle, ping, current, asOf; said, turn, pause.
  #times = {};
  #told = "";

  constructor({ greeting, hasCredentials, random = Math.random }) {
    this.#forgetFailures();
    this.#greeting = greeting;
    this.#hasCredentials = hasCredentials;
    this.#random = random;
  }

  handle(event, now, moment = now) {
    this.#now = now;
    this.#moment = moment;
    this.#effects = [];
    if (this.#phase !== "closed") {
      try {
        this[`_${event.type}`](event);
      } catch {
        // An invalid frame. Continuing would leave a gap; results that were partly applied are sent again.
        for (const query of this.#queries.values()) {
          if (query.pending.length && query.definition.kind === "result") query.since = query.isKnown = undefined;
        }
        this.$bye({});
      }
    }
    const connection = this.connection;
    const told = JSON.stringify({ ...connection, asOf: 0, retryAt: 0 });
    if (told !== this.#told) this.#do("connection", { connection });
    this.#told = told;
    return this.#effects;
  }

  // The state of the data, which never claims more than is known.
  get connection() {
    const state = states[this.#phase] ?? "connecting";
    return {
      state, asOf: this.#times.asOf, error: this.#error,
      progress: this.#phase === "bootstrapping" ? this.#progress : undefined,
      transport: this.#isUp ? this.#transport : undefined,
      retryAt: this.#phase === "waiting" ? this.#times.retry - this.#now + this.#moment : undefined,
    };
  }

  // The latest time for the next `tick`.
  get wakeAt() {
    const { opened, heard, retry, idle = Infinity, ping = Infinity, turn = Infinity } = this.#times;
    if (this.#phase === "waiting") return retry;
    if (this.#phase === "opening" || this.#phase === "greeting") {
      return opened + (this.#transport === "poll" ? pollTimeout : connectTimeout);
    }
    if (!this.#isUp) return Infinity;
    return Math.min(heard + this.#heartbeat * 1000 + silence, idle, ping, turn);
  }

  get #isUp() {
    return this.#phase === "bootstrapping" || this.#phase === "current";
  }

  #do(effect, details) {
    this.#effects.push({ do: effect, ...details });
  }

  get #isDuplex() {
    return this.#transport === "websocket";
  }

  _declare({ id, definition }) {
    const { since } = definition;
    this.#queries.set(id, { id, definition, since, view: new ResultView(), pending: [], isHeld: false });
    this.#edited();
  }

  _undeclare({ id }) {
    const query = this.#queries.get(id);
    if (!this.#queries.delete(id)) return;
    // A held query is out of the set already, or will be with the next edit.
    if (query.isHeld) this.#flushSoon();
    else this.#edited();
  }

  // A held query leaves the set, but stays until the relay has accepted that; after a refusal it goes on.
  _hold({ id, isHeld }) {
    const query = this.#queries.get(id);
    if (!query || query.isHeld === isHeld) return;
    query.isHeld = isHeld;
    this.#edited();
  }

  get #wanted() {
    return [...this.#queries.values()].filter((query) => !query.isHeld);
  }

  // From now on, what is shown differs from what is wanted.
  #edited() {
    if (this.#phase === "current") this.#phase = "bootstrapping";
    this.#isEdited = true;
    this.#flushSoon();
  }

  _ask({ id, query }) {
    this.#asks.set(id, { id, query, records: [] });
    this.#flushSoon();
  }

  _cancel({ id }) {
    if (this.#asks.delete(id)) this.#flushSoon();
  }

  // Edits of one turn, and all edits while there is no connection or another set waits for its answer, are sent
  // as one.
  #flushSoon() {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.#do("flush");
  }

  _flush() {
    this.#isFlushing = false;
    const isNeeded = this.#wanted.length + this.#asks.size > 0;
    this.#times.idle = isNeeded ? undefined : (this.#times.idle ?? this.#now + idleTime);
    if (this.#phase === "idle" && isNeeded) return this.#connect();
    const { version, ids } = this.#isDuplex ? this.#accepted : (this.#sent ?? this.#accepted);
    const add = this.#wanted.filter((query) => !ids.has(query.id));
    // The relay still knows the names of queries that it has ended.
    const remove = [...ids].filter((id) => this.#queries.get(id)?.isHeld ?? true)
      .concat(add.filter((query) => query.isGone).map((query) => query.id));
    const isSame = version !== undefined && !add.length && !remove.length;
    const asked = [...this.#asks.values()].filter((ask) => !ask.isSent);
    if (["idle", "waiting", "authorizing"].includes(this.#phase)) return;
    if (!this.#isDuplex) {
      // This connection cannot send; the next one continues where it is. A get waits for the answers to earlier
      // ones, because gets in a loop would otherwise restart the connection before any answer.
      if (isNeeded && (!isSame || (asked.length && asked.length === this.#asks.size))) this.#reopen();
      else this.#settle(true);
      return;
    }
    if (!this.#hasWelcome) return;
    this.#times.turn = undefined;
    if (!this.#sent) {
      if (isSame) this.#settle(true);
      else if (this.#now < this.#times.pause) this.#times.turn = this.#times.pause;
      else {
        if (!this.#takesTurn()) return;
        // The length of a frame is limited, and a set that grew by edits may be longer.
        let room = 300_000;
        const queries = add.map(wire)
          .filter((query, index) => (room -= JSON.stringify(query).length) > 0 || !index);
        const edit = { base: version, add: queries, remove };
        this.#do("send", { frame: { type: "set", ...this.#number(version === undefined ? { queries } : edit) } });
        this.#phase = "bootstrapping";
        for (const { id } of add.slice(queries.length)) this.#isEdited = this.#sent.ids.delete(id);
      }
    }
    for (const ask of asked) {
      const { id, query, notBefore } = ask;
      if (this.#now < notBefore) {
        this.#times.turn = Math.min(this.#times.turn ?? Infinity, notBefore);
        continue;
      }
      // A fence is sent after the queries that were requested before it have been accepted, because the refusal
      // of a set is answered earlier.
      if (!query && (this.#isEdited || this.#sent)) continue;
      if (!this.#takesTurn()) return;
      ask.isSent = true;
      this.#do("send", { frame: { type: query ? "get" : "fence", id, query } });
    }
  }

  // Returns whether a frame may be sent now; if not, schedules a flush for when it may.
  #takesTurn() {
    const { said = 0 } = this.#times;
    const isFree = said <= this.#now + burst;
    if (isFree) this.#times.said = Math.max(said, this.#now) + frameTime;
    else this.#times.turn = said - burst;
    return isFree;
  }

  // An `at` has closed everything that was requested.
  #settle(isSame) {
    if (isSame) this.#isEdited = false;
    if (!this.#isClosed || !this.#isComplete || this.#sent || this.#isEdited) return;
    this.#times.current ??= this.#now;
    this.#phase = "current";
    // Where a fence cannot be sent, completion on a connection that began after it means the same.
    for (const ask of this.#asks.values()) {
      if (!this.#isDuplex && ask.isSent && !ask.query) this.#answer(ask);
    }
  }

  #number(members) {
    this.#version += 1;
    this.#isEdited = false;
    for (const query of this.#queries.values()) query.isGone = false;
    this.#sent = { version: this.#version, ids: new Set(this.#wanted.map(({ id }) => id)) };
    return { version: this.#version, ...members };
  }

  #connect() {
    if (this.#hasCredentials && this.#token === undefined) {
      this.#phase = "authorizing";
      return this.#askToken(this.#error?.serverErrorCode ? "refused" : "start");
    }
    this.#transport = transports.find(
      (name) => this.#failures[name] < (this.#proven.has(name) ? provenPatience : patience));
    if (!this.#transport) {
      this.#forgetFailures();
      this.#transport = transports[0];
    }
    this.#phase = "opening";
    this.#open(0);
  }

  #open(wait) {
    this.#forgetConnection();
    const set = this.#number({ queries: this.#wanted.map(wire) });
    if (!this.#isDuplex) {
      for (const ask of this.#asks.values()) {
        ask.isSent = true;
        if (ask.query) set.queries.push({ ...ask.query, id: ask.id, once: true });
      }
    }
    const hello = { type: "hello", ...this.#greeting, ckWebAuthToken: this.#token ?? undefined, set };
    if (this.#transport === "poll") hello.wait = wait;
    // The relay accepts little from unauthenticated clients, so a long set follows the welcome.
    if (this.#isDuplex && JSON.stringify(set).length > longSet) hello.set = this.#sent = undefined;
    this.#times.opened = this.#times.heard = this.#now;
    this.#do("open", { transport: this.#transport, hello });
  }

  #reopen() {
    this.#do("drop");
    this.#phase = "opening";
    this.#open(0);
  }

  // Drops what no `at` has closed; it is sent again.
  #forgetConnection() {
    this.#hasWelcome = this.#isComplete = this.#isClosed = false;
    this.#sent = undefined;
    this.#accepted = { ids: new Set() };
    this.#progress = 0;
    Object.assign(this.#times, { ping: undefined, said: undefined, turn: undefined, pause: undefined });
    for (const query of this.#queries.values()) {
      Object.assign(query, { group: undefined, pending: [], isLive: false, hasResult: false, isPartial: false });
    }
    for (const ask of this.#asks.values()) {
      Object.assign(ask, { group: undefined, isSent: false, isReached: false, records: [] });
    }
  }

  #forgetFailures() {
    for (const name of transports) this.#failures[name] = 0;
  }

  #askToken(why) {
    if (this.#isAskingToken) return;
    this.#isAskingToken = true;
    this.#do("credentials", { why });
  }

  // The answer of the hook: a token, nothing (nobody is signed in), or an error.
  _credentials({ ckWebAuthToken, error }) {
    this.#isAskingToken = false;
    const isNeeded = this.#phase === "authorizing";
    this.#token = ckWebAuthToken || this.#token;
    if (isNeeded && this.#token) this.#connect();
    else if (isNeeded && error) this.#wait(error);
    else if (isNeeded) {
      const liveError = "tokenExpired";
      this.#end({ serverErrorCode: "AUTHENTICATION_REQUIRED", reason: "nobody is signed in", liveError });
    } else if (!ckWebAuthToken) {
      // The connection remains valid until the relay ends it.
      if (error) this.#do("error", { error });
    } else if (this.#hasWelcome && this.#isDuplex) {
      this.#do("send", { frame: { type: "token", ckWebAuthToken } });
    } else if (this.#hasWelcome) this.#reopen();
  }

  _opened() {
    if (this.#phase === "opening") this.#phase = "greeting";
    this._heard();
  }

  _heard() {
    this.#times.heard = this.#now;
    this.#times.ping = undefined;
  }

  // A poll has been answered completely, and the next one follows.
  _finished() {
    if (!this.#isClosed || !this.#isComplete) return this._lost({});
    if (this.#times.idle !== undefined) return;
    if (this.#proven.size < 2) return this.#open(this.#phase === "current" ? 25 : 0);
    // A better transport worked earlier, so the relay was away, and is back.
    this.#proven.clear();
    this.#forgetFailures();
    this.#connect();
  }

  _lost({ code = 1006, error, reconnect = comesBack(code), retryAfter = error?.retryAfter ?? 0 }) {
    if (["idle", "waiting", "authorizing"].includes(this.#phase)) return;
    const { current = Infinity, idle } = this.#times;
    if (this.#now - current >= calm) {
      this.#attempt = 0;
      // A fallback has worked for long; perhaps the better transport works now.
      if (!this.#isDuplex) this.#failures.websocket = 0;
    }
    if (!this.#hasWelcome && !error) this.#failures[this.#transport] += 1;
    if (code === 4401 || error?.serverErrorCode === "AUTHENTICATION_REQUIRED") {
      this.#token = undefined;
      if (!this.#hasCredentials) reconnect = false;
    }
    this.#forgetConnection();
    this.#times.current = undefined;
    if (!reconnect) this.#end(error ?? { reason: `the relay closed the connection with ${code}` });
    else if (idle !== undefined) this.#rest();
    else this.#wait(error ?? { liveError: "connection", reason: "there is no connection" }, retryAfter);
  }

  // The wait is random within the whole step; otherwise clients that lost their connections together would come
  // back together.
  #wait(error, retryAfter = 0) {
    this.#error = error;
    this.#phase = "waiting";
    this.#notBefore = this.#now + (retryAfter * 1000 || 0);
    const step = Math.min(30_000, 500 * 2 ** this.#attempt);
    this.#attempt += 1;
    this.#times.retry = Math.max(this.#notBefore, this.#now + this.#random() * step);
  }

  #rest() {
    this.#phase = "idle";
    this.#times.idle = undefined;
  }

  // Gives up; each query is told why, once.
  #end(error) {
    this.#do("drop");
    this.#error = error;
    this.#phase = "closed";
    for (const id of [...this.#queries.keys(), ...this.#asks.keys()]) this.#do("failed", { id, error });
  }

  _close() {
    if (this.#hasWelcome && this.#isDuplex) this.#do("send", { frame: { type: "bye" } });
    this.#do("drop");
    this.#phase = "closed";
  }

  // The network is back, or the page is visible again: timers may have slept, and the socket may be dead.
  _returned() {
    this.#forgetFailures();
    if (this.#phase === "waiting") {
      const soon = Math.max(this.#notBefore, this.#now + this.#random() * 1000);
      this.#times.retry = Math.min(this.#times.retry, soon);
    } else if (this.#hasWelcome && this.#isDuplex) {
      this.#do("send", { frame: { type: "fence", id: "ping" } });
      this.#times.ping ??= this.#now + silence;
    } else if (!this.#isDuplex && this.wakeAt < Infinity && this.#now - this.#times.heard > silence) {
      // This connection cannot be tested for life, so it is replaced.
      return this.#reopen();
    }
    this._tick();
  }

  _tick() {
    if (this.#now < this.wakeAt) return;
    if (this.#phase === "waiting") {
      if (this.#times.idle === undefined) this.#connect();
      else this.#rest();
    } else if (this.#now >= this.#times.turn) this._flush();
    else if (this.#now >= this.#times.idle) {
      this._close();
      this.#forgetConnection();
      this.#rest();
    } else this.$bye({});
  }

  _frames({ frames }) {
    this._heard();
    for (const frame of frames) {
      // Unknown frames of a newer relay are no error. Frames after a goodbye are ignored.
      if (!/offline|closed/.test(states[this.#phase])) this[`$${frame.type}`]?.(frame);
    }
  }

  $items(frame) {
    for (const query of this.#of(frame.group)) query.pending.push(frame);
  }

  $change = this.$items;

  // The inbox is independent of the log: no `at` closes it, and each entry has the token after which to
  // continue.
  $notification({ id, notification, syncToken }) {
    const query = this.#queries.get(id);
    if (!query) return;
    query.since = syncToken;
    this.#do("notify", { id, notification, syncToken });
  }

  // The place at which a feed begins that leaves out existing notifications.
  $place({ id, syncToken }) {
    Object.assign(this.#queries.get(id) ?? {}, { since: syncToken });
  }

  $fenced({ id }) {
    const ask = this.#asks.get(id);
    if (ask) ask.isReached = true;
  }

  $tokenExpires() {
    if (this.#hasCredentials) this.#askToken("expires");
  }

  $bye(frame) {
    this.#do("drop");
    this._lost({ ...frame, error: frame.serverErrorCode && frame });
  }

  $welcome(frame) {
    this.#hasWelcome = true;
    this.#failures[this.#transport] = 0;
    this.#proven.add(this.#transport);
    this.#me = frame.userRecordName;
    this.#mine = frame.mine;
    this.#heartbeat = frame.heartbeat ?? 25;
    this.#most = frame.limits?.queries;
    this.#token = frame.ckWebAuthToken ?? this.#token;
    this.#error = undefined;
    this.#phase = "bootstrapping";
    this.#do("welcome", { frame });
    this.#flushSoon();
  }

  $state(frame) {
    // A newer edit of this client has replaced it.
    if (frame.state === "superseded" && frame.version !== this.#sent?.version) return;
    const isConflict = frame.state === "superseded" || frame.serverErrorCode === "CONFLICT";
    if (isConflict || frame.state === "error") return this.#refuseSet(frame, isConflict);
    if (frame.version === this.#sent?.version) {
      this.#accepted = this.#sent;
      this.#sent = undefined;
      this.#do("taken", this.#accepted);
      this.#flushSoon();
    }
    for (const { id, group, fingerprint, isResumed } of frame.queries ?? []) {
      const query = this.#queries.get(id) ?? this.#asks.get(id);
      if (!query) continue;
      // Its frames are held back until it is whole: with its result, or with `complete`.
      if (isResumed !== undefined || query.group !== group) query.isLive = false;
      Object.assign(query, { group, nextFingerprint: fingerprint ?? query.nextFingerprint });
    }
    if (frame.version !== this.#accepted.version) return;
    this.#isComplete = frame.state === "complete";
    this.#isClosed = false;
    this.#progress = frame.progress ?? +this.#isComplete;
    if (!this.#isComplete) this.#phase = "bootstrapping";
  }

  #refuseSet(frame, isConflict) {
    const errors = {};
    for (const query of frame.queries ?? []) {
      const error = query.error ?? (query.serverErrorCode && query);
      if (error && query.id !== undefined) errors[query.id] = error;
    }
    // It waits before it is sent again.
    const passing = isConflict ? !this.#isDuplex && frame : [frame, ...Object.values(errors)].find(passes);
    if (passing) {
      this.#sent = undefined;
      return this.#later(passing);
    }
    if (isConflict) this.#accepted = { ids: new Set() };
    else if (!Object.keys(errors).length) {
      // The whole set is refused: either the queries beyond the limit fail, or all that it would have added.
      const asked = this.#isDuplex ? [] : [...this.#asks.values()].filter((ask) => ask.isSent && ask.query);
      const ids = [...(this.#sent?.ids ?? []), ...asked.map(({ id }) => id)];
      for (const id of ids.slice(ids.length > this.#most ? this.#most : 0)) {
        if (!this.#accepted.ids.has(id)) errors[id] = frame;
      }
    }
    this.#sent = undefined;
    for (const id in errors) this.#fail(id, errors[id]);
    // An all-or-nothing update takes the rest back before the next set is sent.
    this.#do("refusedSet", { isConflict, errors });
    this.#flushSoon();
  }

  // The relay cannot do it now: the request is repeated, and what is shown stays.
  #later(error) {
    if (!this.#isDuplex) {
      this.#do("drop");
      return this._lost({ error, reconnect: true });
    }
    this.#times.pause = this.#afterPause(error);
    this.#edited();
  }

  // An invalid time must not cause an immediate repetition.
  #afterPause({ retryAfter = 5 }) {
    return this.#now + (retryAfter * 1000 || 0) + 1000 * this.#random();
  }

  #fail(id, error) {
    if (this.#queries.delete(id) || this.#asks.delete(id)) this.#do("failed", { id, error });
  }

  *#of(group) {
    for (const query of this.#queries.values()) if (query.group === group) yield query;
  }

  $result(frame) {
    for (const ask of this.#asks.values()) {
      if (frame.id === undefined ? frame.group !== ask.group : frame.id !== ask.id) continue;
      ask.records.push(...frame.records);
      if (frame.isLast) this.#answer(ask);
    }
    if (frame.group === undefined) return;
    for (const query of this.#of(frame.group)) {
      query.pending.push(frame);
      query.isPartial = !frame.isLast;
      query.hasResult = frame.isLast;
    }
  }

  #answer({ id, records }) {
    this.#asks.delete(id);
    this.#do("answer", { id, records });
    this.#flushSoon();
  }

  $reset(frame) {
    const { id, reason } = frame;
    if (this.#queries.has(id)) this.#do("notify", { id, gap: { reason } });
    for (const group of frame.groups ?? []) {
      for (const query of this.#of(group)) {
        query.pending.push(frame);
        if (query.definition.kind !== "changes") query.isLive = query.hasResult = false;
      }
    }
  }

  $gone(frame) {
    const ids = frame.id === undefined ? [...this.#of(frame.group)].map((query) => query.id) : [frame.id];
    if (!passes(frame)) {
      for (const id of ids) this.#fail(id, frame);
      return this.#flushSoon();
    }
    for (const id of ids) {
      this.#accepted.ids.delete(id);
      const gone = { isGone: true, group: undefined, pending: [], isLive: false, hasResult: false, isPartial: false };
      Object.assign(this.#queries.get(id) ?? {}, gone);
    }
    this.#later(frame);
  }

  $refused(frame) {
    const ask = this.#asks.get(frame.id);
    if (!ask) this.#do("error", { error: frame });
    else if (passes(frame)) {
      Object.assign(ask, { isSent: false, records: [], notBefore: this.#afterPause(frame) });
      this.#flushSoon();
    } else this.#fail(frame.id, frame);
  }

  // Everything up to here belongs together. All of it is applied before any of it is reported, so that
  // callbacks see all queries at the same position.
  $at(frame) {
    for (const query of this.#queries.values()) {
      const isWhole = query.isLive || query.hasResult || this.#isComplete;
      if (!isWhole || query.isPartial || !this.#accepted.ids.has(query.id)) continue;
      query.isLive = true;
      query.hasResult = false;
      this.#apply(query);
      if (query.definition.kind !== "notifications") query.since = frame.at;
      query.fingerprint = query.nextFingerprint;
    }
    if (this.#isComplete) this.#times.asOf = this.#moment;
    this.#isClosed = true;
    this.#settle();
    // While the set of a lagging client is not complete, not everything has been sent.
    for (const ask of this.#asks.values()) if (ask.isReached && this.#isComplete) this.#answer(ask);
  }

  #apply(query) {
    let items = [];
    const changes = [];
    let records = [];
    for (const frame of query.pending) {
      if (frame.type === "result") {
        records.push(...frame.records);
        if (!frame.isLast) continue;
        items = items.concat(query.view.replace(records, this.#me, query.definition));
        records = [];
      } else if (frame.type === "items") {
        items = items.concat(query.view.apply(frame.items, this.#me, this.#mine));
        query.isFilling = frame.isFilling;
      } else if (frame.type === "change") {
        if (frame.position <= query.position) continue;
        query.position = frame.position;
        const { type, group, ...change } = frame;
        changes.push({ ...change, isMine: isBy(frame, this.#mine) });
      } else if (query.definition.kind === "changes") {
        // What is missing cannot be shown, but the gap must be reported. A restored store goes back, for any
        // reason.
        const { type, groups, ...gap } = frame;
        changes.push({ gap });
        query.position = gap.to;
      }
    }
    query.pending = [];
    if (!query.isKnown || items.length || changes.length) {
      const { id, view, isFilling = false } = query;
      this.#do("deliver", { id, items, changes, isFilling, records: [...view.records.values()] });
    }
    query.isKnown = true;
  }
}

const wire = ({ id, definition, since, fingerprint }) => ({ ...definition, id, since, fingerprint });

// Unreadable frames end the connection, because continuing would leave a gap.
function read(texts) {
  try {
    return { type: "frames", frames: texts.map((text) => JSON.parse(text)) };
  } catch {
    return { type: "lost" };
  }
}

// The relay would end all queries because of a lone surrogate, from a text that was cut, as invalid JSON.
const written = (frame) =>
  JSON.stringify(frame).replace(/\\(?:ud[89a-f]..|.)/g, (escape) => (escape[2] ? "\ufffd" : escape));

// Each of these calls `on` with events for the machine.

function openSocket({ base, hello, WebSocket }, on) {
  const socket = new WebSocket(base.replace(/^http/, "ws"), "belfry.live.v1");
  const send = (frame) => socket.readyState === 1 && socket.send(written(frame));
  socket.onopen = () => {
    send(hello);
    on({ type: "opened" });
  };
  socket.onmessage = ({ data }) => on(read([data]));
  socket.onclose = ({ code }) => on({ type: "lost", code });
  // Some of Node's sockets close silently if there is no answer; if both events come, the first counts.
  socket.onerror = () => on({ type: "lost" });
  return { send, close: () => socket.close(1000) };
}

function openRequest(path, read) {
  return ({ base, hello, fetch }, on) => {
    const ending = new AbortController();
    const body = written(hello);
    // A plain text needs no preflight, and the relay reads any type as JSON. It accepts little from
    // unauthenticated clients, so with a long set the credentials are in the head.
    const headers = body[longSet] && { ckAPIToken: hello.ckAPIToken, Authorization: `Bearer ${hello.ckWebAuthToken}` };
    fetch(base + path, { method: "POST", headers, body, signal: ending.signal, cache: "no-store" })
      .then(async (response) => {
        if (response.ok) return read(response, on);
        // A proxy reports in its own format that the relay is away.
        const retryAfter = +response.headers.get("Retry-After") || undefined;
        const error = await response.json().catch(() => ({}));
        const reconnect = /REQUIRED|THROTTLED|INTERNAL|LATER/.test(error.serverErrorCode);
        on(error.serverErrorCode ? { type: "lost", error, reconnect } : { type: "lost", retryAfter });
      })
      .catch(() => on({ type: "lost" }));
    return { close: () => ending.abort() };
  };
}

async function readStream(response, on) {
  on({ type: "opened" });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return on({ type: "lost" });
    // Comments keep the connection open, and show that it is.
    on({ type: "heard" });
    const events = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
    rest = events.pop();
    const texts = events.map((event) =>
      event.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n"));
    on(read(texts.filter(Boolean)));
  }
}

async function readPoll(response, on) {
  // A long answer has begun to arrive.
  on({ type: "opened" });
  const { frames } = await response.json();
  on({ type: "frames", frames });
  setTimeout(on, 250, { type: "finished" }); // Limits the rate of polls.
}

const ways = {
  websocket: openSocket,
  stream: openRequest("/stream", readStream),
  poll: openRequest("/poll", readPoll),
};

export class LiveClient {
  onConnection;
  onError;
  welcome;
  set = new LiveSet(this);

  #options;
  #machine;
  #connection;
  #wires = new Map();
  #asked = new Map();
  #serial = 0;
  #effects = [];
  #isWorking = false;
  #timer;
  #timerAt = Infinity;
  #last = 0;
  #ahead = 0; // After the clock was set back.
  #ending = new AbortController();

  constructor({ url = globalThis.location?.origin, container, environment = "development", apiToken, credentials,
    deviceID, format = "plain", numbersAsStrings, ...rest }) {
    const base = `${url.replace(/\/$/, "")}/live/1/${encodeURIComponent(container)}/${environment}`;
    const { WebSocket, fetch } = globalThis;
    this.#options = { WebSocket, fetch: fetch?.bind(globalThis), ...rest, base, credentials };
    this.#machine = new LiveMachine({
      greeting: { ckAPIToken: apiToken, deviceID, client: "belfry-live.js/1", format, numbersAsStrings },
      hasCredentials: credentials !== undefined, random: rest.random,
    });
    const returned = () => this._handle({ type: "returned" });
    const { signal } = this.#ending;
    globalThis.addEventListener?.("online", returned, { signal });
    globalThis.document?.addEventListener(
      "visibilitychange", () => document.visibilityState === "visible" && returned(), { signal });
  }

  get connection() {
    return this.#machine.connection;
  }

  results(query) {
    return new LiveResults(this, definition("result", query));
  }

  changes(query) {
    return new LiveChanges(this, definition("changes", query));
  }

  notifications(query = {}) {
    return new LiveNotifications(this, definition("notifications", query));
  }

  get(query, { timeout = 30_000 } = {}) {
    return this.#ask(definition("result", query), timeout);
  }

  fence({ timeout = 30_000 } = {}) {
    return this.#ask(undefined, timeout).then(() => {});
  }

  close() {
    // The application ends them, so they report no error, and loops end normally.
    for (const { handles } of this.#wires.values()) for (const handle of handles) handle._fail();
    this.#wires.clear();
    this._handle({ type: "close" });
    for (const ask of this.#asked.values()) ask._fail(new LiveError(closed));
    clearTimeout(this.#timer);
  }

  #ask(query, timeout) {
    return new Promise((resolve, reject) => {
      const id = `a${++this.#serial}`;
      // Invalid queries fail here, before they are sent with others.
      query = said(query);
      const end = (settle) => (value) => {
        clearTimeout(timer);
        this.#asked.delete(id);
        settle(value);
      };
      const ask = { _deliver: end(resolve), _fail: end(reject) };
      const timer = later(() => {
        const liveError = this.connection.state === "current" ? "timeout" : "connection";
        ask._fail(new LiveError({ liveError, reason: `no answer in ${timeout} ms` }));
        this._handle({ type: "cancel", id });
      }, timeout);
      this.#asked.set(id, ask);
      this._handle({ type: "ask", id, query });
      this.#failIfClosed(ask);
    });
  }

  #failIfClosed(one) {
    const { state, error } = this.connection;
    if (state === "closed") queueMicrotask(() => one._fail(new LiveError(error ?? closed)));
  }

  // Equal queries share one: a single result is transferred, and later handles have it at once.
  _acquire(definition, handle) {
    const text = JSON.stringify(definition);
    let wire = this.#wires.get(text);
    if (!wire) {
      wire = { id: `q${++this.#serial}`, text, handles: new Set(), told: new Map() };
      this.#wires.set(text, wire);
      this._handle({ type: "declare", id: wire.id, definition: JSON.parse(text) });
    }
    wire.handles.add(handle);
    this._hold(wire);
    // By then the callbacks are set. A change is reported when it comes, and never again.
    queueMicrotask(() => {
      if (wire.last && handle.state === "loading") handle._deliver({ ...wire.last, changes: [] });
      handle._join(wire.told.values());
    });
    this.#failIfClosed(handle);
    return wire;
  }

  // A page that draws itself again releases a query and acquires it again at once.
  _release(wire, handle) {
    wire.handles.delete(handle);
    queueMicrotask(() => {
      if (this.#wires.get(wire.text) !== wire) return;
      if (wire.handles.size) return this._hold(wire);
      this.#wires.delete(wire.text);
      this._handle({ type: "undeclare", id: wire.id });
    });
  }

  // A query is held if all of its handles are about to end.
  _hold({ id, handles }) {
    this._handle({ type: "hold", id, isHeld: [...handles].every((handle) => handle._isHeld) });
  }

  #wire(id) {
    return [...this.#wires.values()].find((wire) => wire.id === id);
  }

  #showing(id) {
    return [...(this.#wire(id)?.handles ?? [this.#asked.get(id)])].filter(Boolean);
  }

  // Calls from within callbacks change the machine at once; their effects are performed in turn.
  _handle(event) {
    this.#effects.push(...this.#machine.handle(event, this.#now(), Date.now()));
    if (this.#isWorking) return;
    this.#isWorking = true;
    while (this.#effects.length) guard(() => this.#perform(this.#effects.shift()));
    this.#isWorking = false;
    this.#arm();
  }

  // If the clock is set back by an hour, timers for a second must not wait for an hour.
  #now() {
    this.#ahead = Math.max(this.#ahead, this.#last - Date.now());
    return (this.#last = Date.now() + this.#ahead);
  }

  // A deadline that moves away needs no new timer, because the old one checks again. Without a deadline there
  // is no timer, so that a Node program can end; a client that waits for its relay keeps it running.
  #arm() {
    const at = this.#machine.wakeAt;
    if (at >= this.#timerAt && at < Infinity) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    if (at === Infinity) return;
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity;
      this._handle({ type: "tick" });
    }, Math.min(Math.max(0, at - this.#now()), 2 ** 31 - 1));
  }

  #perform(effect) {
    const { id } = effect;
    switch (effect.do) {
      case "flush": return queueMicrotask(() => this._handle({ type: "flush" }));
      case "credentials": return this.#askCredentials(effect.why);
      case "open": return this.#open(effect);
      case "send": return this.#connection?.send?.(effect.frame);
      case "drop": return this.#drop();
      case "welcome": return (this.welcome = effect.frame);
      case "deliver":
        Object.assign(this.#wire(id) ?? {}, { last: effect });
        return this.#showing(id).forEach((handle) => handle._hear(() => handle._deliver(effect)));
      case "notify":
        this.#keep(effect);
        return this.#showing(id).forEach((handle) => handle._hear(() => handle._notify(effect)));
      case "answer": return this.#asked.get(id)?._deliver(effect.records);
      case "failed": {
        const showing = this.#showing(id);
        this.#wires.delete(this.#wire(id)?.text);
        return showing.forEach((handle) => handle._fail(new LiveError(effect.error)));
      }
      case "taken": return this.set._taken(effect);
      case "refusedSet": return this.set._refused(effect);
      case "error": return this.onError?.(new LiveError(effect.error));
      case "connection":
        if (this.connection.state === "closed") this.#ending.abort();
        guard(() => this.set._connection(this.connection));
        return this.onConnection?.(this.connection);
    }
  }

  // For handles that are added later: each notification is sent once, for all that show it.
  #keep({ id, notification, ...rest }) {
    const { told, text } = this.#wire(id) ?? {};
    if (!told || !notification || JSON.parse(text).initial === "none") return;
    // A notification that was marked read comes again, after the others.
    told.delete(notification.notificationID);
    told.set(notification.notificationID, { notification, ...rest });
    if (told.size > mostWaiting) told.delete(told.keys().next().value);
  }

  #drop() {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close?.();
  }

  #open({ transport, hello }) {
    this.#drop();
    const token = {};
    const on = (event) => {
      if (this.#connection?.token !== token) return;
      if (event.type === "lost") this.#drop();
      this._handle(event);
    };
    this.#connection = { token };
    try {
      Object.assign(this.#connection, ways[transport]({ ...this.#options, hello }, on));
    } catch {
      // An immediate failure, such as a bad address, is handled like later failures.
      queueMicrotask(() => on({ type: "lost" }));
    }
  }

  async #askCredentials(why) {
    const answer = { type: "credentials" };
    try {
      answer.ckWebAuthToken = (await this.#options.credentials(why))?.ckWebAuthToken;
    } catch (error) {
      answer.error = new LiveError(Object(error) === error ? error : { reason: error });
    }
    this._handle(answer);
  }
}

const closed = { liveError: "connection", reason: "the client is closed" };

// An error of the application's callbacks is reported, and the client continues.
function guard(act) {
  try {
    return act();
  } catch (error) {
    (globalThis.reportError ?? console.error)(error);
  }
}

const forms = ["predicate", "predicateArguments", "rql", "rqlArguments", "where", "filterBy"];

const said = (query) => query && JSON.parse(JSON.stringify(query));

// The longest time for a timer; longer means for ever.
const later = (act, timeout) => (timeout < 2 ** 31 ? setTimeout(act, timeout) : undefined);

// As JSON, a date would become a text, which equals no date.
const typed = (value) =>
  Array.isArray(value) ? value.map(typed)
    : value instanceof Date ? { value: +value, type: "TIMESTAMP" } : value;

// The query as it is sent. Unknown members are passed to the relay unchanged.
function definition(kind, { recordType, query, sortBy, limit, ...rest }) {
  const condition = { ...query };
  for (const form of forms) {
    const value = rest[form] ?? condition[form];
    if (value !== undefined) condition[form] = typed(value);
    delete rest[form];
  }
  for (const end of ["start", "end"]) {
    if (rest[end]) rest[end] = { ...rest[end], value: typed(rest[end].value) };
  }
  recordType ??= condition.recordType;
  const keys = [sortBy ?? []].flat().map((key) => (typeof key === "string" ? { fieldName: key } : key));
  return {
    kind, recordType,
    query: Object.keys(condition).length ? { recordType, ...condition } : undefined,
    sortBy: keys.length ? keys : undefined,
    limit: typeof limit === "number" ? { first: limit } : limit,
    ...rest,
  };
}

// Values for a reader that may be slow: only the latest, or all of them up to a limit.
class Outlet {
  #values = [];
  #waiting = [];
  #end;

  constructor(kind, most, leave) {
    Object.assign(this, { kind, most, leave });
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  push(value) {
    if (this.#end) return;
    if (this.#waiting.length) return this.#waiting.shift()({ value, done: false });
    if (this.most === 1) this.#values = [];
    this.#values.push(value);
    if (this.#values.length > this.most) this.end(new LiveError({ reason: `more than ${this.most} values wait` }));
  }

  end(error) {
    this.#end ??= error ? Promise.reject(error) : Promise.resolve({ done: true });
    this.#end.catch(() => {}); // `next` reports it.
    for (const resolve of this.#waiting.splice(0)) resolve(this.#end);
  }

  async next() {
    if (this.#values.length) return { value: this.#values.shift(), done: false };
    return this.#end ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  async return(value) {
    this.leave(this);
    this.#values = [];
    this.#end = undefined;
    this.end();
    return { done: true, value };
  }
}

class Handle {
  onError;
  state = "loading";
  error;

  #client;
  #wire;
  #held;
  #outlets = new Set();

  constructor(client, definition) {
    this.#client = client;
    this._definition = definition;
    // A query that is wanted once ends here too, so that it is not repeated after an interruption.
    this._isOnce = definition.once;
    this.#wire = client._acquire(definition, this);
  }

  // Holds a query that another one of a set replaces. If that one is refused, this one goes on, and reports
  // what it missed.
  _suspend() {
    this.#held ??= [];
    this.#client._hold(this.#wire);
  }

  _resume() {
    const held = this.#held;
    this.#held = undefined;
    this.#client._hold(this.#wire);
    for (const act of held) act();
  }

  get _isHeld() {
    return this.#held !== undefined;
  }

  _hear(act) {
    if (this.#held) this.#held.push(act);
    else act();
  }

  close() {
    if (this.state === "ended") return;
    this.#client._release(this.#wire, this);
    this._fail();
  }

  get _id() {
    return this.#wire.id;
  }

  get _me() {
    return this.#client.welcome?.userRecordName;
  }

  _fail(error) {
    if (this.state === "ended") return;
    this.state = "ended";
    this.error = error;
    for (const outlet of this.#outlets) outlet.end(error);
    if (error) guard(() => this.onError?.(error));
  }

  _join() {}

  // A handle that is closed within a callback reports nothing more.
  _tell(act) {
    if (this.state !== "ended") guard(act);
  }

  _push(kind, value) {
    for (const outlet of this.#outlets) if (outlet.kind === kind) outlet.push(value);
  }

  _iterate(kind, most, first) {
    const outlet = new Outlet(kind, most, (its) => this.#outlets.delete(its));
    this.#outlets.add(outlet);
    if (first !== undefined) outlet.push(first);
    if (this.state === "ended") outlet.end(this.error);
    return outlet;
  }
}

const mostWaiting = 10_000;

class LiveResults extends Handle {
  onItems;
  onValue;
  records = [];
  isFilling = false;

  [Symbol.asyncIterator]() {
    return this._iterate("value", 1, this.state === "live" ? this.records : undefined);
  }

  items() {
    return this._iterate("items", mostWaiting, this.state === "live" ? this.#additions(this.records) : undefined);
  }

  // To a reader that joins late, existing records count as added.
  #additions(records) {
    return additions(records, this._me, this._definition);
  }

  _deliver({ items, records, isFilling }) {
    if (this.state === "ended") return;
    const isFirst = this.state === "loading";
    if (isFirst) items = this.#additions(records);
    Object.assign(this, { state: "live", records, isFilling });
    if (items.length) this._tell(() => this.onItems?.(items, records));
    if (items.length || isFirst) this._tell(() => this.onValue?.(records));
    if (items.length) this._push("items", items);
    this._push("value", records);
    if (this._isOnce) this.close();
  }
}

class LiveChanges extends Handle {
  onChange;
  onGap;

  [Symbol.asyncIterator]() {
    return this._iterate("change", mostWaiting);
  }

  _deliver({ changes }) {
    if (this.state === "ended") return;
    this.state = "live";
    for (const change of changes) {
      this._tell(() => (change.gap ? this.onGap?.(change.gap) : this.onChange?.(change)));
      this._push("change", change);
      if (this._isOnce && !change.gap) return this.close();
    }
  }
}

class LiveNotifications extends Handle {
  onNotification;
  onGap;
  syncToken;
  #isJoined = false;

  [Symbol.asyncIterator]() {
    return this._iterate("notification", mostWaiting);
  }

  _deliver() {
    if (this.state === "loading") this.state = "live";
  }

  _join(told) {
    this.#isJoined = true;
    for (const one of told) this._notify(one);
  }

  _notify({ notification, syncToken, gap }) {
    if (this.state === "ended" || !this.#isJoined) return;
    this.syncToken = syncToken ?? this.syncToken;
    guard(() => (gap ? this.onGap?.(gap) : this.onNotification?.(notification, syncToken)));
    this._push("notification", gap ? { gap } : notification);
  }
}

const kinds = { result: LiveResults, changes: LiveChanges, notifications: LiveNotifications };

// Named queries, whose updates are applied completely or not at all.
class LiveSet {
  onState;
  state = "pending";
  errors = {};

  #client;
  #handles = new Map();
  // The queries by name; equal queries have equal texts.
  #texts = new Map();
  #good = new Map(); // As last accepted.
  // The handles of accepted queries whose replacements are not accepted yet.
  #former = new Map();
  #waiters = new Set();

  constructor(client) {
    this.#client = client;
  }

  get names() {
    return [...this.#alive(this.#texts).keys()];
  }

  // Returns the queries that have not ended; the names of others are free.
  #alive(texts) {
    const isOver = (name) => this.#handles.get(name)?.state === "ended";
    return new Map([...texts].filter(([name, text]) => text !== this.#texts.get(name) || !isOver(name)));
  }

  named(name) {
    return this.#handles.get(name);
  }

  add(name, query) {
    return this.update((editor) => editor.add(name, query));
  }

  remove(name) {
    return this.update((editor) => editor.remove(name));
  }

  update(edit) {
    try {
      this.#edit(edit);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.waitForComplete();
  }

  #edit(edit) {
    const next = this.#alive(this.#texts);
    const textOf = ({ kind = "result", ...query }) => {
      if (Object.hasOwn(kinds, kind)) return JSON.stringify(definition(kind, query));
      throw new LiveError({
        serverErrorCode: "BAD_REQUEST", reason: `kind: "${kind}" is none of ${Object.keys(kinds)}`,
      });
    };
    edit({
      // A query without a name is named by its text, so that adding it again changes nothing.
      add(name, query) {
        const text = textOf(query ?? name);
        if (!query) name = text;
        if ((next.get(name) ?? text) !== text) {
          throw new LiveError({
            serverErrorCode: "EXISTS", liveError: "duplicateQuery", reason: `"${name}" is another query`,
          });
        }
        next.set(name, text);
      },
      put: (name, query) => void next.set(name, textOf(query)),
      remove: (name) => next.delete(name),
      removeAll(recordType) {
        for (const [name, text] of next) {
          if (!recordType || JSON.parse(text).recordType === recordType) next.delete(name);
        }
      },
    });
    this.errors = {};
    this.state = undefined;
    this.#take(next);
  }

  waitForComplete({ timeout } = {}) {
    let waiter, timer;
    const promise = new Promise((resolve, reject) => {
      if (this.state === "complete") return resolve();
      if (this.state === "error") return reject(Object.values(this.errors)[0]);
      const { state, error } = this.#client.connection;
      if (state === "closed") return reject(new LiveError(error ?? closed));
      waiter = { resolve, reject, texts: this.#texts };
      this.#waiters.add(waiter);
      const reason = `not complete in ${timeout} ms`;
      timer = later(() => reject(new LiveError({ liveError: "timeout", reason })), timeout);
    });
    const forget = () => {
      clearTimeout(timer);
      this.#waiters.delete(waiter);
    };
    // A caller that does not wait is informed by `onState`.
    promise.then(forget, forget);
    this._connection(this.#client.connection);
    return promise;
  }

  #take(next) {
    this.#good = this.#alive(this.#good);
    // If an update may be refused, handles that would end are held until that is known.
    const isSure = this.#isGood(next);
    if (isSure) this.#good = next;
    for (const [name, handle] of this.#handles) {
      if (next.get(name) === this.#texts.get(name) && handle.state !== "ended") continue;
      this.#handles.delete(name);
      const isGood = this.#good.get(name) === this.#texts.get(name);
      // It suspends at once, but closes later: the set would be complete until then.
      handle._suspend();
      if (!isGood || isSure || handle.state === "ended") handle.close();
      else this.#former.set(name, handle);
    }
    for (const [name, text] of next) {
      if (this.#handles.has(name)) continue;
      const former = this.#former.get(name);
      if (former && former.state !== "ended" && text === this.#good.get(name)) {
        this.#former.delete(name);
        former._resume();
        this.#handles.set(name, former);
        continue;
      }
      const its = JSON.parse(text);
      this.#handles.set(name, new kinds[its.kind](this.#client, its));
    }
    this.#texts = next;
  }

  #isGood(texts) {
    return [...texts].every(([name, text]) => this.#good.get(name) === text);
  }

  // A later refusal takes nothing back that the relay has accepted, even before it is complete.
  _taken({ ids }) {
    for (const [name, handle] of this.#former) {
      if (ids.has(handle._id)) continue;
      handle.close();
      this.#former.delete(name);
      if (!this.#texts.has(name)) this.#good.delete(name);
    }
    for (const [name, handle] of this.#handles) {
      if (ids.has(handle._id)) this.#good.set(name, this.#texts.get(name));
    }
  }

  #show(state) {
    if (state === this.state) return;
    this.state = state;
    guard(() => this.onState?.(state));
  }

  _connection({ state, error }) {
    if (this.state !== "error") this.#show({ current: "complete", catchingUp: "bootstrapping" }[state] ?? "pending");
    if (state === "closed") {
      const reason = new LiveError(error ?? closed);
      for (const handle of this.#former.values()) handle._fail(reason);
      for (const waiter of this.#waiters) waiter.reject(reason);
    }
    // An empty set cannot be refused, and does not need a connection.
    if (state !== "current" && (state !== "offline" || this.names.length)) return;
    for (const handle of this.#former.values()) handle.close();
    this.#former.clear();
    this.#good = this.#texts;
    for (const waiter of this.#waiters) waiter.resolve();
  }

  // The previous version stays in force, so later edits are taken back.
  _refused({ errors, isConflict }) {
    if (isConflict) return this.#show("superseded");
    const refused = [...this.#handles].filter(([, handle]) => errors[handle._id]);
    if (!refused.length) return;
    this.errors = Object.fromEntries(refused.map(([name, handle]) => [name, new LiveError(errors[handle._id])]));
    this.#take(this.#alive(this.#good));
    this.#show("error");
    for (const waiter of this.#waiters) {
      if (!this.#isGood(waiter.texts)) waiter.reject(Object.values(this.errors)[0]);
    }
  }
}
