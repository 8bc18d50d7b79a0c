import RelayModel

extension RecordPredicate {
    /// Apple's canonical text of the predicate, in which arguments are replaced by their values.
    ///
    /// Predicates with the same text are equal, and parsing the text results in an equal predicate.
    /// The cost is linear in the length of the text.
    public var canonicalText: String {
        var printer = FormatPrinter()
        printer.print(root)
        return printer.output
    }

    /// The ranges of the comparisons in the canonical text, from left to right, in UTF-8 bytes.
    ///
    /// A comparison inside another one is part of that range.
    package var comparisonPlaces: [Range<Int>] {
        var printer = FormatPrinter()
        printer.places = []
        printer.print(root)
        return printer.places ?? []
    }
}

extension RecordPredicate.Comparison {
    /// The canonical text of this one comparison.
    public var canonicalText: String {
        var printer = FormatPrinter()
        printer.print(self)
        return printer.output
    }
}

extension RecordPredicate.Expression {
    /// The canonical text of this one expression.
    public var canonicalText: String {
        var printer = FormatPrinter()
        printer.print(self)
        return printer.output
    }
}

/// Writes predicates in Apple's canonical form.
struct FormatPrinter {
    /// The text written so far.
    var output = ""
    /// The rules of the comparison that is being written.
    ///
    /// Apple's rules write booleans as numbers, others as words.
    var rules = RecordPredicate.RuleSet.apple
    /// The ranges of the comparisons written so far, if they are wanted.
    var places: [Range<Int>]?
    /// The number of comparisons around the current one.
    var depth = 0

    static func text(of value: FieldValue) -> String {
        var printer = FormatPrinter()
        printer.print(value)
        return printer.output
    }

    mutating func print(_ node: RecordPredicate.Node) {
        switch node {
        case .constant(true): output += "TRUEPREDICATE"
        case .constant(false): output += "FALSEPREDICATE"
        case .comparison(let comparison):
            let start = output.utf8.count
            depth += 1
            print(comparison)
            depth -= 1
            if depth == 0 { places?.append(start..<output.utf8.count) }
        case .and(let nodes): join(nodes, " AND ")
        case .or(let nodes): join(nodes, " OR ")
        case .not(let inner):
            output += "NOT "
            printOperand(inner)
        }
    }

    private mutating func join(_ nodes: [RecordPredicate.Node], _ separator: String) {
        for (index, node) in nodes.enumerated() {
            if index > 0 { output += separator }
            printOperand(node)
        }
    }

    private mutating func printOperand(_ node: RecordPredicate.Node) {
        switch node {
        case .and, .or:
            output += "("
            print(node)
            output += ")"
        default: print(node)
        }
    }

    mutating func print(_ comparison: RecordPredicate.Comparison) {
        let outer = rules
        rules = comparison.rules
        if let quantifier = comparison.quantifier { output += quantifier.rawValue + " " }
        print(comparison.left)
        output += " " + comparison.comparator.rawValue
        let letters = comparison.options.letters
        if comparison.rules != .apple {
            output += "[\(letters):\(comparison.rules.rawValue)]"
        } else if !letters.isEmpty {
            output += "[\(letters)]"
        }
        output += " "
        if let quantifier = comparison.rightQuantifier { output += quantifier.rawValue + " " }
        print(comparison.right)
        rules = outer
    }

    mutating func print(_ expression: RecordPredicate.Expression) {
        switch expression {
        case .constant(let value): print(value)
        case .path(let path): print(path, fromRecord: true)
        case .variable(let name): output += "$" + name
        case .member(let base, let path):
            printBase(base)
            print(path, fromRecord: false)
        case .list(let elements): printList(elements, "{", "}")
        case .arithmetic(let symbol, let left, let right):
            printArithmeticOperand(left)
            output += " \(symbol.rawValue) "
            printArithmeticOperand(right)
        case .negative(let inner):
            output += "-"
            printArithmeticOperand(inner)
        case .complement(let inner):
            output += "~"
            printArithmeticOperand(inner)
        case .call(let function, let arguments): printList(arguments, function.rawValue + "(", ")")
        case .cast(let inner, let type):
            output += "CAST("
            print(inner)
            output += ", \"\(type.rawValue)\")"
        case .conditional(let test, let first, let second):
            output += "TERNARY("
            print(test)
            output += ", "
            printList([first, second], "", ")")
        case .subquery(let list, let variable, let condition):
            output += "SUBQUERY("
            print(list)
            output += ", $\(variable), "
            print(condition)
            output += ")"
        case .assignment(let name, let inner):
            output += "($\(name) := "
            print(inner)
            output += ")"
        case .anyKey: output += "ANYKEY"
        }
    }

    private mutating func printList(
        _ elements: [RecordPredicate.Expression], _ open: String, _ close: String
    ) {
        output += open
        for (index, element) in elements.enumerated() {
            if index > 0 { output += ", " }
            print(element)
        }
        output += close
    }

    private mutating func printArithmeticOperand(_ operand: RecordPredicate.Expression) {
        if case .arithmetic = operand {
            output += "("
            print(operand)
            output += ")"
        } else {
            print(operand)
        }
    }

    /// Writes the expression to which a path is applied.
    private mutating func printBase(_ base: RecordPredicate.Expression) {
        switch base {
        case .arithmetic, .negative, .complement, .constant(.integer), .constant(.double):
            output += "("
            print(base)
            output += ")"
        default: print(base)
        }
    }

    private mutating func print(_ path: RecordPredicate.RecordPath, fromRecord: Bool) {
        var components = path.components[...]
        if fromRecord {
            if case .member(let name)? = components.first {
                printKey(name, isFirst: true)
                components = components.dropFirst()
            } else {
                output += "SELF"
            }
        }
        for component in components { print(component) }
    }

    private mutating func print(_ component: RecordPredicate.RecordPath.Component) {
        switch component {
        case .member(let name):
            output += "."
            printKey(name, isFirst: false)
        case .variableMember(let name): output += ".$" + name
        case .element(let index):
            output += "["
            if case .path(let path) = index, let name = path.fieldName,
                ["FIRST", "LAST", "SIZE"].contains(name.uppercased())
            {
                output += "#"
            }
            print(index)
            output += "]"
        case .first: output += "[FIRST]"
        case .last: output += "[LAST]"
        case .size: output += "[SIZE]"
        case .every: output += "[*]"
        case .collection(let name): output += ".@" + name.rawValue
        }
    }

    /// Writes a key without a prefix if it can only be read as a key, else after `#`.
    private mutating func printKey(_ name: String, isFirst: Bool) {
        if name.utf8.first == UInt8(ascii: "@") {
            let word = String(name.dropFirst())
            if Identifiers.isIdentifier(word),
                RecordPredicate.CollectionOperator(rawValue: word) == nil,
                FormatWords.operatorMeant(by: word) == nil
            {
                output += name
                return
            }
        }
        guard Identifiers.isIdentifier(name), name.uppercased() != "UTI" else {
            output += "#"
            printText(name)
            return
        }
        if isFirst, FormatWords.reserved.contains(name.uppercased()) { output += "#" }
        output += name
    }
}
