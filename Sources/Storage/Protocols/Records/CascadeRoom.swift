package import RelayModel

/// How far an unfinished deletion has come.
package struct CascadePlace: Sendable, Hashable {
    /// The names that lead from the record being deleted (exclusive) to the record whose referrers
    /// are looked up next.
    package var path: [RecordName] = []
    /// The creation stamp of the record being deleted; `nil` before the record was read.
    ///
    /// Between two parts, another client may delete the record or its zone and create a record of
    /// the same name. The client did not ask to delete that record and its referrers.
    package var target: RecordStamp?

    /// Creates the place at which nothing has been looked at.
    package init() {}
}

/// The number of records that a request's deletions may still delete with them in one transaction
/// by `DELETE_SELF`, and how far that has come.
package struct CascadeRoom: Sendable {
    /// The maximum number of records deleted along in one part, because a part keeps the writer
    /// from other requests.
    ///
    /// Other requests' changes run between parts.
    package static let mostOfPart = 32
    /// The maximum number of records deleted along in an all-or-nothing request, which has no
    /// parts.
    ///
    /// CloudKit allows 750 references to one target.
    package static let mostAtOnce = 1000
    /// The maximum depth of references below the deleted record.
    ///
    /// Deeper referrers are left, so that a cycle ends.
    package static let mostLevels = 10_000
    /// The number of steps for each record: one deletes it, and the others look up what refers to
    /// it.
    private static let stepsPerRecord = 4
    /// The minimum number of steps of a part, however few records it may delete.
    ///
    /// With fewer, a client with little room would not get down a long chain within one call, and
    /// the next call starts again at the top.
    private static let fewestSteps = 64
    /// The maximum bytes of records read for one part, and for an all-or-nothing request, which may
    /// read as much as one request may change.
    private static let mostBytes = (part: 1024 * 1024, atOnce: 16 * 1024 * 1024)

    /// The place that the deletion has reached.
    package private(set) var place: CascadePlace
    /// The number of records deleted along so far.
    package private(set) var gone = 0
    /// Whether this continues an unfinished deletion.
    package let isResumed: Bool
    private let most: Int
    private var steps: Int
    private var bytes: Int

    /// Creates the room of one part, in which at most `most` records (at least 1) are deleted
    /// along.
    ///
    /// A resumed deletion continues at `place`.
    package init(part most: Int, from place: CascadePlace? = nil) {
        self.init(most: min(max(1, most), Self.mostOfPart), bytes: Self.mostBytes.part, place)
    }

    private init(most: Int, bytes: Int, _ place: CascadePlace?) {
        self.most = most
        self.bytes = bytes
        self.place = place ?? CascadePlace()
        isResumed = place != nil
        steps = max(most * Self.stepsPerRecord, Self.fewestSteps)
    }

    /// The room of an all-or-nothing request.
    package static var atOnce: CascadeRoom {
        CascadeRoom(most: mostAtOnce, bytes: mostBytes.atOnce, nil)
    }

    /// The names that lead to the record whose referrers are looked up next.
    package var path: [RecordName] {
        get { place.path }
        set { place.path = newValue }
    }

    /// Returns whether a record with the name of the one being deleted and this creation stamp is
    /// another record.
    package func isOther(_ created: RecordStamp) -> Bool {
        place.target.map { $0 != created } ?? false
    }

    /// Begins or continues the deletion of the record with this creation stamp.
    package mutating func begin(_ created: RecordStamp) { place.target = created }

    /// Ends a deletion.
    ///
    /// The next one begins with another record.
    package mutating func finish() { place = CascadePlace() }

    /// The number of records that may still be deleted along.
    package var records: Int { most - gone }

    /// Whether the room is used up.
    package var isSpent: Bool { gone >= most || steps <= 0 || bytes <= 0 }

    /// Notes that a record of `bytes` bytes was deleted along.
    package mutating func noteGone(bytes: Int) {
        gone += 1
        steps -= 1
        self.bytes -= bytes
    }

    /// Descends to what refers to the record `name`, of `bytes` bytes, which must be deleted first.
    package mutating func enter(_ name: RecordName, bytes: Int) {
        place.path.append(name)
        steps -= 1
        self.bytes -= bytes
    }

    /// Returns to the parent, because nothing refers to the last record of the path any more.
    package mutating func leave() {
        place.path.removeLast()
        steps -= 1
    }
}

/// The outcomes of operations on records and of the deletions that go along with them.
package struct RecordEditsApplied: Sendable {
    /// The outcome of each operation, in their order.
    package var outcomes: [RecordEditOutcome]
    /// Where the unfinished deletion continues, if there is one.
    package var place: CascadePlace
    /// The number of records deleted along.
    package var gone: Int

    package init(outcomes: [RecordEditOutcome], room: CascadeRoom) {
        self.outcomes = outcomes
        place = room.place
        gone = room.gone
    }
}

extension RecordEditOutcome {
    /// Whether the client should repeat the operation, because it or an operation before it is
    /// unfinished.
    package var isUnfinished: Bool { self == .refused(.unfinished) }
}
