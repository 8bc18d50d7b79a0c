#!/usr/bin/env python3
"""Relays on one PostgreSQL: one owns the store, another stands by, and faults go round among them.

A ledger has what was posted and acknowledged by whichever relay answered; the gateway's record is
compared with it. Faults, in turn: the owner is killed; ends in order; is stopped and wakes when
another has the store; is cut off from the database and comes back; the database dies and starts
again; in the end the primary is lost and its synchronous standby promoted.

  python3 Tests/Campaigns/nodes.py --rounds 5
  python3 Tests/Campaigns/nodes.py --rounds 100 --seconds 3000 --faults kill,pause
"""
import argparse, contextlib, http.client, json, os, random, shutil, signal, subprocess, sys, tempfile
import threading, time
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, exchange, free_port
from compare import compare
from crash import RANGE_WINDOW, REPEATED_BY_ONE_KILL, RETRY_WINDOW, WINDOW, Ledger, furnish
from database import Postgres, Wire

CHANGES = f"/changes/1/{CONTAINER}/development/database"
SCHEMA = "relay"

FAULTS = ["kill", "stop", "pause", "cut", "crash"]


class Node(Relay):
    """One of the relays, always at the same address, with its own way to the database."""

    def __init__(self, name, belfry, folder, gateway, hosts):
        place = os.path.join(folder, name)
        os.mkdir(place)
        super().__init__(belfry, place, gateway.port, gateway.ca)
        self.name, self.own_port = name, free_port()
        self.wires = [Wire(port) for port in hosts]
        names = ",".join(f"127.0.0.1:{wire.port}" for wire in self.wires)
        self.settings = {
            "storage-url": f"postgresql://postgres@{names}/postgres", "storage-schema": SCHEMA,
            "delivery-in-flight": WINDOW, "delivery-range-in-flight": RANGE_WINDOW,
            "delivery-retry-in-flight": RETRY_WINDOW, "fanout-range-threshold": 10,
            "log-level": "notice"}

    def begin(self):
        self.start(wait=False, port=self.own_port)

    def has_said(self, text, since=0):
        with open(os.path.join(self.folder, "relay.log"), "rb") as file:
            file.seek(since)
            return text in file.read().decode(errors="replace")

    def said(self):
        return os.path.getsize(os.path.join(self.folder, "relay.log"))

    def stand_by(self):
        """Starts it beside an owner, and waits until it stands by."""
        since = self.said()
        self.begin()
        end = time.monotonic() + PATIENCE
        while not self.has_said("standing by for the store", since):
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"{self.name} does not stand by")
            time.sleep(0.02)

    def is_owner(self):
        try:
            return self.call("GET", "/readyz", timeout=2)[0] == 200
        except OSError:
            return False


class Driver(threading.Thread):
    """Posts changes to whoever takes them."""

    def __init__(self, field, number):
        super().__init__(daemon=True)
        self.field, self.number, self.posted, self.stopping = field, number, 0, False
        self.generator = random.Random(number)

    def run(self):
        nodes, at, connection = self.field.nodes, 0, None
        change = None
        while not self.stopping:
            if change is None:
                name = f"d{self.number}-{self.posted}"
                self.posted += 1
                big = self.generator.random() < 0.05
                change = name, {
                    "operation": "create", "recordType": "Artwork", "recordName": name,
                    "after": {"artist": "a", "big": 1 if big else 0}}, big
                self.field.ledger.write(
                    change=name, acknowledged=False, big=big, round=self.field.round)
            name, body, big = change
            try:
                connection = connection or http.client.HTTPConnection(
                    "127.0.0.1", nodes[at].own_port, timeout=3)
                status, _ = exchange(
                    connection, "POST", CHANGES, body, {"webhook-id": name})
            except OSError:
                status = None
            if status == 200:
                self.field.ledger.write(
                    change=name, acknowledged=True, big=big, round=self.field.round)
                self.field.acknowledged = time.monotonic(), nodes[at]
                change = None
            else:
                # The same once more, wherever it is taken: whether it was stored is not known.
                if connection:
                    connection.close()
                connection, at = None, (at + 1) % len(nodes)
                time.sleep(0.02)
        if change:
            self.field.doubtful.append(change)


