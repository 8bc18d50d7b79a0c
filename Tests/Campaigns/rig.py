"""A relay and a push gateway as processes, and an HTTP client for both.

It shares no code with the relay: it implements what docs/http-api.md says.
"""
import atexit, base64, glob, hashlib, hmac, http.client, json, os, random, re, shutil, signal, socket
import sqlite3, ssl, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTAINER = "iCloud.com.example.Art"
ADMIN_TOKEN = "admin-token-of-the-campaigns"
# Far more than anything here needs: a slow machine must not be mistaken for a fault.
PATIENCE = 300
USER_SECRET = "a shared secret of at least 32 bytes"


STARTED = []


@atexit.register
def leave_nobody_behind():
    """Ends the processes that a failed campaign has left running."""
    for process in STARTED:
        if process.poll() is None:
            process.kill()


def binary(name=None):
    """Returns the path of the built belfry: the named one, or else the release or debug build."""
    places = [name] if name else [
        os.path.join(ROOT, ".build", kind, "belfry") for kind in ("release", "debug")]
    for place in places:
        if place and os.path.exists(place):
            return os.path.abspath(place)
    raise SystemExit("build belfry first: swift build -c release --product belfry")


def database_programs():
    """Returns the folder of PostgreSQL's programs: from the environment, or the newest of Debian's."""
    named = os.environ.get("BELFRY_POSTGRESQL")
    places = [named] if named else sorted(
        glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    if not places:
        raise SystemExit("install postgresql first")
    return places[-1]


def judge_in_folder(name, run, keep=False, note="", logs=("relay.log",)):
    """Runs a campaign in a temporary folder, and ends the process if a promise is broken.

    `run` gets the folder and returns the broken promises. If there are any, or with `keep`, the folder stays.
    The ends of the relays' logs in it are shown, without the lines that a long fault repeats."""
    folder = tempfile.mkdtemp(prefix=f"belfry-{name}-")
    bad = ["an error"]
    try:
        bad = run(folder)
    finally:
        for log in logs if bad and not keep else ():
            path = os.path.join(folder, log)
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    lines = [line for line in file if "cannot use the gateway; trying again" not in line]
                sys.stderr.write(f"--- {log}\n" + "".join(lines)[-4000:])
        if keep or bad:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder)
    if bad:
        sys.exit(f"NOT AS PROMISED{note}: {', '.join(bad)}")


GIVEN = set()


def free_port():
    """Returns a port that nobody listens on.

    It is below those that the kernel gives to clients, and was not returned before, because its former
    receiver may begin to listen later."""
    if len(GIVEN) > 8_000:
        GIVEN.clear()
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        if port in GIVEN:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        GIVEN.add(port)
        return port


def build_shim(folder):
    """Compiles the shim below file calls; returns its path."""
    target = os.path.join(folder, "faults.so")
    source = os.path.join(ROOT, "Tests", "Campaigns", "faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", target, source, "-ldl"], check=True)
    return target


def user_token(user):
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")
    head = part(b'{"alg":"HS256","typ":"JWT"}')
    claims = part(json.dumps({"sub": user, "exp": 4102444800}).encode())
    code = hmac.new(USER_SECRET.encode(), head + b"." + claims, hashlib.sha256).digest()
    return (head + b"." + claims + b"." + part(code)).decode()


def device_token(name):
    return name.encode().hex().ljust(64, "0")


