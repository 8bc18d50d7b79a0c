/// The reason why a whole webhook is refused.
package struct DecodeError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of refusal.
    package enum Status: Int, Sendable, Hashable {
        /// The body is not JSON.
        case malformed = 400
        /// The method is not POST.
        case methodNotAllowed = 405
        /// The body, or the number of changes in it, is over a limit.
        case tooLarge = 413
        /// The content type is not supported.
        case unsupportedMediaType = 415
        /// The body is JSON but does not fit the preset.
        case unmappable = 422
    }

    /// The HTTP status.
    package let status: Status
    /// The place in the body; empty for the whole body.
    package let path: String
    /// What is wrong and what is allowed.
    package let reason: String

    package init(_ status: Status, path: String = "", reason: String) {
        self.status = status
        self.path = path
        self.reason = reason
    }

    /// The error in one sentence.
    package var description: String { path.isEmpty ? reason : "\(path): \(reason)" }
}
