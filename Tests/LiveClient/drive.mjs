// Drives the live client's state machine through transcripts, without a clock, randomness or a socket.
import assert from "node:assert/strict";
import { LiveMachine } from "./client.mjs";

export const definition = { kind: "result", recordType: "Art", sortBy: [{ fieldName: "price" }] };
export const watching = { kind: "changes", recordType: "Art" };

export const art = (recordName, price, recordChangeTag = `${recordName}${price}`) => ({
  recordName, recordType: "Art", fields: { price }, recordChangeTag,
});

export const welcome = { type: "welcome", userRecordName: "_ann", mine: "me", heartbeat: 25 };
export const state = (version, state, queries, more = {}) => ({ type: "state", version, state, queries, ...more });
export const at = (token) => ({ type: "at", at: token });
export const result = (group, records, more = {}) =>
  ({ type: "result", group, part: 0, isLast: true, records, ...more });
export const told = (id, group, isResumed = false) => ({ id, group, fingerprint: `f-${id}`, isResumed });

/** A client whose time the test advances. */
export class Drive {
  now = 0;
  random = 0.5;
  said = [];

  constructor(options = {}) {
    this.machine = new LiveMachine({ greeting: { ckAPIToken: "k" }, random: () => this.random, ...options });
  }

  /** Hands in an event, and the edits that it leads to, as the shell does; returns the effects. */
  step(type, event = {}) {
    let effects = this.machine.handle({ type, ...event }, this.now);
    const all = [...effects];
    while (effects.some((effect) => effect.do === "flush")) {
      effects = this.machine.handle({ type: "flush" }, this.now);
      all.push(...effects);
    }
    const last = all.filter((effect) => effect.do === "connection").at(-1);
    if (last) this.said.push(last.connection.state);
    return all.filter((effect) => effect.do !== "flush" && effect.do !== "connection");
  }

  frames(...frames) {
    return this.step("frames", { frames });
  }

  /** Advances the time; the timer fires when the machine wants it to. */
  pass(milliseconds) {
    const end = this.now + milliseconds;
    const all = [];
    while (this.machine.wakeAt <= end) {
      this.now = Math.max(this.now, this.machine.wakeAt);
      all.push(...this.step("tick"));
    }
    this.now = end;
    return all;
  }

  /** Advances the time to the next connection attempt. */
  retry() {
    return this.pass(this.machine.connection.retryAt - this.now);
  }

  get state() {
    return this.machine.connection.state;
  }

  /** A client with a query whose result of three records is complete as of `t1`. */
  static current(options) {
    const drive = new Drive(options);
    drive.step("declare", { id: "q1", definition });
    drive.step("opened");
    drive.frames(
      welcome, state(1, "bootstrapping", [told("q1", 7)]), result(7, [art("a", 1), art("b", 2), art("c", 3)]),
      state(1, "complete"), at("t1"));
    assert.equal(drive.state, "current");
    return drive;
  }
}

export const sent = (effects) => effects.filter((effect) => effect.do === "send").map((effect) => effect.frame);
export const delivered = (effects, id = "q1") =>
  effects.filter((effect) => effect.do === "deliver" && effect.id === id);
export const names = (effects, id) => delivered(effects, id).at(-1)?.records.map((record) => record.recordName);
export const opened = (effects) => effects.find((effect) => effect.do === "open");