class Gateway:
    """`belfry gateway`, whose printed record goes to a file."""

    def __init__(self, belfry, folder, script=None, prints=True, after=None, host="127.0.0.1"):
        """Starts a gateway, or one in the place of the gateway `after`.

        That one must have stopped, or `host` must be another address than it had."""
        self.port = after.port if after else free_port()
        self.ca = os.path.join(folder, "gateway-ca.pem")
        earlier = after.records if after else []
        self.record = os.path.join(folder, f"pushes{len(earlier) or ''}.txt")
        self.records = earlier + [self.record]
        arguments = [belfry, "gateway", "--host", host, "--port", str(self.port),
                     "--ca-file", self.ca,
                     "--certificates", os.path.join(folder, "certificates"),
                     "--environment", "development"] + ([] if prints else ["--no-print"])
        if script:
            path = os.path.join(folder, "script.json")
            with open(path, "w") as file:
                json.dump(script, file)
            arguments += ["--script", path]
        self.output = open(self.record, "wb")
        self.process = subprocess.Popen(arguments, stdout=self.output, stderr=subprocess.DEVNULL)
        STARTED.append(self.process)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            if os.path.getsize(self.record) > 0 and os.path.exists(self.ca):
                self.idle_sockets = self.sockets()
                return
            time.sleep(0.05)
        raise SystemExit("the gateway did not start")

    def size(self):
        return os.path.getsize(self.record)

    def quiet(self):
        """Waits until the gateway has read and printed all that a dead relay had sent.

        It closes its end of a connection after that. Returns the size of the record."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.sockets() <= self.idle_sockets and not self.waiting():
                return self.size()
            time.sleep(0.01)
        raise SystemExit("the gateway keeps connections of a relay that is gone")

    def sockets(self):
        """Returns how many sockets the gateway has open.

        A connection that was reset counts until it has been read to its end."""
        folder, count = f"/proc/{self.process.pid}/fd", 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(os.path.join(folder, name)).startswith("socket:")
            except OSError:
                pass
        return count

    def waiting(self):
        """Returns whether the kernel has a connection for the gateway, accepted or not."""
        with open("/proc/net/tcp") as file:
            ends = [line.split()[1:4] for line in file.readlines()[1:]]
        return any(int(local.rsplit(":", 1)[1], 16) == self.port and state not in ("0A", "06")
                   for local, _, state in ends)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


class Relay:
    """`belfry serve` on a file."""

    def __init__(self, belfry, folder, gateway_port, ca, settings=(), environment=()):
        self.belfry, self.folder, self.ca = belfry, folder, ca
        self.gateway_port = gateway_port
        self.settings = dict(settings)
        self.database = os.path.join(folder, "relay.sqlite")
        self.log = open(os.path.join(folder, "relay.log"), "ab")
        self.process = None
        # The TLS context of clients, if the relay itself serves TLS.
        self.context = None

    def speak_tls(self):
        """Makes the relay serve TLS from its next start on, with a certificate made here."""
        key, certificate = (os.path.join(self.folder, name) for name in ("key.pem", "cert.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                        certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        self.settings.update({"tls-certificate-file": certificate, "tls-private-key-file": key})
        self.context = ssl.create_default_context(cafile=certificate)

    def start(self, environment=None, settings=None, wait=True, port=None):
        self.port, self.admin = port or free_port(), free_port()
        options = {"storage-path": self.database, "storage-create": "whenMissing",
                   "http-port": self.port,
                   "admin-port": self.admin, "storage-disk-reserve-megabytes": 0,
                   "apns-url": f"https://127.0.0.1:{self.gateway_port}", "apns-ca-file": self.ca,
                   "log-level": "warning"}
        options.update(self.settings)
        options.update(settings or {})
        arguments = [self.belfry, "serve"]
        for name, value in options.items():
            arguments += [f"--{name}", str(value)]
        variables = dict(os.environ, BELFRY_ADMIN_TOKEN=ADMIN_TOKEN, **(environment or {}))
        self.process = subprocess.Popen(
            arguments, stdout=self.log, stderr=self.log, env=variables)
        STARTED.append(self.process)
        return self.ready() if wait else True

    def ready(self, bound=PATIENCE):
        end = time.monotonic() + bound
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            try:
                if self.call("GET", "/readyz", timeout=2)[0] == 200:
                    return True
            except OSError:
                pass
            time.sleep(0.01)
        raise SystemExit("the relay did not become ready")

    def call(self, method, path, body=None, headers=None, admin=False, timeout=PATIENCE):
        port = self.admin if admin else self.port
        if self.context:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", port, timeout=timeout, context=self.context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            return exchange(connection, method, path, body, headers, admin)
        finally:
            connection.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, bound=PATIENCE):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(bound)

    def furnish(self):
        """Creates the container and its source, and returns the API token."""
        key = subprocess.run(
            "openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt",
            shell=True, check=True, capture_output=True).stdout.decode()
        path = f"/admin/1/containers/{CONTAINER}/development"
        self.expect(201, "PUT", path, {
            "topics": ["com.example.Art"],
            "apns": {"teamID": "TEAM123456", "keyID": "KEY1234567", "privateKey": key},
            "userTokens": {"sharedSecret": USER_SECRET}}, admin=True)
        answer = self.expect(201, "POST", f"{path}/keys", {"kind": "apiToken"}, admin=True)
        self.expect(201, "PUT", f"{path}/sources/database",
                    {"preset": "belfry", "verification": {"scheme": "none"}}, admin=True)
        self.api_token = answer["secret"]
        return self.api_token

    def expect(self, status, *call, **more):
        found, answer = self.call(*call, **more)
        if found != status:
            raise SystemExit(f"{call[:2]}: {found} {answer}")
        return answer

    def client(self, action, body, user, database=None, **more):
        place = f"database/1/{CONTAINER}/development/{database}" if database \
            else f"device/1/{CONTAINER}/development"
        query = f"?ckAPIToken={self.api_token}&ckWebAuthToken={user_token(user)}"
        return self.call("POST", f"/{place}/{action}{query}", body, **more)

    def register(self, device, user):
        status, answer = self.client("tokens/register", {
            "apnsEnvironment": "development", "deviceID": device,
            "apnsToken": device_token(device)}, user)
        if status != 200:
            raise SystemExit(f"tokens/register: {status} {answer}")

    def save(self, name, user, predicate=None, **members):
        query = {"recordType": "Artwork"}
        if predicate:
            query["predicate"] = predicate
        subscription = {
            "subscriptionID": name, "subscriptionType": "query", "query": query,
            "firesOn": ["create"], "notificationInfo": {"alertBody": "New"}, **members}
        return self.client("subscriptions/modify", {"operations": [
            {"operationType": "create", "subscription": subscription}]}, user, "public")

    def overview(self):
        return self.expect(200, "GET", "/admin/1/overview", admin=True)

    def settled(self, bound):
        """Waits until nothing is owed any more.

        How much that is, and how fast it goes, depends on the machine. But the rest must shrink within each
        `bound` seconds."""
        least, end = None, time.monotonic() + bound
        while time.monotonic() < end:
            view = self.overview()
            owed = int(view["behind"]), view["ranges"], view["retries"]
            if not any(owed):
                return view
            if least is None or owed < least:
                least, end = owed, time.monotonic() + bound
            time.sleep(0.2)
        raise SystemExit(f"not settled, and no closer to it within {bound} s: {view}")


class Rig:
    """A gateway, a relay, and what was posted.

    The relay has ann's phone and her subscription to all creations."""

    def __init__(self, belfry, campaign, script=None, host="127.0.0.1"):
        self.belfry, self.folder = belfry, tempfile.mkdtemp(prefix=f"belfry-{campaign}-")
        self.gateway = Gateway(belfry, self.folder, script, host=host)
        self.relay = Relay(belfry, self.folder, self.gateway.port, self.gateway.ca,
                           {"apns-url": f"https://{host}:{self.gateway.port}"})
        self.relay.start()
        self.relay.furnish()
        self.relay.register("phone", "ann")
        status, answer = self.relay.save("all", "ann")
        assert status == 200, answer
        self.posted = []

    def post(self, count):
        """Posts changes in one request, so that their pushes are open at the same time."""
        names = [f"art-{len(self.posted) + number}" for number in range(count)]
        self.relay.expect(200, "POST", f"/changes/1/{CONTAINER}/development/database", [
            {"operation": "create", "recordType": "Artwork", "recordName": name, "after": {}}
            for name in names])
        self.posted += names
        return names

    def leave(self):
        """Ends both in order; returns the relay's exit code."""
        code = self.relay.stop()
        self.gateway.stop()
        shutil.rmtree(self.folder)
        return code


