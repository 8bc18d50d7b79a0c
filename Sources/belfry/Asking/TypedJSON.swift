import ArgumentParser
import RelayModel

extension JSONValue {
    /// Parses JSON from an option or a file.
    ///
    /// - Throws: `ValidationError` with the position and `name`.
    init(typed text: String, as name: String) throws {
        do {
            self = try JSONValue(parsing: text)
        } catch {
            throw ValidationError("\(name): \(error.description(in: Array(text.utf8)))")
        }
    }
}
