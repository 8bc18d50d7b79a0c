import StorageSQL

/// The note at the destination that names the owning store.
extension LogShipper {
    private var note: [UInt8] {
        Array("belfry-backup 1\nstore \(store.storeIdentity)\n".utf8)
    }

    /// Returns whether the note is there; refuses that of another store.
    func isClaimed() async throws -> Bool {
        guard let there = try await destination.get(BackupName.store, atMost: 4096) else {
            return false
        }
        guard there == note else { throw ShippingFailure.foreign(there, destination.place) }
        return true
    }

    /// Writes the note, or verifies the existing one.
    func claim() async throws {
        guard try await !isClaimed() else { return }
        do {
            try await destination.put(BackupName.store, note)
        } catch {
            guard error.kind == .taken else { throw error }
            let there = try await destination.get(BackupName.store, atMost: 4096)
            throw ShippingFailure.foreign(there ?? [], destination.place)
        }
    }
}
