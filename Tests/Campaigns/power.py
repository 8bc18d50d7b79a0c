#!/usr/bin/env python3
"""Real power cuts: the relay's file system is shut down in the middle of the work, and mounted again.

The file is on a file system of its own in a loop device, which loses everything that the kernel had not written.
Then the relay continues.

Every change that was acknowledged before the cut must be there and be delivered, as in crash.py, whose clients and
ledger this uses. Changes acknowledged while the file system shuts down are in doubt: there Linux reports some syncs
as done that are not (5 in 200 cuts of a program that only writes and syncs; 0 before the call). As a control the
relay runs on a disk that reports the log's syncs as done without doing them: there a cut must lose acknowledged
changes.

  python3 Tests/Campaigns/power.py --cuts 50

It needs root and a loop device, and runs in a mount namespace of its own. On a machine without them it says so
and ends.
"""
import argparse, fcntl, json, os, random, shutil, struct, subprocess, sys, tempfile, threading, time
from rig import Gateway, Relay, binary, build_shim
from crash import (AT_ONCE, RANGE_WINDOW, RETRY_WINDOW, WINDOW, Driver, Ledger, Poster, Volley,
                   furnish, settle_accounts)
from images import inspect

# `_IOR('X', 125, __u32)` of ext4 and xfs, and its flag that leaves the journal unwritten.
SHUTDOWN, WITHOUT_JOURNAL = 0x8004587D, 2
INSIDE = "BELFRY_POWER_INSIDE"


class Disk:
    """A file system in a file."""

    def __init__(self, folder, megabytes=512):
        self.image, self.place = os.path.join(folder, "disk"), os.path.join(folder, "mounted")
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        os.mkdir(self.place)
        subprocess.run(["mkfs.ext4", "-q", self.image], check=True)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.place], check=True)

    def cut(self):
        folder = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_JOURNAL))
        finally:
            os.close(folder)

    def unmount(self):
        subprocess.run(["umount", self.place], check=True)


def enter():
    """Starts this program again in a mount namespace, if the machine allows one with loop devices."""
    probe = ("mount --make-rprivate / && truncate -s 16M $0/disk && mkfs.ext4 -q $0/disk"
             " && mkdir $0/place && mount -o loop $0/disk $0/place && umount $0/place")
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["unshare", "--mount", "sh", "-c", probe, folder],
                          capture_output=True).returncode != 0:
            print("not run: this machine gives no mount namespace with a loop device")
            sys.exit()
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--mount", sys.executable] + sys.argv)


def one_life(relay, gateway, disk, ledger, round, generator, doubtful):
    """Starts the relay, posts, and cuts the power."""
    if not relay.start():
        raise SystemExit("the relay did not start after a power cut: see relay.log")
    status, answer = relay.save(
        f"once{round}", f"once{round % 4}", f"artist == 'a' OR artist == '{round}'", firesOnce=True)
    if status == 200 and "serverErrorCode" not in json.dumps(answer):
        ledger.write(once=f"once{round}", user=f"once{round % 4}", round=round)
    poster = Poster(relay, ledger, round, doubtful)
    barrier = threading.Barrier(AT_ONCE)
    drivers = [Volley(poster, number, barrier) for number in range(AT_ONCE)]
    drivers += [Driver(poster, number, generator) for number in range(4)]
    for driver in drivers:
        driver.start()
    time.sleep(generator.uniform(0.02, 0.8))
    poster.is_over = True
    disk.cut()
    # The relay ends by itself at the first failed sync, or continues as long as it needs none.
    relay.kill()
    for driver in drivers:
        driver.stopping = True
        driver.join()
    ledger.write(kill=round, offset=gateway.quiet(), how="power")
    disk.unmount()
    disk.mount()


def campaign(options, folder, belfry):
    generator = random.Random(options.seed)
    disk = Disk(folder)
    ledger = Ledger(os.path.join(folder, "ledger.jsonl"))
    gateway = Gateway(belfry, folder)
    relay = Relay(belfry, folder, gateway.port, gateway.ca, {
        "delivery-in-flight": WINDOW, "delivery-range-in-flight": RANGE_WINDOW,
        "delivery-retry-in-flight": RETRY_WINDOW,
        "fanout-range-threshold": 10, "storage-wal-megabytes": 1})
    relay.database = os.path.join(disk.place, "relay.sqlite")
    relay.start()
    furnish(relay, ledger)
    relay.kill()
    doubtful, began, cuts = [], time.monotonic(), 0
    while cuts < options.cuts and time.monotonic() - began < options.seconds:
        one_life(relay, gateway, disk, ledger, cuts, generator, doubtful)
        cuts += 1
    if not relay.start():
        raise SystemExit("the relay did not start again: see relay.log")
    result, bad = settle_accounts(relay, gateway, ledger, doubtful, options.drain)
    disk.unmount()
    return {"cuts": cuts, **result}, bad


def control(options, folder, belfry):
    """Cuts the power of a relay whose log is never synced; returns how many changes were lost of how many."""
    os.mkdir(folder)
    generator = random.Random(options.seed)
    disk = Disk(folder)
    gateway = Gateway(belfry, folder)
    relay = Relay(belfry, folder, gateway.port, gateway.ca)
    relay.database = os.path.join(disk.place, "relay.sqlite")
    relay.start()
    ledger_path = os.path.join(folder, "ledger.jsonl")
    furnish(relay, Ledger(ledger_path))
    relay.stop()
    ledger = Ledger(ledger_path)
    relay.start(environment={
        "LD_PRELOAD": build_shim(folder), "FAULT_PATH": "relay.sqlite-wal", "FAULT_CALLS": "s",
        "FAULT_FAIL_AT": "1", "FAULT_FAIL_COUNT": "1000000000", "FAULT_ERRNO": "ignored"})
    drivers = [Driver(Poster(relay, ledger, 0, []), number, generator) for number in range(4)]
    for driver in drivers:
        driver.start()
    time.sleep(1)
    disk.cut()
    relay.kill()
    for driver in drivers:
        driver.stopping = True
        driver.join()
    gateway.stop()
    disk.unmount()
    disk.mount()
    entries = [json.loads(line) for line in open(ledger_path)]
    wanted = [entry["change"] for entry in entries if entry.get("acknowledged")]
    problem, missing = inspect(disk.place, wanted)
    disk.unmount()
    return {"acknowledged": len(wanted), "lost": missing, "problem": problem}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1200, help="no cut after these")
    parser.add_argument("--drain", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        enter()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    belfry = binary(options.binary)
    folder = tempfile.mkdtemp(prefix="belfry-power-")
    result, bad = campaign(options, folder, belfry)
    result["control"] = control(options, os.path.join(folder, "control"), belfry)
    print(json.dumps(result, indent=2))
    if bad:
        sys.exit(f"NOT AS PROMISED (kept {folder}): {', '.join(bad)}")
    if not result["control"]["lost"]:
        sys.exit("the control lost nothing: these cuts prove nothing")
    shutil.rmtree(folder)
    print("as promised; the control loses, as it must")


if __name__ == "__main__":
    main()
