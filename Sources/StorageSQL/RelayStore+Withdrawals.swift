package import RelayModel
package import Storage

extension RelayStore {
    package func endedDevices(among serials: some Sequence<UInt64>) -> Set<UInt64> {
        endedDevices.among(serials)
    }

    package func withdrawals(
        among deliveries: [OwedDelivery]
    ) async throws -> [DeliveryID: Withdrawal] {
        guard !deliveries.isEmpty else { return [:] }
        return try await read { db in
            var withdrawals: [DeliveryID: Withdrawal] = [:]
            for owed in deliveries {
                withdrawals[owed.delivery.id] = try Withdrawal.of(owed, in: db)
            }
            return withdrawals
        }
    }
}
