#!/usr/bin/env python3
"""How long `explain` takes over HTTP with many subscriptions, for each way to ask.

Each way is called repeatedly, on a relay with as many subscriptions as users. The answers are checked, and the
medians and p99 are printed. With --bound the exit code is 1 if a p99 is above it.

  python3 Tests/Campaigns/explain.py --subscriptions 1000000 --bound 50
"""
import argparse, json, shutil, statistics, sys, tempfile, time, urllib.parse
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, multiply, reseal

CHANGES = f"/changes/1/{CONTAINER}/development/database"
EXPLAIN = f"/admin/1/containers/{CONTAINER}/development/explain"


def furnish(relay, subscriptions):
    """Creates many users with the same condition, which holds for one record only, and one more user."""
    relay.furnish()
    relay.register("u0", "user0")
    status, answer = relay.save("big", "user0", "kind == 'big' AND price < 100")
    assert status == 200, answer
    relay.stop()
    multiply(relay.database, "user0", subscriptions)
    reseal(relay.belfry, relay.database)
    relay.start()
    relay.register("phone", "ann")
    status, answer = relay.save("cheap", "ann", "kind == 'print' AND price < 100")
    assert status == 200, answer


def post(relay, name, **fields):
    answer = relay.expect(200, "POST", CHANGES, {
        "operation": "create", "recordType": "Artwork", "recordName": name, "after": fields})
    return int(answer["results"][0]["position"])


def ask(relay, **question):
    began = time.perf_counter()
    answer = relay.expect(
        200, "GET", f"{EXPLAIN}?{urllib.parse.urlencode(question)}", admin=True)
    return (time.perf_counter() - began) * 1000, answer


def delivery(relay, position):
    """Returns the `apns-id` of the push that a change owed to ann."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        _, answer = ask(relay, position=position, user="ann", subscription="cheap",
                        database="public")
        for explanation in answer["explanations"]:
            for device in explanation.get("devices", []):
                if device.get("deliveryID") and device["standing"] == "delivered":
                    return device["deliveryID"]
        time.sleep(0.1)
    raise SystemExit(f"no delivery is told: {json.dumps(answer)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=20_000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--bound", type=float, help="milliseconds that no p99 may exceed")
    parser.add_argument("--binary")
    options = parser.parse_args()
    folder, belfry = tempfile.mkdtemp(prefix="belfry-explain-"), binary(options.binary)
    gateway = Gateway(belfry, folder, prints=False)
    relay = Relay(belfry, folder, gateway.port, gateway.ca)
    relay.start()
    furnish(relay, options.subscriptions)
    for first in range(0, options.changes, 500):
        relay.expect(200, "POST", CHANGES, [
            {"operation": "create", "recordType": "Artwork", "recordName": f"a{number}",
             "after": {"kind": "print", "price": 100 + number % 900}}
            for number in range(first, min(first + 500, options.changes))])
    missed = post(relay, "dear", kind="print", price=120)
    fired = post(relay, "cheap", kind="print", price=80)
    relay.settled(PATIENCE)
    ways = {
        "a change and a subscription": dict(
            position=missed, user="ann", subscription="cheap", database="public"),
        "a change and a user": dict(position=missed, user="user7"),
        "a record and a user": dict(recordType="Artwork", recordName="dear", user="ann"),
        "a change and a device": dict(position=fired, user="ann", device="phone"),
        "a delivery": dict(delivery=delivery(relay, fired)),
        "a subscription alone": dict(user="ann", subscription="cheap", database="public"),
    }
    late = []
    for way, question in ways.items():
        ask(relay, **question)
        times, answer = [], None
        for _ in range(options.calls):
            took, answer = ask(relay, **question)
            times.append(took)
        times.sort()
        p99 = times[int(len(times) * 0.99)]
        verdicts = sorted({one["verdict"] for one in answer["explanations"]})
        assert verdicts, answer
        print(f"{way}: p50 {statistics.median(times):.1f} ms, p99 {p99:.1f} ms,"
              f" {len(answer['explanations'])} explained, {', '.join(verdicts)}")
        if options.bound and p99 > options.bound:
            late.append(way)
    relay.stop()
    gateway.stop()
    shutil.rmtree(folder)
    if late:
        sys.exit(f"above {options.bound} ms: {', '.join(late)}")


if __name__ == "__main__":
    main()
