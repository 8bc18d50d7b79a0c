package import RelayModel
import Storage

extension RelayStore {
    package func schema(of container: ContainerKey) async throws -> ContainerSchema {
        let schema = try await schemas.value(of: container) {
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
        of container: ContainerKey, with schema: ContainerSchema
    ) async throws {
        try await write { commit in
            try SchemaStep(container: try commit.container(container))
                .replace(with: schema, in: commit.db)
        }
        schemas.forget(container)
    }
}