def exchange(connection, method, path, body=None, headers=None, admin=False):
    """Makes one request on an open connection; returns the status and the JSON."""
    data = None if body is None else json.dumps(body)
    fields = {"Content-Type": "application/json", **(headers or {})}
    if admin:
        fields["Authorization"] = f"Bearer {ADMIN_TOKEN}"
    try:
        connection.request(method, path, data, fields)
        response = connection.getresponse()
        text = response.read()
    except http.client.HTTPException as error:
        raise OSError(str(error))
    if response.status == 200 and not text:
        return 200, None
    try:
        answer = json.loads(text)
    except ValueError:
        answer = text.decode(errors="replace")
    if isinstance(answer, dict) and response.getheader("Retry-After"):
        answer["retryAfterHeader"] = response.getheader("Retry-After")
    return response.status, answer


def memory(process):
    """Returns the present and the peak memory of a process in megabytes."""
    text = open(f"/proc/{process.pid}/status").read()
    return [int(re.search(rf"{name}:\s+(\d+)", text)[1]) // 1024 for name in ("VmRSS", "VmHWM")]


def reseal(belfry, path):
    """Rewrites the checksums of the pages after another program wrote to the file."""
    subprocess.run([belfry, "migrate", "--database", path, "--reseal"], check=True,
                   stdout=subprocess.DEVNULL)


def multiply(path, user, wanted):
    """Copies the only device and subscription of a user in the file of a stopped relay.

    Each copy belongs to a user of its own, until there are `wanted`. Saving a million over HTTP would take
    longer than the rest."""
    database = sqlite3.connect(path, isolation_level=None)
    # The process ends before the relay starts, and an interrupted campaign starts anew.
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA cache_size = -400000")
    database.create_function("token", 1, lambda number: device_token(f"u{number}"))
    device, owner, container = database.execute(
        "SELECT serial, owner, user.container FROM device JOIN user ON user.id = owner "
        "WHERE user.name = ?", (user,)).fetchone()
    subscription, = database.execute(
        "SELECT serial FROM subscription WHERE owner = ?", (owner,)).fetchone()
    first, = database.execute("SELECT max(id) + 1 FROM user").fetchone()
    numbers = (f"WITH RECURSIVE one (n) AS (SELECT 1 WHERE {wanted} > 1 UNION ALL"
               f" SELECT n + 1 FROM one WHERE n + 1 < {wanted})")
    database.execute("BEGIN")
    database.execute(
        f"INSERT INTO user (id, container, name) {numbers} SELECT ? + n, ?, 'user' || n FROM one",
        (first, container))
    database.execute(
        "INSERT INTO device (container, owner, deviceID, gateway, gatewayEnvironment, token, topic,"
        f" registeredAt, activation) {numbers} SELECT container, ? + n, 'u' || n, gateway,"
        " gatewayEnvironment, token(n), topic, registeredAt, activation FROM one, device"
        " WHERE serial = ?", (first, device))
    database.execute(
        "INSERT INTO subscription (container, owner, database, subscriptionID, contentDigest,"
        f" firesOnce, body, activation) {numbers} SELECT container, ? + n, database,"
        " subscriptionID, contentDigest, firesOnce, body, activation FROM one, subscription"
        " WHERE serial = ?", (first, subscription))
    database.execute("COMMIT")
    database.close()


PUSH = re.compile(r"^push (\d+) on connection \d+, stream \d+: (.*)$")


def pushes(path):
    """Yields the pushes in a gateway's record: offset, accepted, apns-id, token, payload."""
    with open(path, "rb") as file:
        offset, current, payload = 0, None, []
        for raw in file:
            line = raw.decode()
            if match := PUSH.match(line.rstrip("\n")):
                if current:
                    yield finish(current, payload)
                current = {"offset": offset, "accepted": match[2].startswith("200"),
                           "answer": match[2]}
                payload = []
            elif current is not None:
                text = line.strip()
                if text.startswith("apns-id: "):
                    current["id"] = text[9:]
                elif text.startswith(":path: "):
                    current["token"] = text.rsplit("/", 1)[1]
                elif payload or text == "{":
                    if line == "\n" or line.startswith("Received "):
                        yield finish(current, payload)
                        current, payload = None, []
                    else:
                        payload.append(text)
            offset += len(raw)
        if current:
            yield finish(current, payload)


def finish(push, payload):
    body = json.loads("".join(payload)) if payload else {}
    query = body.get("ck", {}).get("qry", {})
    push.update(record=query.get("rid"), subscription=query.get("sid"),
                user=body.get("ck", {}).get("ckuserid"),
                position=body.get("belfry", {}).get("seq"))
    return push
