package import RelayModel

/// A slice of a look through the live records of one type, in the order of zone and name.
///
/// It ends after so many rows or bytes, or when its turn has taken long enough, but not before one
/// row: who goes on from where it ended gets through.
package struct RecordScan: Sendable {
    /// The type.
    package var recordType: RecordType
    /// The database.
    package var place: RecordPlace
    /// The zone; `nil` looks through all of them.
    package var zoneID: ZoneID?
    /// Begins after this place, where a slice ended.
    package var cursor: RecordID?
    /// Rows to look at, marks of deleted records included.
    package var rows: Int
    /// Bytes of stored text to read, about.
    package var bytes: Int
    /// Says when the slice has taken long enough.
    package var turn: TurnStart
    /// Who asks.
    package var party: QueryParty

    /// Creates a slice that begins with the first record.
    package init(
        of recordType: RecordType, in place: RecordPlace, zoneID: ZoneID? = nil,
        after cursor: RecordID? = nil, rows: Int = 512, bytes: Int = 1024 * 1024,
        by party: QueryParty = .server, turn: @escaping TurnStart = { { false } }
    ) {
        self.recordType = recordType
        self.place = place
        self.zoneID = zoneID
        self.cursor = cursor
        self.rows = rows
        self.bytes = bytes
        self.party = party
        self.turn = turn
    }
}

/// What a slice came to.
package struct RecordSlice<Value: Sendable>: Sendable {
    /// What was folded.
    package var value: Value
    /// The rows that were looked at, zones included.
    package var rows = 0
    /// The bytes of stored text that were read.
    package var bytes = 0
    /// The last record that was looked at, or a place behind all of a zone that has none more;
    /// `nil` if there are no more.
    package var cursor: RecordID?

    /// Begins with nothing looked at.
    package init(_ value: Value) {
        self.value = value
    }
}

/// A record with the size of its stored texts.
package struct ScannedRecord: Sendable {
    /// The record.
    package let record: ShadowRecord
    /// The bytes of its stored texts.
    package let bytes: Int

    package init(record: ShadowRecord, bytes: Int) {
        self.record = record
        self.bytes = bytes
    }
}
