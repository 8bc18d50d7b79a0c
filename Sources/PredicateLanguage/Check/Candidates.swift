import RelayModel

/// The few values that a field may have for a comparison to hold.
enum Candidates {
    /// The maximum number of candidate values to try.
    static let most = 100

    /// Returns the values that are equal to `value` under NSPredicate's rules, or in other dialects
    /// for a field of its kind.
    ///
    /// Returns `nil` if there may be values that are not known here.
    static func equal(to value: FieldValue) -> [FieldValue]? {
        switch value {
        case .null, .timestamp, .uuid, .objectID, .bytes: [value]
        case .string(let text): hasOneForm(text) ? [value] : nil
        case .bool(let flag): forms(of: flag ? 1 : 0)
        case .integer(let number): number.magnitude <= 1 << 53 ? forms(of: Double(number)) : nil
        case .double(let number): number.magnitude <= 0x1p53 ? forms(of: number) : nil
        case .reference, .location, .list, .set, .map: nil
        }
    }

    /// Returns all values that are equal to one number.
    private static func forms(of number: Double) -> [FieldValue] {
        var forms: [FieldValue] = [.double(number)]
        if let whole = Int64(exactly: number) { forms.append(.integer(whole)) }
        if number == 0 { forms += [.bool(false), .double(-0.0)] }
        if number == 1 { forms.append(.bool(true)) }
        return forms
    }

    /// Returns whether the texts of a value have no other canonically equivalent form.
    static func isOfOneForm(_ value: FieldValue) -> Bool {
        switch value {
        case .string(let text): hasOneForm(text)
        case .list(let values): values.allSatisfy(isOfOneForm)
        default: true
        }
    }

    /// Returns whether no other text is canonically equivalent to `text`.
    ///
    /// Some ASCII characters have an equivalent: the Kelvin sign, for example, is equivalent to K.
    private static func hasOneForm(_ text: String) -> Bool {
        text.utf8.count <= 1000
            && text.utf8.allSatisfy { $0 < 0x80 && !"K;`".utf8.contains($0) }
    }
}

extension Contradiction {
    /// Returns whether a comparison leaves few values for its field, and none of them satisfies
    /// everything else that is required of this field alone.
    ///
    /// The evaluator itself judges the values, so this code does not repeat the rules of the
    /// operators.
    func leavesNoCandidate(_ nodes: [Node]) -> Bool {
        var asked: [RecordPredicate.RecordPath: [Node]] = [:]
        for node in nodes {
            if let path = Self.onlyField(of: node) { asked[path, default: []].append(node) }
        }
        return asked.contains { path, nodes in
            guard nodes.count > 1, let names = path.memberNames,
                let values = nodes.compactMap(candidates).min(by: { $0.count < $1.count }),
                values.count <= Candidates.most, let size = effort.size(of: nodes),
                effort.allows(size * values.count)
            else { return false }
            // A part that cannot be prepared is skipped.
            let parts = nodes.compactMap { try? PreparedNode($0, preparation) }
            return values.allSatisfy { value in
                var record = value
                for name in names.reversed() { record = .map([name: record]) }
                return parts.contains { part in
                    var evaluation = Evaluation(record: record, variables: [:], now: nil)
                    return evaluation.outcome(of: part) != .true
                }
            }
        }
    }

    /// Returns the field that alone decides on a part of the condition, or `nil` if there is none.
    private static func onlyField(of node: Node) -> RecordPredicate.RecordPath? {
        switch node {
        case .constant: return nil
        case .comparison(let comparison):
            // The check has no regular expression engine for the pattern of MATCHES, which may be
            // the field's value.
            let isJudged = comparison.rules != .firebase && comparison.comparator != .matches
            return isJudged ? field(of: comparison) : nil
        case .not(let inner): return onlyField(of: inner)
        case .and(let nodes), .or(let nodes):
            guard let first = nodes.first.flatMap(onlyField),
                nodes.dropFirst().allSatisfy({ onlyField(of: $0) == first })
            else { return nil }
            return first
        }
    }

    /// Returns the values that the field of a comparison may have for it to hold, or `nil` if they
    /// are not few.
    private func candidates(_ node: Node) -> [FieldValue]? {
        guard case .comparison(let comparison) = node, comparison.quantifier == nil,
            comparison.rightQuantifier == nil, comparison.options.isEmpty,
            let term = Term(comparison)
        else { return nil }
        let wanted: [FieldValue]
        switch (term.comparator, term.value) {
        case (.equal, let value): wanted = [value]
        case (.lessOrEqual, .null), (.greaterOrEqual, .null): wanted = [.null]
        case (.in, .list(let values)) where values.count <= Candidates.most: wanted = values
        default: return nil
        }
        if comparison.rules != .apple {
            guard let kind = kind(of: .path(term.path)),
                wanted.allSatisfy({ Self.isOfKind($0, kind) })
            else { return nil }
        }
        var found: [FieldValue] = []
        for value in wanted {
            guard let equal = Candidates.equal(to: value) else { return nil }
            found += equal
        }
        return found
    }

    /// Returns whether a constant is of the kind of a field with a single value.
    ///
    /// Other dialects than NSPredicate compare some kinds with others.
    private static func isOfKind(_ value: FieldValue, _ kind: RecordSchema.FieldType) -> Bool {
        switch (value, kind) {
        case (.null, _), (.string, .string), (.integer, .integer), (.integer, .double),
            (.double, .integer), (.double, .double), (.bool, .boolean), (.timestamp, .timestamp),
            (.uuid, .uuid), (.objectID, .objectID), (.bytes, .bytes):
            true
        default: false
        }
    }
}
