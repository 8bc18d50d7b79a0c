import ArgumentParser
import PredicateLanguage
import RelayModel

/// A dialect in which the conditions of a workload are written.
enum WorkloadDialect: String, ExpressibleByArgument, CaseIterable {
    case nspredicate
    case ckquery
    case rql
    case `where`
}

/// Writes the conditions of a workload in a dialect, and parses them as a save does.
struct DialectWriter {
    typealias Node = RecordPredicate.Node

    let dialect: WorkloadDialect

    /// Returns whether the dialect can express the shape.
    func says(_ shape: WorkloadShape) -> Bool {
        switch dialect {
        case .nspredicate, .rql: true
        // There is no OR in CloudKit's queries, and no BEGINSWITH in Minapp's subscriptions.
        case .ckquery: shape != .e
        case .where: shape != .f
        }
    }

    /// Returns the condition as parsed from the dialect; `nil` if the dialect cannot express it.
    func predicate(_ node: Node) -> RecordPredicate? {
        switch dialect {
        case .nspredicate: return RecordPredicate(node)
        case .ckquery:
            let text = RecordPredicate(node).canonicalText
            return try? RecordPredicate.parse(.string(text), dialect: .ckquery)
        case .rql: return query(node).flatMap { try? RecordPredicate(rql: $0) }
        case .where: return condition(node).flatMap { try? RecordPredicate(where: $0) }
        }
    }

    // MARK: Realm

    private func query(_ node: Node) -> String? {
        switch node {
        case .and(let nodes): joined(nodes, " AND ")
        case .or(let nodes): joined(nodes, " OR ")
        case .comparison(let comparison): query(comparison)
        case .not, .constant: nil
        }
    }

    private func joined(_ nodes: [Node], _ word: String) -> String? {
        let parts = nodes.compactMap(query)
        guard parts.count == nodes.count else { return nil }
        return "(" + parts.joined(separator: word) + ")"
    }

    private func query(_ comparison: RecordPredicate.Comparison) -> String? {
        guard case .path(let path) = comparison.left, let field = path.fieldName,
            let value = comparison.right.literal
        else { return nil }
        // In Realm CONTAINS applies to texts only; ANY asks for an element of a list.
        if comparison.comparator == .contains {
            return literal(value).map { "ANY \(field) == \($0)" }
        }
        guard case .list(let values) = value else {
            return literal(value).map { "\(field) \(comparison.comparator.rawValue) \($0)" }
        }
        let literals = values.compactMap(literal)
        guard literals.count == values.count else { return nil }
        return "\(field) IN {" + literals.joined(separator: ", ") + "}"
    }

    /// Writes a literal, without escapes: the texts of workloads are letters and digits.
    private func literal(_ value: FieldValue) -> String? {
        switch value {
        case .string(let text): "'\(text)'"
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        case .bool(let flag): flag ? "TRUE" : "FALSE"
        default: nil
        }
    }

    // MARK: Minapp

    private func condition(_ node: Node) -> JSONValue? {
        switch node {
        case .and(let nodes): joined(nodes, "$and")
        case .or(let nodes): joined(nodes, "$or")
        case .comparison(let comparison): condition(comparison)
        case .not, .constant: nil
        }
    }

    private func joined(_ nodes: [Node], _ word: String) -> JSONValue? {
        let parts = nodes.compactMap(condition)
        return parts.count == nodes.count ? [word: .array(parts)] : nil
    }

    private func condition(_ comparison: RecordPredicate.Comparison) -> JSONValue? {
        guard case .path(let path) = comparison.left, let field = path.fieldName,
            let value = comparison.right.literal
        else { return nil }
        switch (comparison.comparator, value) {
        case (.in, .list(let values)):
            return ["$or": .array(values.compactMap { compared(field, "$eq", $0) })]
        case (.contains, _): return compared(field, "$eq", value)
        default:
            return Self.words[comparison.comparator].flatMap { compared(field, $0, value) }
        }
    }

    private func compared(_ field: String, _ word: String, _ value: FieldValue) -> JSONValue? {
        self.value(value).map { [field: [word: $0]] }
    }

    private static let words: [RecordPredicate.Comparator: String] = [
        .equal: "$eq", .notEqual: "$ne", .less: "$lt", .lessOrEqual: "$lte", .greater: "$gt",
        .greaterOrEqual: "$gte",
    ]

    private func value(_ value: FieldValue) -> JSONValue? {
        switch value {
        case .string(let text): .string(text)
        case .integer(let number): .integer(number)
        case .double(let number): .number(number)
        case .bool(let flag): .bool(flag)
        default: nil
        }
    }
}
