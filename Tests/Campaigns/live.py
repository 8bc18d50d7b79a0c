#!/usr/bin/env python3
"""Connected clients compared with a ledger: at every stop each has seen exactly what the ledger says.

Each change comes once, even if relays are killed, and clients are disconnected or do not read.

  python3 Tests/Campaigns/live.py --rounds 12
  python3 Tests/Campaigns/live.py --figures --sockets 10000

The clients share no code with the relay or its web client: they implement docs/live.md. With `--figures` it
prints what connections cost and how fast one change reaches all of them.
"""
import argparse, asyncio, base64, json, os, random, resource, statistics, struct, sys, time
from rig import CONTAINER, PATIENCE, STARTED, Gateway, Relay, binary, free_port, memory, user_token
import shutil, subprocess, tempfile

PATH = f"/live/1/{CONTAINER}/development"
QUERIES = {
    "all": {"recordType": "Artwork"},
    "cheap": {"recordType": "Artwork", "query": {"predicate": "price < 50"}},
    "first": {"recordType": "Artwork", "sortBy": [{"fieldName": "price"}], "limit": {"first": 5}},
    "changes": {"recordType": "Artwork", "kind": "changes", "query": {"predicate": "price < 50"}},
}


class Socket:
    """A WebSocket according to RFC 6455."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port, context=None):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write((f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                      f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: belfry.live.v1\r\n\r\n"
                      ).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise OSError(head.decode(errors="replace"))
        return cls(reader, writer)

    def send(self, frame):
        data = json.dumps(frame).encode()
        mask = os.urandom(4)
        size = (bytes([0x80 | len(data)]) if len(data) < 126 else
                b"\xfe" + struct.pack(">H", len(data)) if len(data) < 65536 else
                b"\xff" + struct.pack(">Q", len(data)))
        body = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.writer.write(b"\x81" + size + mask + body)

    async def frame(self):
        while True:
            first, second = await self.reader.readexactly(2)
            size = second & 0x7F
            if size == 126:
                size, = struct.unpack(">H", await self.reader.readexactly(2))
            elif size == 127:
                size, = struct.unpack(">Q", await self.reader.readexactly(8))
            data = await self.reader.readexactly(size)
            if first & 0xF == 9:
                self.writer.write(b"\x8a\x80" + os.urandom(4))
            elif first & 0xF == 8:
                raise OSError("closed")
            elif first & 0xF == 1:
                return json.loads(data)

    def close(self):
        self.writer.transport.abort()


class Client:
    """The state of a client.

    Frames are applied only up to an `at` that follows them, while the set is complete."""

    def __init__(self, api_token, user):
        self.api_token, self.user = api_token, user
        self.at, self.prints, self.groups = None, {}, {}
        self.shown = {name: {} for name in QUERIES}
        self.changes, self.open, self.faults, self.resets = [], [], [], 0
        self.version, self.is_complete = 0, False

    def hello(self):
        self.version += 1
        queries = []
        for name, query in QUERIES.items():
            query = dict(query, id=name)
            if self.at and name in self.prints:
                query.update(since=self.at, fingerprint=self.prints[name])
            queries.append(query)
        self.open, self.groups, self.is_complete = [], {}, False
        return {"type": "hello", "ckAPIToken": self.api_token,
                "ckWebAuthToken": user_token(self.user), "format": "plain",
                "set": {"version": self.version, "queries": queries}}

    def hear(self, frame):
        if frame["type"] == "state" and frame["state"] != "error":
            self.is_complete = frame["state"] == "complete"
        if frame["type"] != "at":
            self.open.append(frame)
        if frame["type"] != "at" or not self.is_complete:
            return
        for one in self.open:
            self.apply(one)
        self.open, self.at = [], frame["at"]

    def apply(self, frame):
        kind = frame["type"]
        if kind == "state":
            if frame["state"] == "error":
                self.faults.append(frame)
            for query in frame.get("queries", []):
                self.groups = {group: name for group, name in self.groups.items()
                               if name != query["id"]}
                self.groups[query["group"]] = query["id"]
                if "fingerprint" in query:
                    self.prints[query["id"]] = query["fingerprint"]
        elif kind == "reset":
            self.resets += 1
        elif kind in ("gone", "refused"):
            self.faults.append(frame)
        elif kind == "result":
            shown = self.shown[self.groups[frame["group"]]]
            if frame["part"] == 0:
                shown.clear()
            for record in frame["records"]:
                shown[record["recordName"]] = record["fields"]
        elif kind == "items":
            shown = self.shown[self.groups[frame["group"]]]
            for item in frame["items"]:
                name = item["record"]["recordName"]
                there = name in shown
                if there != (item["op"] != "added"):
                    self.faults.append(item)
                if item["op"] == "removed":
                    shown.pop(name, None)
                else:
                    shown[name] = item["record"]["fields"]
        elif kind == "change":
            self.changes.append((frame["position"], frame["record"]["recordName"]))


class Ledger:
    """The acknowledged changes."""

    def __init__(self, relay):
        self.relay, self.records, self.cheap = relay, {}, 0

    def change(self, chance):
        name = f"r{chance.randrange(30)}"
        if name in self.records and chance.random() < 0.25:
            operation, fields, judged = "delete", None, self.records[name]
        else:
            operation = "update" if name in self.records else "create"
            fields = judged = {"price": chance.randrange(100), "number": chance.randrange(10**9)}
        body = {"operation": operation, "recordType": "Artwork", "recordName": name}
        body["before" if operation == "delete" else "after"] = judged
        self.relay.expect(
            200, "POST", f"/changes/1/{CONTAINER}/development/database", body)
        if fields:
            self.records[name] = fields
        else:
            del self.records[name]
        self.cheap += judged["price"] < 50

    def expected(self):
        cheap = {name: fields for name, fields in self.records.items() if fields["price"] < 50}
        order = sorted(self.records, key=lambda name: (self.records[name]["price"], name.encode()))
        return {"all": self.records, "cheap": cheap,
                "first": {name: self.records[name] for name in order[:5]}}


async def watch(client, port, door, context=None):
    """Listens by one of the three ways until it is cancelled or disconnected."""
    if door == "socket":
        socket = await Socket.open(port, context)
        try:
            socket.send(client.hello())
            while True:
                client.hear(await socket.frame())
        finally:
            socket.close()
    while True:
        body = client.hello()
        if door == "poll":
            body["wait"] = 2
        text = json.dumps(body).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        try:
            writer.write((f"POST {PATH}/{'poll' if door == 'poll' else 'stream'} HTTP/1.1\r\n"
                          f"Host: localhost\r\nContent-Length: {len(text)}\r\n\r\n").encode() + text)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise OSError(head.decode(errors="replace"))
            if door == "poll":
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                for frame in json.loads(await reader.readexactly(length))["frames"]:
                    client.hear(frame)
                continue
            rest = b""
            while True:
                size = int((await reader.readuntil(b"\r\n")).strip(), 16)
                if size == 0:
                    raise OSError("the stream ended")
                rest += (await reader.readexactly(size + 2))[:-2]
                while b"\n\n" in rest:
                    event, rest = rest.split(b"\n\n", 1)
                    for line in event.split(b"\n"):
                        if line.startswith(b"data: "):
                            client.hear(json.loads(line[6:]))
        finally:
            writer.transport.abort()


async def until(fits, bound=60):
    end = time.monotonic() + bound
    while time.monotonic() < end:
        if fits():
            return True
        await asyncio.sleep(0.02)
    return False


class Proxy:
    """nginx in front of the relay, configured for WebSockets as nginx's documentation says.

    Answers are buffered, which is nginx's default."""

    def __init__(self, folder, relay):
        self.port, file = free_port(), os.path.join(folder, "nginx.conf")
        with open(file, "w") as out:
            out.write(f"""daemon off; error_log /dev/null; pid {folder}/nginx.pid; worker_processes 1;
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fast; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  map $http_upgrade $asked {{ default upgrade; "" ""; }}
  server {{ listen 127.0.0.1:{self.port};
    location / {{ proxy_pass http://127.0.0.1:{relay.port}; proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $asked;
      proxy_set_header Host $host; proxy_read_timeout 90s; proxy_buffering on; }} }} }}
""")
        self.process = subprocess.Popen(["nginx", "-c", file, "-e", "/dev/null"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        STARTED.append(self.process)


async def correctness(relay, rounds, seed, proxy=None):
    chance = random.Random(seed)
    ledger, bad = Ledger(relay), []
    doors = ["socket", "socket", "stream", "poll"]
    clients = [Client(relay.api_token, f"user{number}") for number in range(len(doors))]
    # A client that connects before the first change has seen every change.
    tasks = {}
    resumed = 0

    def listen(number):
        port = proxy.port if proxy else relay.port
        tasks[number] = asyncio.create_task(keep(clients[number], port, doors[number]))

    async def keep(client, port, door):
        while True:
            try:
                return await watch(client, port, door, relay.context)
            except (OSError, EOFError, asyncio.IncompleteReadError):
                # A proxy answers for a relay that is away, and may itself not have started yet.
                if not proxy:
                    raise
                await asyncio.sleep(0.05)

    def agrees(client):
        expected = ledger.expected()
        return all(client.shown[name] == expected[name] for name in expected) \
            and len(client.changes) == ledger.cheap

    for number in range(len(doors)):
        listen(number)
    await until(lambda: all(client.at for client in clients))
    for number in range(rounds):
        for _ in range(chance.randrange(1, 40)):
            await asyncio.to_thread(ledger.change, chance)
            if chance.random() < 0.1:
                away = chance.randrange(len(doors))
                tasks[away].cancel()
                await asyncio.gather(tasks[away], return_exceptions=True)
                for _ in range(chance.randrange(4)):
                    await asyncio.to_thread(ledger.change, chance)
                listen(away)
                resumed += 1
        if number % 3 == 2:
            relay.kill()
            if not proxy:  # Behind a proxy they retry by themselves.
                await asyncio.gather(*tasks.values(), return_exceptions=True)
            if not await asyncio.to_thread(relay.start, port=relay.port if proxy else None):
                raise SystemExit("the relay did not start again")
            resumed += len(doors)
            for away in range(0 if proxy else len(doors)):
                listen(away)
        for client, door in zip(clients, doors):
            if not await until(lambda: agrees(client)):
                bad.append(f"round {number}, {door}: {len(client.changes)} changes of {ledger.cheap};"
                           f" shown {({k: len(v) for k, v in client.shown.items()})}, expected "
                           f"{({k: len(v) for k, v in ledger.expected().items()})}")
    for client, door in zip(clients, doors):
        positions = [position for position, _ in client.changes]
        if positions != sorted(set(positions)):
            bad.append(f"{door}: changes twice or out of order")
        if client.faults:
            bad.append(f"{door}: {client.faults[:2]}")
        if client.resets:
            bad.append(f"{door}: {client.resets} resets")
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    print(json.dumps({"changes": ledger.cheap, "records": len(ledger.records),
                      "cameBack": resumed, "faults": bad}))
    return not bad


# --- Figures


def cpu(process):
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Counting(asyncio.Protocol):
    """A socket that only counts, so that the load costs as little as possible."""

    def __init__(self, hello, world):
        self.hello, self.world, self.ready, self.upgraded = hello, world, False, False
        self.rest = b""

    def connection_made(self, transport):
        self.transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write((f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                         f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                         "Sec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Protocol: belfry.live.v1\r\n\r\n").encode())

    def data_received(self, data):
        if not self.upgraded:
            self.rest += data
            if b"\r\n\r\n" not in self.rest:
                return
            if not self.rest.startswith(b"HTTP/1.1 101"):
                self.world.refused += 1
                return self.transport.abort()
            self.upgraded, self.rest = True, b""
            return self.transport.write(self.hello)
        if not self.ready:
            self.rest += data
            if b'"state":"complete"' in self.rest and b'"type":"at"' in self.rest:
                self.ready, self.rest = True, b""
                self.world.ready += 1
            elif b'"type":"bye"' in self.rest:
                self.world.refused += 1
                self.transport.abort()
            return
        if self.world.mark in data:
            self.world.seen.append(time.monotonic())

    def connection_lost(self, error):
        self.world.lost += 1


def masked(frame):
    data = json.dumps(frame).encode()
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    return b"\x81" + size + b"\0\0\0\0" + data


async def figures(relay, count):
    loop = asyncio.get_running_loop()
    world = argparse.Namespace(ready=0, refused=0, lost=0, seen=[], mark=b"\0")
    before, spent = memory(relay.process)[0], cpu(relay.process)
    began = time.monotonic()
    transports = []
    for number in range(count):
        hello = masked({
            "type": "hello", "ckAPIToken": relay.api_token, "format": "plain",
            "ckWebAuthToken": user_token(f"u{number % 1000}"),
            "set": {"version": 1, "queries": [
                {"id": "q", "kind": "changes", "recordType": "Artwork"}]}})
        transport, _ = await loop.create_connection(
            lambda: Counting(hello, world), "127.0.0.1", relay.port)
        transports.append(transport)
        if number % 100 == 99:
            await until(lambda: world.ready + world.refused + world.lost > number - 300)
    await until(lambda: world.ready + world.refused + world.lost >= count)
    opened = time.monotonic() - began
    resident = memory(relay.process)[0]
    print(f"{world.ready} of {count} sockets ready in {opened:.1f} s ({world.refused} refused, "
          f"{world.lost} lost), {(resident - before) * 1024 / max(1, world.ready):.1f} kB each, "
          f"{(cpu(relay.process) - spent) * 1e6 / max(1, world.ready):.0f} us of CPU each")
    idle, begin = cpu(relay.process), time.monotonic()
    await asyncio.sleep(20)
    took = time.monotonic() - begin
    print(f"idle: {(cpu(relay.process) - idle) * 1e6 / took / max(1, world.ready):.2f} us/s each")
    halves, lasts, costs = [], [], []
    for number in range(12):
        world.seen, world.mark = [], f'"mark-{number}"'.encode()
        spent, begin = cpu(relay.process), time.monotonic()
        await asyncio.to_thread(relay.expect, 200, "POST",
                                f"/changes/1/{CONTAINER}/development/database",
                                {"operation": "create", "recordType": "Artwork",
                                 "recordName": f"mark-{number}", "after": {"text": "x" * 200}})
        if not await until(lambda: len(world.seen) >= world.ready, 30):
            print(f"only {len(world.seen)} of {world.ready} were told")
        seen = sorted(moment - begin for moment in world.seen)
        if number >= 2:
            halves.append(seen[len(seen) // 2] * 1000)
            lasts.append(seen[int(len(seen) * 0.99)] * 1000)
            costs.append((cpu(relay.process) - spent) * 1e6 / max(1, world.ready))
    print(f"one change to all: p50 {statistics.median(halves):.0f} ms, p99 "
          f"{statistics.median(lasts):.0f} ms, {statistics.median(costs):.1f} us of CPU a socket")
    for transport in transports:
        transport.abort()
    await asyncio.sleep(1)
    return world.ready >= count * 0.99


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--through", choices=["nginx", "tls"],
                        help="nginx before the relay, or the relay's own TLS")
    parser.add_argument("--sockets", type=int, default=1000)
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = tempfile.mkdtemp(prefix="belfry-live-")
    belfry = binary(arguments.binary)
    gateway = Gateway(belfry, folder, prints=False)
    wide = {"http-connections": 30000, "http-connections-per-address": 30000, "rates-key": 0,
            "rates-address": 0, "live-hellos-per-second": 1000000} \
        if arguments.figures else {}
    relay = Relay(belfry, folder, gateway.port, gateway.ca, wide)
    if arguments.through == "tls":
        relay.speak_tls()
    relay.start()
    relay.furnish()
    proxy = Proxy(folder, relay) if arguments.through == "nginx" else None
    relay.expect(200, "POST",
                 f"/admin/1/containers/{CONTAINER}/development/schema/recordTypes/Artwork",
                 {"shadow": True}, admin=True)
    good = asyncio.run(figures(relay, arguments.sockets) if arguments.figures
                       else correctness(relay, arguments.rounds, arguments.seed, proxy))
    if proxy:
        proxy.process.terminate()
        proxy.process.wait(PATIENCE)
    code = relay.stop()
    gateway.stop()
    shutil.rmtree(folder)
    print("the end was in order" if code == 0 else f"the relay ended with {code}")
    sys.exit(0 if good and code == 0 else 1)


if __name__ == "__main__":
    main()
