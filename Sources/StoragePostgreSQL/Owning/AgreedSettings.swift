import RelayModel

/// The settings of a relay that should be the same in all relays of a store, in the form in which
/// relays publish them.
///
/// The owner's settings apply to the store, so a difference has an effect when another relay
/// becomes the owner.
package struct AgreedSettings: Sendable, Hashable {
    /// The values by name, empty if a setting is not set; none is secret.
    package let values: [String: String]
    /// The names of the settings that must be equal before a relay may stand by for another.
    private let required: Set<String>

    /// Creates the settings of a relay.
    ///
    /// - Parameters:
    ///   - values: The values by name, each in a normal form, so that equal meanings are equal
    ///     texts.
    ///   - required: The names of the settings that must be equal before a relay may stand by for
    ///     another.
    package init(_ values: [String: String], required: Set<String> = []) {
        self.values = values
        self.required = required
    }

    /// Decodes what another relay has published; `nil` if it is not valid.
    init?(stored text: String) {
        guard case .object(let object)? = try? JSONValue(stored: text) else { return nil }
        var values: [String: String] = [:]
        for member in object.members {
            guard case .string(let value) = member.value else { return nil }
            values[member.name] = value
        }
        self.init(values)
    }

    /// Returns the text that is published; equal settings give equal texts.
    func storedText() throws(JSONContractError) -> String {
        let members = values.sorted { $0.key < $1.key }
        let object = JSONObject(members.map { ($0.key, .string($0.value)) })
        return try JSONValue.object(object).storedText()
    }

    /// Returns the settings that another relay has set differently, in the order of their names.
    ///
    /// A setting that only one of them knows belongs to another version, and is not a difference.
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
    /// The value of the relay that compares, and that of the other one; empty if not set.
    package let own: String
    package let theirs: String
    /// Whether the difference keeps the relay that compares from standing by for the other.
    let isRequired: Bool

    /// `retention.logHours is 24 there and 720 here`.
    package var description: String {
        "\(name) is \(Self.shown(theirs)) there and \(Self.shown(own)) here"
    }

    /// `retention.logHours is 24, and 720 elsewhere`, for a reader on neither of the two.
    package var comparison: String {
        "\(name) is \(Self.shown(theirs)), and \(Self.shown(own)) elsewhere"
    }

    private static func shown(_ value: String) -> String { value.isEmpty ? "not set" : value }

    /// The maximum number of differences that a message lists.
    private static let named = 5

    /// Joins the first differences, each worded by `words`, into a part of a sentence.
    package static func list(
        _ differences: [SettingDifference], _ words: (SettingDifference) -> String
    ) -> String {
        let first = differences.prefix(named).map(words).joined(separator: ", ")
        let rest = differences.count - named
        return rest > 0 ? "\(first), and \(rest) more" : first
    }
}
