package import RelayModel
package import Storage

extension RelayStore {
    package func quotaUse(of key: ContainerKey) async throws -> QuotaUse {
        try await read { [quotas = settings.quotas] db in
            var use = QuotaUse()
            guard let container = try db.containerIfKnown(key) else { return use }
            let ledger = QuotaLedger(container: container, quotas: quotas, db: db)
            for thing in CountedThing.allCases {
                let amount = try ledger.use(of: thing)
                if let quota = thing.ofContainer.number { use.amounts[quota] = amount.number }
                if let quota = thing.ofContainer.bytes { use.amounts[quota] = amount.bytes }
                if thing == .unkept { use.unkept = amount.number }
            }
            return use
        }
    }

    package var quotas: Quotas { settings.quotas }
}

extension RelayStore {
    /// Runs `body`, and counts a quota that it reached.
    func counted<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch StorageError.overQuota(let refusal) {
            quotaTally.count(refusal.quota)
            throw StorageError.overQuota(refusal)
        }
    }
}
