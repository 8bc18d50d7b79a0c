import RelayModel
import Storage
import Testing

/// The bounds of what is held back for one user, over all of the user's subscriptions and devices.
extension HeldConformance {
    /// Returns a held delivery of the subscription `s` + `number`, one of very many.
    private static func held(
        _ number: Int, _ reason: HoldReason, by bench: Bench
    ) -> Retry {
        var retry = bench.held(UInt64(number), reason)
        retry.delivery.delivery.subscriptionID = Sample.identifier("s\(number)")
        retry.judgedBy = nil
        return retry
    }

    static func rowsOfUser(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let most = Limits.maximumHeldDeliveriesOfUser
        try await bench.hold((1...most).map { held($0, .paused, by: bench) })
        #expect(try await bench.store.nextDigestDue() == nil)
        try await bench.hold([held(most + 1, .quietHours, by: bench)])
        let digests = try await bench.store.dueDigests(at: Sample.moment(1000), limit: 9)
        #expect(digests.map(\.deliveries) == [1])
        // A delivery that already has its row keeps it. A delivery that waits for a connection
        // still gets a row, because it waits only briefly.
        var step = SettledStep(from: .start, to: .start)
        step.retries = [held(1, .quietHours, by: bench)]
        try await bench.store.settle(step)
        try await bench.hold([held(most + 2, .connected, by: bench)])
        #expect(
            try await bench.store.heldCounts() == [
                .paused: most - 1, .quietHours: 2, .connected: 1,
            ])
    }

    static func digestsOfUser(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let most = Limits.maximumHeldDeliveriesOfUser
        try await bench.hold((1...most).map { held($0, .digest, by: bench) })
        // A subscription without a digest joins that of another one. One that has a digest joins
        // its own.
        try await bench.hold([held(most + 1, .digest, by: bench)])
        var again = held(most + 2, .digest, by: bench)
        again.delivery.delivery.subscriptionID = Sample.identifier("s9")
        try await bench.hold([again])
        let digests = try await bench.store.dueDigests(
            at: Sample.moment(1000), limit: most + 10)
        #expect(digests.count == most)
        #expect(digests.count { $0.deliveries == 2 } == 2)
        let own = digests.first {
            $0.newest.delivery.subscriptionID == again.delivery.delivery.subscriptionID
        }
        #expect(own?.deliveries == 2)
        #expect(try await bench.store.heldCounts() == [.digest: most + 2])
    }

    /// A name that begins with a combining mark: as letters, the mark and the character before it
    /// are one.
    static func markedName(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let id: SubscriptionID = Sample.identifier("\u{301}art/works")
        var retry = bench.held(1)
        retry.delivery.delivery.subscriptionID = id
        retry.judgedBy = nil
        try await bench.hold([retry])
        let counts = try await bench.store.held(
            of: Sample.identifier("ann"), in: Sample.container, limit: 9)
        #expect(
            counts == [
                HeldCount(
                    database: .public, subscription: id, device: Sample.identifier("phone"),
                    deliveries: 1)
            ])
    }
}
