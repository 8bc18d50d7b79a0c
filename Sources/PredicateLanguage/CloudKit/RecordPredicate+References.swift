public import RelayModel

extension RecordPredicate {
    /// Returns the predicate in the form in which it applies to the records of a database:
    /// references have the one form in which records hold them, and comparisons of a record or a
    /// user use the system field of the right type.
    ///
    /// CloudKit's clients write a record or a user as a text or as a reference, with either of its
    /// system fields: `recordID == "x"` means the name, and `createdUserRecordName == {recordName}`
    /// means the user. A search of `allTokens` becomes a search of the whole record, which has no
    /// field of that name. Where a comparison has its constants first, the field is moved to the
    /// front if the meaning stays the same.
    ///
    /// - Parameter owner: the user whose name as the owner of a zone is redundant and is removed.
    ///   It is `nil` in databases that imply no owner.
    /// - Returns: The predicate to evaluate on records.
    public func meant(implying owner: UserID?) -> RecordPredicate {
        RecordPredicate(ReferenceFitting(owner: owner).fitted(root))
    }
}

/// Rewrites references into the form that records hold.
private struct ReferenceFitting {
    typealias Node = RecordPredicate.Node
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression

    let owner: UserID?

    func fitted(_ node: Node) -> Node {
        switch node {
        case .constant: node
        case .comparison(let comparison):
            if let turned = comparison.fieldFirst {
                fitted(turned)
            } else {
                .comparison(fitted(comparison))
            }
        case .and(let nodes): .and(nodes.map(fitted))
        case .or(let nodes): .or(nodes.map(fitted))
        case .not(let inner): .not(fitted(inner))
        }
    }

    private func fitted(_ comparison: Comparison) -> Comparison {
        var copy = comparison
        copy.left = comparison.searchesAllTokens ? .record : fitted(comparison.left)
        copy.right = fitted(comparison.right)
        guard comparison.quantifier == nil, comparison.rightQuantifier == nil else { return copy }
        if let (field, value) = Self.fitted(copy.left, against: copy.right) {
            (copy.left, copy.right) = (field, value)
        } else if let (field, value) = Self.fitted(copy.right, against: copy.left) {
            (copy.right, copy.left) = (field, value)
        }
        return copy
    }

    // MARK: System fields

    /// Returns the system field that fits a constant of texts or references on the other side, and
    /// that constant.
    ///
    /// Returns `nil` if `side` is not a system field, or `other` not such a constant.
    private static func fitted(
        _ side: Expression, against other: Expression
    ) -> (field: Expression, value: Expression)? {
        guard case .path(var path) = side, let name = path.fieldName,
            let field = SystemField(named: name), let value = other.literal,
            let element = element(of: value)
        else { return nil }
        if field.element != element {
            guard let counterpart = field.counterpart, counterpart.element == element else {
                return nil
            }
            path.components = [.member(counterpart.rawValue)]
        }
        let isUser = field.namesUser && element == .reference
        return (.path(path), isUser ? .constant(value.leadingToUsers) : other)
    }

    /// Returns the common type of a value and its elements if it is a text or a reference, else
    /// `nil`.
    private static func element(of value: FieldValue) -> SchemaFieldType.Element? {
        switch value {
        case .string: return .string
        case .reference: return .reference
        case .list(let values): return common(values)
        case .set(let values): return common(Array(values))
        default: return nil
        }
    }

    private static func common(_ values: [FieldValue]) -> SchemaFieldType.Element? {
        let kinds = Set(values.map(SchemaFieldType.Element.init(of:)))
        guard kinds.count == 1, let kind = kinds.first, kind == .string || kind == .reference
        else { return nil }
        return kind
    }

    // MARK: Expressions

    private func fitted(_ expression: Expression) -> Expression {
        switch expression {
        case .constant(let value): return .constant(value.implying(owner))
        case .variable, .anyKey: return expression
        case .path(let path): return .path(fitted(path))
        case .member(let base, let path): return .member(of: fitted(base), fitted(path))
        case .list(let elements): return .list(elements.map(fitted))
        case .arithmetic(let symbol, let left, let right):
            return .arithmetic(symbol, fitted(left), fitted(right))
        case .negative(let inner): return .negative(fitted(inner))
        case .complement(let inner): return .complement(fitted(inner))
        case .call(let function, let arguments):
            return .call(function, arguments.map(fitted))
        case .cast(let inner, let type): return .cast(fitted(inner), type)
        case .conditional(let node, let yes, let other):
            return .conditional(fitted(node), fitted(yes), fitted(other))
        case .subquery(let list, let variable, let node):
            return .subquery(fitted(list), variable: variable, fitted(node))
        case .assignment(let name, let inner): return .assignment(name, fitted(inner))
        }
    }

    private func fitted(_ path: RecordPredicate.RecordPath) -> RecordPredicate.RecordPath {
        var copy = path
        copy.components = path.components.map { component in
            guard case .element(let index) = component else { return component }
            return .element(fitted(index))
        }
        // `SELF["name"]` is another spelling of a field, and everything known about the field
        // applies.
        if case .element(.constant(.string(let name)))? = copy.components.first {
            copy.components[0] = .member(name)
        }
        return copy
    }
}

extension SystemField {
    /// The field that holds the same record or user as a text instead of a reference, or the
    /// reverse.
    ///
    /// It is `nil` for dates.
    var counterpart: SystemField? {
        switch self {
        case .recordID: .recordName
        case .recordName: .recordID
        case .creator: .creatorName
        case .creatorName: .creator
        case .modifier: .modifierName
        case .modifierName: .modifier
        case .creationDate, .modificationDate: nil
        }
    }

    /// Whether the field holds a user, and not a record or a date.
    var namesUser: Bool {
        switch self {
        case .creator, .creatorName, .modifier, .modifierName: true
        case .recordID, .recordName, .creationDate, .modificationDate: false
        }
    }
}

extension FieldValue {
    /// The value with references to users as records hold them.
    ///
    /// There is only one zone of users, so the owner of the zone is dropped.
    var leadingToUsers: FieldValue {
        switch self {
        case .reference(let reference)
        where reference.recordID.zoneID.zoneName == ZoneID.defaultName:
            .reference(RecordReference(RecordID(recordName: reference.recordID.recordName)))
        case .list(let values): .list(values.map(\.leadingToUsers))
        case .set(let values): .set(Set(values.map(\.leadingToUsers)))
        default: self
        }
    }
}
