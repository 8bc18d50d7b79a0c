import CEmbeddedFiles

/// A file that is embedded in the executable, such as a page, an API description or a schema
/// migration.
///
/// `CEmbeddedFiles.c` lists all of them. A test compares that list with the source folders.
package struct EmbeddedFile: Sendable {
    /// The contents of the file.
    package let bytes: [UInt8]

    /// Creates the file called `name`, without its folder.
    ///
    /// - Precondition: A file of that name is embedded.
    package init(_ name: String) {
        guard let bytes = Self.bytes(of: name) else {
            preconditionFailure("no file \(name) is in CEmbeddedFiles.c")
        }
        self.bytes = bytes
    }

    /// Returns the contents of the file called `name`; `nil` if there is none.
    package static func bytes(of name: String) -> [UInt8]? {
        var count = 0
        guard let start = belfry_embedded_file(name, &count) else { return nil }
        return [UInt8](UnsafeBufferPointer(start: start, count: count))
    }

    /// The contents of the file, decoded as UTF-8.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}
