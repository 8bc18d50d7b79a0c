import Crypto
import RelayModel
import StoragePostgreSQL

extension ConfigurationKey {
    /// Whether relays of one store must have the same value of a setting.
    enum Sharing: Sendable, Hashable {
        /// Each relay has its own value: where it listens, what its machine can bear, its own
        /// files.
        case own
        /// All relays should have the same value; otherwise the next owner of the store behaves
        /// differently.
        case alike
        /// All relays must have the same value; otherwise the next owner sends to a gateway that
        /// does not know the devices.
        case required
    }

    /// How the setting is shared; a setting that is not listed as a relay's own should be alike.
    var sharing: Sharing {
        if name == "apns.url" || Self.gateways.contains(where: { $0.name == name }) {
            return .required
        }
        if name == Self.shards { return .alike }
        let isOwn =
            isSecret || Self.own.contains(name) || Self.ownParts.contains { name.hasPrefix($0) }
        return isOwn ? .own : .alike
    }

    /// The settings that `apns.url` also stands for.
    static let gateways: [(name: String, environment: GatewayEnvironment)] = [
        ("apns.development.url", .development), ("apns.production.url", .production),
    ]

    /// The only setting under `nodes.` that the relays of a service must have alike.
    private static let shards = "nodes.schemas"

    /// The prefixes of settings that each relay has for itself.
    static let ownParts = ["tls.", "secrets.", "nodes.", "backup.", "log."]

    /// The other settings that each relay has for itself.
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

    /// The longest text that other relays are shown, in bytes; a sentence has room for two.
    private static let longestShown = 100

    /// Returns the canonical form of an allowed text, which is equal for texts of the same meaning.
    func form(of text: String) -> String {
        let form =
            switch kind {
            case .integer: Int(text).map { "\($0)" } ?? text
            case .list: Self.elements(text).sorted().joined(separator: ", ")
            case .url: RelayConfiguration.withoutSlash(text.lowercased())
            case .text, .longSecret, .choice, .page, .proxy: text
            }
        guard form.utf8.count > Self.longestShown else { return form }
        let digest = Hexadecimal.encode(SHA256.hash(data: Array(form.utf8)).prefix(8))
        return "a text of \(form.utf8.count) bytes (SHA-256 \(digest)…)"
    }
}

extension ConfigurationValues {
    /// Returns the values that all relays of a store should have alike, as they are set here.
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
