package import RelayModel

/// What is asked of one zone: what changed in it after a position.
package struct ZoneChangesQuestion: Sendable, Hashable {
    /// The zone.
    package let zoneID: ZoneID
    /// After what.
    package let position: LogPosition
    /// How many records at the most.
    package let rows: Int

    package init(_ zoneID: ZoneID, after position: LogPosition, rows: Int) {
        self.zoneID = zoneID
        self.position = position
        self.rows = rows
    }
}

/// A zone, and what changed in it, as of one commit.
package struct ZoneChanges: Sendable {
    /// The zone, deleted or not; `nil` if there never was one.
    package let zone: ZoneMark?
    /// The records that changed, deleted ones included, in the order of their last change.
    package let page: Page<ShadowRecord>

    package init(zone: ZoneMark?, page: Page<ShadowRecord>) {
        self.zone = zone
        self.page = page
    }
}

extension Shadow {
    /// One zone, deleted or not; `nil` if there never was one.
    package func zone(_ zoneID: ZoneID, of place: RecordPlace) async throws -> ZoneMark? {
        try await zones([zoneID], of: place).first.flatMap { $0 }
    }

    /// The records of one zone that changed after `position`.
    package func recordChanges(
        in zoneID: ZoneID, of place: RecordPlace, after position: LogPosition,
        _ bounds: PageBounds
    ) async throws -> Page<ShadowRecord> {
        let question = ZoneChangesQuestion(zoneID, after: position, rows: bounds.rows)
        let found = try await recordChanges(in: [question], of: place, bytes: bounds.bytes)
        return found.first?.page ?? Page([], hasMore: false)
    }
}
