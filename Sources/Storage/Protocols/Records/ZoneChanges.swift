package import RelayModel

/// A zone of a database, which may have been deleted.
package struct ZoneMark: Sendable, Hashable {
    /// The zone.
    package var zoneID: ZoneID
    /// The position of the last change of a record in the zone.
    package var position: LogPosition
    /// The number of its last creation or deletion, ascending.
    package var edit: UInt64
    /// Whether the zone was deleted.
    package var isDeleted: Bool
    /// The position up to which marks of the zone's deleted records may have been pruned.
    package var prunedTo: LogPosition

    package init(
        zoneID: ZoneID, position: LogPosition, edit: UInt64, isDeleted: Bool,
        prunedTo: LogPosition = .start
    ) {
        self.prunedTo = prunedTo
        self.zoneID = zoneID
        self.position = position
        self.edit = edit
        self.isDeleted = isDeleted
    }
}

/// What is asked of one zone: what changed in it after a position.
package struct ZoneChangesQuestion: Sendable, Hashable {
    /// The zone.
    package let zoneID: ZoneID
    /// The position after which changes are returned.
    package let position: LogPosition
    /// The maximum number of records.
    package let rows: Int

    package init(_ zoneID: ZoneID, after position: LogPosition, rows: Int) {
        self.zoneID = zoneID
        self.position = position
        self.rows = rows
    }
}

/// A zone and the changes in it, as of one commit.
package struct ZoneChanges: Sendable {
    /// The zone, deleted or not; `nil` if it never existed.
    package let zone: ZoneMark?
    /// The changed records, including deleted ones, in the order of their last change.
    package let page: Page<ShadowRecord>

    package init(zone: ZoneMark?, page: Page<ShadowRecord>) {
        self.zone = zone
        self.page = page
    }
}

extension Shadow {
    /// Returns one zone, deleted or not, or `nil` if it never existed.
    package func zone(_ zoneID: ZoneID, of place: RecordPlace) async throws -> ZoneMark? {
        try await zones([zoneID], of: place).first.flatMap { $0 }
    }

    /// Returns a page of the records of one zone that changed after `position`.
    package func recordChanges(
        in zoneID: ZoneID, of place: RecordPlace, after position: LogPosition,
        _ bounds: PageBounds
    ) async throws -> Page<ShadowRecord> {
        let question = ZoneChangesQuestion(zoneID, after: position, rows: bounds.rows)
        let found = try await recordChanges(in: [question], of: place, bytes: bounds.bytes)
        return found.first?.page ?? Page([], hasMore: false)
    }
}
