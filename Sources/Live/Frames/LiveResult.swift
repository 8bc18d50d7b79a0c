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
    private let parts = Mutex<[LiveResult.Place: LiveResult.Part]>([:])

    init(_ records: [LiveRecord]) {
        self.records = records
        namesReaders = records.contains { $0.readers != nil }
    }

    /// The part at a place, made once.
    func part(at place: LiveResult.Place, _ make: () -> LiveResult.Part) -> LiveResult.Part {
        if let known = parts.withLock({ $0[place] }) { return known }
        let made = make()
        parts.withLock { $0[place] = made }
        return made
    }
}

/// A result on its way to one client, whose frames are made as they are taken.
package struct LiveResult: Sendable {
    /// Where a part begins.
    struct Place: Hashable {
        var number = 0
        var index = 0
    }

    typealias Part = (frame: LiveFrame, next: Int?)

    private let shown: ShownRecords
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
        self.shown = shown
        self.writer = writer
        self.content = content
        head = ["group": .integer(Int64(group))]
        self.reader = shown.namesReaders ? reader : nil
        isShared = self.reader == nil
    }

    /// The same as the answer to a `get`.
    func got(as id: String) -> LiveResult {
        LiveResult(shown, content, ["id": .string(id)], reader, writer)
    }

    private init(
        _ shown: ShownRecords, _ content: LiveShown, _ head: JSONObject, _ reader: LiveReader?,
        _ writer: FrameWriter
    ) {
        self.shown = shown
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
        let part = isShared ? shown.part(at: place, make) : make()
        self.place = part.next.map { Place(number: place.number + 1, index: $0) }
        return part.frame
    }
}
