#!/usr/bin/env python3
"""PostgreSQL is followed through random histories: tables, values and keys of all kinds, changed in every way.

Random tables have columns of all types that PostgreSQL brings and of types made here, and keys of one to three
columns. Sessions change them at the same time: with savepoints, two-phase commits, every isolation level, MERGE,
upserts and moved keys, while tables are altered. The relay and the server are killed. Triggers keep a ledger in
the same transactions. In the end each record's changes in the relay's log are compared with the ledger, and the
relay's kept records with the tables. The expected values come from a reader of PostgreSQL's texts that shares no
code with the relay.

  python3 Tests/Campaigns/histories.py --seconds 20
  python3 Tests/Campaigns/histories.py --outbox --kills 6 --seed 7
"""
import argparse, base64, datetime, decimal, json, os, random, re, shutil, sqlite3, subprocess, sys, tempfile
import time
from postgres import Postgres
from rig import CONTAINER, PATIENCE, STARTED, Gateway, Relay, binary, free_port

SETUP = """
CREATE SCHEMA k; CREATE SCHEMA "Odd Schema"; CREATE TYPE k."Mood" AS ENUM ('sad', 'it''s "ok", really', 'happy');
CREATE TYPE k.pair AS (a int, b text, c int[]); CREATE DOMAIN k.small AS int CHECK (value > 0);
CREATE DOMAIN k.price AS numeric; CREATE DOMAIN k.ints AS int[]; CREATE DOMAIN k.moods AS k."Mood"[];
CREATE DOMAIN k.day AS date; CREATE DOMAIN k.nested AS k.day;
CREATE TYPE k."Odd Range" AS RANGE (subtype = text, multirange_type_name = k.odd_ranges);
CREATE TABLE k.ledger (n bigserial PRIMARY KEY, relation int, op text, before text[], after text[]);
"""
# Possible values of each type, as SQL.
VALUES = {
    "smallint": ["'-32768'", "7"], "integer": ["'-2147483648'", "0", "12"], "bigint": ["9223372036854775807", "1"],
    "numeric": ["'NaN'", "'1.10'", "1e20", "'123456789012345678901.5'", "0.30000000000000004", "'Infinity'", "3.000"],
    "real": ["'NaN'", "0.1", "'-0'", "1e30"], "double precision": ["'-Infinity'", "0.1", "1e300", "5e-324"],
    "boolean": ["true", "false"],
    "text": ["''", "'NULL'", "'{a,\"b\"}'", "E'new\\nline'", "'ünï 日本 𝒳'", "'(x,\"y\")'"],
    "character(8)": ["'pad'", "''"], "bytea": ["'\\x'", "'\\xdeadbeef00'"], "jsonpath": ["'$.a[*]'"],
    "uuid": ["'9f2c0000-0000-0000-0000-000000000001'"], "date": ["'2026-02-28'", "'infinity'", "'0044-03-15 BC'"],
    "timestamp": ["'1969-12-31 23:59:59.5'", "'0001-01-01'", "'12026-05-05'"], "time": ["'24:00:00'"],
    "timestamptz": ["'2026-01-02 03:04:05.678901+05:30'", "'-infinity'"], "timetz": ["'12:34:56.789+05:30'"],
    "interval": ["'1 year 2 mons -3 days 04:05:06.7'"], "inet": ["'10.0.0.1/8'"],
    "macaddr8": ["'08:00:2b:01:02:03:04:05'"],
    "jsonb": ["'{\"$date\": 5}'", "'[1,[2,{\"b\":null}]]'", "'null'", "'{\"a\": {\"$ref\": \"x\"}}'"],
    "json": ["'{\"ü\": \"\\u00e9\"}'", "'\"\\ud800\"'", "'{\"a\":1,\"a\":2}'"], "bit(5)": ["B'10101'"],
    "varbit": ["B'101'"],
    "xml": ["'<a b=\"c\">x</a>'"], "point": ["'(1.5,-2)'"], "box": ["'((0,0),(1,1))'"], "circle": ["'<(0,0),2>'"],
    "tsvector": ["$$'a b':1A 'c''d':2$$"], "int4range": ["'[1,5)'", "'empty'"], "tstzrange": ["'[2026-01-01,)'"],
    "int8multirange": ["'{[1,3),[5,9)}'", "'{}'"], "pg_lsn": ["'16/B374D848'"], "oid": ["4294967295"],
    "name": ["'Na me'"],
    "\"char\"": ["'x'"], "xid8": ["'18446744073709551615'"], "int2vector": ["'1 2 3'"], "regclass": ["'pg_class'"],
    "k.\"Mood\"": ["'sad'", "'it''s \"ok\", really'"], "k.pair": ["ROW(1, 'a,b', NULL)", "ROW(NULL, 'q\"q', '{1}')"],
    "k.small": ["7"], "k.price": ["1.50"], "k.ints": ["'{1,NULL}'", "'[0:1]={7,8}'", "'{{1,2},{3,4}}'"],
    "k.moods": ["'{sad}'"], "k.nested": ["'2026-01-01'"], "k.\"Odd Range\"": ["'[a,c]'"], "k.odd_ranges": ["'{[a,c]}'"],
}
# Types that a primary key can have; the values of a key are drawn from many.
KEYS = {
    "integer": lambda r: str(r.randrange(-40, 40)), "uuid": lambda r: f"'{r.randrange(60):032x}'",
    "text": lambda r: quoted(r.choice(["a", "NULL", "a,b", "back\\slash", "é", "e\u0301", "{}"]) + r.choice("1234")),
    "numeric": lambda r: r.choice(["1.0", "1.10", "1e20", "-0.5"]) if r.random() < .2 else str(r.randrange(50)),
    "timestamptz": lambda r: f"'20{r.randrange(10, 70)}-01-01 00:00:00.{r.randrange(9):06d}+00'",
    "bytea": lambda r: f"'\\x{r.randrange(1, 60):04x}'", "date": lambda r: f"'20{r.randrange(10, 70)}-05-05'",
    "k.\"Mood\"": lambda r: r.choice(VALUES["k.\"Mood\""]), "k.small": lambda r: str(r.randrange(1, 50)),
    "int4range": lambda r: f"'[{r.randrange(40)},90)'", "interval": lambda r: f"'{r.randrange(60)} days'",
}
NAMES = ["Id", "a.b", "order", "ünï", 'q"q', "recordName", "$d", "{table}", "createdAt", "1st", "UPPER", "x-y",
         "long" + "x" * 55]


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def name(text):
    return '"' + text.replace('"', '""') + '"'


