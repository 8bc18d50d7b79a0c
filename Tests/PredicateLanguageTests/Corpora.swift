import Foundation
import RelayModel
import Testing

@testable import PredicateLanguage

/// The published suites, where the environment variable `BELFRY_CORPORA` names their folder.
enum Corpora {
    static let folder = ProcessInfo.processInfo.environment["BELFRY_CORPORA"]

    static let skipped: Comment = "BELFRY_CORPORA is not set: the published suites are not run"

    /// Returns the lines of a file, each as an object.
    static func lines(_ name: String) throws -> [JSONObject] {
        let path = try #require(folder) + "/" + name
        let text = try String(contentsOfFile: path, encoding: .utf8)
        return try text.split(separator: "\n").map { line in
            guard case .object(let object) = try JSONValue(parsing: String(line)) else {
                throw JSONContractError(path: name, reason: "a line is not an object")
            }
            return object
        }
    }
}

extension JSONObject {
    /// Returns the values of `args`, read from their notation.
    func arguments() throws -> [FieldValue] {
        guard case .array(let elements)? = self["args"] else { return [] }
        return try elements.map { try FieldValue(notation: $0) }
    }

    func text(_ name: String) -> String {
        if case .string(let text)? = self[name] { text } else { "" }
    }
}
