#!/usr/bin/env python3
"""A transaction keeps its snapshot for minutes on the relay's PostgreSQL, as a backup or a report does.

Changes are posted meanwhile, and rows that were deleted or replaced since cannot be vacuumed.

Two relays use a database each of one server, and get the same changes at the same moments. The snapshot is kept
in one of the databases and only affects that one. The other shows the effect of everything else on the machine.
The output has p50 and p99 of the time from posting a change to the acceptance of its push, for the first and the
last part of the run, and the dead rows at the end. With --times the exit code is 1 if the p50 grew by more than
that factor, after subtracting the growth of the other side.

  python3 Tests/Campaigns/database_snapshot.py --times 1.5
  python3 Tests/Campaigns/database_snapshot.py --seconds 60 --statements
"""
import argparse, http.client, json, os, subprocess, threading, time
from rig import PUSH, STARTED, Gateway, Relay, binary, exchange, judge_in_folder
from database import Postgres
from nodes import CHANGES, SCHEMA

KINDS = ["kept", "free"]


class Side:
    """A relay on a database of its own, and the moments of its changes."""

    def __init__(self, kind, belfry, folder, server):
        self.kind, self.server = kind, server
        place = os.path.join(folder, kind)
        os.mkdir(place)
        server.sql(f"CREATE DATABASE {kind}")
        self.gateway = Gateway(belfry, place)
        self.url = f"postgresql://postgres@127.0.0.1:{server.port}/{kind}"
        self.relay = Relay(belfry, place, self.gateway.port, self.gateway.ca, {
            "storage-url": self.url, "storage-schema": SCHEMA})
        if not self.relay.start():
            raise SystemExit(f"the relay did not start: see {place}/relay.log")
        self.relay.furnish()
        self.relay.register("phone", "ann")
        status, answer = self.relay.save("all", "ann")
        assert status == 200, answer
        self.posted, self.accepted, self.refused = {}, {}, 0
        self.is_over = threading.Event()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        """Records when the gateway's record shows that the push of a change was accepted."""
        with open(self.gateway.record, "rb") as record:
            rest, is_accepted = b"", False
            while not self.is_over.is_set():
                data = record.read(1 << 16)
                if not data:
                    time.sleep(0.002)
                    continue
                now = time.monotonic()
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if match := PUSH.match(line.decode()):
                        is_accepted = match[2].startswith("200")
                    elif is_accepted and b'"rid"' in line:
                        self.accepted.setdefault(line.split(b'"')[3].decode(), now)

    def post(self, connection, name):
        self.posted[name] = time.monotonic()
        status, _ = exchange(connection, "POST", CHANGES, {
            "operation": "create", "recordType": "Artwork", "recordName": name,
            "after": {"artist": "a"}}, {"webhook-id": name})
        if status != 200:
            self.refused += 1
            del self.posted[name]

    def waits(self, begin, end):
        """Returns the sorted latencies in milliseconds of pushes for changes posted between `begin` and
        `end`."""
        return sorted((self.accepted[name] - at) * 1000 for name, at in list(self.posted.items())
                      if begin <= at < end and name in self.accepted)

    def ask(self, text):
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text,
                               self.url], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"psql: {done.stderr}")
        return done.stdout.strip()

    def dead(self):
        """Returns the tables with the most dead rows, and their sizes with indexes."""
        lines = self.ask(
            "SELECT relname, n_live_tup, n_dead_tup, pg_total_relation_size(relid) / 1024 "
            f"FROM pg_stat_user_tables WHERE schemaname = '{SCHEMA}' AND n_dead_tup > 0 "
            "ORDER BY n_dead_tup DESC LIMIT 8").split("\n")
        return [dict(zip(("table", "live", "dead", "KiB"), line.split("|"))) for line in lines if line]

    def statements(self):
        """Returns the time that the server spent on each statement since the last call."""
        found = self.ask(
            "SELECT round(total_exec_time), calls, round(mean_exec_time::numeric, 3), "
            "regexp_replace(left(query, 150), '\\s+', ' ', 'g') FROM pg_stat_statements JOIN "
            "pg_database ON oid = dbid WHERE datname = current_database() AND query NOT LIKE 'COMMIT%' "
            "ORDER BY total_exec_time DESC LIMIT 14")
        self.ask("SELECT pg_stat_statements_reset(0, (SELECT oid FROM pg_database "
                 "WHERE datname = current_database()))")
        return found

    def stop(self):
        self.is_over.set()
        self.relay.settled(60)
        if self.relay.stop() != 0:
            raise SystemExit(f"the {self.kind} relay did not end well: see its log")
        self.gateway.stop()


