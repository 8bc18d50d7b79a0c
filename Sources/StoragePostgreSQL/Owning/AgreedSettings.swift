import RelayModel

/// The settings of a relay that all relays of a store should have alike, as each shows them to the
/// others.
///
/// What the owner has set holds for all, so that a difference shows when another takes its place.
package struct AgreedSettings: Sendable, Hashable {
    /// What is set by name, empty where nothing is; nothing secret is among them.
    package let values: [String: String]
    /// The names of those without which a relay may not stand by for another.
    private let required: Set<String>

    /// What a relay has set.
    ///
    /// - Parameters:
    ///   - values: By name, each in one form, so that what means the same is the same.
    ///   - required: The names of those without which a relay may not stand by for another.
    package init(_ values: [String: String], required: Set<String> = []) {
        self.values = values
        self.required = required
    }

    /// Reads what another relay has shown; `nil` if it is nothing that one shows.
    init?(stored text: String) {
        guard case .object(let object)? = try? JSONValue(stored: text) else { return nil }
        var values: [String: String] = [:]
        for member in object.members {
            guard case .string(let value) = member.value else { return nil }
            values[member.name] = value
        }
        self.init(values)
    }

    /// What is shown to other relays: the same text for the same settings.
    func storedText() throws(JSONContractError) -> String {
        let members = values.sorted { $0.key < $1.key }
        let object = JSONObject(members.map { ($0.key, .string($0.value)) })
        return try JSONValue.object(object).storedText()
    }

    /// What another relay has set otherwise, by name.
    ///
    /// A setting that only one of them knows is of another version, and no difference.
    package func differences(of other: AgreedSettings) -> [SettingDifference] {
        values.keys.sorted().compactMap { name in
            guard let own = values[name], let theirs = other.values[name], own != theirs else {
                return nil
            }
            return SettingDifference(
                name: name, own: own, theirs: theirs, isRequired: required.contains(name))
        }
    }
}

/// A setting that two relays of a store have set differently.
package struct SettingDifference: Sendable, Hashable, CustomStringConvertible {
    package let name: String
    /// What the relay has set that looks, and what the other has; empty where nothing is set.
    package let own: String
    package let theirs: String
    /// Whether the relay that looks may not stand by for the other.
    let isRequired: Bool

    /// `retention.logHours is 24 there and 720 here`.
    package var description: String {
        "\(name) is \(Self.shown(theirs)) there and \(Self.shown(own)) here"
    }

    /// `retention.logHours is 24, and 720 elsewhere`, for whoever is neither of the two.
    package var comparison: String {
        "\(name) is \(Self.shown(theirs)), and \(Self.shown(own)) elsewhere"
    }

    private static func shown(_ value: String) -> String { value.isEmpty ? "not set" : value }

    /// How many are named; there may be as many as there are settings.
    private static let named = 5

    /// Some of them as `words` says each, in one sentence's part.
    package static func list(
        _ differences: [SettingDifference], _ words: (SettingDifference) -> String
    ) -> String {
        let first = differences.prefix(named).map(words).joined(separator: ", ")
        let rest = differences.count - named
        return rest > 0 ? "\(first), and \(rest) more" : first
    }
}
