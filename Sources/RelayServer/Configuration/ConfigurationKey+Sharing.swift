import Crypto
import RelayModel
import StoragePostgreSQL

extension ConfigurationKey {
    /// Whose a setting is, where several relays have one store.
    enum Sharing: Sendable, Hashable {
        /// Each relay's own: where it listens, what its machine bears, what it keeps for itself.
        case own
        /// The same for all, or the next owner of the store does otherwise than the one before.
        case alike
        /// The same for all, or the next owner sends to where no device listens.
        case required
    }

    /// Whose it is; what is not said to be a relay's own should be alike.
    var sharing: Sharing {
        if name == "apns.url" || Self.gateways.contains(where: { $0.name == name }) {
            return .required
        }
        if name == Self.shards { return .alike }
        let isOwn =
            isSecret || Self.own.contains(name) || Self.ownParts.contains { name.hasPrefix($0) }
        return isOwn ? .own : .alike
    }

    /// What stands for `apns.url` too.
    static let gateways: [(name: String, environment: GatewayEnvironment)] = [
        ("apns.development.url", .development), ("apns.production.url", .production),
    ]

    /// What relays of a service must have alike of what is else each relay's own.
    private static let shards = "nodes.schemas"

    /// Settings of a relay's own, by the beginning of their names.
    static let ownParts = ["tls.", "secrets.", "nodes.", "backup.", "log."]

    /// The others of a relay's own.
    static let own: Set<String> = [
        "http.host", "http.port", "http.metrics", "http.connections", "http.connectionsPerAddress",
        "http.headSeconds", "http.bodySeconds", "http.answerSeconds", "http.idleSeconds",
        "http.bodyMegabytes", "admin.host", "admin.port", "admin.token", "admin.connections",
        "storage.path", "storage.url", "storage.schema", "storage.create",
        "storage.commitMilliseconds", "storage.commitChanges", "storage.walMegabytes",
        "storage.diskReserveMegabytes", "snapshot.minutes", "bounds.walMegabytes",
        "bounds.memoryMegabytes", "apns.caFile", "apns.connections", "apns.proxy", "courier.polls",
        "shutdown.graceSeconds", "queries.readers", "queries.open", "queries.rehearsals",
        "live.connections", "live.hellosPerSecond", "live.memoryMegabytes", "live.readings",
        "live.drainSeconds",
    ]

    /// The longest text that other relays are shown, in bytes: a sentence can hold two of them.
    private static let longestShown = 100

    /// A text that is allowed in the form that all have which mean the same.
    func form(of text: String) -> String {
        let form =
            switch kind {
            case .integer: Int(text).map { "\($0)" } ?? text
            case .list: Self.elements(text).sorted().joined(separator: ", ")
            case .url: RelayConfiguration.withoutSlash(text.lowercased())
            case .text, .longSecret, .choice, .page: text
            }
        guard form.utf8.count > Self.longestShown else { return form }
        let digest = Hexadecimal.encode(SHA256.hash(data: Array(form.utf8)).prefix(8))
        return "a text of \(form.utf8.count) bytes (SHA-256 \(digest)…)"
    }
}

extension ConfigurationValues {
    /// What all relays of a store should have alike, as it is set here.
    func agreed(_ gateway: RelayConfiguration.GatewayAccess) -> AgreedSettings {
        var values: [String: String] = [:]
        for key in ConfigurationKeys.all where key.sharing == .alike {
            values[key.name] = text(of: key).map { key.form(of: $0) } ?? ""
        }
        for (name, environment) in ConfigurationKey.gateways {
            values[name] = gateway.url(of: environment).lowercased()
        }
        return AgreedSettings(values, required: Set(ConfigurationKey.gateways.map(\.name)))
    }
}
