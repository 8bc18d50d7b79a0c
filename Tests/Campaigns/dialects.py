#!/usr/bin/env python3
"""Conditions of every dialect, by the million: the index must fire what the slow evaluator fires.

Random conditions are written in the dialects' own words, on few fields and values, so that they often match.
Among them are as many as wanted that only few changes match. `belfry match` takes them all into one index, and
the slow evaluator judges them in parts. Every change must fire the same subscriptions.

  python3 Tests/Campaigns/dialects.py --subscriptions 1000000 --changes 30
"""
import argparse, json, os, random, subprocess, sys, tempfile

FIELDS = ["artist", "price", "title", "tags", "when"]
TEXTS = ["a", "A", "ab", "abc", "é", "e\u0301", "É", "", "xabcx", "b", "a*b"]
MOMENTS = ["2023-11-14T22:13:20Z", "2023-11-14T23:13:20.000000+01:00", "1970-01-01T00:00:00Z", "2023-11-14"]
NUMBERS = [0, 1, 2, 0.5, 10.25, -3, 9007199254740993, 1e300]
SECONDS = [1700000000, 0]


def number(dice):
    return dice.choice(NUMBERS) if dice.random() < 0.3 else dice.randrange(1000)


def text(dice):
    return dice.choice(TEXTS + MOMENTS) if dice.random() < 0.3 else f"n{dice.randrange(50000)}"


def scalar(dice):
    return dice.choice([text, text, number, number, lambda d: d.choice([True, False])])(dice)


def query(dice, depth=2):
    """Returns a random condition in RQL, and its arguments."""
    if depth and dice.random() < 0.4:
        one, some = query(dice, depth - 1)
        other, more = query(dice, depth - 1)
        other = renumbered(other, len(some))
        return dice.choice([f"({one}) AND ({other})", f"({one}) OR ({other})"]), some + more
    f, low = dice.choice(FIELDS), dice.randrange(1000)
    case = dice.choice(["", "", "[c]"])
    form = dice.choice([
        f"{f} =={case} $0", f"{f} =={case} $0", f"{f} == $0", f"$0 == {f}", f"{f} IN{case} {{$0, $1, $2}}",
        f"{f} > {low} AND {f} < {low + 1}", f"{f} >= {low} AND {f} <= {low + 0.5}", f"{f} BETWEEN {{{low}, {low + 1}}}",
        f"{f} >= {low} AND {f} < {low + 2} AND {dice.choice(FIELDS)} == $0",
        f"{f} BEGINSWITH{case} 'n{low}'", f"{f} CONTAINS{case} 'n{low}'", f"{f} ENDSWITH '{low}'", f"{f} LIKE 'n{low}*'",
        f"ANY {f} == $0", f"$0 IN {f}", f"{f}.a == $0", f"{f} == obj('Art', 'n{low}')", f"NOT {f} != $0", f"{f} < 0",
    ])
    return form, [scalar(dice) for _ in range(3)]


def renumbered(text, by):
    for place in (2, 1, 0):
        text = text.replace(f"${place}", f"$#{place + by}")
    return text.replace("$#", "$")


def condition(dice, depth=2):
    """Returns a random condition in Minapp's `where`."""
    if depth and dice.random() < 0.4:
        return {dice.choice(["$and", "$or"]): [condition(dice, depth - 1) for _ in range(1 + dice.randrange(3))]}
    f, low = dice.choice(FIELDS), dice.randrange(1000)
    if dice.random() < 0.4:
        return {f: {"$gte": low, "$lt": low + dice.choice([0.5, 1, 3])}}
    if dice.random() < 0.1:
        return {f: {dice.choice(["$lt", "$gt"]): dice.choice(MOMENTS[:3])}}
    return {f: {"$eq": scalar(dice)}}


def predicate(dice, depth=2):
    """Returns a random condition as an NSPredicate, and its arguments."""
    if depth and dice.random() < 0.4:
        one, some = predicate(dice, depth - 1)
        other, more = predicate(dice, depth - 1)
        return dice.choice([f"({one}) AND ({other})", f"({one}) OR ({other})"]), some + more
    f, low = dice.choice(FIELDS), dice.randrange(1000)
    case = dice.choice(["", "", "[c]", "[cd]"])
    form = dice.choice([
        f"{f} =={case} %@", f"{f} == %@", f"{f} IN{case} {{%@, %@}}", f"{f} > {low} AND {f} < {low + 1}",
        f"{f} BEGINSWITH{case} 'n{low}'", f"{f} CONTAINS{case} 'n{low}'", f"{f} LIKE 'n{low}*'", f"ANY {f} == %@", f"%@ IN {f}",
    ])
    return form, [scalar(dice) for _ in range(form.count("%@"))]