def value(chance, kind):
    """Returns a random value of a type as SQL: sometimes NULL, sometimes a large text."""
    if chance.random() < .12:
        return "NULL"
    if kind.endswith("[]"):
        drawn = [chance.choice(VALUES[kind[:-2]] + ["NULL"]) for _ in range(chance.randrange(4))]
        cast = "::".join(["", kind[:-2]])
        return f"ARRAY[{', '.join(one + cast for one in drawn)}]::{kind}"
    if kind == "text" and chance.random() < .3:
        return f"(SELECT string_agg(md5(g::text), '') FROM generate_series({chance.randrange(99)}, 200) AS g)"
    return f"{chance.choice(VALUES[kind])}::{kind}"


class Table:
    """A random table, without the columns that come and go later."""

    def __init__(self, chance, number, partitioned):
        names = chance.sample(NAMES, len(NAMES))
        self.number, self.partitioned = number, partitioned
        schema, own = chance.choice(["public", "Odd Schema"]), chance.choice(["T ", "t."]) + str(number)
        self.place = f"{name(schema)}.{name(own)}"
        self.plain = f"{schema}.{own}"
        self.type = f"R{number}"
        self.keys = {names.pop(): chance.choice(list(KEYS)) for _ in range(chance.choice([1, 1, 2, 3]))}
        kinds = list(VALUES) + [kind + "[]" for kind in VALUES if kind not in ("k.ints", "k.moods", "bit(5)")]
        self.others = {names.pop(): chance.choice(kinds) for _ in range(chance.randrange(2, 6))}
        self.identity = chance.choice(["DEFAULT", "DEFAULT", "FULL"])
        # The order of the key's columns may differ from that of the table.
        self.key = chance.sample(list(self.keys), len(self.keys))

    def sql(self):
        columns = [f"{name(n)} {kind} NOT NULL" for n, kind in self.keys.items()]
        columns += [f"{name(n)} {kind}" for n, kind in self.others.items()]
        columns.append("made text GENERATED ALWAYS AS ('g' || 1) STORED")
        key = ", ".join(map(name, self.key))
        parts = [f"{self.place[:-1]}_{part}\"" for part in range(2)] if self.partitioned else []
        yield (f"CREATE TABLE {self.place} ({', '.join(columns)}, PRIMARY KEY ({key}))"
               + (f" PARTITION BY HASH ({name(self.key[0])})" if parts else ""))
        for number, part in enumerate(parts):
            yield f"CREATE TABLE {part} PARTITION OF {self.place} FOR VALUES WITH (MODULUS 2, REMAINDER {number})"
        for place in [self.place] + parts:
            yield f"ALTER TABLE {place} REPLICA IDENTITY {self.identity}"
        former, later = (", ".join(f"{row}.{name(n)}::text" for n in self.key) for row in ("old", "new"))
        yield f"""CREATE FUNCTION k.note{self.number}() RETURNS trigger LANGUAGE plpgsql SET datestyle = 'ISO, MDY'
            SET timezone = 'UTC' SET intervalstyle = 'postgres' SET bytea_output = 'hex' AS $f$ BEGIN
            INSERT INTO k.ledger (relation, op, before, after) VALUES ({self.number}, tg_op,
            CASE WHEN tg_op <> 'INSERT' THEN ARRAY[{former}] END, CASE WHEN tg_op <> 'DELETE' THEN ARRAY[{later}] END);
            RETURN NULL; END $f$"""
        yield (f"CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {self.place} FOR EACH ROW "
               f"EXECUTE FUNCTION k.note{self.number}()")

    def insert(self, chance):
        columns = {**{n: KEYS[kind](chance) + f"::{kind}" for n, kind in self.keys.items()},
                   **{n: value(chance, kind) for n, kind in self.others.items()}}
        other = chance.choice(list(self.others))
        way = chance.choice(["", "NOTHING", f"UPDATE SET {name(other)} = excluded.{name(other)}"])
        key = f"({', '.join(map(name, self.key))})"
        return (f"INSERT INTO {self.place} ({', '.join(map(name, columns))}) VALUES ({', '.join(columns.values())})"
                + (f" ON CONFLICT {key} DO {way}" if way else ""))

    def change(self, chance):
        some = f"md5({name(self.key[0])}::text || '{chance.random()}') < '{chance.choice('124')}'"
        other = chance.choice(list(self.others))
        moved = chance.choice(self.key)
        same = " AND ".join(f"t.{name(n)} = s.{name(n)}" for n in self.key)
        new = value(chance, self.others[other])
        return chance.choices([
            self.insert(chance), f"UPDATE {self.place} SET {name(other)} = {new} WHERE {some}",
            f"UPDATE {self.place} SET {name(moved)} = {name(moved)} WHERE {some}",
            f"UPDATE {self.place} SET {name(moved)} = {KEYS[self.keys[moved]](chance)} WHERE {some}",
            f"DELETE FROM {self.place} WHERE {some}",
            f"MERGE INTO {self.place} AS t USING (SELECT * FROM {self.place} WHERE {some}) AS s ON {same} "
            f"WHEN MATCHED AND random() < 0.3 THEN DELETE WHEN MATCHED THEN UPDATE SET {name(other)} = {new}",
        ], [10, 5, 2, 3, 3, 2])[0]

    def alteration(self, chance):
        extra = name(f"extra {chance.randrange(3)}")
        kind = chance.choice(list(VALUES))
        return chance.choice([
            f"ALTER TABLE {self.place} ADD COLUMN IF NOT EXISTS {extra} {kind} "
            f"DEFAULT {chance.choice(VALUES[kind])}::{kind}",
            f"ALTER TABLE {self.place} DROP COLUMN IF EXISTS {extra}",
            f"ALTER TABLE {self.place} RENAME COLUMN {extra} TO {name(f'extra {chance.randrange(3)}')}",
            f"ALTER TYPE k.\"Mood\" ADD VALUE IF NOT EXISTS 'v{chance.randrange(50)}' BEFORE 'happy'",
            f"VACUUM FULL {self.place}"])


