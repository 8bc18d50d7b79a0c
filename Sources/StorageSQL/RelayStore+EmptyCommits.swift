extension RelayStore {
    /// Makes a commit that changes nothing.
    ///
    /// Everything written before is in earlier commits.
    ///
    /// - Throws: ``Storage/StorageError`` if nothing can be written.
    package func commitNothing() async throws {
        try await write { commit in
            try commit.db.execute(sql: "UPDATE store SET identity = identity")
        }
    }
}
