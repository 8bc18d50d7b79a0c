import RelayModel

extension RealmQuery {
    /// Checks that the query fits records with the given schema.
    ///
    /// It refuses unknown fields, comparisons of types that can never be compared, quantifiers
    /// before values that are not lists, and aggregates of values that have none.
    ///
    /// - Throws: ``PredicateError`` of the stage `check` at the first such place.
    public func check(against schema: RecordSchema) throws(PredicateError) {
        let check = RealmSchemaCheck(schema: schema)
        try check.check(predicate.root, [:])
        for suffix in suffixes {
            switch suffix {
            case .limit: break
            case .sort(let keys):
                for key in keys { _ = try check.type(of: .path(key.path), [:]) }
            case .distinct(let paths):
                for path in paths { _ = try check.type(of: .path(path), [:]) }
            }
        }
    }
}

/// Checks the comparisons of a Realm query by the types of their sides.
struct RealmSchemaCheck {
    typealias Expression = RecordPredicate.Expression
    typealias Comparison = RecordPredicate.Comparison
    typealias FieldType = RecordSchema.FieldType

    /// The fields of the record, including the system fields.
    let fields: [String: RecordSchema.Field]
    /// The schema of the record type.
    let schema: RecordSchema

    init(schema: RecordSchema) {
        self.schema = schema
        fields = schema.fields.merging(
            RecordSchema.systemFields.mapValues { RecordSchema.Field($0) }
        ) { own, _ in own }
    }

    /// The properties of one side that are known without a record.
    struct SideType {
        /// The type of the value, or of the elements of a list.
        var element: FieldType
        /// Whether the side is a list.
        var isList = false
        /// Whether the side is a list property of plain values, without any operator.
        var isPlainList = false
        /// The value, if the side is a constant.
        var constant: FieldValue?
        /// Whether the side is a path that ends in `@type`.
        var namesType = false
        /// The type of the value to which `@type` is applied, if it is.
        var named: FieldType?
    }

    /// The types of the variables of the enclosing subqueries.
    typealias Variables = [String: FieldType]

    func check(
        _ node: RecordPredicate.Node, _ variables: Variables
    ) throws(PredicateError) {
        switch node {
        case .constant: return
        case .not(let inner): try check(inner, variables)
        case .and(let nodes), .or(let nodes):
            for node in nodes { try check(node, variables) }
        case .comparison(let comparison): try check(comparison, variables)
        }
    }

    func check(
        _ comparison: Comparison, _ variables: Variables
    ) throws(PredicateError) {
        let left = try type(of: comparison.left, variables)
        let right = try typeOfRight(comparison, variables)
        let span = comparison.span
        if left.constant != nil, right.constant != nil {
            var hint: String?
            if case .string? = left.constant { hint = "write a field name without quotes" }
            throw failure("two constants are compared", at: span, hint: hint)
        }
        try checkQuantifier(comparison.quantifier, left, at: span)
        try checkQuantifier(comparison.rightQuantifier, right, at: span)
        if left.namesType || right.namesType {
            return try checkTypeNames(comparison, left, right)
        }
        try checkShape(comparison, left, right)
        if comparison.comparator.isAboutText {
            try checkText(left, at: span)
            try checkText(right, at: span)
        } else if comparison.comparator == .geoWithin {
            try checkPlace(left, at: span)
        } else if comparison.comparator == .between {
            try checkBounds(left, right, at: span)
        } else {
            try checkKinds(comparison, left, right)
        }
    }

    /// Returns the type of the right side.
    ///
    /// If it fails, the error hints that an unknown word on this side was often meant as a text.
    private func typeOfRight(
        _ comparison: Comparison, _ variables: Variables
    ) throws(PredicateError) -> SideType {
        do throws(PredicateError) {
            return try type(of: comparison.right, variables)
        } catch {
            guard error.hint == nil, let word = comparison.right.soleName, fields[word] == nil
            else { throw error }
            var told = error
            told.hint = RecordSchema.hintForWord(word)
            throw told
        }
    }

