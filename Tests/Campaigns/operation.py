#!/usr/bin/env python3
"""What deploy/ gives an operator, run for real: rules and dashboard in Prometheus, and two proxies.

Prometheus reads a relay under load. nginx and Caddy stand in front of the relay as the examples configure them.

  python3 Tests/Campaigns/operation.py                     all of it
  python3 Tests/Campaigns/operation.py prometheus nginx    some

Everything listens on loopback. Programs that Debian's packages do not bring must be installed by the caller.
"""
import argparse, http.client, json, os, re, shutil, socket, ssl, subprocess, sys, tempfile, time
import urllib.error, urllib.parse, urllib.request
from rig import (CONTAINER, PATIENCE, ROOT, STARTED, Rig, binary, exchange, free_port, user_token)

DEPLOY = os.path.join(ROOT, "deploy")
CHANGES = f"/changes/1/{CONTAINER}/development/database"
LIVE = f"/live/1/{CONTAINER}/development"
# The client's address differs from the proxy's, so that the log shows which one the relay used.
CLIENT = "127.0.0.5"
SCENES = {}


def scene(function):
    SCENES[function.__name__] = function
    return function


def spawn(*command, log):
    process = subprocess.Popen(command, stdout=log, stderr=log)
    STARTED.append(process)
    return process


def until(fits, what, bound=60):
    end = time.monotonic() + bound
    while time.monotonic() < end:
        found = fits()
        if found:
            return found
        time.sleep(0.2)
    raise SystemExit(f"not within {bound} s: {what}")


def end(process):
    process.terminate()
    process.wait(PATIENCE)


# Prometheus

# Series that only exist with a fault that is not made here; each is in the table of docs/operations.md.
RARE = {"belfry_gateway_alarms_total", "belfry_conservation_difference", "belfry_backup_age_seconds",
        "belfry_backup_interval_seconds", "belfry_backup_failures_total", "belfry_follow_state", "belfry_unreadable_rows_total"}
SELECTOR = re.compile(r"(?:belfry[a-z0-9_:]*|up)(?:\{[^}]*\})?")


