package import RelayModel

/// How far a deletion has come that is unfinished.
package struct CascadePlace: Sendable, Hashable {
    /// The names that lead from the record that is deleted, without its own, to the one of which
    /// is asked next what refers to it.
    package var path: [RecordName] = []
    /// Who made the record that is deleted, and when; `nil` before anything is known of it.
    ///
    /// Its name may be another record's by the next part: somebody else has deleted it, or its
    /// zone, and made it anew. Nobody has asked for that one to go, and what refers to it.
    package var target: RecordStamp?

    /// Nothing has been looked at.
    package init() {}
}

/// What may go along in one transaction with the deletions of a request, by `DELETE_SELF`, and how
/// far that has come.
package struct CascadeRoom: Sendable {
    /// Records that go along in one of the parts that others' changes come between: with them the
    /// writer is kept from others.
    package static let mostOfPart = 32
    /// Records that may go along where all is done or nothing, which has no parts; CloudKit allows
    /// 750 references to one target.
    package static let mostAtOnce = 1000
    /// How deep references lead from the record that is deleted: what refers to a record there is
    /// left, so that a circle has an end.
    package static let mostLevels = 10_000
    /// Steps for each record, of which one deletes it, and others look what refers to it.
    private static let stepsPerRecord = 4
    /// Steps of a part, however few records may go in it: else whoever has little room beside
    /// others would not come down a long chain in the time of one call, and the next call begins at
    /// its top again.
    private static let fewestSteps = 64
    /// The bytes of records that may be read for a part, and where there are none: there as many as
    /// one request changes.
    private static let mostBytes = (part: 1024 * 1024, atOnce: 16 * 1024 * 1024)

    /// How far the deletion has come.
    package private(set) var place: CascadePlace
    /// How many have gone.
    package private(set) var gone = 0
    /// Whether a deletion goes on that is unfinished.
    package let isResumed: Bool
    private let most: Int
    private var steps: Int
    private var bytes: Int

    /// All of a part, in which at the most `most` go, 1 at the least; if a deletion goes on in it,
    /// then at `place`.
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

    /// All that may go where all is done or nothing.
    package static var atOnce: CascadeRoom {
        CascadeRoom(most: mostAtOnce, bytes: mostBytes.atOnce, nil)
    }

    /// The names that lead to the record of which is asked next what refers to it.
    package var path: [RecordName] {
        get { place.path }
        set { place.path = newValue }
    }

    /// Whether a record with the name of the one that is being deleted, which was made so, is
    /// another one.
    package func isOther(_ created: RecordStamp) -> Bool {
        place.target.map { $0 != created } ?? false
    }

    /// Begins with a record that was made so, or goes on with it.
    package mutating func begin(_ created: RecordStamp) { place.target = created }

    /// A deletion is finished: the next begins with another record.
    package mutating func finish() { place = CascadePlace() }

    /// How many more may go.
    package var records: Int { most - gone }

    /// Whether no more goes in.
    package var isSpent: Bool { gone >= most || steps <= 0 || bytes <= 0 }

    /// Notes that a record of so many bytes has gone.
    package mutating func noteGone(bytes: Int) {
        gone += 1
        steps -= 1
        self.bytes -= bytes
    }

    /// Goes on with what refers to a record of so many bytes, before that one goes.
    package mutating func enter(_ name: RecordName, bytes: Int) {
        place.path.append(name)
        steps -= 1
        self.bytes -= bytes
    }

    /// Goes back, because nothing refers to the last record of the path any more.
    package mutating func leave() {
        place.path.removeLast()
        steps -= 1
    }
}

/// What became of operations on records, and of what goes along with their deletions.
package struct RecordEditsApplied: Sendable {
    /// What became of each, in their order.
    package var outcomes: [RecordEditOutcome]
    /// Where the deletion goes on that is unfinished, if one is.
    package var place: CascadePlace
    /// How many records went along.
    package var gone: Int

    package init(outcomes: [RecordEditOutcome], room: CascadeRoom) {
        self.outcomes = outcomes
        place = room.place
        gone = room.gone
    }
}

extension RecordEditOutcome {
    /// Whether the operation is to be asked for again, because not all that goes along has gone, or
    /// one before it is unfinished.
    package var isUnfinished: Bool { self == .refused(.unfinished) }
}
