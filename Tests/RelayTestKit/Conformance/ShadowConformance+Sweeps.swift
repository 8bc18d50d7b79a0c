import RelayModel
import Storage
import Testing

/// Sweeps: the deletion of kept records that a completed snapshot did not contain.
extension ShadowConformance {
    private static func keep(
        _ names: [String], _ version: Int64, of type: RecordType = ShadowConformance.type,
        owner: UserID? = nil,
        by source: SourceName = Sample.source, in store: any ConformingStore
    ) async throws {
        var rest = names.map { name in
            var change = RecordChange(.create, of: type, id(name))
            change.database = owner == nil ? .public : .private
            change.owner = owner
            change.after = RecordImage(["title": .string(name)])
            change.version = version
            change.isSnapshot = true
            return ChangeToAppend(change, key: nil)
        }
        while !rest.isEmpty {
            let outcomes = try await store.append(
                rest, container: container, source: source, at: Sample.moment(2))
            rest.removeFirst(outcomes.count)
        }
    }

    /// Sweeps to the end, and returns the number of records that each part has deleted.
    private static func sweep(
        _ version: Int64, in store: any ConformingStore
    ) async throws -> [Int] {
        let sweep = SnapshotSweep(
            container: container, source: Sample.source, types: [type], version: version)
        var counts: [Int] = []
        var place: SweepPlace?
        repeat {
            let part = try await store.sweepPart(sweep, after: place, at: Sample.moment(9))
            counts.append(part.deleted)
            place = part.next
        } while place != nil
        return counts
    }

    static func swept(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let other: RecordType = Sample.identifier("Sketch")
        try await store.extendSchema(
            of: container, with: [RecordTypeDefinition(type), RecordTypeDefinition(other)])
        let owner: UserID = Sample.identifier("alice")
        let many = (100..<250).map { "many-\($0)" }
        try await keep(many, 1, in: store)
        try await keep(["seen", "gone", "later"], 1, in: store)
        try await keep(["mine"], 1, owner: owner, in: store)
        try await keep(["sketch"], 1, of: other, in: store)
        try await keep(["foreign"], 1, by: Sample.identifier("other"), in: store)
        _ = try await modify(store, [create("client", "One")])
        // The second snapshot, and a later transaction.
        try await keep(["seen"] + many.dropLast(120), 5, in: store)
        try await keep(["later"], 9, in: store)
        let head = try await store.head()
        let counts = try await sweep(5, in: store)
        #expect(counts.reduce(0, +) == 122)
        #expect(counts.count > 1 && counts.allSatisfy { $0 <= 100 })
        let entries = try await store.entries(after: head, limit: 1000)
        #expect(entries.count == 122)
        let deletions = entries.compactMap { entry -> RecordChange? in
            if case .change(let change, Sample.source, false) = entry.body { change } else { nil }
        }
        #expect(
            deletions.allSatisfy { change in
                // The deletion fires as any other one does, and shows the record as it was.
                change.operation == .delete && !change.isSnapshot && change.version == 5
                    && change.before?.fields
                        == ["title": .string(change.recordID.recordName.rawValue)]
            })
        let names = Set(deletions.map(\.recordID.recordName.rawValue))
        #expect(names == Set(Array(many.suffix(120)) + ["gone", "mine"]))
        #expect(deletions.filter { $0.owner == owner }.map(\.recordID) == [id("mine")])
        // Repeating the whole sweep, as after a crash, finds nothing more.
        #expect(try await sweep(5, in: store).reduce(0, +) == 0)
        #expect(try await store.head() == entries.last?.position)
    }
}
