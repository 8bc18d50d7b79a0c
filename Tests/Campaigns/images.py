#!/usr/bin/env python3
"""Simulated power cuts: builds what a disk may hold after a cut at any moment of a relay's run.

It records every write and sync of a running relay. An image contains everything that was synced, and any of the
sectors that were written and not synced.

Every image must open, be sound, and contain every change that was acknowledged before the cut. As a control the
same record is read as if the write-ahead log had never been synced, as with synchronous=NORMAL between
checkpoints. Then acknowledged changes must be missing.

  python3 Tests/Campaigns/images.py --images 1000
"""
import argparse, json, os, random, shutil, sqlite3, struct, subprocess, sys, tempfile, threading
import http.client, time
from rig import CONTAINER, PATIENCE, Gateway, Relay, binary, build_shim, exchange

SECTOR = 512


def events(path):
    """Yields the recorded file calls: end offset in the record, kind, name, offset or length, data."""
    data = open(path, "rb").read()
    place = 0
    while place + 5 <= len(data):
        kind = chr(data[place])
        length, = struct.unpack_from("<i", data, place + 1)
        name = os.path.basename(data[place + 5:place + 5 + length].decode())
        place += 5 + length
        offset, size = struct.unpack_from("<qq", data, place)
        place += 16
        body = data[place:place + size] if kind == "W" else b""
        place += len(body)
        yield place, kind, name, offset, body


def put(file, offset, data):
    if len(file) < offset + len(data):
        file.extend(bytes(offset + len(data) - len(file)))
    file[offset:offset + len(data)] = data


def cut(file, length):
    if len(file) > length:
        del file[length:]
    else:
        file.extend(bytes(length - len(file)))


class Disk:
    """What is synced, and what is written and not synced yet."""

    def __init__(self, honest):
        self.honest, self.files, self.pending = honest, {}, {}

    def apply(self, kind, name, offset, body):
        file = self.files.setdefault(name, bytearray())
        queue = self.pending.setdefault(name, [])
        if kind in "WT":
            queue.append((kind, offset, body))
        elif kind == "U":
            del self.files[name], self.pending[name]
        elif kind == "S" and (self.honest or not name.endswith("-wal")):
            for call in queue:
                self.write(file, *call)
            queue.clear()

    @staticmethod
    def write(file, kind, offset, body):
        put(file, offset, body) if kind == "W" else cut(file, offset)

    def image(self, folder, generator):
        """Writes what may be on the disk after a cut now."""
        fate = generator.choice(["nothing", "everything", "beginning", "sectors"])
        for name, file in self.files.items():
            result = bytearray(file)
            queue = self.pending[name]
            kept = generator.randrange(len(queue) + 1) if fate == "beginning" else len(queue)
            for call in [] if fate == "nothing" else queue[:kept]:
                kind, offset, body = call
                if fate != "sectors" or kind != "W":
                    if fate != "sectors" or generator.random() < 0.5:
                        self.write(result, *call)
                    continue
                for start in range(0, len(body), SECTOR):
                    if generator.random() < 0.5:
                        put(result, offset + start, body[start:start + SECTOR])
            with open(os.path.join(folder, name), "wb") as output:
                output.write(result)


