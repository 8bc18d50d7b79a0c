#!/usr/bin/env python3
"""Load: a mixture of changes, saves and deletions for some time, then more than can be settled.

Memory must not grow with time, and the write-ahead log must stay bounded. Then changes come three
times as fast as the gateway takes pushes, until the relay refuses with 503 and the bound's name;
when they stop it must take changes again by itself, and everything acknowledged must arrive.

  python3 Tests/Campaigns/load.py --seconds 600
"""
import argparse, http.client, json, os, random, re, shutil, sys, tempfile, threading, time
from collections import Counter
from house import CONTAINER, Gateway, Relay, binary, exchange, user_token

CHANGES = f"/changes/1/{CONTAINER}/development/database"
LAG = 3000


def change(name):
    return {"operation": "create", "recordType": "Artwork", "recordName": name,
            "after": {"artist": f"artist-{hash(name) % 50}", "text": "x" * 300}}


class Metrics(threading.Thread):
    """Looks at the relay's metrics every second."""

    def __init__(self, relay):
        super().__init__(daemon=True)
        self.relay, self.samples, self.stopping = relay, [], False

    def run(self):
        while not self.stopping:
            try:
                text = self.relay.call("GET", "/metrics")[1]
                found = dict(re.findall(r"^(belfry_[a-z_]+) ([0-9.e+-]+)$", text, re.M))
                self.samples.append({
                    "at": time.monotonic(),
                    "rss": float(found.get("belfry_process_resident_bytes", 0)),
                    "wal": float(found.get("belfry_storage_wal_bytes", 0)),
                    "lag": float(found.get("belfry_log_lag_entries", 0)),
                    "difference": float(found.get("belfry_conservation_difference", 0))})
            except OSError:
                pass
            time.sleep(1)


def work(relay, number, until, pause, statuses, batch, extras):
    connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=30)
    generator = random.Random(number)
    count = 0
    while time.monotonic() < until:
        names = [f"{extras}{number}-{count}-{index}" for index in range(batch)]
        count += 1
        try:
            status, answer = exchange(
                connection, "POST", CHANGES, [change(name) for name in names],
                {"webhook-id": names[0]})
        except OSError:
            statuses["closed"] += 1
            connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=30)
            continue
        bound = answer.get("bound") if isinstance(answer, dict) else None
        statuses[f"{status} {bound}" if bound else str(status)] += 1
        if status == 200:
            statuses["taken"] += batch
        elif not (isinstance(answer, dict) and "retryAfterHeader" in answer):
            statuses["refused without Retry-After"] += 1
        if generator.random() < 0.02:
            user = f"user{generator.randrange(200)}"
            relay.save(f"s{count}", user, f"artist == 'artist-{generator.randrange(50)}'")
        if pause:
            time.sleep(pause)


def several(relay, threads, seconds, pause, batch, extras):
    statuses = Counter()
    until = time.monotonic() + seconds
    workers = [threading.Thread(
        target=work, args=(relay, number, until, pause, statuses, batch, extras))
        for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return statuses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--overload", type=float, default=20)
    parser.add_argument("--binary")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="belfry-load-")
    belfry = binary(options.binary)
    gateway = Gateway(belfry, folder, {"rules": [{"answers": [
        {"do": "accept", "delayMilliseconds": [2, 20]}]}]}, prints=False)
    relay = Relay(belfry, folder, gateway.port, gateway.ca, {
        "bounds-log-lag": LAG, "storage-wal-megabytes": 16, "delivery-in-flight": 256})
    relay.start()
    relay.furnish()
    for user in range(200):
        relay.register(f"d{user}", f"user{user}")
        relay.save("first", f"user{user}", f"artist == 'artist-{user % 50}'")
    watch = Metrics(relay)
    watch.start()
    steady = several(relay, 2, options.seconds, 0.02, 10, "c")
    steady_samples = list(watch.samples)
    began = time.monotonic()
    overload = several(relay, 8, options.overload, 0, 100, "o")
    ended = time.monotonic()
    while relay.call("POST", CHANGES, change("after"), {"webhook-id": "after"})[0] != 200:
        if time.monotonic() - ended > 120:
            raise SystemExit("it does not take changes again")
        time.sleep(0.1)
    recovered = time.monotonic() - ended
    view = relay.settled(300)
    watch.stopping = True
    relay.stop()
    gateway.stop()
    rss = [sample["rss"] / 1e6 for sample in steady_samples if sample["rss"]]
    third = max(1, len(rss) // 3)
    result = {
        "steadySeconds": options.seconds, "steady": dict(steady),
        "rssMegabytes": {"start": round(sum(rss[:third]) / third), "middle": round(
            sum(rss[third:2 * third]) / third), "end": round(sum(rss[-third:]) / third),
            "mostWithOverload": round(max(s["rss"] for s in watch.samples) / 1e6)},
        "walMegabytesMost": round(max(s["wal"] for s in watch.samples) / 1e6, 1),
        "lagMost": max(s["lag"] for s in watch.samples), "overload": dict(overload),
        "recoveredAfterSeconds": round(recovered, 1),
        "differenceMost": max(s["difference"] for s in watch.samples)}
    print(json.dumps(result, indent=2))
    shutil.rmtree(folder)
    bad = []
    if set(key for key in steady if key not in ("200", "taken")):
        bad.append("steady load was refused")
    if not overload["503 logLag"]:
        bad.append("overload was not refused")
    if overload["refused without Retry-After"]:
        bad.append("refused without Retry-After")
    if result["rssMegabytes"]["end"] > result["rssMegabytes"]["middle"] * 1.3 + 20:
        bad.append("memory grows")
    if result["walMegabytesMost"] > 80:
        bad.append("the write-ahead log grows")
    if result["differenceMost"]:
        bad.append("the accounts do not balance")
    sys.exit(f"NOT AS PROMISED: {', '.join(bad)}" if bad else print("as promised"))


if __name__ == "__main__":
    main()
