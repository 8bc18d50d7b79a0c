import Storage

extension RelayStore {
    /// Why every change would be refused for want of room; `nil` if there is some.
    ///
    /// The file system is asked, and what the last appends ended with: a quota, or a disk that has
    /// less than it says, shows in nothing else.
    package var shortage: String? {
        engine.shortage ?? (gate.lacksRoom ? "the disk is full" : nil)
    }

    /// Looks whether there is room again where there was none, by writing something small that
    /// changes nothing: whoever asks whether the relay is ready may send no changes until it is.
    ///
    /// - Throws: ``StorageError`` of every other kind than want of room.
    package func feelForRoom() async throws {
        guard gate.lacksRoom else { return }
        do {
            try await write { commit in
                try commit.db.execute(sql: "UPDATE store SET identity = identity")
            }
            gate.noteRoom()
        } catch StorageError.noRoom {
            // There is none still.
        }
    }
}
