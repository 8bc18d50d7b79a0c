import RelayModel

/// The types of expressions.
extension RealmSchemaCheck {
    func type(
        of expression: Expression, _ variables: Variables
    ) throws(PredicateError) -> SideType {
        switch expression {
        case .constant(let value): return constant(value)
        case .list: return SideType(element: .mixed, isList: true)
        case .variable(let name):
            guard let type = variables[name] else { return SideType(element: .mixed) }
            return SideType(element: type)
        case .path(let path):
            if schema.isOpen, !schema.isKnown(path) { return SideType(element: .mixed) }
            try schema.checkSystemPath(path)
            return try walk(path, from: .map(fields))
        case .member(.subquery(let list, let variable, let node), _):
            try checkSubquery(list, variable, node, variables)
            return SideType(element: .integer)
        case .member(let base, let path):
            return try walk(path, from: try type(of: base, variables).element)
        case .arithmetic(_, let left, let right):
            return arithmetic(try number(left, variables), try number(right, variables))
        default: return SideType(element: .mixed)
        }
    }

    private func constant(_ value: FieldValue) -> SideType {
        switch value {
        case .list, .set: SideType(element: .mixed, isList: true, constant: value)
        default: SideType(element: Self.type(of: value), constant: value)
        }
    }

    private static func type(of value: FieldValue) -> FieldType {
        switch value {
        case .bool: .boolean
        case .integer: .integer
        case .double: .double
        case .string: .string
        case .timestamp: .timestamp
        case .bytes: .bytes
        case .reference: .reference
        case .location: .location
        case .uuid: .uuid
        case .objectID: .objectID
        default: .mixed
        }
    }

    /// Returns the type of an operand of arithmetic.
    ///
    /// Throws if it is not a number, because the result would be nil for every record.
    private func number(
        _ operand: Expression, _ variables: Variables
    ) throws(PredicateError) -> SideType {
        let side = try type(of: operand, variables)
        switch side.element {
        case .string, .timestamp, .bytes, .reference, .uuid, .objectID:
            var span = SourceSpan.none
            if case .path(let path) = operand { span = path.span }
            throw failure("arithmetic needs numbers, found \(side.element.word)", at: span)
        case .integer, .double, .boolean, .location, .list, .map, .mixed: return side
        }
    }

    private func arithmetic(_ left: SideType, _ right: SideType) -> SideType {
        let isInteger = left.element == .integer && right.element == .integer
        let isMixed = left.element == .mixed || right.element == .mixed
        return SideType(
            element: isMixed ? .mixed : isInteger ? .integer : .double,
            isList: left.isList || right.isList)
    }

    private func checkSubquery(
        _ list: Expression, _ variable: String, _ node: RecordPredicate.Node,
        _ variables: Variables
    ) throws(PredicateError) {
        let side = try type(of: list, variables)
        var span = SourceSpan.none
        if case .path(let path) = list { span = path.span }
        switch side.element {
        case .map where side.isList, .reference where side.isList, .mixed: break
        default: throw failure("SUBQUERY needs a list of objects", at: span)
        }
        var inner = variables
        inner[variable] = side.element
        try check(node, inner)
    }

    // MARK: Paths

    private func walk(
        _ path: RecordPredicate.RecordPath, from start: FieldType
    ) throws(PredicateError) -> SideType {
        var side = SideType(element: start)
        var rest = path.components[...]
        while let component = rest.popFirst() {
            if case .collection(let symbol) = component {
                try apply(symbol, &rest, to: &side, at: path.span)
            } else if !(rest.isEmpty && measures(component, &side)) {
                try step(component, &side, at: path.span)
            }
        }
        if case .list(let element) = side.element {
            side.isPlainList = !side.isList && !element.isLink && path.components.count == 1
            side.element = element
            side.isList = true
        }
        return side
    }

    private func step(
        _ component: RecordPredicate.RecordPath.Component, _ side: inout SideType,
        at span: SourceSpan
    ) throws(PredicateError) {
        switch component {
        case .member(let name):
            open(&side)
            side.element = try member(name, of: side.element, at: span)
        case .element, .first, .last:
            switch side.element {
            case .list(let element): side.element = element
            case .map, .mixed: side.element = .mixed
            default: throw failure("\(side.element.word) has no elements", at: span)
            }
        case .every:
            open(&side)
            side.isList = true
            if side.element.isLink { side.element = .mixed }
        case .size: try count(&side, at: span)
        case .variableMember, .collection: side.element = .mixed
        }
    }

