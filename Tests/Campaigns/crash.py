#!/usr/bin/env python3
"""Kills the relay again and again while changes are posted, and compares what was acknowledged and pushed.

In each life, a once subscription is saved, 64 changes that match it are posted at the same moment, and four
clients post more. A third of the kills come at a random moment, a third at a named crash point, and a third at
the n-th file call (LD_PRELOAD, faults.c). The same seed gives the same plan, but moments differ from run to run.

  python3 Tests/Campaigns/crash.py --kills 200
"""
import argparse, http.client, json, os, random, subprocess, threading, time
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, build_shim, exchange, judge_in_folder
from compare import compare

POINTS = ["commit", "committed", "match", "claimed", "handOver", "range", "sent", "settle",
          "settled", "checkpoint", "prune"]
WINDOW, RANGE_WINDOW, RETRY_WINDOW = 64, 32, 64
# Deliveries that the gateway has not answered have a window of their own (docs/guarantees.md, promise 4).
REPEATED_BY_ONE_KILL = 2 * WINDOW + RANGE_WINDOW + RETRY_WINDOW
SMALL_USERS, BIG_USERS = 3, 30
# The number of changes posted at the same moment after a once subscription was saved; each would fire it.
AT_ONCE = 64


class Ledger:
    def __init__(self, path):
        self.path, self.file, self.lock = path, open(path, "w"), threading.Lock()

    def write(self, **entry):
        with self.lock:
            self.file.write(json.dumps(entry) + "\n")
            self.file.flush()


class Poster:
    """Posts changes to one life of the relay and records the answers.

    A change whose outcome is unknown is posted again in the next life."""

    def __init__(self, relay, ledger, round, doubtful):
        self.relay, self.ledger, self.round, self.doubtful = relay, ledger, round, doubtful
        # Whether answers prove nothing any more.
        self.is_over = False

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.relay.port, timeout=PATIENCE)

    def change(self, name, big=False):
        return name, {"operation": "create", "recordType": "Artwork", "recordName": name,
                      "after": {"artist": "a", "big": 1 if big else 0}}, big

    def post(self, connection, name, body, big):
        """Returns the status, or nothing if the relay is gone."""
        self.ledger.write(change=name, acknowledged=False, big=big, round=self.round)
        try:
            status, answer = exchange(
                connection, "POST", f"/changes/1/{CONTAINER}/development/database", body,
                {"webhook-id": name})
        except OSError:
            status = None
        if status == 200 and not self.is_over:
            self.ledger.write(change=name, acknowledged=True, big=big, round=self.round)
        else:
            self.doubtful.append((name, body, big))
        return status


class Driver(threading.Thread):
    """Posts changes until the relay is gone."""

    def __init__(self, poster, number, generator):
        super().__init__(daemon=True)
        self.poster, self.number = poster, number
        self.generator = random.Random(generator.random())
        self.posted = 0
        self.stopping = False

    def run(self):
        connection = self.poster.connect()
        while not self.stopping:
            try:
                change = self.poster.doubtful.pop()
            except IndexError:
                name = f"r{self.poster.round}-{self.number}-{self.posted}"
                self.posted += 1
                change = self.poster.change(name, self.generator.random() < 0.05)
            status = self.poster.post(connection, *change)
            if status is None:
                return
            if status != 200:
                time.sleep(0.05)


class Volley(threading.Thread):
    """Posts one of many changes that are sent at the same moment."""

    def __init__(self, poster, number, barrier):
        super().__init__(daemon=True)
        self.poster, self.number, self.barrier, self.stopping = poster, number, barrier, False

    def run(self):
        connection = self.poster.connect()
        try:
            connection.connect()
        except OSError:
            pass
        self.barrier.wait()
        self.poster.post(
            connection, *self.poster.change(f"r{self.poster.round}-v-{self.number}"))


def furnish(relay, ledger):
    relay.furnish()
    for user in range(SMALL_USERS):
        for device in range(2):
            relay.register(f"s{user}-{device}", f"small{user}")
            ledger.write(device=f"s{user}-{device}", user=f"small{user}")
        relay.save("all", f"small{user}")
        ledger.write(subscription="all", user=f"small{user}", big=False)
    for user in range(BIG_USERS):
        relay.register(f"b{user}", f"big{user}")
        ledger.write(device=f"b{user}", user=f"big{user}")
        relay.save("big", f"big{user}", "big == 1")
        ledger.write(subscription="big", user=f"big{user}", big=True)
    for user in range(4):
        relay.register(f"o{user}", f"once{user}")