def filters(dice):
    """Returns a random condition as CloudKit's `filterBy`."""
    name = dice.choice(["EQUALS", "EQUALS", "LESS_THAN", "BEGINS_WITH", "LIST_CONTAINS"])
    value = f"n{dice.randrange(1000)}" if name == "BEGINS_WITH" else -1 if name == "LESS_THAN" else scalar(dice)
    if isinstance(value, bool):
        value = int(value)
    return [{"comparator": name, "fieldName": dice.choice(FIELDS), "fieldValue": {"value": value}}]


def subscription(dice, dialect, number):
    line = {"id": number, "recordType": "Art"}
    if dialect == "where":
        line["where"] = condition(dice)
    elif dialect == "filterBy":
        line["filterBy"] = filters(dice)
    else:
        line[dialect], line["args"] = query(dice) if dialect == "rql" else predicate(dice)
    return line


def value(dice, depth=2):
    if depth == 0 or dice.random() < 0.6:
        return dice.choice([scalar(dice), None, {"$ts": [dice.choice(SECONDS), 0]}, {"$ref": f"n{dice.randrange(1000)}"},
                            {"$bytes": "YQ=="}]) if dice.random() < 0.3 else scalar(dice)
    if dice.random() < 0.7:
        return [value(dice, depth - 1) for _ in range(dice.randrange(4))]
    return {dice.choice(["a", "recordName"]): value(dice, depth - 1), "b": scalar(dice)}


def change(dice, number):
    fields = {name: value(dice) for name in FIELDS if dice.random() < 0.8}
    return {"id": number, "recordType": "Art", "operation": "create", "after": fields,
            "partial": dice.random() < 0.2}


def match(belfry, engine, subscriptions, changes, out):
    done = subprocess.run([belfry, "match", "--engine", engine, "--subscriptions", subscriptions,
                           "--changes", changes, "--matches", out], capture_output=True, text=True)
    # Code 1 says that some subscriptions were refused, which the campaign checks itself.
    if done.returncode not in (0, 1):
        sys.exit(done.stderr[-2000:])
    with open(out) as lines:
        fired = [set(json.loads(line)["matches"]) for line in lines]
    return fired, json.loads(done.stdout), done.stderr


def campaign(arguments, dialect, folder):
    dice = random.Random(f"{dialect} {arguments.seed}")
    changes, part, whole, out = (os.path.join(folder, name) for name in ("changes", "part", "whole", "out"))
    with open(changes, "w") as file:
        for number in range(arguments.changes):
            file.write(json.dumps(change(dice, number)) + "\n")
    expected = [set() for _ in range(arguments.changes)]
    refused = 0
    with open(whole, "w") as all_of_them:
        for first in range(0, arguments.subscriptions, arguments.part):
            last = min(first + arguments.part, arguments.subscriptions)
            lines = [json.dumps(subscription(dice, dialect, number)) + "\n" for number in range(first, last)]
            all_of_them.writelines(lines)
            with open(part, "w") as file:
                file.writelines(lines)
            fired, report, _ = match(arguments.binary, "reference", part, changes, out)
            refused += report["refused"]
            for number, serials in enumerate(fired):
                expected[number] |= serials
    found, report, _ = match(arguments.binary, "index", whole, changes, out)
    wrong = [(number, sorted(one ^ other)[:3]) for number, (one, other) in enumerate(zip(expected, found)) if one != other]
    print(f"{dialect}: {report['subscriptions']} subscriptions ({refused} refused), {len(expected)} changes, "
          f"{sum(map(len, expected))} matches, {len(wrong)} changes differ {wrong[:3]}", flush=True)
    return not wrong and report["refused"] == refused and refused < arguments.subscriptions / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/belfry")
    parser.add_argument("--dialects", default="rql,where,predicate,filterBy")
    parser.add_argument("--subscriptions", type=int, default=5000)
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--part", type=int, default=100000, help="how many the slow evaluator takes at once")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        agreed = [campaign(arguments, dialect, folder) for dialect in arguments.dialects.split(",")]
    sys.exit(0 if all(agreed) else 1)


if __name__ == "__main__":
    main()
