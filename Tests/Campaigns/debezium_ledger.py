"""The table that Debezium's engine follows, the changes made to it, and what the relay's log must contain.

Triggers keep a ledger in the same transactions, with values as MariaDB itself writes them as text. Nothing in
the ledger is computed by the relay or by Debezium.
"""
import base64, datetime, json, struct
from decimal import Decimal

EPOCH = datetime.datetime(1970, 1, 1)
# name: type, and how it is compared
COLUMNS = {
    "rev": ("int NOT NULL", "integer"),
    "status": ("enum('new','paid','für später','o''clock')", "text"),
    "tags": ("set('a','b c','ü')", "text"),
    "note": ("varchar(200)", "text"),
    "latin": ("varchar(60) CHARACTER SET latin1", "text"),
    "body": ("mediumtext", "text"),
    "price": ("decimal(20,4)", "decimal"),
    "huge": ("decimal(60,20)", "decimal"),
    "big": ("bigint unsigned", "decimal"),
    "far": ("bigint", "integer"),
    "small": ("int unsigned", "integer"),
    "flag": ("tinyint(1)", "boolean"),
    "ratio": ("double", "double"),
    "share": ("float", "float"),
    "day": ("date", "moment"),
    "made": ("datetime(6)", "moment"),
    "plain": ("datetime", "moment"),
    "seen": ("timestamp(6) NULL", "seconds"),
    "span": ("time(6)", "span"),
    "since": ("year", "integer"),
    "doc": ("json", "json"),
    "raw": ("blob", "bytes"),
    "code": ("binary(6)", "bytes"),
    "bits": ("bit(12)", "bits"),
    "one": ("bit(1)", "boolean"),
}
# Types that the event does not distinguish, and that the mapping must name.
MAPPED = {"flag": "boolean", "doc": "json"}
NAMES = ", ".join(f"`{name}`" for name in COLUMNS)


def schema():
    table = "id bigint NOT NULL, " + ", ".join(f"`{name}` {kind}" for name, (kind, _) in COLUMNS.items())

    def trigger(name, row, was):
        values = ", ".join(f"{row}.`{column}`" for column in COLUMNS)
        return (f"CREATE TRIGGER on_{name} AFTER {name} ON orders FOR EACH ROW INSERT INTO ledger "
                f"(op, was, id, {NAMES}) VALUES ('{name}', {was}, {row}.id, {values});")
    return "\n".join([
        "CREATE DATABASE shop CHARACTER SET utf8mb4; USE shop;",
        f"CREATE TABLE orders ({table}, PRIMARY KEY (id));",
        "CREATE TABLE ledger (n bigint AUTO_INCREMENT PRIMARY KEY, op varchar(8), was bigint, "
        f"{table});",
        trigger("insert", "NEW", "NULL"), trigger("update", "NEW", "OLD.id"),
        trigger("delete", "OLD", "OLD.id")])


# What is done

ALPHABET = list("abc xyzäöüß\"'`\\\n\t\0%_;") + ["🔔", "👩‍🚀", "ſ", "中", "\u2028", "e\u0301"]
LATIN = list("abc äöüßéÿ'\"\\")


def text(draw, alphabet, most):
    letters = "".join(draw.choices(alphabet, k=draw.randrange(most)))
    return f"CONVERT(x'{letters.encode().hex()}' USING utf8mb4)"


