#!/usr/bin/env python3
"""An innocent container beside attacks by strangers, by users and by another tenant.

Every attack runs for some seconds in processes of its own, alternating with a quiet stretch. Meanwhile one change
of the innocent container is posted after the other. On any machine, nothing innocent may be refused, halted, late
beyond patience or lost. With --ratio 2, the p99 of its pushes during an attack must be at most twice that of the
quiet stretches around it. With --apart there is a third stretch, in which the same attack goes to another relay
with a gateway of its own on the same machine: it shows how much later pushes come only because processors are
busy.

  python3 Tests/Campaigns/hostile.py                      all attacks, shortly
  python3 Tests/Campaigns/hostile.py flood --seconds 10 --rounds 4 --ratio 2
"""
import argparse, http.client, json, multiprocessing, os, random, shutil, socket, sys, tempfile
import threading, time
from rig import ADMIN_TOKEN, CONTAINER, PATIENCE, Gateway, Relay, binary, device_token, user_token
from ranges import Tail, delays

HOSTILE = "iCloud.com.example.Noise"
INVENTED = 150
# The seconds within which a container is served that writes for the first time.
NEWCOMER = 15
LATER = {"408", "429", "503"}
ATTACKS = {}


class Place:
    """What an attacker knows: where the relay is, and the hostile container's own credentials."""

    def __init__(self, port, admin, hostile_token, innocent_token):
        self.port, self.admin = port, admin
        self.tokens = {HOSTILE: hostile_token, CONTAINER: innocent_token}

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def connect_to_operators(self):
        """Connects to the port of administration, from another address than the campaign itself has."""
        return http.client.HTTPConnection(
            "127.0.0.1", self.admin, timeout=30, source_address=("127.0.0.2", 0))

    def path(self, action, user=None, container=HOSTILE, database="public"):
        place = f"/database/1/{container}/development/{database}/{action}"
        return f"{place}?ckAPIToken={self.tokens[container]}" + (
            f"&ckWebAuthToken={user_token(user)}" if user else "")


def attack(workers, *answers):
    """Registers an attack: a function that is called repeatedly until the time is over.

    An answer other than these, or a request to come later, shows that the attack does not do what it says."""
    def register(function):
        ATTACKS[function.__name__] = (function, workers, {str(status) for status in answers})
        return function
    return register


