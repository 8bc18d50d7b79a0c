package import RelayModel

extension LiveEngine {
    /// Returns the container's current schema number; ask for it before you read the schema.
    package func schema(of container: ContainerKey) -> LiveSchema {
        LiveSchema(number: schemas[container, default: 0])
    }

    /// Discards all groups of a container, because its schema says who may read what, and changed.
    ///
    /// Their clients are sent nothing more from now on, and have to declare their sets again.
    package func noteSchemaChange(of key: ContainerKey) {
        schemas[key, default: 0] += 1
        guard let container = containers[key] else { return }
        for group in container.groups.values {
            for (number, _) in queries(of: group) {
                clients[number]?.hub.post([.leave(number, group.number)])
            }
            discard(group, in: container)
        }
    }

    /// Refuses what was read under a schema that has changed since.
    func check(_ schema: LiveSchema, of container: ContainerKey) throws(APIError) {
        guard schema == self.schema(of: container) else {
            throw APIError(.tryAgainLater, "the container's schema was changed", retryAfter: 1)
        }
    }
}