def transaction(chance, tables, number, outbox):
    """Returns a transaction as psql input in which a failing statement undoes only itself."""
    if chance.random() < .04:
        return [chance.choice(tables).alteration(chance)]
    level = chance.choice(["", "", " ISOLATION LEVEL REPEATABLE READ", " ISOLATION LEVEL SERIALIZABLE"])
    lines = ["BEGIN" + level]
    for _ in range(60 if chance.random() < .02 else chance.randrange(1, 6)):
        lines.append(chance.choice(tables).change(chance))
        if chance.random() < .2:
            lines += ["SAVEPOINT s", chance.choice(tables).change(chance),
                      chance.choice(["ROLLBACK TO s", "RELEASE s"])]
    if chance.random() < .1:
        lines.append(f"SELECT pg_logical_emit_message({chance.choice(['true', 'false'])}, 'belfry', 'none')")
    # PostgreSQL does not prepare transactions with NOTIFY, which an outbox's triggers use.
    if chance.random() < .1 and not outbox:
        ending = chance.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        return lines + [f"PREPARE TRANSACTION 'p{number}'", f"{ending} PREPARED 'p{number}'"]
    return lines + [chance.choice(["COMMIT"] * 9 + ["ROLLBACK"])]


class Session:
    """A psql session that changes the tables until the end, or until the server ends."""

    def __init__(self, server, tables, seed, outbox):
        self.server, self.tables, self.outbox = server, tables, outbox
        self.chance, self.number, self.process = random.Random(seed), seed * 1_000_000, None

    def go_on(self):
        """Writes the next transactions; restarts psql if it ended with the server."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                ["psql", "-X", "-q", "-v", "ON_ERROR_ROLLBACK=on", "-h", self.server.folder, "-U", "postgres"],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
            STARTED.append(self.process)
            self.tell(["SET lock_timeout = '300ms'", "SET deadlock_timeout = '100ms'"])
        for _ in range(20):
            self.number += 1
            self.tell(transaction(self.chance, self.tables, self.number, self.outbox))

    def tell(self, lines):
        try:
            self.process.stdin.write("".join(line + ";\n" for line in lines))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait(PATIENCE)


class Reader:
    """Reads PostgreSQL's texts by the types in its catalogue, into values of the relay's stored form."""

    def __init__(self, ask):
        self.types = {}
        for line in ask("SELECT oid, typbasetype, CASE WHEN typcategory = 'A' AND typinput = 'array_in'::regproc "
                        "THEN typelem ELSE 0 END, typdelim FROM pg_type").split("\n"):
            number, base, element, separator = line.split("|")
            self.types[int(number)] = int(base), int(element), separator

    def read(self, text, kind):
        base, element, _ = self.types[kind]
        if text is None or base:
            return None if text is None else self.read(text, base)
        if element:
            return self.array(text, element)
        if kind == 16:
            return text == "t"
        if kind in (20, 21, 23, 26):
            return int(text)
        if kind in (700, 701, 1700):
            return self.number(text, kind)
        if kind in (1082, 1114, 1184):
            return moment(text)
        if kind in (114, 3802):
            return document(text)
        if kind == 17:
            return {"$bytes": base64.b64encode(bytes.fromhex(text[2:])).decode()}
        return {"$uuid": text} if kind == 2950 else text

    @staticmethod
    def number(text, kind):
        if text.strip("-") in ("NaN", "Infinity"):
            return text
        if kind != 1700:
            return float(text)
        exact = decimal.Decimal(text)
        if exact == exact.to_integral_value() and -2 ** 63 <= exact < 2 ** 63:
            return int(exact)
        # It becomes a number only if that preserves all digits.
        return float(exact) if decimal.Decimal(repr(float(exact))) == exact else text

    def array(self, text, element):
        separator = self.types[element][2]
        place = text.index("=") + 1 if text[0] == "[" else 0

        def elements(place):
            found = []
            if text[place + 1] == "}":
                return found, place + 2
            while text[place] != "}":
                place += 1
                if text[place] == "{":
                    one, place = elements(place)
                else:
                    # A quoted element, or one up to a separator; a backslash makes the next character an
                    # ordinary one.
                    match = re.compile(r'"((?:[^"\\]|\\.)*)"|((?:[^%s}\\]|\\.)*)' % separator, re.S).match(text, place)
                    one, place = match[1] if match[1] is not None else match[2], match.end()
                    is_nil = match[1] is None and one == "NULL"
                    one = None if is_nil else self.read(re.sub(r"\\(.)", r"\1", one, flags=re.S), element)
                found.append(one)
            return found, place + 1

        return elements(place)[0]

    def name(self, texts, kinds):
        """Returns the record name for a key, each column by its type."""
        parts = [part(self.read(text, kind)) for text, kind in zip(texts, kinds)]
        return parts[0] if len(parts) == 1 else ",".join(re.sub(r"([\\,])", r"\\\1", one) for one in parts)


def part(known):
    if isinstance(known, dict):
        if "$ts" in known:
            milliseconds, beyond = divmod(known["$ts"][0] * 10 ** 9 + known["$ts"][1], 10 ** 6)
            return f"{milliseconds}.{beyond:06d}".rstrip("0").rstrip(".")
        return next(iter(known.values()))
    return repr(known) if isinstance(known, float) else str(known)


def moment(text):
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d+))?)?(?:\+00)?", text)
    if not found:
        return text
    date = datetime.datetime(*(int(one or 0) for one in found.groups()[:6]))
    since = date - datetime.datetime(1970, 1, 1)
    return {"$ts": [since.days * 86400 + since.seconds, int(((found[7] or "") + "0" * 9)[:9])]}


def document(text):
    def once(pairs):
        # The relay does not treat a text that repeats a member as a document.
        assert len({key for key, _ in pairs}) == len(pairs)
        return {"$map": dict(pairs)} if any(key.startswith("$") for key, _ in pairs) else dict(pairs)
    try:
        known = json.loads(text, object_pairs_hook=once)
        json.dumps(known, ensure_ascii=False).encode()
        return known
    except (ValueError, AssertionError):
        return text


def rows(server, query):
    """Returns rows as COPY writes them: with the types' own texts."""
    done = subprocess.run(server.psql(f"COPY ({query}) TO STDOUT"), capture_output=True, text=True, check=True,
                          env=dict(os.environ, PGOPTIONS="-c timezone=UTC -c search_path=pg_catalog"))
    signs = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
    for line in done.stdout.split("\n")[:-1]:
        yield [None if one == r"\N" else re.sub(r"\\(.)", lambda found: signs.get(found[1], found[1]), one)
               for one in line.split("\t")]


