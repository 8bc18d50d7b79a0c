#!/usr/bin/env python3
"""The disk of PostgreSQL is full for a while, under a relay that accepts changes and sends pushes.

The server's data, its log, or both are on a small ext4 file system in a loop device, which another file fills
while changes are posted. If the log has no room, the server ends itself (PANIC) and cannot start before there
is room; then the campaign starts it, as an operator would. The relay is never restarted. Its answers are checked
against docs/postgresql-engine.md: no change without room is acknowledged, each acknowledged change is stored
once, and its pushes arrive once.

  python3 Tests/Campaigns/database_disk.py --rounds 6 --hold 30
  python3 Tests/Campaigns/database_disk.py --rounds 1 --places log --hold 90

It needs root and a loop device, and runs in a mount namespace of its own. On a machine without them it says so
and ends.
"""
import argparse, contextlib, http.client, json, os, random, shutil, subprocess
import threading, time
from collections import Counter
from rig import PATIENCE, Gateway, Relay, binary, exchange, judge_in_folder
from compare import compare
from crash import (
    RANGE_WINDOW, REPEATED_BY_ONE_KILL, RETRY_WINDOW, WINDOW, Ledger, furnish)
from database import Postgres
from nodes import CHANGES, SCHEMA
from power import INSIDE, Disk, enter

PLACES = ["data", "log", "both"]
# The allowed answers to a change that cannot be stored.
REFUSALS = {429, 503, 507}


class Balloon(threading.Thread):
    """A file that takes all the room of a disk, including what becomes free."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.path, self.is_over = os.path.join(place, "balloon"), threading.Event()

    def run(self):
        with open(self.path, "wb", buffering=0) as file:
            disk = os.statvfs(os.path.dirname(self.path))
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, max(1, disk.f_bavail * disk.f_frsize - (1 << 20)))
            file.seek(0, os.SEEK_END)
            while not self.is_over.is_set():
                try:
                    file.write(bytes(1 << 18))
                except OSError:
                    self.fill(file)
                    self.is_over.wait(0.02)

    def fill(self, file):
        """Takes what is left, one block at a time."""
        try:
            while not self.is_over.is_set():
                file.write(bytes(4096))
        except OSError:
            pass

    def burst(self):
        self.is_over.set()
        self.join()
        os.unlink(self.path)


class Driver(threading.Thread):
    """Posts changes, each until it is acknowledged, and counts the relay's answers."""

    def __init__(self, field, number):
        super().__init__(daemon=True)
        self.field, self.number, self.is_over = field, number, False
        self.generator = random.Random(number)

    def run(self):
        connection, count, change = None, 0, None
        while not self.is_over:
            if change is None:
                change = self.make(count)
                count += 1
            connection = connection or http.client.HTTPConnection(
                "127.0.0.1", self.field.relay.port, timeout=self.field.patience)
            if not self.field.post(connection, *change):
                connection.close()
                connection = None
                time.sleep(0.02)
            else:
                change = None
                time.sleep(0.01)
        if change:
            self.field.doubtful.append(change)

    def make(self, count):
        name, is_big = f"d{self.number}-{count}", self.generator.random() < 0.05
        self.field.ledger.write(change=name, acknowledged=False, big=is_big, round=0)
        return name, {
            "operation": "create", "recordType": "Artwork", "recordName": name,
            "after": {"artist": "a", "big": 1 if is_big else 0,
                      "text": self.generator.randbytes(3000).hex()}}, is_big