    private func checkQuantifier(
        _ quantifier: RecordPredicate.Quantifier?, _ side: SideType, at span: SourceSpan
    ) throws(PredicateError) {
        guard let quantifier, !side.isList else { return }
        switch side.element {
        case .mixed, .map(nil): return
        default:
            throw failure(
                "\(quantifier.rawValue) needs a list, found \(side.element.word)", at: span)
        }
    }

    private func checkShape(
        _ comparison: Comparison, _ left: SideType, _ right: SideType
    ) throws(PredicateError) {
        let span = comparison.span
        if comparison.comparator == .in, !right.isList, right.element.isScalar {
            throw failure("IN needs a list on its right, found \(right.element.word)", at: span)
        }
        if comparison.comparator == .between, left.isList, comparison.quantifier != .all {
            throw failure("BETWEEN needs a single value, or a list after ALL", at: span)
        }
        if left.isPlainList, right.isPlainList, comparison.quantifier == nil,
            comparison.rightQuantifier == nil
        {
            throw failure("two list properties are compared without a quantifier", at: span)
        }
        for (side, other) in [(left, right), (right, left)]
        where side.isList && side.element.isLink && other.constant == .null {
            throw failure("a list of links is never null; compare its @count", at: span)
        }
    }

    private func checkText(_ side: SideType, at span: SourceSpan) throws(PredicateError) {
        if side.constant == .null { return }
        switch side.element {
        case .string, .bytes, .mixed: return
        default:
            throw failure("the operator needs a text or data, found \(side.element.word)", at: span)
        }
    }

    private func checkBounds(
        _ side: SideType, _ bounds: SideType, at span: SourceSpan
    ) throws(PredicateError) {
        guard case .list(let values)? = bounds.constant else { return }
        for value in values where !value.isNull {
            guard let kind = FieldType(of: value), !side.element.isComparable(with: kind) else {
                continue
            }
            throw failure("\(side.element.word) cannot be compared with \(kind.word)", at: span)
        }
    }

    /// Throws unless a side can be a location: a location, a list of coordinates, or a GeoJSON
    /// object.
    private func checkPlace(_ side: SideType, at span: SourceSpan) throws(PredicateError) {
        switch side.element {
        case .location, .map, .list, .mixed: return
        case .integer where side.isList, .double where side.isList: return
        default: throw failure("GEOWITHIN needs a location, found \(side.element.word)", at: span)
        }
    }

    private func checkKinds(
        _ comparison: Comparison, _ left: SideType, _ right: SideType
    ) throws(PredicateError) {
        let span = comparison.span
        if left.constant == .null || right.constant == .null { return }
        if case .list(let values)? = left.constant {
            return try checkMembers(values, right, comparison)
        }
        if case .list(let values)? = right.constant {
            return try checkMembers(values, left, comparison)
        }
        guard
            left.element.isComparable(with: right.element)
                || isOfRecordName(comparison, left, right)
        else {
            throw failure(
                "\(left.element.word) cannot be compared with \(right.element.word)", at: span,
                hint: Self.hint(left, right))
        }
        for (side, other) in [(left, right), (right, left)] where side.element == .integer {
            guard case .double(let number)? = other.constant, number.isInfinite else { continue }
            throw failure("an integer cannot be compared with infinity", at: span)
        }
    }

    /// Returns a hint on how to write a constant of the field's type.
    private static func hint(_ left: SideType, _ right: SideType) -> String? {
        let side = left.constant == nil ? left : right
        switch (side.element, left.constant ?? right.constant) {
        case (.integer, .string(let text)?), (.double, .string(let text)?):
            return text.utf8.count > 40 || Double(text) == nil
                ? nil : "write a number without quotes: \(text)"
        case (.boolean, .string?), (.boolean, .integer?): return "write a boolean as true or false"
        case (.timestamp, .string?):
            return "write a date without quotes: 2026-01-31@12:00:00"
        case (.reference, .string?): return "write a link as obj(\"Type\", \"name\")"
        default: return nil
        }
    }

