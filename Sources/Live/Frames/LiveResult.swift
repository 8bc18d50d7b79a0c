import RelayModel
import Synchronization

/// The records of a result as they were at one position, for all who are shown them.
///
/// Their frames are written when somebody takes them, once for all who are being sent them at the
/// same time: what waits for a slow client takes no memory of its own.
final class ShownRecords: Sendable {
    let records: [LiveRecord]
    /// Whether who looks decides what is shown.
    let namesReaders: Bool
    private let bytes: Int
    private let replaced: ReplacedRecords
    /// What had been replaced before.
    private let replacedBefore: Int
    /// How many are being sent it.
    let sharers = Atomic<Int>(0)
    private let parts = Mutex(Parts())

    private struct Parts {
        var made: [LiveResult.Place: LiveResult.Part] = [:]
        var bytes = 0
        /// Where they have their room.
        var room: PartsRoom?
    }

    init(_ records: [LiveRecord], counting replaced: ReplacedRecords = ReplacedRecords()) {
        self.records = records
        namesReaders = records.contains { $0.isForSome }
        bytes = records.reduce(0) { $0 + $1.bytes }
        self.replaced = replaced
        replacedBefore = replaced.bytes
    }

    /// The bytes of records that may be there for its sake alone, because the result has others in
    /// their places now: a part for each who is being sent it.
    var pinnedBytes: Int {
        let all = min(bytes, replaced.bytes - replacedBefore)
        return all / max(1, sharers.load(ordering: .relaxed))
    }

    deinit {
        let (room, bytes) = parts.withLock { ($0.room, $0.bytes) }
        room?.leave(bytes)
    }

    /// The part at a place, made once for as long as there is `room`.
    ///
    /// What one alone is sent is not kept: ten thousand who are welcomed together, each with a
    /// result of their own, would have all frames in memory at once.
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

/// One who is being sent the records of a result.
private final class ResultSharer: Sendable {
    let shown: ShownRecords

    init(of shown: ShownRecords) {
        self.shown = shown
        shown.sharers.wrappingAdd(1, ordering: .relaxed)
    }

    deinit { shown.sharers.wrappingSubtract(1, ordering: .relaxed) }
}

/// Counts the records of one result that others took the places of, while somebody is being sent
/// what it was.
final class ReplacedRecords: Sendable {
    private let sum = Atomic<Int>(0)

    /// The bytes of all of them.
    var bytes: Int { sum.load(ordering: .relaxed) }

    /// Counts one, or several.
    func add(_ bytes: Int) { sum.wrappingAdd(bytes, ordering: .relaxed) }
}

/// Bounds the frames of results that are kept for whoever is sent the same a little later.
///
/// They are there for as long as anybody is being sent the result, and each change makes another
/// result of one: clients that take theirs slowly would keep any number of them.
final class PartsRoom: Sendable {
    private let most: Int
    private let used = Atomic<Int>(0)

    init(megabytes: Int = 64) {
        most = megabytes * 1024 * 1024
    }

    /// Takes room for so many bytes, and says whether there was some.
    func enter(_ bytes: Int) -> Bool {
        guard used.wrappingAdd(bytes, ordering: .relaxed).newValue > most else { return true }
        leave(bytes)
        return false
    }

    /// Gives it back.
    func leave(_ bytes: Int) { used.wrappingSubtract(bytes, ordering: .relaxed) }

    /// The bytes that are taken.
    var bytes: Int { used.load(ordering: .relaxed) }
}

/// A result on its way to one client, whose frames are made as they are taken.
package struct LiveResult: Sendable {
    /// Where a part begins.
    struct Place: Hashable {
        var number = 0
        var index = 0
    }

    typealias Part = (frame: LiveFrame, next: Int?)

    private let sharer: ResultSharer
    /// An object, because a query is most of a kilobyte, and a result waits with each of thousands
    /// of commands that are posted together; each of them has room for one.
    private let content: LiveShown
    private let head: JSONObject
    private let reader: LiveReader?
    private let isShared: Bool
    private let writer: FrameWriter
    private var place: Place? = Place()

    /// The result of a group, without what `reader` may not read; `nil` leaves nothing out.
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

    /// What it takes in memory while it waits, about: the list of what is shown, which is another
    /// one after each change, and the records that have been replaced since, so that it grows.
    package var weight: Int { Self.ownBytes + shown.records.count * 8 + shown.pinnedBytes }

    private static let ownBytes = 512

    private var shown: ShownRecords { sharer.shown }

    /// The same as the answer to a `get`.
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

    /// The next frame; `nil` after the last one.
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
