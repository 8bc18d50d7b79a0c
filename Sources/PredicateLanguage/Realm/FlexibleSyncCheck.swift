import RelayModel

extension RealmQuery {
    /// Checks that the query uses only what Realm's Flexible Sync allows in a subscription.
    ///
    /// Flexible Sync refuses SORT, DISTINCT and LIMIT, aggregates other than `@count` of a list
    /// field, fields of embedded objects and links, and comparisons of two lists. With a schema, it
    /// also refuses fields that are not queryable, and a query that does not compare each indexed
    /// queryable field with constants by `==` or `IN` in a top-level AND. Arithmetic, GEOWITHIN and
    /// TEXT are allowed, because the documentation does not mention them.
    ///
    /// - Throws: ``PredicateError`` of the stage `check`.
    public func checkSubscription(schema: RecordSchema? = nil) throws(PredicateError) {
        guard suffixes.isEmpty else {
            throw PredicateError(
                .check, "SORT, DISTINCT and LIMIT cannot be used in a subscription",
                expected: "a query without suffixes", hint: "remove the suffix")
        }
        try FlexibleSyncCheck(schema: schema).check(predicate.root)
        if let schema {
            try check(against: schema)
            try checkIndexedFields(of: schema)
        }
    }

    /// Checks that a member of the outermost AND compares each indexed queryable field with
    /// constants.
    private func checkIndexedFields(of schema: RecordSchema) throws(PredicateError) {
        let members = predicate.root.joinedByAnd
        let indexed = schema.fields.filter(\.value.isIndexedQueryable).keys.sorted()
        for name in indexed {
            guard members.contains(where: { $0.holdsToConstants(name) }) else {
                throw PredicateError(
                    .check,
                    "\(name) is indexed, but the query does not compare it with constants "
                        + "at its top level",
                    expected: "\(name) == constant or \(name) IN {…}, joined by AND",
                    hint: "\(name) == … AND (\(predicate.canonicalText.prefix(80)))")
            }
        }
    }
}

extension RecordPredicate.Node {
    /// Returns whether this compares the field with constants by `==` or `IN`.
    func holdsToConstants(_ field: String) -> Bool {
        guard case .comparison(let comparison) = self, comparison.quantifier == nil,
            case .path(let path) = comparison.left, path.fieldName == field
        else { return false }
        switch (comparison.comparator, comparison.right) {
        case (.equal, .constant), (.equal, .variable), (.in, .constant), (.in, .variable),
            (.in, .list):
            return true
        default: return false
        }
    }
}

/// Checks single comparisons against the rules of Flexible Sync.
struct FlexibleSyncCheck {
    let schema: RecordSchema?

    func check(_ node: RecordPredicate.Node) throws(PredicateError) {
        switch node {
        case .constant: return
        case .not(let inner): try check(inner)
        case .and(let nodes), .or(let nodes):
            for node in nodes { try check(node) }
        case .comparison(let comparison):
            try check(comparison.left, comparison.span)
            try check(comparison.right, comparison.span)
            try checkLists(comparison)
        }
    }

    private func check(
        _ expression: RecordPredicate.Expression, _ span: SourceSpan
    ) throws(PredicateError) {
        switch expression {
        case .path(let path): try check(path)
        case .member, .subquery:
            throw refusal("SUBQUERY and its @count", span)
        case .arithmetic(_, let left, let right):
            try check(left, span)
            try check(right, span)
        default: return
        }
    }

    private func check(_ path: RecordPredicate.RecordPath) throws(PredicateError) {
        guard case .member(let name)? = path.components.first else {
            throw refusal("a path that does not begin with a field", path.span)
        }
        if let field = schema?.fields[name], !field.isQueryable {
            throw refusal("the field \(name), which is not queryable,", path.span)
        }
        for (index, component) in path.components.enumerated().dropFirst() {
            switch component {
            case .member(let inner):
                throw refusal(
                    "\(inner) inside \(name), a field of an embedded object or link,", path.span)
            case .collection(.count), .size:
                guard index == 1, isList(name) else {
                    throw refusal("@count of anything but a list field", path.span)
                }
            case .collection(let symbol) where symbol != .type && symbol != .keys:
                throw refusal("@\(symbol.rawValue)", path.span)
            default: break
            }
        }
    }

    /// Returns whether a field may be a list.
    ///
    /// Without a schema, every field may be one.
    private func isList(_ name: String) -> Bool {
        switch schema?.fields[name]?.type {
        case nil, .list, .mixed: true
        default: false
        }
    }

    /// Refuses comparisons of two lists, such as `{"a", "b"} IN genres` and
    /// `ANY {…} != ANY genres`.
    private func checkLists(
        _ comparison: RecordPredicate.Comparison
    ) throws(PredicateError) {
        let isListOnLeft = listIsCertain(comparison.left) || comparison.quantifier != nil
        guard isListOnLeft else { return }
        let isListOnRight =
            comparison.comparator == .in || comparison.rightQuantifier != nil
            || listIsCertain(comparison.right)
        guard isListOnRight else { return }
        throw refusal("a comparison of two lists", comparison.span)
    }

    private func listIsCertain(_ expression: RecordPredicate.Expression) -> Bool {
        switch expression {
        case .constant(.list), .list: return true
        case .path(let path):
            guard let name = path.fieldName, case .list? = schema?.fields[name]?.type else {
                return false
            }
            return true
        default: return false
        }
    }

    private func refusal(_ what: String, _ span: SourceSpan) -> PredicateError {
        PredicateError(
            .check, "\(what) cannot be used in a subscription (Realm Flexible Sync)", at: span,
            expected: "fields of the type itself, each compared with constants")
    }
}
