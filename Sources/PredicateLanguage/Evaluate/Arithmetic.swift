import RelayModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
    import Glibc
#else
    import Foundation
#endif

/// Arithmetic on values.
///
/// It is exact on integers, and in floating point if one side is a double.
enum Arithmetic {
    typealias Symbol = RecordPredicate.ArithmeticOperator

    static func apply(
        _ symbol: Symbol, _ left: FieldValue, _ right: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        switch symbol {
        case .union, .intersect, .minus: return try Collections.combine(symbol, left, right)
        default: break
        }
        guard let first = Number(left) else {
            throw .wrongKind(operation: "`\(symbol.rawValue)`", found: left.kind)
        }
        guard let second = Number(right) else {
            throw .wrongKind(operation: "`\(symbol.rawValue)`", found: right.kind)
        }
        switch (first, second) {
        case (.integer(let a), .integer(let b)): return try apply(symbol, a, b)
        default: return .double(try apply(symbol, first.double, second.double))
        }
    }

    private static func apply(
        _ symbol: Symbol, _ a: Int64, _ b: Int64
    ) throws(EvaluationError) -> FieldValue {
        switch symbol {
        case .add: return .integer(try checked(a.addingReportingOverflow(b)))
        case .subtract: return .integer(try checked(a.subtractingReportingOverflow(b)))
        case .multiply: return .integer(try checked(a.multipliedReportingOverflow(by: b)))
        case .divide:
            guard b != 0 else { throw .divisionByZero }
            return .integer(try checked(a.dividedReportingOverflow(by: b)))
        case .power: return power(a, b)
        case .bitAnd: return .integer(a & b)
        case .bitOr: return .integer(a | b)
        case .bitXor: return .integer(a ^ b)
        case .shiftLeft: return .integer(a << b)
        case .shiftRight: return .integer(a >> b)
        case .union, .intersect, .minus: throw .wrongKind(operation: symbol.rawValue, found: "")
        }
    }

    private static func checked(
        _ result: (partialValue: Int64, overflow: Bool)
    ) throws(EvaluationError) -> Int64 {
        guard !result.overflow else { throw .overflow }
        return result.partialValue
    }

    /// Returns an integer if it is exact, else a double as `pow` computes it.
    private static func power(_ base: Int64, _ exponent: Int64) -> FieldValue {
        var result: Int64 = 1
        guard (0...64).contains(exponent) else {
            return .double(pow(Double(base), Double(exponent)))
        }
        for _ in 0..<exponent {
            let (product, overflow) = result.multipliedReportingOverflow(by: base)
            guard !overflow else { return .double(pow(Double(base), Double(exponent))) }
            result = product
        }
        return .integer(result)
    }

    private static func apply(
        _ symbol: Symbol, _ a: Double, _ b: Double
    ) throws(EvaluationError) -> Double {
        switch symbol {
        case .add: return a + b
        case .subtract: return a - b
        case .multiply: return a * b
        case .divide: return a / b
        case .power: return pow(a, b)
        default: throw .wrongKind(operation: "`\(symbol.rawValue)`", found: "a fraction")
        }
    }

    /// Computes `-x`.
    static func negate(_ value: FieldValue) throws(EvaluationError) -> FieldValue {
        switch Number(value) {
        case .integer(let number)?:
            return .integer(try checked(Int64(0).subtractingReportingOverflow(number)))
        case .double(let number)?: return .double(-number)
        case nil: throw .wrongKind(operation: "`-`", found: value.kind)
        }
    }

    /// Computes `~x`.
    static func complement(_ value: FieldValue) throws(EvaluationError) -> FieldValue {
        guard case .integer(let number)? = Number(value) else {
            throw .wrongKind(operation: "`~`", found: value.kind)
        }
        return .integer(~number)
    }
}
