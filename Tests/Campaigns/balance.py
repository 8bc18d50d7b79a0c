#!/usr/bin/env python3
"""Two machines, each with a relay of each of two stores: stores move when a machine comes or goes.

One machine owns both stores. The second machine comes, and gets one of the stores by a hand-over. Meanwhile
changes are posted to that store, at both relays in turn. The process that had the store stands by for it
without a restart. Then the second machine is killed, and the first one owns both stores again. A ledger of
acknowledged changes is compared with the gateway's record. A store moves after it was owned for a minute, so a
round takes about 80 seconds.

  python3 Tests/Campaigns/balance.py --rounds 2
"""
import argparse, hashlib, http.client, json, os, subprocess, threading, time
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, exchange, judge_in_folder
from compare import compare
from crash import RANGE_WINDOW, REPEATED_BY_ONE_KILL, RETRY_WINDOW, WINDOW, Ledger, furnish
from database import Postgres
from nodes import CHANGES, Moments, Sight

TOLD = "handing the store over to the machine that should own it"
AGAIN = "starting again as a standby for the store"


def drawn(text):
    return hashlib.sha256(text.encode()).digest()[:8]


def schemas():
    """Returns two schema names, of which the second machine gets the first.

    Among equal choices a hash of the names of store and machine decides. A hash also decides where a
    container is created if the request does not say."""
    place = f"{CONTAINER}/development"
    for number in range(1000):
        moves, stays = f"a{number}", f"b{number}"
        if drawn(f"{moves}\0south") > drawn(f"{stays}\0south") \
                and drawn(f"{moves} {place}") > drawn(f"{stays} {place}"):
            return moves, stays
    raise SystemExit("no names")


MOVES, STAYS = schemas()


class Node(Relay):
    """The relay of one store on one machine."""

    def __init__(self, machine, schema, field):
        place = os.path.join(field.folder, f"{machine}-{schema}")
        os.mkdir(place)
        super().__init__(field.belfry, place, field.gateway.port, field.gateway.ca)
        self.machine, self.schema = machine, schema
        self.settings = {
            "storage-url": field.database, "storage-schema": schema,
            "nodes-schemas": f"{MOVES},{STAYS}", "nodes-machine": machine,
            "delivery-in-flight": WINDOW, "delivery-range-in-flight": RANGE_WINDOW,
            "delivery-retry-in-flight": RETRY_WINDOW, "log-level": "notice"}

    def begin(self):
        self.start(port=getattr(self, "port", None))

    def said(self, text):
        with open(os.path.join(self.folder, "relay.log"), errors="replace") as file:
            return file.read().count(text)

    def memory(self):
        """Returns the resident memory in megabytes."""
        with open(f"/proc/{self.process.pid}/status") as file:
            line = next(line for line in file if line.startswith("VmRSS"))
        return int(line.split()[1]) // 1024


class Driver(threading.Thread):
    """Posts changes to the relays of the store that moves, in turn, each change until it is accepted."""

    def __init__(self, field, number):
        super().__init__(daemon=True)
        self.field, self.number, self.stopping, self.posted = field, number, False, 0

    def run(self):
        connections, at = {}, self.number
        while not self.stopping:
            name = f"d{self.number}-{self.posted}"
            self.posted += 1
            self.field.ledger.write(
                change=name, acknowledged=False, big=False, round=self.field.round)
            body = {"operation": "create", "recordType": "Artwork", "recordName": name,
                    "after": {"artist": "a", "big": 0}}
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                nodes = self.field.serving
                at = (at + 1) % len(nodes)
                node = nodes[at]
                try:
                    if node not in connections:
                        connections[node] = http.client.HTTPConnection(
                            "127.0.0.1", node.port, timeout=15)
                    status, _ = exchange(
                        connections[node], "POST", CHANGES, body, {"webhook-id": name})
                except (OSError, http.client.HTTPException):
                    status = None
                if status == 200:
                    self.field.ledger.write(
                        change=name, acknowledged=True, big=False, round=self.field.round)
                    self.field.acknowledged.add()
                    break
                if node in connections:
                    connections.pop(node).close()
                time.sleep(0.02)


