import RelayModel

extension ChangeSource {
    /// Decodes rows of a follower within the relay as if they had been posted.
    ///
    /// - Complexity: O(*n*) in the size of the rows. JSON is made only if the mapping points into
    ///   it, and for rows that cannot be mapped.
    package func decode(_ rows: [FollowedRow]) -> DecodedBatch {
        let pointsIntoJSON = mapping.allPlaces.contains { place in
            if case .pointer = place { true } else { false }
        }
        var batch = DecodedBatch(items: [])
        batch.items.reserveCapacity(rows.count)
        for row in rows {
            let value: JSONValue = pointsIntoJSON ? .object(row.json) : .null
            // The place is the same for all rows: after a crash, a row comes again among other rows
            // and must be parked only once.
            let item = SourceItem(
                value: value, path: "[0]", index: 0, headers: WebhookHeaders(), source: self)
            batch.items.append(contentsOf: items(of: row, item))
        }
        return batch
    }

    private func items(of row: FollowedRow, _ item: SourceItem) -> [DecodedItem] {
        var reported: [ReportedChange] = []
        do throws(JSONContractError) {
            reported = [try row.reported(path: item.path)]
            var readerRoom = Self.mostReaderBytes
            return try map(reported, item: item, transportKey: nil, within: &readerRoom)
        } catch {
            guard onUnmappable == .park else {
                return [.refused(path: error.path, reason: error.reason)]
            }
            return half(of: reported, item: item, transportKey: nil) + [
                .parked(
                    ParkedBody(
                        reason: error.reason, path: error.path, raw: .object(row.json),
                        index: item.index, headers: [:]))
            ]
        }
    }
}
