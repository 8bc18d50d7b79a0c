#!/usr/bin/env python3
"""Faults of the network between relay and gateway: the gateway's address changes, or a path goes dead.

Each scene compares what was owed with what the gateways received.

  python3 Tests/Campaigns/network.py
  python3 Tests/Campaigns/network.py addresses

It runs in namespaces of its own, with its own loopback, packet filter and /etc/hosts; nothing outside is touched.
On a machine without namespaces it says so and ends.
"""
import argparse, json, os, shutil, subprocess, sys, tempfile, time
from rig import PATIENCE, Gateway, Rig, binary, pushes

NAME, FIRST, SECOND = "push.example", "127.0.0.2", "127.0.0.3"
# A half-open connection must be found within this many seconds.
PROMISED = 20
INSIDE = "BELFRY_NETWORK_INSIDE"


def enter():
    """Starts this program again in namespaces of its own."""
    spaces = ["unshare", "--mount", "--net"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if shutil.which("nft") is None or subprocess.run(
            spaces + ["nft", "list", "ruleset"], capture_output=True).returncode != 0:
        print("not run: this machine gives no namespaces, or has no nft")
        sys.exit()
    os.environ[INSIDE] = "1"
    os.execvp("unshare", spaces + [sys.executable] + sys.argv)


def run(*command):
    subprocess.run(command, check=True)


class Scene(Rig):
    """A gateway with a name, whose address and network path the test controls."""

    def __init__(self, belfry):
        self.hosts = os.path.join(tempfile.mkdtemp(prefix="belfry-network-"), "hosts")
        self.resolve(FIRST)
        run("mount", "--make-rprivate", "/")
        run("mount", "--bind", self.hosts, "/etc/hosts")
        run("ip", "link", "set", "lo", "up")
        run("nft", "add table ip path")
        run("nft", "add chain ip path out { type filter hook output priority 0; }")
        super().__init__(belfry, "network", host=NAME)

    def resolve(self, address):
        with open(self.hosts, "w") as file:
            file.write(f"127.0.0.1 localhost\n{address} {NAME}\n")

    def move(self, address):
        """Gives the name another address, where another gateway listens on the same port."""
        self.resolve(address)
        before, self.gateway = self.gateway, Gateway(
            self.belfry, self.folder, after=self.gateway, host=NAME)
        return before

    def block(self, address):
        """Drops packets from an address: requests arrive, and nothing comes back."""
        run("nft", "add", "rule", "ip", "path", "out", "ip", "saddr", address, "drop")

    def arrived(self, gateway, names):
        """Waits until the gateway has accepted the pushes of these records; returns their IDs."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = {push["record"]: push["id"] for push in pushes(gateway.record)
                     if push["accepted"] and push["record"] in names}
            if len(found) == len(names):
                return found
            time.sleep(0.05)
        raise SystemExit(f"{len(names) - len(found)} of {len(names)} pushes never arrived")


def addresses(rig):
    """DNS gives another address: a working connection is kept, and a new one goes to the new address."""
    rig.arrived(rig.gateway, rig.post(20))
    old = rig.move(SECOND)
    rig.arrived(old, rig.post(20))
    old.stop()
    moved = rig.post(20)
    found = rig.arrived(rig.gateway, moved)
    return {"pushes": len(rig.posted), "afterTheChange": len(found)}


def halfOpen(rig):
    """Nothing comes back while pushes are open: they are sent again, with their IDs."""
    rig.arrived(rig.gateway, rig.post(20))
    old = rig.move(SECOND)
    rig.block(FIRST)
    began = time.monotonic()
    lost = rig.post(20)
    unanswered = rig.arrived(old, lost)
    again = rig.arrived(rig.gateway, lost)
    took = time.monotonic() - began
    assert unanswered == again, "a push was sent again with another apns-id"
    old.process.kill()
    return {"sentAgain": len(again), "seconds": round(took, 1), "promised": PROMISED}


def silentIdle(rig):
    """The path goes dead while nothing is open: the next push does not wait for it."""
    rig.arrived(rig.gateway, rig.post(20))
    old = rig.move(SECOND)
    rig.block(FIRST)
    began = time.monotonic()
    while connections(FIRST, rig.gateway.port):
        assert time.monotonic() < began + PATIENCE, "the dead connection is still open"
        time.sleep(0.1)
    took = time.monotonic() - began
    rig.arrived(rig.gateway, rig.post(20))
    old.process.kill()
    return {"seconds": round(took, 1), "promised": PROMISED}


def connections(address, port):
    """Returns how many connections to an address the relay has open."""
    wanted = f"{bytes(reversed([int(part) for part in address.split('.')])).hex()}:{port:04X}"
    with open("/proc/net/tcp") as file:
        ends = [line.split()[2:4] for line in file.readlines()[1:]]
    return sum(far.upper() == wanted.upper() and state == "01" for far, state in ends)


SCENES = {"addresses": addresses, "halfOpen": halfOpen, "silentIdle": silentIdle}


def scene(name, belfry):
    rig = Scene(belfry)
    result = SCENES[name](rig)
    rig.relay.settled(PATIENCE)
    rig.leave()
    shutil.rmtree(os.path.dirname(rig.hosts))
    print(json.dumps({"scene": name, **result}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scenes", nargs="*", metavar="|".join(SCENES))
    parser.add_argument("--binary")
    options = parser.parse_args()
    names = options.scenes or list(SCENES)
    if unknown := set(names) - set(SCENES):
        parser.error(f"no such scene: {', '.join(sorted(unknown))}")
    if INSIDE not in os.environ:
        enter()
    if len(names) == 1:
        return scene(names[0], binary(options.binary))
    # Each scene gets namespaces of its own.
    del os.environ[INSIDE]
    for name in names:
        more = ["--binary", options.binary] if options.binary else []
        run(sys.executable, __file__, name, *more)
    print("as promised")


if __name__ == "__main__":
    main()
