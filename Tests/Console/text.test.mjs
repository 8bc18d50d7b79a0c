import assert from "node:assert/strict";
import test from "node:test";
import {
  ago, brief, bytes, chunks, clock, count, counted, fits, followed, measure, milliseconds, parseJSON, pieces, quoted, rest, shorten, span,
  storeSize, taken, toCSV, toJSON, tokenStanding, visible, words,
} from "../../Sources/RelayServer/Console/Pages/text.js";

test("Characters that nobody sees have marks, and what stands around them stays", () => {
  assert.deepEqual(pieces("plain"), [{ text: "plain" }]);
  assert.deepEqual(pieces(""), []);
  assert.deepEqual(pieces("a\nb\u202Ec\u0000"), [{ text: "a" }, { mark: "↵" }, { text: "b" }, { mark: "U+202E" }, { text: "c" }, { mark: "U+0000" }]);
  assert.deepEqual(pieces("\u200f\u200f"), [{ mark: "U+200F" }, { mark: "U+200F" }]);
  assert.deepEqual(pieces("<img src=x onerror=alert(1)>"), [{ text: "<img src=x onerror=alert(1)>" }]);
  // A joiner is visible only where it joins something; elsewhere two different texts would look alike.
  for (const text of ["שלום 👩‍👩", "👩🏽‍🚀 🏳️‍🌈 🧑‍⚕️", "می\u200cخواهم", "क्\u200dष"]) assert.deepEqual(pieces(text), [{ text }]);
  assert.deepEqual(pieces("pay\u200dpal\u200c👩\u200d"), [{ text: "pay" }, { mark: "U+200D" }, { text: "pal" }, { mark: "U+200C" }, { text: "👩" }, { mark: "U+200D" }]);
});

test("Two names that look alike are told apart by their marks", () => {
  for (const [text, seen] of [["ann\u{e0041}", "annU+E0041"], ["ann\u3164", "annU+3164"], ["\uffa0\u1160", "U+FFA0U+1160"], ["a\u034fb", "aU+034Fb"], ["ann1\ufe0f", "ann1U+FE0F"], ["❤️\ufe0f", "❤️U+FE0F"],
    ["\u2800", "U+2800"], ["\ufff9", "U+FFF9"], ["a\u2028\u2066\u00ad\u180e\ufeff", "aU+2028U+2066U+00ADU+180EU+FEFF"]]) assert.equal(visible(text), seen);
  // A selector is visible only where it selects a form.
  for (const text of ["❤️ 1️⃣ ©︎", "葛\u{e0100}", "ᠠ\u180b", "⠓⠊\u2800⠽⠕⠥"]) assert.deepEqual(pieces(text), [{ text }]);
  for (const text of ["ann\u{e0041}", "\u{1d173}\u3164"]) {
    assert.match(toJSON(text), /^"[ -~]*"$/);
    assert.equal(JSON.parse(toJSON(text)), text);
  }
});

test("A long text loses its middle, and no half of a character stays", () => {
  assert.equal(shorten("short", 10), "short");
  assert.equal(shorten("x".repeat(10_000), 80).length, 80);
  for (let limit = 8; limit < 20; limit += 1) {
    const short = shorten("👩🎈".repeat(40), limit);
    assert.ok(short.length <= limit);
    assert.ok(short.isWellFormed(), short);
  }
});

test("Whole numbers stay exact, in and out", () => {
  const text = '{"a":9223372036854775807,"b":-12345678901234567890,"c":1.5,"d":"12345678901234567890","e":9007199254740991}';
  const value = parseJSON(text);
  if (typeof value.a === "bigint") assert.equal(toJSON(value), text);
  assert.equal(value.c, 1.5);
  assert.equal(value.d, "12345678901234567890");
  assert.equal(value.e, 9007199254740991);
});

test("JSON to read shows what turns the text around, and is the same JSON", () => {
  const value = { name: "a\u202Eb\u200Bc\nd", list: [1, "\u0007"] };
  const text = toJSON(value, 2);
  assert.ok(text.includes("\\u202e") && text.includes("\\u200b") && text.includes("\n  "));
  assert.deepEqual(JSON.parse(text), value);
  assert.deepEqual(JSON.parse(toJSON(value)), value);
});

test("A value in a few words", () => {
  assert.equal(brief("text"), "text");
  assert.equal(brief(undefined), "");
  assert.equal(brief({ a: [1] }), '{"a":[1]}');
});

test("A table as CSV, quoted where it must be, with no formula in it", () => {
  const columns = [{ title: "Name, all", value: (row) => row.name }, { title: "Number", value: (row) => row.number }];
  const rows = [{ name: 'say "hi"', number: -3 }, { name: "two\r\nlines", number: 0 }, { name: "=1+1", number: undefined }, { name: " space", number: null }, { name: "-x", number: { a: 1 } }];
  assert.equal(toCSV(columns, rows), '"Name, all",Number\r\n"say ""hi""",-3\r\n"two\r\nlines",0\r\n\'=1+1,\r\n" space",\r\n\'-x,"{""a"":1}"\r\n');
});

