// What the console asks of the relay: its public HTTP interface, and nothing else.
import { parseJSON, toJSON } from "./text.js";

/** What the relay refused, in its own words. */
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

/** The relay cannot be reached. */
export class Unreachable extends Error {}

/** The calls of one console. */
export class Relay {
  /** Is told when a call finds that nobody is signed in any more. */
  onSignedOut = () => {};

  get(path, query, signal) {
    return this.call("GET", path, { query, signal });
  }

  post(path, body, signal) {
    return this.call("POST", path, { body, signal });
  }

  /** One call; answers what the relay answered, or throws `Refusal` or `Unreachable`. */
  async call(method, path, { query, body, signal, token } = {}) {
    // As a part of a path browsers take these names for a way to other calls, also where they are escaped.
    if (/\/\.{1,2}(\/|$)/.test(path)) throw new Error("A browser cannot ask for something whose name is one dot or two. The command belfry can.");
    const headers = {};
    // The relay asks for it, because no other site's page can send it.
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
      throw new Unreachable("The relay does not answer. It may be starting anew, or the way to it is cut.");
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
   * Who is signed in once an address with a code was opened: whoever is already, or else whom the code names.
   * Others may make such an address, and send it, to have somebody work as somebody else.
   */
  async enter(code) {
    try {
      return await this.call("GET", "/admin/1/session");
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    return this.call("POST", "/admin/1/session", { token: code });
  }

  /** A list, page by page: `rows` and `hasMore` of the first, and `more` for the next. */
  async list(path, query, member, signal) {
    let place = {};
    const page = async () => {
      for (;;) {
        const answer = await this.get(path, { limit: 1000, ...query, ...place }, signal);
        // A list goes on towards the older (`before`) or the newer (`after`), as it is ordered.
        place = answer.before !== undefined ? { before: answer.before } : { after: answer.after };
        const hasMore = (answer.before ?? answer.after) !== undefined;
        // One call looks at so many rows and no more: that none of those fits does not say that none does.
        if (answer[member].length || !hasMore) return { rows: answer[member], hasMore, answer };
      }
    };
    return { ...(await page()), more: page };
  }
}

/** Waits, unless the page is left. */
export function pause(time, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, time);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("the page was left", "AbortError"));
    }, { once: true });
  });
}
