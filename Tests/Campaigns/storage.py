#!/usr/bin/env python3
"""Storage campaign: the disk of a running relay fails in every way that can be provoked here.

  python3 Tests/Campaigns/storage.py            all scenes, about a minute
  python3 Tests/Campaigns/storage.py fullDisk   one of them

`fullDisk` needs the right to mount a tmpfs, and says so where it has not.
"""
import argparse, json, os, random, re, shutil, sqlite3, subprocess, sys, tempfile, threading, time
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, build_shim, device_token, pushes, reseal

CHANGES = f"/changes/1/{CONTAINER}/development/database"


class Scene:
    """A relay that started well, on the disk that a scene wants."""

    def __init__(self, belfry, shim, folder, place=None, settings=()):
        self.folder, self.shim = folder, shim
        self.gateway = Gateway(belfry, folder)
        self.relay = Relay(belfry, folder, self.gateway.port, self.gateway.ca, settings)
        if place:
            self.relay.database = os.path.join(place, "relay.sqlite")
        self.acknowledged = []
        self.number = 0
        assert self.relay.start()
        self.relay.furnish()
        self.relay.register("phone", "alice")
        self.relay.save("all", "alice")
        self.post_until(lambda status: True, 20)

    def post(self, size=100):
        """Posts one change; returns the status, or 0 without an answer."""
        self.number += 1
        name = f"c{self.number}"
        body = {"operation": "create", "recordType": "Artwork", "recordName": name,
                "after": {"text": "x" * size, "number": self.number}}
        try:
            status, self.answer = self.relay.call("POST", CHANGES, body, {"webhook-id": name})
        except OSError:
            return 0
        if status == 200:
            self.acknowledged.append(name)
        return status

    def post_until(self, wanted, most, size=100):
        """Posts until a status is wanted, at most `most` times; returns all statuses."""
        statuses = []
        for _ in range(most):
            statuses.append(self.post(size))
            if not wanted(statuses[-1]) and len(statuses) == most or wanted is None:
                break
        return statuses

    def restart(self, **environment):
        if self.relay.process.poll() is None:
            self.relay.stop()
        return self.relay.start(environment=environment)

    def finish(self):
        """Checks that everything acknowledged arrives, and that the file is sound."""
        if self.relay.process.poll() is not None:
            assert self.relay.start(), "the relay does not start again"
        self.relay.settled(PATIENCE)
        assert self.relay.stop() == 0
        self.gateway.stop()
        arrived = {push["record"] for record in self.gateway.records
                   for push in pushes(record) if push["accepted"]}
        lost = [name for name in self.acknowledged if name not in arrived]
        check = subprocess.run([self.relay.belfry, "check", "--database", self.relay.database],
                               capture_output=True, text=True)
        assert not lost, f"{len(lost)} of {len(self.acknowledged)} acknowledged changes are lost"
        assert check.returncode == 0, check.stdout + check.stderr
        return {"acknowledged": len(self.acknowledged), "lost": 0}


def failing(scene, calls, error, count, places=(3, 40), size=100, posts=60, **more):
    """The n-th call fails: the relay acknowledges nothing that may not be on the disk, and then stops
    writing."""
    results = {}
    late = os.path.join(scene.folder, "late")
    for at in places:
        assert scene.restart(
            LD_PRELOAD=scene.shim, FAULT_PATH="relay.sqlite", FAULT_CALLS=calls, FAULT_AFTER=late,
            FAULT_FAIL_AT=str(at), FAULT_ERRNO=error, FAULT_FAIL_COUNT=str(count),
            **more) in (True, False)
        statuses = []
        while len(statuses) < posts and scene.relay.process.poll() is None:
            statuses.append(scene.post(size))
        after = statuses[next((i for i, s in enumerate(statuses) if s != 200), len(statuses)):]
        assert 200 not in after, f"it wrote on after a failure: {statuses}"
        end = time.monotonic() + PATIENCE
        while scene.relay.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        assert scene.relay.process.poll() == 69, "it must end, and say why"
        assert not os.path.exists(late), "after the failing call: " + open(late).read()
        results[f"at {at}"] = f"{statuses.count(200)} taken, then ended with " \
            f"{scene.relay.process.returncode}"
    return results


def failed_sync(scene):
    return failing(scene, "s", "5", 1)


def failed_sync_of_file(scene):
    """A sync of the database file itself fails, which only checkpoints do.

    No client waits for an answer then, but still nothing may be written after it."""
    return failing(scene, "s", "5", 1, places=(1, 3), size=50_000, posts=2000,
                   FAULT_UNLESS="-wal")


def failed_write(scene):
    return failing(scene, "w", "5", 1)


