#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A JSON value of a script file.
enum ScriptTree: Decodable {
    case object([String: ScriptTree])
    case array([ScriptTree])
    case string(String)
    case number(Int)
    case bool(Bool)
    case null

    /// Decodes a value.
    ///
    /// Numbers must be whole.
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode([String: ScriptTree].self) {
            self = .object(value)
        } else if let value = try? container.decode([ScriptTree].self) {
            self = .array(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else {
            self = .number(try container.decode(Int.self))
        }
    }
}

/// A value and its place in the file.
struct ScriptPlace {
    /// The value.
    var tree: ScriptTree
    /// Names of members and indices of elements, joined by dots.
    var path: String

    /// Returns a fault at this place.
    func fault(_ problem: String) -> ScriptFile.Fault {
        ScriptFile.Fault(place: path, problem: problem)
    }
}

/// The members of an object, taken out one by one.
///
/// Members that remain at the end are a fault.
struct ScriptMembers {
    private var members: [String: ScriptTree]
    private let path: String
    private var known: [String] = []

    /// Creates the members of `tree`, which must be an object.
    init(_ tree: ScriptTree, at path: String) throws(ScriptFile.Fault) {
        guard case .object(let members) = tree else {
            throw ScriptFile.Fault(place: path, problem: "must be an object")
        }
        self.members = members
        self.path = path
    }

    /// Takes a member out.
    ///
    /// Returns `nil` if it is missing or null.
    mutating func take(_ name: String) -> ScriptPlace? {
        known.append(name)
        guard let tree = members.removeValue(forKey: name) else { return nil }
        if case .null = tree { return nil }
        return ScriptPlace(tree: tree, path: path(of: name))
    }

    /// Throws a fault if a member is left that was not taken.
    func finish() throws(ScriptFile.Fault) {
        guard let name = members.keys.min() else { return }
        throw ScriptFile.Fault(
            place: path(of: name),
            problem: "is unknown here; known are \(known.joined(separator: ", "))")
    }

    /// Takes the elements of a list.
    ///
    /// Returns none if there is no such member.
    mutating func list(_ name: String) throws(ScriptFile.Fault) -> [ScriptPlace] {
        guard let place = take(name) else { return [] }
        guard case .array(let elements) = place.tree else { throw place.fault("must be a list") }
        return elements.enumerated().map { index, tree in
            ScriptPlace(tree: tree, path: "\(place.path).\(index)")
        }
    }

    /// Takes a text, or returns `nil` if it is missing.
    mutating func optionalText(_ name: String) throws(ScriptFile.Fault) -> String? {
        guard let place = take(name) else { return nil }
        guard case .string(let text) = place.tree else { throw place.fault("must be a text") }
        return text
    }

    /// Takes a required text.
    mutating func text(_ name: String) throws(ScriptFile.Fault) -> String {
        guard let text = try optionalText(name) else { throw missing(name) }
        return text
    }

    /// Takes a list of texts, or returns `nil` if it is missing.
    mutating func texts(_ name: String) throws(ScriptFile.Fault) -> [String]? {
        guard members[name] != nil else {
            known.append(name)
            return nil
        }
        var texts: [String] = []
        for place in try list(name) {
            guard case .string(let text) = place.tree else { throw place.fault("must be a text") }
            texts.append(text)
        }
        return texts
    }

    /// Takes a required text that must be one of `words`.
    mutating func word(_ name: String, of words: [String]) throws(ScriptFile.Fault) -> String {
        guard let word = try optionalText(name) else { throw missing(name) }
        guard words.contains(word) else {
            throw ScriptFile.Fault(
                place: path(of: name),
                problem: "must be one of \(words.joined(separator: ", "))")
        }
        return word
    }

    /// Takes the raw value of an enumeration's case, or returns `nil` if it is missing.
    mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ type: Choice.Type
    ) throws(ScriptFile.Fault) -> Choice? {
        guard members[name] != nil else {
            known.append(name)
            return nil
        }
        return Choice(rawValue: try word(name, of: Choice.allCases.map(\.rawValue)))
    }

    /// Takes a whole number within `range`, or returns `nil` if it is missing.
    mutating func number(
        _ name: String, in range: ClosedRange<Int>
    ) throws(ScriptFile.Fault) -> Int? {
        guard let place = take(name) else { return nil }
        return try Self.number(place, in: range)
    }

    /// Takes a required whole number within `range`.
    mutating func requiredNumber(
        _ name: String, in range: ClosedRange<Int>
    ) throws(ScriptFile.Fault) -> Int {
        guard let number = try number(name, in: range) else { throw missing(name) }
        return number
    }

    /// Takes a time in milliseconds, or a list of the shortest and the longest time.
    ///
    /// A missing member means zero.
    mutating func milliseconds(
        _ name: String
    ) throws(ScriptFile.Fault) -> ClosedRange<Duration> {
        guard let place = take(name) else { return .zero ... .zero }
        let range = 0...86_400_000
        guard case .array(let bounds) = place.tree else {
            let value = Duration.milliseconds(try Self.number(place, in: range))
            return value...value
        }
        guard bounds.count == 2 else { throw place.fault("must be a number or two numbers") }
        let low = try Self.number(ScriptPlace(tree: bounds[0], path: place.path), in: range)
        let high = try Self.number(ScriptPlace(tree: bounds[1], path: place.path), in: range)
        guard low <= high else { throw place.fault("must begin with the smaller number") }
        return .milliseconds(low) ... .milliseconds(high)
    }

    /// Takes a moment in milliseconds since 1970, or returns `nil` if it is missing.
    mutating func optionalMoment(_ name: String) throws(ScriptFile.Fault) -> Date? {
        try number(name, in: 0...253_402_300_799_999).map {
            Date(timeIntervalSince1970: Double($0) / 1000)
        }
    }

    /// Takes a required moment in milliseconds since 1970.
    mutating func moment(_ name: String) throws(ScriptFile.Fault) -> Date {
        guard let moment = try optionalMoment(name) else { throw missing(name) }
        return moment
    }

    private func path(of name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    private func missing(_ name: String) -> ScriptFile.Fault {
        ScriptFile.Fault(place: path(of: name), problem: "is missing")
    }

    private static func number(
        _ place: ScriptPlace, in range: ClosedRange<Int>
    ) throws(ScriptFile.Fault) -> Int {
        guard case .number(let number) = place.tree, range.contains(number) else {
            throw place.fault(
                "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
