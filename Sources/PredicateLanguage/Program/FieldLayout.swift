public import RelayModel

/// The fields that predicates read, each with a place of its own.
///
/// Looking a field up by its name costs more than most comparisons. Where many predicates are
/// tried on one record, or a few on many, a layout that they share lets each field be looked up
/// once: ``row(of:)`` puts the values in place, and
/// ``PreparedPredicate/evaluate(on:variables:now:)-(FieldRow,_,_)`` takes them from there.
public struct FieldLayout: Sendable, Hashable {
    /// The paths by their places.
    private(set) var paths: [FieldPath] = []
    private var places: [FieldPath: Int] = [:]

    /// Creates a layout of no fields; preparing predicates with it adds theirs.
    public init() {}

    /// How many fields have a place.
    public var count: Int { paths.count }

    /// The place of a field, a new one if it has none yet.
    mutating func place(of path: FieldPath) -> Int {
        if let place = places[path] { return place }
        paths.append(path)
        places[path] = paths.count - 1
        return paths.count - 1
    }

    /// Puts the values of a record in place.
    ///
    /// - Complexity: one look-up for each field of the layout.
    public func row(of fields: RecordFields) -> FieldRow {
        FieldRow(fields: fields, values: paths.map { $0.value(in: fields) })
    }
}

/// The values of a record in the places of a ``FieldLayout``.
///
/// It belongs to the predicates that were prepared with that layout; fields that the layout got
/// later are looked up by name.
public final class FieldRow: Sendable {
    /// The record.
    public let fields: RecordFields
    /// The value in each place; `nil` where a path passes something else than members.
    let values: [FieldValue?]

    init(fields: RecordFields, values: [FieldValue?]) {
        self.fields = fields
        self.values = values
    }
}

/// Where a program finds the values of fields.
protocol FieldSource {
    /// The record.
    var fields: RecordFields { get }
    /// The value in a place of a program whose places have these paths; `nil` where the path passes
    /// something else than members.
    func value(at place: Int32, _ paths: [FieldPath]) -> FieldValue?
}

extension FieldRow: FieldSource {
    @inline(__always)
    func value(at place: Int32, _ paths: [FieldPath]) -> FieldValue? {
        let place = Int(place)
        return place < values.count ? values[place] : paths[place].value(in: fields)
    }
}

/// A record whose fields are looked up by their names.
struct NamedFields: FieldSource {
    let fields: RecordFields

    @inline(__always)
    func value(at place: Int32, _ paths: [FieldPath]) -> FieldValue? {
        paths[Int(place)].value(in: fields)
    }
}

/// A path of plain member names, of one at least.
struct FieldPath: Sendable, Hashable {
    let name: String
    let rest: [String]

    init?(_ path: RecordPredicate.RecordPath) {
        guard let names = path.memberNames, let first = names.first else { return nil }
        name = first
        rest = Array(names.dropFirst())
    }

    /// The value there, nil if a member is missing; `nil` if the path passes something else than
    /// members, which the evaluator has to judge.
    @inline(__always)
    func value(in fields: RecordFields) -> FieldValue? {
        let value = fields[name] ?? .null
        return rest.isEmpty ? value : deeper(value)
    }

    private func deeper(_ start: FieldValue) -> FieldValue? {
        var value = start
        for name in rest {
            switch value {
            case .map(let members): value = members[name] ?? .null
            case .null: return .null
            default: return nil
            }
        }
        return value
    }
}
