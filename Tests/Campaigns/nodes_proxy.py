#!/usr/bin/env python3
"""The arrangement of deploy/compose.yaml as processes on this machine, with HAProxy in front.

There are two relays, a PostgreSQL with a synchronous standby, and HAProxy, which sends to either relay. A sender
only knows the proxy's address. The owner is killed; it ends in order; the primary is lost and its standby is
promoted. Afterwards every acknowledged change must be in the log once, and its push must have come.

  python3 Tests/Campaigns/nodes_proxy.py --rounds 3
"""
import argparse, http.client, os, shutil, subprocess, sys, tempfile, threading, time
from rig import (CONTAINER, PATIENCE, STARTED, Gateway, Relay, binary, exchange, free_port, pushes)
from database import Postgres

DEPLOY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "deploy")
CHANGES = f"/changes/1/{CONTAINER}/development/database"


class Node(Relay):
    """A relay at an address of its own, on the store of both."""

    def __init__(self, name, belfry, folder, gateway, databases):
        place = os.path.join(folder, name)
        os.mkdir(place)
        super().__init__(belfry, place, gateway.port, gateway.ca)
        self.name, self.own_port = name, free_port()
        self.port = self.own_port
        hosts = ",".join(f"127.0.0.1:{database.port}" for database in databases)
        # The containers get this setting as an environment variable too.
        self.variables = {"BELFRY_STORAGE_URL": f"postgresql://postgres@{hosts}/postgres"}
        self.settings = {
            "storage-schema": "relay", "http-trusted-proxies": "127.0.0.1", "log-level": "notice"}

    def begin(self):
        self.start(self.variables, wait=False, port=self.own_port)

    def role(self):
        """Returns the role that the relay reports; None unless it is ready."""
        try:
            status, answer = self.call("GET", "/readyz", timeout=2)
            return answer.get("role") if status == 200 else None
        except OSError:
            return None

    def stand_by(self):
        """Starts the relay beside an owner, and waits until it stands by.

        It tries again if the database of a busy machine did not answer in time."""
        end = time.monotonic() + PATIENCE
        for _ in range(5):
            self.begin()
            while self.process.poll() is None:
                if self.role() == "standingBy":
                    return
                if time.monotonic() > end:
                    raise SystemExit(f"{self.name} does not stand by")
                time.sleep(0.02)
        raise SystemExit(f"{self.name} ended, and does not stand by")


class Proxy:
    """HAProxy as configured in deploy/haproxy/haproxy.cfg, with ports of this machine."""

    def __init__(self, folder, nodes):
        self.port = free_port()
        text = open(os.path.join(DEPLOY, "haproxy", "haproxy.cfg")).read()
        for old, new in (
                ("bind :8080", f"bind 127.0.0.1:{self.port}"),
                ("relay-a:8080", f"127.0.0.1:{nodes[0].own_port}"),
                ("relay-b:8080", f"127.0.0.1:{nodes[1].own_port}")):
            assert old in text, old
            text = text.replace(old, new)
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(text)
        self.process = subprocess.Popen(
            ["haproxy", "-db", "-f", path], stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(folder, "haproxy.log"), "ab"))
        STARTED.append(self.process)


