import RelayModel
import Synchronization

/// The records of a result at one position, shared by all clients that are being sent them.
///
/// Frames are written when a client takes them, once for all clients that are being sent the result
/// at the same time. So a result that waits for a slow client needs no memory of its own.
final class ShownRecords: Sendable {
    let records: [LiveRecord]
    /// Whether any record names readers, so that clients may see different records.
    let namesReaders: Bool
    private let bytes: Int
    private let replaced: ReplacedRecords
    /// The value of `replaced` when this result was made.
    private let replacedBefore: Int
    /// The number of clients that are being sent it.
    let sharers = Atomic<Int>(0)
    private let parts = Mutex(Parts())

    private struct Parts {
        var made: [LiveResult.Place: LiveResult.Part] = [:]
        var bytes = 0
        /// The budget that counts their bytes.
        var room: PartsRoom?
    }

    init(_ records: [LiveRecord], counting replaced: ReplacedRecords = ReplacedRecords()) {
        self.records = records
        namesReaders = records.contains { $0.isForSome }
        bytes = records.reduce(0) { $0 + $1.bytes }
        self.replaced = replaced
        replacedBefore = replaced.bytes
    }

    /// One client's share of the bytes of records that only this result keeps in memory, because
    /// the group has replaced them since.
    var pinnedBytes: Int {
        let all = min(bytes, replaced.bytes - replacedBefore)
        return all / max(1, sharers.load(ordering: .relaxed))
    }

    deinit {
        let (room, bytes) = parts.withLock { ($0.room, $0.bytes) }
        room?.leave(bytes)
    }

    /// Returns the part at a place, and keeps it for other clients while there is `room`.
    ///
    /// A part that a single client is sent is not kept: ten thousand clients that connect together,
    /// each with its own result, would have all their frames in memory at once.
    func part(
        at place: LiveResult.Place, in room: PartsRoom, _ make: () -> LiveResult.Part
    ) -> LiveResult.Part {
        if let known = parts.withLock({ $0.made[place] }) { return known }
        let made = make()
        guard sharers.load(ordering: .relaxed) > 1 else { return made }
        let bytes = made.frame.count
        guard room.enter(bytes) else { return made }
        let isKept = parts.withLock { parts -> Bool in
            guard parts.made[place] == nil else { return false }
            parts.made[place] = made
            parts.bytes += bytes
            parts.room = room
            return true
        }
        if !isKept { room.leave(bytes) }
        return made
    }
}

/// Counts one client that is being sent a result, for as long as this object lives.
private final class ResultSharer: Sendable {
    let shown: ShownRecords

    init(of shown: ShownRecords) {
        self.shown = shown
        shown.sharers.wrappingAdd(1, ordering: .relaxed)
    }

    deinit { shown.sharers.wrappingSubtract(1, ordering: .relaxed) }
}

/// Counts the bytes of a group's records that have been replaced while clients were being sent an
/// earlier state of the result.
final class ReplacedRecords: Sendable {
    private let sum = Atomic<Int>(0)

    /// The sum so far.
    var bytes: Int { sum.load(ordering: .relaxed) }

    /// Adds the bytes of one or several records.
    func add(_ bytes: Int) { sum.wrappingAdd(bytes, ordering: .relaxed) }
}

/// Bounds the memory for frames of results that are kept for other clients.
///
/// They are kept while any client is being sent the result, and each change makes a new result.
/// Without a bound, slow clients could keep any number of them.
final class PartsRoom: Sendable {
    private let most: Int
    private let used = Atomic<Int>(0)

    init(megabytes: Int = 64) {
        most = megabytes * 1024 * 1024
    }

    /// Reserves `bytes`; `false` if they are not available.
    func enter(_ bytes: Int) -> Bool {
        guard used.wrappingAdd(bytes, ordering: .relaxed).newValue > most else { return true }
        leave(bytes)
        return false
    }

    /// Returns reserved bytes.
    func leave(_ bytes: Int) { used.wrappingSubtract(bytes, ordering: .relaxed) }

    /// The number of reserved bytes.
    var bytes: Int { used.load(ordering: .relaxed) }
}

/// A result that is being sent to one client.
///
/// Its frames are written as the client takes them.
package struct LiveResult: Sendable {
    /// The number of a part and the index of its first record.
    struct Place: Hashable {
        var number = 0
        var index = 0
    }

    typealias Part = (frame: LiveFrame, next: Int?)

    private let sharer: ResultSharer
    /// A class instance: a query takes nearly a kilobyte, and each of thousands of commands that
    /// are posted together holds a `LiveResult`.
    private let content: LiveShown
    private let head: JSONObject
    private let reader: LiveReader?
    private let isShared: Bool
    private let writer: FrameWriter
    private var place: Place? = Place()

    /// Creates the result of a group, without the records that `reader` may not read; `nil` leaves
    /// out none.
    init(
        _ shown: ShownRecords, of content: LiveShown, _ group: UInt32, for reader: LiveReader?,
        by writer: FrameWriter
    ) {
        sharer = ResultSharer(of: shown)
        self.writer = writer
        self.content = content
        head = ["group": .integer(Int64(group))]
        self.reader = shown.namesReaders ? reader : nil
        isShared = self.reader == nil
    }

    /// The estimated memory that it takes while it waits, in bytes.
    ///
    /// This is its list of records, and its share of the records that have been replaced since. So
    /// the weight can grow.
    package var weight: Int { Self.ownBytes + shown.records.count * 8 + shown.pinnedBytes }

    private static let ownBytes = 512

    private var shown: ShownRecords { sharer.shown }

    /// Returns the same result as the answer to the `get` with this ID.
    func got(as id: String) -> LiveResult {
        LiveResult(shown, content, ["id": .string(id)], reader, writer)
    }

    private init(
        _ shown: ShownRecords, _ content: LiveShown, _ head: JSONObject, _ reader: LiveReader?,
        _ writer: FrameWriter
    ) {
        sharer = ResultSharer(of: shown)
        self.content = content
        self.head = head
        self.reader = reader
        self.writer = writer
        isShared = false
    }

    /// Returns the next frame; `nil` after the last one.
    package mutating func next() -> LiveFrame? {
        guard let place else { return nil }
        let make = { [self] in
            writer.part(
                of: shown.records, from: place.index, for: reader, content.query,
                number: place.number, head)
        }
        let part = isShared ? shown.part(at: place, in: writer.room, make) : make()
        self.place = part.next.map { Place(number: place.number + 1, index: $0) }
        return part.frame
    }
}
