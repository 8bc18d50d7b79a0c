public import RelayModel

/// The fields that predicates read, each with a place of its own.
///
/// Looking up a field by its name costs more than most comparisons. Where many predicates are
/// evaluated on one record, or a few on many records, they can share a layout, so that each field
/// is looked up once. ``row(of:)`` puts a record's values in their places, and
/// ``PreparedPredicate/evaluate(on:variables:now:)-(FieldRow,_,_)`` reads them there.
public struct FieldLayout: Sendable, Hashable {
    /// The paths of the fields, by place.
    private(set) var paths: [FieldPath] = []
    private var places: [FieldPath: Int] = [:]

    /// Creates a layout without fields.
    ///
    /// Preparing a predicate with it adds the predicate's fields.
    public init() {}

    /// The number of fields that have a place.
    public var count: Int { paths.count }

    /// Returns the place of a field, and adds one if the field has none yet.
    mutating func place(of path: FieldPath) -> Int {
        if let place = places[path] { return place }
        paths.append(path)
        places[path] = paths.count - 1
        return paths.count - 1
    }

    /// Returns the values of a record in their places.
    ///
    /// - Complexity: One look-up for each field of the layout.
    public func row(of fields: RecordFields) -> FieldRow {
        FieldRow(fields: fields, values: paths.map { $0.value(in: fields) })
    }
}

/// The values of a record in the places of a ``FieldLayout``.
///
/// A row is for predicates that were prepared with that layout. Fields that were added to the
/// layout after the row was created are looked up by name.
public final class FieldRow: Sendable {
    /// The record.
    public let fields: RecordFields
    /// The value in each place, or `nil` if a path goes through something other than members.
    let values: [FieldValue?]

    init(fields: RecordFields, values: [FieldValue?]) {
        self.fields = fields
        self.values = values
    }
}

/// A record from which a program reads the values of fields.
protocol FieldSource {
    /// The record.
    var fields: RecordFields { get }
    /// Returns the value in a place of a program, or `nil` if the path goes through something other
    /// than members. `paths` are the paths of the program's places.
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

/// A path of one or more plain member names.
struct FieldPath: Sendable, Hashable {
    let name: String
    let rest: [String]

    init?(_ path: RecordPredicate.RecordPath) {
        guard let names = path.memberNames, let first = names.first else { return nil }
        name = first
        rest = Array(names.dropFirst())
    }

    /// Returns the value at the path, which is nil if a member is missing.
    ///
    /// Returns `nil` if the path goes through something other than members, which only the
    /// evaluator can follow.
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
