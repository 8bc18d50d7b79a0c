import HTTPTypes
import RelayModel
import RelayTestKit
import StoragePostgreSQL
import Testing

@testable import RelayServer

/// Which shard a call belongs to, and where that shard is, decided by the head of the request.
@Suite struct ShardRoutingTests {
    private static let key = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Art"), environment: .development)

    private static func subject(
        _ path: String, _ method: HTTPRequest.Method = .get, isOperators: Bool = true,
        isSignedIn: Bool = false, cookie: String? = nil
    ) -> CallSubject {
        var head = HTTPRequest(method: method, scheme: nil, authority: "h", path: path)
        if !isSignedIn { head.headerFields[.authorization] = "Bearer x" }
        head.headerFields[.cookie] = cookie
        return CallSubject(of: head, isOperators: isOperators)
    }

    @Test(arguments: [
        "/database/1/iCloud.com.example.Art/development/public/subscriptions/list",
        "/database/1/iCloud.com.example.Art/DEVELOPMENT/public/records/query?shard=b",
        "/database/1/iCloud.com.example.Art/development/tokens/create",
        "/database//1///iCloud.com.example.Art/development/",
        "/database/1/iCloud%2Ecom.example.%41rt/%64evelopment/x",
        "http://other.example/database/1/iCloud.com.example.Art/development/x?a=/changes/1/b/c",
        "/device/1/iCloud.com.example.Art/development/notifications",
        "/changes/1/iCloud.com.example.Art/development/database",
        "/live/1/iCloud.com.example.Art/development",
        "/live/1/iCloud.com.example.Art/development/sessions/secret/stream",
        "/sign-in/1/iCloud.com.example.Art/development?origin=https%3A%2F%2Fart.example",
        "/admin/1/containers/iCloud.com.example.Art/development",
        "/admin/1/containers/iCloud.com.example.Art/development/keys",
        "/admin/1/deliveries?container=iCloud.com.example.Art&user=mona",
        "/admin/1/receipts?container=iCloud.com.example.Art&environment=development",
    ])
    func `a container is found in every kind of path`(path: String) {
        #expect(Self.subject(path) == .container(Self.key))
    }

    @Test func `every route with a container goes to its shard`() async throws {
        try await TestRelay.with { relay in
            let routes = RelayRouter.routes(relay.dependencies).filter {
                $0.path.contains("{container}")
            }
            #expect(!routes.isEmpty)
            for route in routes {
                let path = route.path.replacing("{container}", with: "iCloud.com.example.Art")
                    .replacing("{environment}", with: "development")
                    .replacing("{", with: "").replacing("}", with: "")
                let method = try #require(HTTPRequest.Method(route.method))
                let isFound = [CallSubject.container(Self.key), .creation(Self.key, shard: nil)]
                    .contains(Self.subject(path, method))
                #expect(isFound, "\(route.method) \(path)")
            }
        }
    }

    @Test(arguments: [
        "/", "", "/healthz", "/metrics", "/openapi.json", "/database/1/iCloud.com.example.Art",
        "/database/2/iCloud.com.example.Art/development/x", "/Database/1/a/development/x",
        "/%64atabase/1/a/development/x", "/database/1/a%2Fb/development/x",
        "/database/1/.a/development/x", "/database/1/a/staging/x", "/database/1/a%00/development/x",
        "/admin/1/overview", "/admin/1/session?shard=b", "/console/1/a/development",
        "/courier/1/secret", "/admin/1/containers", "/admin/1/deliveries?container=.a",
        "/admin/1/containers/.a/development?shard=b",
        "/x/database/1/iCloud.com.example.Art/development/x",
        "?/database/1/iCloud.com.example.Art/development/x",
    ])
    func `a call without a container is for the relay that is asked`(path: String) {
        #expect(Self.subject(path) == .relay)
    }

