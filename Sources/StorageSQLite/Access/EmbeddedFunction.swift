import CSQLite
import FoundationEssentials
import StorageSQL

/// A SQL function of a value and a text, which lives as long as it is registered.
private final class EmbeddedFunction {
    typealias Body = (_ value: SQLValue, _ text: String) throws -> SQLValue

    private let body: Body
    /// The first error that the body threw; SQLite keeps only its text.
    private(set) var failure: (any Error)?

    init(_ body: @escaping Body) {
        self.body = body
    }

    func answer(_ arguments: [OpaquePointer?], to context: OpaquePointer?) {
        do {
            let text = Self.value(arguments[1])
            guard case .text(let text) = text else {
                return sqlite3_result_error(context, "a text is expected", -1)
            }
            Self.answer(try body(Self.value(arguments[0]), text), to: context)
        } catch {
            if failure == nil { failure = error }
            sqlite3_result_error(context, "\(error)", -1)
        }
    }

    private static func value(_ argument: OpaquePointer?) -> SQLValue {
        switch sqlite3_value_type(argument) {
        case SQLITE_INTEGER: return .integer(sqlite3_value_int64(argument))
        case SQLITE_FLOAT: return .real(sqlite3_value_double(argument))
        case SQLITE_TEXT:
            guard let address = sqlite3_value_text(argument) else { return .null(.text) }
            let bytes = UnsafeBufferPointer(
                start: address, count: Int(sqlite3_value_bytes(argument)))
            return .text(String(decoding: bytes, as: UTF8.self))
        case SQLITE_BLOB:
            guard let address = sqlite3_value_blob(argument) else { return .bytes(Data()) }
            return .bytes(Data(bytes: address, count: Int(sqlite3_value_bytes(argument))))
        default: return .null(.text)
        }
    }

    private static func answer(_ value: SQLValue, to context: OpaquePointer?) {
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .integer(let number): sqlite3_result_int64(context, number)
        case .real(let number): sqlite3_result_double(context, number)
        case .null: sqlite3_result_null(context)
        case .text(let text):
            sqlite3_result_text64(
                context, text, UInt64(text.utf8.count), transient, UInt8(SQLITE_UTF8))
        case .bytes(let bytes):
            Array(bytes).withUnsafeBytes { bytes in
                // With a null address SQLite would bind NULL instead of an empty blob.
                guard let address = bytes.baseAddress, !bytes.isEmpty else {
                    return sqlite3_result_zeroblob(context, 0)
                }
                sqlite3_result_blob64(context, address, UInt64(bytes.count), transient)
            }
        }
    }
}

extension EmbeddedConnection {
    /// Runs `body`, whose statements may call `function` under `name`, with a value and a text.
    ///
    /// - Throws: The first error that `function` threw, or else what `body` throws.
    func withFunction<Value>(
        named name: String, _ function: @escaping (SQLValue, String) throws -> SQLValue,
        _ body: () throws -> Value
    ) throws -> Value {
        let called = EmbeddedFunction(function)
        let code = sqlite3_create_function_v2(
            pointer, name, 2, SQLITE_UTF8, Unmanaged.passUnretained(called).toOpaque(),
            { context, count, arguments in
                guard let place = sqlite3_user_data(context), let arguments, count == 2 else {
                    return
                }
                Unmanaged<EmbeddedFunction>.fromOpaque(place).takeUnretainedValue()
                    .answer([arguments[0], arguments[1]], to: context)
            }, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure() }
        defer {
            sqlite3_create_function_v2(pointer, name, 2, SQLITE_UTF8, nil, nil, nil, nil, nil)
        }
        return try withExtendedLifetime(called) {
            do {
                return try body()
            } catch {
                throw called.failure ?? error
            }
        }
    }
}
