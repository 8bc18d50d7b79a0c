extension RelayStore {
    /// Makes a commit that changes nothing; all that was written before is in those before it.
    ///
    /// - Throws: ``Storage/StorageError`` if nothing can be written.
    package func commitNothing() async throws {
        try await write { commit in
            try commit.db.execute(sql: "UPDATE store SET identity = identity")
        }
    }
}