class Field:
    """Two relays, the gateway, the primary and its standby."""

    def __init__(self, options, folder):
        self.folder, self.round, self.doubtful, self.acknowledged = folder, 0, [], (0, None)
        self.belfry = binary(options.binary)
        self.ledger = Ledger(os.path.join(folder, "ledger.jsonl"))
        self.gateway = Gateway(self.belfry, folder, {"rules": [{"answers": [
            {"do": "accept", "times": 700, "delayMilliseconds": [0, 4]},
            {"do": "refuse", "status": 503, "reason": "ServiceUnavailable", "retryAfter": 1,
             "times": 1}] * 1000}]})
        self.primary = Postgres(["max_connections=60"])
        self.standby = Postgres(["max_connections=60"], copies=self.primary)
        self.nodes = [
            Node(name, self.belfry, folder, self.gateway, [self.primary.port, self.standby.port])
            for name in ("one", "two")]
        self.owner, self.other = self.nodes
        self.figures = {}

    def start(self):
        self.owner.begin()
        if not self.owner.ready():
            raise SystemExit("the relay did not start: see its log")
        furnish(self.owner, self.ledger)
        self.other.api_token = self.owner.api_token
        # From here on nothing is acknowledged that the standby does not have.
        self.synchronous()
        self.other.stand_by()

    def synchronous(self):
        self.primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'standby{self.standby.port}'")
        self.primary.sql("SELECT pg_reload_conf()")
        self.primary.until(
            "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")

    def mark(self):
        """From here on deliveries that were under way may come once more."""
        self.ledger.write(kill=self.round, offset=self.record_at_rest())

    def mark_what_was_under_way(self):
        """Likewise, where what it had under way goes on and cannot be recorded: also what the gateway
        has not answered yet, and what one that asked to be left alone for a second gets after that."""
        self.mark()
        time.sleep(1.5)
        self.mark()

    @contextlib.contextmanager
    def zombie(self):
        """Meanwhile a relay may still send what it had read before it knows that it has lost the
        store; that may even be ahead of the one that has it."""
        began = self.gateway.size()
        yield
        self.ledger.write(kill=self.round, offset=began, until=self.record_at_rest())

    def record_at_rest(self):
        size = -1
        while size != (size := self.gateway.size()):
            time.sleep(0.15)
        return size

    def note(self, what, seconds):
        self.figures.setdefault(what, []).append(round(seconds, 3))

    def once(self):
        """Each round has a wish that fires once, whatever happens in the round."""
        name, user = f"once{self.round}", f"once{self.round % 4}"
        status, answer = self.owner.save(
            name, user, f"artist == 'a' OR artist == '{self.round}'", firesOnce=True)
        if status == 200 and "serverErrorCode" not in json.dumps(answer):
            self.ledger.write(once=name, user=user, round=self.round)

    def taken_over(self, began, what, record=None):
        """Waits until the other has the store and sends; the roles are changed then."""
        while not self.other.is_owner():
            if time.monotonic() > began + PATIENCE:
                raise SystemExit(f"nobody took the store over after {what}")
            time.sleep(0.02)
        self.note(what + ": until it answers", time.monotonic() - began)
        if record is not None:
            while self.gateway.size() <= record:
                if time.monotonic() > began + PATIENCE:
                    raise SystemExit(f"nobody sends after {what}")
                time.sleep(0.01)
            self.note(what + ": until it sends", time.monotonic() - began)
        self.owner, self.other = self.other, self.owner

    # Faults

    def kill(self):
        began = time.monotonic()
        self.owner.kill()
        record = self.gateway.quiet()
        self.ledger.write(kill=self.round, offset=record)
        self.taken_over(began, "killed", record)
        self.other.stand_by()

    def stop(self):
        """Nothing comes twice after an end in order."""
        process = self.owner.process
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)
        if code != 0:
            raise SystemExit(f"{self.owner.name} ended with {code}")
        began = time.monotonic()
        self.taken_over(began, "ended in order")
        self.other.stand_by()

    def pause(self):
        """A relay that sleeps, and wakes when another has the store, can do nothing any more."""
        began = time.monotonic()
        self.owner.process.send_signal(signal.SIGSTOP)
        # Nobody else sends before a lease has ended: what the gateway still answers was under way.
        self.mark_what_was_under_way()
        self.taken_over(began, "stopped", self.gateway.size())
        time.sleep(0.5)
        self.wake(lambda: self.other.process.send_signal(signal.SIGCONT))

    def cut(self):
        """A relay that is cut off from the database answers nothing that it cannot keep."""
        began = time.monotonic()
        for wire in self.owner.wires:
            wire.cut()
        self.mark_what_was_under_way()
        self.taken_over(began, "cut off", self.gateway.size())
        time.sleep(0.5)
        self.wake(lambda: [wire.mend() for wire in self.other.wires])

    def wake(self, act):
        since = self.other.said()
        self.mark()
        with self.zombie():
            act()
            self.ends()
        if not self.other.has_said("another relay", since):
            raise SystemExit(f"{self.other.name} does not say why it ended")
        self.other.stand_by()

    def ends(self):
        """Waits until the former owner has ended, as one that lost the store."""
        try:
            code = self.other.process.wait(60)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"{self.other.name} goes on although it is no owner any more")
        if code == 0:
            raise SystemExit(f"{self.other.name} lost the store and ended with 0")

    def crash(self):
        began = time.monotonic()
        self.primary.crash()
        self.mark_what_was_under_way()
        with self.zombie():
            self.primary.start()
            started = time.monotonic()
            self.note("database died: until it is back", started - began)
            self.answering(started, "database died")

    def answering(self, began, what):
        """Waits for the next acknowledgement by anybody. Who gave it is the owner: a relay that lost
        the store while nobody could tell it says that it is ready until it knows."""
        while self.acknowledged[0] < began:
            self.expect_life(began, what)
            time.sleep(0.01)
        acknowledged, by = self.acknowledged
        self.note(what + ": until a change is acknowledged", acknowledged - began)
        while not by.is_owner():
            self.expect_life(began, what)
            time.sleep(0.05)
        if by is not self.owner:
            self.owner, self.other = self.other, self.owner
            self.ends()
            self.other.stand_by()
        elif self.other.process.poll() is not None:
            self.other.stand_by()

    def expect_life(self, began, what):
        """Ends the campaign if nobody can go on, or nobody does."""
        if all(node.process.poll() is not None for node in self.nodes):
            raise SystemExit(f"both relays ended when the {what}")
        if time.monotonic() > began + PATIENCE:
            raise SystemExit(f"nobody goes on after the {what}")

    def lose(self):
        """The primary is gone for good, and the standby has all that was acknowledged."""
        self.primary.crash()
        for node in self.nodes:
            node.wires[0].end()
        self.mark_what_was_under_way()
        with self.zombie():
            self.standby.promote()
            self.standby.until("SELECT pg_is_in_recovery()", "f")
            self.answering(time.monotonic(), "primary lost")


