#!/usr/bin/env python3
"""Relays on one PostgreSQL: one owns the store, another forwards its calls, and faults alternate between them.

Changes are posted to both relays in turn. A ledger has those that either acknowledged, and the gateway's record is
compared with it. The faults are, in turn: the owner is killed; it ends in order; it is suspended and wakes up when
another relay has the store; it is disconnected from the database and comes back; the database dies and starts
again. In the end the primary is lost, its synchronous standby is promoted, and the former primary comes back.

With --shards a third relay owns another store of the same service, and changes are posted to it too. They belong
to the store whose owner changes, so the third relay must forward them.

  python3 Tests/Campaigns/nodes.py --rounds 5
  python3 Tests/Campaigns/nodes.py --rounds 5 --shards
  python3 Tests/Campaigns/nodes.py --rounds 100 --seconds 3000 --faults kill,pause
  python3 Tests/Campaigns/nodes.py --rounds 3 --faults kill --keeps-primary --subscriptions 1000000 [--cold]
"""
import argparse, contextlib, hashlib, http.client, json, os, random, signal, statistics, subprocess
import threading, time
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, exchange, free_port, judge_in_folder
from compare import compare
from crash import RANGE_WINDOW, REPEATED_BY_ONE_KILL, RETRY_WINDOW, WINDOW, Ledger, furnish
from database import Postgres, Wire

CHANGES = f"/changes/1/{CONTAINER}/development/database"
SCHEMA = "relay"

# Longer than a lease, in seconds: an owner for so long is not about to lose the store.
LEASE = 6
FAULTS = ["kill", "stop", "pause", "cut", "crash"]