class Prometheus:
    """Debian's Prometheus, which reads a relay's metrics every second."""

    def __init__(self, folder, admin):
        self.port = free_port()
        rules = open(os.path.join(DEPLOY, "prometheus", "belfry.rules.yaml")).read()
        # The same rules, without their waiting times.
        with open(os.path.join(folder, "rules.yaml"), "w") as file:
            file.write(re.sub(r"for: \d+m", "for: 0s", rules))
        with open(os.path.join(folder, "prometheus.yaml"), "w") as file:
            json.dump({
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": ["rules.yaml"],
                "scrape_configs": [{"job_name": "belfry", "static_configs": [
                    {"targets": [f"127.0.0.1:{admin}"]}]}]}, file)
        self.process = spawn(
            "prometheus", f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/series", f"--web.listen-address=127.0.0.1:{self.port}",
            log=open(os.path.join(folder, "prometheus.log"), "wb"))
        until(self.ready, "Prometheus")

    def ready(self):
        try:
            return self.ask("/-/ready") is not None
        except OSError:
            return False

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read()

    def query(self, text):
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": text})
        try:
            answer = json.loads(self.ask(path))
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{text}: {error.read().decode()}")
        return answer["data"]["result"]

    def firing(self):
        alerts = json.loads(self.ask("/api/v1/alerts"))["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def rule_queries():
    text = open(os.path.join(DEPLOY, "prometheus", "belfry.rules.yaml")).read()
    queries = []
    for match in re.finditer(r"^ +expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)", text, re.M):
        queries.append(" ".join((match[1] or match[2]).split()))
    return queries


def panel_queries():
    board = json.load(open(os.path.join(DEPLOY, "grafana", "belfry.json")))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*")
            yield panel["title"], text


@scene
def prometheus(belfry):
    """Every query of rules and dashboard finds the relay's own series, and a fault fires its alert."""
    for words in (["check", "rules", "belfry.rules.yaml"], ["test", "rules", "belfry.rules.test.yaml"]):
        subprocess.run(["promtool", *words], cwd=os.path.join(DEPLOY, "prometheus"), check=True,
                       stdout=subprocess.DEVNULL)
    rig = Rig(belfry, "operation")
    folder = tempfile.mkdtemp(prefix="belfry-prometheus-")
    watch = Prometheus(folder, rig.relay.admin)
    documented = open(os.path.join(ROOT, "docs", "operations.md")).read()
    missing = []

    def load():
        rig.post(20)
        rig.relay.call("POST", CHANGES, {"operation": "nonsense"})
        rig.relay.call("GET", "/nothing")
        return True

    for _ in range(12):
        load()
        time.sleep(0.5)

    def lacking():
        load()
        del missing[:]
        for text in rule_queries():
            for selector in SELECTOR.findall(text):
                name = selector.split("{")[0]
                known = watch.query(selector)
                if name in RARE and not known:
                    assert name in documented, f"{name} is not documented"
                elif not known:
                    # If a selector has labels that only a fault has, the series itself must exist.
                    if "{" not in selector or not watch.query(name):
                        missing.append(selector)
        for title, text in panel_queries():
            if not watch.query(text):
                missing.append(f"{title}: {text}")
        return not missing

    try:
        until(lacking, "series for every query", 40)
    except SystemExit:
        raise SystemExit("no series for:\n  " + "\n  ".join(missing))
    calm = watch.firing()
    assert not calm & {"BelfryDown", "BelfryHalted", "BelfryAccountsDiffer"}, calm
    print(f"{len(rule_queries())} queries of rules and {len(list(panel_queries()))} of the dashboard "
          f"find series; firing while refused webhooks come: {sorted(calm) or 'none'}")
    rig.gateway.process.kill()
    rig.gateway.process.wait()
    rig.post(1)
    until(lambda: "BelfryHalted" in watch.firing(), "the alert of a gateway that is away")
    rig.relay.kill()
    until(lambda: "BelfryDown" in watch.firing(), "the alert of a relay that is away")
    print("a gateway that is away fires BelfryHalted, a relay that is away BelfryDown")
    end(watch.process)
    for place in (folder, rig.folder):
        shutil.rmtree(place, ignore_errors=True)


# Proxies

class Proxied:
    """A relay behind a proxy, and a client that reaches it over TLS from an address of its own."""

    def __init__(self, belfry, name):
        self.folder = tempfile.mkdtemp(prefix=f"belfry-{name}-")
        self.port, self.plain = free_port(), free_port()
        self.rig = Rig(belfry, name)
        # Restarts the relay with the settings that the examples require.
        self.rig.relay.stop()
        self.rig.relay.start(settings={
            "http-trusted-proxies": "127.0.0.1", "http-public-url": f"https://localhost:{self.port}",
            "http-metrics": "on", "log-level": "info", "log-format": "json", "log-access": "all"})
        self.certificate = os.path.join(self.folder, "fullchain.pem")
        self.key = os.path.join(self.folder, "key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", self.key, "-out", self.certificate],
            check=True, stderr=subprocess.DEVNULL)
        self.context = ssl.create_default_context(cafile=self.certificate)
        self.process = None

    def connect(self):
        raw = socket.create_connection(("127.0.0.1", self.port), 30, (CLIENT, 0))
        return self.context.wrap_socket(raw, server_hostname="localhost")

    def call(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("localhost", self.port)
        connection.sock = self.connect()
        try:
            return exchange(connection, method, path, body, headers)
        finally:
            connection.close()

    def ready(self):
        try:
            return self.call("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def lines(self):
        with open(os.path.join(self.rig.relay.folder, "relay.log")) as file:
            return [json.loads(line) for line in file if line.startswith("{")]

    def hello(self, **more):
        return dict({
            "type": "hello", "ckAPIToken": self.rig.relay.api_token, "format": "plain",
            "ckWebAuthToken": user_token("ann"), "set": {"version": 1, "queries": [
                {"id": "q", "kind": "changes", "recordType": "Artwork"}]}}, **more)

    def check(self, name):
        until(self.ready, name)
        # Posts a change with a forged address.
        status, answer = self.call("POST", CHANGES, {
            "operation": "create", "recordType": "Artwork", "recordName": "by-proxy", "after": {}},
            {"X-Forwarded-For": "9.9.9.9"})
        assert status == 200, (status, answer)
        posted = until(lambda: [line for line in self.lines() if line["message"] == "request"
                                and line["path"] == CHANGES], "the line of the request")
        assert posted[-1]["address"] == CLIENT, posted[-1]
        assert posted[-1]["who"] == "source", posted[-1]
        # The administrative surface and the metrics are not reachable, in whatever way they are asked for.
        for path in ("/admin/1/overview", "/metrics", "/metrics/", "//metrics", "//metrics//"):
            status, _ = self.call("GET", path)
            assert status == 404, (path, status)
        self.refused_when_large()
        self.socket()
        self.stream()
        self.poll()
        end(self.process)
        assert self.rig.leave() == 0
        shutil.rmtree(self.folder)
        print(f"{name}: changes, WebSockets, streams and polls pass; the client's address is known; "
              "nothing of the operator's shows")

    def refused_when_large(self):
        """A body larger than any webhook is refused by the proxy or the relay, and never stored."""
        try:
            status, _ = self.call("POST", CHANGES, "x" * 5_000_000)
            assert status in (413, 502), status
        except OSError:
            # A refusal that comes before the whole body may end the connection while the rest is on its way.
            # A client that sends everything before it reads then never sees the answer.
            pass
        taken = [line for line in self.lines()
                 if line.get("path") == CHANGES and line.get("status") == 200]
        assert len(taken) == 1, taken

    def socket(self):
        with self.connect() as connection:
            connection.sendall((
                f"GET {LIVE} HTTP/1.1\r\nHost: localhost:{self.port}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: belfry.live.v1\r\n\r\n"
            ).encode())
            head = connection.recv(4096)
            assert head.startswith(b"HTTP/1.1 101"), head

    def stream(self):
        """An event must come while the stream is open, and the next one when something happens."""
        text = json.dumps(self.hello()).encode()
        with self.connect() as connection:
            connection.settimeout(20)
            connection.sendall(
                (f"POST {LIVE}/stream HTTP/1.1\r\nHost: localhost:{self.port}\r\n"
                 f"Content-Length: {len(text)}\r\n\r\n").encode() + text)
            seen = b""
            while b'"complete"' not in seen:
                part = connection.recv(65536)
                assert part, seen
                seen += part
            self.rig.post(1)
            name = self.rig.posted[-1].encode()
            while name not in seen:
                part = connection.recv(65536)
                assert part, seen
                seen += part

    def poll(self):
        began = time.monotonic()
        status, answer = self.call("POST", f"{LIVE}/poll", self.hello(wait=0))
        assert status == 200, answer
        query = dict(self.hello()["set"]["queries"][0], since=answer["at"], fingerprint=next(
            query["fingerprint"] for frame in answer["frames"] for query in frame.get("queries", [])))
        body = self.hello(wait=2)
        body["set"]["queries"] = [query]
        status, answer = self.call("POST", f"{LIVE}/poll", body)
        assert status == 200, answer
        assert time.monotonic() - began < 30


@scene
def nginx(belfry):
    """nginx as configured in deploy/nginx/belfry.conf, with ports and files of this machine."""
    place = Proxied(belfry, "nginx")
    text = open(os.path.join(DEPLOY, "nginx", "belfry.conf")).read()
    for old, new in (
            ("server 127.0.0.1:8080;", f"server 127.0.0.1:{place.rig.relay.port};"),
            ("listen 443 ssl http2;", f"listen 127.0.0.1:{place.port} ssl http2;"),
            ("listen 80;", f"listen 127.0.0.1:{place.plain};"),
            ("/etc/ssl/relay.example.com/fullchain.pem", place.certificate),
            ("/etc/ssl/relay.example.com/key.pem", place.key),
            ("relay.example.com", "localhost")):
        assert old in text, old
        text = text.replace(old, new)
    configuration = os.path.join(place.folder, "nginx.conf")
    with open(configuration, "w") as file:
        file.write(
            f"daemon off; pid {place.folder}/pid; error_log {place.folder}/error.log;\n"
            "events {}\nhttp { access_log off;\n" + "".join(
                f"{kind}_temp_path {place.folder}/{kind};\n"
                for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")) + text + "}\n")
    place.process = spawn("nginx", "-p", place.folder, "-c", configuration,
                          log=open(os.path.join(place.folder, "nginx.log"), "wb"))
    place.check("nginx")


@scene
def caddy(belfry):
    """Caddy as configured in deploy/caddy/Caddyfile, with a certificate of this machine."""
    place = Proxied(belfry, "caddy")
    text = open(os.path.join(DEPLOY, "caddy", "Caddyfile")).read()
    for old, new in (
            ("relay.example.com {", f"https://localhost:{place.port} {{\n\tbind 127.0.0.1\n"
             f"\ttls {place.certificate} {place.key}"),
            ("reverse_proxy 127.0.0.1:8080", f"reverse_proxy 127.0.0.1:{place.rig.relay.port}")):
        assert old in text, old
        text = text.replace(old, new)
    configuration = os.path.join(place.folder, "Caddyfile")
    with open(configuration, "w") as file:
        # Otherwise Caddy's end waits for a stream whose client is gone.
        file.write("{\n\tadmin off\n\tauto_https off\n\tgrace_period 1s\n}\n" + text)
    os.environ.setdefault("HOME", place.folder)
    place.process = spawn("caddy", "run", "--config", configuration, "--adapter", "caddyfile",
                          log=open(os.path.join(place.folder, "caddy.log"), "wb"))
    place.check("caddy")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scenes", nargs="*")
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    for name in arguments.scenes:
        if name not in SCENES:
            parser.error(f"{name} is none of {', '.join(SCENES)}")
    belfry = binary(arguments.binary)
    for name in arguments.scenes or SCENES:
        began = time.monotonic()
        SCENES[name](belfry)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