class Field:
    def __init__(self, options, folder):
        self.folder, self.round, self.acknowledged = folder, 0, Moments()
        self.belfry, self.figures = binary(options.binary), {}
        self.ledger = Ledger(os.path.join(folder, "ledger.jsonl"))
        self.gateway = Gateway(self.belfry, folder)
        self.server = Postgres(["max_connections=80"])
        self.database = f"postgresql://postgres@127.0.0.1:{self.server.port}/postgres"
        self.north = {schema: Node("north", schema, self) for schema in (MOVES, STAYS)}
        self.south = {schema: Node("south", schema, self) for schema in (MOVES, STAYS)}
        self.serving = [self.north[MOVES]]
        self.sight = Sight(self.gateway)
        self.sight.start()

    def note(self, what, figure):
        self.figures.setdefault(what, []).append(round(figure, 3))

    def owner(self, schema):
        """Returns the machine that owns a store according to the database, or None."""
        asked = subprocess.run(
            [self.belfry, "nodes", "--database", self.database, "--schema", schema, "--json"],
            capture_output=True, text=True)
        nodes = json.loads(asked.stdout)["nodes"] if asked.returncode == 0 else []
        return next((node["machine"] for node in nodes if node["role"] == "owner"), None)

    def wait(self, what, condition, bound=PATIENCE):
        end = time.monotonic() + bound
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"waited in vain: {what}")
            time.sleep(0.02)

    def join(self):
        """Starts the second machine, and waits until it owns one of the stores."""
        giver, began = self.north[MOVES], time.monotonic()
        told, again, process = giver.said(TOLD), giver.said(AGAIN), giver.process.pid
        before = giver.memory()
        for node in self.south.values():
            node.begin()
        self.south[MOVES].api_token = giver.api_token
        self.serving = [giver, self.south[MOVES]]
        self.wait("nothing is handed over", lambda: giver.said(TOLD) > told)
        moment = time.monotonic()
        self.note("from the start of a machine to the hand-over, s", moment - began)
        self.wait("nobody took it", lambda: self.owner(MOVES) == "south")
        self.wait("it does not begin again", lambda: giver.said(AGAIN) > again)
        self.note("handed over: until it begins again, s", time.monotonic() - moment)

        def stands_by():
            try:
                answer = giver.call("GET", "/readyz", timeout=2)
            except OSError:
                return False
            return answer[0] == 200 and answer[1].get("standby", {}).get("state") == "warm"
        self.wait("it does not stand by", stands_by)
        self.note("handed over: until it stands by, warm, s", time.monotonic() - moment)
        if giver.process.poll() is not None or giver.process.pid != process:
            raise SystemExit("the process that handed its store over has ended")
        time.sleep(3)
        self.note("handed over: without a send, s", self.sight.moments.pause(moment))
        self.note("handed over: without an acknowledgement, s", self.acknowledged.pause(moment))
        self.note("MB of the one that handed over, before", before)
        self.note("MB of the one that handed over, after", giver.memory())
        if giver.said(TOLD) != told + 1 or self.north[STAYS].said(TOLD):
            raise SystemExit("more was handed over than one store")
        if self.owner(STAYS) != "north":
            raise SystemExit("the other store moved")

    def leave(self):
        """Kills the second machine, and waits until the first owns both stores."""
        began = time.monotonic()
        for node in self.south.values():
            node.kill()
        record = self.gateway.quiet()
        self.ledger.write(kill=self.round, offset=record)
        self.serving = [self.north[MOVES]]
        self.wait("nobody took it", lambda: self.owner(MOVES) == "north")
        self.wait("nobody sends", lambda: self.gateway.size() > record)
        self.note("machine killed: until the other sends, s", time.monotonic() - began)


def campaign(options, folder):
    field = Field(options, folder)
    for node in field.north.values():
        node.begin()
    furnish(field.north[MOVES], field.ledger)
    drivers = [Driver(field, number) for number in range(2)]
    for driver in drivers:
        driver.start()
    for round in range(options.rounds):
        field.round = round
        if round:
            field.leave()
        field.join()
        if options.verbose:
            print(f"{round}: {field.figures}", flush=True)
    for driver in drivers:
        driver.stopping = True
    for driver in drivers:
        driver.join()
    field.south[MOVES].settled(options.drain)
    nodes = [*field.north.values(), *field.south.values()]
    for node in nodes:
        if node.stop() != 0:
            raise SystemExit(f"{node.machine} {node.schema} did not end well: see its log")
    field.gateway.stop()
    check = subprocess.run(
        [field.belfry, "check", "--database", field.database, "--schema", MOVES],
        capture_output=True, text=True)
    result, bad = compare(field.ledger.path, field.gateway.record, REPEATED_BY_ONE_KILL)
    result["figures"] = field.figures
    print(json.dumps(result, indent=2))
    if check.returncode != 0:
        print(check.stdout + check.stderr)
        bad.append("check")
    field.server.stop()
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--drain", type=float, default=600)
    parser.add_argument("--binary")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    logs = [f"{machine}-{schema}/relay.log" for machine in ("north", "south")
            for schema in (MOVES, STAYS)]
    judge_in_folder("balance", lambda folder: campaign(options, folder), options.keep, logs=logs)
    print("as promised")


if __name__ == "__main__":
    main()
