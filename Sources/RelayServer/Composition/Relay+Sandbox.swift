package import RelayModel
package import Storage
import StorageSQL

extension Relay {
    /// Returns the active subscriptions of a container that changes of `recordType` may fire, by
    /// ascending serial, and whether the list is complete.
    ///
    /// It returns at most `most` subscriptions, and looks at a limited number (5000) of the
    /// container's subscriptions.
    package func subscriptions(
        to recordType: RecordType, in container: ContainerKey, most: Int
    ) async throws -> (versions: [SubscriptionVersion], areAll: Bool) {
        var found: [SubscriptionVersion] = []
        var serial: UInt64 = 0
        for _ in 0..<Self.pagesLookedThrough {
            let page = try await store.subscriptionPage(
                of: container, user: nil, after: serial, PageBounds(rows: 500))
            for version in page.elements {
                let asked = version.subscription.recordType
                guard asked == nil || asked == recordType else { continue }
                guard found.count < most else { return (found, false) }
                found.append(version)
            }
            guard page.hasMore, let last = page.elements.last else { return (found, true) }
            serial = last.serial
        }
        return (found, false)
    }

    private static let pagesLookedThrough = 10
}
