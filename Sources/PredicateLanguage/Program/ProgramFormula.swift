import RelayModel

/// Two numeric expressions to compare, in postfix order.
///
/// The last two numbers on the stack are the two sides.
struct ProgramFormula: Sendable {
    /// One instruction.
    enum Item: Sendable {
        case field(Int32)
        case integer(Int64)
        case double(Double)
        case apply(RecordPredicate.ArithmeticOperator)
        case negate
    }

    /// The maximum height of the stack.
    ///
    /// The evaluator handles expressions that need more.
    static let maximumHeight = 8

    private let items: [Item]

    /// Creates a formula of two expressions, or returns `nil` if they contain anything but numbers,
    /// fields and basic arithmetic.
    init?(
        _ left: PreparedExpression, _ right: PreparedExpression,
        place: (RecordPredicate.RecordPath) -> Int32?
    ) {
        var items: [Item] = []
        guard let first = Self.append(left, to: &items, place),
            let second = Self.append(right, to: &items, place),
            max(first, second + 1) <= Self.maximumHeight
        else { return nil }
        self.items = items
    }

    /// Appends an expression, and returns the stack height that it needs.
    private static func append(
        _ expression: PreparedExpression, to items: inout [Item],
        _ place: (RecordPredicate.RecordPath) -> Int32?
    ) -> Int? {
        switch expression {
        case .constant(.integer(let number)): items.append(.integer(number))
        case .constant(.double(let number)): items.append(.double(number))
        case .field(let name):
            guard let place = place(RecordPredicate.RecordPath([.member(name)])) else { return nil }
            items.append(.field(place))
        case .negative(let inner):
            let height = append(inner, to: &items, place)
            items.append(.negate)
            return height
        case .arithmetic(let symbol, let left, let right):
            switch symbol {
            case .add, .subtract, .multiply, .divide: break
            default: return nil
            }
            guard let first = append(left, to: &items, place),
                let second = append(right, to: &items, place)
            else { return nil }
            items.append(.apply(symbol))
            return max(first, second + 1)
        default: return nil
        }
        return 1
    }

    /// Computes and compares the two sides.
    ///
    /// Returns `unsure` if a value is not a number, or a result is an error.
    @inline(__always)
    func judge(_ order: ProgramOrder, _ value: (Int32) -> FieldValue?) -> ProgramVerdict {
        var stack = InlineArray<8, Number>(repeating: .integer(0))
        var height = 0
        for item in items {
            switch item {
            case .integer(let number): stack[height] = .integer(number)
            case .double(let number): stack[height] = .double(number)
            case .field(let place):
                switch value(place) {
                case .integer(let number)?: stack[height] = .integer(number)
                case .double(let number)?: stack[height] = .double(number)
                default: return .unsure
                }
            case .negate:
                guard let number = Self.negated(stack[height - 1]) else { return .unsure }
                stack[height - 1] = number
                continue
            case .apply(let symbol):
                guard let number = Self.apply(symbol, stack[height - 2], stack[height - 1])
                else { return .unsure }
                height -= 1
                stack[height - 1] = number
                continue
            }
            height += 1
        }
        return order.accepts(Number.order(stack[0], stack[1]))
    }

    private static func negated(_ number: Number) -> Number? {
        switch number {
        case .integer(let integer): integer == .min ? nil : .integer(-integer)
        case .double(let double): .double(-double)
        }
    }

    /// Returns the result, or `nil` if an integer operation overflows or divides by zero.
    @inline(__always)
    private static func apply(
        _ symbol: RecordPredicate.ArithmeticOperator, _ left: Number, _ right: Number
    ) -> Number? {
        guard case .integer(let a) = left, case .integer(let b) = right else {
            let (a, b) = (left.double, right.double)
            switch symbol {
            case .add: return .double(a + b)
            case .subtract: return .double(a - b)
            case .multiply: return .double(a * b)
            default: return .double(a / b)
            }
        }
        let result: (partialValue: Int64, overflow: Bool)
        switch symbol {
        case .add: result = a.addingReportingOverflow(b)
        case .subtract: result = a.subtractingReportingOverflow(b)
        case .multiply: result = a.multipliedReportingOverflow(by: b)
        default: result = a.dividedReportingOverflow(by: b)
        }
        return result.overflow ? nil : .integer(result.partialValue)
    }
}