class Field:
    """A server with random tables, and a relay that follows them."""

    def __init__(self, belfry, chance, outbox, count):
        self.outbox, self.folder = outbox, tempfile.mkdtemp(prefix="belfry-histories-")
        self.server = Server()
        self.server.sql(SETUP)
        self.tables = [Table(chance, number, chance.random() < .25) for number in range(count)]
        for table in self.tables:
            for statement in table.sql():
                self.server.sql(statement)
        self.gateway = Gateway(belfry, self.folder, prints=False)
        self.relay = Relay(belfry, self.folder, self.gateway.port, self.gateway.ca)
        self.port = free_port()
        self.start_relay()
        self.relay.furnish()
        admin = f"/admin/1/containers/{CONTAINER}/development"
        for table in self.tables:
            self.relay.expect(200, "POST", f"{admin}/schema/recordTypes/{table.type}", {"shadow": True}, admin=True)
        self.relay.expect(201, "PUT", f"{admin}/sources/pg", {
            "preset": "postgres",
            "mapping": {"recordTypes": {table.plain: table.type for table in self.tables}},
            "follow": {"url": f"postgresql:///postgres?host={self.server.folder}&user=postgres", "make": True,
                       "outbox": outbox, "tables": [table.place for table in self.tables]}}, admin=True)
        self.wait(self.begun, "it does not begin to follow")

    def start_relay(self):
        if not self.relay.start(port=self.port):
            raise SystemExit("the relay ended")

    def begun(self):
        if not self.outbox:
            return self.server.sql("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'belfry'") == "1"
        return self.server.sql("SELECT to_regclass('belfry.outbox_state') IS NOT NULL") == "t" \
            and self.server.sql("SELECT has_begun FROM belfry.outbox_state") == "t"

    def wait(self, fits, problem):
        end = time.monotonic() + PATIENCE
        while not fits():
            if time.monotonic() > end:
                raise SystemExit(f"{problem}; see {self.folder}")
            time.sleep(0.1)

    def kill(self, chance):
        victim = chance.choice(["relay", "server"])
        if victim == "relay":
            self.relay.kill()
            time.sleep(chance.random())
            self.start_relay()
        else:
            self.server.kill_one()
        return victim

    def drained(self):
        for prepared in filter(None, self.server.sql("SELECT gid FROM pg_prepared_xacts").split("\n")):
            self.server.sql(f"ROLLBACK PREPARED '{prepared}'")
        # Columns that were added later have values that no change sent.
        for table in self.tables:
            self.server.sql(f"UPDATE {table.place} SET {name(table.key[0])} = {name(table.key[0])}")
        position = self.server.sql("SELECT pg_current_wal_lsn()")
        self.wait(lambda: self.server.emptied() if self.outbox else self.server.confirmed(position),
                  "the relay does not come to the end")

    def leave(self):
        self.relay.stop()
        self.gateway.stop()
        self.server.stop()
        shutil.rmtree(self.folder)