def save_once(scene, count):
    """Saves a once subscription for each of the next `count` changes; returns their names."""
    scene.relay.register("bobs", "bob")
    numbers = range(scene.number + 1, scene.number + 1 + count)
    for number in numbers:
        status, answer = scene.relay.save(
            f"c{number}", "bob", predicate=f"number == {number}", firesOnce=True)
        assert status == 200 and "serverErrorCode" not in json.dumps(answer), answer
    return [f"c{number}" for number in numbers]


def fired_once(scene, names):
    """Checks that each of these subscriptions fired for its change, if that was acknowledged.

    It must not have fired for another one."""
    scene.relay.settled(PATIENCE)
    fired = {}
    for push in [push for record in scene.gateway.records for push in pushes(record)]:
        if push["token"] == device_token("bobs"):
            fired.setdefault(push["subscription"], set()).add(push["record"])
    wanted = {name: {name} for name in names if name in scene.acknowledged}
    lost = [name for name in wanted if name not in fired]
    assert not lost and all(fired[name] == {name} for name in fired), (lost, fired)
    return len(wanted)


def busy(scene):
    """Another process holds a write lock for a while: the relay waits and loses nothing.

    That includes claims and a huge fan-out, while the relay runs and when it starts."""
    scene.relay.settings["fanout-range-threshold"] = 1
    assert scene.restart()
    once = save_once(scene, 8)
    other = sqlite3.connect(scene.relay.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    result = []
    thread = threading.Thread(target=lambda: result.append(scene.post()))
    thread.start()
    time.sleep(1.5)
    other.execute("ROLLBACK")
    thread.join()
    assert result == [200], f"within the busy timeout a request waits: {result}"
    other.execute("BEGIN IMMEDIATE")
    late = scene.post()
    assert late == 429, f"beyond the busy timeout it is told to come again: {late} {scene.answer}"
    other.execute("ROLLBACK")
    # The change is accepted. After that nothing can be claimed or settled for longer than the busy timeout.
    assert scene.post() == 200
    other.execute("BEGIN IMMEDIATE")
    time.sleep(8)
    assert scene.relay.process.poll() is None, "it must wait for whoever holds the file"
    other.execute("ROLLBACK")
    assert scene.post() == 200
    scene.relay.settled(PATIENCE)
    assert scene.relay.stop() == 0
    other.execute("BEGIN IMMEDIATE")
    scene.relay.start(wait=False)
    time.sleep(8)
    assert scene.relay.process.poll() is None, "it must wait at the start too"
    other.execute("ROLLBACK")
    other.close()
    assert scene.relay.ready()
    assert scene.post() == 200
    return {"waited": round(time.monotonic() - began, 1), "once": fired_once(scene, once)}


def short_write(scene):
    """A write is cut short, as at the end of a disk: nothing is acknowledged, and the relay continues."""
    assert scene.restart(LD_PRELOAD=scene.shim, FAULT_PATH="relay.sqlite-wal", FAULT_CALLS="w",
                         FAULT_FAIL_AT="60", FAULT_ERRNO="short", FAULT_FAIL_COUNT="40")
    statuses = [scene.post() for _ in range(200)]
    refused = [status for status in statuses if status != 200]
    assert set(refused) <= {507} and statuses[-1] == 200, statuses
    assert refused, "no write was cut short"
    return {"refused": len(refused), "taken": statuses.count(200)}


def quota(scene):
    """A disk quota is used up for a while: changes are refused, and later accepted again without a restart."""
    assert scene.restart(LD_PRELOAD=scene.shim, FAULT_PATH="relay.sqlite-wal", FAULT_CALLS="w",
                         FAULT_FAIL_AT="60", FAULT_ERRNO="122", FAULT_FAIL_COUNT="40")
    statuses = [scene.post() for _ in range(200)]
    refused = [status for status in statuses if status != 200]
    assert set(refused) <= {507} and statuses[-1] == 200, statuses
    assert refused, "no write met the quota"
    return {"refused": len(refused), "taken": statuses.count(200)}


def damaged(scene):
    """A damaged page is found before anything is served."""
    scene.post(20000)
    assert scene.relay.stop() == 0
    good = open(scene.relay.database, "rb").read()
    bad = bytearray(good)
    for page in range(3, len(bad) // 4096, 4):
        bad[page * 4096:page * 4096 + 64] = os.urandom(64)
    open(scene.relay.database, "wb").write(bad)
    started = scene.relay.start(wait=False) and scene.relay.ready()
    assert not started and scene.relay.process.returncode == 69, scene.relay.process.returncode
    check = subprocess.run([scene.relay.belfry, "check", "--database", scene.relay.database],
                           capture_output=True, text=True)
    assert check.returncode != 0
    told = []
    for _ in range(20):
        at, bit = random.randrange(len(good)), 1 << random.randrange(8)
        bad = bytearray(good)
        bad[at] ^= bit
        open(scene.relay.database, "wb").write(bad)
        check = subprocess.run([scene.relay.belfry, "check", "--database", scene.relay.database],
                               capture_output=True, text=True)
        told.append(check.returncode != 0)
    # A damaged page that is not in use may go unnoticed.
    assert sum(told) >= 15, told
    for lost in (good[:4096], b"", None):
        os.unlink(scene.relay.database)
        if lost is not None:
            open(scene.relay.database, "wb").write(lost)
        started = scene.relay.start(wait=False) and scene.relay.ready()
        assert not started and scene.relay.process.returncode == 69, scene.relay.process.returncode
    open(scene.relay.database, "wb").write(good)
    return {"refused": True, "flipped bits told": sum(told)}


def damaged_log(scene):
    """A byte of the write-ahead log has changed: the relay refuses the file.

    Otherwise it would silently drop what was acknowledged after that byte. With the byte restored, everything
    is there."""
    for _ in range(20):
        assert scene.post() == 200
    # A name that does not resemble anything else in the log.
    scene.number = 987_654_320
    assert scene.post() == 200
    scene.relay.kill()
    log = scene.relay.database + "-wal"
    good = open(log, "rb").read()
    # A relay that is killed between a commit and its note leaves frames after the last acknowledged change.
    # They are of changes that were not acknowledged, and may be lost. So the commit of the last acknowledged
    # change itself loses its last frame, which holds the size of the file.
    last = (good.index(scene.acknowledged[-1].encode()) - 32) // 4120
    while good[32 + last * 4120 + 4:32 + last * 4120 + 8] == bytes(4):
        last += 1
    middle = last // 2
    bad = bytearray(good)
    bad[32 + middle * 4120 + 1000] ^= 1
    open(log, "wb").write(bad)
    started = scene.relay.start(wait=False) and scene.relay.ready()
    assert not started and scene.relay.process.returncode == 69, scene.relay.process.returncode
    told = open(os.path.join(scene.folder, "relay.log")).read()
    assert "lacks changes that were acknowledged" in told \
        or "is broken, and what was committed after it would be lost" in told, told
    for kept in (0, middle, last):
        open(log, "wb").write(good[:32 + kept * 4120])
        started = scene.relay.start(wait=False) and scene.relay.ready()
        assert not started and scene.relay.process.returncode == 69, scene.relay.process.returncode
    open(log, "wb").write(good)
    return {"refused": True, "frames": (len(good) - 32) // 4120}


def damaged_rows(scene):
    """Rows that cannot be read: the relay starts, serves the others, and names these rows."""
    scene.relay.register("other", "bob")
    scene.relay.save("all", "bob")
    # After a graceful end a snapshot would hold the content of the rows.
    scene.relay.settled(PATIENCE)
    scene.relay.kill()
    database = sqlite3.connect(scene.relay.database)
    owner = "owner = (SELECT id FROM user WHERE name = 'bob')"
    body, = database.execute(f"SELECT body FROM subscription WHERE {owner}").fetchone()
    database.execute(f"UPDATE subscription SET body = 'a secret' WHERE {owner}")
    database.execute(f"UPDATE device SET token = 'x' WHERE {owner}")
    database.commit()
    assert scene.relay.start(), "it must start"
    assert scene.post() == 200
    scene.relay.settled(PATIENCE)
    end, named = time.monotonic() + PATIENCE, []
    while len(named) < 2 and time.monotonic() < end:
        text = scene.relay.call("GET", "/metrics", admin=True)[1]
        named = re.findall(r'^belfry_unreadable_rows_total{table="(\w+)"} 1$', text, re.M)
        time.sleep(0.1)
    assert sorted(named) == ["device", "subscription"], named
    check = subprocess.run([scene.relay.belfry, "check", "--database", scene.relay.database],
                           capture_output=True, text=True)
    assert check.returncode != 0 and "subscription 2" in check.stdout, check.stdout + check.stderr
    assert scene.relay.stop() == 0
    told = open(os.path.join(scene.folder, "relay.log")).read()
    assert "cannot be read" in told and "a secret" not in told + check.stdout
    database.execute(f"UPDATE subscription SET body = ? WHERE {owner}", (body,))
    database.execute(f"UPDATE device SET token = ? WHERE {owner}", (device_token("other"),))
    database.commit()
    database.close()
    reseal(scene.relay.belfry, scene.relay.database)
    return {"named": sorted(named)}


def overload(scene):
    """The gateway is away, and more waits than allowed: changes are refused with the bound's name.

    They are accepted again when the gateway is back."""
    assert scene.relay.stop() == 0
    scene.gateway.stop()
    assert scene.relay.start(settings={"bounds-retries": 3})
    for _ in range(10):
        assert scene.post() == 200
    end, answers = time.monotonic() + PATIENCE, []
    while 503 not in answers and time.monotonic() < end:
        answers.append(scene.post())
    assert set(answers) <= {200, 503} and scene.answer["bound"] == "retries", scene.answer
    assert scene.answer["retryAfterHeader"] == "5", scene.answer
    named = {}
    while time.monotonic() < end:
        text = scene.relay.call("GET", "/metrics", admin=True)[1]
        named = dict(re.findall(
            r'^belfry_(bound_reached|intake_refused_total){bound="retries"} (\d+)$', text, re.M))
        if named == {"bound_reached": "1", "intake_refused_total": "1"}:
            break
    else:
        raise AssertionError(f"the metrics do not name the bound: {named}")
    scene.gateway = Gateway(scene.relay.belfry, scene.folder, after=scene.gateway)
    while scene.post() != 200:
        assert time.monotonic() < end, "it does not take changes again"
        time.sleep(0.1)
    return {"refused": 1, "taken": len(answers) - 1}


def full_disk(scene):
    """The disk fills up and is freed: appends are refused with 507, and what is owed is delivered.

    That includes claims and huge fan-outs, and the relay continues without a restart. A relay that is started
    on the full disk waits."""
    scene.relay.settings["fanout-range-threshold"] = 1
    assert scene.restart()
    once = save_once(scene, 60)
    place = os.path.dirname(scene.relay.database)
    ballast = os.path.join(place, "ballast")
    # Unbuffered, because a buffer's content would be written again when the file is closed, and fail.
    with open(ballast, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError:
            pass
        # Room for some changes, but not for their claims and ranges.
        file.truncate(file.tell() - (1 << 20))
    end = time.monotonic() + PATIENCE
    statuses = [scene.post(2000) for _ in range(200)]
    assert set(statuses) <= {200, 507} and statuses[-1] == 507, statuses
    assert int(scene.answer["retryAfterHeader"]) > 0, scene.answer
    assert scene.relay.call("GET", "/healthz")[0] == 200
    status, answer = scene.relay.call("GET", "/readyz")
    while status != 503 and time.monotonic() < end:
        statuses.append(scene.post(2000))
        status, answer = scene.relay.call("GET", "/readyz")
    assert status == 503 and answer["reasons"]["storage"], f"it says that it is ready: {answer}"
    refused = 0
    while refused < statuses.count(507) and time.monotonic() < end:
        metrics = scene.relay.call("GET", "/metrics", admin=True)[1]
        found = re.search(r'refused_total{bound="disk"} (\d+)', metrics)
        refused = int(found[1]) if found else 0
        time.sleep(0.1)
    assert refused >= statuses.count(507), metrics
    assert scene.relay.process.poll() is None, "it must wait for room"
    scene.relay.kill()
    scene.relay.start(wait=False)
    time.sleep(8)
    assert scene.relay.process.poll() is None, "it must wait for room at the start too"
    os.unlink(ballast)
    assert scene.relay.ready()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if scene.post() == 200:
            break
        time.sleep(0.2)
    else:
        raise AssertionError("it did not recover")
    assert scene.relay.call("GET", "/readyz")[0] == 200
    return {"refused": statuses.count(507), "takenBefore": statuses.count(200),
            "once": fired_once(scene, once)}


SCENES = {
    "failedSync": failed_sync, "failedSyncOfFile": failed_sync_of_file,
    "failedWrite": failed_write, "shortWrite": short_write, "quota": quota,
    "busy": busy, "damaged": damaged, "damagedLog": damaged_log, "damagedRows": damaged_rows,
    "overload": overload, "fullDisk": full_disk,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scenes", nargs="*", choices=[*SCENES, []], default=[])
    parser.add_argument("--binary")
    options = parser.parse_args()
    belfry = binary(options.binary)
    failed = False
    for name in options.scenes or SCENES:
        folder = tempfile.mkdtemp(prefix="belfry-storage-")
        place = None
        if name == "fullDisk":
            place = os.path.join(folder, "disk")
            os.mkdir(place)
            mount = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", place], capture_output=True)
            if mount.returncode != 0:
                print("fullDisk: left out, a tmpfs cannot be mounted here")
                continue
        try:
            scene = Scene(belfry, build_shim(folder), folder, place)
            result = SCENES[name](scene)
            result.update(scene.finish())
            print(f"{name}: {json.dumps(result)}", flush=True)
            if place:
                subprocess.run(["umount", place])
            shutil.rmtree(folder)
        except (AssertionError, SystemExit, OSError) as error:
            failed = True
            print(f"{name}: NOT AS PROMISED: {error} (kept {folder})", flush=True)
            for process in (scene.relay.process, scene.gateway.process):
                if process.poll() is None:
                    process.kill()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
