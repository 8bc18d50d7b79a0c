import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import Live
@testable import RelayServer

/// Frames that are posted to all HTTP streams reach the ones that they concern, in order.
@Suite(.timeLimit(.minutes(15))) struct StreamHubsTests {
    /// The frames that were given back because they were not delivered.
    private final class Untold: Sendable {
        let types = Mutex<[String]>([])
        let lags = Mutex<[LiveLag]>([])
    }

    private let hubs = StreamHubs()

    /// Opens a stream for a client.
    private func stream(
        _ number: UInt64, of user: String = "alice", _ backlog: LiveBacklog = LiveBacklog()
    ) -> StreamHub {
        let identity = LiveIdentity(
            settings: ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
            user: Fixtures.identifier(user), namesUser: true, device: nil, isServer: false,
            keyID: "key", session: nil, endsAt: nil, form: LiveForm(isPlain: true))
        let hub = StreamHub(identity, backlog)
        hubs.add(hub, of: number)
        return hub
    }

    private static func frame(_ name: String) -> LiveFrame {
        LiveFrame(["type": "items", "id": .string(name)])
    }

    private static func told(_ group: UInt32, _ name: String) -> LiveGroupFrame {
        LiveGroupFrame(group, frame(name))
    }

    private static func deliver(_ frames: LiveGroupFrame..., at token: String) -> LiveCommand {
        .deliver(frames, LiveFrame(["type": "at", "at": .string(token)]), LogPosition(1))
    }

    /// Returns all waiting frames, which are taken some at a time.
    private static func all(of hub: StreamHub) throws(APIError) -> [LiveFrame] {
        var frames: [LiveFrame] = []
        while true {
            let some = try hub.takeSome(after: frames.reduce(0) { $0 + $1.count })
            guard !some.isEmpty else { return frames }
            frames += some
        }
    }

    /// Returns the names of the waiting frames, and the tokens that follow them.
    private static func heard(_ hub: StreamHub) -> [String] {
        ((try? all(of: hub)) ?? []).map { frame in
            if let token = frame.token { return token }
            guard case .string(let name)? = try? JSONValue(parsing: frame.bytes).value(at: ["id"])
            else {
                return frame.type
            }
            return name
        }
    }

    @Test(arguments: [false, true])
    func `the request of a stream is kept without its body unless it is signed`(isServer: Bool) {
        let identity = LiveIdentity(
            settings: ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
            user: Fixtures.identifier("alice"), namesUser: true, device: nil, isServer: isServer,
            keyID: "key", session: nil, endsAt: nil, form: LiveForm(isPlain: true))
        let request = RelayRequest(
            method: "POST", target: "/live/1/a/b/stream?ckAPIToken=x", body: Array("{}".utf8),
            uuid: "u", receivedAt: Fixtures.moment)
        let kept = LiveRoutes.kept(request, by: identity)
        // A signature covers the body too.
        #expect(kept.body == (isServer ? request.body : []))
        #expect(kept.query["ckAPIToken"] == "x")
    }

    @Test func `a client whose query has ended gets nothing after that`() {
        let (one, two) = (stream(1), stream(2))
        hubs.post([.join(1, 7), .join(2, 7)])
        var later = Self.told(7, "later")
        later.except = [1]
        hubs.post([Self.deliver(Self.told(7, "a"), later, at: "t1")])
        #expect(Self.heard(one) == ["a", "t1"])
        #expect(Self.heard(two) == ["a", "later", "t1"])
    }

    @Test func `frames of groups only reach their members, followed by one token`() {
        let (one, two, none) = (stream(1), stream(2), stream(3))
        hubs.post([.join(1, 7), .join(1, 8), .join(2, 8)])
        hubs.post([Self.deliver(Self.told(7, "a"), Self.told(8, "b"), Self.told(9, "c"), at: "t1")])
        #expect(Self.heard(one) == ["a", "b", "t1"])
        #expect(Self.heard(two) == ["b", "t1"])
        #expect(Self.heard(none).isEmpty)
        // A stream that left a group gets no more of it, but still gets the other groups' frames.
        hubs.post([.leave(1, 8)])
        hubs.post([
            Self.deliver(Self.told(8, "d"), at: "t2"), Self.deliver(Self.told(7, "e"), at: "t3"),
        ])
        #expect(Self.heard(one) == ["e", "t3"])
        #expect(Self.heard(two) == ["d", "t2"])
    }

    @Test func `commands posted together are executed in order`() {
        let (one, two) = (stream(1), stream(2))
        hubs.post([
            .send(1, [Self.frame("first")]), .send(2, [Self.frame("other")]), .join(1, 7),
            Self.deliver(Self.told(7, "a"), at: "t1"), .send(1, [Self.frame("between")]),
            .leave(1, 7), Self.deliver(Self.told(7, "b"), at: "t2"), .join(2, 7),
            Self.deliver(Self.told(7, "c"), at: "t3"), .send(1, [Self.frame("last")]),
        ])
        #expect(Self.heard(one) == ["first", "a", "t1", "between", "last"])
        #expect(Self.heard(two) == ["other", "c", "t3"])
    }

    @Test func `each stream gets what it may read, and no token without a frame`() {
        let (alice, bob) = (stream(1), stream(2, of: "bob"))
        hubs.post([.join(1, 7), .join(2, 7)])
        var told = Self.told(7, "whole")
        told.readers = ["alice"]
        told.readersBefore = ["alice"]
        hubs.post([Self.deliver(told, at: "t1")])
        #expect(Self.heard(alice) == ["whole", "t1"])
        #expect(Self.heard(bob).isEmpty)
        told.readers = ["bob"]
        (told.entered, told.left) = (Self.frame("entered"), Self.frame("left"))
        hubs.post([Self.deliver(told, at: "t2")])
        #expect(Self.heard(alice) == ["left", "t2"])
        #expect(Self.heard(bob) == ["entered", "t2"])
    }

    @Test func `a lagging stream gets no token`() {
        let hub = stream(1)
        let untold = Untold()
        hub.lag { lag, frames in
            untold.types.withLock { $0 += frames.map(\.type) }
            untold.lags.withLock { $0.append(lag) }
        } until: { _ in
        }
        hubs.post([.join(1, 7), .send(1, [LiveFrame(["type": "fenced"])])])
        #expect(Self.heard(hub) == ["fenced"])
        let long = String(repeating: "a", count: 300_000)
        hubs.post([Self.deliver(Self.told(7, long), at: "t1")])
        hubs.post([.send(1, [LiveFrame(["type": "fenced"]), Self.frame("own")])])
        #expect(Self.heard(hub) == [long, "t1", "own"])
        #expect(untold.types.withLock { $0 } == ["fenced"])
        // Nothing has happened since, and it falls behind again.
        hubs.post([.caughtUp(1)])
        hubs.post([Self.deliver(Self.told(7, long), at: "t1")])
        let first = LiveLag(LogPosition(1))
        #expect(
            untold.lags.withLock { $0 } == [first, first, LiveLag(LogPosition(1), count: 2)])
    }

    /// Returns the error that a poll is refused with.
    private static func refusal(of hub: StreamHub) -> APIError? {
        do throws(APIError) {
            _ = try all(of: hub)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a poll that ends for the sake of others may come again`() {
        // A backlog of four steps.
        let backlog = LiveBacklog(megabytes: 1)
        let (most, less) = (stream(1, of: "alice", backlog), stream(2, of: "bob", backlog))
        hubs.post([.send(1, [Self.frame(String(repeating: "a", count: 900_000))])])
        hubs.post([.send(2, [Self.frame(String(repeating: "b", count: 600_000))])])
        let refusal = Self.refusal(of: most)
        #expect(refusal?.code == .tryAgainLater && refusal?.retryAfter != nil)
        #expect(Self.heard(less).map(\.count) == [600_000])
        // A result that is too large by itself is refused each time.
        let own = stream(3, of: "carol", backlog)
        hubs.post([.send(3, [Self.frame(String(repeating: "c", count: 33 * 1024 * 1024))])])
        #expect(Self.refusal(of: own)?.code == .quotaExceeded)
    }

    @Test func `the frames of an answer are taken some at a time, and too many are refused`() throws
    {
        let hub = stream(1)
        for name in 0..<8 {
            hubs.post([.send(1, [Self.frame("\(name)" + String(repeating: "a", count: 99_000))])])
        }
        #expect(try hub.takeSome(after: 0).count == 3)
        #expect(try hub.takeSome(after: 32 * 1024 * 1024 - 1).count == 1)
        #expect(throws: APIError.self) { try hub.takeSome(after: 32 * 1024 * 1024) }
        #expect(try hub.takeSome(after: 300_000).count == 3)
        #expect(try hub.takeSome(after: 600_000).count == 1)
        #expect(try hub.takeSome(after: 32 * 1024 * 1024).isEmpty)
    }

    @Test func `a long frame of a stream counts as waiting until all of it is taken`() async {
        let backlog = LiveBacklog(megabytes: 1)
        let (hub, other) = (stream(1, of: "alice", backlog), stream(2, of: "bob", backlog))
        let long = Self.frame(String(repeating: "a", count: 1_000_000))
        hubs.post([.send(1, [long])])
        let waiting = backlog.bytes
        #expect(waiting == 3 * LiveBacklog.bytesOfStep)
        var event = await hub.next() ?? []
        #expect(event.count == 256 * 1024 && backlog.bytes == waiting)
        while backlog.bytes > 0, let piece = await hub.next() { event += piece }
        #expect(event == Array("data: ".utf8) + long.bytes + [10, 10])
        // It is discarded in the middle of a frame, if too much waits for all.
        hubs.post([.send(1, [long])])
        #expect(await hub.next()?.count == 256 * 1024)
        hubs.post([.send(2, [Self.frame(String(repeating: "b", count: 600_000))])])
        #expect(await hub.next() == nil)
        #expect(backlog.bytes == 2 * LiveBacklog.bytesOfStep)
        #expect(Self.heard(other).map(\.count) == [600_000])
    }

    @Test func `a removed stream is forgotten, and late commands do not revive it`() {
        let (gone, kept) = (stream(1), stream(2))
        hubs.post([.join(1, 7), .join(2, 7)])
        hubs.remove(1)
        hubs.remove(1)
        hubs.remove(9)
        hubs.post([.join(1, 8), .send(1, [Self.frame("late")]), .leave(1, 7), .join(9, 7)])
        hubs.post([Self.deliver(Self.told(7, "a"), Self.told(8, "b"), at: "t1")])
        #expect(Self.heard(gone).isEmpty)
        #expect(Self.heard(kept) == ["a", "t1"])
    }

    @Test func `an ended stream drops waiting frames and sends the reason`() async {
        let hub = stream(1)
        hubs.post([.join(1, 7), .send(1, [Self.frame("own")])])
        hubs.post([Self.deliver(Self.told(7, "a"), at: "t1")])
        hub.end(telling: LiveFrame(["type": "bye"]))
        hubs.post([Self.deliver(Self.told(7, "late"), at: "t2")])
        let last = await hub.next()
        #expect(last.map { String(decoding: $0, as: UTF8.self) } == "data: {\"type\":\"bye\"}\n\n")
        #expect(await hub.next() == nil)
    }

    @Test func `the reason for a stream's end is known unless a frame has said it`() {
        let backlog = LiveBacklog(megabytes: 1)
        let (left, taken, told) = (stream(1), stream(2), stream(3))
        let (slow, most) = (stream(4), stream(5, of: "bob", backlog))
        left.end()
        let end = LiveEnd(.taken, APIError(.conflict, "taken"))
        taken.end(saying: end)
        told.end(telling: LiveFrame(["type": "bye"]))
        // More than a single stream may leave unread, and more than all together may.
        hubs.post([.send(4, [Self.frame(String(repeating: "c", count: 33 * 1024 * 1024))])])
        hubs.post([.send(5, [Self.frame(String(repeating: "a", count: 2 * 1024 * 1024))])])
        let causes = [left, taken, told, slow, most].map { $0.cause?.code }
        #expect(causes == [nil, .taken, nil, .slow, .notNow])
        // The frame that is sent afterwards is counted by the sender.
        slow.end(telling: LiveFrame(["type": "bye"]))
        #expect(slow.cause == nil)
    }

    @Test func `streams that end together each get the reason, and others continue`() async {
        let ending = (UInt64(1)...5).map { stream($0) }
        let kept = stream(6)
        hubs.post((UInt64(1)...6).map { LiveCommand.join($0, 7) })
        // One of them waits for a frame, and is released.
        async let waited = ending[0].next()
        for (index, hub) in ending.enumerated() {
            hub.post([.send(UInt64(index) + 1, [LiveFrame(["type": "bye"])])])
            hub.end()
        }
        // Frames that were on their way to all streams do not come after the end.
        hubs.post([Self.deliver(Self.told(7, "late"), at: "t1")])
        for number in UInt64(1)...5 { hubs.remove(number) }
        let first = await waited
        #expect(first.map { String(decoding: $0, as: UTF8.self) } == "data: {\"type\":\"bye\"}\n\n")
        #expect(await ending[0].next() == nil)
        for hub in ending.dropFirst() { #expect(Self.heard(hub) == ["bye"]) }
        #expect(Self.heard(kept) == ["late", "t1"])
    }
}
