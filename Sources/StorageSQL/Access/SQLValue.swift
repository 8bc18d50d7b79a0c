package import FoundationEssentials

/// The value of a parameter or column, with its kind.
///
/// NULL has a kind too, because PostgreSQL needs the type of every parameter.
package enum SQLValue: Sendable, Hashable {
    case integer(Int64)
    case real(Double)
    case text(String)
    case bytes(Data)
    case null(SQLKind)
}

/// The four kinds of values that both engines have.
package enum SQLKind: Sendable, Hashable {
    /// A signed 64-bit integer; truth values are 0 and 1.
    case integer
    /// A 64-bit floating-point number.
    case real
    /// A UTF-8 text, compared byte by byte.
    case text
    /// Raw bytes.
    case bytes
}

/// A type whose values can be bound to parameters and read from columns.
package protocol ColumnValue {
    /// The kind under which values are stored.
    static var kind: SQLKind { get }

    /// The value as a parameter.
    var sqlValue: SQLValue { get }

    /// Reads a column.
    ///
    /// - Precondition: The value is not NULL, unless the type is optional.
    static func read(_ columns: any SQLColumns, at index: Int) -> Self
}

extension Int64: ColumnValue {
    package static var kind: SQLKind { .integer }
    package var sqlValue: SQLValue { .integer(self) }

    package static func read(_ columns: any SQLColumns, at index: Int) -> Int64 {
        columns.integer(at: index)
    }
}

extension ColumnValue where Self: FixedWidthInteger {
    package static var kind: SQLKind { .integer }
    /// The value as a parameter, clamped to the range of a signed 64-bit integer.
    package var sqlValue: SQLValue { .integer(Int64(clamping: self)) }

    package static func read(_ columns: any SQLColumns, at index: Int) -> Self {
        Self(clamping: columns.integer(at: index))
    }
}

extension Int: ColumnValue {}
extension Int32: ColumnValue {}
extension UInt8: ColumnValue {}
extension UInt16: ColumnValue {}
extension UInt32: ColumnValue {}
extension UInt64: ColumnValue {}

extension Bool: ColumnValue {
    package static var kind: SQLKind { .integer }
    package var sqlValue: SQLValue { .integer(self ? 1 : 0) }

    package static func read(_ columns: any SQLColumns, at index: Int) -> Bool {
        columns.integer(at: index) != 0
    }
}

extension Double: ColumnValue {
    package static var kind: SQLKind { .real }
    package var sqlValue: SQLValue { .real(self) }

    package static func read(_ columns: any SQLColumns, at index: Int) -> Double {
        columns.real(at: index)
    }
}

extension String: ColumnValue {
    package static var kind: SQLKind { .text }
    package var sqlValue: SQLValue { .text(self) }

    package static func read(_ columns: any SQLColumns, at index: Int) -> String {
        columns.text(at: index)
    }
}

extension Data: ColumnValue {
    package static var kind: SQLKind { .bytes }
    package var sqlValue: SQLValue { .bytes(self) }

    package static func read(_ columns: any SQLColumns, at index: Int) -> Data {
        columns.bytes(at: index)
    }
}

extension Optional: ColumnValue where Wrapped: ColumnValue {
    package static var kind: SQLKind { Wrapped.kind }
    package var sqlValue: SQLValue { self?.sqlValue ?? .null(Wrapped.kind) }

    package static func read(_ columns: any SQLColumns, at index: Int) -> Wrapped? {
        columns.isNull(at: index) ? nil : Wrapped.read(columns, at: index)
    }
}

/// The values of a statement's parameters, in the order of their numbers.
package struct StatementArguments: Sendable, Hashable, ExpressibleByArrayLiteral {
    /// The values.
    package private(set) var values: [SQLValue]

    package init(arrayLiteral elements: any ColumnValue...) {
        values = elements.map(\.sqlValue)
    }

    /// Creates arguments from values that were read.
    init(values: [SQLValue]) {
        self.values = values
    }

    /// Creates arguments from a sequence, one parameter for each element.
    package init(_ elements: some Sequence<some ColumnValue>) {
        values = elements.map(\.sqlValue)
    }

    package static func + (
        first: StatementArguments, second: StatementArguments
    ) -> StatementArguments {
        var sum = first
        sum += second
        return sum
    }

    package static func += (first: inout StatementArguments, second: StatementArguments) {
        first.values += second.values
    }
}