class Pace(threading.Thread):
    """Posts a number of changes a second to both sides, one after the other."""

    def __init__(self, sides, number, rate):
        super().__init__(daemon=True)
        self.sides, self.number, self.rate, self.is_over = sides, number, rate, False

    def run(self):
        connections = [http.client.HTTPConnection("127.0.0.1", side.relay.port, timeout=60)
                       for side in self.sides]
        began, count = time.monotonic(), 0
        while not self.is_over:
            # The sides alternate in going first, so that neither always waits behind the other.
            for at in (0, 1) if count % 2 else (1, 0):
                self.sides[at].post(connections[at], f"p{self.number}-{count}")
            count += 1
            # Changes that are late are not made up for: both sides would be measured in a burst.
            time.sleep(max(0, min(began + count / self.rate - time.monotonic(), 1)))
            began = max(began, time.monotonic() - count / self.rate - 0.1)


def keep_snapshot(side):
    """Begins a transaction whose snapshot is the present state, and returns it."""
    session = subprocess.Popen(
        ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", side.url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    STARTED.append(session)
    session.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\n"
                        f"SELECT count(*) FROM {SCHEMA}.logEntry;\n")
    session.stdin.flush()
    return session, session.stdout.readline()


def let_go(session, side, before):
    """Ends the transaction, which must still see what it saw at its beginning."""
    session.stdin.write(f"SELECT count(*) FROM {SCHEMA}.logEntry;\nCOMMIT;\n")
    session.stdin.flush()
    after = session.stdout.readline()
    session.stdin.close()
    session.wait()
    assert before == after, f"it was no snapshot: {before} {after}"


def percentile(sorted_values, share):
    return round(sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))], 1)


def show(side, begin, end, part):
    first, last = side.waits(begin, begin + part), side.waits(end - part, end)
    assert first and last, "nothing was accepted"
    return {"changes": len(side.posted), "refused": side.refused,
            **{name: {"count": len(values), "p50": percentile(values, 0.5),
                      "p99": percentile(values, 0.99)}
               for name, values in (("first", first), ("last", last))},
            "grew": round(percentile(last, 0.5) / percentile(first, 0.5), 2)}


def campaign(options, folder):
    belfry = binary(options.binary)
    server = Postgres(["max_connections=60"] + (
        ["shared_preload_libraries=pg_stat_statements"] if options.statements else []))
    sides = [Side(kind, belfry, folder, server) for kind in KINDS]
    if options.statements:
        for side in sides:
            side.ask("CREATE EXTENSION pg_stat_statements")
    paces = [Pace(sides, number, options.rate / options.senders)
             for number in range(options.senders)]
    for pace in paces:
        pace.start()
    time.sleep(options.warm)
    session, before = keep_snapshot(sides[0])
    part = options.part or max(5, options.seconds / 10)
    begin, loads = time.monotonic(), [os.getloadavg()[0]]
    for side in sides if options.statements else ():
        side.statements()
    for at in range(int(options.seconds / part)):
        time.sleep(max(0, begin + (at + 1) * part - time.monotonic()))
        loads.append(os.getloadavg()[0])
        if options.verbose:
            print(f"{(at + 1) * part:.0f} s:", *(
                f"{side.kind} {percentile(side.waits(begin + at * part, time.monotonic()), 0.5)} ms"
                for side in sides), flush=True)
        if options.statements and at in (0, int(options.seconds / part) - 1):
            for side in sides:
                print(f"--- {side.kind}, part {at}\n{side.statements()}", flush=True)
    end = begin + int(options.seconds / part) * part
    result = {side.kind: show(side, begin, end, part) for side in sides}
    for side in sides:
        result[side.kind]["dead"] = side.dead()
    result["seconds"], result["load"] = round(end - begin), [round(load, 1) for load in loads]
    let_go(session, sides[0], before)
    for pace in paces:
        pace.is_over = True
    for pace in paces:
        pace.join()
    for side in sides:
        side.stop()
    lost = {side.kind: len(side.posted.keys() - side.accepted.keys()) for side in sides}
    print(json.dumps(result, indent=2))
    server.stop()
    bad = [f"{kind}: {count} pushes never came" for kind, count in lost.items() if count]
    allowed = options.times and options.times * max(1, result["free"]["grew"])
    if allowed and result["kept"]["grew"] > allowed:
        bad.append(f"the p50 grew {result['kept']['grew']} times")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long the snapshot is kept")
    parser.add_argument("--warm", type=float, default=5, help="seconds of load before that")
    parser.add_argument("--part", type=float, help="seconds of the first and the last part")
    parser.add_argument("--rate", type=float, default=60, help="changes a second for each relay")
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--times", type=float, help="how much the p50 may grow")
    parser.add_argument("--statements", action="store_true", help="what the statements took")
    parser.add_argument("--binary")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    judge_in_folder("database-snapshot", lambda folder: campaign(options, folder), options.keep,
                    logs=[f"{kind}/relay.log" for kind in KINDS])
    print("as promised")


if __name__ == "__main__":
    main()
