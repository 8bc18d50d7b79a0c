package import RelayModel

/// A slice of a scan through the live records of one type, ordered by zone and name.
///
/// The slice ends after a number of rows or bytes, or when its turn has taken long enough, but
/// never before one row. So a caller that continues from the end of each slice reaches the end.
package struct RecordScan: Sendable {
    /// The record type.
    package var recordType: RecordType
    /// The database.
    package var place: RecordPlace
    /// The zone; `nil` scans all zones.
    package var zoneID: ZoneID?
    /// The place after which the slice begins: where the previous one ended.
    package var cursor: RecordID?
    /// The maximum number of rows to read, including marks of deleted records.
    package var rows: Int
    /// The approximate maximum of stored text to read, in bytes.
    package var bytes: Int
    /// Starts the turn, which says when the slice has taken long enough.
    package var turn: TurnStart
    /// The party that asks.
    package var party: QueryParty

    /// Creates a slice that begins after `cursor`, or with the first record.
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

/// The result of a slice.
package struct RecordSlice<Value: Sendable>: Sendable {
    /// The folded value.
    package var value: Value
    /// The number of rows read, zones included.
    package var rows = 0
    /// The bytes of stored text that were read.
    package var bytes = 0
    /// The last record that was read, or a place after all records of a zone that has no more;
    /// `nil` at the end of the scan.
    package var cursor: RecordID?

    /// Creates the result of a slice that has read nothing.
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