def campaign(options, folder):
    field = Field(options, folder)
    field.start()
    drivers = [Driver(field, number) for number in range(4)]
    for driver in drivers:
        driver.start()
    began = time.monotonic()
    rounds = 0
    for round in range(options.rounds):
        if time.monotonic() - began > options.seconds:
            print(f"stopped after {round} faults: {options.seconds} s are over")
            break
        field.round = round
        field.once()
        time.sleep(0.3)
        fault = options.faults[round % len(options.faults)]
        getattr(field, fault)()
        rounds += 1
        if options.verbose:
            print(f"{round}: {fault}", flush=True)
        time.sleep(0.3)
    if "lose" not in options.faults and not options.keeps_primary:
        field.round = rounds
        field.lose()
    for driver in drivers:
        driver.stopping = True
    for driver in drivers:
        driver.join()
    return settle_accounts(field, options)


def settle_accounts(field, options):
    owner = field.owner
    for name, body, big in field.doubtful:
        status, _ = owner.call("POST", CHANGES, body, {"webhook-id": name})
        field.ledger.write(change=name, acknowledged=status == 200, big=big, round=-1)
    owner.settled(options.drain)
    for node in (field.other, owner):
        if node.stop() != 0:
            raise SystemExit(f"{node.name} did not end well: see its log")
    field.gateway.stop()
    check = subprocess.run(
        [field.belfry, "check", "--database", owner.settings["storage-url"], "--schema", SCHEMA,
         "--json"], capture_output=True, text=True)
    result, bad = compare(field.ledger.path, field.gateway.record, REPEATED_BY_ONE_KILL)
    result["check"] = json.loads(check.stdout) if check.stdout else check.stderr
    if check.returncode != 0:
        bad.append("check")
    result["seconds"] = {
        what: {"median": sorted(times)[len(times) // 2], "most": max(times), "times": len(times)}
        for what, times in field.figures.items()}
    print(json.dumps(result, indent=2))
    field.primary.stop()
    field.standby.stop()
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1800, help="no fault begins after these")
    parser.add_argument("--faults", type=lambda text: text.split(","), default=FAULTS)
    parser.add_argument("--keeps-primary", action="store_true", help="the primary is not lost")
    parser.add_argument("--drain", type=float, default=600)
    parser.add_argument("--binary")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="belfry-nodes-")
    bad = ["an error"]
    try:
        bad = campaign(options, folder)
    finally:
        for name in ("one", "two") if bad else ():
            path = os.path.join(folder, name, "relay.log")
            if os.path.exists(path):
                text = open(path, errors="replace").read()
                sys.stderr.write(f"--- {name}\n" + "".join(
                    line + "\n" for line in text.split("\n")
                    if "gateway cannot be used yet" not in line)[-3000:])
        if options.keep or bad:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder)
    if bad:
        sys.exit(f"NOT AS PROMISED: {', '.join(bad)}")
    print("as promised")


if __name__ == "__main__":
    main()
