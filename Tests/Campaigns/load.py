#!/usr/bin/env python3
"""Load: a mixture of changes, saves and deletions for some time, then more than can be settled.

First the capacity of the machine is measured: changes come as fast as possible, and the campaign counts how many
are settled each second. The steady load is a share of the capacity, so that the verdict means the same on every
machine. Under it nothing may be refused, memory must not grow with time, and the write-ahead log must stay
bounded. Then changes come three times as fast as the capacity, until the relay refuses with 503 and the bound's
name. When they stop, the relay must accept changes again by itself, and everything acknowledged must arrive.

  python3 Tests/Campaigns/load.py --seconds 600
"""
import argparse, http.client, json, random, re, shutil, sys, tempfile, threading, time
from collections import Counter
from rig import CONTAINER, Gateway, Relay, binary, exchange

CHANGES = f"/changes/1/{CONTAINER}/development/database"
LAG = 3000
USERS, ARTISTS = 200, 50


def change(name):
    return {"operation": "create", "recordType": "Artwork", "recordName": name,
            "after": {"artist": f"artist-{hash(name) % 50}", "text": "x" * 300}}


class Metrics(threading.Thread):
    """Reads the relay's metrics every second."""

    def __init__(self, relay):
        super().__init__(daemon=True)
        self.relay, self.samples, self.stopping = relay, [], False

    def run(self):
        while not self.stopping:
            try:
                text = self.relay.call("GET", "/metrics", admin=True)[1]
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


class Client:
    """One connection that posts changes, and now and then saves or deletes a subscription."""

    def __init__(self, relay, number, batch, prefix, counts):
        self.relay, self.number, self.batch, self.prefix = relay, number, batch, prefix
        self.counts, self.posted, self.saved = counts, 0, []
        self.generator = random.Random(f"{prefix}{number}")
        self.connect()

    def connect(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.relay.port, timeout=60)

    def post(self):
        names = [f"{self.prefix}{self.number}-{self.posted}-{index}" for index in range(self.batch)]
        self.posted += 1
        self.counts["offered"] += self.batch
        try:
            status, answer = exchange(
                self.connection, "POST", CHANGES, [change(name) for name in names],
                {"webhook-id": names[0]})
        except OSError:
            self.counts["closed"] += 1
            return self.connect()
        bound = answer.get("bound") if isinstance(answer, dict) else None
        self.counts[f"{status} {bound}" if bound else str(status)] += 1
        if status == 200:
            self.counts["taken"] += self.batch
        elif not (isinstance(answer, dict) and "retryAfterHeader" in answer):
            self.counts["refused without Retry-After"] += 1

    def edit(self):
        """Deletes as many as it saves, so that after an hour a change fires as many subscriptions as at
        first."""
        if self.generator.random() > 0.05:
            return
        if len(self.saved) > 5:
            name, user = self.saved.pop(0)
            self.relay.client("subscriptions/modify", {"operations": [
                {"operationType": "delete", "subscription": {"subscriptionID": name}}]},
                user, "public")
            self.counts["deletions"] += 1
        else:
            name = f"{self.prefix}{self.number}-s{self.posted}"
            user = f"user{self.generator.randrange(USERS)}"
            self.relay.save(name, user, f"artist == 'artist-{self.generator.randrange(ARTISTS)}'")
            self.saved.append((name, user))
            self.counts["saves"] += 1

    def run(self, until, interval):
        """Posts every `interval` seconds, whatever the answers are; without a pause if it is 0."""
        due = time.monotonic() + self.generator.random() * interval
        while time.monotonic() < until:
            self.post()
            self.edit()
            due += interval
            time.sleep(max(0, due - time.monotonic()))


def several(relay, clients, seconds, batch, prefix, rate=0):
    """Posts with several clients, `rate` changes a second, or as many as possible."""
    counts = Counter()
    interval = clients * batch / rate if rate else 0
    until = time.monotonic() + seconds
    workers = [threading.Thread(
        target=Client(relay, number, batch, prefix, counts).run, args=(until, interval))
        for number in range(clients)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counts["offeredEachSecond"] = round(counts["offered"] / seconds)
    return counts


def capacity(relay, seconds, batch, prefix, rate=0, clients=8):
    """Returns how many changes are settled each second while more are waiting, and the clients' answers."""
    several(relay, clients, 3, batch, f"{prefix}w", rate)
    first, began = int(relay.overview()["progress"]), time.monotonic()
    counts = several(relay, clients, seconds, batch, prefix, rate)
    settled = int(relay.overview()["progress"]) - first
    return max(1, settled / (time.monotonic() - began)), counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--overload", type=float, default=20)
    parser.add_argument("--measure", type=float, default=15, help="seconds of measuring capacity")
    parser.add_argument("--share", type=float, default=0.3, help="the steady part of the capacity")
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
    for user in range(USERS):
        relay.register(f"d{user}", f"user{user}")
        relay.save("first", f"user{user}", f"artist == 'artist-{user % ARTISTS}'")
    able, _ = capacity(relay, options.measure, 50, "m")
    relay.settled(300)
    watch = Metrics(relay)
    watch.start()
    rate = max(1, able * options.share)
    steady = several(relay, 4, options.seconds, 10, "c", rate)
    steady_samples = list(watch.samples)
    able_then, overload = capacity(
        relay, options.overload, 100, "o", 3 * able, clients=16)
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
        "settledEachSecond": {"atFirst": round(able), "underOverload": round(able_then)},
        "steadySeconds": options.seconds, "steady": dict(steady),
        "rssMegabytes": {"start": round(sum(rss[:third]) / third), "middle": round(
            sum(rss[third:2 * third]) / third), "end": round(sum(rss[-third:]) / third),
            "mostWithOverload": round(max(s["rss"] for s in watch.samples) / 1e6),
            "eachMinute": [round(value) for value in rss[::60]]},
        "walMegabytesMost": round(max(s["wal"] for s in watch.samples) / 1e6, 1),
        "lagMost": max(s["lag"] for s in watch.samples), "overload": dict(overload),
        "recoveredAfterSeconds": round(recovered, 1),
        "differenceMost": max(s["difference"] for s in watch.samples)}
    print(json.dumps(result, indent=2))
    shutil.rmtree(folder)
    bad = []
    refused = [key for key in steady if re.match(r"[1-9]\d\d", key) and key != "200"]
    refused += ["closed"] if steady["closed"] else []
    # Another program may have used the machine; then the steady load was more than the intended share.
    if refused and able_then > 2 * rate:
        bad.append(f"steady load was refused: {', '.join(refused)}")
    elif refused:
        print(f"the machine got so slow that the steady load was too much for it: {refused}")
    if not overload["503 logLag"]:
        if overload["offeredEachSecond"] > 1.5 * able_then:
            bad.append("overload was not refused")
        else:
            print("the clients are too slow to bring more than can be settled")
    if overload["refused without Retry-After"] or steady["refused without Retry-After"]:
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