class Server(Postgres):
    settings = ("max_prepared_transactions=30",)
    schema = "SELECT 1"

    def tells_generated(self):
        return int(self.sql("SHOW server_version_num")) >= 180_000


def judge(field):
    """Compares the log with the ledger, and kept records with the tables; returns how many there were."""
    reader = Reader(field.server.sql)
    database = sqlite3.connect(f"file:{field.relay.database}?mode=ro", uri=True)
    found, kept = {}, {}
    for body, in database.execute("SELECT body FROM logEntry WHERE source = 'pg' ORDER BY position"):
        change = json.loads(body)
        found.setdefault((change["type"], change["name"]), []).append(change["op"])
    for record_type, record, fields in database.execute(
            "SELECT recordType, recordName, fields FROM shadowRecord WHERE isKept = 1 AND isDeleted = 0"):
        kept[record_type, record] = json.loads(fields)
    parked = database.execute("SELECT reason FROM parkedChange").fetchall()
    assert not parked, f"parked: {parked[:3]}"
    wanted, there = {}, {}
    # If the relay creates the publication and the server can, stored generated columns are sent too. An
    # outbox never has them.
    shown = ("''", "'s'") if not field.outbox and field.server.tells_generated() else ("''",)
    for table in field.tables:
        columns = [(one, int(kind)) for one, kind in rows(
            field.server, "SELECT attname, atttypid FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND "
            f"attgenerated IN ({', '.join(shown)}) AND attrelid = {quoted(table.place)}::regclass ORDER BY attnum")]
        kinds = [dict(columns)[one] for one in table.key]
        texts = ", ".join(f"{row}[{place + 1}]" for row in ("before", "after") for place in range(len(kinds)))
        for operation, *keys in rows(field.server, f"SELECT op, {texts} FROM k.ledger "
                                                   f"WHERE relation = {table.number} ORDER BY n"):
            before, after = (None if None in half else (table.type, reader.name(half, kinds))
                             for half in (keys[:len(kinds)], keys[len(kinds):]))
            if before == after:
                wanted.setdefault(after, []).append("update")
                continue
            for key, told in ((before, "delete"), (after, "create")):
                if key:
                    wanted.setdefault(key, []).append(told)
        for row in rows(field.server, f"SELECT {', '.join(name(one) for one, _ in columns)} FROM {table.place}"):
            fields = {one: reader.read(text, kind) for (one, kind), text in zip(columns, row)}
            texts = dict(zip((one for one, _ in columns), row))
            there[table.type, reader.name([texts[one] for one in table.key], kinds)] = {
                one: known for one, known in fields.items() if known is not None}
    for key in wanted.keys() | found.keys():
        assert wanted.get(key) == found.get(key), f"{key}: committed {wanted.get(key)}, told {found.get(key)}"
    for key in there.keys() | kept.keys():
        # A dropped column stays in a record that was not sent as a whole since.
        one, other = there.get(key), kept.get(key)
        assert (one is None) == (other is None), f"{key}: in the table {one}, kept {other}"
        for column, known in one.items():
            assert same(known, other.get(column)), \
                f"{key}, {column}: in the table {known!r}, kept {other.get(column)!r}"
    return sum(map(len, wanted.values())), len(there)


def same(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--tables", type=int, default=7)
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--outbox", action="store_true", help="by triggers, not by a slot")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--binary")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    chance = random.Random(given.seed)
    field = Field(binary(given.binary), chance, given.outbox, given.tables)
    sessions = [Session(field.server, field.tables, number + 1, given.outbox) for number in range(given.sessions)]
    end, killed = time.monotonic() + given.seconds, []
    next_kill = time.monotonic() + given.seconds / (given.kills + 1)
    while time.monotonic() < end:
        for session in sessions:
            session.go_on()
        if time.monotonic() > next_kill:
            killed.append(field.kill(chance))
            next_kill += given.seconds / (given.kills + 1)
        time.sleep(0.05)
    for session in sessions:
        session.end()
    field.drained()
    changes, records = judge(field)
    print(f"killed {killed}; {changes} changes of {len(field.tables)} tables, each told once and in order; "
          f"{records} records kept as the tables have them")
    field.leave()


if __name__ == "__main__":
    sys.exit(main())
