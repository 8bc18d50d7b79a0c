import ArgumentParser
import Matching
import PredicateLanguage
import RelayModel

/// Makes users with one device each, and deals subscriptions out among them.
struct BenchLoadWriter: Sendable {
    let container: ContainerKey
    let users: Int

    /// Returns the device of a user.
    func device(_ user: Int) throws -> Device {
        let digits = String(user, radix: 16)
        return Device(
            id: try named("device-\(user)"), container: container, owner: try owner(user),
            gatewayEnvironment: .production,
            token: try named(String(repeating: "a", count: 64 - digits.count) + digits))
    }

    /// Returns the name of a user.
    func owner(_ user: Int) throws -> UserID { try named("_\(user)user0123456789abcdef") }

    /// Returns a subscription of one of the users, with the condition of `indexed`.
    func subscription(_ number: Int, _ indexed: IndexedSubscription) throws -> Subscription {
        let condition = indexed.predicate?.canonicalText ?? "TRUEPREDICATE"
        guard let recordType = indexed.recordType else { throw ExitCode.failure }
        var subscription = Subscription(
            id: try named("subscription-\(number)"), container: container, database: .public,
            owner: try owner(number % users),
            scope: .query(
                SubscriptionQuery(
                    recordType: recordType, form: .predicate, source: .string(condition),
                    canonical: condition), zoneID: nil),
            firesOn: indexed.firesOn)
        subscription.notificationInfo.alertLocalizationKey = "NEW_ARTWORK"
        subscription.notificationInfo.alertLocalizationArgs = ["title"]
        subscription.notificationInfo.soundName = "default"
        return subscription
    }

    private func named<Name: ValidatedIdentifier>(_ text: String) throws -> Name {
        guard let name = Name(rawValue: text) else { throw ExitCode.failure }
        return name
    }
}
