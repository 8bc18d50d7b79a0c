import RelayModel
package import Storage

extension RelayStore {
    package func scanRecords<Value: Sendable>(
        _ scan: RecordScan, into initial: Value,
        _ step: @escaping @Sendable (inout Value, ScannedRecord) throws -> Bool
    ) async throws -> RecordSlice<Value> {
        try await line.turn(of: scan.place.container, by: scan.party) {
            try await read { db in
                guard let container = try db.containerIfKnown(scan.place.container) else {
                    return RecordSlice(initial)
                }
                let scanner = RecordScanner(
                    scan: scan, isOver: scan.turn(),
                    shadowRows: ShadowRows(place: scan.place, container: container))
                return try scanner.run(into: initial, step, in: db)
            }
        }
    }
}
