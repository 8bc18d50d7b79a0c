import FoundationEssentials
import PredicateLanguage
package import RelayModel

/// Decides which updates fire the subscriptions that need more than a matching after image.
///
/// Their conditions are filed here a second time and judged on the before image; other
/// subscriptions cost nothing. If the change does not show what the decision needs, the
/// subscription does not fire.
package struct UpdateRules: Sendable {
    private let images: EarlierImages
    private var rules: [UInt64: Rule] = [:]

    /// What one subscription requires of updates.
    package struct Rule: Codable, Sendable {
        let firesWhen: FiresWhen
        let changedKeys: [String]
        /// The fields that the condition reads; `nil` if they cannot be told.
        let fields: Set<String>?

        /// Creates a rule; `fields` is `nil` if it cannot be told which fields the condition reads.
        package init(firesWhen: FiresWhen, changedKeys: [String], fields: Set<String>?) {
            self.firesWhen = firesWhen
            self.changedKeys = changedKeys
            self.fields = fields
        }
    }

    /// Creates empty rules.
    ///
    /// The secret seed protects the index's hashes against collisions made on purpose.
    package init(indexSeed: UInt64) {
        images = EarlierImages(indexSeed: indexSeed)
    }

    /// Whether no subscription needs more than a matching after image.
    package var isEmpty: Bool { rules.isEmpty }

    /// Returns whether a subscription needs more than a matching after image.
    package func narrows(_ serial: UInt64) -> Bool { rules[serial] != nil }

    // MARK: Edits

    /// Files a subscription if it needs more than a matching after image.
    package mutating func insert(_ subscription: Subscription, indexed: IndexedSubscription) {
        let serial = indexed.serial
        guard subscription.narrowsUpdates else { return }
        rules[serial] = Rule(
            firesWhen: subscription.firesWhen, changedKeys: subscription.changedKeys,
            fields: indexed.predicate.map(\.fieldsRead) ?? [])
        guard subscription.firesWhen != .matches else { return }
        images.insert(indexed)
    }

    /// Removes a subscription.
    package mutating func remove(serial: UInt64) {
        guard let rule = rules.removeValue(forKey: serial), rule.firesWhen != .matches else {
            return
        }
        images.remove(serial: serial)
    }

    // MARK: Changes

    /// Removes the matches of an update's after image that the update does not fire, and adds the
    /// subscriptions that it fires by leaving.
    ///
    /// `matches` is in ascending order before and after.
    ///
    /// Conditions for which `mayJudge` does not hold are not evaluated on the before image once
    /// that takes long.
    ///
    /// - Throws: `DearChange` if the before image takes more than `mostSteps`.
    package func apply(
        to change: RecordChange, now: Timestamp, mostSteps: Int,
        among mayJudge: ((UInt64) -> Bool)? = nil, matches: inout [UInt64]
    ) throws(DearChange) {
        guard change.operation == .update, !rules.isEmpty else { return }
        let earlier = try images.serials(
            before: change, now: now, mostSteps: mostSteps, among: mayJudge)
        let later = Set(matches.lazy.filter { rules[$0] != nil })
        var changed = ChangedFields()
        matches.removeAll { serial in
            guard let rule = rules[serial] else { return false }
            return !rule.fires(
                by: change, &changed, didMatch: earlier.contains(serial), doesMatch: true)
        }
        let departed = earlier.subtracting(later).filter {
            rules[$0]?.fires(by: change, &changed, didMatch: true, doesMatch: false) ?? false
        }
        guard !departed.isEmpty else { return }
        matches.append(contentsOf: departed)
        matches.sort()
    }
}

extension UpdateRules.Rule {
    /// Returns whether an update fires the subscription, given the outcome of its condition on both
    /// images.
    package func fires(
        by change: RecordChange, didMatch: Bool, doesMatch: Bool
    ) -> Bool {
        var changed = ChangedFields()
        return fires(by: change, &changed, didMatch: didMatch, doesMatch: doesMatch)
    }

    func fires(
        by change: RecordChange, _ changed: inout ChangedFields, didMatch: Bool, doesMatch: Bool
    ) -> Bool {
        let fits =
            switch firesWhen {
            case .matches: doesMatch
            case .entered: doesMatch && !didMatch && isDecided(by: change, .before)
            case .stayed: doesMatch && didMatch
            case .left: didMatch && !doesMatch && isDecided(by: change, .after)
            }
        guard fits, !changedKeys.isEmpty else { return fits }
        for name in changedKeys where changed.contains(name, by: change) { return true }
        return false
    }

    /// Returns whether an image on which the condition did not hold shows every field that it
    /// reads.
    package func isDecided(by change: RecordChange, _ side: ImageSide) -> Bool {
        guard let image = side == .before ? change.before : change.after else { return false }
        guard let fields else { return image.completeness == .full }
        return fields.allSatisfy { name in
            guard let field = SystemField(named: name) else {
                return image.completeness == .full || image.fields[name] != nil
            }
            // The moment of the change is always known, because the change was at least appended;
            // any moment does here.
            return change.systemValue(field, in: side, at: .earliest) != nil
        }
    }
}

/// The fields to which an update gave other values, determined once for each field.
///
/// Thousands of subscriptions may ask for the same field, which may hold a megabyte or be one of
/// many in a source's list.
struct ChangedFields {
    /// The source's own list as a set, after the first use.
    private var listed: Set<String>?
    private var compared: [String: Bool] = [:]

    mutating func contains(_ name: String, by change: RecordChange) -> Bool {
        if let keys = change.changedKeys {
            let names = listed ?? Set(keys)
            listed = names
            return names.contains(name)
        }
        if let known = compared[name] { return known }
        let isChanged = change.changes(field: name)
        compared[name] = isChanged
        return isChanged
    }
}

extension RecordChange {
    /// Returns whether it is known that the update changed a field's value.
    ///
    /// The source's own list decides if there is one; otherwise the images are compared.
    package func changes(field name: String) -> Bool {
        if let changedKeys { return changedKeys.contains(name) }
        guard let before, let after, before.shows(name), after.shows(name) else { return false }
        return before.fields[name] ?? .null != after.fields[name] ?? .null
    }
}

extension RecordImage {
    /// Returns whether the image shows a field's value, which may be null.
    func shows(_ name: String) -> Bool {
        completeness == .full || fields[name] != nil
    }
}

// MARK: - Snapshots

extension UpdateRules {
    /// Returns the rules as bytes for a snapshot.
    ///
    /// - Throws: An encoder's error, which would be a programming error.
    package func image() throws -> [UInt8] {
        var image = ImageWriter()
        image.append(bytes: try images.index.image())
        image.append(UInt64(rules.count))
        for (serial, rule) in rules {
            image.append(serial)
            image.append(bytes: try JSONEncoder().encode(rule))
        }
        return image.bytes
    }

    /// Creates the rules from a snapshot.
    ///
    /// - Throws: `ImageDamage` if the bytes are not those of ``image()``, or the decoder's error.
    package init(image bytes: [UInt8]) throws {
        var image = ImageReader(bytes)
        images = EarlierImages(try SubscriptionIndex(image: Array(try image.run())))
        for _ in 0..<(try image.count(0...Int(Int32.max))) {
            let serial = try image.word(UInt64.self)
            rules[serial] = try JSONDecoder().decode(Rule.self, from: Data(try image.run()))
        }
        guard image.isAtEnd else { throw ImageDamage("there are bytes after the rules") }
    }
}

extension FiresWhen: Codable {}