def request(state, place, method, path, body=None, headers=None):
    """Makes one request on a connection that is kept; whatever the answer, the attack continues."""
    connection = state.get("connection")
    try:
        if connection is None:
            connection = state["connection"] = place.connect()
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data,
                           {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        text = response.read()
        state["answers"][response.status] = state["answers"].get(response.status, 0) + 1
        return response.status, text
    except (OSError, http.client.HTTPException):
        state["connection"] = None
        state["answers"]["cut"] = state["answers"].get("cut", 0) + 1
        time.sleep(0.005)
        return 0, b""


def change(name, **fields):
    return {"operation": "create", "recordType": "Noise", "recordName": name, "after": fields}


HOSTILE_CHANGES = f"/changes/1/{HOSTILE}/development/database"


@attack(8, 200)
def flood(state, place):
    """Small changes, one in each request, as fast as they are answered; each is pushed."""
    state["n"] += 1
    request(state, place, "POST", HOSTILE_CHANGES, change(
        f"f{state['id']}-{state['n']}", kind="one", text="-"))


@attack(4, 200)
def batches(state, place):
    """Small changes in batches of hundreds."""
    state["n"] += 1
    request(state, place, "POST", HOSTILE_CHANGES, [
        change(f"b{state['id']}-{state['n']}-{i}", kind="one", text="-") for i in range(100)])


def wides(state, place):
    """Changes that fire hundreds of subscriptions each, as fast as they are answered."""
    state["n"] += 1
    request(state, place, "POST", HOSTILE_CHANGES, change(
        f"v{state['id']}-{state['n']}", kind="wide", text="-"))


@attack(2, 200)
def fanouts(state, place):
    """Changes that fire hundreds of subscriptions each, several times more than can be pushed."""
    state["n"] += 1
    time.sleep(0.01)
    request(state, place, "POST", HOSTILE_CHANGES, change(
        f"w{state['id']}-{state['n']}", kind="wide", text="-"))


@attack(4, 200)
def sets(state, place):
    """Live queries that are as many and as long as one set may have; their results are read each time."""
    user = f"live{state['id']}"
    state["n"] += 1
    queries = [{"id": f"q{number}", "kind": "changes", "recordType": "Noise", "query": {
        "predicate": "text IN {" + ",".join(f"'{state['n']}-{number}-{n}-{'x' * 900}'"
                                            for n in range(10)) + "}"}} for number in range(95)]
    request(state, place, "POST", f"/live/1/{HOSTILE}/development/poll?ckAPIToken="
            f"{place.tokens[HOSTILE]}&ckWebAuthToken={user_token(user)}",
            {"set": {"version": 1, "queries": queries}, "wait": 0})


@attack(2, 200)
def conditions(state, place):
    """Conditions that are as expensive as may be saved, and records that make them so."""
    user = f"dear{state['id']}"
    if state["n"] == 0:
        for number, predicate in enumerate([
                "SUBQUERY(a, $x, SUBQUERY(b, $y, SUBQUERY(a, $z, $z == $y AND $y == $x).@count > 0)"
                ".@count > 0).@count > 3",
                "SUBQUERY(a, $x, SUBQUERY(b, $y, $x == $y).@count > 2).@count > 2",
                "ANY a IN b", "NONE a IN b", "ALL a IN b"]):
            request(state, place, "POST", place.path("subscriptions/modify", user), {"operations": [{
                "operationType": "create", "subscription": {
                    "subscriptionID": f"dear{number}", "subscriptionType": "query",
                    "query": {"recordType": "Noise", "predicate": predicate},
                    "firesOn": ["create"], "notificationInfo": {"alertBody": "x"}}}]})
    state["n"] += 1
    request(state, place, "POST", HOSTILE_CHANGES, change(
        f"d{state['id']}-{state['n']}", a=[f"a{n}" for n in range(20_000)],
        b=[f"b{n}" for n in range(20_000)]))


@attack(1, 200)
def webhooks(state, place):
    """Webhooks of a thousand changes, each of which takes a tenth of a second to match."""
    user = "long"
    if state["n"] == 0:
        for number in range(5):
            request(state, place, "POST", place.path("subscriptions/modify", user), {"operations": [{
                "operationType": "create", "subscription": {
                    "subscriptionID": f"long{number}", "subscriptionType": "query",
                    "query": {"recordType": "Noise", "predicate":
                              "kind == 'long' AND SUBQUERY(l, $x, SUBQUERY(l, $y, SUBQUERY(l, $z, "
                              "$z == $y AND $y == $x).@count > 0).@count > 0).@count > "
                              f"{900 + number}"},
                    "firesOn": ["create"], "notificationInfo": {"alertBody": "x"}}}]})
    state["n"] += 1
    request(state, place, "POST", HOSTILE_CHANGES, [
        change(f"l{state['n']}-{i}", kind="long", l=list(range(120))) for i in range(1000)])


@attack(1, 200)
def cascades(state, place):
    """Deletions of records that take thousands of others along."""
    turn, step = divmod(state["n"], 22)
    state["n"] += 1
    top = f"top{state['id']}-{turn}"
    parent = {"value": {"recordName": top, "action": "DELETE_SELF"}, "type": "REFERENCE"}
    if step == 21:
        operations = [{"operationType": "forceDelete", "record": {"recordName": top}}]
    else:
        operations = [{"operationType": "create", "record": {
            "recordType": "Kept", "recordName": f"{top}-{step}-{number}" if step else top,
            "fields": {"parent": parent} if step else {}}} for number in range(200 if step else 1)]
    _, text = request(state, place, "POST", place.path("records/modify", "one"),
                      {"operations": operations})
    # The answers show whether a deletion took any along.
    if step == 21 and b'"deleted":true' in text.replace(b" ", b""):
        state["answers"]["deleted"] = state["answers"].get("deleted", 0) + 1


@attack(4, 200)
def alterations(state, place):
    """Small changes of records of a megabyte, each of which is written whole, before and after."""
    user = f"alterer{state['id']}"
    state["n"] += 1
    # The first changes make the records, half of each at a time.
    large = {1: "t", 2: "u"}.get(state["n"])
    for names in [[number] for number in range(8)] if large else [range(8)]:
        request(state, place, "POST", place.path("records/modify", user, database="private"), {
            "desiredKeys": ["n"], "operations": [{"operationType": "forceUpdate", "record": {
                "recordType": "Large", "recordName": f"large{number}", "fields": {
                    large or "n": {"value": "x" * 480_000 if large else state["n"]}}}}
                for number in names]})


@attack(2, 200)
def atomics(state, place):
    """Small changes of records of a megabyte, three in one transaction."""
    user, zone = f"atomic{state['id']}", {"zoneName": "large"}
    state["n"] += 1
    if state["n"] == 1:
        request(state, place, "POST", place.path("zones/modify", user, database="private"), {
            "operations": [{"operationType": "create", "zone": {"zoneID": zone}}]})
    large = state["n"] <= 3
    for names in [[state["n"]]] if large else [[1, 2, 3]]:
        request(state, place, "POST", place.path("records/modify", user, database="private"), {
            "zoneID": zone, "atomic": True, "desiredKeys": ["n"], "operations": [{
                "operationType": "forceUpdate", "record": {
                    "recordType": "Large", "recordName": f"large{number}", "fields": {
                        "t" if large else "n": {"value": "x" * 900_000 if large else state["n"]}}}}
                for number in names]})


@attack(1, 200)
def schemas(state, place):
    """A schema of 18,000 fields, all of whose types change each time."""
    path = f"/admin/1/containers/{HOSTILE}/development/schema"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    state["connection"] = state["connection"] or place.connect_to_operators()
    if "schema" not in state:
        _, text = request(state, place, "GET", path, headers=headers)
        # What the other attacks learned stays.
        state["schema"] = [each for each in json.loads(text)["recordTypes"]
                           if not each["name"].startswith("Wide")
                           and not each["name"][1:2].isdigit()]
    state["n"] += 1
    kind = "STRING" if state["n"] % 2 else "INT64"
    request(state, place, "PUT", path, {"recordTypes": state["schema"] + [
        {"name": f"Wide{number}", "fields": [
            {"name": f"f{field}", "type": kind} for field in range(1000)]}
        for number in range(18)]}, headers=headers)


@attack(4, 200)
def feeds(state, place):
    """Pages of changes that are as long as a page may be."""
    request(state, place, "POST", place.path("changes/zone", "one"), {
        "zones": [{"zoneID": {"zoneName": "_defaultZone"}}] * 200})


@attack(1, 200)
def lessons(state, place):
    """Webhooks that teach the schema as many fields as they hold."""
    state["n"] += 1
    request(state, place, "POST", HOSTILE_CHANGES, [{
        "operation": "create", "recordType": f"L{state['n']}x{number}", "recordName": "l",
        "after": {f"f{field}": 1 for field in range(1000)}} for number in range(40)])


@attack(1, 200)
def expressions(state, place):
    """Regular expressions whose automaton is too large, and texts that make it so."""
    user = f"regular{state['id']}"
    if state["n"] == 0:
        for number in range(10):
            request(state, place, "POST", place.path("subscriptions/modify", user), {"operations": [{
                "operationType": "create", "subscription": {
                    "subscriptionID": f"expression{number}", "subscriptionType": "query",
                    "query": {"recordType": "Noise",
                              "predicate": f"t MATCHES '[ab]*a[ab]{{{990 - number}}}c'"},
                    "firesOn": ["create"], "notificationInfo": {"alertBody": "x"}}}]})
    state["n"] += 1
    request(state, place, "POST", HOSTILE_CHANGES, change(
        f"e{state['id']}-{state['n']}", t="".join(random.choices("ab", k=70_000))))


@attack(2, 400)
def marks(state, place):
    """Texts, also in names, whose combining marks take quadratic time to compare."""
    state["n"] += 1
    text = "a" + "\u0323\u0301" * 80_000
    if state["n"] % 2:
        request(state, place, "POST", place.path("records/query"), {
            text: 1, "query": {"recordType": "Kept"}})
    else:
        request(state, place, "POST", HOSTILE_CHANGES, change(f"m{state['n']}", text=text))


@attack(8, 200)
def queries(state, place):
    """Queries of all records without a user."""
    request(state, place, "POST", place.path("records/query"), {"query": {
        "recordType": "Kept", "filterBy": [
            {"comparator": "NOT_EQUALS", "fieldName": "text", "fieldValue": {"value": "none"}}],
        "sortBy": [{"fieldName": "text", "ascending": bool(random.getrandbits(1))}]}})


@attack(2, 200)
def saves(state, place):
    """Subscriptions saved and deleted as fast as they are answered."""
    state["n"] += 1
    kind = "create" if state["n"] % 2 else "delete"
    names = [f"s{state['id']}-{(state['n'] - 1) // 2 % 50}-{i}" for i in range(50)]
    request(state, place, "POST", place.path("subscriptions/modify", f"saver{state['id']}"), {
        "operations": [{"operationType": kind, "subscription": {
            "subscriptionID": name, **({} if kind == "delete" else {
                "subscriptionType": "query",
                "query": {"recordType": "Noise", "predicate": f"kind == '{name}'"},
                "firesOn": ["create"], "notificationInfo": {"alertBody": "x"}})}} for name in names]})


@attack(1, 200)
def tokens(state, place):
    """A user of the innocent container registers invented device tokens, to which pushes are then sent."""
    user = "mallory"
    if state["n"] == 0:
        base = f"/device/1/{CONTAINER}/development/tokens/register"
        query = f"?ckAPIToken={place.tokens[CONTAINER]}&ckWebAuthToken={user_token(user)}"
        for number in range(INVENTED):
            request(state, place, "POST", base + query, {
                "apnsEnvironment": "development", "deviceID": f"invented{number}",
                "apnsToken": device_token(f"inv{number}")})
        request(state, place, "POST", place.path("subscriptions/modify", user, CONTAINER), {
            "operations": [{"operationType": "create", "subscription": {
                "subscriptionID": "mine", "subscriptionType": "query",
                "query": {"recordType": "Artwork"}, "firesOn": ["create"],
                "notificationInfo": {"alertBody": "x"}}}]})
    state["n"] += 1
    time.sleep(0.2)


@attack(2)
def connections(state, place):
    """Connections that are opened and send nothing, or one byte at a time."""
    held = state.setdefault("held", [])
    try:
        one = socket.create_connection(("127.0.0.1", place.port), timeout=2)
        one.setblocking(False)
        held.append(one)
        state["answers"]["opened"] = len(held)
    except OSError:
        state["answers"]["refused"] = state["answers"].get("refused", 0) + 1
        time.sleep(0.01)
    for one in random.sample(held, min(10, len(held))):
        try:
            one.send(b"G")
        except OSError:
            pass
    if len(held) > 900:
        held.pop(0).close()


@attack(16, 200)
def ahead(state, place):
    """Pipelined requests, as many as the relay reads at once."""
    count, answered = 1700, 0
    try:
        with socket.create_connection(("127.0.0.1", place.port), timeout=5) as one:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n" * count)
            while answered < count and (text := one.recv(65536)):
                answered += text.count(b"HTTP/1.1 200")
    except OSError:
        state["answers"]["cut"] = state["answers"].get("cut", 0) + 1
        time.sleep(0.005)
    state["answers"][200] = state["answers"].get(200, 0) + answered


@attack(4, 404)
def bodies(state, place):
    """Large bodies from an unknown caller."""
    request(state, place, "POST", f"/changes/1/{HOSTILE}/development/none", b"[" + b" " * 4_000_000)


@attack(4, 401)
def guesses(state, place):
    """Guesses of the administrative token."""
    state["n"] += 1
    state["connection"] = state["connection"] or place.connect_to_operators()
    request(state, place, "GET", "/admin/1/overview",
            headers={"Authorization": f"Bearer guess{state['id']}-{state['n']}"})


@attack(4, 400)
def noise(state, place):
    """Requests that are hardly valid."""
    request(state, place, "POST", place.path("records/query"), os.urandom(64))


def work(function, number, place, ready, stop, results):
    """Runs one process of an attack.

    Attackers have machines of their own. Here they only take the processor time that the relay and its
    gateway leave."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    state = {"id": number, "n": 0, "answers": {}, "connection": None}
    ready.wait()
    while not stop.is_set():
        function(state, place)
    results.put(state["answers"])


class Innocent(threading.Thread):
    """Posts one change of the innocent container after the other at a steady pace."""

    def __init__(self, relay, pause):
        super().__init__(daemon=True)
        self.relay, self.pause = relay, pause
        self.posted, self.refused, self.number, self.stopping = {}, [], 0, False

    def run(self):
        connection = None
        while not self.stopping:
            name = f"ord-{self.number}"
            self.number += 1
            # A connection that was cut is opened anew, and the change is posted again.
            for attempt in range(100):
                try:
                    connection = connection or http.client.HTTPConnection(
                        "127.0.0.1", self.relay.port, timeout=PATIENCE)
                    self.posted.setdefault(name, time.monotonic())
                    connection.request(
                        "POST", f"/changes/1/{CONTAINER}/development/database", json.dumps({
                            "operation": "create", "recordType": "Artwork", "recordName": name,
                            "after": {"kind": "ordinary"}}),
                        {"Content-Type": "application/json", "webhook-id": name})
                    response = connection.getresponse()
                    answer = response.read()
                    if response.status != 200:
                        self.refused.append((name, response.status, answer.decode()[:200]))
                    break
                except (OSError, http.client.HTTPException) as error:
                    connection = None
                    self.refused.append((name, "cut", repr(error)))
                    time.sleep(0.05)
            time.sleep(self.pause)


def furnish(relay):
    """Creates the innocent container with ann's phone, and the hostile one with what its attacks need."""
    relay.furnish()
    innocent_token = relay.api_token
    relay.register("phone", "ann")
    status, answer = relay.save("all", "ann")
    assert status == 200, answer
    path = f"/admin/1/containers/{HOSTILE}/development"
    innocent = relay.expect(200, "GET", f"/admin/1/containers/{CONTAINER}/development", admin=True)
    key = os.popen(
        "openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt").read()
    relay.expect(201, "PUT", path, {
        "topics": innocent["topics"],
        "apns": {"teamID": "TEAM654321", "keyID": "KEY7654321", "privateKey": key},
        "userTokens": {"sharedSecret": "a shared secret of at least 32 bytes"}}, admin=True)
    token = relay.expect(201, "POST", f"{path}/keys", {"kind": "apiToken"}, admin=True)["secret"]
    relay.expect(201, "PUT", f"{path}/sources/database",
                 {"preset": "belfry", "verification": {"scheme": "none"}}, admin=True)
    place = Place(relay.port, relay.admin, token, innocent_token)
    state = {"answers": {}}
    for user, count, predicate in [("one", 1, "kind == 'one'"), ("wide", 400, "kind == 'wide'")]:
        base = f"/device/1/{HOSTILE}/development/tokens/register"
        request(state, place, "POST", f"{base}?ckAPIToken={token}&ckWebAuthToken={user_token(user)}", {
            "apnsEnvironment": "development", "deviceID": f"{user}-phone",
            "apnsToken": device_token(user)})
        for start in range(0, count, 200):
            status, answer = request(
                state, place, "POST", place.path("subscriptions/modify", user), {"operations": [{
                    "operationType": "create", "subscription": {
                        "subscriptionID": f"{user}{number}", "subscriptionType": "query",
                        "query": {"recordType": "Noise",
                                  "predicate": f"{predicate} AND text != '{number}'"},
                        "firesOn": ["create"], "notificationInfo": {"alertBody": "x"}}}
                    for number in range(start, min(start + 200, count))]})
            assert status == 200 and b"serverErrorCode" not in answer, answer[:1000]
    for start in range(0, 2000, 200):
        status, answer = request(
            state, place, "POST", place.path("records/modify", "one"), {"operations": [{
                "operationType": "create", "record": {
                    "recordType": "Kept", "recordName": f"k{number}", "fields": {
                        "text": {"value": f"{number} " * 100, "type": "STRING"}}}}
                for number in range(start, start + 200)]})
        assert status == 200, answer[:1000]
    return place


def rig(options, folder):
    """Starts a gateway and a relay; returns them and what an attacker knows of the relay."""
    script = {"devices": {device_token(f"inv{n}"): {"standing": "otherEnvironment"}
                          for n in range(INVENTED)}}
    gateway = Gateway(binary(options.binary), folder, script)
    relay = Relay(binary(options.binary), folder, gateway.port, gateway.ca)
    relay.start()
    place = furnish(relay)
    relay.settled(PATIENCE)
    return gateway, relay, place


def run(function, workers, place, seconds, innocent):
    """Runs an attack; returns the innocent changes posted meanwhile, and the answers to the attack.

    The attack's processes are started before and waited for afterwards. For each of them that takes some ten
    milliseconds of this process, which posts the innocent changes and records when they are pushed."""
    ready = multiprocessing.Barrier(workers + 1)
    stop, results = multiprocessing.Event(), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=work, daemon=True, args=(
        function, number, place, ready, stop, results)) for number in range(workers)]
    for process in processes:
        process.start()
    first = innocent.number
    ready.wait(60)
    time.sleep(seconds)
    stop.set()
    span = range(first, innocent.number)
    answers = {}
    for _ in processes:
        try:
            for status, count in results.get(timeout=60).items():
                answers[str(status)] = answers.get(str(status), 0) + count
        except Exception:
            answers["stuck"] = answers.get("stuck", 0) + 1
    for process in processes:
        process.join(5)
        if process.is_alive():
            process.kill()
    return span, answers