    /// Applies `length` to a list of texts or binary data, where it is the length of each element.
    ///
    /// Returns `false` if the component means something else.
    private func measures(
        _ component: RecordPredicate.RecordPath.Component, _ side: inout SideType
    ) -> Bool {
        guard case .member(let name) = component, RealmEvaluator.asksLength(name) else {
            return false
        }
        var opened = side
        open(&opened)
        switch opened.element {
        case .string where opened.isList, .bytes where opened.isList:
            side = SideType(element: .integer, isList: true)
            return true
        default: return false
        }
    }

    private func open(_ side: inout SideType) {
        guard case .list(let element) = side.element else { return }
        side.element = element
        side.isList = true
    }

    private func member(
        _ name: String, of type: FieldType, at span: SourceSpan
    ) throws(PredicateError) -> FieldType {
        switch type {
        case .map(let fields?):
            guard let field = fields[name] else {
                let names = fields.filter { $0.value.isQueryable && !$0.key.hasPrefix("___") }
                    .keys.sorted()
                let own = names.filter { RecordSchema.systemFields[$0] == nil }.prefix(20)
                throw PredicateError(
                    .check, "there is no field \(name.prefix(60))", at: span,
                    found: "\(name.prefix(60))",
                    expected: own.isEmpty
                        ? "a queryable field" : "one of \(own.joined(separator: ", "))",
                    hint: NearestWord.to(name, among: names).map { "did you mean \($0)?" })
            }
            guard field.isQueryable else {
                throw PredicateError(
                    .check, "the field \(name.prefix(60)) is not queryable", at: span,
                    found: "`\(name.prefix(60))`", expected: "a queryable field")
            }
            return field.type
        case .map(nil), .mixed, .reference: return .mixed
        default: throw failure("\(type.word) has no fields; found the field \(name)", at: span)
        }
    }

    // MARK: Operators on collections

    private func apply(
        _ symbol: RecordPredicate.CollectionOperator,
        _ rest: inout ArraySlice<RecordPredicate.RecordPath.Component>,
        to side: inout SideType, at span: SourceSpan
    ) throws(PredicateError) {
        switch symbol {
        case .count: try count(&side, at: span)
        case .type:
            open(&side)
            side.named = side.element
            side.element = .string
            side.namesType = true
        case .keys:
            guard !side.element.isScalar else {
                throw failure("\(side.element.word) has no keys", at: span)
            }
            side = SideType(element: .string, isList: true)
        case .values: side = SideType(element: .mixed, isList: true)
        case .sum, .average, .minimum, .maximum:
            try aggregate(symbol, &rest, &side, at: span)
        case .links: try links(&side, at: span)
        default: throw failure("@\(symbol.rawValue) is not an operator of Realm queries", at: span)
        }
    }

    /// Applies `@links`.
    ///
    /// The incoming links of a record are known only if its type has a member `@links`.
    private func links(_ side: inout SideType, at span: SourceSpan) throws(PredicateError) {
        open(&side)
        if case .map(let fields?) = side.element, fields["@links"] == nil {
            throw failure(
                "@links is not available: the records do not list their incoming links", at: span)
        }
        guard side.element.isLink || side.element == .mixed else {
            throw failure("\(side.element.word) has no incoming links", at: span)
        }
        side = SideType(element: .mixed)
    }

    private func count(_ side: inout SideType, at span: SourceSpan) throws(PredicateError) {
        switch side.element {
        case .string, .bytes:
            side = SideType(element: .integer, isList: side.isList)
        case .list, .map, .mixed, .reference: side = SideType(element: .integer)
        default:
            guard side.isList else {
                throw failure("@count counts lists and texts, not \(side.element.word)", at: span)
            }
            side = SideType(element: .integer)
        }
    }

    private func aggregate(
        _ symbol: RecordPredicate.CollectionOperator,
        _ rest: inout ArraySlice<RecordPredicate.RecordPath.Component>,
        _ side: inout SideType, at span: SourceSpan
    ) throws(PredicateError) {
        // A dictionary after a list is aggregated for each object; a list of objects is not.
        let isDictionary = if case .map = side.element { true } else { false }
        open(&side)
        var isKnown = side.isList
        switch side.element {
        case .map, .mixed: isKnown = true
        default: break
        }
        guard isKnown else {
            throw failure("@\(symbol.rawValue) needs a list, found \(side.element.word)", at: span)
        }
        let isOfElements = side.isList && !isDictionary || rest.first != nil
        var element = isOfElements ? side.element : .mixed
        if case .member(let name)? = rest.popFirst() {
            element = try member(name, of: element, at: span)
        }
        let isAllowed =
            switch element {
            case .integer, .double, .mixed: true
            case .timestamp: symbol == .minimum || symbol == .maximum
            default: false
            }
        guard isAllowed else {
            throw failure("@\(symbol.rawValue) is not defined for \(element.word)", at: span)
        }
        side = SideType(element: symbol == .average ? .double : element)
    }
}
