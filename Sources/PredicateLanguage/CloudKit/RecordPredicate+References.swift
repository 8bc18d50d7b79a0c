public import RelayModel

extension RecordPredicate {
    /// The predicate as it is meant of records in a database: with references in the one form in
    /// which records hold them, and with records and users as the text or the reference that the
    /// system field beside them holds.
    ///
    /// CloudKit's clients write a record or a user either way, under whichever of its names:
    /// `recordID == "x"` asks for the name, `createdUserRecordName == {recordName}` for the user.
    /// A search of `allTokens` is one of the whole record, which has no field of that name. Of
    /// comparisons whose constants stand first the field does, where that says the same.
    ///
    /// - Parameter owner: whose name as the owner of a zone says no more than none; `nil` in
    ///   databases that imply nobody.
    /// - Returns: The predicate that records satisfy.
    public func meant(implying owner: UserID?) -> RecordPredicate {
        RecordPredicate(ReferenceFitting(owner: owner).fitted(root))
    }
}

/// Brings references into the form that records hold.
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

    /// A system field and what it is compared with, if that is a constant of texts or references.
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

    /// Whether a value is a text or only texts, a reference or only references.
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
        // `SELF["name"]` is a field in another spelling, with all that is known of it.
        if case .element(.constant(.string(let name)))? = copy.components.first {
            copy.components[0] = .member(name)
        }
        return copy
    }
}

extension SystemField {
    /// The field that says the same record or user as a text instead of a reference, or the other
    /// way; `nil` for dates.
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

    /// Whether it says who, and not which record or when.
    var namesUser: Bool {
        switch self {
        case .creator, .creatorName, .modifier, .modifierName: true
        case .recordID, .recordName, .creationDate, .modificationDate: false
        }
    }
}

extension FieldValue {
    /// References to users as records hold them: there is one zone of users, whoever is said to own
    /// it.
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
