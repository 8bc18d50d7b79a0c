import CEmbeddedFiles

/// A file that is part of the executable: a page, a description, a step of the schema.
///
/// `CEmbeddedFiles.c` names them all; a test compares that list with the folders that they are in.
package struct EmbeddedFile: Sendable {
    /// What is in it.
    package let bytes: [UInt8]

    /// The file called `name`, without its folder.
    ///
    /// - Precondition: There is one of that name.
    package init(_ name: String) {
        guard let bytes = Self.bytes(of: name) else {
            preconditionFailure("no file \(name) is in CEmbeddedFiles.c")
        }
        self.bytes = bytes
    }

    /// The bytes of the file called `name`; `nil` if there is none.
    package static func bytes(of name: String) -> [UInt8]? {
        var count = 0
        guard let start = belfry_embedded_file(name, &count) else { return nil }
        return [UInt8](UnsafeBufferPointer(start: start, count: count))
    }

    /// What is in it, as text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}
