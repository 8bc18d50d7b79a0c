"""Compares a driver's ledger with a gateway's record. It shares no code with the relay.

The ledger has one JSON object a line:
  {"device": ID, "user": U}                     before the first change
  {"subscription": S, "user": U, "big": true}   likewise; "big" ones fire only for big changes
  {"change": R, "acknowledged": bool, "big": bool, "round": N}
  {"once": S, "user": U, "round": N}            acknowledged before the changes of its round
  {"kill": N, "offset": size of the record at that moment}
  {"kill": N, "offset": size at the beginning, "until": size at the end}    a relay that lost the store, and
                                                what it sent meanwhile
"""
import json, sys
from bisect import bisect_left
from collections import Counter, defaultdict
from rig import device_token, pushes


def compare(ledger, record, window):
    entries = [json.loads(line) for line in open(ledger)]
    devices = defaultdict(list)
    subscriptions, changes, once, kills = [], {}, {}, []
    for entry in entries:
        if "device" in entry:
            devices[entry["user"]].append(device_token(entry["device"]))
        elif "subscription" in entry:
            subscriptions.append(entry)
        elif "once" in entry:
            once[(entry["user"], entry["once"])] = entry
        elif "kill" in entry:
            kills.append((entry.get("until", entry["offset"]), entry["offset"]))
        elif "change" in entry:
            known = changes.setdefault(entry["change"], entry)
            known["acknowledged"] |= entry["acknowledged"]
    attempted, accepted, ids, positions = set(), defaultdict(list), defaultdict(set), {}
    fired_once, wrong = defaultdict(set), []
    for push in pushes(record):
        key = (push["record"], push["user"], push["subscription"], push.get("token"))
        attempted.add(key)
        ids[key].add(push["id"])
        if push["accepted"]:
            accepted[key].append(push["offset"])
        owner = (push["user"], push["subscription"])
        if owner in once:
            fired_once[owner].add(push["record"])
        if positions.setdefault(push["record"], push["position"]) != push["position"]:
            wrong.append(f"{push['record']} stands at two positions")
        if push["record"] not in changes:
            wrong.append(f"{push['record']} was never posted")
    lost = unattempted = owed = 0
    for name, change in changes.items():
        if not change["acknowledged"]:
            continue
        any_missing = False
        for subscription in subscriptions:
            if subscription["big"] and not change["big"]:
                continue
            for token in devices[subscription["user"]]:
                key = (name, subscription["user"], subscription["subscription"], token)
                owed += 1
                if key not in attempted:
                    unattempted += 1
                if not accepted[key]:
                    any_missing = True
        lost += any_missing
    kills.sort()
    repeated, between, other_ids, by_kill = 0, 0, 0, Counter()
    for key, offsets in accepted.items():
        if len(offsets) > 1:
            repeated += len(offsets) - 1
            for first, second in zip(offsets, offsets[1:]):
                # It was in flight at the first kill after its first copy.
                kill = bisect_left(kills, (first, 0))
                if kill < len(kills) and kills[kill][1] <= second:
                    by_kill[kill] += 1
                else:
                    between += 1
        other_ids += len(ids[key]) > 1
    rounds = {change["round"] for change in changes.values() if change["acknowledged"]}
    result = {
        "kills": len(kills), "changes": len(changes),
        "acknowledged": sum(change["acknowledged"] for change in changes.values()),
        "deliveriesOwed": owed, "accepted": sum(map(len, accepted.values())),
        "acknowledgedChangesLost": lost, "deliveriesNeverAttempted": unattempted,
        "repeated": repeated, "mostRepeatedByOneKill": max(by_kill.values(), default=0),
        "mostAllowed": window,
        "repeatedWithoutKillBetween": between, "repeatedWithAnotherID": other_ids,
        "once": len(once), "onceFiredTwice": sum(len(names) > 1 for names in fired_once.values()),
        "onceNotFired": sum(
            not fired_once[owner] for owner, entry in once.items() if entry["round"] in rounds),
        "wrong": wrong[:5],
    }
    bad = [name for name in (
        "acknowledgedChangesLost", "deliveriesNeverAttempted", "repeatedWithoutKillBetween",
        "repeatedWithAnotherID", "onceFiredTwice", "onceNotFired") if result[name]]
    if result["mostRepeatedByOneKill"] > window:
        bad.append("repeated")
    if wrong:
        bad.append("wrong")
    return result, bad


if __name__ == "__main__":
    result, bad = compare(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(json.dumps(result, indent=2))
    sys.exit(f"NOT AS PROMISED: {', '.join(bad)}" if bad else 0)
