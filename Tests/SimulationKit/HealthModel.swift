import RelayModel
import Storage
import StorageSQL
import StorageSQLite

/// The expected health of subscriptions, computed from what a follower that never crashed reports.
struct HealthModel {
    private var expected: [UInt64: SubscriptionHealth] = [:]

    /// Adds the firings of changes, in the order of the log.
    mutating func add(_ notes: [FiringNote]) {
        for note in notes {
            for serial in note.fired {
                expected[serial, default: SubscriptionHealth()].fired += 1
                expected[serial]?.lastFired = .init(
                    position: note.position, at: note.at, detail: .init())
            }
            for serial in note.errors {
                expected[serial, default: SubscriptionHealth()].errors += 1
                expected[serial]?.lastError = .init(
                    position: note.position, at: note.at, detail: .init())
            }
            for firing in note.unreached {
                expected[firing.serial]?.unreached[firing.reason, default: 0] += 1
                expected[firing.serial]?.lastUnreached = .init(
                    position: note.position, at: note.at, detail: firing.reason)
            }
        }
    }

    /// Returns how the store's health of an active subscription differs from the expected one, or
    /// `nil`.
    ///
    /// It checks both before and after the firings are added up.
    func problem(in store: RelayStore) async throws -> String? {
        let (active, ends) = try await known(in: store)
        for isAddedUp in [false, true] {
            if isAddedUp { while try await store.addUpFirings() {} }
            let told = try await store.health(of: active)
            for serial in active {
                var wanted = expected[serial] ?? SubscriptionHealth()
                wanted.undelivered = ends[serial] ?? 0
                var found = told[serial] ?? SubscriptionHealth()
                guard (found.lastUndelivered == nil) == (wanted.undelivered == 0) else {
                    return "the last end of a delivery of \(serial) is not told"
                }
                found.lastUndelivered = nil
                guard found == wanted else {
                    return "the subscription \(serial) fared \(found), and it was \(wanted)"
                }
            }
        }
        return nil
    }

    private func known(
        in store: RelayStore
    ) async throws -> (active: Set<UInt64>, ends: [UInt64: Int]) {
        var serials: Set<UInt64> = []
        var ends: [UInt64: Int] = [:]
        for container in SimulatedWorld.containers {
            let page = try await store.subscriptionPage(
                of: container, user: nil, after: 0, PageBounds(rows: 100_000))
            serials.formUnion(page.elements.map(\.serial))
            let letters = try await store.deadLetters(of: container, reason: nil, limit: 100_000)
            for letter in letters { ends[letter.delivery.subscriptionSerial, default: 0] += 1 }
        }
        return (serials, ends)
    }
}
