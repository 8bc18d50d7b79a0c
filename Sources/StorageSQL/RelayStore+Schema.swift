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
            try SchemaStep(container: try commit.container(container)).add(additions, in: commit.db)
        }
        schemas.forget(container)
    }

    package func replaceSchema(
        of container: ContainerKey, with schema: ContainerSchema, at now: Timestamp
    ) async throws {
        try await write { commit in
            let step = SchemaStep(container: try commit.container(container))
            let known = try step.read(commit.db).recordTypes.values
            let unkept = known.filter { type in
                type.isKept && schema.recordTypes[type.name]?.isKept != true
            }
            // Whoever comes back after the type is kept again has to hear that it was not.
            for name in unkept.map(\.name).sorted(by: { $0.rawValue < $1.rawValue }) {
                guard let row = try step.someRecord(of: name, in: commit.db) else { continue }
                try Self.tell(of: row, withItsType: true, at: now, in: &commit)
            }
            try step.replace(with: schema, in: commit.db)
            // To look for records that are kept no more reads all of the container, and everybody
            // waits to write meanwhile: whoever saves what keeps the same has none.
            guard !unkept.isEmpty else { return }
            try step.expireTokens(upTo: commit.head, in: commit.db)
            try step.forgetUnkept(in: commit.db)
        }
        schemas.forget(container)
    }
}
