#!/usr/bin/env python3
"""PostgreSQL is followed while either side is killed: every committed change must be in the log once.

A real server (of Debian's package, in a temporary folder, as another user than root) has writers that keep a
ledger in the same transactions. At random, `belfry follow postgres`, the relay, or the server's process that
serves the follower is killed with SIGKILL and started again. In the end the relay's log is compared with the
ledger: each change once, the changes of a record in order, and the rows of the snapshot before them. With
--served the relay follows by itself, and with --outbox by triggers instead of a slot. With --rows it measures
instead: how fast backlogs of transactions of some sizes go into the log, what they cost, and how late single
transactions are.

  python3 Tests/Campaigns/postgres.py --kills 40 --seconds 120
  python3 Tests/Campaigns/postgres.py --served --outbox --kills 40 --seconds 120
  python3 Tests/Campaigns/postgres.py --served --rows 200000
"""
import argparse, atexit, json, os, random, shutil, signal, sqlite3, subprocess, sys, tempfile, time
from rig import CONTAINER, PATIENCE, STARTED, Gateway, Relay, binary, database_programs, free_port

SCHEMA = """
CREATE TABLE item (id bigint PRIMARY KEY, rev int NOT NULL, owner text, price numeric(12,2),
    at timestamptz DEFAULT now(), tags text[], doc jsonb);
CREATE TABLE ledger (n bigserial, id bigint, rev int, op text);
CREATE SEQUENCE ids;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO ledger (id, rev, op) VALUES (coalesce(new.id, old.id), coalesce(new.rev, old.rev), tg_op);
    RETURN NULL; END $$;
INSERT INTO item SELECT nextval('ids'), 0, 'ann', n, now(), '{a,b}', '{"k": 1}'
    FROM generate_series(1, 3000) n;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON item FOR EACH ROW EXECUTE FUNCTION note();
CREATE PUBLICATION belfry FOR TABLE item;
-- Transactions of some rows, some of thousands, and some that are rolled back.
CREATE PROCEDURE work(seconds float) LANGUAGE plpgsql AS $$
DECLARE until timestamptz := clock_timestamp() + seconds * interval '1 s'; size int; chance float;
BEGIN
    WHILE clock_timestamp() < until LOOP
        chance := random();
        size := CASE WHEN chance < 0.01 THEN 2500 ELSE 1 + (random() * 20)::int END;
        INSERT INTO item SELECT nextval('ids'), 0, 'bob', n, now(), '{c}', '{"k": 2}'
            FROM generate_series(1, size) n;
        UPDATE item SET rev = rev + 1, price = price + 1 WHERE id IN (
            SELECT (random() * currval('ids'))::bigint FROM generate_series(1, 1 + size / 2));
        DELETE FROM item WHERE id IN (
            SELECT (random() * currval('ids'))::bigint FROM generate_series(1, 1 + size / 4));
        IF random() < 0.1 THEN ROLLBACK; ELSE COMMIT; END IF;
        PERFORM pg_sleep(0.005);
    END LOOP;
END $$;
CREATE PROCEDURE pace(seconds float, rate float) LANGUAGE plpgsql AS $$
DECLARE start timestamptz := clock_timestamp(); n int := 0; wait float;
BEGIN
    WHILE n < seconds * rate LOOP
        INSERT INTO item VALUES (nextval('ids'), 0, 'eve', n, now(), '{d}', '{"k": 3}');
        COMMIT;
        n := n + 1;
        wait := n / rate - extract(epoch FROM clock_timestamp() - start);
        IF wait > 0 THEN PERFORM pg_sleep(wait); END IF;
    END LOOP;
END $$;
"""