def one_life(relay, gateway, ledger, round, generator, doubtful, shim):
    """Starts the relay, posts, and waits for its death; returns how it was killed."""
    kind = ["moment", "point", "file"][round % 3]
    environment = {}
    if kind == "point":
        point = POINTS[(round // 3) % len(POINTS)]
        most = {"checkpoint": 3, "prune": 4, "range": 6, "claimed": 2}.get(point, 60)
        environment["BELFRY_CRASH_AT"] = f"{point}:{generator.randint(1, most)}"
        kind = environment["BELFRY_CRASH_AT"]
    elif kind == "file":
        # The first calls belong to opening the store.
        count = int(10 ** generator.uniform(0, 3.2))
        environment = {"LD_PRELOAD": shim, "FAULT_PATH": "relay.sqlite",
                       "FAULT_KILL_AT": str(count)}
        kind = f"file call {count}"
    drivers = []
    if relay.start(environment=environment):
        try:
            # Each subscription has a condition of its own, because equal ones are duplicates until they have
            # fired.
            status, answer = relay.save(
                f"once{round}", f"once{round % 4}", f"artist == 'a' OR artist == '{round}'",
                firesOnce=True)
            if status == 200 and "serverErrorCode" not in json.dumps(answer):
                ledger.write(once=f"once{round}", user=f"once{round % 4}", round=round)
        except OSError:
            pass
        poster = Poster(relay, ledger, round, doubtful)
        barrier = threading.Barrier(AT_ONCE)
        drivers = [Volley(poster, number, barrier) for number in range(AT_ONCE)]
        drivers += [Driver(poster, number, generator) for number in range(4)]
        for driver in drivers:
            driver.start()
        end = time.monotonic() + (
            generator.uniform(0.02, 0.6) if kind == "moment" else 4)
        while time.monotonic() < end and relay.process.poll() is None:
            time.sleep(0.005)
    if relay.process.poll() is None:
        kind += "" if kind == "moment" else " (not reached: moment)"
        relay.kill()
    for driver in drivers:
        driver.stopping = True
        driver.join()
    if relay.process.returncode != -9:
        raise SystemExit(f"the relay ended with {relay.process.returncode}: see relay.log")
    ledger.write(kill=round, offset=gateway.quiet(), how=kind)
    return kind


def campaign(options, folder):
    belfry = binary(options.binary)
    shim = build_shim(folder)
    generator = random.Random(options.seed)
    ledger = Ledger(os.path.join(folder, "ledger.jsonl"))
    gateway = Gateway(belfry, folder, {"rules": [{"answers": [
        {"do": "accept", "times": 700, "delayMilliseconds": [0, 4]},
        {"do": "refuse", "status": 503, "reason": "ServiceUnavailable", "retryAfter": 1,
         "times": 1}] * 1000}]})
    relay = Relay(belfry, folder, gateway.port, gateway.ca, {
        "delivery-in-flight": WINDOW, "delivery-range-in-flight": RANGE_WINDOW,
        "delivery-retry-in-flight": RETRY_WINDOW,
        "fanout-range-threshold": 10, "storage-wal-megabytes": 1})
    if not relay.start():
        raise SystemExit("the relay did not start: see relay.log")
    furnish(relay, ledger)
    relay.kill()
    doubtful, hows = [], {}
    began = time.monotonic()
    for round in range(options.kills):
        if time.monotonic() - began > options.seconds:
            print(f"stopped after {round} kills: {options.seconds} s are over")
            break
        how = one_life(relay, gateway, ledger, round, generator, doubtful, shim)
        hows[how.split(":")[0].split(" ")[0]] = hows.get(how.split(":")[0].split(" ")[0], 0) + 1
        if options.verbose:
            print(f"{round}: {how}", flush=True)
    if not relay.start():
        raise SystemExit("the relay did not start again: see relay.log")
    result, bad = settle_accounts(relay, gateway, ledger, doubtful, options.drain)
    result["killedBy"] = hows
    result["seconds"] = round_(time.monotonic() - began)
    print(json.dumps(result, indent=2))
    return bad


def settle_accounts(relay, gateway, ledger, doubtful, drain):
    """Posts the changes in doubt, waits until nothing is owed, and compares.

    Returns the result and the broken promises."""
    for name, body, big in doubtful:
        status, answer = relay.call(
            "POST", f"/changes/1/{CONTAINER}/development/database", body, {"webhook-id": name})
        ledger.write(change=name, acknowledged=status == 200, big=big, round=-1)
    relay.settled(drain)
    if relay.stop() != 0:
        raise SystemExit("the relay did not end well: see relay.log")
    gateway.stop()
    check = subprocess.run([relay.belfry, "check", "--database", relay.database, "--json"],
                           capture_output=True, text=True)
    result, bad = compare(ledger.path, gateway.record, REPEATED_BY_ONE_KILL)
    result["check"] = json.loads(check.stdout)
    if check.returncode != 0:
        bad.append("check")
    return result, bad


def round_(number):
    return int(number * 10) / 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1800, help="no kill begins after these")
    parser.add_argument("--drain", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    judge_in_folder("crash", lambda folder: campaign(options, folder), options.keep,
                    note=f" (seed {options.seed})")
    print("as promised")


if __name__ == "__main__":
    main()