    /// Throws if no constant of a list can be compared with the other side.
    ///
    /// One that can be compared is enough, and nil can be compared with everything.
    private func checkMembers(
        _ values: [FieldValue], _ side: SideType, _ comparison: Comparison
    ) throws(PredicateError) {
        for value in values {
            guard let kind = FieldType(of: value), !side.element.isComparable(with: kind),
                !isOfRecordName(comparison, side, SideType(element: kind))
            else { return }
        }
        guard let kind = values.first.flatMap(FieldType.init(of:)) else { return }
        throw failure(
            "\(side.element.word) cannot be compared with \(kind.word)", at: comparison.span)
    }

    /// Returns whether a comparison of a text with a reference is about a system field.
    ///
    /// Clients may name a record or a user either way, whichever type the system field has.
    private func isOfRecordName(
        _ comparison: Comparison, _ left: SideType, _ right: SideType
    ) -> Bool {
        Set([left.element, right.element]) == [.string, .reference]
            && [comparison.left, comparison.right].contains(where: isSystemField)
    }

    private func isSystemField(_ expression: RecordPredicate.Expression) -> Bool {
        guard case .path(let path) = expression, path.components.count == 1,
            case .member(let name)? = path.components.first
        else { return false }
        return schema.fields[name] == nil && RecordSchema.systemFields[name] != nil
    }

    private func checkTypeNames(
        _ comparison: Comparison, _ left: SideType, _ right: SideType
    ) throws(PredicateError) {
        let isMembership = comparison.comparator == .in && right.isList
        guard isMembership || comparison.comparator == .equal || comparison.comparator == .notEqual,
            comparison.options.isEmpty
        else {
            throw failure("@type can be compared by ==, != or IN a list", at: comparison.span)
        }
        for constant in [left.constant, right.constant] {
            guard let constant else { continue }
            for name in constant.elements ?? [constant] {
                if case .string(let text) = name, RealmTypeName(queried: text) != nil { continue }
                let names = RealmTypeName.allCases.map(\.rawValue).joined(separator: ", ")
                throw failure("@type must be one of \(names)", at: comparison.span)
            }
        }
        try checkTypeName(comparison, left, right.constant)
        try checkTypeName(comparison, right, left.constant)
    }

    /// Throws if `@type` is compared with the name of a kind that no value of the field has.
    private func checkTypeName(
        _ comparison: Comparison, _ side: SideType, _ name: FieldValue?
    ) throws(PredicateError) {
        guard comparison.comparator == .equal, let type = side.named,
            [comparison.quantifier, comparison.rightQuantifier]
                .allSatisfy({ $0 == nil || $0 == .any }),
            case .string(let text)? = name, let kind = RealmTypeName(queried: text),
            !kind.mayBe(of: type)
        else { return }
        throw failure("the @type of \(type.word) is never \(kind.rawValue)", at: comparison.span)
    }

    func failure(
        _ reason: String, at span: SourceSpan, hint: String? = nil
    ) -> PredicateError {
        PredicateError(
            .check, reason, at: span, expected: "an expression that fits the types of the fields",
            hint: hint)
    }
}

extension RecordPredicate.Comparator {
    /// Whether both sides must be texts or binary data.
    var isAboutText: Bool {
        switch self {
        case .beginsWith, .endsWith, .contains, .like, .tokenMatches: true
        default: false
        }
    }
}

extension RecordSchema.FieldType {
    /// Whether a value of this type is always a single value.
    var isScalar: Bool {
        switch self {
        case .list, .map, .mixed: false
        default: true
        }
    }

    /// Whether a value of this type represents another object.
    var isLink: Bool {
        switch self {
        case .reference, .map: true
        default: false
        }
    }

    /// Returns whether Realm can compare values of the two types.
    func isComparable(with other: Self) -> Bool {
        switch (self, other) {
        case (.mixed, _), (_, .mixed), (.map, _), (_, .map), (.list, _), (_, .list): true
        case (.integer, .double), (.double, .integer): true
        case (.string, .bytes), (.bytes, .string): true
        default: self == other
        }
    }
}
