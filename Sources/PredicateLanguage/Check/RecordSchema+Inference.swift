public import RelayModel

extension RecordSchema {
    /// Creates a schema from records.
    ///
    /// A field whose values are all of one kind has that kind. A field with values of several
    /// kinds, or with none, is of mixed type.
    ///
    /// Embedded objects that do not all have the same members become dictionaries with unknown
    /// members.
    ///
    /// - Complexity: O(*n*) in the number of values.
    public init(inferredFrom records: [RecordFields]) {
        var columns: [String: [FieldValue]] = [:]
        for fields in records {
            for (name, value) in fields { columns[name, default: []].append(value) }
        }
        self.init(columns.mapValues { Field(Self.type(of: $0)) })
    }

    private static func type(of values: [FieldValue]) -> FieldType {
        var common: Kind?
        for value in values where !value.isNull {
            let kind = Kind(value)
            switch (common, kind) {
            case (nil, _): common = kind
            case (.integer, .double), (.double, .integer): common = .double
            case (let known?, _) where known != kind: return .mixed
            default: break
            }
        }
        switch common {
        case nil: return .mixed
        case .list: return .list(type(of: values.flatMap { $0.elements ?? [] }))
        case .map: return .map(members(of: values))
        case .scalar(let type): return type
        case .integer: return .integer
        case .double: return .double
        }
    }

    private static func members(of values: [FieldValue]) -> [String: Field]? {
        var columns: [String: [FieldValue]] = [:]
        var count = 0
        for case .map(let members) in values {
            count += 1
            for (name, value) in members { columns[name, default: []].append(value) }
        }
        guard columns.values.allSatisfy({ $0.count == count }) else { return nil }
        return columns.mapValues { Field(type(of: $0)) }
    }

    private enum Kind: Hashable {
        case integer
        case double
        case list
        case map
        case scalar(FieldType)

        init(_ value: FieldValue) {
            self =
                switch value {
                case .integer: .integer
                case .double: .double
                case .list, .set: .list
                case .map: .map
                case .null: .scalar(.mixed)
                case .bool: .scalar(.boolean)
                case .string: .scalar(.string)
                case .timestamp: .scalar(.timestamp)
                case .bytes: .scalar(.bytes)
                case .reference: .scalar(.reference)
                case .location: .scalar(.location)
                case .uuid: .scalar(.uuid)
                case .objectID: .scalar(.objectID)
                }
        }
    }
}
