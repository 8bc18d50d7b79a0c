#!/usr/bin/env python3
"""What connected clients cost, as the tables of docs/performance.md, with other programs for comparison.

The other programs are nginx with nchan, Go with gorilla/websocket, and Node with ws, on the same machine.

  Tests/Campaigns/live-figures                    all rows, all programs
  Tests/Campaigns/live-figures --rows 2,3 --sockets 5000

The load is one process in C (live-load/load.c). A post carries the moment at which it was due. Latency counts from
that moment to the last byte at each client. The load runs on the same processors as the measured program, and the
rows that compare programs show what the load itself takes.
"""
import argparse, json, os, re, resource, shutil, signal, socket, statistics, subprocess, sys
import tempfile, threading, time, urllib.request
from rig import ADMIN_TOKEN, CONTAINER, PATIENCE, ROOT, STARTED, Gateway, Relay, binary, free_port, \
    memory, user_token

PATH = f"/live/1/{CONTAINER}/development"
POSTS = f"/changes/1/{CONTAINER}/development/database"
WIDE = {"http-connections": 60000, "http-connections-per-address": 60000, "rates-key": 0,
        "rates-address": 0, "live-hellos-per-second": 1000000,
        "live-connections": 100000, "log-level": "error"}
TEXT = "x" * 180


