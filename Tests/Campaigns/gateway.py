#!/usr/bin/env python3
"""Faults of a push gateway, each in a scene of its own, and what a relay does about them.

The gateway is away, has another certificate, refuses, asks for patience, ends connections in the middle,
stalls, is slow, or changes its limits. In each scene changes are posted before, during and after the fault. Then
three records are compared: what was owed, what the gateway printed, and the receipts of the relay.

  python3 Tests/Campaigns/gateway.py
  python3 Tests/Campaigns/gateway.py away busy

In every scene each delivery is accepted in the end, with one apns-id and no dead letter. The table of scenes says
how many pushes may be received twice, and which receipts there must be.
"""
import argparse, json, shutil, sys, tempfile, time
from collections import Counter
from rig import CONTAINER, PATIENCE, Gateway, Rig, binary, pushes

COUNT = 20


def scripted(*steps):
    return {"rules": [{"answers": [dict(step) for step in steps]}]}


def after_ten(**step):
    return scripted({"do": "accept", "times": 10}, {"times": 1, **step}, {"do": "accept"})


def refusal(status, reason):
    return {"do": "refuse", "status": status, "reason": reason, "retryAfter": 1, "times": 2}


def cut(repeated, needed, **step):
    return after_ten(**step), repeated, needed, [NOT_SENT, REFUSED, CLOSED, BROKEN]


NOT_SENT = ("deferred", 0, "no connection")
CLOSED = ("deferred", 0, "the connection was closed before the answer was complete")
BROKEN = ("deferred", 0, "receiving failed")
RESET = ("deferred", 0, "the gateway reset the stream")
REFUSED = ("deferred", 0, "the gateway closes the connection or refused the stream")
LATE = ("deferred", 0, "no answer yet")
GIVEN_UP = ("deferred", 0, "the connection was given up: nothing was answered for too long")
DEVICE = ("deferred", 0, "too many pushes for this device")
STRANGE = ("deferred", 0, "the gateway's certificate is not trusted")
ASKED = ("deferred", 429, "TooManyRequests")
BUSY = ("deferred", 503, "ServiceUnavailable")

# Each scene has a name, a script, how many pushes may be received again, which receipt must exist beside
# those of acceptances, and which others may exist. A receipt is given as outcome, status and reason.
SCRIPTED = {
    "busyDevice": ({"rules": [{"for": "eachPush", "answers": [
        refusal(429, "TooManyRequests"), {"do": "accept"}]}]}, 2 * (2 * COUNT + 1), ASKED, [DEVICE]),
    "busyGateway": (after_ten(**refusal(503, "ServiceUnavailable")), 2, BUSY, [NOT_SENT]),
    # Pushes above the last stream were not processed. They go on another connection, and leave a receipt if
    # that takes longer than a moment.
    "goAway": cut(0, None, do="goAway"),
    "goAwayBeforeThis": cut(1, None, do="goAway", lastStream="beforeThis"),
    "goAwayClosing": cut(COUNT, CLOSED, do="goAway", ending="close"),
    "connectionReset": cut(COUNT, CLOSED, do="closeConnection", end="reset"),
    "connectionEnded": cut(COUNT, CLOSED, do="closeConnection", end="finish"),
    "streamRefused": cut(1, None, do="resetStream", code="refused"),
    "streamReset": cut(1, RESET, do="resetStream", code="internalError"),
    "stalledStream": (after_ten(do="silence"), 1, GIVEN_UP, [LATE]),
    "halfOpen": (after_ten(do="freezeConnection"), COUNT, GIVEN_UP, [LATE]),
    "slow": (scripted({"do": "accept", "delayMilliseconds": [2000, 4000]}), 0, LATE, []),
    "fewerStreams": (scripted({"do": "accept", "times": 5},
                              {"do": "acceptLimitingStreams", "streams": 2, "times": 1},
                              {"do": "accept", "times": 10, "delayMilliseconds": 20},
                              {"do": "acceptLimitingStreams", "streams": 100, "times": 1},
                              {"do": "accept"}), 0, None, [NOT_SENT, REFUSED]),
}


