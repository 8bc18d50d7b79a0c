#!/usr/bin/env python3
"""Continuous backup for real: relays are killed while they ship to a folder, a full folder and a bucket.

What is restored is compared with the relay's own file, row for row. Then the store is restored as of every
moment at which a change was acknowledged.

The bucket is moto's (PyPI), an S3-like store on the loopback interface that goes away and comes back. Without
moto that scene is left out. The full folder is a small tmpfs, which only root can mount; otherwise that scene is
left out.

  python3 Tests/Campaigns/backup.py folder full bucket --kills 5 --binary .build/release/belfry
"""
import argparse, datetime, json, logging, os, random, shutil, sqlite3, subprocess, tempfile, time
from rig import Rig, binary, free_port

SCENES = {}
# Tables in which a restored store differs from its origin: its identity, and what depends on it.
OWN = {"store", "stateSnapshot", "progress", "shardHead", "sqlite_stat1", "sqlite_stat4"}


def scene(function):
    SCENES[function.__name__] = function
    return function


def until(fits, what, bound=120):
    end = time.monotonic() + bound
    while time.monotonic() < end:
        found = fits()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit(f"not within {bound} s: {what}")


def rows(path):
    """Returns the rows of each table as a set of texts."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    names = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: sorted(map(repr, database.execute(f'SELECT * FROM "{name}"')))
             for name in names if name not in OWN}
    database.close()
    return found


class Shipped:
    """A relay that ships to a place, and the moments at which its changes were acknowledged."""

    def __init__(self, belfry, place, settings=(), environment=None):
        self.belfry, self.place = belfry, place
        self.environment = environment or {}
        self.rig = Rig(belfry, "backup")
        assert self.rig.relay.stop() == 0
        self.rig.relay.settings.update(
            {"backup-url": place, "backup-interval-seconds": 1, **dict(settings)})
        self.acknowledged = []
        self.start()

    def start(self):
        assert self.rig.relay.start(environment=self.environment), "the relay does not start"

    def state(self):
        return self.rig.relay.overview()["backup"]

    def shipped(self):
        """Waits until the place has everything that was acknowledged, in a complete copy."""
        last = self.acknowledged[-1] if self.acknowledged else ""
        return until(lambda: (self.state() or {}).get("shippedUntil", "") > last
                     and self.state(), f"shipped to {self.place}")

    def post(self, count):
        for _ in range(count):
            self.rig.post(1)
            moment = datetime.datetime.now(datetime.timezone.utc)
            self.acknowledged.append(moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))

    def run(self, *words, code=0):
        ending = subprocess.run(
            [self.belfry, *words, "--json"], capture_output=True, text=True,
            env={**os.environ, **self.environment})
        assert ending.returncode == code, f"{words}: {ending.stdout}{ending.stderr}"
        return json.loads(ending.stdout) if ending.stdout else {}

    def restore(self, moment=None):
        copy = os.path.join(self.rig.folder, "restored.sqlite")
        words = ["--at", moment] if moment else []
        report = self.run("restore", "--from", self.place, "--database", copy, "--replace", *words)
        for ending in ("-replaced", "-replaced-wal", "-replaced-witness"):
            if os.path.exists(copy + ending):
                os.remove(copy + ending)
        return copy, report

    def names(self, path):
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        count, = database.execute("SELECT count(*) FROM logEntry WHERE kind = 1").fetchone()
        database.close()
        return count

    def judge(self, moments):
        """Ends the relay; checks that the backups are complete, equal the relay's file, and reach every
        moment."""
        assert self.rig.relay.stop() == 0
        verdict = self.run("backups", "verify", self.place)
        assert not verdict["problems"], verdict
        copy, _ = self.restore()
        mine, theirs = rows(self.rig.relay.database), rows(copy)
        assert mine.keys() == theirs.keys()
        for table in mine:
            assert mine[table] == theirs[table], f"{table} differs"
        count = sum(map(len, mine.values()))
        first = self.run("backups", "list", self.place)["backups"][0]["from"]
        can = [index for index, moment in enumerate(self.acknowledged) if moment > first]
        for index in sorted(random.sample(can, min(moments, len(can)))):
            copy, _ = self.restore(self.acknowledged[index])
            found = self.names(copy)
            # All changes that were acknowledged by that moment are there, and none that was sent later.
            assert found in (index + 1, index + 2), f"change {index}: {found}"
        print(f"{len(self.acknowledged)} changes, {verdict['segments']} segments and "
              f"{verdict['copies']} copies of {verdict['bytes']} bytes: {count} rows in "
              f"{len(mine)} tables equal, {min(moments, len(can))} moments gone back to")
        self.rig.gateway.stop()
        shutil.rmtree(self.rig.folder)


def kills(relay, count):
    """Kills the relay while changes are posted and shipped, and starts it again."""
    for _ in range(count):
        relay.post(random.randrange(5, 40))
        if random.random() < 0.5:
            time.sleep(random.random() * 1.5)
        relay.rig.relay.kill()
        relay.start()
    relay.post(5)
    state = relay.shipped()
    assert "ending" not in state, f"a kill has cost a copy of the file: {state}"


@scene
def folder(belfry, count):
    """Kills while the log is shipped to a folder."""
    place = tempfile.mkdtemp(prefix="belfry-place-")
    relay = Shipped(belfry, f"file://{place}")
    relay.shipped()
    kills(relay, count)
    relay.judge(6)
    shutil.rmtree(place)


@scene
def full(belfry, _):
    """A folder without room blocks nothing, is reported, and is shipped to when there is room."""
    place = tempfile.mkdtemp(prefix="belfry-full-")
    if os.geteuid() or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m", "none", place]).returncode:
        print("left out: a tmpfs cannot be mounted")
        return
    try:
        with open(os.path.join(place, "filler"), "wb") as filler:
            filler.write(bytes((64 << 20) - 8192))
        relay = Shipped(belfry, f"file://{place}")
        reason = until(lambda: (relay.state() or {}).get("failure"), "a failure")["reason"]
        relay.post(50)
        assert relay.rig.relay.call("GET", "/readyz")[0] == 200
        attention = json.dumps(relay.rig.relay.expect(200, "GET", "/admin/1/attention", admin=True))
        assert "nothing is shipped to" in attention, attention
        os.remove(os.path.join(place, "filler"))
        relay.shipped()
        relay.post(5)
        relay.shipped()
        print(f"told: {reason}")
        relay.judge(3)
    finally:
        subprocess.run(["umount", place], check=True)
        os.rmdir(place)


@scene
def bucket(belfry, count):
    """Kills while the log is shipped to a bucket, whose store goes away and comes back."""
    try:
        from moto.server import ThreadedMotoServer
        import boto3
    except ImportError:
        print("left out: moto is not installed")
        return
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    port = free_port()
    key = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret of the campaign"}
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    url = f"http://127.0.0.1:{port}"
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1",
                          aws_access_key_id="key", aws_secret_access_key="secret of the campaign")
    client.create_bucket(Bucket="backups")
    environment = {**key, "BELFRY_BACKUP_S3_ENDPOINT": url}
    relay = Shipped(belfry, "s3://backups/relay/one", environment=environment)
    relay.shipped()
    kills(relay, count)
    server.stop()
    relay.post(30)
    until(lambda: relay.state().get("failure"), "a failure while the store is away")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    relay.post(5)
    relay.shipped()
    relay.judge(4)
    server.stop()


def main():
    reader = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    reader.add_argument("scenes", nargs="*", default=[], help=", ".join(SCENES))
    reader.add_argument("--kills", type=int, default=5)
    reader.add_argument("--binary")
    given = reader.parse_args()
    belfry = binary(given.binary)
    for name in given.scenes or SCENES:
        print(f"== {name}: {SCENES[name].__doc__}", flush=True)
        begun = time.monotonic()
        SCENES[name](belfry, given.kills)
        print(f"{time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