class Load:
    """The process that holds the sockets."""

    def __init__(self, world, port, path=PATH, protocol="belfry.live.v1", hellos=None):
        file = "-"
        if hellos:
            world.files += 1
            file = os.path.join(world.folder, f"hellos{world.files}.txt")
            with open(file, "w") as out:
                out.writelines(line + "\n" for line in hellos)
        self.process = subprocess.Popen([world.load, str(port), path, protocol, file],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        STARTED.append(self.process)
        self.world = world

    def begin(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the load ended")
        return json.loads(line)

    def ask(self, command):
        self.begin(command)
        return self.answer()

    def begin_post(self, port, path, rate, seconds, body, choices=1):
        """Begins to post; the caller may do something else before it reads the result."""
        self.world.files += 1
        file = os.path.join(self.world.folder, f"body{self.world.files}.json")
        with open(file, "w") as out:
            out.write(body)
        self.begin(f"post {port} {path} {rate} {seconds} {file} {choices}")

    def post(self, *call):
        self.begin_post(*call)
        posted = self.answer()
        if posted["refused"]:
            print(f"posts were refused: {posted}", file=sys.stderr)
        return posted

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


def processes(root):
    """Returns a process and its children."""
    found = [root]
    with open(f"/proc/{root}/task/{root}/children") as file:
        for child in file.read().split():
            found += processes(int(child))
    return found


def cpu(root):
    total = 0
    for one in processes(root):
        fields = open(f"/proc/{one}/stat").read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def kilobytes(root):
    """Returns the memory of a process and its children, with shared memory divided among its users."""
    total = 0
    for one in processes(root):
        for line in open(f"/proc/{one}/smaps_rollup"):
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total


def hello(relay, user, query, resumes=True, beside=()):
    marked = dict({"id": "q", "recordType": "Artwork"}, **query)
    text = json.dumps({
        "type": "hello", "ckAPIToken": relay.api_token, "ckWebAuthToken": user_token(user),
        "format": "plain", "set": {"version": 1, "queries": [*beside, marked]}},
        separators=(",", ":"))
    # The place where the load inserts what it knows of a socket that reconnects.
    return text[:-4] + "@RESUME@" + text[-4:] if resumes else text


def change(kind="Artwork", name="r@N@", operation="create", text=TEXT, **fields):
    more = "".join(f',"{key}":{value}' for key, value in fields.items())
    return (f'{{"operation":"{operation}","recordType":"{kind}","recordName":"{name}",'
            f'"after":{{"n":@N@,"t":@T@,"text":"{text}"{more}}}}}')


class World:
    def __init__(self, arguments):
        self.folder = tempfile.mkdtemp(prefix="belfry-live-figures-")
        self.load, self.belfry = arguments.load, binary(arguments.binary)
        self.sockets, self.seconds = arguments.sockets, arguments.seconds
        self.rows, self.files = [], 0

    def say(self, row, what, goal, **values):
        self.rows.append((row, what, goal, values))
        print(json.dumps({"row": row, "what": what, "goal": goal, **values}), flush=True)

    def relay(self, tls=False, prints=False, **settings):
        home = tempfile.mkdtemp(dir=self.folder)
        gateway = Gateway(self.belfry, home, prints=prints)
        relay = Relay(self.belfry, home, gateway.port, gateway.ca, {**WIDE, **settings})
        relay.gateway = gateway
        if tls:
            relay.speak_tls()
        relay.start()
        relay.furnish()
        for kind in ("Artwork", "Owned", "Ranked"):
            relay.expect(200, "POST", f"/admin/1/containers/{CONTAINER}/development/schema/"
                         f"recordTypes/{kind}", {"shadow": True}, admin=True)
        return relay

    def leave(self, relay):
        relay.stop()
        relay.gateway.stop()
        shutil.rmtree(relay.folder)


def metrics(relay):
    """Returns the samples of the relay's metrics as lines."""
    request = urllib.request.Request(f"http://127.0.0.1:{relay.admin}/metrics",
                                     headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        lines = answer.read().decode().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def metric(relay, name):
    """Returns the value of a metric, summed over its labels."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in metrics(relay)
               if line.split("{")[0].split(" ")[0] == name)


class Histogram:
    """A histogram of the relay's: the number of values up to each bound, and the sum of all values."""

    def __init__(self, relay, name):
        self.counts, self.sum = {}, 0
        for line in metrics(relay):
            value = float(line.rsplit(" ", 1)[1])
            if line.startswith(f"{name}_bucket"):
                bound = float(line.split('le="')[1].split('"')[0])
                self.counts[bound] = self.counts.get(bound, 0) + value
            elif line.split("{")[0].split(" ")[0] == f"{name}_sum":
                self.sum += value

    def since(self, before):
        """Returns what was added since `before`: the mean, and the bounds between which half and nearly all
        values are.

        All are in microseconds. The bounds are the relay's, so the values between them are not known."""
        counts = sorted((bound, count - before.counts.get(bound, 0))
                        for bound, count in self.counts.items())
        all_ = counts[-1][1] if counts else 0
        if not all_:
            return {}
        return {"engineMeanMicroseconds": round((self.sum - before.sum) / all_ * 1e6),
                "engineP50Microseconds": within(counts, all_ * 0.5),
                "engineP99Microseconds": within(counts, all_ * 0.99)}


def within(counts, wanted):
    former = 0
    for bound, count in counts:
        if count >= wanted:
            return f"{former * 1e6:.0f} to {bound * 1e6:.0f}"
        former = bound
    return "beyond all bounds"


class Pushes:
    """Reads how late each push is from a gateway's output as it is printed.

    The lateness counts from the moment that the push carries. A push that was not sent within a second is
    late too."""

    MOMENT = re.compile(rb'"t"\s*:\s*"?(\d+)')

    def __init__(self, gateway):
        self.late, self.isOver, self.file = [], False, open(gateway.record, "rb")
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        rest = b""
        while not self.isOver:
            part = self.file.read(65536)
            if not part:
                time.sleep(0.0005)
                continue
            now = time.monotonic_ns()
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if found := self.MOMENT.search(line):
                    self.late.append((now - int(found[1])) / 1e6)

    def take(self, count):
        """Waits for `count` pushes; returns their p50 and p99 in milliseconds, and how many came."""
        end = time.monotonic() + 20
        while len(self.late) < count and time.monotonic() < end:
            time.sleep(0.01)
        late, self.late = sorted(self.late), []
        if not late:
            raise SystemExit("no push came")
        return late[len(late) // 2], late[len(late) * 99 // 100], len(late)

    def end(self):
        self.isOver = True
        self.thread.join()


# --- Rows 1 to 3: against the other programs


class Peer:
    """A program that sends what is posted to all who listen."""

    def __init__(self, world, name, command, port):
        self.name, self.port = name, port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        STARTED.append(self.process)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{name} did not start")

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def peer(world, name):
    port = free_port()
    if name == "gorilla":
        return Peer(world, name, [os.path.join(os.path.dirname(world.load), "gorilla"), str(port)],
                    port)
    if name == "ws":
        script = os.path.join(ROOT, "Tests", "Campaigns", "live-load", "ws.js")
        return Peer(world, name, ["node", script, str(port)], port)
    settings = os.path.join(world.folder, "nchan.conf")
    with open(settings, "w") as out:
        out.write(f"""load_module /usr/lib/nginx/modules/ngx_nchan_module.so;
daemon off; worker_processes 2; error_log /dev/null; pid {world.folder}/nginx.pid;
worker_rlimit_nofile {resource.getrlimit(resource.RLIMIT_NOFILE)[1]};
events {{ worker_connections 60000; }}
http {{ access_log off; client_body_temp_path {world.folder}/body; nchan_shared_memory_size 512M;
  proxy_temp_path {world.folder}/proxy; fastcgi_temp_path {world.folder}/fast;
  uwsgi_temp_path {world.folder}/uwsgi; scgi_temp_path {world.folder}/scgi;
  server {{ listen 127.0.0.1:{port};
    location = /listen {{ nchan_subscriber websocket; nchan_channel_id all;
      nchan_subscriber_first_message newest; }}
    location = /publish {{ nchan_publisher; nchan_channel_id all; nchan_message_timeout 60s; }}
  }} }}
""")
    return Peer(world, name, ["nginx", "-c", settings, "-e", "/dev/null"], port)


def open_all(load, count):
    answer = load.ask(f"connect 0 {count} 200")
    if answer["ready"] < count * 0.99:
        raise SystemExit(f"only {answer}")
    return answer


def tell(load, port, path, body, count, times, root):
    """Sends one message at a time to all; returns medians of when half and nearly all had it, and of the CPU
    time."""
    halves, lasts, costs, own = [], [], [], 0
    for number in range(times + 2):
        load.ask("clear")
        spent, taken = cpu(root), cpu(load.process.pid)
        load.post(port, path, 1, 1, body)
        answer = load.ask(f"wait {count} 30")
        load.ask("rest 0.2")
        if number >= 2:  # The first two only warm up.
            halves.append(answer["p50"])
            lasts.append(answer["p99"])
            costs.append((cpu(root) - spent) * 1e6 / count)
            own += (cpu(load.process.pid) - taken) * 1e6 / count / times
    return {"p50ms": round(statistics.median(halves), 1), "p99ms": round(statistics.median(lasts), 1),
            # The system counts CPU time in hundredths of a second, so only the mean is meaningful.
            "cpuMicroseconds": round(statistics.mean(costs), 1), "loadMicroseconds": round(own, 1)}


def sustain(load, port, path, body, count, rate, seconds, root):
    """Sends `rate` messages a second to all, three times; returns the run with the middle p99."""
    runs = []
    for _ in range(3):
        load.ask("clear")
        spent, taken = cpu(root), cpu(load.process.pid)
        posted = load.post(port, path, rate, seconds, body)
        answer = load.ask(f"wait {int(rate * seconds) * count} 30")
        told = max(1, answer["messages"])
        runs.append({"wanted": int(rate * count), "framesPerSecond":
                     round(answer["messages"] / max(posted["seconds"], seconds)),
                     "p50ms": round(answer["p50"], 1), "p99ms": round(answer["p99"], 1),
                     "missing": answer["missing"], "twice": answer["twice"],
                     "cpuMicroseconds": round((cpu(root) - spent) * 1e6 / told, 2),
                     "loadMicroseconds":
                     round((cpu(load.process.pid) - taken) * 1e6 / told, 2)})
        load.ask("rest 1")
    return sorted(runs, key=lambda run: run["p99ms"])[1]


def one_to_three(world, rows):
    relay = world.relay()
    root, count = relay.process.pid, world.sockets
    load = Load(world, relay.port, hellos=[
        hello(relay, f"u{number % 1000}", {"kind": "changes"}) for number in range(count)])
    warm = Load(world, relay.port, hellos=[hello(relay, "warm", {"kind": "changes"})])
    warm.ask("connect 0 40 20")
    time.sleep(1)
    measure(world, "belfry", load, root, relay.port, POSTS, change(), rows)
    warm.end()
    load.end()
    world.leave(relay)
    body = f'{{"n":@N@,"t":@T@,"text":"{TEXT}{TEXT[:70]}"}}'
    for name in world.others:
        other = peer(world, name)
        load = Load(world, other.port, "/listen", "-")
        measure(world, name, load, other.process.pid, other.port, "/publish", body, rows)
        load.end()
        other.stop()


def measure(world, name, load, root, port, path, body, rows):
    count = world.sockets
    before, spent = kilobytes(root), cpu(root)
    opened = open_all(load, count)
    load.ask("rest 3")
    each = (kilobytes(root) - before) / count
    opening = (cpu(root) - spent) * 1e6 / count
    if 1 in rows:
        # The relay sends a ping to each socket every 25 seconds; the others never do.
        idle = 60 if name == "belfry" else world.seconds
        spent = cpu(root)
        load.ask(f"rest {idle}")
        world.say(1, name, "≤ 10 kB each, ≤ 3 µs/s", sockets=count, kilobytesEach=round(each, 1),
                  idleMicrosecondsPerSecond=round((cpu(root) - spent) * 1e6 / idle / count, 2),
                  openingSeconds=opened["seconds"], openingMicroseconds=round(opening))
    if 2 in rows:
        world.say(2, name, "p50 80, p99 200 ms, ≤ 10 µs",
                  **tell(load, port, path, body, count, 10, root))
    if 3 in rows:
        world.say(3, name, "50,000/s, p99 500 ms",
                  **sustain(load, port, path, body, count, 50000 / count, world.seconds, root))


def one_tls(world):
    """Measures a socket under the relay's own TLS; Python makes the handshakes, so there are fewer sockets."""
    count, relay = min(1000, world.sockets), world.relay(tls=True)
    sockets = []

    def connect(number):
        raw = socket.create_connection(("127.0.0.1", relay.port), 10)
        one = relay.context.wrap_socket(raw, server_hostname="127.0.0.1")
        one.sendall((f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: belfry.live.v1\r\n\r\n"
                     ).encode())
        text = hello(relay, f"u{number}", {"kind": "changes"}, resumes=False).encode()
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += one.recv(65536)
        one.sendall(b"\x81\xfe" + len(text).to_bytes(2, "big") + bytes(4) + text)
        while b'"complete"' not in heard or b'"type":"at"' not in heard:
            part = one.recv(65536)
            if not part:
                raise SystemExit(f"a TLS socket was closed: {heard[-300:]}")
            heard += part
        sockets.append(one)

    for number in range(50):
        connect(number)
    before = kilobytes(relay.process.pid)
    for number in range(50, 50 + count):
        connect(number)
    time.sleep(2)
    each = (kilobytes(relay.process.pid) - before) / count
    world.say(1, "belfry, TLS", "≤ 30 kB each", sockets=count, kilobytesEach=round(each, 1))
    for one in sockets:
        one.close()
    world.leave(relay)


# --- Rows 4 to 9: what only the relay does


def four(world):
    """Many changes, each for one socket, and pushes at the same time.

    It runs once alone, once with the same changes and no connections, and once with all."""
    relay = world.relay(prints=True)
    count, rate, seconds = world.sockets, 1000, 2 * world.seconds
    relay.register("phone", "ann")
    status, answer = relay.save("one", "ann", "text == 'pushed'",
                                notificationInfo={"alertBody": "New", "desiredKeys": ["t"]})
    if status != 200:
        raise SystemExit(answer)
    load = Load(world, relay.port, hellos=[
        hello(relay, f"u{number}", {"kind": "changes", "query": {"predicate": f"owner == 'u{number}'"}})
        for number in range(count)])
    pusher, pushes, late = Load(world, relay.port, hellos=["-"]), Pushes(relay.gateway), {}
    for kind in ("Alone", "WithChanges", "WithClients"):
        if kind == "WithClients":
            open_all(load, count)
        load.ask("clear")
        pusher.begin_post(relay.port, POSTS, 50, seconds, change(name="p@N@", text="pushed"))
        if kind != "Alone":
            load.post(relay.port, POSTS, rate, seconds, change(owner='"u@U@"'), count)
            told = load.ask(f"wait {rate * seconds if kind == 'WithClients' else 0} 20")
        pusher.answer()
        late[kind] = pushes.take(50 * seconds)
    pushes.end()
    world.say(4, "belfry", "p50 8, p99 30 ms; pushes' p99 ≤ 1.3 ×", changesPerSecond=rate,
              told=told["messages"], p50ms=round(told["p50"], 1), p99ms=round(told["p99"], 1),
              **{f"pushes{kind}{name}": round(value, 1) for kind, values in late.items()
                 for name, value in zip(("P50ms", "P99ms", "Count"), values)})
    load.end()
    pusher.end()
    world.leave(relay)


def fill(relay, kind, count, of):
    """Creates records, posted 500 at a time."""
    for first in range(0, count, 500):
        relay.expect(200, "POST", POSTS, [
            {"operation": "create", "recordType": kind, "recordName": f"{kind}{number}",
             "after": of(number)} for number in range(first, min(first + 500, count))])


def five(world):
    """Every record is a member of about 25 windows, the fewest with which each window is full.

    A change moves the record within them, or out of them and into as many others."""
    relay = world.relay()
    count, records, shelves = world.sockets, 10000, 400
    fill(relay, "Ranked", records,
         lambda number: {"shelf": number % shelves, "rank": number * 7919 % 100000})
    windows = [{"recordType": "Ranked", "sortBy": [{"fieldName": "rank"}], "limit": {"first": 20},
                "query": {"predicate": f"shelf == {number % shelves} AND "
                                       f"rank >= {number // shelves * 200}"}}
               for number in range(count)]
    load = Load(world, relay.port, hellos=[
        hello(relay, f"u{number % 1000}", windows[number]) for number in range(count)])
    opened = open_all(load, count)
    load.ask("rest 2")
    for what, shelf in (("moves within its windows", "@M@"), ("leaves some, enters others", "@S@")):
        before = Histogram(relay, "belfry_live_change_seconds")
        load.ask("clear")
        body = ('{"operation":"update","recordType":"Ranked","recordName":"Ranked@U@",'
                f'"after":{{"shelf":{shelf},"rank":@R@,"t":@T@}}}}')
        load.post(relay.port, POSTS, 200, world.seconds, body, records)
        told = load.ask("wait 2000000000 3")
        took = Histogram(relay, "belfry_live_change_seconds").since(before)
        world.say(5, f"belfry, a record {what}", "engine p50 50, p99 300 µs", windows=count,
                  records=records, changesPerSecond=200, openingSeconds=opened["seconds"], **took,
                  # A record that slides into a window has the moment of its own change, which was long ago.
                  told=told["messages"], p50ms=round(told["p50"], 1))
    load.end()
    world.leave(relay)


def six(world):
    relay = world.relay()
    count, records = world.sockets, 100000
    fill(relay, "Owned", records, lambda number: {"owner": f"u{number % count}", "text": TEXT})
    load = Load(world, relay.port, hellos=[
        hello(relay, f"u{number}", {"recordType": "Owned",
                                    "query": {"predicate": f"owner == 'u{number}'"}})
        for number in range(count)])
    # Resets the peak of the memory.
    with open(f"/proc/{relay.process.pid}/clear_refs", "w") as file:
        file.write("5")
    before, readings = memory(relay.process)[0], metric(relay, "belfry_live_readings_total")
    answer = load.ask(f"connect 0 {count} {count}")
    now, most = memory(relay.process)
    world.say(6, "belfry", "10 s, few readings, + 200 MB", sockets=answer["ready"], records=records,
              seconds=answer["seconds"],
              readings=int(metric(relay, "belfry_live_readings_total") - readings),
              megabytes=now - before, megabytesAtMost=most - before)
    load.end()
    world.leave(relay)


def seven(world):
    relay = world.relay()
    count = world.sockets
    load = Load(world, relay.port, hellos=[
        hello(relay, f"u{number % 1000}", {"kind": "changes"}) for number in range(count)])
    open_all(load, count)
    load.ask("clear")
    load.post(relay.port, POSTS, 10, 1, change())
    load.ask(f"wait {10 * count} 30")
    # Some of these changes are durable, and not yet sent to everybody, when the relay is killed.
    load.post(relay.port, POSTS, 100, 0.3, change())
    relay.kill()
    load.ask("abandon")
    began = time.monotonic()
    relay.start(port=relay.port)
    ready = time.monotonic() - began
    readings = metric(relay, "belfry_live_readings_total")
    answer = load.ask(f"connect 0 {count} {count}")
    load.post(relay.port, POSTS, 10, 0.5, change())
    load.ask("rest 3")
    told = load.ask("report")
    world.say(7, "belfry", "10 s after ready, lost 0", sockets=answer["ready"],
              refused=answer["refused"], seconds=answer["seconds"], readySeconds=round(ready, 2),
              lost=told["missing"], twice=told["twice"], resets=told["resets"],
              readings=int(metric(relay, "belfry_live_readings_total") - readings))
    load.end()
    world.leave(relay)


def eight(world):
    """Some sockets are sent 6 MB more than the others, and do not read it.

    That is more than the system's buffers hold, so the relay must keep it or let these sockets lag."""
    relay = world.relay()
    count, stalled = world.sockets, min(100, world.sockets // 2)
    heavy = {"id": "heavy", "kind": "changes", "recordType": "Owned"}
    load = Load(world, relay.port, hellos=[
        hello(relay, f"u{number % 1000}", {"kind": "changes"}, resumes=False,
              beside=[heavy] if number < stalled else []) for number in range(count)])
    pusher, healthy, p99 = Load(world, relay.port, hellos=["-"]), count - stalled, {}
    open_all(load, count)
    body = change("Owned", "big@N@", text="y" * 60000).replace('"n":@N@,"t":@T@,', "")

    def fill_up():
        pusher.begin_post(relay.port, POSTS, 20, 5, body)
        load.ask("rest 6")
        pusher.answer()

    fill_up()  # All sockets read this; afterwards the relay's memory holds what it keeps for other reasons.
    for kind in ("all read", "some do not"):
        if kind == "some do not":
            load.ask(f"stall 0 {stalled}")
            before = kilobytes(relay.process.pid)
            fill_up()
            grown = (kilobytes(relay.process.pid) - before) / stalled
        load.ask("clear")
        load.post(relay.port, POSTS, 2, world.seconds, change(text="y" * 250))
        p99[kind] = load.ask(f"wait {healthy * 2 * world.seconds} 8")["p99"]
    load.ask(f"read 0 {stalled}")
    load.ask("rest 10")
    load.post(relay.port, POSTS, 2, 1, change())
    told = load.ask("wait 2000000000 5")
    world.say(8, "belfry", "256 KiB each, others' p99 + 10 %, nothing missing", stalled=stalled,
              kilobytesEach=round(grown, 1), p99ms=round(p99["all read"], 1),
              p99BesideMs=round(p99["some do not"], 1), missing=told["missing"],
              twice=told["twice"], lost=told["lost"])
    load.end()
    pusher.end()
    world.leave(relay)


def nine(world):
    relay = world.relay()
    count = world.sockets
    load = Load(world, relay.port, hellos=[
        hello(relay, f"u{number % 1000}", {"kind": "changes"}) for number in range(count)])
    open_all(load, count)
    relay.process.send_signal(signal.SIGTERM)
    answer = load.ask("leave 60")
    code = relay.process.wait(PATIENCE)
    returns = [count for count in answer["returns"] if count]
    world.say(9, "belfry", "drainSeconds (10) + 2; no second twice the mean", sockets=answer["all"],
              told=answer["told"], seconds=answer["seconds"], code=code,
              busiestSecond=max(returns, default=0),
              meanSecond=round(sum(returns) / max(1, len(returns))))
    load.end()
    relay.gateway.stop()


def table(rows):
    """Returns the measurements as the table of docs/performance.md."""
    print("\n| # | | goal | measured |\n| ---: | --- | --- | --- |")
    for row, what, goal, values in rows:
        text = ", ".join(f"{name} {value:,}" if isinstance(value, (int, float)) else
                         f"{name} {value}" for name, value in values.items())
        print(f"| {row} | {what} | {goal} | {text} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--load", required=True, help="the load, compiled")
    parser.add_argument("--rows", default="1,2,3,4,5,6,7,8,9")
    parser.add_argument("--others", default="nchan,gorilla,ws")
    parser.add_argument("--sockets", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if arguments.sockets + 500 > hard:
        arguments.sockets = hard - 500
        print(f"the file limit leaves {arguments.sockets} sockets")
    world = World(arguments)
    world.others = [name for name in arguments.others.split(",") if name]
    rows = {int(row) for row in arguments.rows.split(",")}
    failed = [what for what, run in [
        ("1 to 3", lambda: rows & {1, 2, 3} and one_to_three(world, rows)),
        ("1, TLS", lambda: 1 in rows and one_tls(world)),
        *((str(row), lambda row=row, run=run: row in rows and run(world)) for row, run in
          {4: four, 5: five, 6: six, 7: seven, 8: eight, 9: nine}.items())]
        if not succeeds(run)]
    table(world.rows)
    shutil.rmtree(world.folder)
    if failed:
        raise SystemExit(f"these rows could not be measured: {', '.join(failed)}")


def succeeds(run):
    """Runs a row; a failing one leaves nothing behind that would disturb the next rows."""
    try:
        run()
        return True
    except (Exception, SystemExit) as error:
        print(f"failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        for process in STARTED:
            if process.poll() is None:
                process.kill()
                process.wait()
        return False


if __name__ == "__main__":
    main()
