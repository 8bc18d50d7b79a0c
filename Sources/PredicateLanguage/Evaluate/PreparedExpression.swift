import RelayModel

/// A ``RecordPredicate/Expression`` whose inner predicates are prepared.
indirect enum PreparedExpression: Sendable {
    case constant(FieldValue)
    /// A path of one plain member, by far the most frequent expression.
    case field(String)
    case path([Step])
    case variable(String)
    case member(of: PreparedExpression, [Step])
    case list([PreparedExpression])
    case arithmetic(RecordPredicate.ArithmeticOperator, PreparedExpression, PreparedExpression)
    case negative(PreparedExpression)
    case complement(PreparedExpression)
    case call(RecordPredicate.Function, [PreparedExpression])
    case cast(PreparedExpression, RecordPredicate.CastType)
    case conditional(PreparedNode, PreparedExpression, PreparedExpression)
    case subquery(PreparedExpression, variable: String, PreparedNode)
    case assignment(String, PreparedExpression)
    case anyKey

    /// One step of a path.
    enum Step: Sendable {
        case member(String)
        case variableMember(String)
        case element(PreparedExpression)
        case first
        case last
        case size
        case every
        case collection(RecordPredicate.CollectionOperator)
    }

    init(
        _ expression: RecordPredicate.Expression, _ preparation: Preparation
    ) throws(PredicateError) {
        switch expression {
        case .constant(let value): self = .constant(value)
        case .path(let path):
            if let name = path.fieldName {
                self = .field(name)
            } else {
                self = .path(try Self.steps(of: path, preparation))
            }
        case .variable(let name): self = .variable(name)
        case .member(let base, let path):
            self = .member(
                of: try PreparedExpression(base, preparation), try Self.steps(of: path, preparation)
            )
        case .list(let elements): self = .list(try Self.prepare(elements, preparation))
        case .arithmetic(let symbol, let left, let right):
            self = .arithmetic(
                symbol, try PreparedExpression(left, preparation),
                try PreparedExpression(right, preparation))
        case .negative(let inner): self = .negative(try PreparedExpression(inner, preparation))
        case .complement(let inner): self = .complement(try PreparedExpression(inner, preparation))
        case .call(let function, let arguments):
            self = .call(function, try Self.prepare(arguments, preparation))
        case .cast(let inner, let type):
            self = .cast(try PreparedExpression(inner, preparation), type)
        case .conditional(let test, let first, let second):
            self = .conditional(
                try PreparedNode(test, preparation), try PreparedExpression(first, preparation),
                try PreparedExpression(second, preparation))
        case .subquery(let list, let variable, let condition):
            self = .subquery(
                try PreparedExpression(list, preparation), variable: variable,
                try PreparedNode(condition, preparation))
        case .assignment(let name, let inner):
            self = .assignment(name, try PreparedExpression(inner, preparation))
        case .anyKey: self = .anyKey
        }
    }

    private static func prepare(
        _ expressions: [RecordPredicate.Expression], _ preparation: Preparation
    ) throws(PredicateError) -> [PreparedExpression] {
        var prepared: [PreparedExpression] = []
        for expression in expressions {
            prepared.append(try PreparedExpression(expression, preparation))
        }
        return prepared
    }

    private static func steps(
        of path: RecordPredicate.RecordPath, _ preparation: Preparation
    ) throws(PredicateError) -> [Step] {
        var steps: [Step] = []
        for component in path.components {
            switch component {
            case .member(let name): steps.append(.member(name))
            case .variableMember(let name): steps.append(.variableMember(name))
            case .element(let index):
                steps.append(.element(try PreparedExpression(index, preparation)))
            case .first: steps.append(.first)
            case .last: steps.append(.last)
            case .size: steps.append(.size)
            case .every: steps.append(.every)
            case .collection(let name): steps.append(.collection(name))
            }
        }
        return steps
    }
}
