import NIOCore
import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import Live
@testable import RelayServer

/// All streams together have one bound for the frames that wait for them.
@Suite struct LiveBacklogTests {
    private final class Stream: Sendable {}

    /// The streams that were ended.
    private final class Ended: Sendable {
        private let numbers = Mutex<[Int]>([])
        var last: Int? { numbers.withLock { $0.last } }
        var all: [Int] { numbers.withLock { $0 } }
        func add(_ number: Int) { numbers.withLock { $0.append(number) } }
    }

    private let streams = (0..<5).map { _ in Stream() }
    private let ended = Ended()
    /// A backlog with room for 16 steps.
    private let backlog = LiveBacklog(megabytes: 4)

    /// Notes that `steps` wait for a stream; returns the number of the stream that ends for it.
    private func note(_ stream: Int, of user: String, in name: String, _ steps: Int) -> Int? {
        let party = LiveBacklog.Party(
            container: ContainerKey(
                container: Fixtures.identifier(name), environment: .development),
            user: Fixtures.identifier(user))
        let id = ObjectIdentifier(streams[stream])
        let end = backlog.note(id, of: party, steps) { [ended] in ended.add(stream) }
        guard let end else { return nil }
        end()
        return ended.last
    }

    @Test func `beyond the bound the longest stream of the user with most waiting ends`() {
        #expect(note(0, of: "mallory", in: "one", 4) == nil)
        #expect(note(1, of: "mallory", in: "one", 5) == nil)
        #expect(note(2, of: "bob", in: "one", 6) == nil)
        #expect(note(3, of: "carol", in: "two", 1) == nil)
        #expect(backlog.bytes == 4 * 1024 * 1024)
        // Bob has the longest stream, but more waits for Mallory altogether.
        #expect(note(4, of: "dave", in: "two", 1) == 1)
        #expect(note(1, of: "mallory", in: "one", 0) == nil)
        #expect(backlog.bytes == 3 * 1024 * 1024)
    }

    @Test func `streams that have not ended yet are not ended again instead of others`() {
        let party = LiveBacklog.Party(
            container: Fixtures.container, user: Fixtures.identifier("mallory"))
        var ends: [LiveBacklog.End] = []
        for (number, stream) in streams.enumerated() {
            let end = backlog.note(ObjectIdentifier(stream), of: party, 7) { [ended] in
                ended.add(number)
            }
            if let end { ends.append(end) }
        }
        // Two of the five have room, and nothing has ended so far.
        #expect(backlog.bytes == 14 * LiveBacklog.bytesOfStep)
        for end in ends { end() }
        #expect(ended.all.count == 3 && Set(ended.all).count == 3)
    }

    @Test func `no stream ends for another container's sake`() throws {
        for stream in 0..<3 {
            #expect(note(stream, of: "user-\(stream)", in: "one", 4) == nil)
        }
        #expect(note(3, of: "dave", in: "two", 3) == nil)
        // More waits for Dave than for any single one of them, but more for all of them than for
        // Dave.
        let first = try #require(note(3, of: "dave", in: "two", 5))
        #expect((0..<3).contains(first))
    }

    @Test func `waiting frames of sockets share one text until they are written`() {
        let frame = LiveFrame(["type": "change"])
        var outboxes = (0..<2).map { _ in
            LiveOutbox<ByteBuffer>(LoopSockets.wire, size: { $0.readableBytes })
        }
        for place in outboxes.indices {
            outboxes[place].append(ByteBuffer(bytes: [1, 2, 3]))
            outboxes[place].append(own: frame)
            #expect(outboxes[place].ownBytes == frame.bytes.count)
            #expect(outboxes[place].bytes == frame.bytes.count + 3)
            #expect(outboxes[place].next() == ByteBuffer(bytes: [1, 2, 3]))
            #expect(outboxes[place].next() == LoopSockets.wire(frame))
            #expect(outboxes[place].isEmpty && outboxes[place].ownBytes == 0)
            outboxes[place].append(own: frame)
            outboxes[place].removeAll()
            #expect(outboxes[place].bytes == 0 && outboxes[place].ownBytes == 0)
        }
    }

    /// A thousand records.
    private static var records: [LiveRecord] {
        let stamp = RecordStamp(at: Fixtures.moment, userID: nil, deviceID: nil)
        return (0..<1000).map { number in
            LiveRecord(
                ShadowRecord(
                    recordID: RecordID(recordName: Fixtures.identifier("r\(number)")),
                    recordType: Fixtures.identifier("Artwork"), fields: [:], created: stamp,
                    modified: stamp, source: .cloudKit, position: LogPosition(1)), readers: nil)
        }
    }

    /// Returns the result that one connection is sent.
    private static func result(_ shown: ShownRecords) -> LiveResult {
        let query = LiveQuery(.result, Fixtures.subscription("q"), form: LiveForm())
        let form = LiveRecordForm(store: UUIDBytes(high: 1, low: 1), secret: [1])
        return LiveResult(
            shown, of: LiveShown(query, grant: .world), 1, for: nil,
            by: FrameWriter(writing: form))
    }

    @Test func `a waiting result accounts for the records that were replaced since`() {
        let records = Self.records
        let replaced = ReplacedRecords()
        let shown = ShownRecords(records, counting: replaced)
        var outbox = LiveOutbox<LiveFrame>({ $0 }, size: { $0.bytes.count })
        outbox.append(Self.result(shown))
        let before = outbox.resultBytes
        replaced.add(100_000)
        outbox.weighResults()
        #expect(outbox.resultBytes == before + 100_000)
        // Two connections that are sent the same records share them.
        outbox.append(Self.result(shown))
        outbox.weighResults()
        #expect(outbox.resultBytes == 2 * before + 100_000)
        // A result accounts for no more than the records that it lists, whatever was replaced.
        replaced.add(1_000_000_000)
        outbox.weighResults()
        #expect(outbox.resultBytes == 2 * before + records.reduce(0) { $0 + $1.bytes })
        while outbox.next() != nil {}
        #expect(outbox.resultBytes == 0)
    }

    @Test func `a waiting result counts by its records until it is written`() {
        let result = Self.result(ShownRecords(Self.records))
        var outbox = LiveOutbox<LiveFrame>({ $0 }, size: { $0.bytes.count })
        outbox.append(result)
        #expect((8000...10_000).contains(outbox.resultBytes))
        var parts = 0
        while outbox.next() != nil { parts += 1 }
        #expect(parts > 1 && outbox.resultBytes == 0)
        // A client that keeps asking and reads little has a bounded number of results waiting.
        for _ in 0..<5000 { outbox.append(result) }
        #expect(outbox.isOverfull && outbox.bytes == 0)
        outbox.removeAll()
        #expect(outbox.resultBytes == 0 && !outbox.isOverfull)
    }
}