def document(draw, depth=0):
    kind = draw.randrange(7 if depth < 3 else 5)
    if kind == 5:
        return [document(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 6:
        names = draw.sample(["a", "ü", "$date", "🔔", "a.b", ""], draw.randrange(4))
        return {name: document(draw, depth + 1) for name in names}
    return [None, draw.random() < 0.5, draw.randrange(-2**63, 2**63), draw.uniform(-1e9, 1e9),
            "".join(draw.choices(ALPHABET, k=draw.randrange(8)))][kind]


def moment(draw, first, last, digits):
    span = int((last - first).total_seconds())
    found = first + datetime.timedelta(seconds=draw.randrange(span), microseconds=draw.randrange(10**6))
    text = found.strftime("%H:%M:%S.%f")
    return f"'{found.year:04}-{found.month:02}-{found.day:02} {text if digits else text[:8]}'"


def value(draw, name):
    """Returns a random value for a column as SQL."""
    if name != "rev" and draw.random() < 0.1:
        return "NULL"
    far, soon = datetime.datetime(1000, 1, 1), datetime.datetime(9999, 12, 31)
    begin, end = datetime.datetime(1970, 1, 3), datetime.datetime(2038, 1, 1)
    bits = draw.choice([1, 8, 20, 33, 62])
    return {
        "rev": lambda: "0",
        "status": lambda: draw.choice(["'new'", "'paid'", "'für später'", "'o''clock'"]),
        "tags": lambda: "'" + ",".join(draw.sample(["a", "b c", "ü"], draw.randrange(4))) + "'",
        "note": lambda: text(draw, ALPHABET, 60),
        "latin": lambda: text(draw, LATIN, 60),
        "body": lambda: text(draw, ALPHABET, draw.choice([5, 50, 3000])),
        "price": lambda: f"{draw.randrange(-10**draw.randrange(1, 20), 10**19)}e-4",
        "huge": lambda: f"{draw.randrange(-10**40, 10**40)}.{draw.randrange(10**20):020}",
        "big": lambda: str(draw.choice([2**64 - 1, 2**63, 2**63 - 1, 2**53 + 1, draw.getrandbits(64), 0])),
        "far": lambda: str(draw.choice([2**63 - 1, -2**63, draw.getrandbits(bits), -2**53 - 1])),
        "small": lambda: str(draw.choice([2**32 - 1, draw.getrandbits(32), 0])),
        "flag": lambda: draw.choice("01"),
        "ratio": lambda: repr(draw.uniform(-1, 1) * 10.0**draw.randrange(-290, 290)),
        "share": lambda: repr(draw.uniform(-1, 1) * 10.0**draw.randrange(-30, 30)),
        "day": lambda: moment(draw, far, soon, False)[:11] + "'",
        "made": lambda: moment(draw, far, soon, True),
        "plain": lambda: moment(draw, far, soon, False),
        "seen": lambda: moment(draw, begin, end, True),
        "span": lambda: f"'{draw.choice(['-', ''])}{draw.randrange(838)}:{draw.randrange(60):02}:"
                        f"{draw.randrange(60):02}.{draw.randrange(10**6):06}'",
        "since": lambda: str(draw.randrange(1901, 2155)),
        "doc": lambda: "CONVERT(x'" + json.dumps(
            document(draw), ensure_ascii=draw.random() < 0.5).encode().hex() + "' USING utf8mb4)",
        "raw": lambda: f"x'{draw.randbytes(draw.choice([0, 1, 40, 2000])).hex()}'",
        "code": lambda: f"x'{draw.randbytes(4).hex()}{draw.choice(['0000', '0020', 'ff00'])}'",
        "bits": lambda: f"b'{draw.getrandbits(12):b}'",
        "one": lambda: f"b'{draw.getrandbits(1)}'",
    }[name]()


def inserted(draw, ids):
    rows = ", ".join(f"({id}, {', '.join(value(draw, name) for name in COLUMNS)})" for id in ids)
    return f"INSERT IGNORE INTO orders (id, {NAMES}) VALUES {rows};"


class Transactions:
    """The transactions of one writer.

    Rows that others deleted are inserted anew, and rows change their keys."""

    def __init__(self, draw, number, rows):
        self.draw, self.rows, self.next = draw, rows, number * 10**9

    def row(self):
        return self.draw.randrange(1, self.rows + 1)

    def fresh(self):
        self.next += 1
        return self.next

    def statement(self):
        draw, first = self.draw, self.row()
        kind = draw.random()
        if kind < 0.3:
            ids = [self.row() if draw.random() < 0.5 else self.fresh()
                   for _ in range(draw.choice([1, 1, 2, 9]))]
            return inserted(draw, ids)
        if kind < 0.6:
            names = draw.sample([name for name in COLUMNS if name != "rev"], draw.randrange(1, 6))
            sets = ", ".join(f"`{name}` = {value(draw, name)}" for name in names)
            return f"UPDATE orders SET rev = rev + 1, {sets} WHERE id = {first};"
        if kind < 0.75:
            return ("UPDATE orders SET rev = rev + 1, price = price / 2 + 1, "
                    "note = concat(left(note, 9), '+') "
                    f"WHERE id BETWEEN {first} AND {first + draw.randrange(12)};")
        if kind < 0.85:
            return f"DELETE FROM orders WHERE id BETWEEN {first} AND {first + draw.choice([0, 0, 1, 4])};"
        if kind < 0.93:
            return f"UPDATE orders SET rev = rev + 1, id = {self.fresh()} WHERE id = {first};"
        return f"SAVEPOINT s; {self.statement()} ROLLBACK TO s;"

    def transaction(self):
        draw = self.draw
        count = draw.choice([1, 1, 2, 3, 6])
        statements = " ".join(self.statement() for _ in range(count))
        return f"BEGIN; {statements} {'ROLLBACK' if draw.random() < 0.15 else 'COMMIT'};"


# What was committed

def told(name, kind):
    """Returns SQL that writes a column as text in a form that does not depend on the client."""
    if kind in ("text", "json"):
        return f"hex(convert(cast(`{name}` AS char CHARACTER SET utf8mb4) USING utf8mb4))"
    if kind == "bytes":
        return f"hex(`{name}`)"
    if kind == "seconds":
        return f"unix_timestamp(`{name}`)"
    if kind == "float":
        return f"concat(`{name}`, ' ', cast(`{name}` AS double))"
    return f"`{name}` + 0" if "bit(" in COLUMNS[name][0] else f"`{name}`"


def question():
    columns = ", ".join(told(name, kind) for name, (_, kind) in COLUMNS.items())
    return f"SELECT n, op, was, id, {columns} FROM ledger ORDER BY n;"


class Committed:
    """A change of one record: what the log must contain, and the row after it."""

    def __init__(self, number, op, before, after):
        self.number, self.op, self.before, self.after = number, op, before, after


def committed(rows):
    """Returns the changes of each record from the ledger, in order."""
    changes, states = {}, {}

    def note(number, op, name, after):
        changes.setdefault(name, []).append(Committed(number, op, states.get(name), after))
        states[name] = after
    for number, op, was, name, *values in rows:
        row = {"id": name, **dict(zip(COLUMNS, values))}
        if op == "insert":
            note(int(number), "create", name, row)
        elif op == "delete":
            note(int(number), "delete", name, None)
        elif was == name:
            note(int(number), "update", name, row)
        else:
            note(int(number), "delete", was, None)
            note(int(number), "create", name, row)
    return changes


# How values are compared

def plain(notation):
    """Returns a value of the log as it was in JSON."""
    if isinstance(notation, list):
        return [plain(one) for one in notation]
    if isinstance(notation, dict):
        members = notation["$map"] if set(notation) == {"$map"} else notation
        return {name: plain(one) for name, one in members.items()}
    return notation


def moment_of(words):
    date, _, clock = words.partition(" ")
    year, month, day = map(int, date.split("-"))
    hour, minute, second = (clock or "0:0:0").split(":")
    seconds, _, fraction = second.partition(".")
    since = datetime.datetime(year, month, day, int(hour), int(minute), int(seconds)) - EPOCH
    return {"$ts": [since.days * 86400 + since.seconds, int(fraction.ljust(6, "0") or 0) * 1000]}


def span_of(words):
    hours, minutes, seconds = words.lstrip("-").split(":")
    found = (int(hours) * 3600 + int(minutes) * 60) * 10**6 + int(Decimal(seconds) * 10**6)
    return -found if words.startswith("-") else found


def is_number(found, wanted):
    """Whole numbers of 64 bits must be exact; others must be the nearest double."""
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return False
    if wanted == wanted.to_integral_value() and abs(wanted) < 2**63:
        return Decimal(found) == wanted
    return float(found) == float(wanted)


def is_single(words, found):
    return struct.pack("f", float(words)) == struct.pack("f", found)


def is_same(kind, words, found, is_shown):
    """Returns whether a value of the log, from the snapshot or a change, equals what MariaDB wrote."""
    if words == "NULL" or found is None:
        # JSON's null as a document is not distinguished from a missing value.
        return found is None and (words == "NULL" or kind == "json" and bytes.fromhex(words) == b"null")
    if kind in ("integer", "decimal"):
        return is_number(found, Decimal(words))
    if kind == "text":
        return bytes.fromhex(words).decode() == found
    if kind == "json":
        return json.loads(bytes.fromhex(words)) == plain(found)
    if kind == "boolean":
        return found is (words != "0")
    if kind == "double":
        return float(words) == found
    if kind == "float":
        # A query returns six digits of it, and the binary log has all of them.
        short, whole = words.split()
        return is_single(whole, found) or is_shown and is_single(short, found)
    if kind == "moment":
        return moment_of(words) == found
    if kind == "seconds":
        whole, _, fraction = words.partition(".")
        return {"$ts": [int(whole), int(fraction.ljust(9, "0"))]} == found
    if kind == "span":
        return span_of(words) == found
    bytes_found = base64.b64decode(found["$bytes"])
    if kind == "bits":
        return int.from_bytes(bytes_found, "little") == int(words)
    return bytes.fromhex(words) == bytes_found


def differences(row, found, is_shown=False):
    """Returns the columns in which an image of the log differs from the row that MariaDB wrote."""
    if row is None or found is None:
        return [] if row is None and found is None else ["whether there is a row"]
    kinds = {"id": "integer", **{name: kind for name, (_, kind) in COLUMNS.items()}}
    bad = [f"{name}: {row[name]} is {found.get(name)!r}" for name, kind in kinds.items()
           if not is_same(kind, row[name], found.get(name), is_shown)]
    return bad + [f"{name} is no column" for name in found if name not in kinds]


# What is in the log

class Logged:
    """A change in the relay's log."""

    def __init__(self, position, body):
        self.position, self.name, self.op = position, body["name"], body["op"]
        self.is_snapshot = bool(body.get("snapshot"))
        self.before, self.after = (
            (body.get(side) or {}).get("full") if body.get(side) else None
            for side in ("before", "after"))
        self.is_partial = any("partial" in (body.get(side) or {}) for side in ("before", "after"))


def judge(rows, log, mark):
    """Returns the deviations.

    Until line `mark` of the ledger the snapshot may have been in progress. Changes committed before the
    snapshot are in its rows, and not sent as changes."""
    wanted, found, shown, bad = committed(rows), {}, {}, []
    for change in log:
        if change.is_partial:
            bad.append(f"order {change.name}: an image is not whole")
        if not change.is_snapshot:
            found.setdefault(change.name, []).append(change)
        elif change.name in found:
            bad.append(f"order {change.name}: a row of the snapshot after a change")
        else:
            shown.setdefault(change.name, []).append(change)
    for name in set(found) | set(shown) | set(wanted):
        bad += [f"order {name}: {one}" for one in judge_record(
            wanted.get(name, []), found.get(name, []), shown.get(name, []), mark)]
    return bad


def judge_record(wanted, found, shown, mark):
    early = sum(change.number <= mark for change in wanted)
    skipped = len(wanted) - len(found)
    if not 0 <= skipped <= early:
        return [f"{len(wanted)} changes were committed, {early} of them before the end of the snapshot, "
                f"and {len(found)} are in the log"]
    bad = []
    for mine, theirs in zip(wanted[skipped:], found):
        if mine.op != theirs.op:
            bad.append(f"{mine.op} is {theirs.op}")
            continue
        bad += [f"after {mine.op}: {one}" for one in differences(mine.after, theirs.after)]
        if mine.op != "create":
            bad += [f"before {mine.op}: {one}" for one in differences(mine.before, theirs.before)]
    return bad + judge_snapshot(wanted, skipped, early, [change.after for change in shown])


def judge_snapshot(wanted, skipped, early, shown):
    """Checks the rows of the snapshot; the last row shown belongs to the one that was completed.

    A kill within a snapshot makes the engine begin another one. The engine reads the rows a moment after it
    has noted its place. So a change in between may be in the rows and also sent as a change, but it must be
    in one of both."""
    starts = [wanted[place - 1].after if place else None for place in range(skipped, early + 1)]
    last = shown[-1] if shown else None
    if None in starts and last is None:
        return []
    bad = min((differences(start, last, True) for start in starts), key=len)
    if bad and None in starts:
        # A snapshot that was given up showed the row, and the completed one did not have it.
        bad = []
    states = [change.after for change in wanted if change.after]
    for row in shown:
        if all(differences(state, row, True) for state in states if state["rev"] == str(row["rev"])):
            bad.append("a row that was never committed")
    return [f"the snapshot: {one}" for one in bad]


def damaged(log):
    """Returns faulty logs that must not pass: with a missing, a repeated, a misplaced and an altered change."""
    told = [change for change in log if not change.is_snapshot]
    places = {}
    for place, change in enumerate(log):
        if not change.is_snapshot:
            places.setdefault(change.name, []).append(place)
    middle = log.index(told[len(told) // 2])
    yield "lost", log[:middle] + log[middle + 1:]
    yield "doubled", log[:middle] + [log[middle]] + log[middle:]
    first, second = next(found[:2] for found in places.values() if len(found) > 1)
    swapped = list(log)
    swapped[first], swapped[second] = log[second], log[first]
    yield "out of order", swapped
    place = next(place for place, change in enumerate(log) if change.after and not change.is_snapshot)
    altered = list(log)
    altered[place] = Altered(log[place])
    yield "altered", altered


class Altered:
    """A change with another revision."""

    def __init__(self, change):
        self.__dict__.update(change.__dict__)
        self.after = dict(change.after, rev=change.after["rev"] + 1)