class Scene(Rig):
    def __init__(self, belfry, script=None):
        super().__init__(belfry, "gateway", script)

    def receipts(self):
        answer = self.relay.expect(200, "GET", "/admin/1/receipts?limit=1000", admin=True)
        return answer["receipts"]

    def compare(self, repeated, needed, allowed):
        """Returns the deviations and what was found."""
        self.relay.settled(PATIENCE)
        bad, ids, received = [], {}, Counter()
        for record in self.gateway.records:
            for push in pushes(record):
                received[push["record"]] += 1
                if ids.setdefault(push["record"], push["id"]) != push["id"]:
                    bad.append(f"{push['record']} was sent with two IDs")
        again = sum(received.values()) - len(received)
        if missing := [name for name in self.posted if name not in received]:
            bad.append(f"{len(missing)} of {len(self.posted)} were never received")
        if again > repeated:
            bad.append(f"{again} were received again, {repeated} may be")
        accepted, others = Counter(), Counter()
        for receipt in self.receipts():
            if receipt["outcome"] == "accepted":
                accepted[receipt["deliveryID"]] += 1
            else:
                others[(receipt["outcome"], receipt["status"], receipt["reason"])] += 1
        if len(accepted) != len(self.posted) or set(accepted.values()) != {1}:
            bad.append(f"{len(accepted)} of {len(self.posted)} have the receipt of an acceptance")
        for other in others:
            if other not in [needed] + allowed:
                bad.append(f"no receipt may say {other}")
        if needed and needed not in others:
            bad.append(f"no receipt says {needed}")
        letters = self.relay.expect(
            200, "GET", f"/admin/1/containers/{CONTAINER}/development/deadLetters", admin=True)
        if letters["deadLetters"]:
            bad.append(f"{len(letters['deadLetters'])} dead letters")
        return bad, {"owed": len(self.posted), "receivedAgain": again,
                     "receipts": {" ".join(map(str, key)).strip(): count
                                  for key, count in others.items()}}


def scripted_scene(name):
    script, *expected = SCRIPTED[name]

    def play(belfry):
        rig = Scene(belfry, script)
        # A new connection is tried with one push; the following ones are open at the same time.
        rig.post(1)
        rig.relay.settled(PATIENCE)
        rig.post(COUNT)
        rig.relay.settled(PATIENCE)
        rig.post(COUNT)
        return rig, *rig.compare(*expected)
    return play


def away(belfry):
    """No gateway listens for a while."""
    rig = Scene(belfry)
    rig.post(COUNT)
    rig.relay.settled(PATIENCE)
    rig.gateway.stop()
    rig.post(COUNT)
    until_deferred(rig)
    rig.gateway = Gateway(belfry, rig.folder, after=rig.gateway)
    rig.post(COUNT)
    return rig, *rig.compare(0, NOT_SENT, [])


def stranger(belfry):
    """A server with another authority's certificate listens in the gateway's place, and must get nothing."""
    rig = Scene(belfry)
    rig.gateway.stop()
    elsewhere = tempfile.mkdtemp(prefix="belfry-gateway-")
    strange = Gateway(belfry, elsewhere, after=rig.gateway)
    rig.post(COUNT)
    until_deferred(rig)
    strange.stop()
    heard = len(list(pushes(strange.record)))
    rig.gateway = Gateway(belfry, rig.folder, after=rig.gateway)
    rig.post(COUNT)
    bad, found = rig.compare(0, STRANGE, [])
    shutil.rmtree(elsewhere)
    return rig, bad + ([f"a stranger was told {heard} pushes"] if heard else []), found


def until_deferred(rig):
    end = time.monotonic() + PATIENCE
    while not any(receipt["outcome"] == "deferred" for receipt in rig.receipts()):
        assert time.monotonic() < end, "no receipt says that the gateway cannot be reached"
        time.sleep(0.1)


SCENES = {"away": away, "stranger": stranger,
          **{name: scripted_scene(name) for name in SCRIPTED}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scenes", nargs="*", help=" ".join(SCENES))
    parser.add_argument("--binary")
    options = parser.parse_args()
    belfry, failed = binary(options.binary), []
    for name in options.scenes or SCENES:
        if name not in SCENES:
            parser.error(f"there is no scene {name}: {' '.join(SCENES)}")
        began = time.monotonic()
        rig, bad, found = SCENES[name](belfry)
        if code := rig.leave():
            bad.append(f"the relay ended with {code}")
        print(f"{name}: {json.dumps(found)}, {time.monotonic() - began:.0f} s", flush=True)
        for text in bad:
            print(f"  NOT AS PROMISED: {text}", flush=True)
        failed += [name] if bad else []
    if failed:
        sys.exit(f"not as promised: {' '.join(failed)}")
    print("as promised")


if __name__ == "__main__":
    main()