    @Test func `a shard can be named if nothing else says where something is`() {
        #expect(Self.subject("/admin/1/overview?shard=b") == .shard("b"))
        #expect(Self.subject("/admin/1/audit?limit=1&shard=b%31") == .shard("b1"))
        #expect(
            Self.subject("/courier/1/secret?shard=b", isOperators: false) == .courier(shard: "b"))
        let path = "/admin/1/containers/iCloud.com.example.Art/development"
        #expect(Self.subject(path, .put) == .creation(Self.key, shard: nil))
        #expect(Self.subject(path + "?shard=b", .put) == .creation(Self.key, shard: "b"))
        #expect(Self.subject(path + "?shard=b", .patch) == .container(Self.key))
        #expect(Self.subject(path + "/schema", .put) == .container(Self.key))
    }

    @Test func `a console session stays at its shard`() {
        let path = "/admin/1/containers/iCloud.com.example.Art/development"
        #expect(Self.subject(path, isSignedIn: true) == .relay)
        #expect(Self.subject("/admin/1/overview?shard=b", isSignedIn: true) == .relay)
        // Behind a load balancer any relay may be asked: the cookie names the shard.
        let cookie = "other=b.c; belfry-console=belfry_b.0123; belfry-console-8082=belfry_c.45"
        for path in [path, "/admin/1/overview", "/admin/1/session"] {
            let subject = Self.subject(path, isSignedIn: true, cookie: cookie)
            #expect(subject == .session(shard: "belfry_b"))
        }
        // A new sign-in stays at the relay that is asked: the former shard may have no owner.
        let signIn = "/admin/1/session"
        #expect(Self.subject(signIn, .post, isSignedIn: true, cookie: cookie) == .relay)
        #expect(
            Self.subject("\(signIn)/codes", .post, isSignedIn: true, cookie: cookie)
                == .session(shard: "belfry_b"))
        #expect(Self.subject(path, isSignedIn: true, cookie: "belfry-console=0123") == .relay)
        #expect(Self.subject(path, cookie: cookie) == .container(Self.key))
        // Clients have no such sessions.
        let call = "/changes/1/iCloud.com.example.Art/development/database"
        #expect(Self.subject(call, .post, isSignedIn: true) == .container(Self.key))
        // At a listener that serves only clients, nothing is a call of the operator's.
        #expect(Self.subject(path, isOperators: false) == .relay)
        #expect(Self.subject("/admin/1/overview?shard=b", isOperators: false) == .relay)
    }

    // MARK: Where it lies

    private static func sight(
        _ schema: String, _ names: [String], revision: Int = 1,
        _ state: ShardSight.State = .unowned
    ) -> ShardSight {
        ShardSight(
            schema: schema, state: state,
            containers: names.map {
                ContainerKey(container: Fixtures.identifier($0), environment: .development)
            }, revision: revision)
    }

    private static func container(_ name: String) -> ContainerKey {
        ContainerKey(container: Fixtures.identifier(name), environment: .development)
    }

    @Test func `a call goes to its container's shard, and otherwise stays`() {
        var map = ShardMap(own: "a", schemas: ["c", "a", "b"])
        #expect(map.other(for: .container(Self.container("x"))) == nil)
        map = map.taking([
            Self.sight("a", ["x"]), Self.sight("b", ["y", "z"]), Self.sight("c", [], .absent),
        ])
        #expect(map.other(for: .container(Self.container("x"))) == nil)
        #expect(map.other(for: .container(Self.container("y"))) == "b")
        #expect(map.other(for: .container(Self.container("unknown"))) == nil)
        #expect(map.other(for: .shard("c")) == "c")
        #expect(map.other(for: .shard("a")) == nil && map.other(for: .shard("none")) == nil)
        #expect(map.other(for: .relay) == nil)
        // Shards that were not seen keep their state, and seen shards have what was seen.
        map = map.taking([Self.sight("c", ["new"], revision: 2)])
        #expect(map.other(for: .container(Self.container("new"))) == "c")
        #expect(map.other(for: .container(Self.container("y"))) == "b")
        map = map.taking([Self.sight("b", [], revision: 2)])
        #expect(map.other(for: .container(Self.container("y"))) == nil)
    }

    @Test func `a console session has ended if its shard has no owner`() {
        let owner = StoreOwner(name: "node-2", epoch: 1, endpoint: nil)
        let map = ShardMap(own: "a", schemas: ["a", "b", "c"]).taking([
            Self.sight("b", [], .owned(owner)), Self.sight("c", []),
        ])
        #expect(map.other(for: .session(shard: "b")) == "b")
        #expect(map.other(for: .session(shard: "c")) == nil)
        #expect(map.other(for: .session(shard: "a")) == nil)
        #expect(map.other(for: .session(shard: "none")) == nil)
        let moved = map.taking([
            ShardSight(
                schema: "b", state: .owned(owner), containers: [], isMovedAway: true, revision: 2)
        ])
        #expect(moved.other(for: .session(shard: "b")) == nil)
        // Before anything is known of the shard, the session may be there.
        let unseen = ShardMap(own: "a", schemas: ["a", "b"])
        #expect(unseen.other(for: .session(shard: "b")) == "b")
    }

    @Test func `a container is created where it exists, is named, or all relays choose`() {
        var map = ShardMap(own: "a", schemas: ["a", "b"]).taking([Self.sight("b", ["there"])])
        func place(_ name: String, _ shard: String?) -> String {
            map.other(for: .creation(Self.container(name), shard: shard)) ?? "own"
        }
        #expect(place("there", nil) == "b" && place("there", "a") == "b")
        #expect(place("new", "b") == "b" && place("new", "a") == "own")
        // The routes of the own store answer that there is no such shard.
        #expect(place("new", "none") == "own")
        let other = ShardMap(own: "b", schemas: ["b", "a"])
        for number in 0..<100 {
            let key = Self.container("x\(number)")
            #expect(map.choice(for: key) == other.choice(for: key))
        }
        map = map.taking([Self.sight("a", ["there"])])
        #expect(map.conflicts.count == 1)
        // All relays choose the same one.
        let there = CallSubject.container(Self.container("there"))
        #expect(map.other(for: there) == nil)
        #expect(
            other.taking([Self.sight("b", ["there"]), Self.sight("a", ["there"])]).other(for: there)
                == "a")
    }

    @Test func `a container is where its store was moved to`() {
        let map = ShardMap(own: "c", schemas: ["a", "b", "c"])
        let key = Self.container("x")
        func sight(_ schema: String, isMovedAway: Bool, revision: Int) -> ShardSight {
            ShardSight(
                schema: schema, state: .unowned, containers: [key], isMovedAway: isMovedAway,
                revision: revision)
        }
        // The store is somewhere else, or being moved.
        let away = map.taking([sight("a", isMovedAway: true, revision: 1)])
        #expect(away.other(for: .container(key)) == "a" && away.conflicts.isEmpty)
        let moved = away.taking([sight("b", isMovedAway: false, revision: 1)])
        #expect(moved.other(for: .container(key)) == "b" && moved.conflicts.isEmpty)
        #expect(moved.elsewhere.flatMap { place in place.keys.map { _ in place.schema } } == ["b"])
        // URLs of couriers name the shard in which they were created.
        #expect(away.other(for: .courier(shard: "a")) == "a")
        #expect(moved.other(for: .courier(shard: "a")) == "b")
        #expect(moved.other(for: .courier(shard: "b")) == "b")
        #expect(moved.other(for: .shard("a")) == "a")
        // No container is created in a shard that no relay would own.
        let new = (0..<100).map { moved.choice(for: Self.container("new\($0)")) }
        #expect(Set(new) == ["b", "c"])
        // The move was cancelled.
        let both = moved.taking([sight("a", isMovedAway: false, revision: 2)])
        #expect(both.other(for: .container(key)) == "a" && both.conflicts.count == 1)
        #expect(both.other(for: .courier(shard: "a")) == "a")
    }

    @Test func `a container may be in a shard that could not be read`() {
        let unknown = CallSubject.container(Self.container("x"))
        var map = ShardMap(own: "a", schemas: ["a", "b", "c"])
        #expect(map.isDoubtful(unknown))
        map = map.taking([Self.sight("b", ["y"]), Self.sight("c", [], .absent)])
        #expect(!map.isDoubtful(unknown))
        let unread = ShardSight(
            schema: "c", state: .unreadable("why"), containers: [], isRead: false, revision: 2)
        map = map.taking([unread])
        #expect(map.isDoubtful(unknown))
        #expect(map.doubt == "it may be c: it cannot be read: why")
        #expect(!map.isDoubtful(.container(Self.container("y"))))
        for other in [CallSubject.relay, .shard("c"), .creation(Self.container("x"), shard: nil)] {
            #expect(!map.isDoubtful(other))
        }
        // What was read once stays known.
        map = map.taking([Self.sight("c", [], revision: 3, .unreadable("why"))])
        #expect(!map.isDoubtful(unknown))
    }

    @Test func `shards get about equal numbers, and a new one only takes its share`() {
        let names = ["a", "b", "c", "d"]
        let keys = (0..<2000).map { Self.container("iCloud.com.example.\($0)") }
        func choices(_ schemas: [String]) -> [String] {
            let map = ShardMap(own: "a", schemas: schemas)
            return keys.map { map.choice(for: $0) }
        }
        let four = choices(names)
        for name in names { #expect((400...600).contains(four.count(where: { $0 == name }))) }
        let five = choices(names + ["e"])
        let moved = zip(four, five).filter { $0 != $1 }
        #expect(moved.allSatisfy { $0.1 == "e" })
        #expect((300...500).contains(moved.count))
    }

    @Test func `one store's waiting calls leave room for the others'`() {
        let places = CallPlaces(CallPlaces.Bounds(connections: 64))
        var calls = (0..<33).map { _ in CallPlace(places) }
        var taken = calls.indices.map { calls[$0].take() }
        #expect(taken.count(where: { $0 }) == 32 && !taken[32])
        let waiting = calls.indices.prefix(32).map { calls[$0].wait() }
        #expect(waiting.count(where: { $0 }) == 16)
        // Calls that wait already know that they do.
        #expect(calls[0].wait() && calls[0].take())
        calls[0].goOn()
        #expect(calls[20].wait() && !calls[21].wait())
        for index in calls.indices { calls[index].giveBack() }
        taken = calls.indices.map { calls[$0].take() }
        #expect(taken.count(where: { $0 }) == 32)
        var free = CallPlace(nil)
        #expect(free.take() && free.wait())
    }
}
