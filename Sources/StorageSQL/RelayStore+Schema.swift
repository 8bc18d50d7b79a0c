package import RelayModel
import Storage

extension RelayStore {
    package func schema(of container: ContainerKey) async throws -> ContainerSchema {
        let schema = try await schemas.value(of: container, inDoubt: engine.isInDoubt) {
            try await read { db -> ContainerSchema? in
                guard let stored = try db.containerIfKnown(container) else { return nil }
                return try SchemaStep(container: stored).read(db)
            }
        }
        return schema ?? ContainerSchema()
    }

    package func extendSchema(
        of container: ContainerKey, with additions: [RecordTypeDefinition]
    ) async throws {
        guard !additions.isEmpty else { return }
        try await write(of: container) { commit in
            let stored = try commit.container(container)
            try commit.extendSchema(of: stored, with: additions)
        }
        schemas.forget(container)
    }

    /// The number of parts of a deletion that the call to save a schema waits for, which is some
    /// hundred records.
    ///
    /// So live clients that see them learn of it soon.
    ///
    /// Upkeep deletes the rest.
    private static let partsAtOnce = 8

    package func changeSchema(
        of container: ContainerKey, at now: Timestamp,
        _ change: @escaping @Sendable (ContainerSchema) -> ContainerSchema
    ) async throws {
        let left = try await read { db -> Set<RecordType> in
            guard let stored = try db.containerIfKnown(container) else { return [] }
            return try UnkeptTypes(container: stored).names(in: db)
        }
        let known = try await schema(of: container)
        let schema = change(known)
        // The writer need not read thousands of fields to find that all are as they were.
        guard !left.isEmpty || schema.differences(from: known) > 0 else { return }
        let isLeft = !left.isDisjoint(with: schema.keptTypes)
        // A type that is kept again must not have records left from before.
        if isLeft { try await forgetUnkept(of: container) }
        try await putSchema(of: container, at: now, change)
        // The schema is in force, whatever happens to this deletion. Upkeep deletes the rest over
        // time.
        try? await forgetUnkept(of: container)
    }

    /// Replaces a schema by what `change` makes of it.
    ///
    /// Records of types that are no longer kept are hidden from then on and deleted later.
    ///
    /// - Throws: ``StorageError/bounded(_:reason:)`` if the new schema keeps a type that has
    ///   records left from before.
    func putSchema(
        of container: ContainerKey, at now: Timestamp,
        _ change: @escaping @Sendable (ContainerSchema) -> ContainerSchema
    ) async throws {
        try await write(of: container) { commit in
            let stored = try commit.container(container)
            let unkept = UnkeptTypes(container: stored)
            let step = SchemaStep(container: stored)
            let known = try step.read(commit.db)
            let schema = change(known)
            try unkept.refuse(schema.keptTypes, in: commit.db)
            let names = known.recordTypes.values
                .filter { $0.isKept && schema.recordTypes[$0.name]?.isKept != true }
                .map(\.name).sorted { $0.rawValue < $1.rawValue }
            // A client that returns after the type is kept again must learn that it was not kept in
            // between.
            for name in names { try Self.tell(unkept: name, of: stored, at: now, in: &commit) }
            try step.replace(known, with: schema, in: commit.db)
            try unkept.begin(names, at: commit.head, in: commit.db)
        }
        schemas.forget(container)
    }

    /// Appends the change that says that all records of a type were deleted.
    ///
    /// It names none of them and is not shown to any client.
    private static func tell(
        unkept type: RecordType, of container: StoredContainer, at now: Timestamp,
        in commit: inout OpenCommit
    ) throws {
        guard let name = RecordName(rawValue: type.rawValue) else { return }
        var change = RecordChange(.delete, of: type, RecordID(recordName: name))
        change.readers = []
        change.isSnapshot = true
        change.isUnkept = true
        _ = try commit.append(
            change, createdBy: nil, source: .cloudKit, isStale: false, in: container, at: now)
    }

    // MARK: What is kept no more

    /// Deletes records of types that a container no longer keeps, a limited number of parts.
    private func forgetUnkept(of container: ContainerKey) async throws {
        for _ in 0..<Self.partsAtOnce {
            try Task.checkCancellation()
            guard try await forgetPart(of: container) != nil else { return }
        }
    }

    /// Deletes records of types that containers no longer keep, in turn one part of each container,
    /// about `parts` parts in total.
    ///
    /// - Returns: The number of deleted records.
    package func forgetUnkept(parts: Int) async throws -> Int {
        var count = 0
        var left = parts
        while left > 0 {
            let containers = try await read { db in
                try Row.fetchAll(
                    db, sql: "SELECT DISTINCT container FROM forgottenType ORDER BY container"
                ).map { row in try db.containerKey(row[0]) }
            }
            guard !containers.isEmpty else { return count }
            for container in containers {
                try Task.checkCancellation()
                CrashPoint.prune.reach()
                count += try await forgetPart(of: container) ?? 0
            }
            left -= containers.count
        }
        return count
    }

    /// Finds some records of types that a container no longer keeps, and deletes them in one turn
    /// of the container at the writer.
    ///
    /// Returns their number, or `nil` if nothing is left.
    func forgetPart(of container: ContainerKey) async throws -> Int? {
        let slice = try await read { db -> UnkeptTypes.Slice? in
            guard let stored = try db.containerIfKnown(container) else { return nil }
            let unkept = UnkeptTypes(container: stored)
            guard let search = try unkept.search(in: db) else { return nil }
            return try unkept.slice(search, in: db)
        }
        guard let slice else { return nil }
        try await write(of: container, changes: slice.records.count) { commit in
            try UnkeptTypes(container: try commit.container(container))
                .forget(slice, in: commit.db)
        }
        return slice.records.count
    }
}

private extension ContainerSchema {
    /// The types whose records are kept.
    var keptTypes: [RecordType] { recordTypes.values.filter(\.isKept).map(\.name) }
}
