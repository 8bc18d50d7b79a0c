public import RelayModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
    import Glibc
#else
    import Foundation
#endif

/// The built-in functions.
enum Functions {
    typealias Function = RecordPredicate.Function

    /// Calls a function.
    ///
    /// Nil as an argument is an error, but not as an element of a list.
    static func call(
        _ function: Function, _ arguments: [FieldValue]
    ) throws(EvaluationError) -> FieldValue {
        switch function {
        case .sum, .count, .minimum, .maximum, .average, .median, .mode, .standardDeviation:
            return try statistic(function, elements(arguments, function))
        case .modulus: return try remainder(arguments[0], arguments[1])
        case .squareRoot, .logarithm, .naturalLogarithm, .exponential, .floor, .ceiling,
            .absolute, .truncate:
            return try numeric(function, arguments[0])
        case .uppercase, .lowercase, .length: return try textual(function, arguments[0])
        case .noIndex: return arguments[0]
        case .distance: return .double(try distance(arguments[0], arguments[1]))
        case .tokenize:
            guard case .string(let text) = arguments[0] else {
                throw .wrongKind(operation: function.rawValue, found: arguments[0].kind)
            }
            return .list(TokenSearch.words(of: text).map(FieldValue.string))
        case .now: throw .noClock
        case .geoBox, .geoCircle, .geoPolygon:
            throw .wrongKind(
                operation: function.rawValue, found: "a comparison other than GEOWITHIN")
        }
    }

    /// Returns the elements of the only argument if it is a list, else the arguments themselves.
    private static func elements(
        _ arguments: [FieldValue], _ function: Function
    ) throws(EvaluationError) -> [FieldValue] {
        guard arguments.count == 1 else { return arguments }
        switch arguments[0] {
        case .list(let values): return values
        case .set(let values):
            var elements = values.inOrder
            if elements.count > Set<FieldValue>.mostOrdered { elements.putNumbersInOrder() }
            return elements
        case .null: throw .wrongKind(operation: function.rawValue, found: arguments[0].kind)
        default: return arguments
        }
    }

    private static func statistic(
        _ function: Function, _ values: [FieldValue]
    ) throws(EvaluationError) -> FieldValue {
        switch function {
        case .count: return .integer(Int64(values.count))
        case .sum: return try Collections.sum(values)
        case .minimum: return try Collections.extreme(values) { $0 < 0 }
        case .maximum: return try Collections.extreme(values) { $0 > 0 }
        case .average: return try Collections.average(values)
        case .mode: return mode(values)
        default: break
        }
        var numbers: [Double] = []
        for value in values {
            guard let number = Number(value) else {
                throw .wrongKind(operation: function.rawValue, found: value.kind)
            }
            numbers.append(number.double)
        }
        guard !numbers.isEmpty else { return .null }
        return .double(
            function == .median ? median(numbers) : standardDeviation(numbers))
    }

    /// Returns the most frequent values, in the order of their first occurrences.
    private static func mode(_ values: [FieldValue]) -> FieldValue {
        var places: [FieldValue: Int] = [:]
        places.reserveCapacity(values.count)
        var found: [(value: FieldValue, count: Int)] = []
        for value in values {
            // Hashing takes most of the time, so each value is hashed once.
            let place = noted(&places[value.inOneForm, default: found.count])
            if place == found.count { found.append((value, 0)) }
            found[place].count += 1
        }
        let most = found.map(\.count).max() ?? 0
        return .list(found.filter { $0.count == most }.map(\.value))
    }

    /// Returns a place in a dictionary, which holds it from now on.
    private static func noted(_ place: inout Int) -> Int { place }

    private static func median(_ numbers: [Double]) -> Double {
        let sorted = numbers.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2)
            ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    private static func standardDeviation(_ numbers: [Double]) -> Double {
        let mean = numbers.reduce(0, +) / Double(numbers.count)
        let squares = numbers.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
        return (squares / Double(numbers.count)).squareRoot()
    }

    private static func remainder(
        _ left: FieldValue, _ right: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        switch (Number(left), Number(right)) {
        case (.integer(let a)?, .integer(let b)?):
            guard b != 0 else { throw .divisionByZero }
            return .integer(a.remainderReportingOverflow(dividingBy: b).partialValue)
        case (let a?, let b?):
            return .double(a.double.truncatingRemainder(dividingBy: b.double))
        case (nil, _): throw .wrongKind(operation: "modulus:by:", found: left.kind)
        case (_, nil): throw .wrongKind(operation: "modulus:by:", found: right.kind)
        }
    }

    private static func numeric(
        _ function: Function, _ argument: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        guard let number = Number(argument) else {
            throw .wrongKind(operation: function.rawValue, found: argument.kind)
        }
        switch (function, number) {
        case (.floor, .integer), (.ceiling, .integer), (.truncate, .integer):
            return number.value
        case (.absolute, .integer(let value)):
            guard value != .min else { throw .overflow }
            return .integer(abs(value))
        default: break
        }
        let value = number.double
        switch function {
        case .squareRoot: return .double(value.squareRoot())
        case .logarithm: return .double(log10(value))
        case .naturalLogarithm: return .double(log(value))
        case .exponential: return .double(exp(value))
        case .floor: return .double(value.rounded(.down))
        case .ceiling: return .double(value.rounded(.up))
        case .truncate: return .double(value.rounded(.towardZero))
        default: return .double(abs(value))
        }
    }

    private static func textual(
        _ function: Function, _ argument: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        guard case .string(let text) = argument else {
            throw .wrongKind(operation: function.rawValue, found: argument.kind)
        }
        switch function {
        case .uppercase: return .string(text.uppercased())
        case .lowercase: return .string(text.lowercased())
        default: return .integer(Int64(text.utf16.count))
        }
    }

    /// The mean radius of the Earth in metres (IUGG, R1).
    static let earthRadius = 6_371_008.8

    /// Returns the distance in metres along the great circle, by the haversine formula on the mean
    /// sphere.
    ///
    /// It differs from the distance on the ellipsoid by at most 0.6 %.
    private static func distance(
        _ left: FieldValue, _ right: FieldValue
    ) throws(EvaluationError) -> Double {
        guard case .location(let from) = left else {
            throw .wrongKind(operation: Function.distance.rawValue, found: left.kind)
        }
        guard case .location(let to) = right else {
            throw .wrongKind(operation: Function.distance.rawValue, found: right.kind)
        }
        return from.metres(to: to)
    }
}

extension Location {
    /// Returns the distance in metres to `other` along the great circle, by the haversine formula
    /// on the mean sphere.
    ///
    /// It differs from the distance on the ellipsoid by at most 0.6 %.
    public func metres(to other: Location) -> Double {
        let radians = Double.pi / 180
        let deltaLatitude = (other.latitude - latitude) * radians / 2
        let deltaLongitude = (other.longitude - longitude) * radians / 2
        let haversine =
            sin(deltaLatitude) * sin(deltaLatitude)
            + cos(latitude * radians) * cos(other.latitude * radians) * sin(deltaLongitude)
            * sin(deltaLongitude)
        return 2 * Functions.earthRadius * asin(min(1, haversine.squareRoot()))
    }
}