def drive(relay, seconds, log, acknowledgements):
    """Posts changes from several threads, and notes the size of the record at each acknowledgement."""
    end = time.monotonic() + seconds

    def post(number):
        connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=PATIENCE)
        count = 0
        while time.monotonic() < end or count < 25:
            name = f"w{number}-{count}"
            count += 1
            status, answer = exchange(
                connection, "POST", f"/changes/1/{CONTAINER}/development/database",
                {"operation": "create", "recordType": "Artwork", "recordName": name,
                 "after": {"text": "x" * 300}}, {"webhook-id": name})
            if status == 200:
                acknowledgements.append((os.path.getsize(log), name))

    threads = [threading.Thread(target=post, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def inspect(folder, wanted):
    """Opens an image; returns its faults, and how many acknowledged changes it lacks."""
    path = os.path.join(folder, "relay.sqlite")
    try:
        database = sqlite3.connect(path)
        state = database.execute("PRAGMA integrity_check").fetchone()[0]
        rows = database.execute("SELECT body FROM logEntry WHERE kind = 1").fetchall()
        gaps, = database.execute(
            "SELECT (SELECT position FROM shardHead) - (SELECT count(*) FROM logEntry)").fetchone()
        database.close()
    except sqlite3.DatabaseError as error:
        return str(error), len(wanted)
    text = "\n".join(row[0] for row in rows)
    missing = sum(f'"{name}"' not in text for name in wanted)
    return (state if state != "ok" else "the log has gaps" if gaps else None), missing


def replay(record, acknowledgements, options, honest, folder, belfry):
    generator = random.Random(options.seed)
    ends = [event[0] for event in record]
    # Images from before the schema exists say nothing about acknowledgements.
    first = next(i for i, event in enumerate(record) if event[0] >= acknowledgements[0][0])
    cuts = sorted(generator.randrange(first, len(record) + 1) for _ in range(options.images))
    disk, place, lost, lossy, broken, checked = Disk(honest), 0, 0, 0, [], 0
    for number, moment in enumerate(cuts):
        for event in record[place:moment]:
            disk.apply(*event[1:])
        place = moment
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        disk.image(folder, generator)
        reached = ends[moment - 1] if moment else 0
        wanted = [name for offset, name in acknowledgements if offset <= reached]
        if honest:
            # States of the files that only a power cut can cause must not be reported as damage.
            opened = subprocess.run(
                [belfry, "migrate", "--database", os.path.join(folder, "relay.sqlite")],
                capture_output=True, text=True)
            if opened.returncode != 0:
                broken.append(f"image {number}: {opened.stdout}{opened.stderr}")
            # SQLite itself opens the file below, and may leave pages without their checksums.
            copy = os.path.join(folder, "checked.sqlite")
            if number % 50 == 0 and not opened.returncode:
                shutil.copy(os.path.join(folder, "relay.sqlite"), copy)
                shutil.copy(os.path.join(folder, "relay.sqlite-witness"), copy + "-witness")
        problem, missing = inspect(folder, wanted)
        lost += missing
        lossy += missing > 0
        if problem:
            broken.append(f"image {number}: {problem}")
        elif honest and number % 50 == 0:
            checked += 1
            result = subprocess.run(
                [belfry, "check", "--database", os.path.join(folder, "checked.sqlite")],
                capture_output=True, text=True)
            if result.returncode != 0:
                broken.append(f"image {number}: {result.stdout}{result.stderr}")
    return {"images": len(cuts), "broken": len(broken), "acknowledgedLost": lost,
            "imagesWithLoss": lossy, "checkedByBelfry": checked, "first": broken[:3]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3, help="how long changes are posted")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary")
    options = parser.parse_args()
    belfry = binary(options.binary)
    folder = tempfile.mkdtemp(prefix="belfry-images-")
    log = os.path.join(folder, "calls")
    gateway = Gateway(belfry, folder)
    relay = Relay(belfry, folder, gateway.port, gateway.ca, {"storage-wal-megabytes": 1})
    relay.start(environment={"LD_PRELOAD": build_shim(folder), "FAULT_PATH": "relay.sqlite",
                             "FAULT_LOG": log})
    relay.furnish()
    relay.register("phone", "alice")
    relay.save("all", "alice")
    acknowledgements = []
    drive(relay, options.seconds, log, acknowledgements)
    relay.kill()
    gateway.stop()
    record = list(events(log))
    images = os.path.join(folder, "images")
    os.mkdir(images)
    result = {"calls": len(record), "acknowledged": len(acknowledgements)}
    result["full"] = replay(record, acknowledgements, options, True, images, belfry)
    options.images = max(40, options.images // 5)
    result["control"] = replay(record, acknowledgements, options, False, images, belfry)
    print(json.dumps(result, indent=2))
    shutil.rmtree(folder)
    if result["full"]["broken"] or result["full"]["acknowledgedLost"]:
        sys.exit("NOT AS PROMISED: a power cut loses or breaks something")
    if not result["control"]["acknowledgedLost"]:
        sys.exit("the control lost nothing: these images prove nothing")
    print("as promised; the control loses, as it must")


if __name__ == "__main__":
    main()
