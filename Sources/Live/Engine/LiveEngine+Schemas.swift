package import RelayModel

extension LiveEngine {
    /// The schema of a container as of now; it is asked for before the schema is read.
    package func schema(of container: ContainerKey) -> LiveSchema {
        LiveSchema(number: schemas[container, default: 0])
    }

    /// Forgets what was shown of a container: who may see what has changed.
    ///
    /// Whoever stands in its groups is told no more from now on, and has to come again.
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

    /// Refuses what was read under a schema that is another one now.
    func check(_ schema: LiveSchema, of container: ContainerKey) throws(APIError) {
        guard schema == self.schema(of: container) else {
            throw APIError(.tryAgainLater, "the container's schema was changed", retryAfter: 1)
        }
    }
}
