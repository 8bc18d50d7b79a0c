import Storage

extension RelayStore {
    /// The reason why every change would be refused for lack of space; `nil` if there is enough.
    ///
    /// It considers the file system and the result of the latest appends, because a disk quota, or
    /// a disk with less space than it reports, shows only there.
    package var shortage: String? {
        engine.shortage ?? (gate.lacksRoom ? "the disk is full" : nil)
    }

    /// Checks whether there is space again after a shortage, by a small write that changes nothing.
    ///
    /// A caller that waits for the relay to be ready may send no changes until then, so appends
    /// alone would not find out.
    ///
    /// - Throws: Any ``StorageError`` except that there is no space.
    package func feelForRoom() async throws {
        guard gate.lacksRoom else { return }
        do {
            try await write { commit in
                try commit.db.execute(sql: "UPDATE store SET identity = identity")
            }
            gate.noteRoom()
        } catch StorageError.noRoom {
            // There is still no space.
        }
    }
}