def newcomer(relay, place, innocent, tail):
    """Posts the innocent container's first change of all after another one was alone and flooded the log.

    Returns how many seconds its push took, and the answers to the flood."""
    _, answers = run(wides, 4, place, 3, innocent)
    name = f"ord-{10 ** 9}"
    began = time.monotonic()
    relay.expect(200, "POST", f"/changes/1/{CONTAINER}/development/database", {
        "operation": "create", "recordType": "Artwork", "recordName": name,
        "after": {"kind": "ordinary"}})
    while name not in tail.seen and time.monotonic() < began + PATIENCE:
        time.sleep(0.02)
    wait = round(time.monotonic() - began, 1)
    relay.settled(PATIENCE)
    return wait, answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("attacks", nargs="*", help=f"any of newcomer, {', '.join(ATTACKS)}")
    parser.add_argument("--seconds", type=float, default=4, help="of each stretch")
    parser.add_argument("--rounds", type=int, default=1, help="quiet and attacked stretches, by turns")
    parser.add_argument("--ratio", type=float, help="how much slower pushes may be in the p99")
    parser.add_argument("--apart", action="store_true",
                        help="measure the same attack on another relay of this machine too")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between innocent changes")
    parser.add_argument("--binary")
    options = parser.parse_args()
    unknown = set(options.attacks) - set(ATTACKS) - {"newcomer"}
    if unknown:
        raise SystemExit(f"there is no attack {', '.join(unknown)}")
    folder = tempfile.mkdtemp(prefix="belfry-hostile-")
    gateway, relay, place = rig(options, folder)
    apart = None
    if options.apart:
        os.mkdir(os.path.join(folder, "apart"))
        apart = rig(options, os.path.join(folder, "apart"))
    tail, innocent = Tail(gateway.record), Innocent(relay, options.pause)
    tail.start()
    report, bad = {}, []
    if "newcomer" in (options.attacks or ["newcomer"]):
        wait, answers = newcomer(relay, place, innocent, tail)
        print(json.dumps({"newcomer": {"answers": answers, "seconds": wait}}), flush=True)
        if wait > NEWCOMER:
            bad.append(f"newcomer: the first push came after {wait} s")
    innocent.start()
    for name in [name for name in options.attacks or ATTACKS if name != "newcomer"]:
        function, workers, expected = ATTACKS[name]
        kinds = ["quiet"] + ["apart"] * bool(apart) + ["attacked"]
        spans, answers, refusals = {kind: [] for kind in kinds}, {}, len(innocent.refused)
        for _ in range(options.rounds):
            first = innocent.number
            time.sleep(options.seconds)
            spans["quiet"] += range(first, innocent.number)
            if apart:
                span, _ = run(function, workers, apart[2], options.seconds, innocent)
                spans["apart"] += span
                apart[1].settled(PATIENCE)
                time.sleep(1)
            span, found = run(function, workers, place, options.seconds, innocent)
            spans["attacked"] += span
            for status, count in found.items():
                answers[status] = answers.get(status, 0) + count
            halts = [halt for halt in relay.overview()["halts"]
                     if halt["container"] == CONTAINER]
            if halts:
                bad.append(f"{name}: halted {halts}")
            if relay.process.poll() is not None:
                raise SystemExit(f"{name}: the relay has ended; see {folder}/relay.log")
            # The effects of the attack end first, so that the next stretch is quiet.
            relay.settled(PATIENCE)
        names = {kind: [f"ord-{n}" for n in span] for kind, span in spans.items()}
        end = time.monotonic() + PATIENCE
        wanted = {name for span in names.values() for name in span}
        while not wanted <= set(tail.seen) and time.monotonic() < end:
            time.sleep(0.05)
        late = {kind: delays(span, innocent.posted, tail.seen) for kind, span in names.items()}
        odd = {status for status in answers if status.isdigit()} - expected - LATER
        if odd:
            bad.append(f"{name}: answered {', '.join(sorted(odd))}, so that it attacks something else")
        refused = innocent.refused[refusals:]
        if refused:
            bad.append(f"{name}: refused {refused[:3]} and {max(0, len(refused) - 3)} more")
        missing = wanted - set(tail.seen)
        if missing:
            bad.append(f"{name}: {len(missing)} changes were not pushed")
        ratio = round(late["attacked"].get("p99", 0) / max(0.1, late["quiet"].get("p99", 0.1)), 2)
        if options.ratio and ratio > options.ratio:
            bad.append(f"{name}: p99 {ratio} times as long")
        report[name] = {"answers": answers, "milliseconds": late, "ratio": ratio}
        print(json.dumps({name: report[name]}), flush=True)
    innocent.stopping = True
    innocent.join(10)
    code = relay.stop()
    gateway.stop()
    if apart:
        apart[1].stop()
        apart[0].stop()
    tail.stopping = True
    if code != 0:
        bad.append(f"the relay ended with {code}")
    shutil.rmtree(folder)
    sys.exit("NOT AS PROMISED: " + "; ".join(bad) if bad else print("as promised"))


if __name__ == "__main__":
    main()
