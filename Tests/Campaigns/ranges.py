#!/usr/bin/env python3
"""A huge fan-out beside ordinary changes: how late these are meanwhile, and what a kill -9 in it repeats.

  python3 Tests/Campaigns/ranges.py --subscriptions 5000
"""
import argparse, json, re, shutil, sys, tempfile, threading, time
from collections import Counter
from rig import (
    CONTAINER, PATIENCE, Gateway, Relay, binary, device_token, memory, multiply, pushes,
    reseal)

CHANGES = f"/changes/1/{CONTAINER}/development/database"
WINDOW, RANGE_WINDOW = 4096, 512


class Tail(threading.Thread):
    """Records when pushes of ordinary changes appear in the gateway's record."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.seen, self.stopping = path, {}, False

    def run(self):
        with open(self.path, errors="replace") as file:
            rest = ""
            while not self.stopping:
                # The text may end within a line.
                whole, _, rest = (rest + file.read()).rpartition("\n")
                for name in re.findall(r'"rid": ?"(ord-\d+)"', whole):
                    self.seen.setdefault(name, time.monotonic())
                time.sleep(0.001)


class Watch(threading.Thread):
    """Reads the overview once a second, as an operator would: what is left, and the relay's memory."""

    def __init__(self, relay, bound):
        super().__init__(daemon=True)
        self.relay, self.bound = relay, bound
        self.left, self.most, self.finished = [], 0, threading.Event()

    def run(self):
        end = time.monotonic() + self.bound
        while time.monotonic() < end:
            view = self.relay.overview()
            self.left.append(view["rangeSubscriptions"])
            self.most = max(self.most, memory(self.relay.process)[0])
            # The change itself is followed first; before that there are no ranges.
            if self.left[-1] == 0 and view["behind"] == "0":
                break
            time.sleep(1)
        self.finished.set()


def ordinary(relay, first, posted, finished, pause=0.05):
    """Posts an ordinary change now and then until `finished` says so; returns the next number."""
    number = first
    while not finished(number - first):
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


def furnish(relay, count, bound):
    relay.furnish()
    relay.register("ordinary", "ordinary")
    relay.save("ordinary", "ordinary", "kind == 'ordinary'")

    relay.register("u0", "user0")
    status, answer = relay.save("big", "user0", "kind == 'big'")
    assert status == 200, answer
    relay.settled(PATIENCE)
    relay.stop()
    multiply(relay.database, "user0", count)
    reseal(relay.belfry, relay.database)
    relay.start(wait=False)
    relay.ready(bound)


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
    furnish(relay, options.subscriptions, options.bound)
    tail, posted = Tail(gateway.record), {}
    tail.start()
    idle = memory(relay.process)
    enough = lambda count: count >= 200
    before = ordinary(relay, 0, posted, enough)
    watch = Watch(relay, options.bound)
    began = time.monotonic()
    big(relay, "big-1")
    watch.start()
    during = ordinary(relay, before, posted, lambda _: watch.finished.is_set())
    took = time.monotonic() - began
    relay.settled(options.bound)
    after = ordinary(relay, during, posted, enough)
    rss = {"idle": idle, "mostDuring": watch.most}
    big(relay, "big-2")
    end = time.monotonic() + options.bound
    while relay.overview()["rangeSubscriptions"] not in range(1, options.subscriptions * 3 // 4):
        if time.monotonic() > end:
            raise SystemExit("the second fan-out does not get to its middle")
        time.sleep(0.05)
    relay.kill()
    began_again = time.monotonic()
    relay.start(wait=False)
    if not relay.ready(options.bound):
        raise SystemExit("the relay did not start again: see relay.log")
    ready = time.monotonic() - began_again
    relay.settled(options.bound)
    rss["afterKill"] = memory(relay.process)
    relay.stop()
    gateway.stop()
    tail.stopping = True
    wanted = {device_token(f"u{user}") for user in range(options.subscriptions)}
    result, bad = {"subscriptions": options.subscriptions, "fanoutSeconds": round(took, 1),
                   "perSecond": round(options.subscriptions / took)}, []
    for name in ("big-1", "big-2"):
        got, ids, others = Counter(), {}, 0
        for push in pushes(gateway.record):
            if push["record"] == name and push["accepted"]:
                got[push["token"]] += 1
                others += ids.setdefault(push["token"], push["id"]) != push["id"]
        repeated = sum(got.values()) - len(got)
        result[name] = {"missing": len(wanted - set(got)), "repeated": repeated,
                        "otherIDs": others}
        if wanted - set(got) or others or repeated > RANGE_WINDOW:
            bad.append(name)
    spans = {"before": range(before), "during": range(before, during),
             "after": range(during, after)}
    late = {name: delays([f"ord-{n}" for n in span], posted, tail.seen)
            for name, span in spans.items()}
    result["ordinaryMilliseconds"] = late
    if late["during"]["changes"] != len(spans["during"]):
        bad.append("ordinary changes were not pushed")
    # The machine does other things too, perhaps more during the fan-out than before.
    elif late["during"]["p50"] > 2 * max(late["before"]["p50"], late["after"]["p50"]) + 10:
        bad.append("ordinary changes take more than twice as long")
    result["readyAfterKillSeconds"] = round(ready, 1)
    result["memoryMegabytes"] = rss
    steps = max(1, len(watch.left) // 8)
    result["progressSeen"] = watch.left[::steps]
    print(json.dumps(result, indent=2))
    shutil.rmtree(folder)
    sys.exit(f"NOT AS PROMISED: {', '.join(bad)}" if bad else print("as promised"))


if __name__ == "__main__":
    main()
