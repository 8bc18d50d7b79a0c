package import RelayModel
package import Storage

extension RelayStore {
    package func endedDevices(among serials: some Sequence<UInt64>) -> Set<UInt64> {
        endedDevices.among(serials)
    }

    package var endedDevicesCount: UInt64 { endedDevices.count }

    package func hasEnded(_ serial: UInt64, since count: UInt64) -> Bool {
        endedDevices.hasEnded(serial, since: count)
    }

    package func withdrawals(
        among deliveries: [OwedDelivery]
    ) async throws -> [DeliveryID: Withdrawal] {
        guard !deliveries.isEmpty else { return [:] }
        let judged = try await read { try Withdrawal.among(deliveries, in: $0) }
        endedDevices.note(heirs: judged.heirs)
        return judged.withdrawals
    }
}
