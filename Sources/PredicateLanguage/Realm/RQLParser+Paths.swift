import RelayModel

/// Parsing of paths and subqueries.
extension RQLParser {
    typealias Component = RecordPredicate.RecordPath.Component

    /// Reads a path, with the operators that may end it.
    mutating func path() throws(PredicateError) -> Operand {
        let start = current
        var root = try pathRoot()
        while try nextComponent(of: &root) {}
        let span = SourceSpan(offset: start.offset, length: lastEnd - start.offset)
        var operand = operand(expression(root, span: span), from: start, shape: .path)
        operand.span = span
        return operand
    }

    /// A path while it is being read.
    struct PathDraft {
        var variable: String?
        var components: [Component] = []
        /// Whether an operator has ended the path.
        var isComplete = false
        /// Whether one plain member may still follow, as in `@min.price`.
        var takesOneMember = false
    }

    private mutating func pathRoot() throws(PredicateError) -> PathDraft {
        var draft = PathDraft()
        switch current.kind {
        case .keyPathArgument:
            draft.components = try keyPathArgument()
            draft.variable = variables.last?.name
        case .member(.links):
            draft.components = [.collection(.links)]
            draft.variable = variables.last?.name
            advance()
        default:
            guard let name = memberName(current) else {
                throw unexpected(expected: "a path or a constant")
            }
            advance()
            if let variable = variable(written: name) {
                draft.variable = variable
            } else {
                draft.variable = variables.last?.name
                draft.components = name == "self" ? [] : [.member(name)]
            }
        }
        return draft
    }

    /// Returns the name of the variable in the tree, or `nil` if `name` is not a variable.
    ///
    /// A `$name` that no subquery introduces becomes a variable without a value, if the canonical
    /// text can contain its name.
    private func variable(written name: String) -> String? {
        guard name.hasPrefix("$"), name.utf8.count > 1 else { return nil }
        if let known = variables.last(where: { $0.written == name }) { return known.name }
        let bare = String(name.dropFirst())
        return Identifiers.isIdentifier(bare) ? bare : nil
    }

    /// Returns the name of a property, if the token can be one.
    private func memberName(_ token: RQLToken) -> String? {
        switch token.kind {
        case .name(let name): name
        case .keyword(let keyword) where keyword.mayBeName: spelling(of: token)
        default: nil
        }
    }

    private func expression(_ draft: PathDraft, span: SourceSpan) -> Expression {
        let path = RecordPredicate.RecordPath(draft.components, span: span)
        guard let variable = draft.variable else { return .path(path) }
        return draft.components.isEmpty
            ? .variable(variable) : .member(of: .variable(variable), path)
    }

    /// Reads one more component, if there is one.
    private mutating func nextComponent(
        of draft: inout PathDraft
    ) throws(PredicateError) -> Bool {
        if draft.isComplete { return false }
        if current.kind == .symbol(.openBracket), !draft.takesOneMember {
            try index(of: &draft)
            return true
        }
        guard current.kind == .symbol(.dot) else { return false }
        advance()
        if let name = memberName(current) {
            draft.components.append(.member(name))
            draft.isComplete = draft.takesOneMember
        } else if case .keyPathArgument = current.kind, !draft.takesOneMember {
            draft.components += try keyPathArgument()
            return true
        } else if case .member(let member) = current.kind, !draft.takesOneMember {
            append(member, to: &draft)
        } else {
            throw unexpected(expected: "the name of a property")
        }
        advance()
        return true
    }

    private func append(_ member: RQLMember, to draft: inout PathDraft) {
        switch member {
        case .count, .size: draft.components.append(.collection(.count))
        case .minimum: draft.components.append(.collection(.minimum))
        case .maximum: draft.components.append(.collection(.maximum))
        case .sum: draft.components.append(.collection(.sum))
        case .average: draft.components.append(.collection(.average))
        case .links: draft.components.append(.collection(.links))
        case .type: draft.components.append(.collection(.type))
        case .keys: draft.components.append(.collection(.keys))
        case .values: draft.components.append(.collection(.values))
        }
        switch member {
        case .count, .size, .type: draft.isComplete = true
        case .minimum, .maximum, .sum, .average: draft.takesOneMember = true
        case .links, .keys, .values: break
        }
    }

    private mutating func index(of draft: inout PathDraft) throws(PredicateError) {
        advance()
        switch current.kind {
        case .keyword(.first): draft.components.append(.first)
        case .keyword(.last): draft.components.append(.last)
        case .keyword(.size):
            draft.components.append(.size)
            draft.isComplete = true
        case .symbol(.asterisk): draft.components.append(.every)
        case .constant(let value, isNatural: true):
            draft.components.append(.element(.constant(value)))
        case .constant(.string(let key), _):
            draft.components.append(.element(.constant(.string(key))))
        case .argument:
            draft.components.append(.element(try argument()))
            try expect(.closeBracket)
            return
        default:
            throw unexpected(expected: "an index: a number, FIRST, LAST, SIZE, *, a key or $n")
        }
        advance()
        try expect(.closeBracket)
    }

    /// Reads `$Kn`, and returns the components of the key path that is its argument.
    private mutating func keyPathArgument() throws(PredicateError) -> [Component] {
        guard case .keyPathArgument(let number) = current.kind else {
            throw unexpected(expected: "a key path argument such as $K0")
        }
        let token = current
        advance()
        if arguments.isEmpty { return [.variableMember("K\(number)")] }
        guard number < arguments.count else { throw missingArgument(token) }
        guard case .string(let path) = arguments[number], !path.isEmpty else {
            throw PredicateError(
                .check,
                "a key path must be a text, but \(spelling(of: token)) is "
                    + arguments[number].kind, at: span(of: token),
                expected: "a text such as address.city")
        }
        try room.name(number, arguments[number], at: span(of: token))
        return path.split(separator: ".", omittingEmptySubsequences: false)
            .map { .member(String($0)) }
    }

    // MARK: Subqueries

    /// Reads `SUBQUERY(path, $name, query).@count`.
    mutating func subquery() throws(PredicateError) -> Operand {
        let start = current
        advance()
        try expect(.openParenthesis)
        try descend()
        defer { depth -= 1 }
        let list = try path()
        try expect(.comma)
        let written = try subqueryVariable()
        try expect(.comma)
        let bare = String(written.dropFirst())
        let variable = Identifiers.isIdentifier(bare) ? bare : "item\(variables.count)"
        variables.append((written, variable))
        defer { variables.removeLast() }
        let node = try query()
        try expect(.closeParenthesis)
        try expect(.dot)
        guard current.kind == .member(.count) || current.kind == .member(.size) else {
            throw unexpected(expected: "@count or @size after SUBQUERY")
        }
        advance()
        let elements = Expression.subquery(list.expression, variable: variable, node)
        let path = RecordPredicate.RecordPath([.collection(.count)])
        return operand(.member(of: elements, path), from: start)
    }

    private mutating func subqueryVariable() throws(PredicateError) -> String {
        guard case .name(let name) = current.kind, name.hasPrefix("$"), name.count > 1 else {
            throw unexpected(expected: "the variable of the subquery, such as $item")
        }
        guard !variables.contains(where: { $0.written == name }) else {
            throw PredicateError(
                .check, "\(name) is already the variable of an outer subquery",
                at: span(of: current), expected: "another name")
        }
        advance()
        return name
    }
}
