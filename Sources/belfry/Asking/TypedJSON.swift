import ArgumentParser
import RelayModel

extension JSONValue {
    /// Reads what was typed as an option, or stands in a file that was named.
    ///
    /// - Throws: `ValidationError` that says where, and in what.
    init(typed text: String, as name: String) throws {
        do {
            self = try JSONValue(parsing: text)
        } catch {
            throw ValidationError("\(name): \(error.description(in: Array(text.utf8)))")
        }
    }
}