test("A word of a shell stays one word", () => {
  assert.equal(quoted("http://127.0.0.1:80/a"), "http://127.0.0.1:80/a");
  assert.equal(quoted("it's $HOME; `x`"), "'it'\\''s $HOME; `x`'");
  assert.equal(quoted(""), "''");
});

test("Numbers as people read them", () => {
  assert.deepEqual([0, 0.001, 0.04, 1.234, 12.3, 100, 1234.5, null, undefined].map(measure), ["0", "< 0.01", "0.04", "1.2", "12.3", "100", "1,235", "–", "–"]);
  assert.deepEqual([count(12345), count("x"), counted(1, "push"), counted(2, "delivery", "deliveries")], ["12,345", "–", "1 push", "2 deliveries"]);
  assert.deepEqual([bytes(12), bytes(2048), bytes(5 * 1024 ** 3)], ["12 bytes", "2 KiB", "5 GiB"]);
  assert.deepEqual([milliseconds(12.34), milliseconds(1500), milliseconds(null)], ["12.3 ms", "1.5 s", "–"]);
  assert.deepEqual([span(604_800), span(3600), span(90), span(0), span(7200)], ["7 days", "1 hour", "90 seconds", "0 seconds", "2 hours"]);
});

test("The room on a disk that nobody knows is no room of 0 bytes", () => {
  assert.equal(storeSize({ fileBytes: 2048, walBytes: 1024, freeBytes: 1024 ** 3 }), "3 KiB, 1 GiB free");
  assert.equal(storeSize({ fileBytes: 2048, walBytes: 0, freeBytes: 0 }), "2 KiB, 0 bytes free");
  assert.equal(storeSize({ fileBytes: 2048, walBytes: 0 }), "2 KiB");
});

test("How a database is followed has a word and a tone", () => {
  assert.deepEqual(followed({ state: "slotLost", verdict: "broken" }), { word: "slot lost", tone: "bad" });
  assert.deepEqual(followed({ state: "following", verdict: "well" }), { word: "following", tone: "good" });
  assert.deepEqual(followed({ state: "unheardOf", verdict: "unheardOf" }).tone, "note");
  assert.equal(followed(undefined), undefined);
});

test("A source is not added under the name of another", () => {
  assert.match(taken("shop", [{ name: "cms" }, { name: "shop" }]), /^A source shop already exists/);
  assert.equal(taken("shop", [{ name: "Shop" }]), undefined);
  assert.equal(taken("shop", []), undefined);
});

test("What is left out is of one subscription, or of one user", () => {
  assert.equal(rest(3, "subscription"), "3 other changes did not fire it and came less close.");
  assert.equal(rest(1, "change"), "1 other of the user's subscriptions did not fire and came less close.");
});

test("Moments as people say them", () => {
  const now = Date.parse("2026-11-24T12:00:00Z");
  assert.deepEqual(["2026-11-24T11:59:58Z", "2026-11-24T11:59:00Z", "2026-11-24T11:30:00Z", "2026-11-24T02:00:00Z", "2026-11-20T12:00:00Z", "2026-11-24T12:10:00Z"].map((moment) => ago(moment, now)),
    ["now", "60 s ago", "30 min ago", "10 h ago", "4 d ago", "in 10 min"]);
  assert.equal(ago("never", now), "");
  assert.match(clock("2026-11-24T12:00:00Z", new Date(now)), /^\d\d:00:00$/);
  assert.match(clock("2026-11-20T12:00:00Z", new Date(now)), /^2026-11-2\d \d\d:00:00$/);
  assert.equal(words("didNotFire"), "did not fire");
});

test("A token is good until it ends or is revoked", () => {
  const now = Date.parse("2026-11-25T12:00:00Z");
  assert.equal(tokenStanding({}, now), "good");
  assert.equal(tokenStanding({ endsAt: "2026-11-25T12:00:01Z" }, now), "good");
  assert.equal(tokenStanding({ endsAt: "2026-11-25T12:00:00Z" }, now), "ended");
  assert.equal(tokenStanding({ endsAt: "2026-11-25T12:00:00Z", revokedAt: "2026-11-24T12:00:00Z" }, now), "revoked");
});

test("An entry of the audit log fits words that stand anywhere in it", () => {
  const entry = { caller: "Dashboard", method: "DELETE", path: "/admin/1/tokens/7", status: 403 };
  for (const words of ["", "dash", "delete TOKENS", "403 dashboard"]) assert.ok(fits(entry, words), words);
  for (const words of ["dash 200", "undefined"]) assert.ok(!fits(entry, words), words);
  assert.ok(fits({ ...entry, status: undefined, code: "conflict" }, "conflict"));
});

test("A long list is taken in parts", () => {
  assert.deepEqual(chunks([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]);
  assert.deepEqual(chunks([], 2), []);
});
