import Foundation
import RelayModel
import Testing

/// The published cases in the folder that `BELFRY_CORPORA` names.
enum DialectCorpora {
    static let folder = ProcessInfo.processInfo.environment["BELFRY_CORPORA"]

    /// The reason why tests of the corpora are skipped.
    static let hint: Comment = "set BELFRY_CORPORA to the folder of the corpora"

    /// One line of a corpus.
    struct Case: CustomTestStringConvertible {
        let object: JSONObject
        let line: Int

        var testDescription: String { "line \(line): \(JSONValue.object(object).text)" }

        func text(_ name: String) -> String {
            if case .string(let text)? = object[name] { text } else { "" }
        }

        var arguments: [FieldValue] {
            get throws {
                guard case .array(let values)? = object["args"] else { return [] }
                return try values.map { try FieldValue(notation: $0) }
            }
        }
    }

    static func cases(_ file: String) throws -> [Case] {
        let folder = try #require(folder)
        let text = try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
        return try text.split(separator: "\n").enumerated().map { index, line in
            guard case .object(let object) = try JSONValue(parsing: Array(line.utf8)) else {
                throw JSONContractError(path: file, reason: "line \(index + 1) is no object")
            }
            return Case(object: object, line: index + 1)
        }
    }

    static func document(_ file: String) throws -> JSONValue {
        let folder = try #require(folder)
        let data = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + file))
        return try JSONValue(parsing: Array(data))
    }
}