class Sender(threading.Thread):
    """Posts one change after the other to the proxy, each until it is acknowledged."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.acknowledged, self.at, self.stopping = port, [], 0, False

    def run(self):
        number, connection = 0, None
        while not self.stopping:
            name = f"p{number}"
            body = {"operation": "create", "recordType": "Artwork", "recordName": name,
                    "after": {"artist": "a"}}
            sent = time.monotonic()
            try:
                connection = connection or http.client.HTTPConnection(
                    "127.0.0.1", self.port, timeout=30)
                status, _ = exchange(connection, "POST", CHANGES, body, {"webhook-id": name})
            except (OSError, http.client.HTTPException):
                status = None
            if status == 200:
                self.acknowledged.append(name)
                self.at, number = sent, number + 1
            else:
                # The same change again, because it is unknown whether it was stored.
                if connection:
                    connection.close()
                connection = None
                time.sleep(0.02)

    def goes_on(self, since, bound=PATIENCE):
        """Waits until a change is acknowledged that was sent after `since`.

        Returns how long that took."""
        while self.at <= since:
            if time.monotonic() > since + bound:
                raise SystemExit(f"nothing was acknowledged for {bound} s")
            time.sleep(0.005)
        return time.monotonic() - since

    def more(self, count):
        """Waits until `count` more changes are acknowledged."""
        end, wanted = time.monotonic() + PATIENCE, len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            if time.monotonic() > end:
                raise SystemExit("changes are not acknowledged")
            time.sleep(0.01)


def owner(nodes, bound=PATIENCE):
    end = time.monotonic() + bound
    while time.monotonic() < end:
        for node in nodes:
            if node.role() == "owner":
                return node
        time.sleep(0.02)
    raise SystemExit("no relay owns the store")


def settle(nodes):
    """Waits until nothing is owed according to the owner.

    A relay that lost the store while it could not be told says for a moment longer that it is the owner, and
    then ends."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return owner(nodes).settled(PATIENCE)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def pushed(gateway):
    """Returns the names of the records of which a push was accepted."""
    return {push["record"] for push in pushes(gateway.record) if push["accepted"]}


def proxy(belfry, rounds):
    """Runs the scene; returns the sender's longest wait for each fault."""
    folder = tempfile.mkdtemp(prefix="belfry-proxy-")
    primary = Postgres(["synchronous_standby_names=*", "max_connections=100"])
    standby = Postgres(["max_connections=100"], copies=primary)
    gateway = Gateway(belfry, folder)
    nodes = [Node(name, belfry, folder, gateway, [primary, standby]) for name in "ab"]
    nodes[0].begin()
    first = owner(nodes)
    first.furnish()
    first.register("phone", "ann")
    status, answer = first.save("all", "ann", notificationInfo={
        "alertBody": "New", "shouldSendContentAvailable": True})
    assert status == 200, answer
    nodes[1].stand_by()
    haproxy = Proxy(folder, nodes)
    sender = Sender(haproxy.port)
    sender.start()
    sender.goes_on(time.monotonic())
    waits = {"kill": 0, "stop": 0, "failover": 0}
    for number in range(rounds):
        for fault in ("kill", "stop"):
            node = owner(nodes)
            sender.more(100)
            began = time.monotonic()
            node.kill() if fault == "kill" else node.stop()
            sender.goes_on(time.monotonic())
            waits[fault] = max(waits[fault], time.monotonic() - began)
            node.stand_by()
        print(f"round {number + 1}: {len(sender.acknowledged)} acknowledged", flush=True)
    began = time.monotonic()
    primary.crash()
    standby.promote()
    sender.goes_on(time.monotonic())
    waits["failover"] = time.monotonic() - began
    sender.stopping = True
    sender.join()
    settle(nodes)
    missing = set(sender.acknowledged) - pushed(gateway)
    if missing:
        raise SystemExit(f"{len(missing)} acknowledged changes were not pushed: {sorted(missing)[:5]}")
    stored = int(standby.sql("SELECT count(*) FROM relay.logEntry WHERE kind = 1"))
    names = int(standby.sql("SELECT count(DISTINCT recordName) FROM relay.logEntry WHERE kind = 1"))
    if stored != names or names < len(sender.acknowledged):
        raise SystemExit(f"{stored} entries of {names} changes, {len(sender.acknowledged)} acknowledged")
    for process in (haproxy.process, *(node.process for node in nodes)):
        process.terminate()
        process.wait(PATIENCE)
    gateway.stop()
    standby.stop()
    shutil.rmtree(primary.folder)
    shutil.rmtree(folder)
    return len(sender.acknowledged), waits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    if not shutil.which("haproxy"):
        print("HAProxy is not installed; deploy/test does it")
        return
    count, waits = proxy(binary(arguments.binary), arguments.rounds)
    print(f"{count} changes, each acknowledged, stored once and pushed; the longest wait: "
          + ", ".join(f"{fault} {wait:.1f} s" for fault, wait in waits.items()))


if __name__ == "__main__":
    sys.exit(main())
