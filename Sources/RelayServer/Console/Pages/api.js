// The calls of the console to the relay. They use the public HTTP interface only.
import { parseJSON, toJSON } from "./text.js";

/** A refusal of the relay, with its reason and code. */
export class Refusal extends Error {
  constructor(status, answer, requestID) {
    super(answer?.reason ?? `the relay answered ${status}`);
    this.status = status;
    this.code = answer?.serverErrorCode;
    this.requestID = answer?.uuid ?? requestID;
    this.retryAfter = answer?.retryAfter;
    this.answer = answer ?? {};
  }
}

/** The error for a relay that cannot be reached. */
export class Unreachable extends Error {}

/** Makes the calls of one console. */
export class Relay {
  /** Called when a call finds that the session has ended. */
  onSignedOut = () => {};

  get(path, query, signal) {
    return this.call("GET", path, { query, signal });
  }

  post(path, body, signal) {
    return this.call("POST", path, { body, signal });
  }

  /** Makes one call; returns the relay's answer, or throws `Refusal` or `Unreachable`. */
  async call(method, path, { query, body, signal, token } = {}) {
    // Browsers resolve a path segment "." or "..", even an escaped one, so the call would go to another path.
    if (/\/\.{1,2}(\/|$)/.test(path)) throw new Error("A browser cannot request something whose name is “.” or “..”. Use the command belfry for that.");
    const headers = {};
    // The relay requires this header field, because pages of other sites cannot send it.
    if (method !== "GET") headers["X-Belfry-Console"] = "1";
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (token !== undefined) headers.Authorization = `Bearer ${token}`;
    const kept = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
    const target = kept.length ? `${path}?${new URLSearchParams(kept)}` : path;
    let response;
    let text;
    try {
      response = await fetch(target, {
        method, headers, signal, body: body === undefined ? undefined : typeof body === "string" ? body : toJSON(body),
      });
      text = await response.text();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable("The relay does not answer. It may be restarting, or the connection to it may be interrupted.");
    }
    let answer;
    try {
      answer = text ? parseJSON(text) : {};
    } catch {
      answer = undefined;
    }
    const requestID = response.headers.get("X-Apple-Request-UUID");
    if (!response.ok) {
      const refusal = new Refusal(response.status, answer, requestID);
      if (response.status === 401 && token === undefined) this.onSignedOut(refusal);
      throw refusal;
    }
    if (answer === undefined) throw new Refusal(response.status, { reason: "the relay's answer is not JSON" }, requestID);
    return answer;
  }

  /**
   * Returns the session after an address with a code was opened: the current session if there is one, else a new one by the code.
   *
   * An attacker could send such an address to make a user work in the attacker's session, so the code does not replace a session.
   */
  async enter(code) {
    try {
      return await this.call("GET", "/admin/1/session");
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    return this.call("POST", "/admin/1/session", { token: code });
  }

  /** Reads a list page by page: `rows` and `hasMore` are those of the first page, and `more` reads the next one. */
  async list(path, query, member, signal) {
    let place = {};
    const page = async () => {
      for (;;) {
        const answer = await this.get(path, { limit: 1000, ...query, ...place }, signal);
        // A list continues with older rows (`before`) or newer ones (`after`), depending on its order.
        place = answer.before !== undefined ? { before: answer.before } : { after: answer.after };
        const hasMore = (answer.before ?? answer.after) !== undefined;
        // One call examines a limited number of rows. If none of them matches, later ones still may.
        if (answer[member].length || !hasMore) return { rows: answer[member], hasMore, answer };
      }
    };
    return { ...(await page()), more: page };
  }
}

/** Waits for `time` ms; rejects if the user leaves the page. */
export function pause(time, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, time);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("the page was left", "AbortError"));
    }, { once: true });
  });
}