class Postgres:
    """A PostgreSQL server of the campaign's own."""

    schema = SCHEMA
    settings = ()

    def __init__(self):
        self.programs = database_programs()
        self.folder = tempfile.mkdtemp(prefix="belfry-postgres-")
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        self.run("initdb", "-D", self.folder + "/data", "-N", "-E", "UTF8", "--locale=C.UTF-8",
                 "-U", "postgres", "-A", "trust")
        self.process = subprocess.Popen(self.user + [
            self.programs + "/postgres", "-D", self.folder + "/data", "-k", self.folder,
            "-c", "listen_addresses=", "-c", "wal_level=logical", "-c", "max_wal_size=4GB",
            *(word for setting in self.settings for word in ("-c", setting))],
            stdout=subprocess.DEVNULL, stderr=open(self.folder + "/log", "ab"))
        STARTED.append(self.process)
        atexit.register(self.end)
        self.wait()
        self.sql(self.schema)

    def run(self, program, *arguments):
        subprocess.run(self.user + [self.programs + "/" + program, *arguments], check=True,
                       stdout=subprocess.DEVNULL)

    def wait(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if subprocess.run(self.psql("SELECT 1"), capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit("PostgreSQL did not start")

    def psql(self, text):
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder,
                "-U", "postgres", "-c", text]

    def sql(self, text):
        done = subprocess.run(self.psql(text), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"psql: {done.stderr}")
        return done.stdout.strip()

    def server(self):
        """Returns the server's process that serves the follower, if there is one."""
        found = self.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'belfry'")
        return int(random.choice(found.split("\n"))) if found else None

    def kill_one(self):
        """Kills the server's process that serves the follower, if there is one.

        The server then ends all others too, and recovers. Returns once it accepts connections again."""
        process = self.server()
        if process is None:
            return
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            return
        # Until the server notices the death, it accepts connections, which it ends afterwards.
        while os.path.exists(f"/proc/{process}"):
            time.sleep(0.01)
        self.wait()

    def confirmed(self, position):
        return self.sql("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'belfry' "
                        f"AND confirmed_flush_lsn >= '{position}'") == "1"

    def emptied(self):
        if self.sql("SELECT to_regclass('belfry.outbox_state') IS NULL") == "t":
            return False
        return self.sql("SELECT has_begun AND NOT EXISTS (SELECT FROM belfry.outbox) "
                        "FROM belfry.outbox_state") == "t"

    def end(self):
        """Ends the server after a failed campaign, where only runuser is killed, which does not pass that on."""
        if os.path.exists(self.folder + "/data/postmaster.pid"):
            subprocess.run(self.user + [self.programs + "/pg_ctl", "-D", self.folder + "/data", "-m",
                                        "immediate", "stop"], stdout=subprocess.DEVNULL)

    def stop(self):
        # runuser passes the signal on; -m fast.
        subprocess.run(self.user + [self.programs + "/pg_ctl", "-D", self.folder + "/data", "-m",
                                    "fast", "stop"], stdout=subprocess.DEVNULL)
        self.process.wait()
        shutil.rmtree(self.folder)


class Field:
    """A server, a relay, and the follower between them."""

    def __init__(self, belfry, served, outbox):
        self.served, self.outbox, self.follower = served, outbox, None
        self.belfry, self.folder = belfry, tempfile.mkdtemp(prefix="belfry-follow-")
        self.postgres = Postgres()
        self.gateway = Gateway(belfry, self.folder, prints=False)
        self.relay = Relay(belfry, self.folder, self.gateway.port, self.gateway.ca)
        self.port = free_port()
        self.start_relay()
        self.relay.furnish()
        self.source = f"/admin/1/containers/{CONTAINER}/development/sources/pg"
        answer = self.relay.expect(201, "PUT", self.source, {"preset": "postgres"}, admin=True)
        self.secret = answer["secret"]
        self.log = open(os.path.join(self.folder, "follow.log"), "ab")
        self.start_follower()

    def start_relay(self):
        if not self.relay.start(port=self.port):
            raise SystemExit("the relay ended")

    def start_follower(self):
        url = f"postgresql:///postgres?host={self.postgres.folder}&user=postgres"
        if self.served:
            follow = {"url": url, "make": True, "outbox": self.outbox, "tables": ["public.item"]}
            self.relay.expect(200, "PUT", self.source, {"follow": follow}, admin=True)
            return
        self.follower = subprocess.Popen(
            [self.belfry, "follow", "postgres", "--url", url, "--make", "--tables", "public.item",
             "--source-url",
             f"http://127.0.0.1:{self.port}/changes/1/{CONTAINER}/development/pg"]
            + ["--outbox"] * self.outbox,
            env=dict(os.environ, BELFRY_SOURCE_SECRET=self.secret), stdout=self.log,
            stderr=self.log)
        STARTED.append(self.follower)

    def stop_follower(self):
        if self.served:
            self.relay.expect(200, "PUT", self.source, {"follow": None}, admin=True)
            while self.postgres.server():
                time.sleep(0.05)
        else:
            self.follower.kill()
            self.follower.wait()

    def revive(self):
        """Restarts a follower that ended because its server was away when it started."""
        if not self.served and self.follower.poll() is not None:
            self.start_follower()

    def kill(self, victim):
        if victim == "follower" and not self.served:
            self.follower.kill()
            self.follower.wait()
            self.start_follower()
        elif victim in ("follower", "relay"):
            self.relay.kill()
            time.sleep(random.random())
            self.start_relay()
        else:
            self.postgres.kill_one()

    def drained(self, every=0.05):
        """Waits until the server has been told that the relay has everything written so far.

        It asks every `every` seconds. Each question is a session, which costs about 10 ms of a processor."""
        position = self.postgres.sql("SELECT pg_current_wal_lsn()")
        end = time.monotonic() + PATIENCE
        while not (self.postgres.emptied() if self.outbox else self.postgres.confirmed(position)):
            self.revive()
            if time.monotonic() > end:
                raise SystemExit(f"{position} is not confirmed; see {self.folder}")
            time.sleep(every)

    def changes(self):
        """Returns the log entries of the source, in order."""
        database = sqlite3.connect(f"file:{self.relay.database}?mode=ro", uri=True)
        for appended, body in database.execute(
                "SELECT appendedAt, body FROM logEntry WHERE source = 'pg' ORDER BY position"):
            change = json.loads(body)
            change["appendedAt"] = appended / 1e9
            yield change
        database.close()

    def read(self, query, *values):
        database = sqlite3.connect(f"file:{self.relay.database}?mode=ro", uri=True)
        try:
            return database.execute(query, values).fetchone()
        finally:
            database.close()

    def entries(self, after=0):
        """Returns how many entries the relay's log has after a moment, in nanoseconds."""
        return self.read("SELECT count(*) FROM logEntry WHERE appendedAt > ?", after)[0]

    def span(self, skipped):
        """Returns how many entries follow the first `skipped` ones, and the moments of the first and last."""
        return self.read("SELECT count(*), min(appendedAt), max(appendedAt) FROM (SELECT appendedAt "
                         "FROM logEntry ORDER BY position LIMIT -1 OFFSET ?)", skipped)

    def leave(self):
        if not self.served:
            self.follower.send_signal(signal.SIGTERM)
            assert self.follower.wait(PATIENCE) == 0, "the follower did not end in order"
        self.relay.stop()
        self.gateway.stop()
        self.postgres.stop()
        shutil.rmtree(self.folder)


def image(change):
    before = change.get("before") or {}
    return (change.get("after") or before).get("full") or before.get("partial") or {}


def judge(field, mark):
    """Compares the log with the ledger; until `mark` of the ledger the snapshot was in progress."""
    ledger = [line.split("|") for line in field.postgres.sql(
        "SELECT id, rev, op, n FROM ledger ORDER BY n").split("\n")]
    words = {"INSERT": "create", "UPDATE": "update", "DELETE": "delete"}
    wanted, found, snapshot, early = {}, {}, {}, {}
    for name, revision, operation, number in ledger:
        early[name] = early.get(name, 0) + (int(number) <= mark)
        # The key of a deletion does not contain its revision.
        known = None if operation == "DELETE" else int(revision)
        wanted.setdefault(name, []).append((words[operation], known))
    for change in field.changes():
        name = change["name"]
        if change.get("snapshot"):
            # A follower that is killed within a snapshot begins it anew.
            if name in found:
                raise SystemExit(f"a row of the snapshot after a change: {name}")
            snapshot.setdefault(name, set()).add(image(change)["rev"])
        else:
            revision = None if change["op"] == "delete" else image(change)["rev"]
            found.setdefault(name, []).append((change["op"], revision))
    for name, one in wanted.items():
        if found.get(name) != one:
            # Changes committed before the snapshot are in its rows, and are not sent.
            shown = len(one) - len(found.get(name, []))
            if 0 < shown <= early[name] and one[shown:] == found.get(name, []):
                continue
            raise SystemExit(f"item {name}: committed {one}, in the log {found.get(name)}")
    # Changes that follow a row of the snapshot have later revisions than the row.
    for name, revisions in snapshot.items():
        if len(revisions) > 1 and name not in wanted:
            raise SystemExit(f"item {name} never changed, and the snapshot has {revisions}")
    stray = set(found) - set(wanted)
    if stray:
        raise SystemExit(f"never committed: {sorted(stray)[:5]}")
    return sum(map(len, wanted.values())), sum(map(len, found.values())), len(snapshot)


def write(field, seconds):
    """Starts a writer that changes rows; a deadlock with another writer ends it."""
    writer = subprocess.Popen(field.postgres.psql(f"CALL work({seconds})"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    STARTED.append(writer)
    return writer


def campaign(field, kills, seconds):
    # Rows change while the snapshot is taken, and the snapshot is begun anew.
    writers = [write(field, 3) for _ in range(3)]
    time.sleep(random.random())
    field.kill("follower")
    for writer in writers:
        writer.wait()
    field.drained()
    mark = int(field.postgres.sql("SELECT max(n) FROM ledger"))
    end = time.monotonic() + seconds
    counts = {"follower": 0, "relay": 0, "server": 0}
    while time.monotonic() < end:
        writers = [write(field, seconds) if writer.poll() is not None else writer
                   for writer in writers]
        time.sleep(random.random() * 2 * seconds / (kills + 1))
        victim = random.choice(["follower", "follower", "relay", "relay", "server"])
        counts["relay" if field.served and victim == "follower" else victim] += 1
        field.kill(victim)
        field.revive()
    for writer in writers:
        writer.kill()
        writer.wait()
    # The statement may still be running in the server.
    field.postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                       "WHERE query LIKE 'CALL work%' AND pid <> pg_backend_pid()")
    while field.postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL work%' "
                             "AND pid <> pg_backend_pid()") != "0":
        time.sleep(0.05)
    field.drained()
    committed, logged, shown = judge(field, mark)
    print(f"killed {counts}; {committed} changes committed, {logged} in the log, each once and in "
          f"order; {shown} rows of the snapshot")


def measure(field, rows, sizes, seconds):
    """Measures how fast backlogs go into the log, for each size of transaction.

    It also measures how late single transactions are while the relay keeps up."""
    field.drained()
    for size in sizes:
        backlog(field, rows, size)
    if seconds:
        pace(field, seconds)


def backlog(field, rows, size):
    field.stop_follower()
    before = field.entries()
    for first in range(0, rows, 100_000):
        field.postgres.sql(
            "DO $$ BEGIN FOR n IN 1..%d LOOP INSERT INTO item SELECT nextval('ids'), 0, 'bob', m, "
            "now(), '{c}', '{\"k\": 2}' FROM generate_series(1, %d) m; COMMIT; END LOOP; END $$"
            % (max(min(100_000, rows - first) // size, 1), size))
    processes = {"relay": field.relay.process.pid}
    used = {name: processor_time(process) for name, process in processes.items()}
    field.start_follower()
    if not field.served:
        processes["follower"], used["follower"] = field.follower.pid, 0
    field.drained(every=0.5)
    processes["server"], used["server"] = field.postgres.server(), 0
    costs = [f"{name} {(processor_time(process) - used[name]) / rows * 1e6:.1f}"
             for name, process in processes.items() if process]
    count, first, last = field.span(before)
    # Entries that came with the first request had no request before them, and do not count.
    took = max(last - first, 1) / 1e9
    print(f"a backlog of {count} rows, {size} to a transaction: "
          f"{field.entries(after=first) / took:.0f} rows/s; "
          f"processor time a row, in microseconds: {', '.join(costs)}", flush=True)


def processor_time(process):
    """Returns the seconds of processor time that a process has used."""
    with open(f"/proc/{process}/stat") as file:
        return sum(map(int, file.read().split()[13:15])) / os.sysconf("SC_CLK_TCK")


def pace(field, seconds):
    field.postgres.sql(f"CALL pace({seconds}, 1000)")
    field.drained()
    late = sorted(change["appendedAt"] - moment(change) for change in field.changes()
                  if image(change).get("owner") == "eve")
    print(f"{len(late)} transactions of one row at 1000/s: from commit to log p50 "
          f"{late[len(late) // 2] * 1000:.1f} ms, p99 {late[len(late) * 99 // 100] * 1000:.1f} ms, "
          f"longest {late[-1] * 1000:.1f} ms")


def moment(change):
    seconds, nanoseconds = change["at"]["$ts"]
    return seconds + nanoseconds / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--served", action="store_true", help="the relay follows by itself")
    parser.add_argument("--outbox", action="store_true", help="by triggers, not by a slot")
    parser.add_argument("--rows", type=int, help="measure with backlogs of so many rows")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 10, 1000],
                        help="of the transactions of backlogs, in rows")
    parser.add_argument("--paced", type=int, default=10,
                        help="for how many seconds 1000 transactions a second are measured")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    print(f"seed {arguments.seed}")
    field = Field(binary(arguments.binary), arguments.served, arguments.outbox)
    if arguments.rows:
        measure(field, arguments.rows, arguments.sizes, arguments.paced)
    else:
        campaign(field, arguments.kills, arguments.seconds)
    field.leave()


if __name__ == "__main__":
    sys.exit(main())
