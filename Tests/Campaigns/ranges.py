#!/usr/bin/env python3
"""A huge fan-out beside ordinary changes: how long those take before and during it, and what a
kill -9 in its middle repeats.

  python3 Tests/Campaigns/ranges.py --subscriptions 5000
"""
import argparse, json, os, re, shutil, sys, tempfile, threading, time
from collections import Counter
from house import (
    CONTAINER, PATIENCE, Gateway, Relay, binary, device_token, memory, multiply, pushes)

CHANGES = f"/changes/1/{CONTAINER}/development/database"
WINDOW, RANGE_WINDOW = 4096, 512


class Tail(threading.Thread):
    """Notes when pushes of ordinary changes appear in the gateway's record."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.seen, self.stopping = path, {}, False

    def run(self):
        with open(self.path, errors="replace") as file:
            while not self.stopping:
                for name in re.findall(r'"rid": ?"(ord-\d+)"', file.read()):
                    self.seen.setdefault(name, time.monotonic())
                time.sleep(0.001)


def ordinary(relay, first, count, posted, pause=0.02, while_=lambda: True):
    number = first
    while number < first + count and while_():
        name = f"ord-{number}"
        posted[name] = time.monotonic()
        status, answer = relay.call("POST", CHANGES, {
            "operation": "create", "recordType": "Artwork", "recordName": name,
            "after": {"kind": "ordinary"}}, {"webhook-id": name})
        assert status == 200, answer
        number += 1
        time.sleep(pause)
    return number


def delays(names, posted, seen):
    found = sorted((seen[name] - posted[name]) * 1000 for name in names if name in seen)
    return {"changes": len(found), "p50": round(found[len(found) // 2], 1),
            "p99": round(found[int(len(found) * 0.99)], 1)} if found else {"changes": 0}


def furnish(relay, count):
    relay.furnish()
    relay.register("ordinary", "ordinary")
    relay.save("ordinary", "ordinary", "kind == 'ordinary'")

    relay.register("u0", "user0")
    status, answer = relay.save("big", "user0", "kind == 'big'")
    assert status == 200, answer
    relay.settled(PATIENCE)
    relay.stop()
    multiply(relay.database, "user0", count)
    relay.start()


def big(relay, name):
    status, answer = relay.call("POST", CHANGES, {
        "operation": "create", "recordType": "Artwork", "recordName": name,
        "after": {"kind": "big"}}, {"webhook-id": name})
    assert status == 200, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--subscriptions", type=int, default=5000)
    parser.add_argument("--bound", type=float, default=1800, help="seconds for each fan-out")
    parser.add_argument("--binary")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="belfry-ranges-")
    gateway = Gateway(binary(options.binary), folder)
    relay = Relay(binary(options.binary), folder, gateway.port, gateway.ca,
                  {"fanout-range-threshold": max(1, options.subscriptions // 10)})
    relay.start()
    furnish(relay, options.subscriptions)
    tail, posted = Tail(gateway.record), {}
    tail.start()
    idle = memory(relay.process)
    before = ordinary(relay, 0, 200, posted)
    began = time.monotonic()
    big(relay, "big-1")
    seen_progress = []

    def running():
        left = relay.overview()["rangeSubscriptions"]
        seen_progress.append(left)
        return left > 0 or time.monotonic() - began < 0.5

    during = ordinary(relay, before, 10_000, posted, 0.02, running)
    took = time.monotonic() - began
    relay.settled(options.bound)
    rss = {"idle": idle, "withAll": memory(relay.process)}
    big(relay, "big-2")
    while relay.overview()["rangeSubscriptions"] not in range(1, options.subscriptions * 3 // 4):
        time.sleep(0.001)
    relay.kill()
    began_again = time.monotonic()
    relay.start()
    ready = time.monotonic() - began_again
    relay.settled(options.bound)
    rss["afterKill"] = memory(relay.process)
    relay.stop()
    gateway.stop()
    tail.stopping = True
    wanted = {device_token(f"u{user}") for user in range(options.subscriptions)}
    result, bad = {"subscriptions": options.subscriptions, "fanoutSeconds": round(took, 1)}, []
    for name in ("big-1", "big-2"):
        got, ids = Counter(), {}
        for push in pushes(gateway.record):
            if push["record"] == name and push["accepted"]:
                got[push["token"]] += 1
                ids.setdefault(push["token"], set()).add(push["id"])
        repeated = sum(got.values()) - len(got)
        result[name] = {"missing": len(wanted - set(got)), "repeated": repeated,
                        "otherIDs": sum(len(each) > 1 for each in ids.values())}
        if wanted - set(got) or result[name]["otherIDs"] or repeated > RANGE_WINDOW:
            bad.append(name)
    result["ordinaryMilliseconds"] = {
        "before": delays([f"ord-{n}" for n in range(before)], posted, tail.seen),
        "during": delays([f"ord-{n}" for n in range(before, during)], posted, tail.seen)}
    result["readyAfterKillSeconds"] = round(ready, 1)
    result["memoryMegabytes"] = rss
    result["progressSeen"] = sorted(set(seen_progress), reverse=True)[:8]
    print(json.dumps(result, indent=2))
    shutil.rmtree(folder)
    sys.exit(f"NOT AS PROMISED: {', '.join(bad)}" if bad else print("as promised"))


if __name__ == "__main__":
    main()