class Field:
    """A relay, a gateway, and a server whose disk is filled in each round."""

    def __init__(self, options, folder, place):
        self.folder, self.place, self.hold = folder, place, options.hold
        # The client repeats a request that gets no answer for this long.
        self.patience, self.doubtful, self.acknowledged = 3, [], 0
        self.answers, self.refused, self.lock = Counter(), 0, threading.Lock()
        self.readiness, self.seconds, self.ended = Counter(), {}, 0
        self.belfry = binary(options.binary)
        self.ledger = Ledger(os.path.join(folder, "ledger.jsonl"))
        self.gateway = Gateway(self.belfry, folder, {"rules": [{"answers": [
            {"do": "accept", "times": 2000, "delayMilliseconds": [0, 4]},
            {"do": "refuse", "status": 503, "reason": "ServiceUnavailable", "retryAfter": 1,
             "times": 1}] * 1000}]})
        self.disk = Disk(folder, 24 if place == "log" else 160)
        self.server = Postgres(
            ["max_connections=60", "min_wal_size=2MB", "max_wal_size=64MB"],
            place=None if place == "log" else self.disk.place,
            log_place=self.disk.place if place == "log" else None,
            made_with=["--wal-segsize=1"]
            + (["-X", self.outside()] if place == "data" else []))
        self.url = f"postgresql://postgres@127.0.0.1:{self.server.port}/postgres"
        self.relay = Relay(self.belfry, folder, self.gateway.port, self.gateway.ca, {
            "storage-url": self.url, "storage-schema": SCHEMA, "delivery-in-flight": WINDOW,
            "delivery-range-in-flight": RANGE_WINDOW, "delivery-retry-in-flight": RETRY_WINDOW,
            "fanout-range-threshold": 10})

    def outside(self):
        """Returns a folder with room for the server's log."""
        place = os.path.join(self.folder, "room")
        os.mkdir(place)
        if os.getuid() == 0:
            shutil.chown(place, "postgres")
        os.chmod(self.folder, 0o711)
        return place + "/log"

    def post(self, connection, name, body, is_big):
        """Posts a change; returns whether it was acknowledged."""
        try:
            status, answer = exchange(connection, "POST", CHANGES, body, {"webhook-id": name})
        except OSError as error:
            status, answer = None, str(error)
        if status == 200:
            self.ledger.write(change=name, acknowledged=True, big=is_big, round=0)
            self.acknowledged = time.monotonic()
        with self.lock:
            if status == 200:
                self.answers["200"] += 1
                return True
            self.refused = time.monotonic()
            told = answer.get("reason") if isinstance(answer, dict) else answer
            self.answers[f"{status}: {told}"] += 1
            if status in REFUSALS and not int(answer.get("retryAfterHeader", 0)):
                self.answers[f"{status} without Retry-After"] += 1
        return False

    def start(self):
        if not self.relay.start():
            raise SystemExit("the relay did not start: see its log")
        furnish(self.relay, self.ledger)

    def once(self):
        status, answer = self.relay.save(
            "once", "once0", "artist == 'a'", firesOnce=True)
        if status == 200 and "serverErrorCode" not in json.dumps(answer):
            self.ledger.write(once="once", user="once0", round=0)

    def until(self, condition, what):
        began = time.monotonic()
        while not condition():
            if self.relay.process.poll() is not None:
                raise SystemExit(f"the relay ended with {self.relay.process.returncode} while {what}")
            if time.monotonic() > began + PATIENCE:
                raise SystemExit(f"not within {PATIENCE} s: {what}")
            time.sleep(0.02)
        self.seconds[what] = round(time.monotonic() - began, 2)

    def fill(self):
        """Fills the disk, and keeps it full for a while after nothing is acknowledged any more."""
        balloon = Balloon(self.disk.place)
        balloon.start()
        self.until(lambda: self.refused and time.monotonic() > self.acknowledged + 1,
                   "nothing is acknowledged any more")
        end = time.monotonic() + self.hold
        while time.monotonic() < end:
            self.look()
            time.sleep(0.2)
        balloon.burst()
        freed = time.monotonic()
        self.until(lambda: self.revive() or self.acknowledged > freed,
                   "a change is acknowledged again")
        self.until(lambda: self.readyz() == 200, "it is ready again")

    def revive(self):
        """Starts the server if it has ended, as an operator does once there is room."""
        if self.server.process.poll() is not None:
            self.ended += 1
            self.server.start()

    def readyz(self):
        status, answer = self.relay.call("GET", "/readyz", timeout=20)
        self.readiness[f"{status}: {json.dumps(answer.get('reasons'))}"] += 1
        return status

    def look(self):
        self.readyz()
        if self.relay.call("GET", "/healthz", timeout=20)[0] != 200:
            raise SystemExit("it says that it does not live")

    def stored(self):
        """Returns how many acknowledged changes are not in the log exactly once."""
        rows = self.server.sql(
            f"SELECT recordName, count(*) FROM {SCHEMA}.logEntry WHERE kind = 1 GROUP BY 1")
        counts = dict(row.split("|") for row in rows.split("\n") if row)
        with open(self.ledger.path) as file:
            entries = [json.loads(line) for line in file]
        return len([entry for entry in entries
                    if entry.get("acknowledged") and counts.get(entry["change"]) != "1"])


def campaign(options, folder, place):
    # The server's user must be able to reach the disk inside the folder.
    os.chmod(folder, 0o711)
    field = Field(options, folder, place)
    field.start()
    pid = field.relay.process.pid
    field.once()
    drivers = [Driver(field, number) for number in range(4)]
    for driver in drivers:
        driver.start()
    time.sleep(0.5)
    field.fill()
    time.sleep(0.5)
    for driver in drivers:
        driver.is_over = True
    for driver in drivers:
        driver.join()
    assert field.relay.process.pid == pid
    return settle_accounts(field, options)


def settle_accounts(field, options):
    connection = http.client.HTTPConnection("127.0.0.1", field.relay.port, timeout=PATIENCE)
    for change in field.doubtful:
        field.post(connection, *change)
    field.relay.settled(options.drain)
    if field.relay.stop() != 0:
        raise SystemExit("the relay did not end well: see its log")
    field.gateway.stop()
    check = subprocess.run(
        [field.belfry, "check", "--database", field.url, "--schema", SCHEMA, "--json"],
        capture_output=True, text=True)
    result, bad = compare(field.ledger.path, field.gateway.record, REPEATED_BY_ONE_KILL)
    result["answers"], result["readiness"] = dict(field.answers), dict(field.readiness)
    result["seconds"], result["timesTheServerEnded"] = field.seconds, field.ended
    result["notStoredOnce"] = field.stored()
    bad += [name for name, is_so in {
        "check": check.returncode != 0,
        "not stored once": result["notStoredOnce"] != 0,
        "ready all along": not any(told.startswith("503") for told in field.readiness),
        "answers": not all(answer.split(":")[0] in ("200", "None", *map(str, REFUSALS))
                           for answer in field.answers),
    }.items() if is_so]
    print(f"{field.place}: {json.dumps(result, indent=2)}", flush=True)
    field.server.stop()
    field.disk.unmount()
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="each with a server of its own")
    parser.add_argument("--places", type=lambda text: text.split(","), default=PLACES)
    parser.add_argument("--hold", type=float, default=5, help="how many seconds it stays full")
    parser.add_argument("--drain", type=float, default=600)
    parser.add_argument("--binary")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        enter()
    for round in range(options.rounds):
        place = options.places[round % len(options.places)]
        judge_in_folder("database-disk", lambda folder: campaign(options, folder, place),
                        options.keep, note=f" ({place})")
    print("as promised")


if __name__ == "__main__":
    main()