class Node(Relay):
    """One of the relays, always at the same address, with its own path to the database."""

    def __init__(self, name, belfry, folder, gateway, hosts, schema=SCHEMA):
        place = os.path.join(folder, name)
        os.mkdir(place)
        super().__init__(belfry, place, gateway.port, gateway.ca)
        self.name, self.own_port, self.door = name, free_port(), free_port()
        self.wires = [Wire(port) for port in hosts]
        names = ",".join(f"127.0.0.1:{wire.port}" for wire in self.wires)
        self.settings = {
            "storage-url": f"postgresql://postgres@{names}/postgres", "storage-schema": schema,
            "delivery-in-flight": WINDOW, "delivery-range-in-flight": RANGE_WINDOW,
            "delivery-retry-in-flight": RETRY_WINDOW, "fanout-range-threshold": 10,
            "nodes-port": self.door,
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
        """Starts the relay beside an owner, and waits until it stands by.

        On a busy machine the database may not answer in time, and the relay ends. Then it is started again,
        as an operator's supervisor would do."""
        end = time.monotonic() + PATIENCE
        for _ in range(5):
            since = self.said()
            self.begin()
            while self.process.poll() is None:
                if self.has_said("standing by for the store", since):
                    return
                if time.monotonic() > end:
                    raise SystemExit(f"{self.name} does not stand by")
                time.sleep(0.02)
            if not any(self.has_said(f"the server {what}", since)
                       for what in ("cannot be reached", "does not answer")):
                break
        raise SystemExit(f"{self.name} ended, and does not stand by")

    def warm_up(self):
        """Waits until the relay has the store's state; returns how long that took."""
        began = time.monotonic()
        while self.call("GET", "/readyz")[1].get("standby", {}).get("state") != "warm":
            if time.monotonic() > began + 4 * PATIENCE:
                raise SystemExit(f"{self.name} does not get warm")
            time.sleep(0.2)
        return time.monotonic() - began

    def is_owner(self):
        """Returns whether the relay says that it owns the store and is ready.

        A relay that has lost the store says so too until it learns of the loss. The database knows the owner.
        """
        try:
            status, answer = self.call("GET", "/readyz", timeout=2)
            return status == 200 and answer.get("role") == "owner"
        except OSError:
            return False


def beside():
    """Returns a schema name for another shard that would not be chosen for the campaign's container.

    If a request names no shard, the one with the highest hash is chosen."""
    def number(schema):
        return hashlib.sha256(f"{schema} {CONTAINER}/development".encode()).digest()[:8]
    return next(name for name in map("beside{}".format, range(100)) if number(name) < number(SCHEMA))


class Driver(threading.Thread):
    """Posts changes to all relays in turn; one that is not accepted goes to the next relay."""

    def __init__(self, field, number):
        super().__init__(daemon=True)
        self.field, self.number, self.posted, self.stopping = field, number, 0, False
        self.generator = random.Random(number)

    def run(self):
        nodes, at = self.field.doors, self.number
        connections, change = {}, None
        while not self.stopping:
            if change is None:
                name = f"d{self.number}-{self.posted}"
                self.posted += 1
                big = self.generator.random() < 0.05
                at = (at + 1) % len(nodes)
                change = name, {
                    "operation": "create", "recordType": "Artwork", "recordName": name,
                    "after": {"artist": "a", "big": 1 if big else 0}}, big
                self.field.ledger.write(
                    change=name, acknowledged=False, big=big, round=self.field.round)
            name, body, big = change
            try:
                if at not in connections:
                    connections[at] = http.client.HTTPConnection(
                        "127.0.0.1", nodes[at].own_port, timeout=8)
                status, _ = exchange(
                    connections[at], "POST", CHANGES, body, {"webhook-id": name})
            except (OSError, http.client.HTTPException):
                status = None
            if status == 200:
                self.field.ledger.write(
                    change=name, acknowledged=True, big=big, round=self.field.round)
                self.field.acknowledged.add()
                self.field.count(nodes[at])
                change = None
            else:
                # The same change again to any relay, because it is unknown whether it was stored.
                if at in connections:
                    connections.pop(at).close()
                at = (at + 1) % len(nodes)
                time.sleep(0.02)
        if change:
            self.field.doubtful.append(change)


class Moments:
    """The moments at which something happened, and the last of them."""

    MOST = 100_000

    def __init__(self):
        self.lock, self.moments = threading.Lock(), []

    def add(self):
        with self.lock:
            self.moments.append(time.monotonic())
            del self.moments[:-self.MOST]

    def last(self):
        with self.lock:
            return self.moments[-1] if self.moments else 0

    def pause(self, began):
        """Returns the longest time without an event, from `began` to the last one."""
        with self.lock:
            moments = [began] + [moment for moment in self.moments if moment > began]
        return max((after - before for before, after in zip(moments, moments[1:])), default=0)


class Sight(threading.Thread):
    """Records when the gateway receives something, to within some milliseconds."""

    def __init__(self, gateway):
        super().__init__(daemon=True)
        self.gateway, self.moments = gateway, Moments()

    def run(self):
        size = self.gateway.size()
        while True:
            time.sleep(0.004)
            try:
                now = self.gateway.size()
            except FileNotFoundError:
                return  # The campaign is over.
            if size != now:
                self.moments.add()
            size = now


class Field:
    """Two relays, the gateway, the primary and its standby."""

    def __init__(self, options, folder):
        self.folder, self.round, self.doubtful, self.acknowledged = folder, 0, [], Moments()
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
        self.doors = list(self.nodes)
        if options.shards:
            self.doors.append(Node(
                "beside", self.belfry, folder, self.gateway,
                [self.primary.port, self.standby.port], beside()))
            for node in self.doors:
                node.settings["nodes-schemas"] = f"{SCHEMA},{beside()}"
        self.figures, self.answers, self.filled = {}, {}, options.subscriptions
        self.cold = options.cold
        for node in self.nodes if options.cold else ():
            node.settings["nodes-warm"] = "off"
        self.sight = Sight(self.gateway)
        self.sight.start()

    def start(self):
        self.owner.begin()
        if not self.owner.ready():
            raise SystemExit("the relay did not start: see its log")
        furnish(self.owner, self.ledger)
        for node in self.doors[2:]:
            node.begin()
            if not node.ready():
                raise SystemExit("the relay of the other shard did not start: see its log")
        if self.filled:
            self.fill()
        self.other.api_token = self.owner.api_token
        # From here on nothing is acknowledged that the standby does not have.
        self.synchronous()
        self.succeed()
        self.compare_ways()

    def succeed(self):
        """Makes the other relay stand by, and wait for the store's state if that is large."""
        self.other.stand_by()
        if self.filled and not self.cold:
            self.note("until it is warm", self.other.warm_up())

    def fill(self):
        """Gives the store many subscriptions that no change fires, each of a user with a device.

        Saving a million over HTTP would take longer than the rest."""
        self.owner.register("f0", "filler0")
        self.owner.save("filler", "filler0", "artist == 'nobody'")
        self.owner.settled(PATIENCE)
        if self.owner.stop() != 0:
            raise SystemExit(f"{self.owner.name} did not end well: see its log")
        tail = f"generate_series(1, {self.filled - 1}) AS n"
        self.primary.sql(f"""
            SET search_path = {SCHEMA}; SET session_replication_role = replica;
            CREATE TEMP TABLE pattern AS SELECT id, container,
                (SELECT max(id) FROM "user") AS last FROM "user" WHERE name = 'filler0';
            INSERT INTO "user" (id, container, name)
                SELECT last + n, container, 'filler' || n FROM pattern, {tail};
            SELECT setval(pg_get_serial_sequence('"user"', 'id'), max(id)) FROM "user";
            INSERT INTO device (container, owner, deviceID, gateway, gatewayEnvironment, token, topic,
                    registeredAt, activation)
                SELECT device.container, last + n, 'f' || n, gateway, gatewayEnvironment,
                    rpad(encode(convert_to('f' || n, 'UTF8'), 'hex'), 64, '0'), topic, registeredAt,
                    activation
                FROM device JOIN pattern ON owner = id, {tail};
            INSERT INTO subscription (container, owner, database, subscriptionID, contentDigest,
                    firesOnce, body, activation, recordType)
                SELECT subscription.container, last + n, database, subscriptionID, contentDigest,
                    firesOnce, replace(body, 'nobody', 'nobody' || n), activation, recordType
                FROM subscription JOIN pattern ON owner = id, {tail};
            DELETE FROM quotaUse WHERE thing IN (1, 2);
            INSERT INTO quotaUse (container, thing, holder, number, bytes)
                SELECT container, 1, holder, count(*), sum(octet_length(body))
                FROM subscription, LATERAL (VALUES (''), (owner::text)) AS holders (holder)
                WHERE ended IS NULL GROUP BY container, holder
                UNION ALL SELECT container, 2, holder, count(*), 0
                FROM device, LATERAL (VALUES (''), (owner::text)) AS holders (holder)
                WHERE ended IS NULL GROUP BY container, holder;
            ANALYZE""")
        began = time.monotonic()
        self.owner.begin()
        self.owner.ready(4 * PATIENCE)
        self.note("a start alone", time.monotonic() - began)

    def compare_ways(self):
        """Returns how much longer a call takes through the relay that stands by, in milliseconds."""
        self.ways = {}
        for node, way in ((self.owner, "by the owner"), (self.other, "by the other")):
            connection = http.client.HTTPConnection("127.0.0.1", node.own_port, timeout=PATIENCE)
            times = []
            for _ in range(200):
                began = time.perf_counter()
                exchange(connection, "GET", "/")
                times.append((time.perf_counter() - began) * 1000)
            connection.close()
            self.ways[way] = round(statistics.median(times), 2)

    def owning(self):
        """Returns the owner of the store according to the database.

        It is None if there is no owner or the database does not answer."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self.primary, self.standby))
        asked = subprocess.run(
            [self.belfry, "nodes", "--database", f"postgresql://postgres@{hosts}/postgres",
             "--schema", SCHEMA, "--json"], capture_output=True, text=True)
        if asked.returncode:
            return None
        doors = [node["address"] for node in json.loads(asked.stdout)["nodes"]
                 if node["role"] == "owner"]
        return next((node for node in self.nodes if f"127.0.0.1:{node.door}" in doors), None)

    def synchronous(self):
        self.primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'standby{self.standby.port}'")
        self.primary.sql("SELECT pg_reload_conf()")
        self.primary.until(
            "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")

    def mark(self):
        """Marks that deliveries in progress may be repeated from here on."""
        self.ledger.write(kill=self.round, offset=self.record_at_rest())

    def mark_what_was_under_way(self):
        """Marks the same for an owner that continues, so that what it has in progress cannot be recorded.

        That includes what the gateway has not answered yet, and what a gateway that asked for a second's
        pause gets after that."""
        self.mark()
        time.sleep(1.5)
        self.mark()

    @contextlib.contextmanager
    def zombie(self):
        """Marks that a former owner may still send what it had read before it learned of the loss.

        That may even be ahead of the new owner."""
        began = self.gateway.size()
        yield
        self.ledger.write(kill=self.round, offset=began, until=self.record_at_rest())

    def record_at_rest(self):
        size = -1
        while size != (size := self.gateway.size()):
            time.sleep(0.15)
        return size

    def count(self, node):
        """Counts an acknowledgement by the role of the relay that gave it."""
        if node not in self.nodes:
            role = "of another shard"
        else:
            role = "owner" if node is self.owner else "standing by"
        self.answers[role] = self.answers.get(role, 0) + 1

    def note(self, what, seconds):
        self.figures.setdefault(what, []).append(round(seconds, 3))

    def once(self):
        """Saves a once subscription for the round, which must fire once whatever happens."""
        name, user = f"once{self.round}", f"once{self.round % 4}"
        # Either relay may save it.
        status, answer = self.nodes[self.round % 2].save(
            name, user, f"artist == 'a' OR artist == '{self.round}'", firesOnce=True)
        if status == 200 and "serverErrorCode" not in json.dumps(answer):
            self.ledger.write(once=name, user=user, round=self.round)

    def taken_over(self, began, what, record=None):
        """Waits until the other relay has the store and sends; then the roles are exchanged."""
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
        self.note("killed: without an acknowledgement", self.acknowledged.pause(began))
        self.succeed()

    def stop(self):
        """The owner ends in order; nothing is repeated."""
        process, told = self.owner.process, time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)
        if code != 0:
            raise SystemExit(f"{self.owner.name} ended with {code}")
        began = time.monotonic()
        self.note("ended in order: until it has ended", began - told)
        self.taken_over(began, "ended in order", self.gateway.size())
        # The pause is over, and recorded, once something is sent again.
        sent = time.monotonic()
        while self.sight.moments.last() < sent and time.monotonic() < sent + PATIENCE:
            time.sleep(0.005)
        self.note("ended in order: without a send", self.sight.moments.pause(told))
        self.note("ended in order: without an acknowledgement", self.acknowledged.pause(told))
        self.other.stand_by()

    def pause(self):
        """The owner is suspended, and wakes up when another relay has the store: it must do nothing any more."""
        began = time.monotonic()
        self.owner.process.send_signal(signal.SIGSTOP)
        # No other relay sends before the lease has ended: what the gateway still answers was in progress.
        self.mark_what_was_under_way()
        self.taken_over(began, "stopped", self.gateway.size())
        time.sleep(0.5)
        self.wake(lambda: self.other.process.send_signal(signal.SIGCONT))

    def cut(self):
        """The owner is disconnected from the database: it must acknowledge nothing that it cannot store."""
        began = time.monotonic()
        for wire in self.owner.wires:
            wire.cut()
        self.mark_what_was_under_way()
        while self.owner.is_owner():
            if time.monotonic() > began + PATIENCE:
                raise SystemExit(f"{self.owner.name} says ready and has lost its database")
            time.sleep(0.02)
        self.note("cut off: until it says that it is not ready", time.monotonic() - began)
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
        """Waits until the former owner has ended, as a relay does that lost the store."""
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
        """Waits for the next acknowledgement by any relay, and until the owner is settled.

        The relay that lost the store ends, and then stands by."""
        while self.acknowledged.last() < began:
            self.expect_life(began, what)
            time.sleep(0.01)
        self.note(what + ": until a change is acknowledged", self.acknowledged.last() - began)
        if self.settled_owner(began, what) is not self.owner:
            self.owner, self.other = self.other, self.owner
            self.ends()
            self.other.stand_by()
        elif self.other.process.poll() is not None:
            self.other.stand_by()

    def settled_owner(self, began, what):
        """Waits until the database and exactly one relay agree on the owner.

        They must have agreed for longer than a lease lasts."""
        last, since = None, time.monotonic()
        while last is None or time.monotonic() - since < LEASE:
            self.expect_life(began, what)
            owner = self.owning()
            if [node for node in self.nodes if node.is_owner()] != [owner]:
                owner = None
            if owner is None or owner is not last:
                last, since = owner, time.monotonic()
            time.sleep(0.05)
        return last

    def expect_life(self, began, what):
        """Ends the campaign if no relay can continue, or none does."""
        if all(node.process.poll() is not None for node in self.nodes):
            raise SystemExit(f"both relays ended when the {what}")
        if time.monotonic() > began + PATIENCE:
            raise SystemExit(f"nobody goes on after the {what}")

    def lose(self):
        """The primary is lost for good, and the standby has everything that was acknowledged."""
        self.primary.crash()
        for node in self.doors:
            node.wires[0].end()
        self.mark_what_was_under_way()
        with self.zombie():
            self.standby.promote()
            self.standby.until("SELECT pg_is_in_recovery()", "f")
            self.answering(time.monotonic(), "primary lost")
        self.revive()

    def revive(self):
        """Starts the former primary again, which accepts writes.

        It is the first in the relays' list of servers, and all connections are made anew."""
        self.primary.start()
        question = f"SELECT max(position) FROM {SCHEMA}.logEntry"
        before = self.primary.sql(question)
        for node in self.doors:
            node.wires[0].begin_again()
        began, record, owner = time.monotonic(), self.gateway.size(), self.owner
        self.standby.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                         "WHERE application_name LIKE 'belfry%'")
        self.answering(began, "former primary came back")
        if self.owner is not owner:
            # On a busy machine it may be too slow for its lease; what it had in progress may be repeated.
            self.ledger.write(kill=self.round, offset=record, until=self.record_at_rest())
        if self.primary.sql(question) != before:
            raise SystemExit("the former primary was gone on with")


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
    for node in (*field.doors[2:], field.other, owner):
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
    result["acknowledged by"], result["milliseconds of a call"] = field.answers, field.ways
    if field.answers.get("standing by", 0) < 20:
        bad.append("nobody stood by and answered")
    if len(field.doors) > 2 and field.answers.get("of another shard", 0) < 20:
        bad.append("nobody of another shard answered")
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
    parser.add_argument("--subscriptions", type=int, default=0,
                        help="fill the store with so many, each of a user with a device")
    parser.add_argument("--cold", action="store_true", help="who stands by has nothing in memory")
    parser.add_argument("--shards", action="store_true", help="beside a relay of another shard")
    parser.add_argument("--drain", type=float, default=600)
    parser.add_argument("--binary")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    judge_in_folder("nodes", lambda folder: campaign(options, folder), options.keep,
                    logs=("one/relay.log", "two/relay.log", "beside/relay.log"))
    print("as promised")


if __name__ == "__main__":
    main()
