#!/usr/bin/env python3
"""Restart with much to do: subscriptions to load, retries that are due, and a log that is not worked.

Measures how long a relay takes until /readyz answers 200 and until the first push, what it reports meanwhile, and
its memory. Then everything owed must arrive, each once. With --sample it is stopped after so many seconds instead,
and starts again from the snapshot that it left.

  python3 Tests/Campaigns/restart.py --subscriptions 1000000 --retries 500000 --log 500000
"""
import argparse, json, os, shutil, sqlite3, subprocess, sys, tempfile, time, uuid
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, memory, multiply, reseal

CHANGES = f"/changes/1/{CONTAINER}/development/database"


def furnish(relay):
    """Saves a subscription to be copied and another one that fires, and makes a retry as a pattern."""
    relay.furnish()
    relay.register("u0", "user0")
    relay.save("big", "user0", "kind == 'big'")
    relay.register("ordinary", "ordinary")
    relay.save("ordinary", "ordinary", "kind == 'ordinary'")
    status, answer = relay.call("POST", CHANGES, {
        "operation": "create", "recordType": "Artwork", "recordName": "first",
        "after": {"kind": "ordinary"}}, {"webhook-id": "first"})
    assert status == 200, answer
    end = time.monotonic() + PATIENCE
    while relay.overview()["retries"] != 1:
        assert time.monotonic() < end, "the pattern of a retry does not come"
        time.sleep(0.05)
    relay.kill()


def owe(path, retries, entries):
    """Writes due retries, and changes that have not been worked."""
    database = sqlite3.connect(path, isolation_level=None)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA cache_size = -400000")
    row = database.execute("SELECT * FROM retry").fetchone()
    body = json.loads(row["body"])
    old = str(uuid.UUID(bytes=row["deliveryID"]))
    text = row["body"]
    assert old in text or body, text
    columns = [name for name in row.keys() if name not in ("deliveryID", "body", "dueAt")]

    def copies():
        for number in range(retries):
            new = uuid.UUID(int=(0xB << 124) + number)
            yield [row[name] for name in columns] + [
                new.bytes, text.replace(old, str(new)), number]

    database.execute("BEGIN")
    database.executemany(
        f"INSERT INTO retry ({', '.join(json.dumps(name) for name in columns)}, deliveryID, body,"
        f" dueAt) VALUES ({', '.join('?' * (len(columns) + 3))})", copies())
    database.execute("UPDATE account SET owed = owed + ?", (retries,))
    entry = database.execute("SELECT * FROM logEntry WHERE kind = 1").fetchone()
    head, = database.execute("SELECT position FROM shardHead").fetchone()
    database.executemany(
        "INSERT INTO logEntry (position, container, appendedAt, kind, source, isStale, body)"
        " VALUES (?, ?, ?, 1, ?, 0, ?)", (
            (head + number, entry["container"], entry["appendedAt"], entry["source"],
             entry["body"].replace('"first"', f'"r{number}"'))
            for number in range(1, entries + 1)))
    database.execute("UPDATE shardHead SET position = position + ?", (entries,))
    database.execute("COMMIT")
    database.close()


def watch(relay, began):
    """Waits for /readyz; returns the seconds, and when it began to report what it was doing."""
    said, last = [], None
    while True:
        assert relay.process.poll() is None, "the relay ended"
        try:
            status, answer = relay.call("GET", "/readyz")
        except OSError:
            time.sleep(0.01)
            continue
        if status == 200:
            return {"readySeconds": round(time.monotonic() - began, 1), "said": said,
                    "memoryWhenReady": memory(relay.process)}
        assert status == 503, (status, answer)
        assert answer["reasons"], "it does not say what it is doing"
        doing = answer["reasons"].get("loading", answer["reasons"]["follower"])
        if doing.split(",")[0] != last:
            last = doing.split(",")[0]
            said.append([round(time.monotonic() - began, 1), last])
        time.sleep(0.05)


def accepted(relay):
    text = relay.call("GET", "/metrics", admin=True)[1]
    for line in text.split("\n"):
        if line.startswith('belfry_attempts_total{outcome="accepted"}'):
            return int(float(line.rsplit(" ", 1)[1]))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--retries", type=int, default=500_000)
    parser.add_argument("--log", type=int, default=500_000)
    parser.add_argument("--bound", type=float, default=3600, help="seconds until all has arrived")
    parser.add_argument("--sample", type=float, default=0,
                        help="stop after so many seconds instead, and tell how much was left")
    parser.add_argument("--binary")
    options = parser.parse_args()
    folder, belfry = tempfile.mkdtemp(prefix="belfry-restart-"), binary(options.binary)
    busy = Gateway(belfry, folder, {"rules": [{"answers": [
        {"do": "refuse", "status": 503, "reason": "ServiceUnavailable", "retryAfter": 60}]}]})
    relay = Relay(belfry, folder, busy.port, busy.ca)
    relay.start()
    furnish(relay)
    busy.stop()
    multiply(relay.database, "user0", options.subscriptions)
    owe(relay.database, options.retries, options.log)
    reseal(belfry, relay.database)
    gateway = Gateway(belfry, folder, prints=False)
    relay.gateway_port = gateway.port
    began = time.monotonic()
    relay.start(wait=False)
    result = {"fileMegabytes": os.path.getsize(relay.database) >> 20, **watch(relay, began)}
    while not accepted(relay):
        assert time.monotonic() - began < options.bound, "nothing is pushed"
        time.sleep(0.02)
    result["firstPushSeconds"] = round(time.monotonic() - began, 1)
    if options.sample:
        time.sleep(options.sample)
        view = relay.overview()
        result["left"] = {"log": int(view["behind"]), "retries": view["retries"]}
    else:
        relay.settled(options.bound)
        result["settledSeconds"] = round(time.monotonic() - began, 1)
    result["accepted"] = accepted(relay)
    result["memoryAfter"] = memory(relay.process)
    relay.stop()
    if options.sample:
        began = time.monotonic()
        relay.start(wait=False)
        result["fromSnapshot"] = watch(relay, began)
        relay.stop()
    gateway.stop()
    check = subprocess.run([belfry, "check", "--database", relay.database],
                           capture_output=True, text=True)
    print(json.dumps(result, indent=2))
    shutil.rmtree(folder)
    bad = []
    if check.returncode != 0:
        bad.append(f"check: {check.stdout}")
    # The pattern is due later than the time limit of a sample; otherwise it is one of the retries.
    if not options.sample and result["accepted"] != options.retries + options.log + 1:
        bad.append("not each once")
    sys.exit(f"NOT AS PROMISED: {', '.join(bad)}" if bad else print("as promised"))


if __name__ == "__main__":
    main()
