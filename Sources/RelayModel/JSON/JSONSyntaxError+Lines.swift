extension JSONSyntaxError {
    /// Returns the description with a line and a column instead of a byte offset if `text` has
    /// several lines, for authors who have it open in an editor.
    package func description(in text: [UInt8]) -> String {
        let newline = UInt8(ascii: "\n")
        guard text.contains(newline) else { return description }
        let before = text.prefix(utf8Offset)
        let line = before.count { $0 == newline } + 1
        let start = before.lastIndex(of: newline).map { before.index(after: $0) }
        let column = String(decoding: before[(start ?? before.startIndex)...], as: UTF8.self).count
        return "not JSON in line \(line) at column \(column + 1): \(reason)"
    }
}
